import BlueCapBlueZ
import Foundation

/// Pairs one peripheral, as a value: the requests of the application, and the operations that wait for security.
///
/// One step is under way at a time, for everything that waits: BlueZ removes the device, a search finds it, or BlueZ pairs
/// it. A request that comes during a step joins it, or is next.
struct PairingState {
    /// Identifies one pairing, so that a late reply is recognised.
    typealias Attempt = UInt32

    /// What the application requests.
    enum Request: Equatable {
        case pair(trusting: Bool)
        /// Removes the device, and pairs it when it is received again.
        case repair
        case unpair
    }

    private enum Step: Equatable {
        /// It is not known yet whether BlueZ has forgotten calls of the last link.
        case checking
        case removing
        /// BlueZ does not have the device: discovery runs until it is received.
        case seeking
        /// The user is asked whether the manager may pair for an operation.
        case asking(Attempt)
        /// BlueZ reports a bond, and no link has been encrypted with it yet. `links`: how many were tried.
        case verifying(links: Int)
        /// `wasConnected`: whether there was a link before.
        case pairing(Attempt, wasConnected: Bool)
    }

    /// A link to a paired device whose services are not resolved yet. BlueZ encrypts it first.
    private enum Encryption: Equatable {
        /// It has just gone up: if it ends now, the peripheral does not have the keys. `limit`: how long it may take, in
        /// seconds.
        case young(limit: TimeInterval)
        case awaited
        /// It will not come: this adapter does not have the keys, and the link is of no use.
        case failed
    }

    private struct Waiter {
        let id: OperationID
        var request: Request
        /// In seconds.
        let timeout: TimeInterval
        var hasTimeout: Bool { timeout.isFinite }
    }

    /// The time limit of a pairing, and of the search before it, for what has no time limit of its own, in seconds.
    static let limit: TimeInterval = 60
    /// Seconds within which a link ends if one side has lost the keys of the bond: at once, or, if a Linux peripheral refuses a
    /// new pairing, when its `bluetoothd` ends the link after two seconds (seen in the radio lab).
    static let youngLinkLimit: TimeInterval = 3
    /// The number of successive links that end in this way before it is reported.
    static let youngLinksAllowed = 2
    /// The number of links that are made to find out whether a bond still holds.
    static let linksToVerify = 3
    /// Seconds within which BlueZ encrypts a link to a paired device. If the adapter does not have the keys, a pairing
    /// replaces them, for which users have 30 (Core Specification, Vol 3, Part H, 3.4); if that fails, BlueZ may leave the
    /// link as it is, without an end. While it connects, BlueZ does nothing else, and an attempt may take 60 s.
    static let encryptionLimit: TimeInterval = 35
    /// Seconds within which BlueZ also resolves the services.
    static let resolutionLimit: TimeInterval = 60

    private var step: Step?
    private var waiters: [Waiter] = []
    private var lastAttempt: Attempt = 0
    /// Whether an operation waits for the pairing.
    private var isNeeded = false
    /// Whether the user has agreed to the pairing for that operation.
    private var isAgreed = false
    var policy = PairingPolicy.reject
    /// Whether BlueZ has to remove the device before it pairs; `nil` if that is known only after the replies to earlier
    /// calls.
    var mustRemove: Bool? = false
    /// Whether BlueZ was requested to cancel the pairing: requests that come now are for the next one.
    private(set) var isCancelling = false
    /// Whether the application has requested the present step.
    private var isRequested = false
    /// Whether BlueZ has asked this manager about a pairing that an operation on this link has made BlueZ begin.
    private var isBegunByBlueZ = false
    private var encryption: Encryption?

    /// How many pairings have succeeded.
    private(set) var count: UInt = 0
    private(set) var failureCount: UInt = 0
    /// `Date.distantPast` until a pairing has succeeded.
    private(set) var date = Date.distantPast

