import Foundation

/// A peripheral of the room as its own server sees it: what it stores, who is connected, what is to go wrong.
struct Peer: Sendable {
    /// What becomes of a connection.
    enum State: Sendable {
        case free
        /// Somebody tries to connect.
        case wanted(by: DeviceKey, since: TimeInterval)
        case linked(PeerLink)
    }

    var peripheral: VirtualPeripheral
    var behavior: (any PeripheralBehavior)?
    var table: AttributeTable
    /// By the handle of the value or the descriptor.
    var values: [UInt16: [UInt8]]
    var state = State.free
    var faults = PeerFaults()
    /// Whether it is out of range.
    var isAway = false
    /// Where these are, they are drawn for each attempt to connect.
    var randomFaults: RandomFaults?

    init(_ peripheral: VirtualPeripheral, behavior: (any PeripheralBehavior)?) {
        self.peripheral = peripheral
        self.behavior = behavior
        table = Self.table(of: peripheral)
        values = table.initialValues
    }

    private static func table(of peripheral: VirtualPeripheral) -> AttributeTable {
        AttributeTable(
            peripheral.services, name: peripheral.name ?? peripheral.advertisement.localName,
            appearance: peripheral.advertisement.appearance)
    }

    /// Takes over another table; values start anew.
    mutating func change(to peripheral: VirtualPeripheral) {
        let changed = Self.table(of: peripheral)
        self.peripheral = peripheral
        guard changed != table else { return }
        table = changed
        values = changed.initialValues
    }

    /// From when on it answers a connection that is tried at `now`; nil when it will not.
    func reachable(atOrAfter now: TimeInterval) -> TimeInterval? {
        guard peripheral.advertisement.isConnectable, !isAway else { return nil }
        if peripheral.isRemembered { return peripheral.services.isEmpty ? nil : now }
        let start = max(now, peripheral.appearsAfter)
        if let end = peripheral.disappearsAfter, start >= end { return nil }
        return start
    }

    /// What a client of this attribute is told of it.
    func attribute(_ handle: UInt16) -> VirtualAttribute? {
        guard let target = table.targets[handle] else { return nil }
        return VirtualAttribute(
            service: target.service, characteristic: target.characteristic.uuid, descriptor: target.descriptor?.uuid,
            handle: handle)
    }
}

/// A link that is up, at the peripheral's end.
struct PeerLink: Sendable {
    let key: DeviceKey
    /// Requests in their order; the first is under way.
    var queue: [AttributeRequest] = []
    /// What the first one comes to, once that is known.
    var outcome: AttributeAnswer.Outcome?
    /// How many requests have come.
    var requestCount = 0
    /// By the handle of the declaration, what was written to the configuration, and how many values went out.
    var subscriptions: [UInt16: (bits: UInt8, sent: Int)] = [:]
}

/// What goes wrong with one peripheral.
struct PeerFaults: Sendable {
    /// So many attempts to connect fail.
    var refusals = 0
    /// So many links fall that long after they came up.
    var drops = 0
    var dropDelay: TimeInterval = 0
    /// The link falls in the place of the response to the request with this number, from 1; nil for never.
    var requestsUntilDrop: Int?
    /// Requests get no response.
    var isSilent = false
    /// Beside what it takes anyhow.
    var extraDelay: TimeInterval = 0
    /// Reads give so many bytes more, or fewer.
    var extraLength = 0
    /// The link falls during the next write.
    var vanishesInWrite = false
    /// Discovery finds nothing.
    var isUnresolved = false
}
