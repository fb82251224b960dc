import BlueCapBlueZ
import BlueCapFutures
import Foundation
import BlueCapGATT

/// The attributes of one peripheral: the contents of its table when it was last read, which of them the user requested,
/// and which attributes of the present table are those of an earlier one.
///
/// A user's `Characteristic` refers to an attribute by its id. When the table is read again (after a reconnect, or when
/// the peripheral changed it), an attribute keeps its id if the new table has one with the same handle and UUID, or
/// else if its UUID is unique among its siblings in both tables. Other attributes are *invalid* until a table that
/// contains them returns.
struct AttributeTable {
    struct Record {
        fileprivate(set) var declaration: AttributeDeclaration
        /// The service of a characteristic, or the characteristic of a descriptor.
        fileprivate(set) var parent: AttributeID?
        /// In the order of their handles.
        fileprivate(set) var children: [AttributeID] = []
        /// Whether it is in the table that was read last, and BlueZ has not removed it since.
        fileprivate(set) var isPresent = false
        /// Whether the user requested it on this connection.
        fileprivate(set) var isDiscovered = false
        /// Whether an operation on it was refused on a link without encryption.
        var isProtected = false
        /// The value that was read last, of a virtual battery the level. When BlueZ has removed the attribute's object, the newest
        /// value; before that the object tree has it.
        var value: Data?
        /// The size of an ATT packet on its link, as BlueZ reports it.
        var mtu: Int?

        var uuid: CBUUID { declaration.uuid }
        var handle: AttributeHandle { declaration.handle }
    }

    private var records: [Record] = []
    /// The attributes of the table that was read last, in its order.
    private var lastRead: [AttributeID] = []
    /// The attributes that are present.
    private var ids: [AttributeHandle: AttributeID] = [:]
    /// The services that are present, in the order of their handles.
    private(set) var allServices: [AttributeID] = []

    // MARK: Queries

    /// Returns the record of an attribute; `nil` for an id of another table.
    subscript(id: AttributeID) -> Record? {
        records.indices.contains(id.rawValue) ? records[id.rawValue] : nil
    }

    /// Changes the record of an attribute in place; does nothing for an id of another table.
    mutating func change(_ id: AttributeID, _ body: (inout Record) -> Void) {
        if records.indices.contains(id.rawValue) { body(&records[id.rawValue]) }
    }

    /// Returns the attribute that has this handle now.
    func id(at handle: AttributeHandle) -> AttributeID? { ids[handle] }

    /// The handles of the attributes that are present.
    var handles: some Sequence<AttributeHandle> { ids.keys }

    /// The size of an ATT packet on the link, as BlueZ reports it with the characteristics; `nil` if it does not.
    var mtu: Int? { records.lazy.filter(\.isPresent).compactMap(\.mtu).first }

    /// Returns the largest number of bytes of one write. With response, BlueZ sends what does not fit into a packet in
    /// parts. Without response it is what fits into a packet.
    static func maximumWriteLength(for type: CBCharacteristicWriteType, mtu: Int?) -> Int {
        type == .withResponse ? AttributeProtocol.longestValue : AttributeProtocol.longestValue(inPacketOf: mtu)
    }

    /// The services that were requested on this connection.
    var services: [AttributeID] { allServices.filter { records[$0.rawValue].isDiscovered } }

    /// Returns the characteristics of a service that were requested on this connection.
    func characteristics(of service: AttributeID) -> [AttributeID] {
        self[service]?.children.filter { records[$0.rawValue].isDiscovered } ?? []
    }

    func descriptors(of characteristic: AttributeID) -> [AttributeID] { self[characteristic]?.children ?? [] }

    func includedServices(of service: AttributeID) -> [AttributeID] {
        self[service]?.declaration.includes.compactMap { ids[$0] } ?? []
    }

    /// Whether the table has no services.
    var isEmpty: Bool { allServices.isEmpty }

    /// Returns whether the table is complete: each service has a characteristic or is empty, and each service in `named`,
    /// which the peripheral was found to have, is present.
    /// - Parameter known: The services that are known to be empty.
    func isWhole(naming named: some Sequence<CBUUID>, empty known: Set<AttributeID> = []) -> Bool {
        guard !isEmpty, emptyServices.isSubset(of: known.union(fullServices)) else { return false }
        let present = Set(allServices.map { records[$0.rawValue].uuid })
        return named.allSatisfy { present.contains($0) || !$0.isExportedService }
    }

    /// The services without characteristics.
    var emptyServices: Set<AttributeID> { Set(allServices.filter { records[$0.rawValue].children.isEmpty }) }

