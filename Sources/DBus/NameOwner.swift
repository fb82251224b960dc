import CDBus

/// What is known of who owns a name, and who wants to hear of it. On the connection's loop.
///
/// Unchecked for the same reason as `ConnectionCore`.
final class NameOwner: @unchecked Sendable {
    enum State {
        case unknown
        case none
        case owned(String)

        var isKnown: Bool { if case .unknown = self { false } else { true } }

        var name: String? { if case .owned(let name) = self { name } else { nil } }
    }

    let name: String
    let rule: MatchRule
    var users = 1
    var watches: [NameWatch] = []
    private(set) var state = State.unknown
    /// The owner's unique name, as messages are signed with it.
    private(set) var sender: CString?

    init(name: String) {
        self.name = name
        rule = MatchRule(
            sender: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
            member: "NameOwnerChanged", arg0: name)
    }

    /// The bus has said who owns the name now. `changed` runs before the watchers are told.
    func set(_ owner: String?, changed: () -> Void) {
        guard !state.isKnown || state.name != owner else { return }
        state = owner.map { .owned($0) } ?? .none
        // Kept until nobody compares with it any more.
        let old = sender
        sender = owner.map { CString($0) }
        withExtendedLifetime(old) { changed() }
        for watch in watches { watch.tell(owner) }
    }

    /// Tells those that have heard nothing yet.
    func tellNewcomers() {
        for watch in watches where !watch.hasHeard { watch.tell(state.name) }
    }
}

/// One who wants to know who owns a name. On the connection's loop, unchecked for the same reason as `ConnectionCore`.
final class NameWatch: @unchecked Sendable {
    let name: String
    var isActive = false
    private(set) var hasHeard = false
    private let handler: @Sendable (String?) -> Void

    init(name: String, handler: @escaping @Sendable (String?) -> Void) {
        precondition(isValid(name, cdbus_is_bus_name), "\"\(name)\" is not a bus name, such as org.bluez.")
        self.name = name
        self.handler = handler
    }

    func tell(_ owner: String?) {
        guard isActive else { return }
        hasHeard = true
        handler(owner)
    }
}
