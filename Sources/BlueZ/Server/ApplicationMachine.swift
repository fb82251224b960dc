/// Keeps an application registered with `bluetoothd`: over its restarts, over adapters that go and come, and over changes
/// of the services, which BlueZ takes only as a new registration (it reads the objects once and ignores what is added).
///
/// Pure: calls go out as effects, their answers and time come in as events. Sets of services are known by their
/// generations, in the order in which they were wished.
package struct ApplicationMachine {
    package typealias Generation = UInt32
    package typealias RequestID = UInt32

    package enum Effect: Hashable, Sendable {
        /// Export this set and call `RegisterApplication`; answer with ``ApplicationMachine/replied(_:error:)``. If there is
        /// no answer for ``ApplicationMachine/patience`` seconds, answer with ``ApplicationMachine/unanswered(_:)`` before.
        case register(Generation, RequestID)
        /// Call `UnregisterApplication` for this set and withdraw it; the answer is not waited for. BlueZ works calls off
        /// in their order, so a `register` behind it takes its place at once.
        case unregister(Generation)
        /// The same, as the last thing; answer with ``ApplicationMachine/replied(_:error:)``.
        case unregisterLast(Generation, RequestID)
        /// The handles that BlueZ has given are taken by somebody else: ask for new ones.
        case forgetHandles
        /// They were not the reason: ask for them again.
        case restoreHandles
        case startTimer(seconds: Double)
        case cancelTimer
        case report(RegistrationState)
        /// All wishes up to this generation are met, or refused.
        case settled(Generation, BlueZError?)
        /// BlueZ has answered the last `UnregisterApplication`. A `RegisterApplication` call is still unanswered, and is
        /// unregistered if it succeeds.
        case withdrawn
        /// Nothing of it is left in BlueZ.
        case ended
    }

    package enum State: Hashable, Sendable {
        /// Nothing is wished.
        case idle
        case waiting
        case registering(Generation, RequestID)
        case registered(Generation)
        /// A try has failed; the timer runs.
        case backingOff
        case refused
        case ending(Generation, RegistrationEnding)
        case ended
    }

    package private(set) var state: State = .idle
    private var obstacle: RegistrationState.Obstacle? = .adapter
    /// The newest set that is wished; nil: none.
    private var wanted: Generation?
    private var newest: Generation = 0
    /// The last set that BlueZ has taken: what is gone back to when the next one is refused.
    private var good: Generation?
    private var hasHandles = false
    /// How often other handles may be asked for.
    private var handleTries = ApplicationMachine.mostHandleTries
    private var attempts = RegistrationAttempts(mostFailures: 1)
    private var lastRequest: RequestID = 0
    /// Calls of `RegisterApplication` without an answer, after which the machine has called again.
    private var overdue: [RequestID: Generation] = [:]

    /// How long to wait for the answer to a `register`, in seconds.
    package var patience: Double { attempts.patience }

    /// Handles of our own choice may be taken several times over.
    private static let mostHandleTries = 4

    package init() {}

    // MARK: Wishes

    /// From now on this set is wished, or, where it is empty, nothing.
    package mutating func wished(_ generation: Generation, isEmpty: Bool) -> [Effect] {
        wanted = isEmpty ? nil : generation
        newest = generation
        switch state {
        case .idle, .refused, .waiting:
            return startOver()
        case .backingOff:
            return [.cancelTimer] + startOver()
        case .registered(let old):
            return [.unregister(old)] + startOver()
        case .registering:
            // Its answer comes first: a registration cannot be called off.
            return []
        case .ending, .ended:
            return [.settled(generation, .closedApplication)]
        }
    }

    /// Nobody wants any of it any more.
    package mutating func end() -> [Effect] {
        let settled = Effect.settled(newest, .closedApplication)
        switch state {
        case .ending(_, let ending):
            return ending.isWithdrawn ? [.withdrawn] : []
        case .ended:
            return []
        case .idle, .waiting, .backingOff, .refused:
            state = .ended
            return [.cancelTimer, settled, .report(.idle), .ended]
        case .registering(let generation, let request):
            let unanswered = overdue.filter { $0.value == generation }.keys
            for request in unanswered { overdue[request] = nil }
            return [settled, .report(.idle), unregisterLast(generation, registering: Set(unanswered).union([request]))]
        case .registered(let generation):
            return [settled, .report(.idle), unregisterLast(generation)]
        }
    }

    private mutating func unregisterLast(_ generation: Generation, registering: Set<RequestID> = []) -> Effect {
        lastRequest &+= 1
        state = .ending(generation, RegistrationEnding(unregistering: lastRequest, registering: registering))
        return .unregisterLast(generation, lastRequest)
    }

    // MARK: What happens

    /// What stands in the way changed; nil: `GattManager1` is there.
    package mutating func obstacleChanged(_ new: RegistrationState.Obstacle?) -> [Effect] {
        guard new != obstacle else { return [] }
        obstacle = new
        switch state {
        case .idle, .ended:
            return []
        case .ending:
            // What there was went with the daemon or the adapter.
            guard new != nil else { return [] }
            state = .ended
            return [.ended]
        case .waiting, .refused:
            return startOver()
        case .registering, .registered, .backingOff:
            return [.cancelTimer] + startOver()
        }
    }

    package mutating func replied(_ request: RequestID, error: BlueZError?) -> [Effect] {
        if let generation = overdue.removeValue(forKey: request) { return repliedLate(generation, error) }
        switch state {
        case .registering(let generation, request):
            return error.map { refused(generation, $0) } ?? taken(generation)
        case .ending(let generation, var ending):
            switch ending.replied(request, error: error) {
            case .wait:
                state = .ending(generation, ending)
                return []
            case .withdrawn:
                state = .ending(generation, ending)
                return [.withdrawn]
            case .unregisterAgain:
                return [unregisterLast(generation, registering: ending.registering)]
            case .done:
                state = .ended
                return [.ended]
            }
        case .idle, .waiting, .registering, .registered, .backingOff, .refused, .ended:
            return []
        }
    }

    private func repliedLate(_ generation: Generation, _ error: BlueZError?) -> [Effect] {
        guard error == nil else { return [] }
        switch state {
        // The answer to the later call of the same set decides.
        case .registering(generation, _), .registered(generation): return []
        case .idle, .waiting, .registering, .registered, .backingOff, .refused, .ending, .ended:
            return [.unregister(generation)]
        }
    }

    /// The answer to a `register` may be lost: unregisters the set and calls again. If the first call succeeds later, the set
    /// is unregistered unless it is the one that is wanted.
    package mutating func unanswered(_ request: RequestID) -> [Effect] {
        guard case .registering(let generation, request) = state else { return [] }
        overdue[request] = generation
        guard wanted == generation else { return [.unregister(generation)] + startOver() }
        attempts.unanswered()
        return [.unregister(generation), register(generation)]
    }

    /// Handles were chosen for the set that is being registered.
    package mutating func handlesChosen() { hasHandles = true }

    package mutating func timerFired() -> [Effect] {
        guard case .backingOff = state, let wanted else { return [] }
        return [register(wanted)]
    }

    // MARK: Deciding

    private mutating func startOver() -> [Effect] {
        attempts.startOver()
        guard let wanted else {
            state = .idle
            good = nil
            return [.report(.idle), .settled(newest, nil)]
        }
        if let obstacle {
            state = .waiting
            return [.report(.waiting(obstacle))]
        }
        return [.report(.registering), register(wanted)]
    }

    private mutating func register(_ generation: Generation) -> Effect {
        lastRequest &+= 1
        state = .registering(generation, lastRequest)
        return .register(generation, lastRequest)
    }

    private mutating func taken(_ generation: Generation) -> [Effect] {
        good = generation
        hasHandles = true
        handleTries = Self.mostHandleTries
        attempts.startOver()
        guard wanted == generation else { return [.unregister(generation)] + startOver() }
        state = .registered(generation)
        return [.report(.registered), .settled(generation, nil)]
    }

    private mutating func refused(_ generation: Generation, _ error: BlueZError) -> [Effect] {
        // A newer wish: whether this one would have been taken in the end is of no interest.
        guard wanted == generation else { return [.unregister(generation)] + startOver() }
        if error.cause == .failed, hasHandles, handleTries > 0 {
            hasHandles = false
            handleTries -= 1
            return [.forgetHandles, register(generation)]
        }
        switch attempts.refused(error, wasTaken: good == generation) {
        case .clear:
            return [.unregister(generation), register(generation)]
        case .retry(let seconds):
            state = .backingOff
            return [.report(.retrying(error)), .startTimer(seconds: seconds)]
        case .giveUp:
            return giveUp(generation, error)
        }
    }

    private mutating func giveUp(_ generation: Generation, _ error: BlueZError) -> [Effect] {
        guard let good, good != generation else {
            state = .refused
            return [.report(.refused(error)), .settled(newest, error)]
        }
        wanted = good
        handleTries = Self.mostHandleTries
        attempts.startOver()
        hasHandles = true
        return [.settled(newest, error), .restoreHandles, register(good)]
    }
}

extension BlueZError {
    static let closedApplication = BlueZError(
        name: "org.bluez.Error.Canceled", message: "The application was ended by this process.")
}
