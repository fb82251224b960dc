/// How a pairing of this process has ended.
package enum PairingOutcome: Hashable, Sendable {
    case bonded
    /// The link is encrypted, and the keys are not stored: BlueZ forgets them when the link ends.
    case paired
    case failed(PairingCause, BlueZError?)
}

package enum PairingCause: Hashable, Sendable, CaseIterable {
    /// By the last waiter, or by another program.
    case cancelled
    /// The agent of this process has rejected the request.
    case rejectedByUs
    /// This side had confirmed the number.
    case rejectedByPeer
    case timedOut
    case linkLost
    /// BlueZ does not report why: a wrong passkey, a refusal of the peer, a peer that does not pair at present.
    case failed
    /// The peer was not reached.
    case connectionFailed
    /// Another program pairs with the device.
    case busy
    /// BlueZ does not have the agent, or no manager wants one.
    case noAgent
    /// The bus or BlueZ does not allow this process to call `Pair`.
    case denied
    /// The device, the adapter or the daemon is not there, or the adapter is off.
    case notFound
}

/// Pairs one device for all managers of the process that wait for it.
///
/// Pure: calls go out as orders, their replies, the device's properties and time come in as events. A machine is used for
/// one pairing, and for the next ones if they are requested before it has ended.
///
/// After each failure the device is left as it was: `CancelPairing` is called only while a `Pair` of this process has no
/// reply (otherwise BlueZ would delete the keys of a bond), and the link is ended if the pairing made it or may go on in the
/// kernel. A pairing that this process has ended is noted as refused before, so that a bond of it is removed (``BondNote``).
package struct PairingMachine {
    package typealias WaiterID = UInt64

    /// The properties of the device that count.
    package struct Facts: Hashable, Sendable {
        var isPaired = false
        /// ``Device1/keepsKeys``.
        var isBonded = false
        var isConnected = false
    }

    package enum Timer: Hashable, Sendable {
        case limit(WaiterID)
        /// For `Bonded` after `Pair` has succeeded.
        case bond
    }

    package enum Order: Hashable, Sendable {
        /// Reply with ``PairingMachine/agentReady(error:mustRelink:)`` once the agent is registered.
        case wantAgent
        /// End the link and reply with ``PairingMachine/disconnected()``.
        case callDisconnect
        /// Call `Pair`, after a turn to connect if there is no link. Report the call with ``PairingMachine/pairSent()`` and
        /// its reply with ``PairingMachine/pairReplied(_:hasLostTurn:)``.
        case callPair
        /// Do not call `Pair` when the turn comes.
        case leaveQueue
        /// Reply with ``PairingMachine/cancelReplied()``.
        case callCancelPairing
        /// A bond that comes of this pairing is to be removed.
        case noteRefusal
        case startTimer(Timer, seconds: Double)
        case cancelTimer(Timer)
        case settle(WaiterID, PairingOutcome)
        /// Nothing is under way.
        case ended
    }

    private enum State {
        case idle
        /// The agent is being registered.
        case preparing
        /// The link is being ended, because it has another capability than the agent.
        case unlinking
        /// `Pair` waits for its turn to connect.
        case queued
        case pairing
        /// `Pair` has succeeded, and the device is not bonded yet.
        case bonding
        /// Another program pairs, or connects if there was no link.
        case foreign(BlueZError, wasConnected: Bool)
        /// `CancelPairing` was called.
        case cancelling(PairingOutcome)
        /// The link is being ended.
        case cleaning(PairingOutcome)
    }

    /// Seconds: BlueZ signals `Bonded` before it replies to `Pair`.
    static let bondLimit = 3.0

    private var state = State.idle
    private var facts = Facts()
    private var waiters: [WaiterID] = []
    /// Those of the next pairing.
    private var later: [WaiterID] = []
    private var mayEndLink = true
    /// Whether there was no link when `Pair` was called.
    private var makesLink = false
    /// Whether there was a link during the pairing.
    private var hadLink = false
    private var hasAccepted = false
    /// The answer of this process that has ended the pairing.
    private var refusal: PairingCause?

    package init() {}

    /// Whether a `Pair` is under way or about to be called.
    package var isPairing: Bool {
        switch state {
        case .queued, .pairing, .bonding: true
        case .idle, .preparing, .unlinking, .foreign, .cancelling, .cleaning: false
        }
    }

    /// Whether `Pair` was called and has no reply.
    var isCalling: Bool {
        switch state {
        case .pairing, .cancelling: true
        case .idle, .preparing, .unlinking, .queued, .bonding, .foreign, .cleaning: false
        }
    }

    // MARK: Requests

    /// - Parameters:
    ///   - limit: In seconds, over everything that has to happen.
    ///   - mayEndLink: Whether a link may be ended and made again, which some pairings need.
    package mutating func asked(_ waiter: WaiterID, limit: Double, mayEndLink: Bool = true) -> [Order] {
        let timer = Order.startTimer(.limit(waiter), seconds: limit)
        switch state {
        case .idle:
            waiters = [waiter]
            self.mayEndLink = mayEndLink
            return [timer] + begin()
        case .preparing, .unlinking, .queued, .pairing, .bonding, .foreign:
            waiters.append(waiter)
            self.mayEndLink = self.mayEndLink && mayEndLink
            return [timer]
        case .cancelling, .cleaning:
            later.append(waiter)
            return [timer]
        }
    }

    /// The waiter does not wait any more. The pairing is cancelled if it was the last one, which is then settled when
    /// nothing is left of the pairing.
    package mutating func cancelAsked(_ waiter: WaiterID) -> [Order] { leave(waiter, .failed(.cancelled, nil)) }

    /// Why a pairing that is not complete now has not progressed, if that is known.
    /// - Parameter agentProblem: Why BlueZ does not have the agent; `nil` if it has.
    func obstacle(_ agentProblem: BlueZError?) -> PairingOutcome? {
        switch state {
        case .preparing: agentProblem.map { .failed(.noAgent, $0) }
        case .foreign(let error, _): .failed(.busy, error)
        case .idle, .unlinking, .queued, .pairing, .bonding, .cancelling, .cleaning: nil
        }
    }

    private mutating func begin() -> [Order] {
        (makesLink, hadLink, hasAccepted, refusal) = (false, facts.isConnected, false, nil)
        if facts.isBonded { return finish(.bonded) }
        // BlueZ would not reply to `Pair`.
        if facts.isPaired { return finish(.paired) }
        state = .preparing
        return [.wantAgent]
    }

    /// - Parameter isLate: Whether the waiter's time limit has passed.
    private mutating func leave(_ waiter: WaiterID, _ outcome: PairingOutcome, isLate: Bool = false) -> [Order] {
        if let index = later.firstIndex(of: waiter) {
            later.remove(at: index)
            return settle(waiter, outcome)
        }
        guard let index = waiters.firstIndex(of: waiter) else { return [] }
        guard waiters.count == 1 else {
            waiters.remove(at: index)
            return settle(waiter, outcome)
        }
        switch state {
        case .idle, .cancelling, .cleaning: return []
        case .preparing, .unlinking: return finish(outcome)
        case .queued: return [.leaveQueue] + finish(outcome)
        case .pairing: return isLate && facts.isBonded ? finish(.bonded) : cancel(outcome)
        case .bonding: return isLate ? finish(.paired) : [.noteRefusal] + clean(outcome)
        case .foreign: return finish(outcome)
        }
    }

    // MARK: Events

    package mutating func factsChanged(_ new: Facts) -> [Order] {
        let old = facts
        facts = new
        if new.isConnected { hadLink = true }
        switch state {
        case .idle, .unlinking, .cancelling, .cleaning: return []
        case .preparing, .bonding: return new.isBonded ? finish(.bonded) : []
        // What BlueZ reports of the device counts. Its reply does not come if BlueZ is discovering services meanwhile
        // (`device_bonding_complete`, up to 5.86).
        case .pairing:
            guard new.isPaired else { return [] }
            return new.isBonded ? finish(.bonded) : bond()
        case .queued: return new.isBonded ? [.leaveQueue] + finish(.bonded) : []
        case .foreign(let error, let wasConnected):
            if new.isBonded { return finish(.bonded) }
            if new.isPaired, !old.isPaired { return bond() }
            if old.isConnected, !new.isConnected { return finish(.failed(.busy, error)) }
            // It was a call of `Connect` that excluded `Pair`.
            return new.isConnected && !wasConnected ? pair() : []
        }
    }

    /// - Parameter mustRelink: Whether the link has an older capability than the agent, with which the kernel would pair.
    package mutating func agentReady(error: BlueZError?, mustRelink: Bool) -> [Order] {
        guard case .preparing = state else { return [] }
        if let error { return finish(.failed(.noAgent, error)) }
        guard mustRelink, mayEndLink else { return pair() }
        state = .unlinking
        return [.callDisconnect]
    }

    package mutating func disconnected() -> [Order] {
        switch state {
        case .unlinking: return pair()
        case .cleaning(let outcome): return finish(outcome)
        case .idle, .preparing, .queued, .pairing, .bonding, .foreign, .cancelling: return []
        }
    }

    package mutating func pairSent() {
        guard case .queued = state else { return }
        state = .pairing
        hadLink = facts.isConnected
        makesLink = !facts.isConnected
    }

    /// - Parameter hasLostTurn: Whether the link had not come up when the turn to connect ended.
    package mutating func pairReplied(_ error: BlueZError?, hasLostTurn: Bool = false) -> [Order] {
        guard case .pairing = state else { return [] }
        // Up to 5.86 a pairing that has succeeded gets an error if the discovery of services fails.
        if facts.isBonded { return finish(.bonded) }
        guard let error else { return bond() }
        if hasLostTurn, refusal == nil { return pair() }
        switch error.cause {
        case .inProgress:
            if let refusal { return finish(.failed(refusal, error)) }
            state = .foreign(error, wasConnected: facts.isConnected)
            return []
        case .alreadyExists where facts.isPaired: return bond()
        default:
            let outcome = PairingOutcome.failed(cause(of: error), error)
            if refusal != nil { return [.noteRefusal] + clean(outcome) }
            return makesLink ? clean(outcome) : finish(outcome)
        }
    }

    /// The peer's link is up: BlueZ asks the agent of this process.
    package mutating func agentAsked() { hadLink = true }

    /// This side has confirmed a number, or has allowed the pairing.
    package mutating func accepted() { hasAccepted = true }

    /// The agent of this process has rejected a request. BlueZ fails `Pair`, if it was called; otherwise it asks about another
    /// pairing of the device, and the refusal holds for this one too.
    ///
    /// - Parameter isExpired: Whether it was for lack of an answer.
    package mutating func refused(isExpired: Bool) -> [Order] {
        let cause = isExpired ? PairingCause.timedOut : .rejectedByUs
        switch state {
        case .pairing:
            refusal = cause
            return []
        case .queued: return [.leaveQueue] + finish(.failed(cause, nil))
        case .preparing, .unlinking, .foreign: return finish(.failed(cause, nil))
        case .idle, .bonding, .cancelling, .cleaning: return []
        }
    }

    /// The user has rejected a passkey that is displayed, which BlueZ does not ask about.
    package mutating func displayRefused(isExpired: Bool) -> [Order] {
        let outcome = PairingOutcome.failed(isExpired ? .timedOut : .rejectedByUs, nil)
        switch state {
        case .pairing: return cancel(outcome)
        case .bonding: return finish(outcome)
        case .idle, .preparing, .unlinking, .queued, .foreign, .cancelling, .cleaning:
            return refused(isExpired: isExpired)
        }
    }

    package mutating func cancelReplied() -> [Order] {
        guard case .cancelling(let outcome) = state else { return [] }
        // From 5.81 on the kernel may go on.
        return clean(outcome)
    }

    /// - Parameter agentProblem: Why BlueZ does not have the agent; `nil` if it has.
    package mutating func timerFired(_ timer: Timer, agentProblem: BlueZError? = nil) -> [Order] {
        switch (timer, state) {
        case (.limit(let waiter), _):
            return leave(waiter, obstacle(agentProblem) ?? .failed(.timedOut, nil), isLate: true)
        case (.bond, .bonding): return finish(.paired)
        case (.bond, _): return []
        }
    }

    /// The device, its adapter or the daemon is gone.
    package mutating func deviceGone(_ error: BlueZError) -> [Order] {
        facts = Facts()
        switch state {
        case .idle: return []
        case .queued: return [.leaveQueue] + finish(.failed(.notFound, error))
        case .preparing, .unlinking, .pairing, .bonding, .foreign: return finish(.failed(.notFound, error))
        case .cancelling(let outcome), .cleaning(let outcome): return finish(outcome)
        }
    }

    // MARK: Steps

    private mutating func pair() -> [Order] {
        state = .queued
        return [.callPair]
    }

    private mutating func bond() -> [Order] {
        state = .bonding
        return [.startTimer(.bond, seconds: Self.bondLimit)]
    }

    private mutating func cancel(_ outcome: PairingOutcome) -> [Order] {
        state = .cancelling(outcome)
        return [.noteRefusal, .callCancelPairing]
    }

    private mutating func clean(_ outcome: PairingOutcome) -> [Order] {
        state = .cleaning(outcome)
        return [.callDisconnect]
    }

    private mutating func finish(_ outcome: PairingOutcome) -> [Order] {
        var orders: [Order] = []
        if case .bonding = state { orders.append(.cancelTimer(.bond)) }
        for waiter in waiters { orders += settle(waiter, outcome) }
        (waiters, later) = (later, [])
        mayEndLink = true
        state = .idle
        return orders + (waiters.isEmpty ? [.ended] : begin())
    }

    private func settle(_ waiter: WaiterID, _ outcome: PairingOutcome) -> [Order] {
        [.cancelTimer(.limit(waiter)), .settle(waiter, outcome)]
    }

    private func cause(of error: BlueZError) -> PairingCause {
        if let refusal { return refusal }
        switch error.cause {
        case .authenticationCanceled: return hadLink && !facts.isConnected ? .linkLost : .cancelled
        case .authenticationFailed: return hasAccepted ? .rejectedByPeer : .failed
        case .authenticationTimeout: return .timedOut
        case .authenticationRejected: return .busy
        case .connectionAttemptFailed: return .connectionFailed
        // No reply: the daemon has ended.
        case .notReady, .blocked, .unknownObject, .doesNotExist, .serviceGone, .disconnected, .noReply: return .notFound
        case .accessDenied, .notAuthorized: return .denied
        default: return .failed
        }
    }
}
