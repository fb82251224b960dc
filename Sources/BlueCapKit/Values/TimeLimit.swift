package import Foundation

extension Duration {
    /// The duration in seconds.
    package var seconds: TimeInterval { TimeInterval(components.seconds) + TimeInterval(components.attoseconds) / 1e18 }

    /// Creates a duration from a number of seconds, with about a century for more than that; `nil` for an infinite one, and if
    /// it is not a number.
    package init?(seconds: TimeInterval) {
        guard !seconds.isNaN, seconds < .infinity else { return nil }
        self = .seconds(min(max(seconds, -3e9), 3e9))
    }
}

extension Duration? {
    /// The time limit in seconds; infinite for none.
    package var seconds: TimeInterval { map(\.seconds) ?? .infinity }
}
