/// Keeps an advertisement registered with `bluetoothd`: over its restarts, over adapters that go, come, and are turned off
/// and on, and over its release by BlueZ.
///
/// Pure: calls go out as effects, their answers and time come in as events.
package struct AdvertisingMachine {
    package typealias RequestID = UInt32

    package enum Effect: Hashable, Sendable {
        /// Export the advertisement as it is now and call `RegisterAdvertisement`; answer with
        /// ``AdvertisingMachine/replied(_:error:)``.
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
        case ending(RequestID)
        case ended
    }

    static let mostAttempts = 8
    /// How often it is tried before BlueZ has ever taken it.
    static let firstAttempts = 3
    private static let firstDelay = 0.5
    private static let longestDelay = 8.0
    /// After how long on the air earlier mishaps are forgotten.
    private static let calm = 60.0

    package private(set) var state: State = .waiting
    private var obstacle: RegistrationState.Obstacle? = .adapter
    /// Whether BlueZ ends it after a time of its own.
    private var isLimited: Bool
    private var wasRegistered = false
    private var hasCleared = false
    /// What was asked for has changed while BlueZ was asked.
    private var isStale = false
    private var attempts = 0
    private var lastRequest: RequestID = 0

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
        case .ending, .ended:
            return []
        case .waiting, .backingOff, .refused:
            state = .ended
            return [.cancelTimer, .report(.idle), .ended]
        case .registering, .registered:
            lastRequest &+= 1
            state = .ending(lastRequest)
            return [.report(.idle), .unregisterLast(lastRequest)]
        }
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
        switch state {
        case .registering(request):
            guard !isStale else { return [.unregister] + startOver() }
            return error.map { refused($0) } ?? taken()
        case .ending(request):
            state = .ended
            return [.ended]
        case .waiting, .registering, .registered, .backingOff, .refused, .ending, .ended:
            return []
        }
    }

    /// `Release`: BlueZ has dropped it.
    package mutating func released() -> [Effect] {
        switch state {
        case .registered where isLimited:
            state = .ended
            return [.report(.idle), .timedOut, .ended]
        case .registered, .registering:
            // A daemon that is about to go says so, too; its going is heard before the time is up.
            attempts += 1
            return [.report(.registering)] + pause(BlueZError(name: "org.bluez.Error.Failed", message: "Released."))
        case .waiting, .backingOff, .refused, .ending, .ended:
            return []
        }
    }

    package mutating func timerFired() -> [Effect] {
        switch state {
        case .backingOff:
            return [register()]
        case .registered:
            attempts = 0
            return []
        case .waiting, .registering, .refused, .ending, .ended:
            return []
        }
    }

    // MARK: Deciding

    private mutating func startOver() -> [Effect] {
        attempts = 0
        hasCleared = false
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

    /// `attempts` is kept for a while: what is released again and again must not be registered without end and pause.
    private mutating func taken() -> [Effect] {
        wasRegistered = true
        hasCleared = false
        state = .registered
        return [.report(.registered)] + (attempts > 0 ? [.startTimer(seconds: Self.calm)] : [])
    }

    private mutating func refused(_ error: BlueZError) -> [Effect] {
        attempts += 1
        switch error.cause {
        case .alreadyExists, .noReply:
            guard !hasCleared else { return pause(error) }
            hasCleared = true
            return [.unregister, register()]
        case .invalidArguments, .notSupported, .accessDenied, .notAuthorized:
            return giveUp(error)
        // The kernel refuses any for a moment after an adapter was turned on, and in the same words one whose fields are
        // too long together (5.66: "Failed to register advertisement").
        case .failed where !wasRegistered && attempts >= Self.firstAttempts:
            return giveUp(error)
        // "Maximum advertisements reached"; what was taken once will be again.
        case .notPermitted where !wasRegistered, .other where !wasRegistered:
            return giveUp(error)
        default:
            return pause(error)
        }
    }

    private mutating func pause(_ error: BlueZError) -> [Effect] {
        guard attempts < Self.mostAttempts else { return giveUp(error) }
        state = .backingOff
        return [.startTimer(seconds: min(Self.firstDelay * Double(1 << (attempts - 1)), Self.longestDelay))]
    }

    private mutating func giveUp(_ error: BlueZError) -> [Effect] {
        state = .refused
        return [.report(.refused(error))]
    }
}
