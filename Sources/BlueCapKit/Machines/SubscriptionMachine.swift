import Foundation

/// The subscription to one characteristic, as a value: one session with the daemon for all subscribers of this manager.
///
/// | state | what the daemon holds for us | ends with |
/// |---|---|---|
/// | off | nothing | startAsked, restored |
/// | starting | our request to begin | startReplied, startFailed |
/// | securing | nothing; the subscription starts again after a pairing | secured, the link's end |
/// | confirming | a session, `Notifying` still false | notifyingChanged, the confirmation timer |
/// | on | a session, or our socket | stopAsked, notifyingChanged, socketClosed |
/// | interrupted | perhaps a session, without values | notifyingChanged, the interruption timer, both requests |
/// | releasing | our request to end | stopReplied |
/// | suspended | nothing; the subscription resumes on the next link | attributesReady, stopAsked, timedOut |
///
/// Every state also ends with linkWentDown, attributeRemoved, invalidated and closed.
///
/// Requests are executed in their order: while a call to the daemon is under way, the others wait. At the end of the
/// link the machine asks the daemon to stop, although no session is left: otherwise the daemon would subscribe again
/// automatically on the next link, before the gate is open, and then once more for our call.
///
/// An operation that requests a subscription fails with the link, or waits for the next one (`outlivesLinks`). In the
/// second case every start of the subscription is a resumption, also the first.
struct SubscriptionMachine {
    /// Identifies a call to the daemon, and the socket that it returns, so that a late reply is recognised.
    struct Call: Hashable, Sendable {
        let rawValue: UInt32
    }

    struct Start: Hashable, Sendable {
        var call: Call
        let transport: NotificationTransport
        /// The operation that fails with this call; `nil` if the subscription is resumed, or outlives links.
        var waiter: OperationID?
        /// Whether an earlier subscription is resumed.
        var isResumption = false
        /// Whether the pairing that it waits for has succeeded, so that it only waits for the characteristic.
        var isSecured = false
        /// Whether the gate was closed with the link of the first attempt.
        var isGateClosed = false
    }

    struct Release: Hashable, Sendable {
        let call: Call
        var waiter: OperationID?
        /// The socket to be closed after the reply.
        let socket: Call?
        /// How the subscription resumes on the next link; `nil` if it does not.
        var wanted: NotificationTransport?
    }

    enum State: Hashable, Sendable {
        case off
        case starting(Start)
        case securing(Start)
        case confirming(Start)
        case on(NotificationTransport, Call)
        case interrupted(NotificationTransport, Call)
        case releasing(Release)
        case suspended(NotificationTransport)
    }

    enum Timer: Hashable, Sendable {
        /// `StartNotify` has been replied to, and `Notifying` is still false.
        case confirmation
        /// Values have ended although the link is up: usually the link is about to be lost.
        case interruption

        var seconds: TimeInterval {
            switch self {
            // The time that a peer has for the CCC write (Bluetooth Core Specification 5.4, volume 3, part F, 3.3.3).
            case .confirmation: 30
            case .interruption: 1
            }
        }
    }

    typealias Failure = PeripheralFailure

    enum Event: Hashable, Sendable {
        /// `outlivesLinks`: a lost link does not settle it; the subscription begins on the next one.
        case startAsked(OperationID, NotificationTransport, outlivesLinks: Bool = false)
        case stopAsked(OperationID)
        /// A subscription of an earlier process is resumed, on this link or on the next one.
        case restored(NotificationTransport)
        /// The daemon has accepted the request and opened the socket, if one was requested. `isNotifying`: the
        /// characteristic's `Notifying` at this moment.
        case startReplied(Call, isNotifying: Bool)
        case startFailed(Call, Failure)
        /// The request was refused for lack of security, and there will be a pairing.
        case securityNeeded(Call)
        /// A pairing was rejected that BlueZ may have begun for this subscription. BlueZ may not reply.
        case pairingRejected(PairingError)
        /// That pairing has ended.
        case secured(PairingError?)
        /// The failure is `nil` also if the daemon replies that there was nothing to stop.
        case stopReplied(Call, Failure?)
        case notifyingChanged(Bool)
        case socketClosed(Call)
        /// `canCall`: the daemon still has the device. `keepsSecuring`: a subscription that waits for a pairing continues to
        /// wait, because that pairing makes a new link.
        case linkWentDown(PeripheralError, canCall: Bool, keepsSecuring: Bool = false)
        /// The link is up; its attributes are not known yet.
        case linkWentUp
        /// The link is up, and the characteristic exists on it.
        case attributesReady
        /// BlueZ has removed the characteristic's object during the link.
        case attributeRemoved
        /// The peripheral no longer has the characteristic.
        case invalidated
        /// The time limit of a request is exceeded.
        case timedOut(OperationID)
        /// Values had been delivered when the gate was closed: later ones follow a gap.
        case valuesCame
        /// The manager ends, or releases the peripheral.
        case closed(canCall: Bool)
        case fired(Timer)
    }

