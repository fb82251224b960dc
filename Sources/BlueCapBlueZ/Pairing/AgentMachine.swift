/// How far the agent of this process has come with `bluetoothd`.
package enum AgentState: Hashable, Sendable {
    /// No manager needs one, or there is no daemon.
    case absent
    /// BlueZ was asked, or is asked again soon.
    case registering
    /// `isDefault`: it was made the default agent on request. BlueZ makes the first agent of the system the default one too.
    case registered(IOCapability, isDefault: Bool)
    /// Another capability, or another daemon, gets another try.
    case refused(BlueZError)

    /// That of the registered agent.
    var capability: IOCapability? {
        if case .registered(let capability, _) = self { capability } else { nil }
    }
}

/// Keeps the agent of this process registered with `bluetoothd`, over its restarts and over changes of the capability.
///
/// Pure: calls go out as orders, their replies and time come in as events. BlueZ executes calls in their sequence, so an
/// agent is replaced by an `unregister` with a `register` behind it.
struct AgentMachine {
    typealias CallID = UInt32

    /// What the managers need of the agent.
    struct Requirement: Hashable, Sendable {
        let capability: IOCapability
        /// Whether `RequestDefaultAgent` is called.
        let isDefault: Bool

        init(_ capability: IOCapability, isDefault: Bool = false) {
            (self.capability, self.isDefault) = (capability, isDefault)
        }

        func union(_ other: Requirement) -> Requirement {
            Requirement(capability.union(other.capability), isDefault: isDefault || other.isDefault)
        }
    }

    /// Calls go to `AgentManager1`; each is followed by ``AgentMachine/replied(_:error:)``.
    enum Order: Hashable, Sendable {
        case register(IOCapability, CallID)
        case requestDefault(CallID)
        /// BlueZ refuses what the agent was asked and has not answered.
        case unregister(CallID)
        case startTimer(seconds: Double)
        case cancelTimer
    }

    private enum Phase: Hashable {
        case absent
        case registering(Requirement)
        case requestingDefault(Requirement)
        case registered(Requirement)
        /// A try has failed, or BlueZ has released the agent; the timer runs.
        case backingOff
        case refused(Requirement)
        case unregistering
    }

    /// How often it is tried: for half a minute.
    static let mostTries = 8
    private static let firstDelay = 0.5
    private static let longestDelay = 8.0

    private var phase = Phase.absent
    private var wanted: Requirement?
    private var isDaemonThere = false
    private var isBusy = false
    /// The number of the newest call; replies to earlier ones are ignored.
    private var lastCall: CallID = 0
    private var failures = 0
    private var hasCleared = false
    /// That of the last attempt that has failed since BlueZ had the agent.
    private var lastError: BlueZError?

    var state: AgentState {
        switch phase {
        case .absent: .absent
        case .registering, .requestingDefault, .backingOff, .unregistering: .registering
        case .registered(let requirement): .registered(requirement.capability, isDefault: requirement.isDefault)
        case .refused: .refused(lastError ?? .agentUnanswered)
        }
    }

    /// Why BlueZ does not have the agent; `nil` if it has.
    var problem: BlueZError? {
        if case .registered = phase { nil } else { lastError ?? .agentUnanswered }
    }

    // MARK: Events

    /// From now on this agent is needed; `nil`: none.
    mutating func wanted(_ requirement: Requirement?) -> [Order] {
        wanted = requirement
        return update()
    }

    /// Whether a request or a `Pair` is under way: until its end the agent is not replaced by another one.
    mutating func busyChanged(_ isBusy: Bool) -> [Order] {
        self.isBusy = isBusy
        return update()
    }

    mutating func daemonReady() -> [Order] {
        isDaemonThere = true
        return update()
    }

    mutating func daemonLeft() -> [Order] {
        isDaemonThere = false
        let cancelled: [Order] = phase == .backingOff ? [.cancelTimer] : []
        phase = .absent
        forgetFailures()
        return cancelled
    }

