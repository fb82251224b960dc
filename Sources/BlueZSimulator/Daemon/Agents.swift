import Foundation

/// Pairing agents, one for each client, and profiles (`src/agent.c`). Profiles are registered as with BlueZ, and never called.
struct Agents: Sendable {
    typealias Question = PairingProcedure.Question

    /// An agent of a program, or of another one that the simulator plays.
    private struct Agent: Sendable {
        let client: String
        let path: String
        let capability: PairingCapability
        /// Nil for a program on the bus.
        var user: VirtualUser?
        var request: Request?
    }

    /// The question that waits for the answer of an agent. There is one for each agent.
    private struct Request: Sendable {
        let number: UInt64
        let device: DeviceKey
        let question: Question
        /// Whether the link stays up after a refusal.
        let keepsLink: Bool
    }

    /// The first is the default agent, and the next one takes its place when it leaves.
    private var agents: [Agent] = []
    private var profiles: [(owner: String, path: String)] = []

    var owners: [String] { paths.map(\.client) + profiles.map(\.owner) }

    /// The agents of programs on the bus, by their clients and paths.
    var paths: [(client: String, path: String)] { agents.filter { $0.user == nil }.map { ($0.client, $0.path) } }

    // MARK: Registration

    mutating func register(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard place(of: call.client) == nil else { throw .alreadyExists }
        let text = call.text(1)
        guard let capability = text.isEmpty ? .keyboardDisplay : PairingCapability(rawValue: text) else {
            throw .invalidArguments
        }
        core.reply(call.id)
        add(Agent(client: call.client, path: call.path(0), capability: capability), isDefault: false, &core)
    }

    mutating func unregister(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let place = try place(of: call)
        if agents[place].request != nil { self.call(agents[place], "Cancel", [], &core) }
        core.reply(call.id)
        remove(place, &core)
    }

    mutating func requestDefault(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let agent = agents.remove(at: try place(of: call))
        core.reply(call.id)
        add(agent, isDefault: true, &core)
    }

    mutating func registerProfile(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard ServiceUUID.long(call.text(1)) != nil else { throw .invalidArguments }
        guard profile(call) == nil else { throw .alreadyExists }
        profiles.append((call.client, call.path(0)))
        core.reply(call.id)
    }

    mutating func unregisterProfile(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard let place = profile(call) else { throw .doesNotExist }
        profiles.remove(at: place)
        core.reply(call.id)
    }

    mutating func clientLeft(_ client: String, _ core: inout Core) {
        if let place = place(of: client) { remove(place, &core) }
        profiles.removeAll { $0.owner == client }
    }

    /// bluetoothd ends. The programs that are not on the bus register their agents again when it starts.
    mutating func reset() {
        agents.removeAll { $0.user == nil }
        for place in agents.indices { agents[place].request = nil }
        profiles = []
    }

    /// Another program registers its agent.
    mutating func add(_ agent: VirtualAgent, _ core: inout Core) {
        add(
            Agent(client: "agent \(core.nextNumber())", path: "/", capability: agent.capability, user: agent.user),
            isDefault: agent.isDefault, &core)
    }

    private mutating func add(_ agent: Agent, isDefault: Bool, _ core: inout Core) {
        let isFirst = isDefault || agents.isEmpty
        agents.insert(agent, at: isFirst ? 0 : agents.count)
        if isFirst { defaultChanged(&core) }
    }

    private mutating func remove(_ place: Int, _ core: inout Core) {
        let agent = agents.remove(at: place)
        if let request = agent.request {
            core.order(.answer(request.device, .reject, keepsLink: request.keepsLink))
        }
        if place == 0 { defaultChanged(&core) }
    }

    private func defaultChanged(_ core: inout Core) {
        for index in core.tree.adapters.keys.sorted() { introduce(index, &core) }
    }

    /// Gives an adapter the capability of the default agent. Without one it is not pairable.
    func introduce(_ index: Int, _ core: inout Core) {
        if let agent = agents.first { core.tree.adapters[index]?.capability = agent.capability }
        core.setPairable(!agents.isEmpty, of: index)
    }

    private func place(of client: String) -> Int? { agents.firstIndex { $0.client == client } }

    private func place(of call: MethodCall) throws(DaemonError) -> Int {
        guard let place = place(of: call.client), agents[place].path == call.path(0) else { throw .doesNotExist }
        return place
    }

    private func profile(_ call: MethodCall) -> Int? {
        profiles.firstIndex { $0.owner == call.client && $0.path == call.path(0) }
    }

    // MARK: Requests