    private enum Request {
        case start(OperationID, NotificationTransport, outlivesLinks: Bool)
        case stop(OperationID)

        var id: OperationID {
            switch self {
            case .start(let id, _, _), .stop(let id): id
            }
        }

        var outlivesLinks: Bool {
            if case .start(_, _, true) = self { true } else { false }
        }
    }

    private enum Attribute {
        case ready
        /// There is no link.
        case away
        /// There is a link, and the peripheral's table is being read, for the first time or because it has changed. Requests
        /// wait for the result.
        case awaited
        /// The characteristic is not in that table.
        case invalid
    }

    private(set) var state: State = .off
    private var attribute: Attribute
    /// Requests that wait for the call under way.
    private var requests: [Request] = []
    /// The operations that wait for the present subscription, on this link or on a later one.
    private var waiting: [OperationID] = []
    /// Whether the present subscription has delivered values, or may have: then a gap is possible.
    private var hasBegun = false
    /// Whether a refusal on this link counted as the end of the link, so that the call is repeated once.
    private var hasRepeatedCall = false
    /// How many links in succession may end while BlueZ executes the request to begin, before the streams receive the error.
    private static let mostUnreportedEnds = 2
    /// How many have.
    private var endedAttempts = 0
    private var lastCall: UInt32 = 0

    /// - Parameter isReady: Whether the link is up and the characteristic exists on it.
    init(isReady: Bool) { attribute = isReady ? .ready : .away }

    /// Whether the subscription delivers values, as far as is known.
    var isNotifying: Bool {
        if case .on = state { true } else { false }
    }

    /// The transport of the subscription, with a link or without; `nil` if there is no subscription.
    var wanted: NotificationTransport? {
        switch state {
        case .off: nil
        case .starting(let start), .securing(let start), .confirming(let start): start.transport
        case .on(let transport, _), .interrupted(let transport, _), .suspended(let transport): transport
        case .releasing(let release): release.wanted
        }
    }

    mutating func event(_ event: Event, into orders: inout Orders) {
        switch event {
        case .startAsked(let id, let transport, let outlivesLinks):
            request(.start(id, transport, outlivesLinks: outlivesLinks), &orders)
        case .stopAsked(let id): request(.stop(id), &orders)
        case .restored(let transport): restored(transport, &orders)
        case .startReplied(let call, let isNotifying): startReplied(call, isNotifying, &orders)
        case .startFailed(let call, let failure): startFailed(call, failure, &orders)
        case .securityNeeded(let call):
            if case .starting(let start) = state, start.call == call { state = .securing(start) }
        case .pairingRejected(let error): pairingRejected(error, &orders)
        case .secured(let error): secured(error, &orders)
        case .stopReplied(let call, let failure): stopReplied(call, failure, &orders)
        case .notifyingChanged(let isNotifying): notifyingChanged(isNotifying, &orders)
        case .socketClosed(let call): socketClosed(call, &orders)
        case .linkWentDown(let error, let canCall, let keepsSecuring):
            if keepsSecuring, case .securing(let start) = state { return keepSecuring(start, &orders) }
            linkWentDown(error, canCall: canCall, &orders)
        case .linkWentUp: if attribute != .ready { attribute = .awaited }
        case .attributesReady: attributesReady(&orders)
        case .attributeRemoved: attributeRemoved(&orders)
        case .invalidated: invalidated(&orders)
        case .timedOut(let id): timedOut(id, &orders)
        case .valuesCame: hasBegun = wanted != nil
        case .closed(let canCall): closed(canCall: canCall, &orders)
        case .fired(let timer): fired(timer, &orders)
        }
    }

