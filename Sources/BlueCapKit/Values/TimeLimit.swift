package import Foundation

extension Duration {
    /// The duration in seconds.
    package var seconds: TimeInterval { TimeInterval(components.seconds) + TimeInterval(components.attoseconds) / 1e18 }
}

extension Duration? {
    /// The time limit in seconds; infinite for none.
    package var seconds: TimeInterval { map(\.seconds) ?? .infinity }
}
