/// The subscription to one characteristic, as a value: one session with the daemon for all who listen in this manager.
///
/// | state | what the daemon holds for us | leaves it by |
/// |---|---|---|
/// | off | nothing | startAsked |
/// | starting | it is asked to | startReplied, startFailed |
/// | confirming | a session, `Notifying` still false | notifyingChanged, the confirmation timer |
/// | on | a session, or our socket | stopAsked, notifyingChanged, socketClosed |
/// | interrupted | perhaps something, though nothing comes | notifyingChanged, the interruption timer, both asks |
/// | releasing | it is asked to give it up | stopReplied |
/// | suspended | nothing; the wish is kept for the next link | attributesReady, stopAsked, timedOut |
///
/// And from every state by linkWentDown, attributeRemoved, invalidated and closed.
///
/// What users ask is done in the order in which they ask: while a call to the daemon is under way, the rest waits. At the
/// end of the link the daemon is told to stop, although there is nothing to be stopped: it would otherwise subscribe
/// again by itself when the link returns, before anybody here listens, and then once more when we ask.
///
/// An operation that asks for a subscription fails with the link, or waits for the next one (`outlivesLinks`): then the
/// subscription is one that is taken up again, from its first start on.
struct SubscriptionMachine {
    private enum Ask {
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
        /// There is a link, and the peripheral's table is being read, for the first time or because something in it
        /// changed: what is asked for waits for that.
        case awaited
        /// It is not in that table.
        case invalid
    }

    private(set) var state: State = .off
    private var attribute: Attribute
    /// What was asked for and has to wait for a call under way.
    private var asks: [Ask] = []
    /// Those that wait for the present subscription, on this link or on a later one.
    private var waiting: [OperationID] = []
    /// Whether values of the present subscription came, or may have come: then a gap can be in them.
    private var hasBegun = false
    /// Whether a refusal on this link was taken for the link's end, and the call is made once more.
    private var hasDoubted = false
    private var lastCall: UInt32 = 0

    /// - Parameter isReady: whether the link is up and the attribute on it.
    init(isReady: Bool) { attribute = isReady ? .ready : .away }

    /// Whether values come, as far as is known.
    var isNotifying: Bool {
        if case .on = state { true } else { false }
    }

    /// How values are wanted, with a link or without; `nil` where they are not.
    var wish: NotificationTransport? {
        switch state {
        case .off: nil
        case .starting(let start), .confirming(let start): start.transport
        case .on(let transport, _), .interrupted(let transport, _), .suspended(let transport): transport
        case .releasing(let release): release.wish
        }
    }

    mutating func event(_ event: Event) -> [Effect] {
        var effects: [Effect] = []
        switch event {
        case .startAsked(let id, let transport, let outlivesLinks):
            ask(.start(id, transport, outlivesLinks: outlivesLinks), &effects)
        case .stopAsked(let id): ask(.stop(id), &effects)
        case .startReplied(let call, let isNotifying): startReplied(call, isNotifying, &effects)
        case .startFailed(let call, let failure): startFailed(call, failure, &effects)
        case .stopReplied(let call, let failure): stopReplied(call, failure, &effects)
        case .notifyingChanged(let isNotifying): notifyingChanged(isNotifying, &effects)
        case .socketClosed(let call): socketClosed(call, &effects)
        case .linkWentDown(let error, let canCall): linkWentDown(error, canCall: canCall, &effects)
        case .linkWentUp: if attribute != .ready { attribute = .awaited }
        case .attributesReady: attributesReady(&effects)
        case .attributeRemoved: attributeRemoved(&effects)
        case .invalidated: invalidated(&effects)
        case .timedOut(let id): timedOut(id, &effects)
        case .valuesCame: hasBegun = wish != nil
        case .closed(let canCall): closed(canCall: canCall, &effects)
        case .fired(let timer): fired(timer, &effects)
        }
        return effects
    }

    // MARK: What is asked for

