public import Foundation

/// A time limit.
public enum Timeout: Hashable, Swift.Sendable {
    /// This number of seconds, more than zero.
    case seconds(TimeInterval)
    /// No limit.
    case none

    var interval: TimeInterval {
        switch self {
        case .seconds(let seconds): seconds
        case .none: .infinity
        }
    }
}

/// Whether a second listen to the same characteristic replaces a listen.
public enum MultipleListenOption: Int, Hashable, Swift.Sendable {
    /// The first listen stays, and the second one fails with ``BluejayError/multipleListenTrapped``.
    case trap
    /// The second listen replaces the first, which ends with ``BluejayError/multipleListenReplaced``.
    case replaceable
}

/// Whether a listen of a background task continues.
public enum ListenAction: Hashable, Swift.Sendable {
    /// Waits for the next value.
    case keepListening
    /// Ends the listen: the call returns.
    case done
}

/// The alerts of iOS for a connection while the program is in the background.
///
/// On Linux there are no such alerts: the options exist so that code with them compiles, and have no effect.
public struct WarningOptions: Hashable, Swift.Sendable {
    /// Whether iOS alerts the user to a connection.
    public let notifyOnConnection: Bool
    /// Whether iOS alerts the user to a disconnection.
    public let notifyOnDisconnection: Bool
    /// Whether iOS alerts the user to each notification.
    public let notifyOnNotification: Bool

    /// Creates options.
    public init(notifyOnConnection: Bool, notifyOnDisconnection: Bool, notifyOnNotification: Bool) {
        self.notifyOnConnection = notifyOnConnection
        self.notifyOnDisconnection = notifyOnDisconnection
        self.notifyOnNotification = notifyOnNotification
    }
}
