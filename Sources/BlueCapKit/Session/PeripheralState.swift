import BlueZ
import Foundation

/// Names something that a user waits for, such as a read or a discovery. Each is settled exactly once.
struct OperationID: Hashable, Sendable {
    let rawValue: UInt64
}

/// Why an operation failed, in the words of the documented errors.
enum PeripheralFailure: Equatable, Sendable {
    case peripheral(PeripheralError)
    case service(ServiceError)
    case characteristic(CharacteristicError)
    case bus(BusFailure)
    /// The application does not want it any more.
    case cancelled

    var error: any Error {
        switch self {
        case .peripheral(let error): error
        case .service(let error): error
        case .characteristic(let error): error
        case .bus(let error): error
        case .cancelled: CancellationError()
        }
    }
}

/// All that a manager decides about one peripheral, as a value: what happened goes in, what is to be done comes out.
///
/// It puts the peripheral's machines together: what the link does is told to whatever lives on the link. There is one
/// for each peripheral that was asked for something, from then on until the manager forgets it.
struct PeripheralState {
    /// Something fell due, or is to.
    enum Timer: Hashable, Sendable {
        /// The time of an operation is up.
        case operation(OperationID)
        /// The services are to be looked at again.
        case discovery(ServiceDiscoveryMachine.Timer)
        /// An operation that BlueZ was too busy for is to be tried again.
        case retry(AttributeID)
        /// A transfer goes on.
        case transfer(OperationID)
        case connection(ConnectionMachine.Timer)
        case subscription(AttributeID, SubscriptionMachine.Timer)
        /// The time of a run is up.
        case run(OperationID)
    }

    /// What BlueZ says of the device.
    struct Facts: Equatable, Sendable {
        /// Its object; `nil` while BlueZ has none, as before it is heard or after it was dropped.
        var device: ObjectKey?
        var isConnected = false
        var areServicesResolved = false
        /// Why its last link ended, if BlueZ has said so.
        var linkEnd: LinkEnd?
    }

    enum Effect: Equatable, Sendable {
        case startTimer(Timer, TimeInterval)
        case cancelTimer(Timer)
        /// Completes what a user waits for.
        indirect case settle(OperationID, PeripheralFailure?)
        indirect case attributes(AttributeState.Effect)
        /// What the connection wants done, with the device's object at that moment.
        indirect case connection(ConnectionMachine.Effect, device: ObjectKey?)
        indirect case subscription(AttributeID, AttributeKey, SubscriptionMachine.Effect)
        /// Its turn has come, and there is a link.
        case beginRun(OperationID)
        /// It is settled, and what it does is to end.
        case stopRun(OperationID)
    }

    private(set) var facts = Facts()
    var connection: ConnectionMachine
    /// What is on the other end of the link.
    var attributes = AttributeState()
    var subscriptions = Subscriptions()
    /// Subscriptions of an earlier run that are to be taken up again.
    var restored: [RestoredSubscription] = []
    var statistics = ConnectionStatistics()
    /// Those who want the link to themselves, one after the other.
    var runs = PeripheralRuns()
    /// BlueZ is made to forget the device, and is to meet it anew.
    var isRefreshing = false
    /// Why the last link ended; `nil` before.
    private(set) var lastLoss: ConnectionMachine.LinkLoss?
    /// What BlueZ says of that, from 5.83 on.
    private(set) var linkEnd: LinkEnd?

    init(backOff: BackOff) {
        connection = ConnectionMachine(backOff: backOff, isUsable: false, isPresent: false, isLinkUp: false)
    }

    /// BlueZ's device has come, changed or gone, or its daemon with it.
    mutating func factsChanged(_ new: Facts) -> [Effect] {
        facts = new
        if new.isConnected {
            linkEnd = nil
        } else if let end = new.linkEnd {
            linkEnd = end
        }
        guard new.device != nil else { return connect(.deviceDisappeared) }
        let effects = connect(.deviceAppeared(isConnected: new.isConnected))
        guard connection.state == .connected else { return effects }
        return effects + attributes.resolved(new.areServicesResolved)
    }

    /// The link can be used from here on.
    mutating func linkWentUp() -> [Effect] {
        linkEnd = nil
        guard let device = facts.device else { return [] }
        return attributes.linkUp(device, isResolved: facts.areServicesResolved)
    }

    /// The link is gone, or is being ended: operations that are under way fail.
    mutating func linkWentDown(_ loss: ConnectionMachine.LinkLoss) -> [Effect] {
        lastLoss = loss
        for index in restored.indices { restored[index].wasTried = false }
        let ended = attributes.linkDown(loss == .forced ? .linkEnded : .linkLost)
        return ended + runLinkWentDown(loss)
    }

    /// Whether operations can be asked for: the manager's state.
    mutating func managerStateChanged(_ state: ManagerState) -> [Effect] {
        connect(.adapterUsable(state == .poweredOn))
    }

    mutating func fired(_ timer: Timer) -> [Effect] {
        switch timer {
        case .operation(let id): subscriptions.timedOut(id) ?? attributes.fired(timer)
        case .discovery, .retry, .transfer: attributes.fired(timer)
        case .connection(let timer): connect(.timerFired(timer))
        case .subscription(let id, let timer): subscriptions.tell(id, .fired(timer))
        case .run(let id): runTimedOut(id)
        }
    }

    // MARK: Subscriptions

    /// A user asks something of a subscription.
    ///
    /// - Parameter timeout: In seconds, how long `operation` waits.
    mutating func subscription(
        _ id: AttributeID, _ event: SubscriptionMachine.Event, by operation: OperationID, timeout: TimeInterval
    ) -> [Effect] {
        if case .stopAsked = event { forgetRestored(id) }
        return subscriptions.asked(id, event, by: operation, timeout: timeout, attributes)
    }

    /// After every event: what it means for the subscriptions and the runs.
    mutating func follow() -> [Effect] {
        followRuns() + subscriptions.follow(attributes, canCall: facts.device != nil) + takeUpRestored()
    }

    /// The manager ends: whatever anybody waits for fails, and the link is let go.
    mutating func closed(keepingLinks: Bool) -> [Effect] {
        cancelRuns(.peripheral(.disconnected)) + subscriptions.closed(canCall: facts.device != nil)
            + connect(.closed(keepingLinks: keepingLinks)) + attributes.closed()
    }
}
