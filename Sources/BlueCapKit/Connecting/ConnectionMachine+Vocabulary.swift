import BlueZ
import Foundation

/// What one call of `connect` asks for.
struct ConnectionPolicy: Equatable {
    /// How many time-outs in a row, and how many disconnections of one `connect`, are reported as such; one more and
    /// the connection is given up.
    var timeoutRetries = UInt.max
    var disconnectRetries = UInt.max
    /// Seconds from the moment at which the radio begins to try, or is not there to; `nil` for ever.
    var timeout: TimeInterval?
}

/// Why an attempt to connect failed.
struct ConnectionFailure: Equatable {
    let cause: ConnectCause
    let failure: BusFailure

    /// The reply said that there is a link, and there is none.
    static let noLink = ConnectionFailure(
        cause: .transient,
        failure: BusFailure(name: "org.bluez.Error.Failed", message: "Connect succeeded without a connection"))
    /// A search for the device found nothing.
    static let notHeard = ConnectionFailure(
        cause: .notFound,
        failure: BusFailure(
            name: "org.freedesktop.DBus.Error.UnknownObject",
            message: "the device is not known to bluetoothd and was not heard"))
}

extension ConnectionMachine {
    /// Names one `Connect` call.
    typealias Attempt = UInt32
    /// Names one call of `connect`, and its stream; 0 before the first.
    typealias ConnectionNumber = UInt32

    enum Event: Equatable {
        // What the user wants.
        case connectAsked(ConnectionPolicy)
        case reconnectAsked(delay: TimeInterval)
        case disconnectAsked
        case terminateAsked
        /// Somebody needs a link for a while.
        case linkBorrowed
        /// Nobody does any more.
        case linkReturned
        /// The manager goes.
        case closed(keepingLinks: Bool)

        // What BlueZ tells.
        /// The call's turn has come.
        case connectStarted(Attempt)
        case connectReplied(Attempt, ConnectionFailure?)
        case disconnectReplied
        /// `Device1.Connected`.
        case connectedChanged(Bool)
        case deviceAppeared(isConnected: Bool)
        case deviceDisappeared
        /// Whether there is a daemon, an adapter, and power. Without them there is no link either.
        case adapterUsable(Bool)

        case timerFired(Timer)
    }

    enum Effect: Equatable {
        case callConnect(Attempt)
        /// Takes the `Connect` that is under way back, or out of the queue.
        case cancelConnect
        case callDisconnect
        case startTimer(Timer, TimeInterval)
        case cancelTimer(Timer)
        /// Discovers until `stopSeeking`, so that BlueZ finds the device (again) and keeps it.
        case seek
        case stopSeeking
        /// Lets every scan on this adapter rest.
        case pauseScan
        case resumeScan
        case report(ConnectionNumber, Report)
        case reportFailure(ConnectionNumber, Refusal)
        case finishStream(ConnectionNumber)
        /// The link can be used from here on.
        case linkWentUp
        /// No operation is possible any more; what is under way fails.
        case linkWentDown(LinkLoss)
        /// The user is done with this peripheral.
        case forget
    }

    enum Timer: Hashable, CaseIterable {
        /// The wait that `reconnect(withDelay:)` asked for.
        case delay
        /// The back-off between two attempts of one try.
        case retry
        /// The user's `connectionTimeout`.
        case timeout
        /// How long a good reply waits for its link.
        case confirmation
        case seeking
        /// How long scans rest.
        case pause
        /// How long a taken back `Connect` may take to end.
        case cancellation
        /// How long a link may take to end.
        case drop
        /// From when on a connection counts as one that holds.
        case stability
        /// How long the end of the adapter belongs to the loss that was reported last.
        case loss
    }

    enum Report: Equatable {
        case connected, timedOut, disconnected, forced
        case gaveUp(after: Spent)
    }

    /// Which of the two counts is spent.
    enum Spent: Equatable { case timeouts, disconnections }

    enum Refusal: Equatable {
        /// `disconnect()` without a connection.
        case notConnected
        /// BlueZ refused, and would again.
        case refused(BusFailure)
    }

    enum LinkLoss: Equatable {
        case disconnected
        /// We asked for it.
        case forced
        /// Daemon, adapter or power went.
        case adapterLost
    }

    enum State: Equatable {
        case disconnected
        case waiting(Wait)
        /// The device is unknown to BlueZ: discovery runs until it is heard.
        case seeking
        case connecting(Attempt, Progress)
        /// The user or the time-out has had enough; BlueZ is being told so.
        case cancelling(Attempt, Ending)
        case connected
        case disconnecting(Ending)
        /// The manager is gone.
        case closed
    }

    enum Wait: Equatable { case delay, backOff, power }

    enum Progress: Equatable {
        /// Behind the calls of other peripherals.
        case queued
        case underWay
        /// BlueZ replied success, and `Connected` is still false.
        case confirming
    }

    /// What is due when a link, or an attempt, has ended.
    struct Ending: Equatable {
        /// `nil` where it was told already.
        var report: Report?
        var next: Next

        enum Next: Equatable {
            case rest
            case connect(after: TimeInterval)
            case finish
        }

        /// The same, now because the user says so.
        var forced: Ending { Ending(report: .forced, next: next == .finish ? .finish : .rest) }

        /// The same, with a connection to follow. A stream that was to finish does so at once, and hears no more.
        func connecting(after delay: TimeInterval) -> Ending {
            Ending(report: next == .finish ? nil : report, next: .connect(after: delay))
        }
    }
}
