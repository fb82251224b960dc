import BlueZ
import Foundation

/// The subscriptions to a peripheral's characteristics, and where BlueZ has these.
struct Subscriptions {
    typealias Effects = [PeripheralState.Effect]

    /// Where the characteristic stands, as far as its subscription was told.
    private enum Standing: Equatable {
        case away
        case awaited
        case ready(AttributeKey)
        case invalid
    }

    private struct Entry {
        var machine = SubscriptionMachine(isReady: false)
        var standing = Standing.away
        /// What BlueZ called it when it was there last: what was begun is ended under that name.
        var key: AttributeKey?
    }

    private var entries: [AttributeID: Entry] = [:]
    /// The subscriptions that operations with a time limit wait for.
    private var timed: [OperationID: AttributeID] = [:]

    func isNotifying(_ id: AttributeID) -> Bool { entries[id]?.machine.isNotifying ?? false }

    /// The subscriptions that somebody wants, and how.
    var wished: [(id: AttributeID, transport: NotificationTransport)] {
        entries.keys.sorted().compactMap { id in entries[id]?.machine.wish.map { (id, $0) } }
    }

    // MARK: Events

    /// A user asks something of a subscription, and waits for it for a time.
    mutating func asked(
        _ id: AttributeID, _ event: SubscriptionMachine.Event, by operation: OperationID, timeout: TimeInterval,
        _ attributes: borrowing AttributeState
    ) -> Effects {
        var effects: Effects = []
        if timeout.isFinite {
            timed[operation] = id
            effects.append(.startTimer(.operation(operation), max(0, timeout)))
        }
        return effects + self.event(id, event, attributes)
    }

    /// The time of an operation is up; `nil` if it does not wait for a subscription.
    mutating func timedOut(_ operation: OperationID) -> Effects? {
        timed.removeValue(forKey: operation).map { tell($0, .timedOut(operation)) }
    }

    /// Something happened to one subscription; to ask for one begins it.
    mutating func event(
        _ id: AttributeID, _ event: SubscriptionMachine.Event, _ attributes: borrowing AttributeState
    ) -> Effects {
        var effects: Effects = []
        if entries[id] == nil {
            entries[id] = Entry()
            effects = follow(id, attributes, canCall: true)
        }
        return effects + tell(id, event)
    }

    /// What BlueZ answered to an earlier call, or a timer: nothing to one who was never asked for.
    mutating func tell(_ id: AttributeID, _ event: SubscriptionMachine.Event) -> Effects {
        let key = entries[id]?.key
        let effects = entries[id]?.machine.event(event) ?? []
        return effects.flatMap { effect -> Effects in
            switch effect {
            case .settle(let operation, let failure):
                let isTimed = timed.removeValue(forKey: operation) != nil
                return (isTimed ? [.cancelTimer(.operation(operation))] : [])
                    + [.settle(operation, failure.map { PeripheralFailure($0) })]
            case .startTimer(let timer): return [.startTimer(.subscription(id, timer), timer.seconds)]
            case .cancelTimer(let timer): return [.cancelTimer(.subscription(id, timer))]
            default:
                // Before the characteristic was there once, there is nothing that could be done with it.
                return key.map { [.subscription(id, $0, effect)] } ?? []
            }
        }
    }

    /// The manager ends, or lets go of the peripheral.
    mutating func closed(canCall: Bool) -> Effects {
        entries.keys.sorted().flatMap { tell($0, .closed(canCall: canCall)) }
    }

    // MARK: The link and the attributes

    /// Tells each subscription what has become of its characteristic. After every event of the peripheral.
    /// - Parameter canCall: BlueZ still has the device.
    mutating func follow(_ attributes: borrowing AttributeState, canCall: Bool) -> Effects {
        guard !entries.isEmpty else { return [] }
        var effects: Effects = []
        for id in entries.keys.sorted() { effects += follow(id, attributes, canCall: canCall) }
        return effects
    }

    private mutating func follow(
        _ id: AttributeID, _ attributes: borrowing AttributeState, canCall: Bool
    ) -> Effects {
        guard let old = entries[id]?.standing else { return [] }
        let new = standing(of: id, attributes, before: old)
        guard new != old else { return [] }
        entries[id]?.standing = new
        switch new {
        case .away:
            let error: PeripheralError = attributes.linkFailure == .linkEnded ? .forcedDisconnect : .disconnected
            return tell(id, .linkWentDown(error, canCall: canCall))
        case .awaited:
            if case .ready = old { return tell(id, .attributeRemoved) }
            return tell(id, .linkWentUp)
        case .ready(let key):
            // At another place: there it has to be subscribed to anew.
            var effects: Effects = []
            if case .ready = old { effects = tell(id, .attributeRemoved) }
            entries[id]?.key = key
            return effects + tell(id, .attributesReady)
        case .invalid:
            return tell(id, .invalidated)
        }
    }

    private func standing(
        of id: AttributeID, _ attributes: borrowing AttributeState, before: Standing
    ) -> Standing {
        guard attributes.hasLink else { return .away }
        let key = attributes.subscriptionKey(of: id)
        guard attributes.isReady else {
            // The table is being read anew because of other attributes.
            if let key, before == .ready(key) { return before }
            return .awaited
        }
        return key.map { .ready($0) } ?? .invalid
    }
}

extension PeripheralFailure {
    init(_ failure: SubscriptionMachine.Failure) {
        self =
            switch failure {
            case .link(let error): .peripheral(error)
            case .acquiredByOther(let cause): .characteristic(.acquiredByOther(cause))
            case .notSupported: .characteristic(.notifyNotSupported)
            case .refused(let cause): .characteristic(.notifyFailed(cause))
            case .unconfirmed: .characteristic(.notifyTimeout)
            case .invalidated: .characteristic(.invalidated)
            case .cancelled: .cancelled
            }
    }
}

extension SubscriptionMachine.Failure {
    /// What a refusal of BlueZ means for a subscription.
    init(_ error: BlueZError) {
        switch OperationFailure(error) {
        case .linkLost, .linkEnded: self = .link(.disconnected)
        case .invalidated: self = .invalidated
        case .timedOut: self = .unconfirmed
        // Somebody holds the socket, or wants it while others hold a session.
        case .busy: self = .acquiredByOther(BusFailure(error))
        case .refused where error.cause == .notPermitted && error.message == "Notify acquired":
            self = .acquiredByOther(BusFailure(error))
        case .refused where error.cause == .notSupported: self = .notSupported
        case .refused: self = .refused(BusFailure(error))
        }
    }
}
