import BlueCapDBus
import BlueCapFutures
package import BlueCapGATT

/// The filter of `Adapter1.SetDiscoveryFilter`: the devices that `bluetoothd` reports.
///
/// A filter only saves work. BlueZ merges the filters of all its clients, so it also reports devices that match only the
/// filter of another process: each scan checks every report.
package struct DiscoveryFilter: Hashable, Sendable {
    /// Services of which a device must advertise at least one; sorted and unique. Empty: any device.
    package private(set) var uuids: [CBUUID]
    /// The weakest signal to report, in dBm; `nil`: any.
    package private(set) var rssi: Int16?
    /// A prefix of the address or of the name, case and all; `nil`: any.
    package private(set) var pattern: String?
    /// Whether manufacturer and service data are signalled at each sighting, even unchanged.
    package private(set) var reportsDuplicateData: Bool
    /// Whether a filter without a threshold has `Pathloss` in its place.
    ///
    /// Without one of the two BlueZ after 5.87 signals a strength only when it has changed by 8 dB, so that a device that stands
    /// still is not reported; and from 5.67 on an adapter for LE alone treats a filter of only `Transport` as none
    /// (`merge_discovery_filters` in its adapter.c). A `Pathloss` of 137, the maximum, sets no threshold in the kernel and
    /// hides no device. `RSSI` of -127 would hide devices of unknown strength.
    package var hasPathloss = true

    /// The range that `bluetoothd` accepts; outside it the whole filter is refused (`parse_rssi` in its adapter.c).
    private static let rssiRange: ClosedRange<Int16> = -127...20

    package init(
        uuids: [CBUUID] = [], rssi: Int16? = nil, pattern: String? = nil, reportsDuplicateData: Bool = false
    ) {
        self.uuids = Set(uuids).ordered(by: CBUUID.precedes)
        self.rssi = rssi.map { min(max($0, Self.rssiRange.lowerBound), Self.rssiRange.upperBound) }
        // An empty pattern means "any device" to BlueZ as well, but costs it a comparison per report.
        self.pattern = pattern?.isEmpty == true ? nil : pattern
        self.reportsDuplicateData = reportsDuplicateData
    }

    /// The narrowest filter that lets through whatever one of `filters` lets through.
    ///
    /// One scan without services, threshold or pattern makes the whole session go without. Two different patterns cannot
    /// be one, so both fall away. Of no filters at all the union is the one that lets everything through.
    package static func union(_ filters: some Sequence<DiscoveryFilter>) -> DiscoveryFilter {
        var iterator = filters.makeIterator()
        guard var union = iterator.next() else { return DiscoveryFilter() }
        while let filter = iterator.next() {
            if union.uuids.isEmpty || filter.uuids.isEmpty {
                union.uuids = []
            } else if union.uuids != filter.uuids {
                union.uuids = Set(union.uuids).union(filter.uuids).ordered(by: CBUUID.precedes)
            }
            if let a = union.rssi, let b = filter.rssi { union.rssi = min(a, b) } else { union.rssi = nil }
            if union.pattern != filter.pattern { union.pattern = nil }
            if filter.reportsDuplicateData { union.reportsDuplicateData = true }
        }
        return union
    }
}

extension DiscoveryFilter {
    /// The dictionary for `SetDiscoveryFilter`: what was asked for, with `Transport` and ``hasPathloss``.
    ///
    /// `Transport` is always given, since a filter with nothing in it counts as none, and then the daemon reports only
    /// devices that are discoverable. `DuplicateData` is left out when false and `Discoverable` always: up to 5.70 the
    /// daemon stores each of them, four bytes, into a field of one (its commit ad089d299).
    ///
    /// - Parameter withServices: Whether the daemon takes `UUIDs` (``DaemonCapabilities/acceptsServiceFilter``). Without them
    ///   it reports devices that no scan asked for, which each scan passes over.
    func write(to writer: inout MessageWriter, withServices: Bool) {
        writer.dictionary(key: "s", value: "v") { dictionary in
            dictionary.entry("Transport", variant: "s") { $0.string("le") }
            if withServices, !uuids.isEmpty {
                dictionary.entry("UUIDs", variant: "as") { $0.strings(uuids.map { $0.fullUUIDString.lowercased() }) }
            }
            if let rssi {
                dictionary.entry("RSSI", variant: "n") { $0.int16(rssi) }
            } else if hasPathloss {
                dictionary.entry("Pathloss", variant: "q") { $0.uint16(137) }
            }
            if let pattern { dictionary.entry("Pattern", variant: "s") { $0.string(pattern) } }
            if reportsDuplicateData { dictionary.entry("DuplicateData", variant: "b") { $0.bool(true) } }
        }
    }
}