    /// The services that have no handles for characteristics: the next service follows their included services, with less
    /// than the two handles between that a characteristic takes (Core Specification, Vol 3, Part G, 3.3).
    private var fullServices: [AttributeID] {
        zip(allServices, allServices.dropFirst()).filter { service, next in
            guard let start = self[service]?.handle.attHandle, let end = self[next]?.handle.attHandle else {
                return false
            }
            return Int(end) - Int(start) < 3 + includedServices(of: service).count
        }.map(\.0)
    }

    // MARK: Changes

    /// Begins a new connection, on which nothing was requested yet.
    mutating func forgetDiscovered() {
        for index in records.indices { records[index].isDiscovered = false }
    }

    /// Marks those of the candidates with these UUIDs as requested; `nil` for all.
    mutating func discover(_ candidates: [AttributeID], _ uuids: Set<CBUUID>? = nil) {
        for id in candidates where uuids?.contains(records[id.rawValue].uuid) ?? true {
            records[id.rawValue].isDiscovered = true
        }
    }

    /// BlueZ has removed the object with this handle. Whether the attribute still exists is known when the table is
    /// read again.
    mutating func removed(at handle: AttributeHandle) -> AttributeID? {
        guard let id = ids.removeValue(forKey: handle) else { return nil }
        records[id.rawValue].isPresent = false
        return id
    }

    // MARK: Reading the table

    /// Replaces the table. The declarations are in the order of handles: services precede their characteristics, which
    /// precede their descriptors. Each declaration has a handle of its own.
    /// - Returns: The attributes that are no longer in the table, and whether the table differs from the one before.
    mutating func read(_ declarations: [AttributeDeclaration]) -> (invalidated: [AttributeID], isChanged: Bool) {
        // As on most reconnections.
        guard !lastRead.elementsEqual(declarations, by: { records[$0.rawValue].declaration == $1 }) else {
            for id in lastRead {
                ids[records[id.rawValue].handle] = id
                records[id.rawValue].isPresent = true
            }
            return ([], false)
        }
        let before = Set(lastRead)
        var matching = AttributeMatching(records, tableBefore: before)
        empty()
        // Parents first: whether a characteristic existed before depends on which service it belongs to.
        for kind in AttributeKind.allCases {
            let ofKind = declarations.filter { $0.kind == kind }
            for (declaration, old) in zip(ofKind, matching.match(ofKind, parents: ids)) {
                let id = old ?? AttributeID(rawValue: records.count)
                if old == nil { records.append(Record(declaration: declaration)) }
                place(id, declaration)
            }
        }
        lastRead = declarations.compactMap { ids[$0.handle] }
        let invalidated = before.subtracting(lastRead).ordered()
        for id in invalidated { records[id.rawValue].isDiscovered = false }
        return (invalidated, true)
    }

    private mutating func empty() {
        ids.removeAll(keepingCapacity: true)
        allServices.removeAll(keepingCapacity: true)
        for index in records.indices {
            records[index].isPresent = false
            records[index].children = []
        }
    }

    private mutating func place(_ id: AttributeID, _ declaration: AttributeDeclaration) {
        let parent = declaration.parent.flatMap { ids[$0] }
        ids[declaration.handle] = id
        records[id.rawValue].declaration = declaration
        records[id.rawValue].isPresent = true
        records[id.rawValue].parent = parent
        if let parent {
            records[parent.rawValue].children.append(id)
        } else if declaration.kind == .service {
            allServices.append(id)
        }
    }
}

/// Finds the attributes of the previous table in a new one.
private struct AttributeMatching {
    private struct Spot: Hashable {
        let handle: AttributeHandle
        let uuid: CBUUID
        let kind: AttributeKind
    }

    private struct Siblings: Hashable {
        let parent: AttributeID?
        let uuid: CBUUID
        let kind: AttributeKind
    }

    /// All attributes of all tables so far, by their last position.
    private var spots: [Spot: AttributeID] = [:]
    /// The attributes of the table before, by their kind, parent and UUID.
    private var siblings: [Siblings: [AttributeID]] = [:]
    private var isTaken: Set<AttributeID> = []

    init(_ records: [AttributeTable.Record], tableBefore: Set<AttributeID>) {
        for (index, record) in records.enumerated() {
            let id = AttributeID(rawValue: index)
            let spot = Spot(handle: record.handle, uuid: record.uuid, kind: record.declaration.kind)
            // If several have the same history, the user means the one in the table before.
            let isInTable = tableBefore.contains(id)
            if isInTable || spots[spot] == nil { spots[spot] = id }
            guard isInTable else { continue }
            let group = Siblings(parent: record.parent, uuid: record.uuid, kind: record.declaration.kind)
            siblings[group, default: []].append(id)
        }
    }

