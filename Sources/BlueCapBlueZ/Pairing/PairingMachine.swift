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
    /// The user of this process has rejected a request.
    case rejectedByUser
    /// This process has rejected a request without asking its user.
    case rejectedByPolicy
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

/// The pairing of one device: pairs it for all managers of the process that wait for it, and has BlueZ's requests about it,
/// also about pairings that this process has not begun.
///
/// Pure: calls go out as orders, their replies, the device's properties and time come in as events.
///
/// After each failure the device is left as it was: `CancelPairing` is called only while a `Pair` of this process has no
/// reply (otherwise BlueZ would delete the keys of a bond), and the link is ended if the pairing made it or may go on in the
/// kernel. A pairing that this process has ended is noted as refused before, so that a bond of it is removed (``BondNote``).
struct PairingMachine {
    typealias WaiterID = Pairings.WaiterID

    enum Timer: Hashable, Sendable {
        case limit(WaiterID)
        /// For `Bonded` after `Pair` has succeeded.
        case bond
        /// The end of a displayed passkey.
        case display
    }

    enum Order: Hashable, Sendable {
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
        /// Give a request to its manager.
        case receive(AgentRequest.ID)
        /// Reply to BlueZ's question, and report the end.
        case endRequest(AgentRequest.ID, AgentEnd)
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
    /// Seconds after which a passkey is of no use any more: the Security Manager Protocol waits 30 for the next packet (Core
    /// Specification, Vol 3, Part H, 3.4), and the exchange of an entered passkey takes one or two. The pairing of a device that is
    /// paired already changes no property, so nothing else would end its display.
    static let displayLimit = 35.0

    private var state = State.idle
    private var status = LinkStatus()
    private var waiters: [WaiterID] = []
    /// Waiters that asked during the clean-up. They start the next pairing.
    private var later: [WaiterID] = []
    private var mayEndLink = true
    /// Whether there was no link when `Pair` was called.
    private var makesLink = false
    /// Whether there was a link during the pairing.
    private var hadLink = false
    private var hasAccepted = false
    /// The answer of this process that has ended the pairing.
    private var refusal: PairingCause?
    /// BlueZ's question that has no reply.
    private var question: AgentRequest.ID?
    /// A displayed passkey, about which BlueZ waits for no reply, and whose end it does not report.
    private var display: AgentRequest.ID?
    /// Whether BlueZ had keys of the device when it asked last.
    private var hadKeys = false

    /// Whether nothing is under way.
    var isIdle: Bool { if case .idle = state { question == nil && display == nil } else { false } }

    /// Whether a request or a `Pair` is under way.
    var isBusy: Bool { isCalling || hasQuestion || display != nil }

    /// Whether BlueZ waits for an answer.
    var hasQuestion: Bool { question != nil }

    /// Whether a `Pair` is under way or about to be called.
    var isPairing: Bool {
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
    mutating func asked(_ waiter: WaiterID, limit: Double, mayEndLink: Bool = true) -> [Order] {
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
    mutating func cancelAsked(_ waiter: WaiterID) -> [Order] { leave(waiter, .failed(.cancelled, nil)) }

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
        (makesLink, hadLink, hasAccepted, refusal) = (false, status.isConnected, false, nil)
        if status.isBonded { return finish(.bonded) }
        // BlueZ would not reply to `Pair`.
        if status.isPaired { return finish(.paired) }
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
        case .preparing, .unlinking, .queued, .foreign: return finish(outcome)
        case .pairing: return cancel(outcome)
        case .bonding: return isLate ? finish(.paired) : [.noteRefusal] + clean(outcome)
        }
    }

    // MARK: Events

    /// - Parameter hasLinkEnded: Whether BlueZ has reported now that there is no link.
    mutating func statusChanged(_ new: LinkStatus, hasLinkEnded: Bool = false) -> [Order] {
        let old = status
        status = new
        if new.isConnected { hadLink = true }
        let ended = hasLinkEnded || new.isPaired && !old.isPaired ? endDisplay() : []
        return ended + follow(from: old)
    }

