import GATT

/// What an identifier names: a service, or a characteristic of one.
struct AttributeName: Hashable, Sendable {
    let service: CBUUID
    var characteristic: CBUUID?
}

extension AttributeTable {
    /// The first attribute that has this name, or what there is instead.
    ///
    /// A service can be there several times: then the characteristic may be in any of them.
    func find(_ name: AttributeName) -> Result<AttributeID, PeripheralFailure> {
        let services = allServices.filter { self[$0]?.uuid == name.service }
        guard let first = services.first else {
            return .failure(.peripheral(.serviceNotFound(name.service, available: unique(allServices))))
        }
        guard let wanted = name.characteristic else { return .success(first) }
        let characteristics = services.flatMap { self[$0]?.children ?? [] }
        guard let found = characteristics.first(where: { self[$0]?.uuid == wanted }) else {
            return .failure(
                .service(
                    .characteristicNotFound(wanted, service: name.service, available: unique(characteristics))))
        }
        return .success(found)
    }

    /// The same; what is found counts as asked for from now on, a characteristic with its service.
    mutating func discover(_ name: AttributeName) -> Result<AttributeID, PeripheralFailure> {
        let result = find(name)
        if case .success(let id) = result { discover([id, self[id]?.parent].compactMap { $0 }) }
        return result
    }

    /// Their UUIDs in the order of the table, each once.
    private func unique(_ ids: [AttributeID]) -> [CBUUID] {
        var seen: Set<CBUUID> = []
        return ids.compactMap { self[$0]?.uuid }.filter { seen.insert($0).inserted }
    }
}