    /// Whether BlueZ pairs the device now for this manager.
    var isPairing: Bool { if case .pairing = step { true } else { false } }
    private var isLinkYoung: Bool { if case .young = encryption { true } else { false } }
    /// Whether there is a link that will not be encrypted.
    var isLinkDead: Bool { encryption == .failed }
    var isChecking: Bool { step == .checking }
    var isRemoving: Bool { step == .removing }
    /// Whether a link is needed that is encrypted with the keys of a bond.
    var isVerifying: Bool { if case .verifying = step { true } else { false } }
    /// Whether nothing is under way.
    var isIdle: Bool { step == nil }

    /// Returns the requester of a change that BlueZ reports now.
    private func origin(isPaired: Bool) -> PairingChange.Origin {
        switch step {
        case .pairing: isRequested ? .application : .onDemand
        case .removing where !isPaired, .verifying: .application
        case nil where isBegunByBlueZ: .onDemand
        case .checking, .removing, .seeking, .asking, nil: .elsewhere
        }
    }

    // MARK: Requests

    mutating func asked(
        _ request: Request, _ id: OperationID, timeout: TimeInterval, _ facts: LinkStatus,
        into orders: inout Orders
    ) {
        waiters.append(Waiter(id: id, request: request, timeout: timeout))
        if step == .seeking, !timeout.isFinite { orders.append(.startTimer(.search, Self.limit)) }
        proceed(facts, &orders)
    }

    /// An operation needs a pairing.
    mutating func needed(_ facts: LinkStatus, into orders: inout Orders) {
        isNeeded = true
        proceed(facts, &orders)
    }

    /// The application cancels the pairing, or the user has refused it: fails everything that waits for it.
    mutating func cancelAsked(_ error: PairingError = .cancelled, into orders: inout Orders) {
        settle(error, &orders) { $0.request != .unpair }
        (isNeeded, isAgreed) = (false, false)
        withdraw(&orders)
    }

    /// Returns false if the operation does not wait for a pairing.
    /// - Parameter obstacle: Why the pairing that is under way has not progressed, if that is known.
    mutating func timedOut(_ id: OperationID, _ obstacle: PairingError? = nil, into orders: inout Orders) -> Bool {
        guard let index = waiters.firstIndex(where: { $0.id == id }) else { return false }
        let error =
            waiters.remove(at: index).request == .unpair
            ? .removalFailed(.removalUnanswered) : isPairing && !isCancelling ? obstacle ?? .timedOut : .timedOut
        orders.append(.settle(id, .failed(.pairing(error))))
        if waiters.isEmpty, !isNeeded { withdraw(&orders) }
        return true
    }

    /// Removes a request whose caller no longer waits, unless BlueZ is pairing or removing the device for it. Returns false if
    /// it is settled.
    mutating func withdraw(_ id: OperationID, into orders: inout Orders) -> Bool {
        guard let index = waiters.firstIndex(where: { $0.id == id }) else { return false }
        let isPair = waiters[index].request.isPair
        if isPairing, !isCancelling, isPair { return true }
        if isRemoving, !isPair {
            // Nothing is paired after it.
            waiters[index].request = .unpair
            return true
        }
        orders.append(.settle(id, .failed(.cancelled)))
        waiters.remove(at: index)
        if waiters.isEmpty, !isNeeded { withdraw(&orders) }
        return true
    }

    /// Ends a step that nothing waits for any more. A removal cannot be ended.
    private mutating func withdraw(_ orders: inout Orders) {
        switch step {
        case .checking:
            step = nil
        case .seeking, .verifying:
            stopSearching(&orders)
        case .asking:
            step = nil
            orders.append(.cancelRequests)
        case .pairing:
            guard !isCancelling else { return }
            isCancelling = true
            orders.append(.cancelPairing)
        case nil:
            if isBegunByBlueZ { orders.append(.cancelRequests) }
        case .removing:
            break
        }
    }

    /// Fails everything that waits: no pairing is possible.
    mutating func fail(_ error: PairingError, into orders: inout Orders) {
        settle(error, &orders) { _ in true }
        cancelAsked(error, into: &orders)
    }

