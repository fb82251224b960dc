import Foundation

extension SubscriptionMachine {
    /// Names a call to the daemon, and the socket that it brings; so that an answer that comes too late is known as such.
    struct Call: Hashable, Sendable {
        let rawValue: UInt32
    }

    struct Start: Hashable, Sendable {
        let call: Call
        let transport: NotificationTransport
        /// The operation that fails with this call; `nil` if a subscription is taken up again, or outlives links.
        var waiter: OperationID?
        /// A subscription of before is taken up again.
        var isResumption = false
    }

    struct Release: Hashable, Sendable {
        let call: Call
        var waiter: OperationID?
        /// The socket to be closed once the daemon knows.
        let socket: Call?
        /// What is to be taken up again when the link is back.
        var wish: NotificationTransport?
    }

    enum State: Hashable, Sendable {
        case off
        case starting(Start)
        case confirming(Start)
        case on(NotificationTransport, Call)
        case interrupted(NotificationTransport, Call)
        case releasing(Release)
        case suspended(NotificationTransport)
    }

    enum Timer: Hashable, Sendable {
        /// `StartNotify` was answered, and `Notifying` is to become true.
        case confirmation
        /// Values have ceased to come although the link is up: mostly it is about to fall, or has fallen.
        case interruption

        var seconds: TimeInterval {
            switch self {
            // As long as a peer may take to answer the CCC write (Bluetooth Core Specification 5.4, volume 3, part F,
            // 3.3.3).
            case .confirmation: 30
            case .interruption: 1
            }
        }
    }

    enum Failure: Hashable, Sendable {
        /// There is no link, or it was lost.
        case link(PeripheralError)
        /// Another program has the characteristic's notifications to itself.
        case acquiredByOther(BusFailure)
        /// BlueZ cannot do it with this characteristic in this way.
        case notSupported
        case refused(BusFailure)
        /// The daemon said yes, and then nothing more.
        case unconfirmed
        /// The peripheral has changed its services, and this characteristic went with them.
        case invalidated
        /// The subscription was ended before it had begun.
        case cancelled

        /// What it means for a subscription that outlives links: the manager's end is no failure of it.
        var ofLasting: Failure { if case .link = self { .cancelled } else { self } }

        /// Whether BlueZ may have sent it since the link ends, which it reports a moment later: it completes pending requests
        /// with "unlikely error", and calls of removed objects with "unknown object".
        var mayBeLinkLoss: Bool {
            switch self {
            case .refused(let cause): cause.attError == .unlikelyError
            case .invalidated: true
            case .link, .acquiredByOther, .notSupported, .unconfirmed, .cancelled: false
            }
        }

        /// Whether a subscription that nothing fails with is tried again later.
        func isPassing(over transport: NotificationTransport, isResumption: Bool) -> Bool {
            switch self {
            // The daemon knows of the link's end before we do.
            case .link: true
            // Over signals nobody stands in the way: it is still at what was asked for on the link before.
            case .acquiredByOther(let cause):
                isResumption && transport == .signals && cause.name == "org.bluez.Error.InProgress"
            case .notSupported, .refused, .unconfirmed, .invalidated, .cancelled: false
            }
        }
    }

    enum Event: Hashable, Sendable {
        /// `outlivesLinks`: a lost link does not settle it; the subscription is begun on the next one.
        case startAsked(OperationID, NotificationTransport, outlivesLinks: Bool = false)
        case stopAsked(OperationID)
        /// The daemon has agreed; a socket, where one was asked for, is there. `isNotifying`: what the daemon says of the
        /// characteristic at this moment.
        case startReplied(Call, isNotifying: Bool)
        case startFailed(Call, Failure)
        /// The failure is `nil` also where the daemon answers that there was nothing to stop.
        case stopReplied(Call, Failure?)
        case notifyingChanged(Bool)
        case socketClosed(Call)
        /// `canCall`: the daemon is there.
        case linkWentDown(PeripheralError, canCall: Bool)
        /// The link is up; it is not known yet what is on it.
        case linkWentUp
        /// The link is up, and the attribute is known to be on it.
        case attributesReady
        /// BlueZ has removed its object, though the link is up.
        case attributeRemoved
        /// It has no place among the peripheral's attributes any more.
        case invalidated
        /// The time of the one who asked is up.
        case timedOut(OperationID)
        /// Values had come when the gate was closed: what comes later follows a gap.
        case valuesCame
        /// The manager ends, or lets go of the peripheral.
        case closed(canCall: Bool)
        case fired(Timer)
    }

    enum Effect: Hashable, Sendable {
        case callStart(Call)
        case acquire(Call)
        case callStop(Call)
        /// Closes the socket that this call brought, if there is one.
        case closeSocket(Call)
        /// From now on values that come are for the streams. `afterGap`: a gap mark goes before the first of them.
        case openGate(NotificationTransport, afterGap: Bool)
        /// Tells of the gap now, if no value has come since that told of it.
        case markGap
        case closeGate
        /// The streams are told of a failure, and go on.
        case deliver(Failure)
        case settle(OperationID, Failure?)
        /// The streams end, with this failure as their last element where there is one.
        case finish(Failure?)
        case startTimer(Timer)
        case cancelTimer(Timer)
    }
}