    private mutating func follow(from old: LinkStatus) -> [Order] {
        let new = status
        switch state {
        case .idle, .unlinking, .cancelling, .cleaning: return []
        case .preparing, .queued, .bonding: return new.isBonded ? finish(.bonded) : []
        // What BlueZ reports of the device counts. Its reply does not come if BlueZ is discovering services meanwhile
        // (`device_bonding_complete`), and is an error if the discovery fails (up to 5.86).
        case .pairing:
            if new.isBonded { return finish(.bonded) }
            return new.isPaired ? bond() : []
        case .foreign(let error, let wasConnected):
            if new.isBonded { return finish(.bonded) }
            if new.isPaired, !old.isPaired { return bond() }
            if old.isConnected, !new.isConnected { return finish(.failed(.busy, error)) }
            // It was a call of `Connect` that excluded `Pair`.
            return new.isConnected && !wasConnected ? pair() : []
        }
    }

    /// - Parameter mustRelink: Whether the link has an older capability than the agent, with which the kernel would pair.
    mutating func agentReady(error: BlueZError?, mustRelink: Bool) -> [Order] {
        guard case .preparing = state else { return [] }
        if let error { return finish(.failed(.noAgent, error)) }
        guard mustRelink, mayEndLink else { return pair() }
        state = .unlinking
        return [.callDisconnect]
    }

    mutating func disconnected() -> [Order] {
        switch state {
        case .unlinking: return pair()
        case .cleaning(let outcome): return finish(outcome)
        case .idle, .preparing, .queued, .pairing, .bonding, .foreign, .cancelling: return []
        }
    }

    mutating func pairSent() {
        guard case .queued = state else { return }
        state = .pairing
        hadLink = status.isConnected
        makesLink = !status.isConnected
    }

    /// - Parameter hasLostTurn: Whether the link had not come up when the turn to connect ended.
    mutating func pairReplied(_ error: BlueZError?, hasLostTurn: Bool = false) -> [Order] {
        endDisplay() + callEnded(error, hasLostTurn)
    }

    private mutating func callEnded(_ error: BlueZError?, _ hasLostTurn: Bool) -> [Order] {
        guard case .pairing = state else { return [] }
        guard let error else { return bond() }
        if hasLostTurn, refusal == nil { return pair() }
        switch error.cause {
        case .inProgress:
            if let refusal { return finish(.failed(refusal, error)) }
            state = .foreign(error, wasConnected: status.isConnected)
            return []
        case .alreadyExists where status.isPaired: return bond()
        default:
            let outcome = PairingOutcome.failed(cause(of: error), error)
            if refusal != nil { return [.noteRefusal] + clean(outcome) }
            return makesLink ? clean(outcome) : finish(outcome)
        }
    }

    mutating func cancelReplied() -> [Order] {
        guard case .cancelling(let outcome) = state else { return [] }
        // From 5.81 on the kernel may go on.
        return clean(outcome)
    }

    /// - Parameter agentProblem: Why BlueZ does not have the agent; `nil` if it has.
    mutating func timerFired(_ timer: Timer, agentProblem: BlueZError? = nil) -> [Order] {
        switch (timer, state) {
        case (.limit(let waiter), _):
            return leave(waiter, obstacle(agentProblem) ?? .failed(.timedOut, nil), isLate: true)
        case (.bond, .bonding): return finish(.paired)
        case (.bond, _): return []
        case (.display, _): return endDisplay()
        }
    }

    /// The device, its adapter or the daemon is gone.
    mutating func deviceGone(_ error: BlueZError) -> [Order] {
        status = LinkStatus()
        let ended = endRequests()
        switch state {
        case .idle: return ended
        case .preparing, .unlinking, .queued, .pairing, .bonding, .foreign:
            return ended + finish(.failed(.notFound, error))
        case .cancelling(let outcome), .cleaning(let outcome): return ended + finish(outcome)
        }
    }

    // MARK: Requests of BlueZ