    // MARK: Requests

    private mutating func request(_ request: Request, _ orders: inout Orders) {
        if case .start(let id, _, _) = request, let refusal = refusal(of: request) {
            return settle(id, refusal, &orders)
        }
        requests.append(request)
        proceed(&orders)
    }

    /// Executes the requests until a call to the daemon is under way.
    private mutating func proceed(_ orders: inout Orders) {
        while !isWaiting, let request = requests.first {
            if case .start = request, attribute == .awaited { return }
            requests.removeFirst()
            switch request {
            case .start: start(request, &orders)
            case .stop(let id): stop(id, &orders)
            }
        }
    }

    /// Whether a call to the daemon is under way.
    private var isWaiting: Bool {
        switch state {
        case .starting, .securing, .confirming, .releasing: true
        case .off, .on, .interrupted, .suspended: false
        }
    }

    private mutating func start(_ request: Request, _ orders: inout Orders) {
        guard case .start(let id, let transport, let outlivesLinks) = request else { return }
        if let refusal = refusal(of: request) { return settle(id, refusal, &orders) }
        if case .on = state { return settle(id, nil, &orders) }
        if outlivesLinks { waiting.append(id) }
        let waiter = outlivesLinks ? nil : id
        switch state {
        case .off where attribute == .away:
            state = .suspended(transport)
            (hasBegun, endedAttempts) = (false, 0)
        case .off:
            begin(transport, waiter: waiter, &orders)
        case .interrupted(let kept, _):
            cancel(.interruption, &orders)
            begin(kept, waiter: waiter, isResumption: true, &orders)
        case .suspended(let kept):
            if attribute != .away { begin(kept, waiter: waiter, isResumption: true, &orders) }
        case .on, .starting, .securing, .confirming, .releasing:
            break
        }
    }

    private func refusal(of request: Request) -> Failure? {
        request.outlivesLinks && attribute == .away ? nil : refusal
    }

    private var refusal: Failure? {
        switch attribute {
        case .ready, .awaited: nil
        case .away: .peripheral(.disconnected)
        case .invalid: .characteristic(.invalidated)
        }
    }

    private mutating func stop(_ id: OperationID, _ orders: inout Orders) {
        switch state {
        case .off:
            settle(id, refusal, &orders)
        case .suspended:
            state = .off
            settleWaiting(.cancelled, &orders)
            settle(id, nil, &orders)
        case .on(let transport, let call):
            release(transport, call, waiter: id, wanted: nil, &orders)
        case .interrupted(let transport, let call):
            cancel(.interruption, &orders)
            settleWaiting(.cancelled, &orders)
            release(transport, call, waiter: id, wanted: nil, &orders)
        case .starting, .securing, .confirming, .releasing:
            break
        }
    }

    private mutating func settleWaiting(_ failure: Failure?, _ orders: inout Orders) {
        for id in waiting { settle(id, failure, &orders) }
        waiting = []
    }

    private mutating func timedOut(_ id: OperationID, _ orders: inout Orders) {
        if let place = requests.firstIndex(where: { $0.id == id }) {
            requests.remove(at: place)
            return settle(id, .characteristic(.notifyTimeout), &orders)
        }
        if let place = waiting.firstIndex(of: id) {
            waiting.remove(at: place)
            settle(id, .characteristic(.notifyTimeout), &orders)
            return withdrawIfUnwanted(&orders)
        }
        switch state {
        case .starting(var start) where start.waiter == id:
            start.waiter = nil
            state = .starting(start)
        case .securing(var start) where start.waiter == id:
            start.waiter = nil
            state = .securing(start)
        case .confirming(var start) where start.waiter == id:
            start.waiter = nil
            state = .confirming(start)
        case .releasing(var release) where release.waiter == id:
            release.waiter = nil
            state = .releasing(release)
        case .off, .starting, .securing, .confirming, .on, .interrupted, .releasing, .suspended:
            return
        }
        settle(id, .characteristic(.notifyTimeout), &orders)
        withdrawIfUnwanted(&orders)
    }

