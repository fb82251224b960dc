import BlueCapBlueZ
import Foundation

/// The subscription of a manager to one characteristic, as a value: who waits for it, and how it gets through links and pairings.
/// Whether BlueZ has a session or a socket is known to BlueZ's `NotifyMachine`, which all managers share.
///
/// | state | what `NotifyMachine` has of this manager | ends with |
/// |---|---|---|
/// | off | nothing | startAsked, restored |
/// | suspended | nothing; the subscription starts when the characteristic is present | attribute, stopAsked, timedOut |
/// | starting | a subscriber that waits for BlueZ's reply | began, failed, stopAsked, timedOut |
/// | interrupted | a subscriber, without values, until BlueZ is asked again | asked, began, failed, stopAsked, timedOut |
/// | securing | nothing; the subscription starts again after a pairing | secured, stopAsked, timedOut |
/// | on | a subscriber | interrupted, stopAsked |
///
/// Every state also ends with a change of the attribute, and with `closed`. An operation that requests a subscription fails
/// with the link, and a request to end waits for it; or it waits for the next link (`outlivesLinks`), until such a request.
struct SubscriptionMachine {
    /// Identifies a request to `NotifyMachine`, so that a late report is recognised.
    struct Call: Hashable, Sendable { let rawValue: UInt32 }

    enum State: Hashable, Sendable {
        case off, suspended, starting, interrupted, on
        /// `isSecured`: the pairing has succeeded, and the subscription only waits for the characteristic.
        case securing(isSecured: Bool)
    }

    enum Attribute: Hashable, Sendable {
        /// The link is up, and the characteristic exists on it.
        case ready(AttributeKey)
        /// There is no link.
        case away
        /// There is a link, and the peripheral's table is being read, for the first time or because it has changed.
        case awaited
        /// The characteristic is not in that table.
        case invalid
    }

    typealias Failure = PeripheralFailure

    enum Event: Hashable, Sendable {
        /// `outlivesLinks`: a lost link does not settle it; the subscription begins on the next one. `isForStream`: the
        /// subscription may end with the last stream.
        case startAsked(OperationID, NotificationTransport, outlivesLinks: Bool = false, isForStream: Bool = false)
        case stopAsked(OperationID)
        /// The last stream has ended: the subscription ends, unless it was requested for more than streams.
        case readersEnded
        /// A subscription of an earlier process is resumed, on this link or on the next one.
        case restored(NotificationTransport)
        /// BlueZ notifies, for the first time or again.
        case began(Call)
        /// Values have ended although the link is up: usually the link is about to be lost. BlueZ is asked again.
        case interrupted(Call)
        /// BlueZ is asked again.
        case asked(Call)
        case failed(Call, Failure)
        /// The request was refused for lack of security, and there will be a pairing.
        case securityNeeded(Call)
        /// A pairing was rejected that BlueZ may have begun for this subscription. BlueZ may not reply.
        case pairingRejected(PairingError)
        /// That pairing has ended.
        case secured(PairingError?)
        /// The subscription has ended; the failure is `nil` also if there was nothing to end.
        case stopped(Call, Failure?)
        /// Values were delivered before the subscription began: if it does not, later ones follow a gap.
        case valuesCame(Call)
        /// `error`: of a link that has ended. `keepsSecuring`: a subscription that waits for a pairing continues to wait,
        /// because that pairing makes a new link.
        case attribute(Attribute, PeripheralError = .disconnected, keepsSecuring: Bool = false)
        /// The time limit of a request is exceeded.
        case timedOut(OperationID)
        /// The caller of a request no longer waits.
        case withdrawn(OperationID)
        /// The manager ends, or releases the peripheral.
        case closed
    }

    /// An operation that waits for the subscription to begin or to end.
    private struct Operation {
        /// `none` if no caller waits for it.
        var id: OperationID
        /// `nil` in a request to end.
        var transport: NotificationTransport?
        var outlivesLinks = false
        var isForStream = false
        /// The subscription whose end is under way.
        var ending: Call?

        /// Whether it is a request to end that waits for those before it. Those behind wait for it.
        var isQueuedStop: Bool { transport == nil && ending == nil }
        var failsWithLink: Bool { transport != nil && !outlivesLinks }
    }

    /// How many links in succession may end while BlueZ executes the request to begin, before the streams receive the error.
    private static let mostUnreportedEnds = 2

