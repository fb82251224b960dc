import Foundation

/// The ranges of numbers in descriptions. A file with a number outside is refused; a value made in Swift becomes the nearest
/// bound.
enum Limits {
    /// Spans of time in seconds, to more than thirty years.
    static let seconds: ClosedRange<TimeInterval> = 0...1e9
    /// Points in time, in seconds since the simulator began.
    static let instants: ClosedRange<TimeInterval> = -1e9...1e9
    /// Seconds between two advertisements (Core Specification 5.3, volume 4, part E, 7.8.53: 0x20 to 0xFFFFFF units of
    /// 0.625 ms).
    static let advertisingInterval: ClosedRange<TimeInterval> = 0.02...10_485.759375
    /// Seconds between two notifications; no link carries more.
    static let notificationInterval: ClosedRange<TimeInterval> = 0.001...1e9
    /// Bytes of an ATT packet: the least of LE, and the largest that BlueZ negotiates.
    static let mtu = 23...517
    /// In dBm, and 127 for "not available" (Core Specification 5.3, volume 4, part E, 7.7.65.2).
    static let rssi = -127...20
    /// In dB, of a peripheral at one adapter.
    static let attenuation = 0...147
    /// In dBm: with an attenuation, an adapter receives nothing weaker.
    static let sensitivity = -100
    /// Links that a peripheral accepts at once.
    static let links = 1...16
    /// The largest distance of a walk, in dB.
    static let spread = 0...147
    /// In dBm (Core Specification Supplement, part A, 1.5).
    static let txPower = -127...127
    /// Bytes of an attribute's value (Core Specification 5.3, volume 3, part F, 3.2.9).
    static let valueLength = 0...512
    /// Bytes of a counter.
    static let counterSize = 1...512
    /// Handles of attributes.
    static let handles = 1...0xFFFF
    /// Bytes of a device's name (Core Specification 5.3, volume 4, part E, 7.3.11).
    static let nameLength = 0...248
    /// Passkeys (Core Specification 5.4, volume 3, part H, 2.3.5.3).
    static let passkey = 0...999_999
}

extension ClosedRange {
    /// Returns the value of the range that is nearest to `value`; the lowest for NaN.
    func nearest(to value: Bound) -> Bound {
        // In this order: `max` returns its first argument if the second one is NaN.
        Swift.min(Swift.max(lowerBound, value), upperBound)
    }
}