    private mutating func ask(_ ask: Ask, _ effects: inout [Effect]) {
        if case .start(let id, _, _) = ask, let refusal = refusal(of: ask) {
            return effects.append(.settle(id, refusal))
        }
        asks.append(ask)
        workOff(&effects)
    }

    /// Does what was asked for, until a call to the daemon has to be waited for.
    private mutating func workOff(_ effects: inout [Effect]) {
        while !isWaiting, let ask = asks.first {
            if case .start = ask, attribute == .awaited { return }
            asks.removeFirst()
            switch ask {
            case .start: start(ask, &effects)
            case .stop(let id): stop(id, &effects)
            }
        }
    }

    /// Whether the daemon's answer is outstanding.
    private var isWaiting: Bool {
        switch state {
        case .starting, .confirming, .releasing: true
        case .off, .on, .interrupted, .suspended: false
        }
    }

    private mutating func start(_ ask: Ask, _ effects: inout [Effect]) {
        guard case .start(let id, let transport, let outlivesLinks) = ask else { return }
        if let refusal = refusal(of: ask) { return effects.append(.settle(id, refusal)) }
        if case .on = state { return effects.append(.settle(id, nil)) }
        if outlivesLinks { waiting.append(id) }
        let waiter = outlivesLinks ? nil : id
        switch state {
        case .off where attribute == .away:
            state = .suspended(transport)
            hasBegun = false
        case .off:
            begin(transport, waiter: waiter, &effects)
        case .interrupted(let kept, _):
            effects.append(.cancelTimer(.interruption))
            begin(kept, waiter: waiter, isResumption: true, &effects)
        case .suspended(let kept):
            if attribute != .away { begin(kept, waiter: waiter, isResumption: true, &effects) }
        case .on, .starting, .confirming, .releasing:
            break
        }
    }

    private func refusal(of ask: Ask) -> Failure? { ask.outlivesLinks && attribute == .away ? nil : refusal }

    private var refusal: Failure? {
        switch attribute {
        case .ready, .awaited: nil
        case .away: .link(.disconnected)
        case .invalid: .invalidated
        }
    }

    private mutating func stop(_ id: OperationID, _ effects: inout [Effect]) {
        switch state {
        case .off:
            effects.append(.settle(id, refusal))
        case .suspended:
            state = .off
            settleWaiting(.cancelled, &effects)
            effects.append(.settle(id, nil))
        case .on(let transport, let call):
            release(transport, call, waiter: id, wish: nil, &effects)
        case .interrupted(let transport, let call):
            effects.append(.cancelTimer(.interruption))
            settleWaiting(.cancelled, &effects)
            release(transport, call, waiter: id, wish: nil, &effects)
        case .starting, .confirming, .releasing:
            break
        }
    }

    private mutating func settleWaiting(_ failure: Failure?, _ effects: inout [Effect]) {
        for id in waiting { effects.append(.settle(id, failure)) }
        waiting = []
    }

    private mutating func timedOut(_ id: OperationID, _ effects: inout [Effect]) {
        if let place = asks.firstIndex(where: { $0.id == id }) {
            asks.remove(at: place)
            return effects.append(.settle(id, .unconfirmed))
        }
        if let place = waiting.firstIndex(of: id) {
            waiting.remove(at: place)
            effects.append(.settle(id, .unconfirmed))
            return withdrawIfUnwanted(&effects)
        }
        switch state {
        case .starting(var start) where start.waiter == id:
            start.waiter = nil
            state = .starting(start)
        case .confirming(var start) where start.waiter == id:
            start.waiter = nil
            state = .confirming(start)
        case .releasing(var release) where release.waiter == id:
            release.waiter = nil
            state = .releasing(release)
        case .off, .starting, .confirming, .on, .interrupted, .releasing, .suspended:
            return
        }
        effects.append(.settle(id, .unconfirmed))
        withdrawIfUnwanted(&effects)
    }

