import BlueCapBlueZ
import Foundation
import BlueCapGATT

/// Identifies an operation that a caller waits for, such as a read or a discovery. Each is settled exactly once.
struct OperationID: Hashable, Sendable {
    let rawValue: UInt64

    /// An operation without a caller.
    static let none = OperationID(rawValue: .max)
}

extension OperationID: TableKey {
    var number: UInt64 { rawValue }
}

/// Why an operation failed, as one of the documented errors.
enum PeripheralFailure: Error, Hashable {
    case peripheral(PeripheralError)
    case service(ServiceError)
    case characteristic(CharacteristicError)
    case bus(BusError)
    case pairing(PairingError)
    /// The application has cancelled it.
    case cancelled

    var error: any Error {
        switch self {
        case .peripheral(let error): error
        case .service(let error): error
        case .characteristic(let error): error
        case .bus(let error): error
        case .pairing(let error): error
        case .cancelled: CancellationError()
        }
    }
}

/// Everything that a manager decides about one peripheral, as a value: events go in, orders come out.
///
/// It connects the peripheral's machines: a change of the link is passed to everything that uses the link. There is one for
/// each peripheral that the application has used, until the manager forgets the peripheral.
struct PeripheralState {
    private(set) var status = LinkStatus()
    private var managerState = ManagerState.unknown
    private(set) var connection: ConnectionMachine
    var attributes = AttributeState()
    private(set) var subscriptions = Subscriptions()
    private(set) var pairing = PairingState()
    /// An attempt to connect that waits until it is known whether BlueZ has forgotten calls of the last link, and then until
    /// BlueZ has removed the device.
    private var heldAttempt: Order.Action?
    /// Whether BlueZ is removing the device, so that it discovers the services again.
    private var isRefreshing = false
    /// Why the last link ended; `nil` before.
    private(set) var lastLoss: DisconnectReason?
    /// BlueZ's reason for the end of the last link, from 5.83 on.
    private(set) var linkEnd: LinkEnd?

    private var linkRequests = LinkRequests()
    /// The operations that need the link exclusively, one after the other.
    private var runs = OperationQueueMachine<OperationID, PeripheralFailure?>()
    /// The time limits of runs that are not settled, in seconds.
    private var runTimeouts: [OperationID: TimeInterval] = [:]

    /// Subscriptions of an earlier process that have not been resumed so far.
    /// `wasTried`: whether it was tried on the present link.
    private var restored: [(subscription: RestorationState.Subscription, wasTried: Bool)] = []

    init(backOff: BackOff) {
        connection = ConnectionMachine(backOff: backOff)
    }

    // MARK: Queries

    private var isUsable: Bool { managerState == .poweredOn }

    /// Whether there is a link, or the application wants one.
    var isLinkExpected: Bool { connection.state == .connected || connection.isWanted }

    /// Whether the application uses this peripheral, or the end of its use is still under way.
    var isInUse: Bool { connection.isInUse || !runs.isIdle || !pairing.isIdle }

    /// Whether the application still needs this peripheral after `terminate`.
    var isWanted: Bool { connection.isWanted || !runs.isIdle }

    /// Whether the application waits for this peripheral or uses it, so that it has to be on the list.
    var isNeeded: Bool { connection.isWanted && connection.isInUse || !runs.isIdle }

    /// The number of runs that are not settled.
    var runCount: Int { runs.count }

    /// Whether there is a subscription, with a link or without, or one of an earlier process is about to be resumed.
    func isSubscribed(_ id: AttributeID) -> Bool {
        subscriptions.isWanted(id)
            || restored.contains { !$0.wasTried && attributes.table.id(of: $0.subscription) == id }
    }

    // MARK: Reports

