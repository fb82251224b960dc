/// A client that answers questions about pairing.
struct Agent: Hashable, Sendable {
    var path: String
    var capability: String
}

/// A profile that a client has registered.
struct Profile: Hashable, Sendable {
    var owner: String
    var path: String
    var uuid: String
}

/// Agents and profiles: kept as BlueZ keeps them, one agent for each client; nothing here asks them anything yet.
extension Daemon {
    mutating func registerAgent(
        at path: String, capability: String, by client: String, call: CallID
    ) throws(DaemonError) {
        guard agents[client] == nil else { throw .alreadyExists }
        guard Self.capabilities.contains(capability) else { throw .invalidArguments }
        agents[client] = Agent(path: path, capability: capability)
        reply(call)
    }

    mutating func unregisterAgent(at path: String, by client: String, call: CallID) throws(DaemonError) {
        guard agents[client]?.path == path else { throw .doesNotExist }
        reply(call)
        removeAgent(of: client)
    }

    mutating func requestDefaultAgent(at path: String, by client: String, call: CallID) throws(DaemonError) {
        guard agents[client]?.path == path else { throw .doesNotExist }
        reply(call)
        defaultAgents.removeAll { $0 == client }
        defaultAgents.insert(client, at: 0)
        setPairable(true)
    }

    /// An agent goes, by its client's wish or with its client. With the last default agent, pairing goes too.
    mutating func removeAgent(of client: String) {
        agents[client] = nil
        guard let place = defaultAgents.firstIndex(of: client) else { return }
        defaultAgents.remove(at: place)
        if defaultAgents.isEmpty { setPairable(false) }
    }

    private mutating func setPairable(_ isPairable: Bool) {
        for index in adapters.keys.sorted() where adapters[index]?.isPairable != isPairable {
            adapters[index]?.isPairable = isPairable
            outbox.changed(.adapter(.pairable), of: .adapter(index))
        }
    }

    mutating func registerProfile(
        at path: String, uuid: String, by client: String, call: CallID
    ) throws(DaemonError) {
        guard let long = ServiceUUID.long(uuid) else { throw .invalidArguments }
        guard !profiles.contains(where: { $0.owner == client && $0.path == path }) else { throw .alreadyExists }
        profiles.append(Profile(owner: client, path: path, uuid: long))
        reply(call)
    }

    mutating func unregisterProfile(at path: String, by client: String, call: CallID) throws(DaemonError) {
        guard let place = profiles.firstIndex(where: { $0.owner == client && $0.path == path }) else {
            throw .doesNotExist
        }
        profiles.remove(at: place)
        reply(call)
    }

    /// The empty one stands for `KeyboardDisplay`.
    private static let capabilities: Set<String> = [
        "", "DisplayOnly", "DisplayYesNo", "KeyboardOnly", "NoInputNoOutput", "KeyboardDisplay",
    ]
}