    /// Takes a subscription back that has not begun and that nothing waits for any more. One that is asked for behind it
    /// uses the call that is under way.
    private mutating func withdrawIfUnwanted(_ effects: inout [Effect]) {
        guard waiting.isEmpty, !hasBegun else { return }
        switch state {
        case .starting(var start) where start.waiter == nil:
            guard let next = takeNextStart() else { return withdraw(start, &effects) }
            start.waiter = next
            state = .starting(start)
        case .confirming(var start) where start.waiter == nil:
            guard let next = takeNextStart() else {
                effects.append(.cancelTimer(.confirmation))
                return withdraw(start, &effects)
            }
            start.waiter = next
            state = .confirming(start)
        case .interrupted(let transport, let call):
            effects.append(.cancelTimer(.interruption))
            release(transport, call, waiter: nil, wish: nil, &effects)
        case .suspended:
            state = .off
        case .releasing(var release):
            release.wish = nil
            state = .releasing(release)
        case .off, .starting, .confirming, .on:
            break
        }
    }

    private mutating func withdraw(_ start: Start, _ effects: inout [Effect]) {
        release(start.transport, start.call, waiter: nil, wish: nil, &effects)
    }

    /// The next ask, if it is for a subscription; `nil` inside if it outlives links, and so waits for whichever call.
    private mutating func takeNextStart() -> OperationID?? {
        guard case .start(let id, _, let outlivesLinks)? = asks.first else { return nil }
        asks.removeFirst()
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
        _ effects: inout [Effect]
    ) {
        let call = makeCall()
        if !isResumption { hasBegun = false }
        state = .starting(Start(call: call, transport: transport, waiter: waiter, isResumption: isResumption))
        // Before the call, so that the first value finds the gate open.
        effects.append(.openGate(transport, afterGap: hasBegun))
        effects.append(transport == .socket ? .acquire(call) : .callStart(call))
    }

    private mutating func release(
        _ transport: NotificationTransport, _ held: Call, waiter: OperationID?, wish: NotificationTransport?,
        _ effects: inout [Effect]
    ) {
        let call = makeCall()
        // The socket is closed after the answer: until then the daemon might take it for still in use, and refuse the
        // next one.
        state = .releasing(
            Release(call: call, waiter: waiter, socket: transport == .socket ? held : nil, wish: wish))
        effects.append(.closeGate)
        effects.append(.callStop(call))
    }

    private mutating func startReplied(_ call: Call, _ isNotifying: Bool, _ effects: inout [Effect]) {
        guard case .starting(let start) = state, start.call == call else {
            // Nobody waits for it any more. A session over signals was stopped behind it.
            return effects.append(.closeSocket(call))
        }
        guard isNotifying || start.transport == .socket else {
            state = .confirming(start)
            return effects.append(.startTimer(.confirmation))
        }
        started(start, &effects)
    }

    private mutating func started(_ start: Start, _ effects: inout [Effect]) {
        state = .on(start.transport, start.call)
        hasBegun = true
        hasDoubted = false
        effects.append(.markGap)
        if let waiter = start.waiter { effects.append(.settle(waiter, nil)) }
        settleWaiting(nil, &effects)
        workOff(&effects)
    }

    private mutating func startFailed(_ call: Call, _ failure: Failure, _ effects: inout [Effect]) {
        guard case .starting(let start) = state, start.call == call else { return }
        effects.append(.closeGate)
        if let waiter = start.waiter { effects.append(.settle(waiter, failure)) }
        if !isWantedBeyond(start) {
            state = .off
        } else if attribute == .awaited {
            state = .suspended(start.transport)
        } else if failure.isPassing(over: start.transport, isResumption: start.isResumption) {
            interrupt(start.transport, call, &effects)
        } else if failure.mayBeLinkLoss, !hasDoubted {
            hasDoubted = true
            interrupt(start.transport, call, &effects)
        } else {
            state = .off
            fail(start, failure, &effects)
        }
        workOff(&effects)
    }

