/// Pairing agents, one for each client, and profiles. They are registered as with BlueZ, and never called.
struct Agents: Sendable {
    /// The paths of the agents, by client.
    private var agents: [String: String] = [:]
    /// The clients that asked for the default agent, the latest first.
    private var defaultAgents: [String] = []
    private var profiles: [(owner: String, path: String)] = []

    /// The clients that have registered something.
    var owners: [String] { agents.keys + profiles.map(\.owner) }

    mutating func register(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard agents[call.client] == nil else { throw .alreadyExists }
        guard Self.capabilities.contains(call.text(1)) else { throw .invalidArguments }
        agents[call.client] = call.path(0)
        core.reply(call.id)
    }

    mutating func unregister(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard agents[call.client] == call.path(0) else { throw .doesNotExist }
        core.reply(call.id)
        removeAgent(of: call.client, &core)
    }

    mutating func requestDefault(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard agents[call.client] == call.path(0) else { throw .doesNotExist }
        core.reply(call.id)
        defaultAgents.removeAll { $0 == call.client }
        defaultAgents.insert(call.client, at: 0)
        setPairable(true, &core)
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
        removeAgent(of: client, &core)
        profiles.removeAll { $0.owner == client }
    }

    private func profile(_ call: MethodCall) -> Int? {
        profiles.firstIndex { $0.owner == call.client && $0.path == call.path(0) }
    }

    /// Without a default agent adapters are not pairable.
    private mutating func removeAgent(of client: String, _ core: inout Core) {
        agents[client] = nil
        guard let place = defaultAgents.firstIndex(of: client) else { return }
        defaultAgents.remove(at: place)
        if defaultAgents.isEmpty { setPairable(false, &core) }
    }

    private func setPairable(_ isPairable: Bool, _ core: inout Core) {
        for index in core.tree.adapters.keys.sorted() {
            core.set(\.isPairable, to: isPairable, of: index, announcing: .pairable)
        }
    }

    /// The empty one stands for `KeyboardDisplay`.
    private static let capabilities: Set<String> = [
        "", "DisplayOnly", "DisplayYesNo", "KeyboardOnly", "NoInputNoOutput", "KeyboardDisplay",
    ]
}
