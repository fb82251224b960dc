public import BlueCapKit
import Foundation

// As in the document, each result is an enumeration of its own and not Swift's Result, so that `.success` has the
// document's values.

/// What the enumerations of results have in common.
protocol RequestResult {
    static func failure(_ error: any Error) -> Self
}

extension RequestResult {
    /// Creates a result; an error of `success` is a failure too.
    init<Value>(_ outcome: Result<Value, any Error>, _ success: (Value) throws -> Self) {
        do { self = try success(outcome.get()) } catch { self = .failure(error) }
    }
}

/// The result of a connection.
public enum ConnectionResult: RequestResult, Swift.Sendable {
    /// The peripheral is connected.
    case success(Peripheral)
    /// The connection failed, with a ``BluejayError`` or an error of BlueCapKit.
    case failure(any Error)
}

/// The result of a disconnection.
public enum DisconnectionResult: RequestResult, Swift.Sendable {
    /// The connection to this peripheral has ended.
    case success(Peripheral)
    /// The disconnection failed, for example with ``BluejayError/notConnected``.
    case failure(any Error)
}

/// The result of a read, or a value of a listen.
public enum ReadResult<R>: RequestResult {
    /// The value.
    case success(R)
    /// The read or the listen failed, with a ``BluejayError``, or an error of BlueCapKit or of the value.
    case failure(any Error)
}

/// The result of a write, or of the end of a listen.
public enum WriteResult: RequestResult, Swift.Sendable {
    /// The write is complete, or the listen has ended.
    case success
    /// The operation failed, with a ``BluejayError`` or an error of BlueCapKit.
    case failure(any Error)
}

/// The result of a pairing, or of the end of a bond.
public enum PairingResult: RequestResult, Swift.Sendable {
    /// The peripheral is bonded, or no longer is.
    case success
    /// A ``BluejayError``, such as ``BluejayError/pairingFailed(_:)``.
    case failure(any Error)
}

/// The result of a background task.
public enum RunResult<R>: RequestResult {
    /// The value that the task returned.
    case success(R)
    /// The error that the task threw, or the reason why it was not run.
    case failure(any Error)
}

extension ReadResult: Swift.Sendable where R: Swift.Sendable {}
extension RunResult: Swift.Sendable where R: Swift.Sendable {}
