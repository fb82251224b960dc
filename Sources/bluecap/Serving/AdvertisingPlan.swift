import BlueCapKit
import Foundation

struct AdvertisingPlan: Sendable {
    /// Its content at the beginning.
    var data: AdvertisingData
    /// `nil` for an advertisement that does not change.
    var change: Change?

    /// Every so many seconds its content becomes that of `to` for the seconds since the beginning.
    struct Change: Sendable {
        var every: Double
        var to: @Sendable (Double) -> AdvertisingData
    }

    /// Returns an advertisement with the name, the appearance, and as many of the services as fit: short UUIDs before long
    /// ones, otherwise in their order; and the services that do not fit.
    static func announcing(
        _ services: [CBUUID], name: String?, appearance: UInt16?
    ) -> (data: AdvertisingData, left: [CBUUID]) {
        var data = AdvertisingData(localName: name)
        var left: [CBUUID] = []
        for service in services.filter({ $0.data.count == 2 }) + services.filter({ $0.data.count > 2 }) {
            data.serviceUUIDs.append(service)
            guard data.byteCount > capacity else { continue }
            data.serviceUUIDs.removeLast()
            left.append(service)
        }
        data.appearance = appearance
        if data.byteCount > capacity { data.appearance = nil }
        return (data, left)
    }

    /// The bytes of an advertisement (Core Specification, Vol 6, Part B, 2.3.1).
    private static let capacity = 31

    /// A beacon's telemetry, which grows while it runs.
    ///
    /// BlueZ does not report how many advertisements it has sent: their number is computed from its usual interval.
    static func telemetry(batteryMillivolts: UInt16?, temperature: Double?) -> AdvertisingPlan {
        let frame: @Sendable (Double) -> AdvertisingData = { seconds in
            AdvertisingData(
                Eddystone.TLM(
                    batteryMillivolts: batteryMillivolts, temperature: temperature,
                    // The counters begin again at zero, the second one after thirteen years.
                    advertisementCount: UInt32(truncatingIfNeeded: Int(seconds / usualInterval)),
                    tenthsOfUptime: UInt32(truncatingIfNeeded: Int(seconds * 10))))
        }
        return AdvertisingPlan(data: frame(0), change: Change(every: 10, to: frame))
    }

    /// BlueZ 5.66's own interval, in seconds.
    private static let usualInterval = 1.28
}