    /// BlueZ's device has appeared, changed or disappeared, or its daemon has.
    mutating func statusChanged(_ new: LinkStatus, into orders: inout Orders) {
        let old = status
        (status, orders.status) = (new, new)
        if new.isConnected {
            linkEnd = nil
        } else if let end = new.linkEnd {
            linkEnd = end
        }
        if new.device != old.device { attributes.deviceRemoved() }
        pairing.factsChanged(from: old, to: new, isOperating: isPairingOnDemand, into: &orders)
        connect(.deviceChanged(wasConnected: old.isConnected), into: &orders)
        guard new.device != nil else { return }
        if case .connecting = connection.state {
            // From 5.83 on BlueZ replies when the link is encrypted.
            if new.isConnected, !old.isConnected {
                pairing.linkWentUp(new, limit: PairingState.encryptionLimit, into: &orders)
            }
        } else if !new.isConnected {
            pairing.endEncryption(into: &orders)
        }
        if connection.state == .connected { attributes.resolved(new.areServicesResolved, into: &orders) }
    }

    /// The manager's state has changed: whether operations are possible.
    mutating func managerStateChanged(_ state: ManagerState, into orders: inout Orders) {
        let wasUsable = isUsable
        managerState = state
        if isUsable != wasUsable { connect(.adapterUsable(isUsable), into: &orders) }
        if !isUsable { endPairing(.unavailable(.unusable(state)), into: &orders) }
    }

    mutating func fired(_ timer: Order.Timer, into orders: inout Orders) {
        switch timer {
        case .discovery(let timer): attributes.fired(timer, into: &orders)
        case .retry(let lane): attributes.retryDue(lane, into: &orders)
        case .transfer(let id): attributes.transferDue(id, into: &orders)
        case .connection(let timer): connect(.timerFired(timer), into: &orders)
        case .search:
            pairing.searchTimedOut(into: &orders)
            endSecuring(.timedOut, into: &orders)
        case .encryption: pairing.encryptionDue(into: &orders)
        case .scanTimeout, .adapterGrace, .expirySweep: break
        }
    }

    /// The time limit of an operation has passed.
    /// - Parameter obstacle: Why a pairing that is under way has not progressed, if that is known.
    mutating func timedOut(_ id: OperationID, _ obstacle: PairingError?, into orders: inout Orders) {
        if runs.position(of: id) != nil {
            return cancelRun(id, .peripheral(runs.running == id ? .runTimeout : .connectionTimeout), into: &orders)
        }
        _ =
            subscriptions.end(id, .timedOut(id), into: &orders) || pairing.timedOut(id, obstacle, into: &orders)
            || endLinkRequest(id, .peripheral(.connectionTimeout), into: &orders)
            || attributes.end(id, .timedOut, into: &orders)
    }

    /// The caller of an operation no longer waits: ends the operation, unless BlueZ is executing it. Returns false if the
    /// operation is settled.
    mutating func withdraw(_ id: OperationID, into orders: inout Orders) -> Bool {
        subscriptions.end(id, .withdrawn(id), into: &orders) || pairing.withdraw(id, into: &orders)
            || endLinkRequest(id, .cancelled, into: &orders) || attributes.end(id, .withdrawn, into: &orders)
    }

    /// Applies the consequences of an event to the subscriptions and the runs. Called after every event.
    mutating func follow(into orders: inout Orders) {
        if attributes.isLinkDead || pairing.isLinkDead, connection.state == .connected {
            connect(.linkDied, into: &orders)
        }
        if connection.isReconnectDue, !isRefreshing { connect(.reconnectAsked(delay: 0), into: &orders) }
        if !connection.isInUse, !connection.isWanted, !isRefreshing {
            attributes.failNextLink(.peripheral(connection.lastError ?? .disconnected), into: &orders)
        }
        if !connection.isInUse, pairing.isIdle {
            attributes.linkUnwanted(into: &orders)
            subscriptions.linkUnwanted(into: &orders)
        }
        linkRequests.follow(connection, into: &orders)
        followRuns(into: &orders)
        followVerification(into: &orders)
        subscriptions.follow(attributes, isPairing: !pairing.isIdle && isUsable, into: &orders)
        resumeRestored(into: &orders)
        guard attributes.isSecuring || subscriptions.isSecuring else { return }
        // Another manager or program has paired meanwhile.
        if status.isLinkSecure, pairing.isIdle { return endSecuring(nil, into: &orders) }
        noteSpoiledDevice()
        pairing.needed(status, into: &orders)
    }