    /// `Release`: the daemon ends, or has dropped the agent.
    mutating func released() -> [Order] {
        switch phase {
        case .registered(let requirement), .requestingDefault(let requirement):
            return retry(requirement, BlueZError(name: "org.bluez.Error.Failed", message: "Released."))
        case .absent, .registering, .backingOff, .refused, .unregistering: return []
        }
    }

    mutating func replied(_ call: CallID, error: BlueZError?) -> [Order] {
        guard call == lastCall else { return [] }
        switch phase {
        case .registering(let requirement):
            if let error { return failed(requirement, error) }
            return requirement.isDefault ? [requestDefault(requirement)] : registered(requirement)
        case .requestingDefault(let requirement):
            return error.map { failed(requirement, $0) } ?? registered(requirement)
        case .unregistering:
            phase = .absent
            return update()
        case .absent, .registered, .backingOff, .refused: return []
        }
    }

    mutating func timerFired() -> [Order] {
        guard phase == .backingOff, let wanted else { return [] }
        return register(wanted)
    }

    // MARK: Deciding

    private mutating func update() -> [Order] {
        guard isDaemonThere else { return [] }
        switch phase {
        case .absent:
            return wanted.map { register($0) } ?? []
        case .refused(let requirement):
            guard wanted != requirement else { return [] }
            forgetFailures()
            if let wanted { return register(wanted) }
            phase = .absent
            return []
        case .registering, .requestingDefault:
            // The reply comes first.
            return wanted == nil ? [unregisterLast()] : []
        case .backingOff:
            // An earlier call may have succeeded without a reply.
            return wanted == nil ? [.cancelTimer, unregisterLast()] : []
        case .registered(let present):
            guard let wanted else { return [unregisterLast()] }
            guard wanted != present, !isBusy else { return [] }
            if wanted == Requirement(present.capability, isDefault: true) { return [requestDefault(wanted)] }
            return replace(by: wanted)
        case .unregistering:
            return []
        }
    }

    private mutating func register(_ requirement: Requirement) -> [Order] {
        phase = .registering(requirement)
        return [.register(requirement.capability, nextCall())]
    }

    /// Unregisters an agent of this connection, if there is one.
    private mutating func replace(by requirement: Requirement) -> [Order] {
        [.unregister(nextCall())] + register(requirement)
    }

    private mutating func requestDefault(_ requirement: Requirement) -> Order {
        phase = .requestingDefault(requirement)
        return .requestDefault(nextCall())
    }

    private mutating func unregisterLast() -> Order {
        phase = .unregistering
        forgetFailures()
        return .unregister(nextCall())
    }

    private mutating func registered(_ requirement: Requirement) -> [Order] {
        phase = .registered(requirement)
        forgetFailures()
        return update()
    }

    private mutating func failed(_ requirement: Requirement, _ error: BlueZError) -> [Order] {
        lastError = error
        if let wanted, wanted != requirement {
            forgetFailures()
            return register(wanted)
        }
        switch error.cause {
        case .alreadyExists, .noReply:
            // An agent of an earlier life of this connection, or a reply that was lost.
            guard hasCleared else {
                hasCleared = true
                return replace(by: requirement)
            }
            return retry(requirement, error)
        case .accessDenied, .notAuthorized, .invalidArguments, .notSupported:
            phase = .refused(requirement)
            return []
        default:
            return retry(requirement, error)
        }
    }

    private mutating func retry(_ requirement: Requirement, _ error: BlueZError) -> [Order] {
        failures += 1
        lastError = error
        guard failures < Self.mostTries else {
            phase = .refused(requirement)
            return []
        }
        phase = .backingOff
        let delay = min(Self.firstDelay * Double(1 << (failures - 1)), Self.longestDelay)
        return [.startTimer(seconds: delay)]
    }

    private mutating func nextCall() -> CallID {
        lastCall &+= 1
        return lastCall
    }

    private mutating func forgetFailures() { (failures, hasCleared, lastError) = (0, false, nil) }
}
