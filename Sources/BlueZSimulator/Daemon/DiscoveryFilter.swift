/// A value in a `SetDiscoveryFilter` dictionary, as it was sent.
public enum FilterValue: Hashable, Sendable {
    /// An array of strings, such as the value of `UUIDs`.
    case strings([String])
    /// A string, such as the value of `Transport`.
    case string(String)
    /// A signed number, such as the value of `RSSI`.
    case int16(Int16)
    /// An unsigned number, such as the value of `Pathloss`.
    case uint16(UInt16)
    /// A Boolean value, such as the value of `DuplicateData`.
    case bool(Bool)
    /// Anything else, by its D-Bus signature.
    case other(signature: String)

    init(_ value: BusValue) {
        switch value {
        case .strings(let list): self = .strings(list)
        case .string(let text): self = .string(text)
        case .int16(let number): self = .int16(number)
        case .uint16(let number): self = .uint16(number)
        case .bool(let flag): self = .bool(flag)
        default: self = .other(signature: value.signature)
        }
    }

    static func values(of options: [NamedValue]) -> [String: FilterValue] {
        Dictionary(options.map { ($0.name, FilterValue($0.value)) }) { _, last in last }
    }
}

/// One client's discovery filter, as BlueZ keeps it.
struct DiscoveryFilter: Hashable, Sendable {
    struct Transport: OptionSet, Hashable, Sendable {
        let rawValue: UInt8
        static let classic = Transport(rawValue: 1)
        static let lowEnergy = Transport(rawValue: 2)
        static let both: Transport = [.classic, .lowEnergy]
    }

    /// Long form; empty means any.
    var uuids: [String] = []
    var rssi: Int16?
    var pathloss: UInt16?
    var transport = Transport.both
    /// False by default, although BlueZ's documentation of that time says otherwise.
    var reportsDuplicateData = false
    var makesDiscoverable = false
    var pattern: String?
    /// The dictionary it came from.
    var sent: [String: FilterValue] = [:]

    /// Returns the filter that a dictionary describes; nil if the dictionary is empty, which removes the filter.
    ///
    /// - Parameter keys: The keys that are known.
    /// - Throws: `InvalidArguments` for an unknown key, a wrong type, a number out of range, and for RSSI together
    ///   with Pathloss.
    static func parsed(_ options: [NamedValue], keys: [String]) throws(DaemonError) -> DiscoveryFilter? {
        guard !options.isEmpty else { return nil }
        var filter = DiscoveryFilter()
        for option in options { try filter.take(option.name, option.value, keys) }
        guard filter.rssi == nil || filter.pathloss == nil else { throw .invalidArguments }
        filter.sent = FilterValue.values(of: options)
        return filter
    }

    private mutating func take(_ key: String, _ value: BusValue, _ keys: [String]) throws(DaemonError) {
        switch (key, value) {
        case ("UUIDs", .strings(let list)):
            for text in list {
                guard let uuid = ServiceUUID.long(text) else { throw .invalidArguments }
                uuids.insert(uuid, at: 0)
            }
        case ("RSSI", .int16(let rssi)) where (-127...20).contains(rssi): self.rssi = rssi
        case ("Pathloss", .uint16(let pathloss)) where pathloss <= 137: self.pathloss = pathloss
        case ("Transport", .string("bredr")): transport = .classic
        case ("Transport", .string("le")): transport = .lowEnergy
        case ("Transport", .string("auto")): break
        case ("DuplicateData", .bool(let wanted)): reportsDuplicateData = wanted
        case ("Discoverable", .bool(let wanted)): makesDiscoverable = wanted
        case ("Pattern", .string(let pattern)): self.pattern = pattern
        case ("AutoConnect", .bool) where keys.contains(key): break
        default: throw .invalidArguments
        }
    }

    /// Whether the filter has one of the keys but `Discoverable`, or a transport that is not all that the adapter has.
    func narrows(adapter transports: Transport) -> Bool {
        !uuids.isEmpty || rssi != nil || pathloss != nil || reportsDuplicateData || pattern != nil
            || transport != transports
    }
}

/// The kernel's filter, into which the filters of all clients of an adapter are merged.
struct KernelFilter: Hashable, Sendable {
    /// In dBm; weaker reports are not passed on. Nil passes all.
    var rssi: Int?
    var transport: DiscoveryFilter.Transport
    /// Sorted; empty passes all.
    var uuids: [String]

    /// Returns the merged filter of all sessions (`merge_discovery_filters`); nil if none of them has a filter that
    /// counts, which is the other kind of scan.
    ///
    /// A client without UUIDs opens the adapter for all UUIDs, one without RSSI (or with Pathloss, which the kernel
    /// cannot compare) for all strengths, and one without a filter for everything. Each client must therefore filter
    /// again what it receives.
    static func merged(
        _ sessions: [DiscoverySession], countsEveryFilter: Bool, adapter transports: DiscoveryFilter.Transport
    ) -> KernelFilter? {
        let filters = sessions.compactMap(\.filter).filter { countsEveryFilter || $0.narrows(adapter: transports) }
        guard let first = filters.first else { return nil }
        guard filters.count == sessions.count else {
            return KernelFilter(rssi: nil, transport: transports, uuids: [])
        }

        let transport = filters.dropFirst().reduce(first.transport) { $0.union($1.transport) }
        let strengths = filters.compactMap(\.rssi)
        let rssi = strengths.count == filters.count ? strengths.min().map(Int.init) : nil
        let uuids = filters.contains { $0.uuids.isEmpty } ? [] : Set(filters.flatMap(\.uuids)).sorted()
        return KernelFilter(rssi: rssi, transport: transport, uuids: uuids)
    }

    /// Whether the kernel passes a report on to the daemon.
    func passes(_ sighting: Sighting) -> Bool {
        guard transport.contains(.lowEnergy) else { return false }
        if let rssi, sighting.rssi == RSSICourse.notAvailable || sighting.rssi < rssi { return false }
        return uuids.isEmpty || sighting.report.uuids.contains(where: uuids.contains)
    }
}