    /// The manager ends: all operations fail, and the link is released.
    mutating func closed(keepingLinks: Bool, into orders: inout Orders) {
        pairing.fail(.cancelled, into: &orders)
        cancelRuns(.peripheral(.disconnected), into: &orders)
        subscriptions.sendAll(.closed, into: &orders)
        connect(.closed(keepingLinks: keepingLinks), into: &orders)
        attributes.closed(into: &orders)
    }

    // MARK: The connection

    /// Passes an event to the connection, and its changes of the link to everything that uses the link.
    mutating func connect(_ event: ConnectionMachine.Event, into orders: inout Orders) {
        var event = event
        if case .connectReplied(let attempt, let error?, nil) = event, connection.hasFallen || error == .noLink,
            let meaning = pairing.attemptFell(status, into: &orders)
        {
            event = .connectReplied(attempt, error, meaning)
        }
        decide(event, into: &orders)
    }

    private mutating func decide(_ event: ConnectionMachine.Event, into orders: inout Orders) {
        let start = orders.count
        (orders.status, orders.isUsable) = (status, isUsable)
        connection.event(event, into: &orders)
        for order in orders.take(from: start) {
            if case .callConnect = order.action, attributes.hasLostCalls, status.device != nil {
                heldAttempt = order.action
                orders.append(.awaitReplies)
                continue
            }
            orders.pending.append(order)
            switch order.action {
            case .linkWentUp: linkWentUp(into: &orders)
            case .linkWentDown(let loss): linkWentDown(loss, into: &orders)
            case .cancelConnect where heldAttempt.take() != nil:
                decide(.connectReplied(connection.lastAttempt, .noLink), into: &orders)
            case .forget: ended(into: &orders)
            default: break
            }
        }
    }

    /// A caller waits for a link, for which a try begins unless there is one.
    /// - Parameter timeout: The time limit of the try, in seconds.
    mutating func linkAsked(_ id: OperationID, timeout: TimeInterval, into orders: inout Orders) {
        let isOwnTry = connection.number == linkRequests.number && connection.state != .connected
        if connection.isWanted, connection.isLinkAhead, !isOwnTry {
            // The delay before a try that is repeated anyway would begin again with each call.
            if !connection.policy.reconnects { connect(.reconnectAsked(delay: 0), into: &orders) }
        } else {
            let longest = max(timeout, isOwnTry ? linkRequests.longestTimeout : 0)
            let policy = ConnectionPolicy(
                timeoutRetries: 0, disconnectRetries: 0, timeout: longest.isFinite ? longest : nil)
            connect(.connectAsked(policy), into: &orders)
            linkRequests.number = connection.number
        }
        linkRequests.add(id, timeout: timeout)
    }

    /// Ends the wait of a caller for a link. The try ends too if it was made for such calls alone. Returns false if the caller does
    /// not wait.
    private mutating func endLinkRequest(
        _ id: OperationID, _ failure: PeripheralFailure, into orders: inout Orders
    ) -> Bool {
        guard linkRequests.remove(id) else { return false }
        orders.append(.settle(id, .failed(failure)))
        if linkRequests.isEmpty, connection.number == linkRequests.number {
            let report: ConnectionMachine.Report = failure == .cancelled ? .forced : .timedOut
            connect(.connectWithdrawn(report, leavingFor: otherPurpose), into: &orders)
        }
        return true
    }

    /// What needs the link besides the caller that no longer does.
    private var otherPurpose: ConnectionMachine.Purpose? {
        if !linkRequests.isEmpty || attributes.awaitsNextLink { return .application }
        return !runs.isIdle ? .run : pairing.isVerifying ? .pairing : nil
    }

    /// Nothing reads the stream of a connection any more, which was to last as long as that.
    mutating func readersEnded(_ number: ConnectionMachine.ConnectionNumber, into orders: inout Orders) {
        guard number == connection.number else { return }
        if !linkRequests.isEmpty { linkRequests.number = number }
        connect(.readersEnded(leavingFor: otherPurpose), into: &orders)
    }