    /// BlueZ asks the agent, so the link is up.
    /// - Parameter isReceived: Whether a manager receives the request; otherwise it is rejected.
    mutating func requested(_ number: AgentRequest.ID, isDisplay: Bool, isReceived: Bool) -> [Order] {
        (hadLink, hadKeys) = (true, status.isPaired)
        guard isReceived else { return isDisplay ? displayRefused(.rejectedByPolicy) : refused(.rejectedByPolicy) }
        guard isDisplay else {
            question = number
            return [.receive(number)]
        }
        let ended = endDisplay()
        display = number
        return ended + [.startTimer(.display, seconds: Self.displayLimit), .receive(number)]
    }

    mutating func answered(_ number: AgentRequest.ID, _ answer: AgentAnswer) -> [Order] {
        if number == display, case .reject(let cause) = answer {
            return endDisplay(.answered(answer)) + displayRefused(cause)
        }
        guard number == question else { return [] }
        let ended = endQuestion(.answered(answer))
        switch answer {
        case .accept: hasAccepted = true
        // It may be wrong.
        case .passkey: break
        case .reject(let cause): return ended + refused(cause)
        }
        return ended
    }

    /// BlueZ does not wait for an answer any more.
    mutating func endQuestion(_ end: AgentEnd = .cancelled) -> [Order] {
        question.take().map { [.endRequest($0, end)] } ?? []
    }

    /// The device, the daemon or the agent is gone, or is about to be.
    mutating func endRequests() -> [Order] { endQuestion() + endDisplay(.cancelled) }

    private mutating func endDisplay(_ end: AgentEnd = .ended) -> [Order] {
        display.take().map { [.cancelTimer(.display), .endRequest($0, end)] } ?? []
    }

    /// This process has rejected a question. BlueZ fails `Pair`, if it was called; otherwise it asks about another pairing of the
    /// device, and the refusal holds for this one too.
    private mutating func refused(_ cause: PairingCause) -> [Order] {
        switch state {
        case .pairing:
            refusal = cause
            return []
        case .preparing, .unlinking, .queued, .foreign: return finish(.failed(cause, nil))
        case .idle, .bonding, .cancelling, .cleaning: return []
        }
    }

    /// This process has rejected a passkey that is displayed, which BlueZ does not ask about: the pairing is cancelled, or, if
    /// this process has not begun it or it has succeeded meanwhile, the link is ended. BlueZ ends it two seconds after
    /// `Disconnect`, and until then the peer's user can enter the passkey. So a bond is removed, also an older one if the user has
    /// rejected the passkey: BlueZ does not report whether the pairing has replaced its keys. If the policy has rejected it, an
    /// older bond stays: otherwise a device with the address of a bonded one could end the bond.
    mutating func displayRefused(_ cause: PairingCause) -> [Order] {
        let note: [Order] = hadKeys && cause == .rejectedByPolicy ? [] : [.noteRefusal]
        switch state {
        case .pairing: return cancel(.failed(cause, nil))
        case .cancelling, .cleaning: return note
        case .idle, .preparing, .unlinking, .queued, .bonding, .foreign: return note + clean(.failed(cause, nil))
        }
    }

    // MARK: Steps

    private mutating func pair() -> [Order] {
        // Another program may have paired while the old link was being ended.
        if status.isBonded { return finish(.bonded) }
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
        let orders = endStep()
        state = .cleaning(outcome)
        return orders + [.callDisconnect]
    }

    private func endStep() -> [Order] {
        switch state {
        case .queued: [.leaveQueue]
        case .bonding: [.cancelTimer(.bond)]
        case .idle, .preparing, .unlinking, .pairing, .foreign, .cancelling, .cleaning: []
        }
    }

    private mutating func finish(_ outcome: PairingOutcome) -> [Order] {
        var orders = endDisplay() + endStep()
        for waiter in waiters { orders += settle(waiter, outcome) }
        (waiters, later) = (later, [])
        mayEndLink = true
        state = .idle
        return waiters.isEmpty ? orders : orders + begin()
    }

    private func settle(_ waiter: WaiterID, _ outcome: PairingOutcome) -> [Order] {
        [.cancelTimer(.limit(waiter)), .settle(waiter, outcome)]
    }

    private func cause(of error: BlueZError) -> PairingCause {
        if let refusal { return refusal }
        switch error.cause {
        case .authenticationCanceled: return hadLink && !status.isConnected ? .linkLost : .cancelled
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