    /// Whether the subscription does not end with the failure of this start.
    private func isWantedBeyond(_ start: Start) -> Bool { start.waiter == nil || !waiting.isEmpty || hasBegun }

    /// A subscription that no operation fails with has failed. The streams of one that is taken up again receive the failure
    /// after those that wait for it.
    private mutating func fail(_ start: Start, _ failure: Failure, _ effects: inout [Effect]) {
        settleWaiting(failure, &effects)
        if start.isResumption { effects.append(.deliver(failure)) }
    }

    private mutating func stopReplied(_ call: Call, _ failure: Failure?, _ effects: inout [Effect]) {
        guard case .releasing(let release) = state, release.call == call else { return }
        if let socket = release.socket { effects.append(.closeSocket(socket)) }
        if let waiter = release.waiter { effects.append(.settle(waiter, failure)) }
        released(release, &effects)
    }

    private mutating func released(_ release: Release, _ effects: inout [Effect]) {
        state = release.wish.map { .suspended($0) } ?? .off
        resume(&effects)
        workOff(&effects)
    }

    // MARK: What the daemon tells

    private mutating func notifyingChanged(_ isNotifying: Bool, _ effects: inout [Effect]) {
        switch state {
        case .confirming(let start) where isNotifying:
            effects.append(.cancelTimer(.confirmation))
            started(start, &effects)
        case .on(.signals, let call) where !isNotifying:
            // The gate stays open: should the daemon begin again by itself, no value is to be lost.
            effects.append(.openGate(.signals, afterGap: true))
            interrupt(.signals, call, &effects)
        case .interrupted(.signals, let call) where isNotifying:
            effects.append(.cancelTimer(.interruption))
            started(Start(call: call, transport: .signals, waiter: nil), &effects)
        case .off, .starting, .confirming, .on, .interrupted, .releasing, .suspended:
            break
        }
    }

    private mutating func socketClosed(_ call: Call, _ effects: inout [Effect]) {
        guard case .on(.socket, call) = state else { return }
        effects.append(.closeGate)
        effects.append(.closeSocket(call))
        interrupt(.socket, call, &effects)
    }

    private mutating func interrupt(_ transport: NotificationTransport, _ call: Call, _ effects: inout [Effect]) {
        state = .interrupted(transport, call)
        effects.append(.startTimer(.interruption))
    }

    private mutating func fired(_ timer: Timer, _ effects: inout [Effect]) {
        switch (timer, state) {
        case (.confirmation, .confirming(let start)):
            if let waiter = start.waiter { effects.append(.settle(waiter, .unconfirmed)) }
            fail(start, .unconfirmed, &effects)
            release(start.transport, start.call, waiter: nil, wish: nil, &effects)
        case (.interruption, .interrupted(let transport, _)):
            begin(transport, waiter: nil, isResumption: true, &effects)
        case (.confirmation, _), (.interruption, _):
            break
        }
    }

    // MARK: The link and the attribute

    private mutating func linkWentDown(_ error: PeripheralError, canCall: Bool, _ effects: inout [Effect]) {
        attribute = .away
        hasDoubted = false
        var wish = letGo(.link(error), canCall: canCall, &effects)
        for ask in takeAsks() {
            switch ask {
            case .start(let id, let transport, outlivesLinks: true):
                if wish == nil { hasBegun = false }
                wish = wish ?? transport
                waiting.append(id)
            case .start(let id, _, _):
                effects.append(.settle(id, .link(error)))
            case .stop(let id):
                wish = nil
                settleWaiting(.cancelled, &effects)
                effects.append(.settle(id, .link(error)))
            }
        }
        if case .releasing(var release) = state {
            release.wish = wish
            state = .releasing(release)
        } else {
            state = wish.map { .suspended($0) } ?? .off
        }
    }