    private mutating func linkWentUp(into orders: inout Orders) {
        linkEnd = nil
        attributes.hasFailedToPair = false
        pairing.linkWentUp(status, into: &orders)
        attributes.linkUp(isResolved: status.areServicesResolved, into: &orders)
    }

    /// BlueZ has replied to each call of the last link that it has not forgotten.
    ///
    /// If it has forgotten any, it removes the device before the next link, so that the values can be used again; not a
    /// bond, or a device that another program has connected since.
    mutating func repliesCame(into orders: inout Orders) {
        attributes.repliesCame()
        if pairing.isChecking {
            noteSpoiledDevice()
            pairing.checked(status, into: &orders)
        }
        // After a removal for the pairing, the attempt is resumed too.
        guard heldAttempt != nil, !pairing.isRemoving else { return }
        if attributes.isSpoiled, mayRemove { return orders.append(.removeDevice) }
        resumeAttempt(into: &orders)
    }

    private mutating func resumeAttempt(into orders: inout Orders) {
        if let attempt = heldAttempt.take() { orders.append(attempt) }
    }

    /// Fails the operations that are under way, because the link is lost or is being ended.
    private mutating func linkWentDown(_ loss: DisconnectReason, into orders: inout Orders) {
        lastLoss = loss
        for index in restored.indices { restored[index].wasTried = false }
        let error = pairing.linkWentDown(isLost: loss == .linkLost, reason: linkEnd, status, into: &orders)
        attributes.linkDown(
            error.map { .keysMissing($0) } ?? (loss == .application ? .linkEnded : .linkLost),
            keepsSecuring: loss == .linkLost && !pairing.isIdle, into: &orders)
        if let error {
            connection.event(.keysMissing, into: &orders)
            orders.append(.report(connection.number, .failed(.pairing(error))))
            if pairing.isVerifying { endVerification(error, into: &orders) }
        }
        guard let id = runs.running else { return }
        let lost = error.map { .pairing($0) } ?? PeripheralError.disconnected
        cancelRun(id, .peripheral(loss == .application ? .forcedDisconnect : lost), into: &orders)
    }

    /// The application has terminated its use of the peripheral.
    private mutating func ended(into orders: inout Orders) {
        endRefresh(into: &orders)
        cancelRuns(.peripheral(.forcedDisconnect), into: &orders)
        attributes.cancelLookUps(into: &orders)
        subscriptions.sendAll(.closed, into: &orders)
    }

    /// Ends the link, and everything that needs it, at the request of the application.
    mutating func disconnectAsked(into orders: inout Orders) {
        endRefresh(into: &orders)
        connect(.disconnectAsked, into: &orders)
        cancelRuns(.peripheral(.forcedDisconnect), into: &orders)
    }

    /// Does the same when a manager disconnects all its peripherals: only one that is connected, or to be, reports it.
    mutating func disconnectIfInUse(into orders: inout Orders) {
        guard connection.isInUse || isRefreshing else {
            return cancelRuns(.peripheral(.forcedDisconnect), into: &orders)
        }
        disconnectAsked(into: &orders)
    }

    // MARK: Refreshing services

    /// Discovers all services on the next link, after BlueZ has removed the device; ends the present link.
    mutating func refreshAsked(_ id: OperationID, into orders: inout Orders) {
        isRefreshing = true
        attributes.discoverServicesOnNextLink(id)
        if connection.state == .connected {
            // A connection that is to last is reported as lost, and made again.
            connect(connection.policy.reconnects ? .linkDied : .disconnectAsked, into: &orders)
        }
        orders.append(.removeDevice)
    }

    private mutating func endRefresh(into orders: inout Orders) {
        isRefreshing = false
        attributes.failNextLink(into: &orders)
    }

    // MARK: Subscriptions

    /// The application begins or ends a subscription.
    mutating func subscription(
        _ id: AttributeID, _ event: SubscriptionMachine.Event, into orders: inout Orders
    ) {
        if case .stopAsked = event { restored.removeAll { attributes.table.id(of: $0.subscription) == id } }
        subscriptions.event(id, event, attributes, into: &orders)
    }

