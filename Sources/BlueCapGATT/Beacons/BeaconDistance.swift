public import Foundation

/// The estimated distance of a beacon.
public struct DistanceEstimate: Hashable, Sendable {
    /// The most probable distance in metres.
    public let metres: Double
    /// The factor of uncertainty, from 1: if the model applies, the distance is between `metres / factor` and
    /// `metres * factor` with a probability of about two thirds.
    public let factor: Double

    /// The range of about two thirds probability, in metres.
    public var range: ClosedRange<Double> { (metres / factor)...(metres * factor) }
}

/// The attenuation of a signal with distance: log-distance path loss with log-normal shadowing.
///
///     RSSI(d) = measuredPower - 10 · exponent · log10(d / 1 m) + X,    X normal with deviation σ in dB
///
/// so d = 10 ^ ((measuredPower - RSSI) / (10 · exponent)) metres, and a deviation of σ dB is a factor of
/// 10 ^ (σ / (10 · exponent)) in distance, either way. Source: T. S. Rappaport, *Wireless Communications: Principles and
/// Practice*, 2nd edition 2002, 4.9.1 and 4.9.2. σ has two parts: fading, which differs from one sighting to the next and
/// decreases with averaging (``SignalSmoother``), and shadowing, which is constant while nothing moves.
///
/// **Limits.** The model ignores walls, bodies and antennas: a hand around a telephone or a person in between attenuates
/// by 10 dB and more, which is a factor of three. The factor is rarely below 1.6: too coarse for distances within a few
/// metres. A beacon that was never calibrated sends a wrong measured power, which changes all distances by the same
/// factor. The model does not apply to the near field, below about 10 cm.
public struct DistanceModel: Hashable, Sendable {
    /// The path loss exponent: 2 in free space, 1.6 to 1.8 along a corridor in sight, 2.7 to 3.5 in a town, 4 to 6 through
    /// the walls of a building.
    public let exponent: Double
    /// The deviation in dB that averaging does not reduce.
    public let shadowing: Double
    /// The additional deviation in dB of a single sighting; 5.6 for Rayleigh fading without a dominant path.
    public let fading: Double

    /// - Parameters:
    ///   - exponent: From 1 to 10; other numbers count as the nearer bound.
    ///   - shadowing: 0 to 40 dB; measurements are 3 to 14 dB in buildings, 4 dB without walls in between.
    ///   - fading: 0 to 40 dB.
    public init(exponent: Double = 2, shadowing: Double = 4, fading: Double = 5.6) {
        self.exponent = DistanceModel.clamp(exponent, to: 1...10, otherwise: 2)
        self.shadowing = DistanceModel.clamp(shadowing, to: 0...40, otherwise: 4)
        self.fading = DistanceModel.clamp(fading, to: 0...40, otherwise: 5.6)
    }

    /// Returns the most probable distance of a beacon; `nil` if the strength is not valid: above +20 dBm (127 means unknown) or
    /// below -127.
    ///
    /// `rssi` is the strength of one sighting, or the average of `sightings` (``SignalSmoother/weight``), which is at least 1, in
    /// dBm; `measuredPower` is the strength at one metre in dBm.
    public func distance(rssi: Double, measuredPower: Double, sightings: Double = 1) -> DistanceEstimate? {
        guard (-127...20).contains(rssi), (-200...128).contains(measuredPower) else { return nil }
        let count = sightings >= 1 ? sightings : 1
        let deviation = (shadowing * shadowing + fading * fading / count).squareRoot()
        return DistanceEstimate(
            metres: pow(10, (measuredPower - rssi) / (10 * exponent)), factor: pow(10, deviation / (10 * exponent)))
    }

    private static func clamp(_ value: Double, to range: ClosedRange<Double>, otherwise: Double) -> Double {
        value.isNaN ? otherwise : min(max(value, range.lowerBound), range.upperBound)
    }
}

/// The proximity of a beacon, in Core Location's terms (`CLProximity`). Apple does not document their ranges; these are
/// this library's.
public enum BeaconProximity: String, Hashable, Sendable, CaseIterable {
    /// Not known: no signal strength, or no measured power.
    case unknown
    /// Up to half a metre.
    case immediate
    /// More than half a metre, and up to three metres.
    case near
    /// More than three metres.
    case far

    /// Creates the proximity whose range contains the most probable distance; ``unknown`` without one.
    public init(_ distance: DistanceEstimate?) {
        switch distance?.metres {
        case nil: self = .unknown
        case .some(...0.5): self = .immediate
        case .some(...3): self = .near
        case .some: self = .far
        }
    }
}

/// Averages signal strengths over time: older ones count less, and after some time constants nothing.
///
/// An exponential average in dB for irregular sightings: after `t` seconds the old average has a share of
/// e^(-t / timeConstant).
public struct SignalSmoother: Hashable, Sendable {
    /// Seconds after which a sighting counts e times less.
    public let timeConstant: TimeInterval
    /// The average in dBm; `nil` before the first sighting.
    public private(set) var average: Double?
    /// The number of sightings in the average, from 1: for independent ones its variance is theirs divided by this.
    public var weight: Double { 1 / sumOfSquares }

    /// The sum of the squares of all sightings' shares.
    private var sumOfSquares = 1.0

    /// - Parameter timeConstant: Seconds from 0, which keeps only the newest, to 86 400; 2 follows a walking person, 10
    ///   is steadier for things that do not move.
    public init(timeConstant: TimeInterval = 2) {
        self.timeConstant = timeConstant > 0 ? min(timeConstant, 86_400) : 0
    }

    /// Adds a sighting with its strength in dBm, and the time since the previous one, 0 or more.
    public mutating func add(_ rssi: Double, after seconds: TimeInterval) {
        guard rssi.isFinite else { return }
        guard let old = average, timeConstant > 0 else { return average = rssi }
        // Sightings at the same time count as if a hundredth of the time constant were between them.
        let elapsed = max(seconds.isNaN ? 0 : seconds, timeConstant / 100)
        let kept = exp(-elapsed / timeConstant)
        average = old * kept + rssi * (1 - kept)
        sumOfSquares = sumOfSquares * kept * kept + (1 - kept) * (1 - kept)
    }
}
