import Foundation

extension BluejayMachine {
    struct RequestID: Hashable, Swift.Sendable {
        let rawValue: UInt64
        /// The wait for Bluetooth's first word, which stands before everything else in the queue.
        static let firstWord = RequestID(rawValue: 0)
    }

    enum Kind {
        case firstWord
        case scan
        case connect
        /// One that was begun when it was asked for does not wait for its turn; its end does.
        case disconnect(isImmediate: Bool)
        /// Something that takes the connection.
        case operation
    }

    /// Who asks.
    enum Caller {
        case application
        /// The background task, by its synchronized peripheral.
        case task
        /// The background task, by the outer object.
        case insideTask
    }

    enum Connection: Equatable {
        case none
        case connecting(RequestID)
        /// By itself, until it has succeeded.
        case reconnecting
        case connected
        /// `wasConnected` where there was more than an attempt; `isAsked` where the application wants to be
        /// disconnected, and not only the attempt ended.
        case disconnecting(wasConnected: Bool, isAsked: Bool)

        /// Whether there is one, or an attempt at one that is to succeed.
        var isThereOrTried: Bool {
            switch self {
            case .connecting, .reconnecting, .connected: true
            case .none, .disconnecting: false
            }
        }
    }

    /// What a request has brought; empty where it brings nothing but success.
    typealias Outcome = Result<Data, any Error>

    enum Effect {
        case begin(RequestID)
        /// Have it end; it has been settled.
        case stop(RequestID)
        case settle(RequestID, Outcome)
        case endLink
        case reconnect
        /// An attempt to reconnect has come to nothing: another one.
        case tryAgain
        /// Also those that wait for the connection to come back.
        case endListens(any Error)
        case failTask(any Error)
        case tellAvailability(Bool)
        case tellConnected
        /// The observers, then the handler, whose answer is the next event.
        case tellDisconnected((any Error)?, willReconnect: Bool)
    }
}
