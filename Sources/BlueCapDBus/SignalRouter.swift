import BlueCapReactor

/// A subscription's rule and handler. Unchecked for the same reason as `ConnectionCore`.
final class SubscriptionEntry: @unchecked Sendable {
    let rule: CompiledRule
    let handler: @Sendable (Message) -> Void
    @exclusivity(unchecked) var isActive = false
    /// The owner of the sender's name, if the rule has a well-known one.
    var owner: NameOwner? {
        didSet { ownerChanged() }
    }
    /// The required unique name of the sender, so that the comparison with a signal uses no other object.
    @exclusivity(unchecked) private var sender = Sender.any

    private enum Sender {
        case any
        case none
        /// The text of the owner, which the owner retains.
        case named(WireText)
    }

    init(_ rule: MatchRule, handler: @escaping @Sendable (Message) -> Void) {
        self.rule = CompiledRule(rule)
        self.handler = handler
    }

    func ownerChanged() {
        guard let owner, owner.isKnown else {
            // The bus compared the sender when it routed the signal. Another peer can send it only in an attack on a race.
            sender = .any
            return
        }
        sender = owner.name.map { .named($0.bytes) } ?? .none
    }

    func wants(_ message: Message) -> Bool {
        switch sender {
        case .any: rule.matches(message)
        case .named(let name): equal(message.header.sender, name) && rule.matches(message)
        case .none: false
        }
    }
}

/// The owner of a well-known name, and its watches. Unchecked for the same reason as `ConnectionCore`.
final class NameOwner: @unchecked Sendable {
    let wellKnownName: String
    let rule: MatchRule
    fileprivate var users = 1
    fileprivate var watches: [NameWatch] = []
    /// Whether the bus has sent the present owner.
    fileprivate(set) var isKnown = false
    /// The owner's unique name; nil if there is no owner.
    fileprivate(set) var name: CopiedText?

    init(_ wellKnownName: String) {
        self.wellKnownName = wellKnownName
        rule = MatchRule(
            sender: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
            member: "NameOwnerChanged", arg0: wellKnownName)
    }
}

/// A handler of the changes of a name's owner. Unchecked for the same reason as `ConnectionCore`.
final class NameWatch: @unchecked Sendable {
    let name: String
    fileprivate var isActive = false
    fileprivate var wasCalled = false
    private let handler: @Sendable (String?) -> Void

    init(name: String, handler: @escaping @Sendable (String?) -> Void) {
        precondition(isValid(name, Syntax.isBusName), "\"\(name)\" is not a bus name, such as org.bluez.")
        self.name = name
        self.handler = handler
    }

    fileprivate func call(_ owner: CopiedText?) {
        guard isActive else { return }
        wasCalled = true
        handler(owner?.string)
    }
}

/// The subscriptions of a connection, and the owners of the names in rules and name watches. On the connection's loop.
///
/// A signal is compared with the few rules one after another, in place: no string is created.
final class SignalRouter {
    /// A subscription, beside the marks of the names in its rule, so that most others are excluded without being looked at.
    private struct Route {
        let interface: TextMark?
        let member: TextMark?
        let entry: SubscriptionEntry

        init(_ entry: SubscriptionEntry) {
            self.entry = entry
            interface = entry.rule.interface.map { TextMark($0.bytes) }
            member = entry.rule.member.map { TextMark($0.bytes) }
        }
    }

    @exclusivity(unchecked) private var routes: [Route] = []
    /// The number of subscribers with each rule; the bus has each distinct rule once.
    private var rules: [String: Int] = [:]
    @exclusivity(unchecked) private var owners: [String: NameOwner] = [:]

