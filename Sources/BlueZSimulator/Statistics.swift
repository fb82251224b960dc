public import Foundation

/// What clients have asked of a simulator and what it told them, for a test's assertions. A copy: take a new one to see
/// more.
public struct Statistics: Hashable, Sendable {
    /// One method call as it came, before it was answered.
    public struct Call: Hashable, Sendable {
        public var interface: String
        public var member: String
        public var path: String
        /// The caller's unique name on the bus.
        public var sender: String
        /// Seconds since the simulator began.
        public var seconds: TimeInterval
    }

    /// The latest calls, oldest first; at most ``callLimit``.
    public private(set) var calls: [Call] = []
    /// The dictionaries of the latest `SetDiscoveryFilter` calls, oldest first, with exactly the keys that were sent; at
    /// most ``callLimit``.
    public private(set) var discoveryFilters: [[String: FilterValue]] = []
    /// How many advertisements reached a listening adapter.
    public internal(set) var sightings = 0
    private var counts: [String: Int] = [:]
    private var signals: [String: Int] = [:]

    /// How many calls are kept one by one; the counts go on.
    public static let callLimit = 10_000

    /// How often a method was called, with or without success: `count(of: "StartDiscovery")`.
    public func count(of member: String) -> Int { counts[member, default: 0] }

    /// How many signals of that name were sent: `signals(of: "InterfacesAdded")`.
    public func signals(of member: String) -> Int { signals[member, default: 0] }

    mutating func record(_ call: Call) {
        counts[call.member, default: 0] += 1
        // Cut in halves, so that a long life costs one move in five thousand calls.
        if calls.count >= Self.callLimit { calls.removeFirst(Self.callLimit / 2) }
        calls.append(call)
    }

    mutating func record(filter entries: [(key: String, value: FilterValue)]) {
        if discoveryFilters.count >= Self.callLimit { discoveryFilters.removeFirst(Self.callLimit / 2) }
        discoveryFilters.append(Dictionary(entries.map { ($0.key, $0.value) }) { _, last in last })
    }

    mutating func record(signal member: String) {
        signals[member, default: 0] += 1
    }
}

/// What an adapter looks like at the moment.
public struct AdapterState: Hashable, Sendable {
    public var path: String
    public var address: VirtualAddress
    public var alias: String
    public var isPowered: Bool
    /// What the property `Discovering` says.
    public var isDiscovering: Bool
    /// Whether the controller really scans, which ends silently with some faults.
    public var isScanning: Bool
    public var isDiscoverable: Bool
}

/// A client's part in an adapter's discovery.
public struct DiscoverySessionState: Hashable, Sendable {
    /// The client's unique name on the bus.
    public var client: String
    /// The adapter's path.
    public var adapter: String
    /// False for a client that has set a filter and has not started, or has stopped since.
    public var isScanning: Bool
    /// The filter's dictionary as it was sent; nil for a scan without a filter.
    public var filter: [String: FilterValue]?
}
