import Foundation
import GATT

/// The attributes of one peripheral: what its table was when it was read last, what of it the user asked for, and which
/// attribute of now is which of before.
///
/// A user's `Characteristic` names an attribute by its id. When the table is read again (after a reconnect, or when the
/// peripheral changed it) an attribute keeps its id if one with the same handle and UUID is there; else if its UUID is
/// unique among its siblings, then and now. Attributes that find no place are *invalid*, until such a table returns.
struct AttributeTable {
    struct Record {
        fileprivate(set) var declaration: AttributeDeclaration
        /// The service of a characteristic, the characteristic of a descriptor.
        fileprivate(set) var parent: AttributeID?
        /// In the order of their handles.
        fileprivate(set) var children: [AttributeID] = []
        /// It is in the table that was read last, and BlueZ has not removed it since.
        fileprivate(set) var isPresent = false
        /// It is in the table that was read last.
        fileprivate var isInTable = false
        /// The user asked for it on this connection.
        fileprivate(set) var isDiscovered = false
        /// The newest value: read, or notified.
        var value: Data?
        /// The size of an ATT packet on its link, as BlueZ reports it.
        var mtu: Int?

        var uuid: CBUUID { declaration.uuid }
        var handle: AttributeHandle { declaration.handle }

        func maximumWriteLength(for type: CBCharacteristicWriteType) -> Int {
            AttributeTable.maximumWriteLength(for: type, mtu: mtu)
        }
    }

    /// What was different when the table was read again.
    struct Difference: Equatable {
        var added: [AttributeID] = []
        /// Those that have no place any more.
        var invalidated: [AttributeID] = []
        /// Those that have another handle, or can do other things.
        var changed: [AttributeID] = []

        var isEmpty: Bool { added.isEmpty && invalidated.isEmpty && changed.isEmpty }
    }

    private var records: [Record] = []
    /// Of what is present.
    private var ids: [AttributeHandle: AttributeID] = [:]
    /// The services that are present, in the order of their handles.
    private(set) var allServices: [AttributeID] = []

    // MARK: Looking

    /// What is known of an attribute; `nil` for an id of another table.
    subscript(id: AttributeID) -> Record? { records.indices.contains(id.rawValue) ? records[id.rawValue] : nil }

    /// The attribute that stands there now.
    func id(at handle: AttributeHandle) -> AttributeID? { ids[handle] }

    /// The size of an ATT packet on the link, as BlueZ reports it with the characteristics; `nil` if it does not.
    var mtu: Int? { records.lazy.filter(\.isPresent).compactMap(\.mtu).first }

    func maximumWriteLength(for type: CBCharacteristicWriteType) -> Int {
        AttributeTable.maximumWriteLength(for: type, mtu: mtu)
    }

    /// How many bytes can be written at once. With response BlueZ sends what does not fit into a packet in parts; no
    /// attribute is longer than 512 bytes (Core Specification, Vol 3, Part F, 3.2.9). Without response it is what fits
    /// into a packet, behind the three bytes of its head; the smallest packet has 23.
    private static func maximumWriteLength(for type: CBCharacteristicWriteType, mtu: Int?) -> Int {
        type == .withResponse ? 512 : min(max(mtu ?? 23, 23) - 3, 512)
    }

    /// The services that were asked for on this connection.
    var services: [AttributeID] { allServices.filter { records[$0.rawValue].isDiscovered } }

    /// The characteristics of a service that were asked for on this connection.
    func characteristics(of service: AttributeID) -> [AttributeID] {
        self[service]?.children.filter { records[$0.rawValue].isDiscovered } ?? []
    }

    /// The descriptors of a characteristic.
    func descriptors(of characteristic: AttributeID) -> [AttributeID] { self[characteristic]?.children ?? [] }

    /// The services that a service includes.
    func includedServices(of service: AttributeID) -> [AttributeID] {
        guard case .service(_, let includes) = self[service]?.declaration.role else { return [] }
        return includes.compactMap { ids[$0] }
    }

    /// Whether there is nothing.
    var isEmpty: Bool { allServices.isEmpty }

    /// Whether all is there that ought to be: each service has a characteristic, and each of the services that the
    /// peripheral was found to have is there.
    func isWhole(naming named: some Sequence<CBUUID>) -> Bool {
        guard !isEmpty, allServices.allSatisfy({ !records[$0.rawValue].children.isEmpty }) else { return false }
        let present = Set(allServices.map { records[$0.rawValue].uuid })
        return named.allSatisfy { present.contains($0) || !$0.isExportedService }
    }

    // MARK: Changing

    /// Changes what is known of an attribute in place; `nil` for an id of another table.
    @discardableResult
    mutating func update<R>(_ id: AttributeID, _ change: (inout Record) -> R) -> R? {
        guard records.indices.contains(id.rawValue) else { return nil }
        return change(&records[id.rawValue])
    }

