import BlueZ

/// Why an operation on an attribute failed, before it is known which documented error that is.
enum OperationFailure: Hashable, Sendable {
    case timedOut
    /// The link was lost, or was not there.
    case linkLost
    /// The application ended the link.
    case linkEnded
    /// The attribute is not on the peripheral any more.
    case invalidated
    /// Another program, or another operation, is at it: trying again may help.
    case busy(BlueZError)
    case refused(BlueZError)

    /// What an answer of BlueZ means for an operation.
    init(_ error: BlueZError) {
        self =
            switch error.cause {
            case .inProgress: .busy(error)
            case .notConnected, .disconnected, .serviceGone: .linkLost
            // `Failed` has many reasons. These are what BlueZ says without a link, and when it falls before the
            // peer has answered (src/gatt-client.c).
            case .failed where error.message == "Not connected" || error.message == "Operation failed": .linkLost
            case .unknownObject, .unknownMethod: .invalidated
            case .noReply: .timedOut
            default: .refused(error)
            }
    }
}