    /// The capability of the agent that is asked about the pairings of a client: its own, or the default agent.
    func capability(of client: String?) -> PairingCapability? { agent(of: client).map { agents[$0].capability } }

    private func agent(of client: String?) -> Int? { client.flatMap(place(of:)) ?? (agents.isEmpty ? nil : 0) }

    /// Asks the agent of a client, or the default agent; the answer is an order for the link layer.
    ///
    /// - Parameter keepsLink: Whether the link stays up after a refusal.
    mutating func ask(
        _ question: Question, about device: DeviceKey, of client: String?, keepsLink: Bool, _ core: inout Core
    ) {
        guard let place = agent(of: client) else { return core.order(.answer(device, .reject, keepsLink: keepsLink)) }
        let agent = agents[place]
        if case .display = question { return call(agent, question, device, &core) }
        if let open = agent.request {
            // BlueZ takes the same question about the other end as confirmed, and refuses every other one.
            let isSame = open.question.isSimilar(to: question) && open.device.adapter != device.adapter
            return core.order(.answer(device, isSame ? .accept : .reject, keepsLink: keepsLink))
        }
        let number = core.nextNumber()
        agents[place].request = Request(number: number, device: device, question: question, keepsLink: keepsLink)
        guard let user = agent.user else {
            return call(agent, question, device, &core) { daemon, reply in
                daemon.connections.agents.replied(to: number, reply, &daemon.core)
            }
        }
        if let (answer, delay) = user.answer(to: question) {
            core.alarms.set(.agentAnswer(number, answer), to: core.now + delay)
        }
    }

    private func call(
        _ agent: Agent, _ question: Question, _ device: DeviceKey, _ core: inout Core, _ handler: ReplyHandler? = nil
    ) {
        guard let path = core.tree.devices[device]?.path else { return }
        let (member, arguments) = question.call
        call(agent, member, [.objectPath(path)] + arguments, &core, handler)
    }

    /// The agent has the 60 seconds of `REQUEST_TIMEOUT` in `src/agent.c`.
    private func call(
        _ agent: Agent, _ member: String, _ arguments: [BusValue], _ core: inout Core, _ handler: ReplyHandler? = nil
    ) {
        guard agent.user == nil else { return }
        core.call(
            agent.client, agent.path, InterfaceName.agent, member, arguments, reply: .values, timeout: 60, handler)
    }

    private mutating func replied(to number: UInt64, _ reply: ClientReply, _ core: inout Core) {
        guard let place = agents.firstIndex(where: { $0.request?.number == number }) else { return }
        if case .error("org.freedesktop.DBus.Error.NoReply", _) = reply,
            agents[place].request?.question.call.member != "RequestPasskey"
        {
            call(agents[place], "Cancel", [], &core)
        }
        switch (reply, reply.value) {
        case (.values, .uint32(let passkey)?) where passkey < 1_000_000: answer(number, .passkey(Int(passkey)), &core)
        case (.values, nil): answer(number, .accept, &core)
        default: answer(number, .reject, &core)
        }
    }

    /// Takes the answer of an agent, unless its question has ended.
    mutating func answer(_ number: UInt64, _ answer: PairingProcedure.Answer, _ core: inout Core) {
        guard let place = agents.firstIndex(where: { $0.request?.number == number }),
            let request = agents[place].request
        else { return }
        agents[place].request = nil
        core.order(.answer(request.device, answer, keepsLink: request.keepsLink))
    }

    /// Ends the question about a device, of which the agent is informed. Returns whether there was one.
    @discardableResult
    mutating func cancelRequest(about device: DeviceKey, _ core: inout Core) -> Bool {
        guard let place = agents.firstIndex(where: { $0.request?.device == device }) else { return false }
        agents[place].request = nil
        call(agents[place], "Cancel", [], &core)
        return true
    }

    /// Informs each agent that bluetoothd ends.
    mutating func release(_ core: inout Core) {
        for agent in agents { call(agent, "Release", [], &core) }
    }
}

extension PairingProcedure.Question {
    /// The agent's method, and its arguments behind the device.
    fileprivate var call: (member: String, arguments: [BusValue]) {
        switch self {
        case .authorize: ("RequestAuthorization", [])
        case .confirm(let number): ("RequestConfirmation", [.uint32(UInt32(number))])
        case .enter: ("RequestPasskey", [])
        // On LE no key is reported before the passkey is complete.
        case .display(let number): ("DisplayPasskey", [.uint32(UInt32(number)), .uint16(0)])
        }
    }

    fileprivate func isSimilar(to other: Self) -> Bool {
        call.member == other.call.member && call.member != "RequestPasskey"
    }
}