    /// BlueZ's reply to a call of a subscription, or another report about it.
    mutating func subscriptionChanged(
        _ id: AttributeID, _ event: SubscriptionMachine.Event, into orders: inout Orders
    ) {
        guard case .failed(let call, .characteristic(.pairingRequired(_, let failure))) = event else {
            return subscriptions.send(id, event, into: &orders)
        }
        let required = CharacteristicError.pairingRequired(status.isPaired ? .authentication : .encryption, failure)
        subscriptions.send(
            id, pairsOnDemand ? .securityNeeded(call) : .failed(call, .characteristic(required)), into: &orders)
    }

    // MARK: Pairing

    /// Whether a subscription that lacks security waits for a pairing.
    var pairsOnDemand: Bool { attributes.pairsOnDemand && !status.isPaired }

    /// Whether BlueZ may be pairing because of an operation.
    var isPairingOnDemand: Bool {
        pairing.policy.pairsForOperations && (attributes.isBusy || subscriptions.isStarting)
    }

    /// BlueZ asks about a pairing. Returns whether it is one of this manager's.
    mutating func agentAsked() -> Bool {
        // What BlueZ asks during a cancellation comes late.
        if pairing.isPairing { return !pairing.isCancelling }
        if isPairingOnDemand { pairing.askedOnDemand() }
        return isPairingOnDemand
    }

    mutating func policyChanged(_ policy: PairingPolicy) {
        pairing.policy = policy
        attributes.policyChanged(pairsForOperations: policy.pairsForOperations)
    }

    mutating func pairingAsked(
        _ request: PairingState.Request, _ id: OperationID, timeout: TimeInterval, into orders: inout Orders
    ) {
        guard isUsable else {
            return orders.append(.settle(id, .failed(.pairing(.unavailable(.unusable(managerState))))))
        }
        guard pairing.policy.allowsPairing || request == .unpair || status.isBonded && request != .repair else {
            return orders.append(.settle(id, .failed(.pairing(.notAllowed))))
        }
        if request == .unpair || request == .repair { disconnectIfInUse(into: &orders) }
        noteSpoiledDevice()
        pairing.asked(request, id, timeout: timeout, status, into: &orders)
    }

    /// A pairing would not help if BlueZ refuses the operation that needs it.
    private mutating func noteSpoiledDevice() {
        pairing.mustRemove = attributes.isSpoiled && mayRemove
        if attributes.hasLostCalls, !attributes.isSpoiled, mayRemove { pairing.mustRemove = nil }
    }

    /// Whether the device may be removed to make BlueZ accept operations again: not a bond, and not a device that
    /// another program has connected.
    private var mayRemove: Bool {
        !status.isPaired && status.device != nil && (!status.isConnected || connection.isOurs)
    }

    /// This process has rejected a request of BlueZ's agent about the device, and has not called `Pair`. So BlueZ pairs
    /// because of an operation, perhaps one of this manager, or because the adapter has lost the keys of a bond.
    ///
    /// From 5.67 on the link may stay up without another response (Documentation/BlueZNotes.md), and before, it
    /// ends. So it is ended in each version.
    ///
    /// A pairing that the application has requested meanwhile, and that BlueZ has not begun, is refused with it.
    mutating func pairingRejected(_ error: PairingError, into orders: inout Orders) {
        guard !pairing.isPairing else { return }
        cancelPairing(error, into: &orders)
        pairing.failEncryption()
        guard attributes.isBusy || subscriptions.isStarting else { return }
        attributes.refuse(error, into: &orders)
        subscriptions.sendAll(.pairingRejected(error), into: &orders)
    }

    /// Makes a link to a bonded peripheral, until one was encrypted or it is known why none is: BlueZ reports the bond also if
    /// the peripheral does not have its keys any more.
    private mutating func followVerification(into orders: inout Orders) {
        guard pairing.isVerifying else {
            if connection.purpose == .pairing { connect(.linkNotNeeded(.pairing), into: &orders) }
            return
        }
        guard connection.state == .disconnected || connection.state == .closed else { return }
        if case .pairing(let error)? = connection.lastError { return endVerification(error, into: &orders) }
        guard pairing.nextLinkToVerify() else { return endVerification(.linkLost, into: &orders) }
        connect(.linkNeeded(.pairing), into: &orders)
    }