    /// BlueZ asks about a pairing that an operation of this manager may have begun.
    mutating func askedOnDemand() { isBegunByBlueZ = step == nil }

    // MARK: Steps

    private mutating func proceed(_ facts: LinkStatus, _ orders: inout Orders) {
        guard step == nil else { return }
        isRequested = !waiters.isEmpty
        guard isRequested || isNeeded else { return }
        if mustRemove == true || waiters.contains(where: { $0.request == .unpair || $0.request == .repair }) {
            step = .removing
            orders.append(.removeDevice)
        } else if mustRemove == nil, facts.device != nil {
            step = .checking
            orders.append(.awaitReplies)
        } else if facts.device == nil {
            step = .seeking
            orders.append(.seek)
            orders.append(.startTimer(.search, Self.limit))
        } else if facts.isBonded {
            guard !facts.isLinkSecure else { return ended(nil, facts, &orders) }
            step = .verifying(links: 0)
            orders.append(.startTimer(.search, Self.limit))
        } else if !isRequested, !isAgreed, policy.consent(to: .operation) == .needsAnswer, !facts.isPaired {
            lastAttempt += 1
            step = .asking(lastAttempt)
            orders.append(.askForConsent(lastAttempt))
        } else {
            lastAttempt += 1
            step = .pairing(lastAttempt, wasConnected: facts.isConnected)
            orders.append(.callPair(lastAttempt, timeout: timeLimit))
        }
    }

    /// The seconds that `Pair` may take: the longest time limit of those that wait for it.
    private var timeLimit: TimeInterval {
        let limits = waiters.map { $0.hasTimeout ? $0.timeout : Self.limit }
        return max(limits.max() ?? 0, isNeeded ? Self.limit : 0)
    }

    /// Ends a search, or the wait for a link that shows that the bond holds.
    private mutating func stopSearching(_ orders: inout Orders) {
        if step == .seeking { orders.append(.stopSeeking) }
        orders.append(.cancelTimer(.search))
        step = nil
    }

    /// A search, or the wait for a link, has exceeded the limit of what has no time limit of its own.
    mutating func searchTimedOut(into orders: inout Orders) {
        settle(.timedOut, &orders) { !$0.hasTimeout }
        isNeeded = false
        if waiters.isEmpty { withdraw(&orders) }
    }

    /// BlueZ has replied to each call of the last link that it has not forgotten.
    mutating func checked(_ facts: LinkStatus, into orders: inout Orders) {
        guard step == .checking else { return }
        step = nil
        proceed(facts, &orders)
    }

    /// BlueZ has removed the device, or refused to.
    mutating func removed(_ error: PairingError?, _ facts: LinkStatus, into orders: inout Orders) {
        guard step == .removing else { return }
        step = nil
        mustRemove = false
        settle(error, &orders) { $0.request == .unpair || $0.request == .repair && error != nil }
        for index in waiters.indices where waiters[index].request == .repair {
            waiters[index].request = .pair(trusting: false)
        }
        proceed(facts, &orders)
    }

    /// The user has agreed that the manager pairs for an operation. A refusal is the reply to the pairing.
    mutating func agreed(_ attempt: Attempt, _ facts: LinkStatus, into orders: inout Orders) {
        guard step == .asking(attempt) else { return }
        step = nil
        isAgreed = true
        proceed(facts, &orders)
    }

    /// BlueZ has replied to a pairing, or the user has refused it. Returns whether the link, if there is one, was made for it;
    /// `nil` if the attempt has ended before.
    mutating func replied(
        _ attempt: Attempt, _ error: PairingError?, _ facts: LinkStatus, at now: Date, into orders: inout Orders
    ) -> Bool? {
        let wasConnected: Bool
        switch step {
        case .asking(attempt):
            wasConnected = facts.isConnected
            step = .pairing(attempt, wasConnected: wasConnected)
        case .pairing(attempt, let isKnown): wasConnected = isKnown
        default: return nil
        }
        if error == nil {
            count += 1
            date = now
            forgetShortLinks(facts, &orders)
        } else {
            failureCount += 1
            report(facts, error, &orders)
        }
        ended(error, facts, &orders)
        return !wasConnected
    }

