public import Foundation

/// How long something may take.
public enum Timeout: Hashable, Swift.Sendable {
    /// That many seconds, more than zero.
    case seconds(TimeInterval)
    /// As long as it takes.
    case none

    var interval: TimeInterval {
        switch self {
        case .seconds(let seconds): seconds
        case .none: .infinity
        }
    }
}
