public import BlueCapKit

// Frozen shapes of the document: each result is an enumeration of its own, and not Swift's Result, so that `.success`
// has what the document shows.

/// What became of a connection.
public enum ConnectionResult {
    /// It is up.
    case success(Peripheral)
    case failure(any Error)
}

/// What became of a disconnection.
public enum DisconnectionResult {
    /// The connection to this peripheral is ended.
    case success(Peripheral)
    case failure(any Error)
}

/// What a read has brought, or a listen each time.
public enum ReadResult<R> {
    case success(R)
    case failure(any Error)
}

/// What became of a write, or of the end of a listen.
public enum WriteResult {
    case success
    case failure(any Error)
}

/// What became of a background task.
public enum RunResult<R> {
    /// What it returned.
    case success(R)
    /// What it threw, or why it was not run.
    case failure(any Error)
}

extension ConnectionResult: Swift.Sendable {}
extension DisconnectionResult: Swift.Sendable {}
extension ReadResult: Swift.Sendable where R: Swift.Sendable {}
extension WriteResult: Swift.Sendable {}
extension RunResult: Swift.Sendable where R: Swift.Sendable {}

/// Whether a listen of a background task goes on.
public enum ListenAction: Hashable, Swift.Sendable {
    /// Wait for the next value.
    case keepListening
    /// It has all it wanted: the call returns.
    case done
}