    private(set) var state: State = .off
    private(set) var attribute = Attribute.away
    /// BlueZ's name of the characteristic when it was last present: a subscription that began under it is ended under it.
    private(set) var key: AttributeKey?
    private var transport = NotificationTransport.signals
    /// The operations that are not settled, in the order of the requests.
    private var operations: [Operation] = []
    /// Whether the subscription continues without an operation that waits for it: it has begun, or was restored.
    private var isEstablished = false
    /// Whether all starts for which the subscription has begun were for streams, which end it.
    private var isForStreams = false
    /// Whether the next start follows an earlier one, on this link or before; then its failure concerns the streams too.
    private var isResumption = false
    /// Whether the present subscription has delivered values, or may have: then a gap is possible.
    private var hasBegun = false
    /// Whether a refusal on this link counted as the end of the link, so that the call is repeated once.
    private var hasRepeatedCall = false
    private var endedAttempts = 0
    private var call = Call(rawValue: 0)
    /// The last subscription, until its end is reported: before that BlueZ is not asked for the next one.
    private var ending: Call?

    // MARK: Queries

    /// Whether the subscription delivers values, as far as is known.
    var isNotifying: Bool { state == .on }
    /// The transport of the subscription, with a link or without; `nil` if there is no subscription.
    var wanted: NotificationTransport? { state == .off ? nil : transport }
    /// Whether BlueZ is executing a request to begin.
    var isStarting: Bool { state == .starting && ending == nil }
    /// Whether the subscription waits for a pairing.
    var isSecuring: Bool { state == .securing(isSecured: false) }
    /// Whether the subscription waits for the link after a pairing.
    var isAwaitingLink: Bool { state == .securing(isSecured: true) && attribute == .away }

    /// Whether `began` or `failed` follows.
    private var isWaiting: Bool { state == .starting || state == .interrupted }
    private var isReady: Bool { if case .ready = attribute { true } else { false } }

    // MARK: Events

    mutating func event(_ event: Event, into orders: inout Orders) {
        orders.subject.attribute = key
        switch event {
        case .startAsked(let id, let transport, let outlives, let isForStream):
            if let refusal, attribute == .invalid || !outlives { return settle(id, refusal, &orders) }
            // An existing subscription keeps its transport.
            let used = state != .off && isResumption ? self.transport : transport
            operations.append(Operation(id: id, transport: used, outlivesLinks: outlives, isForStream: isForStream))
            proceed(&orders)
        case .readersEnded:
            for operation in operations where operation.isForStream { settle(operation, .cancelled, &orders) }
            operations.removeAll(where: \.isForStream)
            if isForStreams { isEstablished = false }
            if waiting.isEmpty, !isEstablished { operations.append(Operation(id: .none)) }
            proceed(&orders)
        case .stopAsked(let id):
            operations.append(Operation(id: id))
            proceed(&orders)
        case .restored(let transport):
            guard state == .off else { return }
            reset(transport)
            (isEstablished, isResumption, isForStreams) = (true, true, false)
            resume(&orders)
        case .began(let call) where call == self.call: began(&orders)
        case .interrupted(let call) where call == self.call && state == .on: state = .interrupted
        case .asked(let call) where call == self.call && state == .interrupted: state = .starting
        case .failed(let call, let failure) where call == self.call && isWaiting: failed(failure, &orders)
        case .securityNeeded(let call) where call == self.call && state == .starting:
            state = .securing(isSecured: false)
        case .valuesCame(let call) where call == self.call: hasBegun = state != .off
        case .began, .interrupted, .asked, .failed, .securityNeeded, .valuesCame: break
        case .pairingRejected(let error):
            guard state == .starting else { return }
            // From 5.67 on BlueZ would take another request for one that is under way.
            leave(&orders)
            fail(.characteristic(.pairingFailed(error)), &orders)
            proceed(&orders)
        case .secured(let error):
            guard case .securing = state else { return }
            if let error { return failed(.characteristic(.pairingFailed(error)), &orders) }
            state = .securing(isSecured: true)
            resume(&orders)
        case .stopped(let call, let failure):
            if call == ending { ending = nil }
            for operation in operations where operation.ending == call { settle(operation.id, failure, &orders) }
            operations.removeAll { $0.ending == call }
        case .attribute(let attribute, let error, let keepsSecuring):
            changed(to: attribute, error, keepsSecuring: keepsSecuring, &orders)
        case .timedOut(let id): end(id, .characteristic(.notifyTimeout), &orders)
        case .withdrawn(let id): end(id, .cancelled, &orders)
        case .closed:
            attribute = .away
            end(.peripheral(.disconnected), &orders)
            orders.append(.finishNotifications(nil))
        }
    }

    // MARK: Requests

    /// The operations that wait for the present subscription to begin, on this link or on a later one.
    private var waiting: [Operation] { operations.prefix { !$0.isQueuedStop }.filter { $0.transport != nil } }