    /// Cancels a subscription that has not begun and that no operation waits for. The next request for a subscription uses the
    /// call that is under way.
    private mutating func withdrawIfUnwanted(_ orders: inout Orders) {
        guard waiting.isEmpty, !hasBegun else { return }
        switch state {
        case .starting(var start) where start.waiter == nil:
            guard let next = takeNextStart() else { return withdraw(start, &orders) }
            start.waiter = next
            state = .starting(start)
        case .securing(var start) where start.waiter == nil:
            guard let next = takeNextStart() else {
                state = .off
                return orders.append(.closeGate)
            }
            start.waiter = next
            state = .securing(start)
        case .confirming(var start) where start.waiter == nil:
            guard let next = takeNextStart() else {
                cancel(.confirmation, &orders)
                return withdraw(start, &orders)
            }
            start.waiter = next
            state = .confirming(start)
        case .interrupted(let transport, let call):
            cancel(.interruption, &orders)
            release(transport, call, waiter: nil, wanted: nil, &orders)
        case .suspended:
            state = .off
        case .releasing(var release):
            release.wanted = nil
            state = .releasing(release)
        case .off, .starting, .securing, .confirming, .on:
            break
        }
    }

    private mutating func withdraw(_ start: Start, _ orders: inout Orders) {
        release(start.transport, start.call, waiter: nil, wanted: nil, &orders)
    }

    /// The next request, if it is for a subscription; `nil` inside if it outlives links, and so waits for any call.
    private mutating func takeNextStart() -> OperationID?? {
        guard case .start(let id, _, let outlivesLinks)? = requests.first else { return nil }
        requests.removeFirst()
        guard outlivesLinks else { return .some(id) }
        waiting.append(id)
        return .some(nil)
    }

    // MARK: Calls

    private mutating func makeCall() -> Call {
        lastCall &+= 1
        return Call(rawValue: lastCall)
    }

    private mutating func begin(
        _ transport: NotificationTransport, waiter: OperationID?, isResumption: Bool = false,
        _ orders: inout Orders
    ) {
        let call = makeCall()
        if !isResumption { (hasBegun, endedAttempts) = (false, 0) }
        state = .starting(Start(call: call, transport: transport, waiter: waiter, isResumption: isResumption))
        // Before the call, so that the gate is open for the first value.
        orders.append(.openGate(transport, afterGap: hasBegun))
        orders.append(transport == .socket ? .acquire(call) : .callStart(call))
    }

    private mutating func release(
        _ transport: NotificationTransport, _ held: Call, waiter: OperationID?, wanted: NotificationTransport?,
        _ orders: inout Orders
    ) {
        let call = makeCall()
        // The socket is closed after the reply: until then the daemon might consider it in use, and refuse the next one.
        state = .releasing(
            Release(call: call, waiter: waiter, socket: transport == .socket ? held : nil, wanted: wanted))
        orders.append(.closeGate)
        orders.append(.callStop(call))
    }

    private mutating func startReplied(_ call: Call, _ isNotifying: Bool, _ orders: inout Orders) {
        guard case .starting(let start) = state, start.call == call else {
            // The request was cancelled. A session over signals was stopped after it.
            return orders.append(.closeSocket(call))
        }
        guard isNotifying || start.transport == .socket else {
            state = .confirming(start)
            return self.start(.confirmation, &orders)
        }
        started(start, &orders)
    }

    private mutating func started(_ start: Start, _ orders: inout Orders) {
        state = .on(start.transport, start.call)
        hasBegun = true
        hasRepeatedCall = false
        endedAttempts = 0
        orders.append(.markGap)
        if let waiter = start.waiter { settle(waiter, nil, &orders) }
        settleWaiting(nil, &orders)
        proceed(&orders)
    }

