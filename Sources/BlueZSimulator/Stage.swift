import BlueCapDBus
import Foundation
import BlueCapFutures
import BlueCapReactor

/// A simulation with its loop and its bus. Decisions are made under the lock, and performed on the loop.
final class Stage: Sendable {
    /// State that only the loop's thread uses. It is locked so that the class is `Sendable` without an unchecked promise.
    struct Wire {
        var connection: Connection?
        /// By client, the subscriptions to its connection's end and to the signals of its objects.
        var watches: [String: [CancelHandle]] = [:]
        /// The links of virtual centrals.
        var centrals: [CentralEnd: CentralLink] = [:]
        var timer: (id: TimerID, deadline: TimeInterval)?
        var sockets: [SocketID: PeerSocket] = [:]
        /// Called when no packet waits to be sent on any socket.
        var socketWaiters: [@Sendable () -> Void] = []
    }

    struct Shared {
        var simulation: Simulation
        /// Whether a turn of the loop is posted.
        var isPosted = false
        var hasEnded = false
        /// Whether the first connection has acquired the bus name; nil before that is known.
        var joined: Result<Void, SimulatorError>?
    }

    let loop: any EventLoop
    let address: String
    private let start: Instant
    /// Sightings that are due within this many seconds are delivered together, so that a real loop is not woken for each.
    private let quantum: TimeInterval
    let shared: Locked<Shared>
    let wire = Locked(Wire())
    /// For the packets of clients; used on the loop.
    let packetBuffer = PacketBuffer(packetSize: 1024)
    /// Broadcast after each turn of the loop, for ``wait(until:limit:)``.
    let changes = NSCondition()

    init(_ simulation: Simulation, address: String, loop: any EventLoop, quantum: TimeInterval) {
        self.address = address
        self.loop = loop
        self.quantum = quantum
        start = loop.now
        shared = Locked(Shared(simulation: simulation))
    }

    /// Seconds since the simulator began.
    var seconds: TimeInterval { loop.now.seconds(since: start) }

    var joined: Result<Void, SimulatorError>? { shared.withLock { $0.joined } }

    /// Reads or changes the simulation, from any thread. The effects are performed on the loop, in the order of these
    /// calls.
    @discardableResult
    func decide<R>(_ body: (inout Simulation) -> R) -> R {
        let now = seconds
        return shared.withLock { shared in
            shared.simulation.now = now
            let result = body(&shared.simulation)
            shared.simulation.settle()
            if !shared.isPosted, !shared.hasEnded {
                shared.isPosted = true
                loop.post { [weak self] in self?.comeRound() }
            }
            return result
        }
    }

    /// Reads the simulation, from any thread.
    func look<R>(_ body: (Simulation) -> R) -> R { shared.withLock { body($0.simulation) } }

    /// Leaves the bus for good.
    func end() {
        shared.withLock { $0.hasEnded = true }
        let before = wire.withLock { exchange(&$0, with: Wire()) }
        let sockets = before.sockets.values
        if !sockets.isEmpty { loop.perform { for socket in sockets { socket.watch.cancel() } } }
        if let timer = before.timer { loop.cancel(timer.id) }
        before.connection?.close()
        for (_, link) in before.centrals.sorted(by: { $0.key < $1.key }) {
            link.take(.disconnected(.local), seconds: seconds)
        }
    }

    // MARK: The loop's turn

    /// Performs all effects, and sets the timer for the next deadline.
    private func comeRound() {
        while true {
            let (effects, questions) = shared.withLock { shared in
                let (effects, questions) = shared.hasEnded ? ([], []) : shared.simulation.takeEffects()
                if effects.isEmpty, questions.isEmpty { shared.isPosted = false }
                return (effects, questions)
            }
            guard !effects.isEmpty || !questions.isEmpty else { break }
            for effect in effects { perform(effect) }
            for question in questions {
                if let conclude = question() { decide { conclude(&$0.linkLayer) } }
            }
        }
        rearm()
        changes.withLock { changes.broadcast() }
    }

    /// Blocks until the condition holds, for at most `limit` seconds. It is evaluated after each turn of the loop.
    func wait(until condition: () -> Bool, limit: TimeInterval) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit)
        return changes.withLock {
            while !condition() {
                guard changes.wait(until: deadline) else { return condition() }
            }
            return true
        }
    }

    private func rearm() {
        let now = seconds
        let deadline = shared.withLock { $0.hasEnded ? nil : $0.simulation.nextDeadline(now: now, quantum: quantum) }
        let present = wire.withLock { $0.timer }
        guard present?.deadline != deadline else { return }
        if let present { loop.cancel(present.id) }
        let timer = deadline.map { deadline in
            let id = loop.schedule(after: max(0, deadline - now)) { [weak self] in self?.deadlineCame(deadline) }
            return (id: id, deadline: deadline)
        }
        wire.withLock { $0.timer = timer }
    }

    private func deadlineCame(_ deadline: TimeInterval) {
        wire.withLock { $0.timer = nil }
        // The loop's clock rounds seconds; what is due must not appear to be early.
        let now = max(seconds, deadline)
        let utterances = shared.withLock { $0.simulation.linkLayer.radio.utterances(upTo: now) }
        let sightings = utterances.compactMap { $0.resident.sighting(at: $0.seconds) }
        decide { simulation in
            simulation.receive(sightings)
            simulation.timePassed(to: now)
        }
    }

    // MARK: The bus

    /// The daemon's connection; nil while the daemon does not run.
    var connection: Connection? { wire.withLock { $0.connection } }

    func perform(_ effect: Effect) {
        switch effect {
        case .emit(let emission):
            connection?.send(.signal(emission))
        case .reply(let call, let values):
            answerCall(call) { .reply(to: $0) { $0.values(values) } }
        case .fail(let call, let error):
            answerCall(call) { .error(to: $0, DBusError(name: error.name, message: error.message)) }
        case .watch(let client): watch(client)
        case .unwatch(let client):
            for watch in wire.withLock({ $0.watches.removeValue(forKey: client) }) ?? [] { watch.cancel() }
        case .openSocket(let id, let call, let mtu): openSocket(id, call: call, mtu: mtu)
        case .transmit(let id, let bytes): transmit(bytes, to: id)
        case .closeSocket(let id): closeSocket(id)
        case .call(let call): callClient(call)
        case .central(let end, let news): send(to: end, news)
        case .order, .die: break
        case .connectToBus: connectToBus()
        case .disconnectFromBus: disconnectFromBus()
        }
    }

    func answerCall(_ call: CallID, _ answer: @escaping @Sendable (Message) -> Message) {
        guard let connection, let message = call.message, !message.expectsNoReply else { return }
        let delay = look(\.replyDelay)
        guard delay > 0 else { return connection.send(answer(message)) }
        loop.schedule(after: delay) { connection.send(answer(message)) }
    }

    private func watch(_ client: String) {
        guard let connection else { return }
        let watch = connection.watchName(client) { [weak self] owner in
            guard owner == nil else { return }
            self?.decide { $0.daemon.clientLeft(client) }
        }
        let signals = connection.subscribe(MatchRule(sender: client)) { [weak self] message in
            guard let self, let signal = Emission(message) else { return }
            decide { $0.daemon.clientSignalled(signal, client) }
        }
        wire.withLock { $0.watches[client] = [watch, signals] }
    }

    /// A call of one of the daemon's objects has come.
    func received(_ message: Message) {
        decide { $0.receive(MethodCall(message, number: $0.daemon.core.nextNumber())) }
    }
}