    /// Executes the requests until one has to wait.
    private mutating func proceed(_ orders: inout Orders) {
        repeat {
            // A pairing has failed that was to make a new link.
            if state == .off, attribute == .away { settleWaiting(refusal, &orders, where: \.failsWithLink) }
            if state == .on {
                isForStreams = isForStreams && waiting.allSatisfy(\.isForStream)
                settleWaiting(nil, &orders)
            } else if state == .off, let transport = waiting.first?.transport {
                reset(transport)
            }
            resume(&orders)
        } while !waiting.contains(where: \.failsWithLink) && stop(&orders)
    }

    /// Begins another subscription, whose first start is not made yet.
    private mutating func reset(_ transport: NotificationTransport) {
        (state, self.transport, isResumption) = (.suspended, transport, attribute == .away)
        (isEstablished, hasBegun, endedAttempts, isForStreams) = (false, false, 0, true)
    }

    private var refusal: Failure? {
        switch attribute {
        case .ready, .awaited: nil
        case .away: .peripheral(.disconnected)
        case .invalid: .characteristic(.invalidated)
        }
    }

    /// Executes the first request to end. Returns false if there is none.
    private mutating func stop(_ orders: inout Orders) -> Bool {
        guard operations.contains(where: \.isQueuedStop) else { return false }
        settleWaiting(.cancelled, &orders)
        let index = operations.firstIndex(where: \.isQueuedStop) ?? 0
        if isWaiting || state == .on {
            operations[index].ending = call
            leave(&orders)
        } else if state == .off, let last = operations.last(where: { $0.ending != nil }) {
            operations[index].ending = last.ending
        } else {
            settle(operations.remove(at: index).id, state == .off ? refusal : nil, &orders)
        }
        state = .off
        return true
    }

    /// Ends one request. A start that nothing else waits for is cancelled; an end that is queued is still executed.
    private mutating func end(_ id: OperationID, _ failure: Failure, _ orders: inout Orders) {
        guard let index = operations.firstIndex(where: { $0.id == id }) else { return }
        if operations[index].isQueuedStop { operations[index].id = .none } else { operations.remove(at: index) }
        settle(id, failure, &orders)
        if waiting.isEmpty, !isEstablished {
            leave(&orders)
            state = .off
        }
        proceed(&orders)
    }

    /// Whether an operation waits for this subscription to begin or to end.
    func isAwaited(by id: OperationID) -> Bool { operations.contains { $0.id == id } }

    // MARK: BlueZ

    /// - Parameter isRepeated: Whether BlueZ has just refused, so that it is asked after a pause.
    private mutating func begin(isRepeated: Bool = false, _ orders: inout Orders) {
        call = Call(rawValue: call.rawValue &+ 1)
        state = isRepeated ? .interrupted : .starting
        if isRepeated { isResumption = true }
        orders.append(.subscribe(call, transport, afterGap: hasBegun, isRepeated: isRepeated))
    }

    /// Starts the subscription if it waits for nothing but the characteristic.
    private mutating func resume(_ orders: inout Orders) {
        guard isReady, state == .suspended || state == .securing(isSecured: true) else { return }
        begin(&orders)
    }

    /// Ends the request to BlueZ, if there is one. The caller changes the state.
    private mutating func leave(_ orders: inout Orders) {
        guard isWaiting || state == .on else { return }
        ending = call
        orders.append(.unsubscribe(call))
    }

    private mutating func began(_ orders: inout Orders) {
        guard isWaiting else { return }
        orders.append(.subscribed(afterGap: hasBegun))
        (state, isEstablished, isResumption, hasBegun) = (.on, true, true, true)
        (hasRepeatedCall, endedAttempts) = (false, 0)
        proceed(&orders)
    }

    private mutating func failed(_ failure: Failure, _ orders: inout Orders) {
        settleWaiting(failure, &orders) { [transport] in $0.failsWithLink && $0.transport == transport }
        if !isEstablished, !waiting.contains(where: { [transport] in $0.transport == transport }) {
            state = .off
        } else if attribute == .awaited {
            state = .suspended
        } else if failure.isPassing(over: transport, isResumption: isResumption) {
            begin(isRepeated: true, &orders)
        } else if failure.mayBeLinkLoss, !hasRepeatedCall {
            hasRepeatedCall = true
            begin(isRepeated: true, &orders)
        } else {
            fail(failure, &orders)
        }
        proceed(&orders)
    }

    /// First the operations that wait for the subscription fail, then the streams of a resumed one receive the failure.
    private mutating func fail(_ failure: Failure, _ orders: inout Orders) {
        state = .off
        settleWaiting(failure, &orders) { [transport] in $0.transport == transport }
        if isResumption { orders.append(.deliver(failure)) }
    }

    // MARK: The link and the attribute

