/// How far an application or an advertisement of this process has come with `bluetoothd`.
package enum RegistrationState: Hashable, Sendable {
    /// It has not begun, or was unregistered.
    case idle
    case waiting(Obstacle)
    /// BlueZ was asked, or is asked again soon.
    case registering
    /// BlueZ has refused it with an error that may pass, and is asked again after a pause.
    case retrying(BlueZError)
    case registered
    /// BlueZ has refused it. A change of its content or of the adapter, or another daemon, gets another try.
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
/// and are turned off and on, over its release by BlueZ, and over changes of an advertisement, which BlueZ takes only as a
/// new registration (it reads the objects once). BlueZ identifies it by its object path, which does not change.
///
/// Pure: calls go out as orders, their replies and time come in as events.
struct RegistrationMachine {
    typealias RequestID = UInt32

    /// What differs between the kinds of objects that BlueZ registers.
    struct Rules: Sendable {
        /// What the names of the object and of the methods end with: `RegisterApplication`, `UnregisterApplication`.
        let noun: String
        /// The interface of the adapter that registers it.
        let manager: String
        /// How long to wait for the reply to the last `Unregister…`, in seconds.
        let lastTimeout: Double
        /// How often it is tried at first after `org.bluez.Error.Failed`, which names no reason.
        let mostFailures: Int
        /// Whether its attributes have handles, which may be taken by another program.
        let hasHandles: Bool
        /// For how many seconds it has to stay registered before earlier failures are forgotten.
        let calm: Double?

        static let application = Rules(
            noun: "Application", manager: "org.bluez.GattManager1", lastTimeout: 5, mostFailures: 1, hasHandles: true,
            calm: nil)

        // The kernel refuses each advertisement for a moment after an adapter was turned on. The same error means that
        // the fields are too long together (5.66: "Failed to register advertisement"). Callers wait less than 20 s for the
        // end.
        static let advertisement = Rules(
            noun: "Advertisement", manager: "org.bluez.LEAdvertisingManager1", lastTimeout: 20, mostFailures: 3,
            hasHandles: false, calm: 60)
    }

    enum Order: Hashable, Sendable {
        /// Export it and call `Register…`; reply with ``RegistrationMachine/replied(_:error:)``. If there is no reply for
        /// ``RegistrationMachine/patience`` seconds, call ``RegistrationMachine/unanswered(_:)`` before.
        case register(RequestID)
        /// Call `Unregister…` and withdraw it; no reply is needed. BlueZ executes calls in their sequence, so a `register`
        /// behind it replaces it at once.
        case unregister
        /// The same, as the last call; reply with ``RegistrationMachine/replied(_:error:)``.
        case unregisterLast(RequestID)
        /// The handles that BlueZ has given may be taken by another program: ask for new ones.
        case forgetHandles
        /// Start the timer, or start it again. One that nothing waits for any more may fire.
        case startTimer(seconds: Double)
        case report(RegistrationState)
        /// BlueZ has answered the last `Unregister…`. A `Register…` call is still unanswered, and is unregistered if it
        /// succeeds.
        case withdrawn
        /// Nothing of it is left in BlueZ.
        case ended
    }

    enum State: Hashable, Sendable {
        /// It has not begun: the adapters were not reported yet.
        case idle
        case waiting
        case registering(RequestID)
        case registered
        /// A try has failed, or BlueZ has released it; the timer runs.
        case backingOff
        case refused
        case ending
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

    private(set) var state = State.idle
    private let rules: Rules
    private var obstacle: RegistrationState.Obstacle? = .adapter
    /// Whether the content has changed since the call of `Register…` that has no reply.
    private var isOutdated = false
    /// Whether BlueZ has registered the present content before.
    private var isKnown = false
    private var lastRequest: RequestID = 0
    /// Calls of `Register…` without a reply, after which the machine has called again.
    private var overdue: Set<RequestID> = []
    // The calls that still need a reply at the end. BlueZ executes calls in their sequence, so `Unregister…` behind an
    // unanswered `Register…` cancels it. If BlueZ fails the former and executes the latter afterwards, it is
    // unregistered once more.
    private var unregistering: RequestID?
    private var registering: Set<RequestID> = []

    private var hasHandles = false
    private var handleTries = RegistrationMachine.mostHandleTries

    /// How often BlueZ has refused or released it.
    private var failures = 0
    private var hasCleared = false
    /// How long to wait for the reply to a `register`, in seconds. It is doubled each time, so that a slow daemon gets long
    /// enough in the end.
    private(set) var patience = RegistrationMachine.firstPatience

    init(_ rules: Rules) { self.rules = rules }

    // MARK: Requests

    /// The content is to be registered for the first time, or has changed.
    mutating func changed() -> [Order] {
        isKnown = false
        switch state {
        case .registered: return [.unregister] + startOver()
        // The reply comes first: a registration cannot be cancelled.
        case .registering: isOutdated = true
        case .idle, .waiting, .backingOff, .refused: return startOver()
        case .ending, .ended: break
        }
        return []
    }

    /// It is not needed any more.
    mutating func end() -> [Order] {
        switch state {
        case .ending:
            return unregistering == nil ? [.withdrawn] : []
        case .ended:
            return []
        case .idle, .waiting, .backingOff, .refused:
            state = .ended
            return [.report(.idle), .ended]
        case .registering(let request):
            defer { overdue = [] }
            return [.report(.idle), unregisterLast(registering: overdue.union([request]))]
        case .registered:
            return [.report(.idle), unregisterLast()]
        }
    }

    private mutating func unregisterLast(registering: Set<RequestID> = []) -> Order {
        lastRequest &+= 1
        state = .ending
        (unregistering, self.registering) = (lastRequest, registering)
        return .unregisterLast(lastRequest)
    }

    // MARK: Events

    /// What prevents the registration has changed; `nil`: nothing does.
    mutating func obstacleChanged(_ new: RegistrationState.Obstacle?) -> [Order] {
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
        case .registering where new == .power, .registered where new == .power:
            // An adapter that was turned off may keep it or not, by the version of BlueZ and the kernel.
            return [.unregister] + startOver()
        case .waiting, .registering, .registered, .backingOff, .refused:
            return startOver()
        }
    }

    mutating func replied(_ request: RequestID, error: BlueZError?) -> [Order] {
        if overdue.remove(request) != nil { return error == nil ? takenLate() : [] }
        switch state {
        case .registering(request): return error.map { refused($0) } ?? taken()
        case .ending: return repliedAtTheEnd(request, error)
        case .idle, .waiting, .registering, .registered, .backingOff, .refused, .ended: return []
        }
    }

    private func takenLate() -> [Order] {
        switch state {
        // The reply to the later call decides.
        case .registering, .registered: []
        case .idle, .waiting, .backingOff, .refused, .ending, .ended: [.unregister]
        }
    }

    private mutating func repliedAtTheEnd(_ request: RequestID, _ error: BlueZError?) -> [Order] {
        if request == unregistering {
            unregistering = nil
            guard error == nil || registering.isEmpty else { return [.withdrawn] }
        } else {
            guard registering.remove(request) != nil, unregistering == nil else { return [] }
            guard error != nil else { return [unregisterLast(registering: registering)] }
            guard registering.isEmpty else { return [] }
        }
        state = .ended
        return [.ended]
    }

    /// The reply to a `register` may be lost: unregisters it and calls again.
    mutating func unanswered(_ request: RequestID) -> [Order] {
        guard case .registering(request) = state else { return [] }
        overdue.insert(request)
        guard !isOutdated else { return [.unregister] + startOver() }
        patience = min(patience * 2, Self.longestPatience)
        return [.unregister, register()]
    }

    /// Handles were chosen for the content that is being registered.
    mutating func handlesChosen() { hasHandles = true }

    /// `Release`: BlueZ has dropped it.
    ///
    /// - Parameter isLimited: Whether BlueZ ends it after a time-out, by releasing it.
    mutating func released(isLimited: Bool = false) -> [Order] {
        switch state {
        case .registered where isLimited:
            state = .ended
            return [.report(.timedOut), .ended]
        case .registered, .registering:
            // A daemon that is about to go releases it as well; its going is reported before the pause is over.
            failures += 1
            return retry(Self.mostAgain, BlueZError(name: "org.bluez.Error.Failed", message: "Released."))
        case .idle, .waiting, .backingOff, .refused, .ending, .ended:
            return []
        }
    }

    mutating func timerFired() -> [Order] {
        switch state {
        case .backingOff:
            return [register()]
        case .registered:
            forgetFailures()
            return []
        case .idle, .waiting, .registering, .refused, .ending, .ended:
            return []
        }
    }

    // MARK: Deciding

    private mutating func forgetFailures() { (failures, hasCleared, patience) = (0, false, Self.firstPatience) }

    private mutating func startOver() -> [Order] {
        forgetFailures()
        if let obstacle {
            state = .waiting
            return [.report(.waiting(obstacle))]
        }
        return [.report(.registering), register()]
    }

    private mutating func register() -> Order {
        lastRequest &+= 1
        state = .registering(lastRequest)
        isOutdated = false
        return .register(lastRequest)
    }

    private mutating func taken() -> [Order] {
        hasHandles = rules.hasHandles
        handleTries = Self.mostHandleTries
        guard !isOutdated else { return [.unregister] + startOver() }
        state = .registered
        isKnown = true
        guard failures > 0, let calm = rules.calm else {
            forgetFailures()
            return [.report(.registered)]
        }
        // What is released again and again must not be registered without a pause: its failures still count.
        (hasCleared, patience) = (false, Self.firstPatience)
        return [.report(.registered), .startTimer(seconds: calm)]
    }

    /// An error is tried again only if it is known to pass. What BlueZ has registered before is tried again after nearly
    /// every error, since the operation that requested it has succeeded and no caller waits.
    private mutating func refused(_ error: BlueZError) -> [Order] {
        // Whether BlueZ would register an older content in the end does not matter.
        guard !isOutdated else { return [.unregister] + startOver() }
        if error.cause == .failed, hasHandles, handleTries > 0 {
            hasHandles = false
            handleTries -= 1
            return [.forgetHandles, register()]
        }
        failures += 1
        switch error.cause {
        case .alreadyExists, .noReply:
            // The reply to an earlier call was lost: BlueZ may have it, or get it yet.
            guard hasCleared else {
                hasCleared = true
                return [.unregister, register()]
            }
            return retry(0, error)
        case .invalidArguments, .notSupported, .accessDenied, .notAuthorized:
            return giveUp(error)
        case .failed:
            return retry(rules.mostFailures, error)
        // The kernel is busy, or the adapter or the daemon is about to go, which is reported separately.
        case .inProgress, .notReady, .blocked, .unknownObject, .unknownMethod, .serviceGone, .disconnected:
            return retry(Self.mostAtFirst, error)
        // "Maximum advertisements reached" is `notPermitted`; names that are not in the table are `other`.
        case .notPermitted, .notAvailable, .doesNotExist, .alreadyConnected, .notConnected, .authenticationCanceled,
            .authenticationFailed, .authenticationRejected, .authenticationTimeout, .connectionAttemptFailed, .other:
            return retry(0, error)
        }
    }

    /// - Parameter mostAtFirst: How often it is tried before BlueZ has ever registered it.
    private mutating func retry(_ mostAtFirst: Int, _ error: BlueZError) -> [Order] {
        guard failures < (isKnown ? Self.mostAgain : mostAtFirst) else { return giveUp(error) }
        state = .backingOff
        let delay = min(Self.firstDelay * Double(1 << (failures - 1)), Self.longestDelay)
        return [.report(.retrying(error)), .startTimer(seconds: delay)]
    }

    private mutating func giveUp(_ error: BlueZError) -> [Order] {
        state = .refused
        return [.report(.refused(error))]
    }
}