    /// Returns, for each of these declarations of one kind, the attribute that it declares, if it existed before.
    /// - Parameter parents: The attributes that were matched already.
    mutating func match(
        _ declarations: [AttributeDeclaration], parents: [AttributeHandle: AttributeID]
    ) -> [AttributeID?] {
        var matched = declarations.map { declaration in
            spots[Spot(handle: declaration.handle, uuid: declaration.uuid, kind: declaration.kind)]
        }
        isTaken.formUnion(matched.compactMap { $0 })
        var groups: [Siblings] = []
        for declaration in declarations {
            // With a closure in place of this `if`, the optimizer of Swift 6.3.1 ends with an "ownership error".
            var parent: AttributeID?
            if let handle = declaration.parent { parent = parents[handle] }
            groups.append(Siblings(parent: parent, uuid: declaration.uuid, kind: declaration.kind))
        }
        let counts = Dictionary(groups.map { ($0, 1) }, uniquingKeysWith: +)
        for (index, group) in groups.enumerated() where matched[index] == nil && counts[group] == 1 {
            guard let old = siblings[group], old.count == 1, !isTaken.contains(old[0]) else { continue }
            matched[index] = old[0]
            isTaken.insert(old[0])
        }
        return matched
    }
}

/// Identifies a service, or a characteristic of a service, by UUIDs and by what is to be done with it.
struct AttributeName: Hashable, Sendable {
    let service: CBUUID
    var characteristic: CBUUID?
    var handle: UInt16?
    /// The properties of which one is needed; none if it is not known what is to be done.
    var use: CBCharacteristicProperties = []
}

extension AttributeName {
    init(_ identifier: ServiceIdentifier) throws { self.init(service: try identifier.checked()) }

    init(_ identifier: CharacteristicIdentifier, for use: CBCharacteristicProperties) throws {
        let (service, characteristic) = try identifier.checked()
        self.init(service: service, characteristic: characteristic, handle: identifier.handle, use: use)
    }
}

extension AttributeTable {
    /// Returns the attribute that has this name, or else an error with those that exist instead. Of several, it is the only
    /// one that can be used as the name says, or else an error with all of them.
    ///
    /// A peripheral may have a service several times. The characteristic may then be in any of them.
    func find(_ name: AttributeName) -> Result<AttributeID, PeripheralFailure> {
        let services = allServices.filter { self[$0]?.uuid == name.service }
        guard !services.isEmpty else {
            return .failure(.peripheral(.serviceNotFound(name.service, available: unique(allServices))))
        }
        guard let wanted = name.characteristic else { return onlyOne(of: services, named: name.service) }
        let characteristics = services.flatMap { self[$0]?.children ?? [] }
        let found = characteristics.filter {
            self[$0]?.uuid == wanted && (name.handle == nil || self[$0]?.handle.attHandle == name.handle)
        }
        guard !found.isEmpty else {
            return .failure(
                .service(
                    .characteristicNotFound(wanted, service: name.service, available: unique(characteristics))))
        }
        let usable = found.filter { self[$0]?.declaration.properties.isDisjoint(with: name.use) == false }
        return onlyOne(of: usable.count == 1 ? usable : found, named: wanted)
    }

    private func onlyOne(of ids: [AttributeID], named uuid: CBUUID) -> Result<AttributeID, PeripheralFailure> {
        guard ids.count > 1 else { return .success(ids[0]) }
        return .failure(.peripheral(.ambiguous(uuid, candidates: ids.compactMap(candidate))))
    }

    private func candidate(_ id: AttributeID) -> AttributeCandidate? {
        self[id].map { record in
            let text = userDescription(of: id).flatMap { self[$0]?.value }
            return AttributeCandidate(
                handle: record.handle.attHandle,
                properties: record.declaration.kind == .characteristic ? record.declaration.properties : nil,
                userDescription: text.map { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
    }

    /// The descriptor with a readable description of a characteristic.
    func userDescription(of characteristic: AttributeID) -> AttributeID? {
        descriptors(of: characteristic).first { self[$0]?.uuid == .userDescription }
    }

    /// Finds an attribute by its name, and marks it as requested, a characteristic together with its service.
    mutating func discover(_ name: AttributeName) -> Result<AttributeID, PeripheralFailure> {
        let result = find(name)
        if case .success(let id) = result { discover([id, self[id]?.parent].compactMap { $0 }) }
        return result
    }

    /// Returns their UUIDs in the order of the table, each once.
    private func unique(_ ids: [AttributeID]) -> [CBUUID] {
        var seen: Set<CBUUID> = []
        return ids.compactMap { self[$0]?.uuid }.filter { seen.insert($0).inserted }
    }
}