    private mutating func changed(
        to new: Attribute, _ error: PeripheralError, keepsSecuring: Bool, _ orders: inout Orders
    ) {
        let old = attribute
        attribute = new
        switch new {
        case .away:
            hasRepeatedCall = false
            if keepsSecuring, case .securing = state { return }
            linkWentDown(error, &orders)
        case .awaited:
            if case .ready = old { removed(&orders) }
        case .ready(let key):
            // If its handle has changed, the characteristic has to be subscribed to again.
            if case .ready = old { removed(&orders) }
            self.key = key
            orders.subject.attribute = key
            resume(&orders)
        case .invalid:
            end(.characteristic(.invalidated), &orders)
            orders.append(.finishNotifications(.characteristic(.invalidated)))
        }
        proceed(&orders)
    }

    private mutating func linkWentDown(_ error: PeripheralError, _ orders: inout Orders) {
        let isAttempt = isStarting && error != .forcedDisconnect
        leave(&orders)
        var isWanted = state != .off
        var kept: [Operation] = []
        for operation in operations {
            if operation.outlivesLinks {
                kept.append(operation)
                continue
            }
            if operation.isQueuedStop {
                for operation in kept { settle(operation.id, .cancelled, &orders) }
                (isWanted, kept) = (false, [])
            }
            settle(operation.id, .peripheral(error), &orders)
        }
        operations = kept
        if !isEstablished, let transport = kept.first?.transport { self.transport = transport }
        isWanted = isWanted && (isEstablished || !kept.isEmpty)
        (state, isResumption) = (isWanted ? .suspended : .off, true)
        guard isAttempt, isWanted else { return }
        // A peripheral can refuse a subscription by ending the link, and BlueZ up to 5.66 does so if the value needs a
        // pairing. One or two links may end for another reason. From the third in succession on, the streams receive the
        // error; the subscription is still requested on the next link.
        endedAttempts += 1
        if endedAttempts > Self.mostUnreportedEnds { orders.append(.deliver(.peripheral(error))) }
    }

    /// BlueZ has removed the characteristic's object during the link. To a request under way it will still reply.
    private mutating func removed(_ orders: inout Orders) {
        if state == .on || state == .interrupted {
            leave(&orders)
            state = .suspended
        } else if case .securing = state {
            settleWaiting(.characteristic(.invalidated), &orders, where: \.failsWithLink)
            state = isEstablished || !waiting.isEmpty ? .suspended : .off
        }
    }

    /// Ends the subscription, and all operations.
    private mutating func end(_ failure: Failure, _ orders: inout Orders) {
        leave(&orders)
        state = .off
        for operation in operations { settle(operation, failure, &orders) }
        operations = []
    }

    // MARK: Orders

    private func settle(_ id: OperationID, _ failure: Failure?, _ orders: inout Orders) {
        if id != .none { orders.append(.settle(id, failure.map { .failed($0) } ?? .done)) }
    }

    private func settle(_ operation: Operation, _ failure: Failure?, _ orders: inout Orders) {
        settle(operation.id, operation.outlivesLinks ? failure?.ofLasting : failure, &orders)
    }

    /// Settles the operations that wait for the subscription to begin, or those of them that `isMeant` accepts.
    private mutating func settleWaiting(
        _ failure: Failure?, _ orders: inout Orders, where isMeant: (Operation) -> Bool = { _ in true }
    ) {
        let settled = waiting.filter(isMeant)
        operations.removeAll { operation in settled.contains { $0.id == operation.id } }
        for operation in settled { settle(operation, failure, &orders) }
    }
}

extension PeripheralFailure {
    /// The same for a subscription that outlives links: the end of the manager cancels it.
    fileprivate var ofLasting: PeripheralFailure { if case .peripheral = self { .cancelled } else { self } }

    /// Whether the cause may be the end of the link, which BlueZ reports a moment later: BlueZ completes pending
    /// requests with "unlikely error", and calls of removed objects with "unknown object".
    fileprivate var mayBeLinkLoss: Bool {
        switch self {
        case .characteristic(.notifyFailed(let cause)): cause.attError == .unlikelyError
        case .characteristic(.invalidated): true
        default: false
        }
    }

    /// Returns whether the subscription is requested again later if no operation fails with it.
    fileprivate func isPassing(over transport: NotificationTransport, isResumption: Bool) -> Bool {
        switch self {
        // The daemon has lost the link, and will report that later.
        case .peripheral: true
        // Signals are shared between programs: the daemon is still executing a request of the link before.
        case .characteristic(.acquiredByOther(let cause)):
            isResumption && transport == .signals && cause.name == "org.bluez.Error.InProgress"
        default: false
        }
    }
}