    private mutating func endVerification(_ error: PairingError, into orders: inout Orders) {
        pairing.verified(error, status, into: &orders)
        endSecuring(error, into: &orders)
    }

    mutating func cancelPairing(_ error: PairingError = .cancelled, into orders: inout Orders) {
        pairing.cancelAsked(error, into: &orders)
        // The reply to `Pair` ends the operations that wait for it. A removal has no reply that ends them.
        if !pairing.isPairing { endSecuring(error, into: &orders) }
    }

    /// Fails everything that waits for a pairing, and cancels the pairing.
    mutating func endPairing(_ error: PairingError, into orders: inout Orders) {
        pairing.fail(error, into: &orders)
        endSecuring(error, into: &orders)
    }

    private mutating func endSecuring(_ error: PairingError?, into orders: inout Orders) {
        attributes.secured(error, into: &orders)
        subscriptions.sendAll(.secured(error), into: &orders)
    }

    /// The user has answered whether the manager may pair for an operation.
    mutating func consentAnswered(
        _ attempt: PairingState.Attempt, _ error: PairingError?, at now: Date, into orders: inout Orders
    ) {
        guard let error else { return pairing.agreed(attempt, status, into: &orders) }
        pairReplied(attempt, error, at: now, into: &orders)
    }

    mutating func pairReplied(
        _ attempt: PairingState.Attempt, _ error: PairingError?, at now: Date, into orders: inout Orders
    ) {
        guard let isLinkOurs = pairing.replied(attempt, error, status, at: now, into: &orders) else { return }
        attributes.hasFailedToPair = error != nil
        if error == nil, status.isConnected { connect(.linkMade(isOurs: isLinkOurs), into: &orders) }
        endSecuring(error, into: &orders)
    }

    /// BlueZ has removed the device, or has refused to.
    mutating func removed(_ error: PairingError?, into orders: inout Orders) {
        pairing.removed(error, status, into: &orders)
        resumeAttempt(into: &orders)
        guard isRefreshing else { return }
        isRefreshing = false
        switch error {
        case .unavailable(let failure)?, .removalFailed(let failure)?:
            attributes.failNextLink(.bus(failure), into: &orders)
        default: break
        }
        connect(.reconnectAsked(delay: 0), into: &orders)
    }

    // MARK: Runs

    // A run waits for its turn, then for a link, and is then executed. It begins once and is settled once, and the next
    // one begins when its work has ended. A link that was established for runs alone is kept from one run to the next.

    /// - Parameter timeout: The time limit from the run's turn on, in seconds.
    mutating func runAsked(_ id: OperationID, timeout: TimeInterval, into orders: inout Orders) {
        if timeout.isFinite { runTimeouts[id] = timeout }
        runEvent(.enqueued(id), into: &orders)
    }

    mutating func cancelRun(_ id: OperationID, _ failure: PeripheralFailure, into orders: inout Orders) {
        runEvent(.cancelled(id, failure), into: &orders)
    }

    mutating func cancelRuns(_ failure: PeripheralFailure, into orders: inout Orders) {
        runEvent(.allCancelled(failure), into: &orders)
    }

    mutating func runEnded(_ id: OperationID, into orders: inout Orders) { runEvent(.finished(id, nil), into: &orders) }

    /// Starts the first run of the queue when there is a link, or fails it if there will be none.
    private mutating func followRuns(into orders: inout Orders) {
        while let id = runs.current, runs.running == nil {
            switch connection.state {
            case .connected:
                runEvent(.began(id), into: &orders)
                orders.append(.beginRun(id))
            case .disconnected, .closed:
                runEvent(.finished(id, .peripheral(connection.lastError ?? .disconnected)), into: &orders)
            case .waiting, .connecting, .ending:
                return
            }
        }
    }