    func route(_ message: Message) {
        if !owners.isEmpty, message.isSignal(interface: "org.freedesktop.DBus", member: "NameOwnerChanged") {
            nameOwnerChanged(message)
        }
        // A handler may subscribe and unsubscribe: a removed entry is not called, and a new one not for this message.
        let header = message.header
        let (interface, member) = (TextMark(header.interface), TextMark(header.member))
        let routes = routes
        for index in routes.indices where routes[index].member ?? member == member {
            guard routes[index].interface ?? interface == interface else { continue }
            let entry = routes[index].entry
            if entry.isActive, entry.wants(message) { entry.handler(message) }
        }
    }

    func removeAll() {
        for route in routes { route.entry.isActive = false }
        routes = []
        rules = [:]
        owners = [:]
    }

    // MARK: Subscriptions

    func add(
        _ entry: SubscriptionEntry, on connection: ConnectionCore,
        accepted: (@Sendable (Result<Void, DBusError>) -> Void)?
    ) {
        entry.isActive = true
        routes.append(Route(entry))
        if let name = entry.rule.rule.wellKnownSender { entry.owner = retainOwner(of: name, on: connection) }
        addRule(entry.rule.text, on: connection, accepted: accepted)
    }

    func remove(_ entry: SubscriptionEntry, on connection: ConnectionCore) {
        guard entry.isActive else { return }
        entry.isActive = false
        routes.removeAll { $0.entry === entry }
        removeRule(entry.rule.text, on: connection)
        if let owner = entry.owner { releaseOwner(owner, on: connection) }
        entry.owner = nil
    }

    private func addRule(
        _ text: String, on connection: ConnectionCore,
        accepted: (@Sendable (Result<Void, DBusError>) -> Void)? = nil
    ) {
        rules[text, default: 0] += 1
        guard rules[text] == 1 else { return connection.loop.post { accepted?(.success(())) } }
        connection.call(.toBus("AddMatch") { $0.string(text) }) { accepted?($0.map { _ in }) }
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
        guard owner.isKnown else { return }
        // A change may come before this.
        connection.loop.post { for watch in owner.watches where !watch.wasCalled { watch.call(owner.name) } }
    }

    func remove(_ watch: NameWatch, on connection: ConnectionCore) {
        guard watch.isActive, let owner = owners[watch.name] else { return }
        watch.isActive = false
        owner.watches.removeAll { $0 === watch }
        releaseOwner(owner, on: connection)
    }

    /// Subscribes to changes first and gets the present owner second, so that no change is missed.
    private func retainOwner(of name: String, on connection: ConnectionCore) -> NameOwner {
        if let owner = owners[name] {
            owner.users += 1
            return owner
        }
        let owner = NameOwner(name)
        owners[name] = owner
        addRule(owner.rule.text, on: connection)
        connection.call(.toBus("GetNameOwner") { $0.string(name) }) { result in
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
                // The owner remains unknown, and with it the sender of every signal. The next connection asks again.
                connection.close(error)
            }
        }
        return owner
    }

    private func releaseOwner(_ owner: NameOwner, on connection: ConnectionCore) {
        owner.users -= 1
        guard owner.users == 0 else { return }
        owners[owner.wellKnownName] = nil
        removeRule(owner.rule.text, on: connection)
    }

    private func nameOwnerChanged(_ message: Message) {
        guard message.hasSender("org.freedesktop.DBus") else { return }
        var reader = message.reader
        guard let name = reader.string(), let owner = owners[name], reader.string() != nil, let new = reader.string()
        else { return }
        set(new, asOwnerOf: owner)
    }

    /// - Parameter text: The owner's unique name as the bus writes it: empty if the name has no owner.
    private func set(_ text: String, asOwnerOf owner: NameOwner) {
        let old = owner.name
        guard !owner.isKnown || old?.string ?? "" != text else { return }
        owner.isKnown = true
        owner.name = text.isEmpty ? nil : CopiedText(text)
        withExtendedLifetime(old) {
            for route in routes where route.entry.owner === owner { route.entry.ownerChanged() }
        }
        // A handler may subscribe.
        for watch in owner.watches { watch.call(owner.name) }
    }
}
