import Reactor

/// One subscriber: its rule, and what to call.
///
/// Unchecked: confined to the connection's loop, but for what is set here.
final class SubscriptionEntry: @unchecked Sendable {
    let rule: MatchRule
    let text: String
    let compiled: CompiledRule
    let handler: @Sendable (Message) -> Void
    var isActive = false
    /// Who the sender is, where the rule names it by a well-known name.
    var owner: NameOwner? {
        didSet { ownerChanged() }
    }
    /// What the sender must be called now, kept ready so that a signal that is compared touches no other object.
    private var sender = Sender.anybody

    private enum Sender {
        case anybody
        case nobody
        /// The owner's, which keeps it.
        case named(UnsafePointer<CChar>)
    }

    init(_ rule: MatchRule, handler: @escaping @Sendable (Message) -> Void) {
        self.rule = rule
        self.handler = handler
        text = rule.text
        compiled = CompiledRule(rule)
    }

    func ownerChanged() {
        sender =
            if let owner {
                // As long as it is unknown: the bus has checked it when it was sent, and nobody else sends these signals
                // but in an attack on a race.
                owner.sender.map { .named($0.pointer) } ?? (owner.state.isKnown ? .nobody : .anybody)
            } else {
                .anybody
            }
    }

    func wants(_ message: Message) -> Bool {
        switch sender {
        case .anybody: compiled.matches(message, sender: nil)
        case .named(let name): compiled.matches(message, sender: name)
        case .nobody: false
        }
    }
}

/// Which signals go to whom; and who owns the names that rules and watchers speak of. On the connection's loop.
///
/// A message is compared with the few rules there are one after another, in place: no string is made.
final class SignalRouter {
    private var entries: [SubscriptionEntry] = []
    /// How many subscribers have this rule; the bus knows each distinct one once.
    private var rules: [String: Int] = [:]
    private var owners: [String: NameOwner] = [:]

    func route(_ message: Message) {
        if !owners.isEmpty, message.isSignal(interface: "org.freedesktop.DBus", member: "NameOwnerChanged") {
            nameOwnerChanged(message)
        }
        // A handler may subscribe and unsubscribe: what it takes away hears nothing more, what it adds not this one.
        for entry in entries where entry.isActive && entry.wants(message) { entry.handler(message) }
    }

    func removeAll() {
        for entry in entries { entry.isActive = false }
        entries = []
        rules = [:]
        owners = [:]
    }

    // MARK: Subscriptions

    func add(
        _ entry: SubscriptionEntry, on connection: ConnectionCore,
        accepted: @escaping @Sendable (Result<Void, DBusError>) -> Void
    ) {
        entry.isActive = true
        entries.append(entry)
        if let name = entry.rule.wellKnownSender { entry.owner = retainOwner(of: name, on: connection) }
        addRule(entry.text, on: connection, accepted: accepted)
    }

    func remove(_ entry: SubscriptionEntry, on connection: ConnectionCore) {
        guard entry.isActive else { return }
        entry.isActive = false
        entries.removeAll { $0 === entry }
        removeRule(entry.text, on: connection)
        if let owner = entry.owner { releaseOwner(owner, on: connection) }
        entry.owner = nil
    }

    private func addRule(
        _ text: String, on connection: ConnectionCore,
        accepted: @escaping @Sendable (Result<Void, DBusError>) -> Void
    ) {
        rules[text, default: 0] += 1
        guard rules[text] == 1 else { return connection.loop.post { accepted(.success(())) } }
        connection.call(.toBus("AddMatch") { $0.string(text) }, timeout: Connection.defaultTimeout) { result in
            accepted(result.map { _ in })
        }
    }

    private func removeRule(_ text: String, on connection: ConnectionCore) {
        guard let count = rules[text] else { return }
        rules[text] = count > 1 ? count - 1 : nil
        if count == 1 { connection.send(.toBus("RemoveMatch") { $0.string(text) }) }
    }

    // MARK: Names

    func add(_ watch: NameWatch, on connection: ConnectionCore) {
        let owner = retainOwner(of: watch.name, on: connection)
        owner.watches.append(watch)
        watch.isActive = true
        // Known already: told soon, unless a change comes first.
        if owner.state.isKnown { connection.loop.post { owner.tellNewcomers() } }
    }

    func remove(_ watch: NameWatch, on connection: ConnectionCore) {
        guard watch.isActive, let owner = owners[watch.name] else { return }
        watch.isActive = false
        owner.watches.removeAll { $0 === watch }
        releaseOwner(owner, on: connection)
    }

    /// Asks for changes first and for the present owner second, so that no change falls between.
    private func retainOwner(of name: String, on connection: ConnectionCore) -> NameOwner {
        if let owner = owners[name] {
            owner.users += 1
            return owner
        }
        let owner = NameOwner(name: name)
        owners[name] = owner
        addRule(owner.rule.text, on: connection) { _ in }
        connection.call(
            .toBus("GetNameOwner") { $0.string(name) }, timeout: Connection.defaultTimeout
        ) { result in
            switch result {
            case .success(let reply):
                var reader = reply.reader
                guard let text = reader.string() else {
                    return connection.close(.unexpected(reply, to: "GetNameOwner", instead: "s"))
                }
                connection.signals.set(text, asOwnerOf: owner)
            case .failure(let error) where error.name == DBusError.Name.nameHasNoOwner:
                connection.signals.set("", asOwnerOf: owner)
            case .failure(let error):
                // The owner remains unknown, and so does every signal of that name. The next connection asks again.
                connection.close(error)
            }
        }
        return owner
    }

    private func releaseOwner(_ owner: NameOwner, on connection: ConnectionCore) {
        owner.users -= 1
        guard owner.users == 0 else { return }
        owners[owner.name] = nil
        removeRule(owner.rule.text, on: connection)
    }

    private func nameOwnerChanged(_ message: Message) {
        guard message.hasSender("org.freedesktop.DBus") else { return }
        var reader = message.reader
        guard let name = reader.string(), let owner = owners[name], reader.string() != nil, let new = reader.string()
        else { return }
        set(new, asOwnerOf: owner)
    }

    /// - Parameter text: The owner's unique name as the bus writes it: empty where the name has no owner.
    fileprivate func set(_ text: String, asOwnerOf owner: NameOwner) {
        // Watchers are told at the end of this, and may subscribe.
        owner.set(text.isEmpty ? nil : text) { [self] in
            for entry in entries where entry.owner === owner { entry.ownerChanged() }
        }
    }
}
