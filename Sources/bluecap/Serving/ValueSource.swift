import BlueCapKit
import Foundation
import Profiles

/// Where the values come from that a characteristic has by itself: from the time alone, so that every run is the same.
protocol ValueSource: Sendable {
    /// The value at so many seconds since the service began.
    func value(at seconds: Double) -> Data
    /// Begins anew at this time, where there is something to begin.
    mutating func reset(at seconds: Double)
}

extension ValueSource {
    mutating func reset(at seconds: Double) {}
}

/// A heart at rest: between 60 and 90 beats a minute, with the breath's small ups and downs.
struct HeartRateSource: ValueSource {
    private var energyBegan = 0.0

    /// What a body at rest spends, in kJ a second.
    private static let energyRate = 0.1

    func value(at seconds: Double) -> Data {
        let rate = 75 + 10 * sin(seconds / 20) + 4 * sin(seconds * 1.3)
        let energy = max(0, seconds - energyBegan) * Self.energyRate
        return BluetoothSIG.HeartRateService.Measurement(
            beatsPerMinute: UInt16(rate.rounded()), isInContact: true, energyExpended: UInt16(min(energy, 65_535)),
            intervals: [UInt16((60 * 1024 / rate).rounded())]
        ).serialize()
    }

    mutating func reset(at seconds: Double) { energyBegan = seconds }
}

/// A battery that begins full, loses a percent every so often, and is changed for a new one at 5 %.
struct BatterySource: ValueSource {
    /// Seconds for one percent.
    var pace: Double

    func value(at seconds: Double) -> Data { Data([UInt8(100 - Int(seconds / pace) % 96)]) }
}

/// One value after the other, and again from the first.
struct CycleSource: ValueSource {
    var values: [Data]
    var pace: Double

    func value(at seconds: Double) -> Data {
        values.isEmpty ? Data() : values[index(at: seconds, pace: pace) % values.count]
    }
}

/// A number that counts, little-endian in `size` bytes.
struct CounterSource: ValueSource {
    var size: Int
    var pace: Double

    func value(at seconds: Double) -> Data {
        let number = UInt64(index(at: seconds, pace: pace))
        return Data((0..<size).map { $0 < 8 ? UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) : 0 })
    }
}

/// A value that a formula gives.
struct FormulaSource: ValueSource {
    let formula: @Sendable (Double) -> Data

    init(_ formula: @escaping @Sendable (Double) -> Data) { self.formula = formula }

    func value(at seconds: Double) -> Data { formula(seconds) }
}

extension ValueSource {
    /// How many values there were before this time. What is a hair short of its time has come all the same.
    fileprivate func index(at seconds: Double, pace: Double) -> Int {
        max(0, Int((seconds / pace + 1e-6).rounded(.down)))
    }
}
