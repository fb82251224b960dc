/// Keeps an advertisement registered with `bluetoothd`: over its restarts, over adapters that go, come, and are turned off
/// and on, and over its release by BlueZ.
///
/// Pure: calls go out as effects, their answers and time come in as events.
package struct AdvertisingMachine {
    package typealias RequestID = UInt32

    package enum Effect: Hashable, Sendable {
        /// Export the advertisement as it is now and call `RegisterAdvertisement`; answer with
        /// ``AdvertisingMachine/replied(_:error:)``. If there is no answer for ``AdvertisingMachine/patience`` seconds,
        /// answer with ``AdvertisingMachine/unanswered(_:)`` before.
        case register(RequestID)
        /// Call `UnregisterAdvertisement`; the answer is not waited for. BlueZ works calls off in their order.
        case unregister
        /// The same, as the last thing; answer with ``AdvertisingMachine/replied(_:error:)``.
        case unregisterLast(RequestID)
        case startTimer(seconds: Double)
        case cancelTimer
        case report(RegistrationState)
        /// Its time-out has passed.
        case timedOut
        /// BlueZ has answered the last `UnregisterAdvertisement`. A `RegisterAdvertisement` call is still unanswered, and is
        /// unregistered if it succeeds.
        case withdrawn
        /// Nothing of it is left in BlueZ.
        case ended
    }

    package enum State: Hashable, Sendable {
        case waiting
        case registering(RequestID)
        case registered
        /// A try has failed, or BlueZ has released it; the timer runs.
        case backingOff
        case refused
        case ending(RegistrationEnding)
        case ended
    }

    /// After how long on the air earlier mishaps are forgotten.
    private static let calm = 60.0

    package private(set) var state: State = .waiting
    private var obstacle: RegistrationState.Obstacle? = .adapter
    /// Whether BlueZ ends it after a time of its own.
    private var isLimited: Bool
    private var wasRegistered = false
    /// What was asked for has changed while BlueZ was asked.
    private var isStale = false
    // The kernel refuses any for a moment after an adapter was turned on, and in the same words one whose fields are too
    // long together (5.66: "Failed to register advertisement").
    private var attempts = RegistrationAttempts(mostFailures: 3)
    private var lastRequest: RequestID = 0
    /// Calls of `RegisterAdvertisement` without an answer, after which the machine has called again.
    private var overdue: Set<RequestID> = []

    /// How long to wait for the answer to a `register`, in seconds.
    package var patience: Double { attempts.patience }

    package init(isLimited: Bool) { self.isLimited = isLimited }

    // MARK: Wishes

    /// Something else is to be advertised.
    package mutating func contentChanged(isLimited: Bool) -> [Effect] {
        self.isLimited = isLimited
        wasRegistered = false
        switch state {
        case .waiting, .ending, .ended: return []
        case .registering:
            isStale = true
            return []
        case .registered: return [.unregister] + startOver()
        case .backingOff: return [.cancelTimer] + startOver()
        case .refused: return startOver()
        }
    }

    package mutating func end() -> [Effect] {
        switch state {
        case .ending(let ending):
            return ending.isWithdrawn ? [.withdrawn] : []
        case .ended:
            return []
        case .waiting, .backingOff, .refused:
            state = .ended
            return [.cancelTimer, .report(.idle), .ended]
        case .registering(let request):
            defer { overdue = [] }
            return [.report(.idle), unregisterLast(registering: overdue.union([request]))]
        case .registered:
            return [.report(.idle), unregisterLast()]
        }
    }

    private mutating func unregisterLast(registering: Set<RequestID> = []) -> Effect {
        lastRequest &+= 1
        state = .ending(RegistrationEnding(unregistering: lastRequest, registering: registering))
        return .unregisterLast(lastRequest)
    }

    // MARK: What happens

    /// What stands in the way changed; nil: the adapter is on and has `LEAdvertisingManager1`.
    package mutating func obstacleChanged(_ new: RegistrationState.Obstacle?) -> [Effect] {
        guard new != obstacle else { return [] }
        obstacle = new
        switch state {
        case .ended:
            return []
        case .ending:
            // An adapter that is merely off still answers.
            guard new == .adapter else { return [] }
            state = .ended
            return [.ended]
        case .registering, .registered:
            // An adapter that was turned off may keep it or not, by the version of BlueZ and the kernel: begin anew.
            return (new == .power ? [.unregister] : []) + startOver()
        case .backingOff:
            return [.cancelTimer] + startOver()
        case .waiting, .refused:
            return startOver()
        }
    }

    package mutating func replied(_ request: RequestID, error: BlueZError?) -> [Effect] {
        if overdue.remove(request) != nil { return repliedLate(error) }
        switch state {
        case .registering(request):
            guard !isStale else { return [.unregister] + startOver() }
            return error.map { refused($0) } ?? taken()
        case .ending(var ending):
            switch ending.replied(request, error: error) {
            case .wait:
                state = .ending(ending)
                return []
            case .withdrawn:
                state = .ending(ending)
                return [.withdrawn]
            case .unregisterAgain:
                return [unregisterLast(registering: ending.registering)]
            case .done:
                state = .ended
                return [.ended]
            }
        case .waiting, .registering, .registered, .backingOff, .refused, .ended:
            return []
        }
    }

    private func repliedLate(_ error: BlueZError?) -> [Effect] {
        guard error == nil else { return [] }
        switch state {
        // The answer to the later call decides: BlueZ knows the advertisement by its path.
        case .registering, .registered: return []
        case .waiting, .backingOff, .refused, .ending, .ended: return [.unregister]
        }
    }

    /// The answer to a `register` may be lost: unregisters the advertisement and calls again. If the first call succeeds
    /// later, the advertisement is unregistered unless it is being registered or is registered.
    package mutating func unanswered(_ request: RequestID) -> [Effect] {
        guard case .registering(request) = state else { return [] }
        overdue.insert(request)
        guard !isStale else { return [.unregister] + startOver() }
        attempts.unanswered()
        return [.unregister, register()]
    }

    /// `Release`: BlueZ has dropped it.
    package mutating func released() -> [Effect] {
        switch state {
        case .registered where isLimited:
            state = .ended
            return [.report(.idle), .timedOut, .ended]
        case .registered, .registering:
            // A daemon that is about to go says so, too; its going is heard before the time is up.
            return follow(attempts.released(), BlueZError(name: "org.bluez.Error.Failed", message: "Released."))
        case .waiting, .backingOff, .refused, .ending, .ended:
            return []
        }
    }

    package mutating func timerFired() -> [Effect] {
        switch state {
        case .backingOff:
            return [register()]
        case .registered:
            attempts.startOver()
            return []
        case .waiting, .registering, .refused, .ending, .ended:
            return []
        }
    }

    // MARK: Deciding

    private mutating func startOver() -> [Effect] {
        attempts.startOver()
        if let obstacle {
            state = .waiting
            return [.report(.waiting(obstacle))]
        }
        return [.report(.registering), register()]
    }

    private mutating func register() -> Effect {
        isStale = false
        lastRequest &+= 1
        state = .registering(lastRequest)
        return .register(lastRequest)
    }

    /// The count of attempts is kept for a while.
    private mutating func taken() -> [Effect] {
        wasRegistered = true
        attempts.succeeded()
        state = .registered
        return [.report(.registered)] + (attempts.count > 0 ? [.startTimer(seconds: Self.calm)] : [])
    }

    private mutating func refused(_ error: BlueZError) -> [Effect] {
        follow(attempts.refused(error, wasTaken: wasRegistered), error)
    }

    private mutating func follow(_ verdict: RegistrationAttempts.Verdict, _ error: BlueZError) -> [Effect] {
        switch verdict {
        case .clear:
            return [.unregister, register()]
        case .retry(let seconds):
            state = .backingOff
            return [.report(.retrying(error)), .startTimer(seconds: seconds)]
        case .giveUp:
            return giveUp(error)
        }
    }

    private mutating func giveUp(_ error: BlueZError) -> [Effect] {
        state = .refused
        return [.report(.refused(error))]
    }
}
