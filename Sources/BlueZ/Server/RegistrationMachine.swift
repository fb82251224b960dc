/// How far an application or an advertisement of this process has come with `bluetoothd`.
package enum RegistrationState: Hashable, Sendable {
    /// There is nothing to register, or it was unregistered.
    case idle
    case waiting(Obstacle)
    /// BlueZ was asked, or is asked again soon.
    case registering
    /// BlueZ has refused it with an error that may pass, and is asked again after a pause.
    case retrying(BlueZError)
    case registered
    /// BlueZ has refused it. Another content, or another daemon, gets another try.
    case refused(BlueZError)
    /// The time-out of the content has passed, and BlueZ has ended it. Nothing follows.
    case timedOut

    /// What has to happen first. There is no limit to that wait.
    package enum Obstacle: Hashable, Sendable {
        /// No bus, no daemon, or no such adapter.
        case adapter
        /// The adapter is off.
        case power
        /// The adapter has not the interface that is needed: its controller cannot do this.
        case support
    }
}

/// Keeps one application or one advertisement registered with `bluetoothd`: over its restarts, over adapters that go, come,
/// and are turned off and on, over its release by BlueZ, and over changes of the content, which BlueZ takes only as a new
/// registration (it reads the objects once).
///
/// Pure: calls go out as orders, their replies and time come in as events. Contents are known by their generations, in the
/// sequence in which they were requested.
package struct RegistrationMachine {
    package typealias Generation = UInt32
    package typealias RequestID = UInt32

    /// What differs between the kinds of objects that BlueZ registers.
    package struct Rules: Sendable {
        /// How often it is tried at first after `org.bluez.Error.Failed`, which names no reason.
        var mostFailures: Int
        /// Whether callers wait for the outcome of each content.
        var isAwaited: Bool
        /// Whether BlueZ gets the former content again when it refuses a new one.
        var fallsBack: Bool
        /// Whether its attributes have handles, which may be taken by another program.
        var hasHandles: Bool
        /// Whether all generations have one object path, by which BlueZ knows them.
        var sharesPath: Bool
        /// For how many seconds it has to stay registered before earlier failures are forgotten.
        var calm: Double?

        package static let application = Rules(
            mostFailures: 1, isAwaited: true, fallsBack: true, hasHandles: true, sharesPath: false, calm: nil)

        // The kernel refuses each advertisement for a moment after an adapter was turned on. The same error means that
        // the fields are too long together (5.66: "Failed to register advertisement").
        package static let advertisement = Rules(
            mostFailures: 3, isAwaited: false, fallsBack: false, hasHandles: false, sharesPath: true, calm: 60)
    }

    package enum Order: Hashable, Sendable {
        /// Export this content and call `Register…`; reply with ``RegistrationMachine/replied(_:error:)``. If there is no
        /// reply for ``RegistrationMachine/patience`` seconds, call ``RegistrationMachine/unanswered(_:)`` before.
        case register(Generation, RequestID)
        /// Call `Unregister…` for this content and withdraw it; no reply is needed. BlueZ executes calls in their sequence,
        /// so a `register` behind it replaces it at once.
        case unregister(Generation)
        /// The same, as the last call; reply with ``RegistrationMachine/replied(_:error:)``.
        case unregisterLast(Generation, RequestID)
        /// The handles that BlueZ has given may be taken by another program: ask for new ones.
        case forgetHandles
        /// They were not the reason: ask for them again.
        case restoreHandles
        case startTimer(seconds: Double)
        case cancelTimer
        case report(RegistrationState)
        /// All contents up to this one are registered, or refused.
        case settled(Generation, BlueZError?)
        /// BlueZ has answered the last `Unregister…`. A `Register…` call is still unanswered, and is unregistered if it
        /// succeeds.
        case withdrawn
        /// Nothing of it is left in BlueZ.
        case ended
    }

    package enum State: Hashable, Sendable {
        /// Nothing is requested.
        case idle
        case waiting
        case registering(Generation, RequestID)
        case registered(Generation)
        /// A try has failed, or BlueZ has released it; the timer runs.
        case backingOff
        case refused
        case ending(Generation)
        case ended
    }

    /// How often it is tried if BlueZ has registered it before: for half a minute.
    static let mostAgain = 8
    /// How often it is tried before BlueZ has ever registered it: for 7.5 seconds, so that a caller with
    /// `PeripheralManager`'s time-out learns the reason.
    static let mostAtFirst = 5
    private static let firstDelay = 0.5
    private static let longestDelay = 8.0
    private static let firstPatience = 20.0
    private static let longestPatience = 320.0
    /// How often other handles are asked for: those of our own choice may be taken several times in a row.
    private static let mostHandleTries = 4

    package private(set) var state = State.idle
    private let rules: Rules
    private var obstacle: RegistrationState.Obstacle? = .adapter
    /// The newest content that is requested; `nil`: none.
    private var wanted: Generation?
    /// Whether BlueZ ends the content after a time-out.
    private var isLimited = false
    private var newest: Generation = 0
    /// The last content that BlueZ has registered.
    private var good: Generation?
    private var lastRequest: RequestID = 0
    /// Calls of `Register…` without a reply, after which the machine has called again.
    private var overdue: [RequestID: Generation] = [:]
    // The calls that still need a reply at the end. BlueZ executes calls in their sequence, so `Unregister…` behind an
    // unanswered `Register…` cancels it. If BlueZ fails the former and executes the latter afterwards, it is
    // unregistered once more.
    private var unregistering: RequestID?
    private var registering: Set<RequestID> = []
    private var isTimerRunning = false

    private var hasHandles = false
    private var handleTries = RegistrationMachine.mostHandleTries

    /// How often BlueZ has refused or released it.
    private var failures = 0
    private var hasCleared = false
    /// How long to wait for the reply to a `register`, in seconds. It is doubled each time, so that a slow daemon gets long
    /// enough in the end.
    package private(set) var patience = RegistrationMachine.firstPatience

    package init(_ rules: Rules) { self.rules = rules }

    // MARK: Requests

    /// From now on this content is requested, or, if it is empty, nothing.
    ///
    /// - Parameter isLimited: Whether BlueZ ends it after a time-out, by releasing it.
    package mutating func requested(
        _ generation: Generation, isEmpty: Bool = false, isLimited: Bool = false
    ) -> [Order] {
        wanted = isEmpty ? nil : generation
        newest = generation
        self.isLimited = isLimited
        switch state {
        case .registered(let old): return [.unregister(old)] + startOver()
        // The reply comes first: a registration cannot be cancelled.
        case .registering: return []
        case .idle, .waiting, .backingOff, .refused: return startOver()
        case .ending, .ended: return settled(generation, .closedApplication)
        }
    }

    /// Nothing of it is needed any more.
    package mutating func end() -> [Order] {
        let told = settled(newest, .closedApplication) + [.report(.idle)]
        switch state {
        case .ending:
            return unregistering == nil ? [.withdrawn] : []
        case .ended:
            return []
        case .idle, .waiting, .backingOff, .refused:
            state = .ended
            return cancelTimer() + told + [.ended]
        case .registering(let generation, let request):
            let unanswered = overdue.filter { isSame($0.value, generation) }.keys
            for request in unanswered { overdue[request] = nil }
            return told + [unregisterLast(generation, registering: Set(unanswered).union([request]))]
        case .registered(let generation):
            return told + [unregisterLast(generation)]
        }
    }

    private mutating func unregisterLast(_ generation: Generation, registering: Set<RequestID> = []) -> Order {
        lastRequest &+= 1
        state = .ending(generation)
        (unregistering, self.registering) = (lastRequest, registering)
        return .unregisterLast(generation, lastRequest)
    }

    // MARK: Events

    /// What prevents the registration has changed; `nil`: nothing does.
    package mutating func obstacleChanged(_ new: RegistrationState.Obstacle?) -> [Order] {
        guard new != obstacle else { return [] }
        obstacle = new
        switch state {
        case .idle, .ended:
            return []
        case .ending:
            // An adapter that is only off still replies. Otherwise the registration ended with the daemon, the adapter
            // or its interface.
            guard new == .adapter || new == .support else { return [] }
            state = .ended
            return [.ended]
        case .registering(let generation, _) where new == .power, .registered(let generation) where new == .power:
            // An adapter that was turned off may keep it or not, by the version of BlueZ and the kernel.
            return [.unregister(generation)] + startOver()
        case .waiting, .registering, .registered, .backingOff, .refused:
            return startOver()
        }
    }

    package mutating func replied(_ request: RequestID, error: BlueZError?) -> [Order] {
        if let generation = overdue.removeValue(forKey: request) { return repliedLate(generation, error) }
        switch state {
        case .registering(let generation, request):
            return error.map { refused(generation, $0) } ?? taken(generation)
        case .ending(let generation):
            return repliedAtTheEnd(of: generation, request, error)
        case .idle, .waiting, .registering, .registered, .backingOff, .refused, .ended:
            return []
        }
    }

    private func repliedLate(_ generation: Generation, _ error: BlueZError?) -> [Order] {
        guard error == nil else { return [] }
        switch state {
        // The reply to the later call decides.
        case .registering(let later, _) where isSame(later, generation): return []
        case .registered(let later) where isSame(later, generation): return []
        case .idle, .waiting, .registering, .registered, .backingOff, .refused, .ending, .ended:
            return [.unregister(generation)]
        }
    }

    private mutating func repliedAtTheEnd(
        of generation: Generation, _ request: RequestID, _ error: BlueZError?
    ) -> [Order] {
        if request == unregistering {
            unregistering = nil
            guard error == nil || registering.isEmpty else { return [.withdrawn] }
        } else {
            guard registering.remove(request) != nil, unregistering == nil else { return [] }
            guard error != nil else { return [unregisterLast(generation, registering: registering)] }
            guard registering.isEmpty else { return [] }
        }
        state = .ended
        return [.ended]
    }

    /// The reply to a `register` may be lost: unregisters the content and calls again. If the first call succeeds later, the
    /// content is unregistered unless it is the one that is requested.
    package mutating func unanswered(_ request: RequestID) -> [Order] {
        guard case .registering(let generation, request) = state else { return [] }
        overdue[request] = generation
        guard wanted == generation else { return [.unregister(generation)] + startOver() }
        patience = min(patience * 2, Self.longestPatience)
        return [.unregister(generation), register(generation)]
    }

    /// Handles were chosen for the content that is being registered.
    package mutating func handlesChosen() { hasHandles = true }

    /// `Release`: BlueZ has dropped it.
    package mutating func released() -> [Order] {
        switch state {
        case .registered where isLimited:
            state = .ended
            return cancelTimer() + [.report(.timedOut), .ended]
        case .registered, .registering:
            // A daemon that is about to go releases it as well; its going is reported before the pause is over.
            failures += 1
            return retry(Self.mostAgain, BlueZError(name: "org.bluez.Error.Failed", message: "Released."))
        case .idle, .waiting, .backingOff, .refused, .ending, .ended:
            return []
        }
    }

    package mutating func timerFired() -> [Order] {
        isTimerRunning = false
        switch state {
        case .backingOff:
            return wanted.map { [register($0)] } ?? []
        case .registered:
            forgetFailures()
            return []
        case .idle, .waiting, .registering, .refused, .ending, .ended:
            return []
        }
    }

    // MARK: Deciding

    private func isSame(_ one: Generation, _ other: Generation) -> Bool { rules.sharesPath || one == other }

    private func settled(_ generation: Generation, _ error: BlueZError?) -> [Order] {
        rules.isAwaited ? [.settled(generation, error)] : []
    }

    private mutating func startTimer(_ seconds: Double) -> Order {
        isTimerRunning = true
        return .startTimer(seconds: seconds)
    }

    private mutating func cancelTimer() -> [Order] {
        defer { isTimerRunning = false }
        return isTimerRunning ? [.cancelTimer] : []
    }

    private mutating func forgetFailures() { (failures, hasCleared, patience) = (0, false, Self.firstPatience) }

    private mutating func startOver() -> [Order] {
        forgetFailures()
        let cancelled = cancelTimer()
        guard let wanted else {
            state = .idle
            good = nil
            return cancelled + [.report(.idle)] + settled(newest, nil)
        }
        if let obstacle {
            state = .waiting
            return cancelled + [.report(.waiting(obstacle))]
        }
        return cancelled + [.report(.registering), register(wanted)]
    }

    private mutating func register(_ generation: Generation) -> Order {
        lastRequest &+= 1
        state = .registering(generation, lastRequest)
        return .register(generation, lastRequest)
    }

    private mutating func taken(_ generation: Generation) -> [Order] {
        good = generation
        hasHandles = rules.hasHandles
        handleTries = Self.mostHandleTries
        guard wanted == generation else { return [.unregister(generation)] + startOver() }
        state = .registered(generation)
        let told = [.report(.registered)] + settled(generation, nil)
        guard failures > 0, let calm = rules.calm else {
            forgetFailures()
            return told
        }
        // What is released again and again must not be registered without a pause: its failures still count.
        (hasCleared, patience) = (false, Self.firstPatience)
        return told + [startTimer(calm)]
    }

    /// An error is tried again only if it is known to pass. What BlueZ has registered before is tried again after nearly
    /// every error, since the operation that requested it has succeeded and no caller waits.
    private mutating func refused(_ generation: Generation, _ error: BlueZError) -> [Order] {
        // Whether BlueZ would register an older content in the end does not matter.
        guard wanted == generation else { return [.unregister(generation)] + startOver() }
        if error.cause == .failed, hasHandles, handleTries > 0 {
            hasHandles = false
            handleTries -= 1
            return [.forgetHandles, register(generation)]
        }
        failures += 1
        let isKnown = good == generation
        switch error.cause {
        case .alreadyExists, .noReply:
            // The reply to an earlier call was lost: BlueZ may have it, or get it yet.
            guard hasCleared else {
                hasCleared = true
                return [.unregister(generation), register(generation)]
            }
            return retry(isKnown ? Self.mostAgain : 0, error)
        case .invalidArguments, .notSupported, .accessDenied, .notAuthorized:
            return giveUp(error)
        case .failed:
            return retry(isKnown ? Self.mostAgain : rules.mostFailures, error)
        // The kernel is busy, or the adapter or the daemon is about to go, which is reported separately.
        case .inProgress, .notReady, .blocked, .unknownObject, .unknownMethod, .serviceGone, .disconnected:
            return retry(isKnown ? Self.mostAgain : Self.mostAtFirst, error)
        // "Maximum advertisements reached" is `notPermitted`; names that are not in the table are `other`.
        case .notPermitted, .notAvailable, .doesNotExist, .alreadyConnected, .notConnected, .authenticationCanceled,
            .authenticationFailed, .authenticationRejected, .authenticationTimeout, .connectionAttemptFailed, .other:
            return retry(isKnown ? Self.mostAgain : 0, error)
        }
    }

    private mutating func retry(_ most: Int, _ error: BlueZError) -> [Order] {
        guard failures < most else { return giveUp(error) }
        state = .backingOff
        let delay = min(Self.firstDelay * Double(1 << (failures - 1)), Self.longestDelay)
        return [.report(.retrying(error)), startTimer(delay)]
    }

    private mutating func giveUp(_ error: BlueZError) -> [Order] {
        guard rules.fallsBack, let good, good != wanted else {
            state = .refused
            return [.report(.refused(error))] + settled(newest, error)
        }
        wanted = good
        handleTries = Self.mostHandleTries
        forgetFailures()
        hasHandles = rules.hasHandles
        return settled(newest, error) + [.restoreHandles, register(good)]
    }
}

extension BlueZError {
    static let closedApplication = BlueZError(
        name: "org.bluez.Error.Canceled", message: "The application was ended by this process.")
}
