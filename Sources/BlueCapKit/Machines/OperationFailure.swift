import BlueZ
import GATT

/// Why an operation on an attribute failed, before it is translated to a documented error.
enum OperationFailure: Error, Hashable {
    case timedOut
    /// The link was lost, or did not exist.
    case linkLost
    /// The application ended the link.
    case linkEnded
    /// The peripheral no longer has the attribute.
    case invalidated
    /// Another program, or another operation, uses the attribute: a later attempt may succeed.
    case busy(BlueZError)
    case refused(BlueZError)

    /// The meaning of an error of BlueZ for an operation.
    init(_ error: BlueZError) {
        self =
            switch error.cause {
            case .inProgress: .busy(error)
            case .notConnected, .disconnected, .serviceGone: .linkLost
            // `Failed` has many reasons. These are BlueZ's texts if there is no link, and if the link is lost before
            // the peer has replied (src/gatt-client.c).
            case .failed where error.message == "Not connected" || error.message == "Operation failed": .linkLost
            case .unknownObject, .unknownMethod: .invalidated
            case .noReply: .timedOut
            default: .refused(error)
            }
    }
}

extension PeripheralFailure {
    /// Creates the documented error of a failed operation.
    init(_ failure: OperationFailure, _ request: AttributeState.Request) {
        self =
            switch (failure, request) {
            case (.linkLost, _): .peripheral(.disconnected)
            case (.linkEnded, _): .peripheral(.forcedDisconnect)
            case (.invalidated, _): .characteristic(.invalidated)
            case (.timedOut, .read): .characteristic(.readTimeout)
            case (.timedOut, .write), (.timedOut, .transfer): .characteristic(.writeTimeout)
            case (.busy(let error), .read), (.refused(let error), .read):
                .characteristic(.readFailed(BusFailure(error)))
            case (.busy(let error), .write), (.refused(let error), .write), (.busy(let error), .transfer),
                (.refused(let error), .transfer):
                .characteristic(.writeFailed(BusFailure(error)))
            }
    }
}

extension BusFailure {
    init(_ error: BlueZError) {
        self.init(
            name: error.name, message: error.message,
            attError: error.attCode.flatMap { CBATTError.Code(rawValue: Int($0)) })
    }
}