    /// A pairing or a verification has ended, and so has what waits for it. Requests that came during a cancellation are for the
    /// next pairing.
    private mutating func ended(_ error: PairingError?, _ facts: LinkStatus, _ orders: inout Orders) {
        if error == nil, waiters.contains(where: { $0.request == .pair(trusting: true) }) {
            orders.append(.setTrusted(true))
        }
        if !isCancelling || error == nil {
            let isRefused = error?.isRefusal ?? false
            settle(error, &orders) { $0.request.isPair || $0.request == .repair && isRefused }
        }
        (step, isNeeded, isAgreed, isCancelling) = (nil, false, false, false)
        proceed(facts, &orders)
    }

    private mutating func settle(_ error: PairingError?, _ orders: inout Orders, where isSettled: (Waiter) -> Bool) {
        for waiter in waiters where isSettled(waiter) {
            orders.append(.settle(waiter.id, error.map { .failed(.pairing($0)) } ?? .done))
        }
        waiters.removeAll(where: isSettled)
    }

    // MARK: Bonds

    /// Another link is needed to find out whether the bond holds. Returns false if enough were tried.
    mutating func nextLinkToVerify() -> Bool {
        guard case .verifying(let links) = step, links < Self.linksToVerify else { return false }
        step = .verifying(links: links + 1)
        return true
    }

    /// A link was encrypted with the keys of the bond, or it is known why none is.
    mutating func verified(_ error: PairingError?, _ facts: LinkStatus, into orders: inout Orders) {
        guard isVerifying else { return }
        stopSearching(&orders)
        ended(error, facts, &orders)
    }

    // MARK: Reports

    /// BlueZ has reported the device's properties.
    ///
    /// - Parameter isOperating: Whether an operation is under way that may have begun a pairing.
    mutating func factsChanged(
        from old: LinkStatus, to new: LinkStatus, isOperating: Bool = false,
        into orders: inout Orders
    ) {
        if !isOperating { isBegunByBlueZ = false }
        // The bond of a device that BlueZ no longer has is reported as ended only if this manager has ended it.
        let isRemoval = new.device == nil && step != .removing
        if old.device != nil, !isRemoval, old.isPaired != new.isPaired || old.isBonded != new.isBonded {
            report(new, nil, &orders)
        }
        if new.isLinkSecure { forgetShortLinks(new, &orders) }
        if new.areServicesResolved || !new.isPaired { endEncryption(into: &orders) }
        switch step {
        case .verifying where new.isLinkSecure: return verified(nil, new, into: &orders)
        // The bond is gone, or the device, which has to be found again.
        case .verifying where !new.isBonded, .seeking where new.device != nil: stopSearching(&orders)
        // There is nothing to agree to any more, or the device has to be found again first.
        case .asking where new.isPaired || new.device == nil: withdraw(&orders)
        default: return
        }
        proceed(new, &orders)
    }

    private func report(_ facts: LinkStatus, _ error: PairingError?, _ orders: inout Orders) {
        orders.append(
            .reportPairing(
                PairingChange(
                    isPaired: facts.isPaired, isBonded: facts.isBonded, origin: origin(isPaired: facts.isPaired),
                    error: error)))
    }

    // MARK: Missing keys

    private func forgetShortLinks(_ facts: LinkStatus, _ orders: inout Orders) {
        if facts.shortLinks > 0 { orders.append(.noteShortLinks(0)) }
    }

    /// An attempt to connect has failed although there was a link.
    /// - Returns: The error to report, if it means that the peripheral no longer has the keys of its bond.
    mutating func attemptFell(_ facts: LinkStatus, into orders: inout Orders) -> PairingError? {
        defer { endEncryption(into: &orders) }
        return facts.isPaired && !isPairing ? countYoungLink(isCertain: false, facts, &orders) : nil
    }

