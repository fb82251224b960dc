import BlueCapKit
public import GatewayCore

/// Decides which advertisements of a device are published. A value without a clock.
public struct AdvertisementThrottle: Sendable {
    /// When an advertisement is published.
    public struct Rules: Hashable, Sendable {
        /// The shortest time between two advertisements of a device.
        public var minimumInterval: Duration
        /// The change of strength, in dB from 1, that is worth publishing.
        public var rssiChange: Int
        /// After so long, an advertisement is published though nothing has changed.
        public var heartbeat: Duration

        public init(
            minimumInterval: Duration = .seconds(1), rssiChange: Int = 5, heartbeat: Duration = .seconds(60)
        ) {
            (self.minimumInterval, self.rssiChange, self.heartbeat) = (minimumInterval, rssiChange, heartbeat)
        }
    }

    private struct Published {
        var time: Duration
        var rssi: Int?
        var content: Int
    }

    private let rules: Rules
    private let maximumDevices: Int
    private var published: [DeviceName: Published] = [:]

    /// - Parameters:
    ///   - rules: When an advertisement is published.
    ///   - maximumDevices: How many devices are remembered, from 1; above it, those first published longest ago are forgotten.
    public init(_ rules: Rules, maximumDevices: Int = 16_384) {
        (self.rules, self.maximumDevices) = (rules, maximumDevices)
    }

    /// Returns whether the advertisement is to be published, and then takes it as published.
    ///
    /// - Parameters:
    ///   - device: The device.
    ///   - rssi: The strength in dBm, if it is known.
    ///   - content: A hash of what is advertised.
    ///   - time: The time on a clock that never runs backwards.
    public mutating func publishes(_ device: DeviceName, rssi: Int?, content: Int, at time: Duration) -> Bool {
        if let last = published[device] {
            let age = time - last.time
            guard age >= rules.minimumInterval else { return false }
            let hasChanged = content != last.content || isChange(from: last.rssi, to: rssi)
            guard hasChanged || age >= rules.heartbeat else { return false }
        } else if published.count >= maximumDevices {
            forgetOldest()
        }
        published[device] = Published(time: time, rssi: rssi, content: content)
        return true
    }

    private func isChange(from old: Int?, to new: Int?) -> Bool {
        guard let old, let new else { return (old == nil) != (new == nil) }
        return abs(old - new) >= rules.rssiChange
    }

    /// Forgets a tenth at once, so that a crowd of addresses that are used once costs little.
    private mutating func forgetOldest() {
        let times = published.values.map(\.time).sorted()
        let limit = times[max(0, min(times.count - 1, maximumDevices / 10))]
        published = published.filter { $0.value.time > limit }
    }
}
