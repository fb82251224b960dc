package import Foundation

/// A point on one loop's clock, which never goes back: nanoseconds since that loop's own origin.
package struct Instant: Comparable, Hashable, Sendable {
    package let nanoseconds: UInt64

    package static let origin = Instant(nanoseconds: 0)
    package static let distantFuture = Instant(nanoseconds: .max)

    package init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// The instant that many seconds later. Not a number and negative spans give this same instant; what does not fit
    /// (an infinite time-out, for one) gives `distantFuture`.
    package func advanced(by seconds: TimeInterval) -> Instant {
        guard seconds > 0 else { return self }
        let span = (seconds * 1e9).rounded()
        guard span < TimeInterval(UInt64.max - nanoseconds) else { return .distantFuture }
        return Instant(nanoseconds: nanoseconds + UInt64(span))
    }

    /// The seconds from an earlier instant to this one; negative where it is the later of the two.
    package func seconds(since earlier: Instant) -> TimeInterval {
        guard self >= earlier else { return -earlier.seconds(since: self) }
        return TimeInterval(nanoseconds - earlier.nanoseconds) / 1e9
    }

    package static func < (left: Instant, right: Instant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}
