public import Foundation

/// How far away a beacon may be.
public struct DistanceEstimate: Hashable, Sendable {
    /// The likeliest distance in metres.
    public let metres: Double
    /// The factor of uncertainty, from 1: with a probability of about two thirds the distance is between `metres / factor`
    /// and `metres * factor`, where the model holds.
    public let factor: Double

    /// The range of about two thirds probability, in metres.
    public var range: ClosedRange<Double> { (metres / factor)...(metres * factor) }
}

/// How a signal grows weaker with distance: log-distance path loss with log-normal shadowing.
///
///     RSSI(d) = measuredPower - 10 · exponent · log10(d / 1 m) + X,    X normal with deviation σ in dB
///
/// so d = 10 ^ ((measuredPower - RSSI) / (10 · exponent)) metres, and a deviation of σ dB is a factor of
/// 10 ^ (σ / (10 · exponent)) in distance, either way. Source: T. S. Rappaport, *Wireless Communications: Principles and
/// Practice*, 2nd edition 2002, 4.9.1 and 4.9.2. σ has two parts: fading, which differs from one sighting to the next and
/// shrinks as they are averaged (``SignalSmoother``), and shadowing, which stays while nothing moves.
///
/// **Limits.** The model knows no walls, no bodies and no antennas: a hand around a telephone or a person in between costs
/// 10 dB and more, which is a factor of three. The factor is rarely below 1.6, so tell rooms apart, not shelves. A beacon
/// that was never calibrated says a measured power that is wrong for all distances by the same factor. Very near, below
/// some 10 cm, radio waves follow another law.
public struct DistanceModel: Hashable, Sendable {
    /// The path loss exponent: 2 in free space, 1.6 to 1.8 along a corridor in sight, 2.7 to 3.5 in a town, 4 to 6 through
    /// a building's walls.
    public let exponent: Double
    /// The deviation in dB that averaging does not lessen.
    public let shadowing: Double
    /// The deviation in dB of a single sighting beside that; 5.6 for Rayleigh fading, where no path prevails.
    public let fading: Double

    /// - Parameters:
    ///   - exponent: from 1 to 10; what is outside is taken as the nearer of them.
    ///   - shadowing: 0 to 40 dB; measured are 3 to 14 dB in buildings, 4 dB in a single room.
    ///   - fading: 0 to 40 dB.
    public init(exponent: Double = 2, shadowing: Double = 4, fading: Double = 5.6) {
        self.exponent = DistanceModel.clamp(exponent, to: 1...10, otherwise: 2)
        self.shadowing = DistanceModel.clamp(shadowing, to: 0...40, otherwise: 4)
        self.fading = DistanceModel.clamp(fading, to: 0...40, otherwise: 5.6)
    }

    /// The distance at which a beacon is probably heard so.
    ///
    /// - Parameters:
    ///   - rssi: the strength in dBm, one or an average.
    ///   - measuredPower: the strength at one metre in dBm.
    ///   - sightings: how many sightings the average is worth, from 1 (``SignalSmoother/weight``).
    /// - Returns: `nil` where the strength is none: above +20 dBm (127 means unknown) or below -127.
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

/// How near a beacon is, in Core Location's words (`CLProximity`). Apple does not say where they begin and end; here it
/// is said.
public enum BeaconProximity: String, Hashable, Sendable, CaseIterable {
    /// It cannot be told: no strength, or no measured power.
    case unknown
    /// Up to half a metre: as good as touching.
    case immediate
    /// More than half a metre, and up to three metres.
    case near
    /// More than three metres.
    case far

    /// - Parameter distance: in which of the ranges its likeliest distance falls; `nil` is unknown.
    public init(_ distance: DistanceEstimate?) {
        switch distance?.metres {
        case nil: self = .unknown
        case .some(...0.5): self = .immediate
        case .some(...3): self = .near
        case .some: self = .far
        }
    }
}

/// Averages signal strengths over time: what is older counts less, and after some time constants nothing.
///
/// An exponential average in dB that knows when it was fed, since sightings come irregularly: after `t` seconds the old
/// average has a share of e^(-t / timeConstant).
public struct SignalSmoother: Hashable, Sendable {
    /// Seconds after which a sighting counts e times less.
    public let timeConstant: TimeInterval
    /// The average in dBm; `nil` before the first sighting.
    public private(set) var average: Double?
    /// How many sightings the average is worth, from 1: for independent ones its variance is theirs divided by this.
    public var weight: Double { 1 / sumOfSquares }

    /// The sum of the squares of all sightings' shares.
    private var sumOfSquares = 1.0

    /// - Parameter timeConstant: seconds from 0, which keeps the newest alone, to 86 400; 2 follows somebody who walks, 10
    ///   is steadier for what stands.
    public init(timeConstant: TimeInterval = 2) {
        self.timeConstant = timeConstant > 0 ? min(timeConstant, 86_400) : 0
    }

    /// Takes a sighting in.
    /// - Parameters:
    ///   - rssi: its strength in dBm.
    ///   - seconds: the time since the one before, 0 or more.
    public mutating func add(_ rssi: Double, after seconds: TimeInterval) {
        guard rssi.isFinite else { return }
        guard let old = average, timeConstant > 0 else { return average = rssi }
        // Several at one moment: the share of a hundredth of the time constant each, lest they count for nothing.
        let elapsed = max(seconds.isNaN ? 0 : seconds, timeConstant / 100)
        let kept = exp(-elapsed / timeConstant)
        average = old * kept + rssi * (1 - kept)
        sumOfSquares = sumOfSquares * kept * kept + (1 - kept) * (1 - kept)
    }
}