    private mutating func startFailed(_ call: Call, _ failure: Failure, _ orders: inout Orders) {
        guard case .starting(let start) = state, start.call == call else { return }
        orders.append(.closeGate)
        if let waiter = start.waiter { settle(waiter, failure, &orders) }
        if !isWantedBeyond(start) {
            state = .off
        } else if attribute == .awaited {
            state = .suspended(start.transport)
        } else if failure.isPassing(over: start.transport, isResumption: start.isResumption) {
            interrupt(start.transport, call, &orders)
        } else if failure.mayBeLinkLoss, !hasRepeatedCall {
            hasRepeatedCall = true
            interrupt(start.transport, call, &orders)
        } else {
            state = .off
            fail(start, failure, &orders)
        }
        proceed(&orders)
    }

    private mutating func pairingRejected(_ error: PairingError, _ orders: inout Orders) {
        guard case .starting(let start) = state else { return }
        let failure = Failure.characteristic(.pairingFailed(error))
        if let waiter = start.waiter { settle(waiter, failure, &orders) }
        if isWantedBeyond(start) { fail(start, failure, &orders) }
        // From 5.67 on BlueZ would take another request for one that is under way.
        withdraw(start, &orders)
    }

    private mutating func secured(_ error: PairingError?, _ orders: inout Orders) {
        guard case .securing(var start) = state else { return }
        if let error {
            state = .starting(start)
            return startFailed(start.call, .characteristic(.pairingFailed(error)), &orders)
        }
        start.isSecured = true
        state = .securing(start)
        startSecured(&orders)
    }

    /// Starts the subscription again if its pairing has succeeded and the characteristic is there.
    private mutating func startSecured(_ orders: inout Orders) {
        guard case .securing(var start) = state, start.isSecured, attribute == .ready else { return }
        if start.isGateClosed { orders.append(.openGate(start.transport, afterGap: hasBegun)) }
        start.call = makeCall()
        (start.isSecured, start.isGateClosed) = (false, false)
        state = .starting(start)
        orders.append(start.transport == .socket ? .acquire(start.call) : .callStart(start.call))
    }

    /// The link is lost because of the pairing that the subscription waits for.
    private mutating func keepSecuring(_ start: Start, _ orders: inout Orders) {
        attribute = .away
        hasRepeatedCall = false
        if !start.isGateClosed { orders.append(.closeGate) }
        var start = start
        start.isGateClosed = true
        state = .securing(start)
    }

    /// Whether BlueZ is executing a request to begin.
    var isStarting: Bool { if case .starting = state { true } else { false } }

    /// Whether the subscription waits for the reply to this request. It may have been withdrawn.
    func awaits(_ call: Call) -> Bool { if case .starting(let start) = state { start.call == call } else { false } }

    /// Whether the subscription waits for a pairing.
    var isSecuring: Bool { if case .securing(let start) = state { !start.isSecured } else { false } }

    /// Whether the subscription waits for the link after a pairing.
    var isAwaitingLink: Bool {
        if case .securing(let start) = state { start.isSecured && attribute == .away } else { false }
    }

    /// Whether the subscription continues if this start fails.
    private func isWantedBeyond(_ start: Start) -> Bool { start.waiter == nil || !waiting.isEmpty || hasBegun }

    /// Fails a subscription that has no operation of its own. First the operations that wait for it fail, then the
    /// streams of a resumed one receive the failure.
    private mutating func fail(_ start: Start, _ failure: Failure, _ orders: inout Orders) {
        settleWaiting(failure, &orders)
        if start.isResumption { orders.append(.deliver(failure)) }
    }

    private mutating func stopReplied(_ call: Call, _ failure: Failure?, _ orders: inout Orders) {
        guard case .releasing(let release) = state, release.call == call else { return }
        if let socket = release.socket { orders.append(.closeSocket(socket)) }
        if let waiter = release.waiter { settle(waiter, failure, &orders) }
        released(release, &orders)
    }

    private mutating func released(_ release: Release, _ orders: inout Orders) {
        state = release.wanted.map { .suspended($0) } ?? .off
        resume(&orders)
        proceed(&orders)
    }

    // MARK: Reports of the daemon