    private mutating func runEvent(
        _ event: OperationQueueMachine<OperationID, PeripheralFailure?>.Event, into orders: inout Orders
    ) {
        let wasIdle = runs.isIdle
        for effect in runs.event(event) {
            switch effect {
            case .begin(let id):
                if let timeout = runTimeouts[id] { orders.append(.limit(id, timeout)) }
                connect(.linkNeeded(.run), into: &orders)
            case .stop(let id):
                orders.append(.stopRun(id))
            case .settle(let id, let failure):
                runTimeouts[id] = nil
                orders.append(.settle(id, failure.map { .failed($0) } ?? .done))
            }
        }
        if !wasIdle, runs.isIdle { connect(.linkNotNeeded(.run), into: &orders) }
    }

    // MARK: Restoration

    /// Returns what is kept of this peripheral beyond the process; `nil` if the application does not want it connected.
    func kept(_ key: PeripheralKey) -> RestorationState.Connection? {
        guard connection.isWanted else { return nil }
        let policy = connection.policy
        var kept = RestorationState.Connection(
            address: key.address, addressType: key.addressType,
            timeoutRetries: policy.timeoutRetries == .max ? nil : policy.timeoutRetries,
            disconnectRetries: policy.disconnectRetries == .max ? nil : policy.disconnectRetries,
            connectionTimeout: policy.timeout)
        kept.subscriptions = subscriptions.wanted.compactMap { attributes.table.kept($0.id, $0.transport) }
        // Those that have not been resumed so far.
        for entry in restored where !kept.subscriptions.contains(entry.subscription) {
            kept.subscriptions.append(entry.subscription)
        }
        return kept
    }

    /// Connects as in an earlier process, without a caller that waits for it.
    mutating func restore(_ kept: RestorationState.Connection, into orders: inout Orders) {
        restored = kept.subscriptions.map { ($0, false) }
        let policy = ConnectionPolicy(
            timeoutRetries: kept.timeoutRetries ?? .max, disconnectRetries: kept.disconnectRetries ?? .max,
            timeout: kept.connectionTimeout, reconnects: true)
        connect(.connectAsked(policy), into: &orders)
    }

    /// The subscriptions of an earlier process that have not been resumed so far.
    var restoredSubscriptions: [RestorationState.Subscription] { restored.map(\.subscription) }

    /// Removes a subscription of an earlier process, unless it has been resumed.
    mutating func removeRestored(where isRemoved: (RestorationState.Subscription) -> Bool) {
        restored.removeAll { isRemoved($0.subscription) }
    }

    /// Subscribes as in an earlier process, when the attributes are known: once on each link, until it has succeeded.
    private mutating func resumeRestored(into orders: inout Orders) {
        guard !restored.isEmpty, attributes.isReady else { return }
        restored.removeAll { entry in
            // A characteristic that the peripheral no longer has cannot be subscribed to.
            guard let id = attributes.table.id(of: entry.subscription) else { return true }
            return subscriptions.isNotifying(id)
        }
        for index in restored.indices where !restored[index].wasTried {
            guard let id = attributes.table.id(of: restored[index].subscription) else { continue }
            restored[index].wasTried = true
            subscriptions.event(id, .restored(restored[index].subscription.transport), attributes, into: &orders)
        }
    }
}

extension AttributeTable {
    fileprivate func kept(
        _ id: AttributeID, _ transport: NotificationTransport
    ) -> RestorationState.Subscription? {
        guard let record = self[id], let handle = record.handle.attHandle,
            let service = record.parent.flatMap({ self[$0] })
        else { return nil }
        return RestorationState.Subscription(
            service: service.uuid, characteristic: record.uuid, handle: handle,
            overSocket: transport == .socket ? true : nil)
    }

    /// Returns the characteristic of a kept subscription: the one with that handle, or the only one with those UUIDs if
    /// the handles have changed.
    fileprivate func id(of kept: RestorationState.Subscription) -> AttributeID? {
        let names = [kept.handle, nil].map {
            AttributeName(service: kept.service, characteristic: kept.characteristic, handle: $0)
        }
        return names.lazy.compactMap { try? find($0).get() }.first { self[$0]?.isPresent == true }
    }
}
