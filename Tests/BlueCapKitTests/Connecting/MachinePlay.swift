import BlueCapBlueZ
import TestBasics
@testable import BlueCapKit

/// Plays a `ConnectionMachine` at random, as a world that keeps its own rules, and notes where the machine breaks one.
struct MachinePlay {
    private(set) var machine = ReportedMachine(
        backOff: BackOff(seed: 1), isUsable: true, isPresent: true, isLinkUp: false)
    private(set) var faults: [String] = []
    private(set) var history: [String] = []
    private var random: TestRandom
    private var timers: Set<ConnectionMachine.Timer> = []
    private var pendingConnects: Set<ConnectionMachine.Attempt> = []
    private var openStreams: Set<ConnectionMachine.ConnectionNumber> = []
    private var isUp = false
    /// The calls of `Disconnect` without a reply.
    private var calls = 0
    private var isSeeking = false

    init(_ random: TestRandom) { self.random = random }

    mutating func step() {
        let failures: [BlueZError?] = [
            nil, nil, BlueZError(name: "org.bluez.Error.Failed", message: "le-connection-timeout"), .noSuchObject,
            BlueZError(name: "org.bluez.Error.InProgress"), BlueZError(name: "org.bluez.Error.AuthenticationFailed"),
            BlueZError(name: "org.bluez.Error.Something"),
        ]
        switch Int.random(in: 0..<20, using: &random) {
        case 0:
            send(.connectAsked(ConnectionPolicy(timeoutRetries: 2, disconnectRetries: 2, timeout: 10)))
        case 1: send(.reconnectAsked(delay: Bool.random(using: &random) ? 0 : 1))
        case 2: send(.disconnectAsked)
        case 3:
            if Int.random(in: 0..<4, using: &random) == 0 { return send(.terminateAsked) }
            endCalls()
        case 4: send(.connectStarted(machine.lastAttempt))
        case 5, 6, 7, 8:
            guard let attempt = Self.inOrder(pendingConnects).randomElement(using: &random) else { return }
            pendingConnects.remove(attempt)
            send(.connectReplied(attempt, failures.randomElement(using: &random)!))
        case 9, 10, 11:
            let isUp = Bool.random(using: &random)
            send("connected \(isUp)") { $0.deviceChanged(isConnected: isUp) }
        case 12: send("removed") { $0.deviceChanged(isPresent: false, isConnected: false) }
        case 13:
            let isUsable = Int.random(in: 0..<3, using: &random) > 0
            send("usable \(isUsable)") { $0.adapterUsable(isUsable) }
        case 14: send(.linkNeeded(.run))
        case 15:
            send(.linkNotNeeded(.run))
            check(machine.purpose != .run, "A link stays for runs that have ended.")
        case 17: send(.readersEnded(leavingFor: [nil, .run, .application].randomElement(using: &random)!))
        case 16:
            let report = Bool.random(using: &random) ? ConnectionMachine.Report.forced : .timedOut
            send(.connectWithdrawn(report, leavingFor: Bool.random(using: &random) ? .run : nil))
        default:
            guard let timer = Self.inOrder(timers).randomElement(using: &random) else { return }
            timers.remove(timer)
            send(.timerFired(timer))
        }
    }

    private mutating func endCalls() {
        guard calls > 0 else { return }
        calls -= 1
        send(.disconnectReplied)
    }

    /// Ends all requests: only timers, and replies, which the connector guarantees, remain.
    mutating func end() {
        send(.disconnectAsked)
        for attempt in Self.inOrder(pendingConnects) { send(.connectReplied(attempt, .noLink)) }
        while calls > 0 { endCalls() }
        for _ in 0..<20 {
            guard let timer = Self.inOrder(timers).first else { break }
            timers.remove(timer)
            send(.timerFired(timer))
        }
        check(machine.state == .disconnected, "rests in \(machine.state)")
        check(!isSeeking, "does not stop seeking")
        check(!isUp, "the link is taken for up")
        send(.closed(keepingLinks: false))
        check(openStreams.isEmpty, "a stream stays open")
    }

    /// The elements in an order that is the same in each process, unlike that of a set.
    private static func inOrder<Element>(_ elements: Set<Element>) -> [Element] {
        elements.sorted { "\($0)" < "\($1)" }
    }

    private mutating func send(_ event: ConnectionMachine.Event) {
        if case .connectAsked = event { openStreams.insert(machine.number + 1) }
        send("\(event)") { $0.event(event) }
    }

    private mutating func send(_ name: String, _ event: (inout ReportedMachine) -> [Order.Action]) {
        history.append(name)
        for effect in event(&machine) { took(effect) }
        check(timers == machine.timers, "timers \(timers) are not \(machine.timers)")
        check(isUp == (machine.state == .connected), "link \(isUp) in \(machine.state)")
        check(isSeeking == machine.isSeeking, "a search is lost track of")
        check(machine.isUsable || !timers.contains(.loss), "an adapter that is gone can go no more")
        // It belongs to no state: it only says how long ago a loss was reported.
        let timers = machine.state == .closed ? timers : timers.subtracting([.loss])
        switch machine.state {
        case .disconnected: check(timers.isEmpty && !isSeeking, "no rest at rest")
        case .waiting(.power):
            check(timers.isSubset(of: [.timeout]) && !isSeeking, "no rest without power")
        case .waiting(.delay): check(timers == [.wait], "waits without a timer")
        case .waiting(.backOff): check(timers.contains(.wait), "waits without a timer")
        case .waiting(.device): check(timers.contains(.wait) && isSeeking, "seeks without a timer")
        case .connecting: check(pendingConnects.contains(machine.lastAttempt), "waits for a reply to nothing")
        case .ending:
            check(
                timers.isEmpty && !isSeeking && (calls > 0 || pendingConnects.contains(machine.lastAttempt)),
                "ends nothing")
        case .connected: check(timers.isSubset(of: [.stability]), "a timer too many")
        case .closed: check(timers.isEmpty, "a timer outlives the manager")
        }
    }

    private mutating func took(_ effect: Order.Action) {
        switch effect {
        case .callConnect(let attempt, _): check(pendingConnects.insert(attempt).inserted, "an attempt twice")
        case .callDisconnect: calls += 1
        case .cancelConnect, .forget: break
        case .startTimer(.connection(let timer), let seconds):
            check(seconds > 0 && seconds.isFinite, "\(timer) of \(seconds) s")
            timers.insert(timer)
        case .cancelTimer(.connection(let timer)):
            check(timers.remove(timer) != nil, "cancels \(timer), which does not run")
        case .seek: toggle(\.isSeeking, to: true, "search")
        case .stopSeeking: toggle(\.isSeeking, to: false, "search")
        case .linkWentUp: toggle(\.isUp, to: true, "link")
        case .linkWentDown: toggle(\.isUp, to: false, "link")
        case .report(let number, _): check(number <= machine.number, "reports to an unknown stream")
        case .finishStream(let number): check(openStreams.remove(number) != nil, "finishes stream \(number) twice")
        default: check(false, "no order of a connection: \(effect)")
        }
    }

    private mutating func toggle(_ flag: WritableKeyPath<Self, Bool>, to value: Bool, _ name: String) {
        check(self[keyPath: flag] != value, "\(name) is \(value) already")
        self[keyPath: flag] = value
    }

    private mutating func check(_ holds: Bool, _ fault: String) { if !holds { faults.append(fault) } }
}