    private mutating func notifyingChanged(_ isNotifying: Bool, _ orders: inout Orders) {
        switch state {
        case .confirming(let start) where isNotifying:
            cancel(.confirmation, &orders)
            started(start, &orders)
        case .on(.signals, let call) where !isNotifying:
            // The gate stays open, so that no value is lost if the daemon restarts the session without a request.
            orders.append(.openGate(.signals, afterGap: true))
            interrupt(.signals, call, &orders)
        case .interrupted(.signals, let call) where isNotifying:
            cancel(.interruption, &orders)
            started(Start(call: call, transport: .signals, waiter: nil), &orders)
        case .off, .starting, .securing, .confirming, .on, .interrupted, .releasing, .suspended:
            break
        }
    }

    private mutating func socketClosed(_ call: Call, _ orders: inout Orders) {
        guard case .on(.socket, call) = state else { return }
        orders.append(.closeGate)
        orders.append(.closeSocket(call))
        interrupt(.socket, call, &orders)
    }

    private mutating func interrupt(_ transport: NotificationTransport, _ call: Call, _ orders: inout Orders) {
        state = .interrupted(transport, call)
        start(.interruption, &orders)
    }

    private mutating func fired(_ timer: Timer, _ orders: inout Orders) {
        switch (timer, state) {
        case (.confirmation, .confirming(let start)):
            if let waiter = start.waiter { settle(waiter, .characteristic(.notifyTimeout), &orders) }
            fail(start, .characteristic(.notifyTimeout), &orders)
            release(start.transport, start.call, waiter: nil, wanted: nil, &orders)
        case (.interruption, .interrupted(let transport, _)):
            begin(transport, waiter: nil, isResumption: true, &orders)
        case (.confirmation, _), (.interruption, _):
            break
        }
    }

    // MARK: The link and the attribute

    private mutating func linkWentDown(_ error: PeripheralError, canCall: Bool, _ orders: inout Orders) {
        attribute = .away
        hasRepeatedCall = false
        reportEndedAttempt(error, &orders)
        var wanted = abandon(.peripheral(error), canCall: canCall, &orders)
        for request in takeRequests() {
            switch request {
            case .start(let id, let transport, outlivesLinks: true):
                if wanted == nil { hasBegun = false }
                wanted = wanted ?? transport
                waiting.append(id)
            case .start(let id, _, _):
                settle(id, .peripheral(error), &orders)
            case .stop(let id):
                wanted = nil
                settleWaiting(.cancelled, &orders)
                settle(id, .peripheral(error), &orders)
            }
        }
        if case .releasing(var release) = state {
            release.wanted = wanted
            state = .releasing(release)
        } else {
            state = wanted.map { .suspended($0) } ?? .off
        }
    }

    /// A peripheral can refuse a subscription by ending the link, and BlueZ up to 5.66 does so if the value needs a pairing. One or
    /// two links may end for another reason. From the third in succession on, the streams receive the error; the subscription is
    /// still requested on the next link.
    private mutating func reportEndedAttempt(_ error: PeripheralError, _ orders: inout Orders) {
        guard case .starting(let start) = state, error != .forcedDisconnect, isWantedBeyond(start) else { return }
        endedAttempts += 1
        if endedAttempts > Self.mostUnreportedEnds { orders.append(.deliver(.peripheral(error))) }
    }

    private mutating func attributesReady(_ orders: inout Orders) {
        guard attribute != .ready else { return }
        attribute = .ready
        resume(&orders)
        startSecured(&orders)
        proceed(&orders)
    }

    private mutating func restored(_ transport: NotificationTransport, _ orders: inout Orders) {
        guard case .off = state else { return }
        state = .suspended(transport)
        hasBegun = false
        resume(&orders)
    }

    private mutating func attributeRemoved(_ orders: inout Orders) {
        guard attribute == .ready else { return }
        attribute = .awaited
        // No session is left to stop. BlueZ will still reply to the call under way.
        switch state {
        case .on(let transport, let call), .interrupted(let transport, let call):
            if case .interrupted = state { cancel(.interruption, &orders) }
            if transport == .socket { orders.append(.closeSocket(call)) }
            orders.append(.closeGate)
            state = .suspended(transport)
        case .confirming(let start):
            cancel(.confirmation, &orders)
            orders.append(.closeGate)
            if let waiter = start.waiter { settle(waiter, .characteristic(.invalidated), &orders) }
            state = isWantedBeyond(start) ? .suspended(start.transport) : .off
            proceed(&orders)
        case .securing(let start):
            orders.append(.closeGate)
            if let waiter = start.waiter { settle(waiter, .characteristic(.invalidated), &orders) }
            state = isWantedBeyond(start) ? .suspended(start.transport) : .off
            proceed(&orders)
        case .off, .starting, .releasing, .suspended:
            break
        }
    }