    /// The encryption is over, or there is no link any more.
    mutating func endEncryption(into orders: inout Orders) {
        if encryption.take() != nil { orders.append(.cancelTimer(.encryption)) }
    }

    /// The link is up, for BlueZ or for the manager. BlueZ begins to encrypt it with the keys of the bond.
    /// - Parameter limit: The seconds after which it is of no use, unless the services are resolved.
    mutating func linkWentUp(
        _ facts: LinkStatus, limit: TimeInterval = Self.resolutionLimit, into orders: inout Orders
    ) {
        guard facts.isPaired, !facts.areServicesResolved, !isPairing else { return endEncryption(into: &orders) }
        encryption = .young(limit: limit)
        orders.append(.startTimer(.encryption, Self.youngLinkLimit))
    }

    /// The link has lasted so long that the peripheral has its keys, or too long for the adapter to have them.
    mutating func encryptionDue(into orders: inout Orders) {
        guard case .young(let limit) = encryption else { return failEncryption() }
        encryption = .awaited
        orders.append(.startTimer(.encryption, limit - Self.youngLinkLimit))
    }

    /// A link that is not encrypted yet will not be: the adapter does not have the keys, and this process has rejected the
    /// pairing that was to replace them.
    mutating func failEncryption() { if encryption != nil { encryption = .failed } }

    /// The link has ended.
    /// - Parameter reason: BlueZ's reason if the application has not ended it, from 5.83 on.
    /// - Returns: The error to report, if it means that the peripheral no longer has the keys of its bond.
    mutating func linkWentDown(
        isLost: Bool, reason: LinkEnd?, _ facts: LinkStatus, into orders: inout Orders
    ) -> PairingError? {
        defer { endEncryption(into: &orders) }
        isBegunByBlueZ = false
        let isCertain = reason?.name == "org.bluez.Reason.Authentication"
        guard isLost, facts.isPaired, !isPairing, isLinkYoung || isLinkDead || isCertain else { return nil }
        return countYoungLink(isCertain: isCertain, facts, &orders)
    }

    private mutating func countYoungLink(
        isCertain: Bool, _ facts: LinkStatus, _ orders: inout Orders
    ) -> PairingError? {
        // Each manager that uses the link counts from what was noted before it.
        let count = facts.shortLinks + 1
        orders.append(.noteShortLinks(count))
        guard isCertain || isLinkDead || count >= Self.youngLinksAllowed else { return nil }
        let error = PairingError.keyMissing(isCertain: isCertain)
        report(facts, error, &orders)
        return error
    }
}

extension BusError {
    /// BlueZ has not removed a device within the caller's time limit.
    fileprivate static let removalUnanswered = BusError(
        name: "org.freedesktop.DBus.Error.NoReply", message: "bluetoothd has not removed the device in time")
}

extension PairingState.Request {
    fileprivate var isPair: Bool { if case .pair = self { true } else { false } }
}

extension PairingError {
    /// Whether this program has refused a question about the pairing, which also holds for what was requested since.
    fileprivate var isRefusal: Bool {
        switch self {
        case .rejected(by: .application), .rejected(by: .policy): true
        default: false
        }
    }

    /// Creates the error of a pairing that has failed.
    init(_ cause: PairingCause, _ error: BlueZError?) {
        let failure = error.map { BusError($0) } ?? BusError(name: "org.bluez.Error.Failed", message: "")
        self =
            switch cause {
            case .cancelled: .cancelled
            case .rejectedByUser: .rejected(by: .application)
            case .rejectedByPolicy: .rejected(by: .policy)
            case .rejectedByPeer: .rejected(by: .peer)
            case .timedOut: .timedOut
            case .linkLost: .linkLost
            case .failed: error?.cause == .alreadyExists ? .alreadyPaired(failure) : .failed(failure)
            case .connectionFailed: .connectionFailed(failure)
            case .busy: .busy(failure)
            case .noAgent, .denied: .unauthorized(failure)
            case .notFound: .unavailable(failure)
            }
    }
}