    /// A new connection: nothing was asked for yet.
    mutating func forgetDiscovered() {
        for index in records.indices { records[index].isDiscovered = false }
    }

    /// The user asked for these services; `nil` for all.
    mutating func discoverServices(_ uuids: Set<CBUUID>?) { discover(allServices, uuids) }

    /// The user asked for these characteristics of a service; `nil` for all.
    mutating func discoverCharacteristics(_ uuids: Set<CBUUID>?, of service: AttributeID) {
        discover(self[service]?.children ?? [], uuids)
    }

    /// The user asked for these.
    mutating func discover(_ candidates: [AttributeID], _ uuids: Set<CBUUID>? = nil) {
        for id in candidates where uuids?.contains(records[id.rawValue].uuid) ?? true {
            records[id.rawValue].isDiscovered = true
        }
    }

    /// BlueZ has removed the object there. Whether it is gone is known when the table is read again.
    mutating func removed(at handle: AttributeHandle) -> AttributeID? {
        guard let id = ids.removeValue(forKey: handle) else { return nil }
        records[id.rawValue].isPresent = false
        return id
    }

    // MARK: Reading the table

    /// The table as it is now, in the order of handles: services before their characteristics, these before their
    /// descriptors. Each declaration has a handle of its own.
    mutating func read(_ declarations: [AttributeDeclaration]) -> Difference {
        var difference = Difference()
        let before = Set(records.indices.filter { records[$0].isInTable }.map { AttributeID(rawValue: $0) })
        var matching = AttributeMatching(records)
        empty()
        // Parents first: whether a characteristic is one of before depends on which service its own is.
        for kind in [AttributeDeclaration.Kind.service, .characteristic, .descriptor] {
            let ofKind = declarations.filter { $0.kind == kind }
            for (declaration, old) in zip(ofKind, matching.match(ofKind, parents: ids)) {
                let id = old ?? AttributeID(rawValue: records.count)
                if old == nil { records.append(Record(declaration: declaration)) }
                if !before.contains(id) {
                    difference.added.append(id)
                } else if records[id.rawValue].declaration != declaration {
                    difference.changed.append(id)
                }
                place(id, declaration)
            }
        }
        difference.invalidated = before.filter { !records[$0.rawValue].isInTable }.sorted()
        for id in difference.invalidated { records[id.rawValue].isDiscovered = false }
        return difference
    }

    private mutating func empty() {
        ids.removeAll(keepingCapacity: true)
        allServices.removeAll(keepingCapacity: true)
        for index in records.indices {
            records[index].isInTable = false
            records[index].isPresent = false
            records[index].children = []
        }
    }

    private mutating func place(_ id: AttributeID, _ declaration: AttributeDeclaration) {
        let parent = declaration.parent.flatMap { ids[$0] }
        ids[declaration.handle] = id
        records[id.rawValue].declaration = declaration
        records[id.rawValue].isInTable = true
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
        let kind: AttributeDeclaration.Kind
    }

    private struct Siblings: Hashable {
        let parent: AttributeID?
        let uuid: CBUUID
        let kind: AttributeDeclaration.Kind
    }

    /// All that there ever were, by where they stood last.
    private var spots: [Spot: AttributeID] = [:]
    /// Those of the table before, by what they are.
    private var siblings: [Siblings: [AttributeID]] = [:]
    private var isTaken: Set<AttributeID> = []

    init(_ records: [AttributeTable.Record]) {
        for (index, record) in records.enumerated() {
            let id = AttributeID(rawValue: index)
            let spot = Spot(handle: record.handle, uuid: record.uuid, kind: record.declaration.kind)
            // Of several with one history the one of the table before is the one that the user means.
            if record.isInTable || spots[spot] == nil { spots[spot] = id }
            guard record.isInTable else { continue }
            let group = Siblings(parent: record.parent, uuid: record.uuid, kind: record.declaration.kind)
            siblings[group, default: []].append(id)
        }
    }

    /// For each of these declarations of one kind, the attribute that it declares, if it existed before.
    /// - Parameter parents: the attributes that were placed already.
    mutating func match(
        _ declarations: [AttributeDeclaration], parents: [AttributeHandle: AttributeID]
    ) -> [AttributeID?] {
        var matched = declarations.map { declaration in
            spots[Spot(handle: declaration.handle, uuid: declaration.uuid, kind: declaration.kind)]
        }
        isTaken.formUnion(matched.compactMap { $0 })
        let groups = declarations.map { declaration in
            Siblings(
                parent: declaration.parent.flatMap { parents[$0] }, uuid: declaration.uuid, kind: declaration.kind)
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