    private mutating func resume(_ orders: inout Orders) {
        guard attribute == .ready, case .suspended(let transport) = state else { return }
        begin(transport, waiter: nil, isResumption: true, &orders)
    }

    private mutating func invalidated(_ orders: inout Orders) {
        guard attribute != .invalid else { return }
        attribute = .invalid
        // The object of a call does not exist any more.
        _ = abandon(.characteristic(.invalidated), canCall: false, &orders)
        settleRequests(.characteristic(.invalidated), &orders)
        settleWaiting(.characteristic(.invalidated), &orders)
        state = .off
        orders.append(.finishNotifications(.characteristic(.invalidated)))
    }

    private mutating func closed(canCall: Bool, _ orders: inout Orders) {
        attribute = .away
        _ = abandon(.peripheral(.disconnected), canCall: canCall, &orders)
        settleRequests(.peripheral(.disconnected), &orders)
        settleWaiting(.cancelled, &orders)
        state = .off
        orders.append(.finishNotifications(nil))
    }

    private mutating func takeRequests() -> [Request] {
        defer { requests = [] }
        return requests
    }

    private mutating func settleRequests(_ failure: Failure, _ orders: inout Orders) {
        for request in takeRequests() {
            settle(request.id, request.outlivesLinks ? failure.ofLasting : failure, &orders)
        }
    }

    /// Fails the operation of the call under way, stops the daemon's session, and returns the transport of the
    /// subscription that would have to be resumed. If the machine has to wait for that call, the state is `releasing`
    /// afterwards.
    private mutating func abandon(
        _ failure: Failure, canCall: Bool, _ orders: inout Orders
    ) -> NotificationTransport? {
        var wanted: NotificationTransport?
        var held: (transport: NotificationTransport, call: Call)?
        switch state {
        case .off:
            break
        case .suspended(let transport):
            wanted = transport
        case .starting(let start), .confirming(let start):
            if case .confirming = state { cancel(.confirmation, &orders) }
            if let waiter = start.waiter { settle(waiter, failure, &orders) }
            if isWantedBeyond(start) { wanted = start.transport }
            held = (start.transport, start.call)
        case .securing(let start):
            if let waiter = start.waiter { settle(waiter, failure, &orders) }
            if isWantedBeyond(start) { wanted = start.transport }
            orders.append(.closeGate)
            state = .off
        case .on(let transport, let call):
            wanted = transport
            held = (transport, call)
        case .interrupted(let transport, let call):
            cancel(.interruption, &orders)
            wanted = transport
            held = (transport, call)
        case .releasing(let release):
            if let waiter = release.waiter { settle(waiter, failure, &orders) }
            if let socket = release.socket { orders.append(.closeSocket(socket)) }
            wanted = release.wanted
            state = canCall ? .releasing(Release(call: release.call, waiter: nil, socket: nil, wanted: nil)) : .off
        }
        if let held {
            if held.transport == .socket { orders.append(.closeSocket(held.call)) }
            if canCall {
                // A session over signals: the socket is closed already.
                release(.signals, held.call, waiter: nil, wanted: nil, &orders)
            } else {
                orders.append(.closeGate)
            }
        }
        return wanted
    }

    // MARK: Orders

    private func settle(_ id: OperationID, _ failure: Failure?, _ orders: inout Orders) {
        orders.append(.settle(id, failure.map { .failed($0) } ?? .done))
    }

    private func start(_ timer: Timer, _ orders: inout Orders) {
        orders.append(.startTimer(.subscription(orders.subject.characteristic, timer), timer.seconds))
    }

    private func cancel(_ timer: Timer, _ orders: inout Orders) {
        orders.append(.cancelTimer(.subscription(orders.subject.characteristic, timer)))
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