    private mutating func attributesReady(_ effects: inout [Effect]) {
        guard attribute != .ready else { return }
        attribute = .ready
        resume(&effects)
        workOff(&effects)
    }

    private mutating func attributeRemoved(_ effects: inout [Effect]) {
        guard attribute == .ready else { return }
        attribute = .awaited
        // Nothing can be stopped any more. What is under way gets its answer.
        switch state {
        case .on(let transport, let call), .interrupted(let transport, let call):
            if case .interrupted = state { effects.append(.cancelTimer(.interruption)) }
            if transport == .socket { effects.append(.closeSocket(call)) }
            effects.append(.closeGate)
            state = .suspended(transport)
        case .confirming(let start):
            effects.append(.cancelTimer(.confirmation))
            effects.append(.closeGate)
            if let waiter = start.waiter { effects.append(.settle(waiter, .invalidated)) }
            state = isWantedBeyond(start) ? .suspended(start.transport) : .off
            workOff(&effects)
        case .off, .starting, .releasing, .suspended:
            break
        }
    }

    private mutating func resume(_ effects: inout [Effect]) {
        guard attribute == .ready, case .suspended(let transport) = state else { return }
        begin(transport, waiter: nil, isResumption: true, &effects)
    }

    private mutating func invalidated(_ effects: inout [Effect]) {
        guard attribute != .invalid else { return }
        attribute = .invalid
        // There is no object left that a call could go to.
        _ = letGo(.invalidated, canCall: false, &effects)
        settleAsks(.invalidated, &effects)
        settleWaiting(.invalidated, &effects)
        state = .off
        effects.append(.finish(.invalidated))
    }

    private mutating func closed(canCall: Bool, _ effects: inout [Effect]) {
        attribute = .away
        _ = letGo(.link(.disconnected), canCall: canCall, &effects)
        settleAsks(.link(.disconnected), &effects)
        settleWaiting(.cancelled, &effects)
        state = .off
        effects.append(.finish(nil))
    }

    private mutating func takeAsks() -> [Ask] {
        defer { asks = [] }
        return asks
    }

    private mutating func settleAsks(_ failure: Failure, _ effects: inout [Effect]) {
        for ask in takeAsks() { effects.append(.settle(ask.id, ask.outlivesLinks ? failure.ofLasting : failure)) }
    }

    /// Fails what waits for the call under way, has the daemon give up what it holds, and returns what would have to be taken
    /// up again. If that call is waited for, the state is `releasing` afterwards.
    private mutating func letGo(
        _ failure: Failure, canCall: Bool, _ effects: inout [Effect]
    ) -> NotificationTransport? {
        var wish: NotificationTransport?
        var held: (transport: NotificationTransport, call: Call)?
        switch state {
        case .off:
            break
        case .suspended(let transport):
            wish = transport
        case .starting(let start), .confirming(let start):
            if case .confirming = state { effects.append(.cancelTimer(.confirmation)) }
            if let waiter = start.waiter { effects.append(.settle(waiter, failure)) }
            if isWantedBeyond(start) { wish = start.transport }
            held = (start.transport, start.call)
        case .on(let transport, let call):
            wish = transport
            held = (transport, call)
        case .interrupted(let transport, let call):
            effects.append(.cancelTimer(.interruption))
            wish = transport
            held = (transport, call)
        case .releasing(let release):
            if let waiter = release.waiter { effects.append(.settle(waiter, failure)) }
            if let socket = release.socket { effects.append(.closeSocket(socket)) }
            wish = release.wish
            state = canCall ? .releasing(Release(call: release.call, waiter: nil, socket: nil, wish: nil)) : .off
        }
        if let held {
            if held.transport == .socket { effects.append(.closeSocket(held.call)) }
            if canCall {
                // Its signals' session, though: the socket is closed already.
                release(.signals, held.call, waiter: nil, wish: nil, &effects)
            } else {
                effects.append(.closeGate)
            }
        }
        return wish
    }
}
