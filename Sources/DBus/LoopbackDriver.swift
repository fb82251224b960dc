import CDBus

/// A match rule of a loopback connection: what a daemon would have parsed.
struct LoopbackMatch {
    let text: String
    let rule: MatchRule
    let compiled: CompiledRule
}

/// What a bus daemon does, of which this is the small part that clients see: it names connections, keeps owners of
/// names, and carries messages. On the bus's loop.
final class LoopbackDriver {
    private struct PendingReply: Hashable {
        let caller: ObjectIdentifier
        let serial: UInt32
    }

    private var ports: [LoopbackTransport] = []
    private var portOfName: [String: LoopbackTransport] = [:]
    private(set) var names = NameTable()
    /// By its methods' names: what a test has the bus answer.
    var answers: [String: @Sendable (Message) -> Message] = [:]
    private var lastUniqueName = 0
    /// Who is expected to answer which call, so that a caller hears when the callee goes.
    private var pending: [PendingReply: LoopbackTransport] = [:]
    private var lastSerial: UInt32 = 0

    var matchRules: [MatchRule] { ports.flatMap { $0.matches.map(\.rule) } }

    // MARK: Connections

    func connected(_ port: LoopbackTransport) {
        ports.append(port)
    }

    func disconnected(_ port: LoopbackTransport) {
        guard let index = ports.firstIndex(where: { $0 === port }) else { return }
        ports.remove(at: index)
        guard let uniqueName = port.uniqueName else { return }
        portOfName[uniqueName] = nil
        for change in names.removeOwner(uniqueName) { announce(change) }
        announce(NameTable.Change(name: uniqueName, old: uniqueName, new: nil))
        failCalls(of: port)
    }

    func loseAll() {
        let lost = ports
        ports = []
        portOfName = [:]
        names = NameTable()
        pending = [:]
        for port in lost { port.lose() }
    }

    /// Tells those who wait for an answer of this connection that none will come, as dbus-daemon does.
    private func failCalls(of callee: LoopbackTransport) {
        let orphans = pending.filter { $0.value === callee }.keys.sorted { $0.serial < $1.serial }
        for orphan in orphans {
            pending[orphan] = nil
            guard let caller = ports.first(where: { ObjectIdentifier($0) == orphan.caller }) else { continue }
            deliver(
                .error(
                    toSerial: orphan.serial,
                    DBusError(
                        name: DBusError.Name.noReply,
                        message: "Message recipient disconnected from message bus without replying")),
                to: caller)
        }
        pending = pending.filter { $0.key.caller != ObjectIdentifier(callee) }
    }

    // MARK: Carrying messages

    /// `message` is a copy that nobody else has.
    func route(_ message: Message, serial: UInt32, from port: LoopbackTransport) {
        let destination = message.destination
        message.sign(serial: serial, sender: port.uniqueName)
        if port.uniqueName == nil || destination == "org.freedesktop.DBus" { return drive(message, from: port) }
        guard let destination else {
            if message.kind == .signal { broadcast(message) }
            return
        }
        guard let target = self.port(of: destination) else {
            guard message.kind == .call, !message.expectsNoReply else { return }
            return deliver(.error(to: message, .unreachable(destination)), to: port)
        }
        switch message.kind {
        case .call where !message.expectsNoReply:
            pending[PendingReply(caller: ObjectIdentifier(port), serial: serial)] = target
        case .reply, .error:
            // A daemon lets through only answers that are expected.
            guard
                pending.removeValue(forKey: PendingReply(caller: ObjectIdentifier(target), serial: message.replySerial))
                    != nil
            else { return }
        default:
            break
        }
        target.deliver(message)
    }

    private func port(of name: String) -> LoopbackTransport? {
        portOfName[name] ?? names.owner(of: name).flatMap { portOfName[$0] }
    }

    private func broadcast(_ signal: Message) {
        for port in ports where wants(signal, port) { port.deliver(signal) }
    }

    private func wants(_ signal: Message, _ port: LoopbackTransport) -> Bool {
        port.matches.contains { match in
            guard match.compiled.matches(signal, sender: nil) else { return false }
            guard let name = match.rule.wellKnownSender else { return true }
            return names.owner(of: name).map { signal.sender == $0 } ?? false
        }
    }

    /// A message of the bus itself.
    func deliver(_ message: Message, to port: LoopbackTransport) {
        lastSerial += 1
        message.sign(serial: lastSerial, sender: "org.freedesktop.DBus")
        if let uniqueName = port.uniqueName { message.address(to: uniqueName) }
        port.deliver(message)
    }

    // MARK: Names

    func announce(_ change: NameTable.Change) {
        let signal = Message.fromBus("NameOwnerChanged") { writer in
            writer.string(change.name)
            writer.string(change.old ?? "")
            writer.string(change.new ?? "")
        }
        lastSerial += 1
        signal.sign(serial: lastSerial, sender: "org.freedesktop.DBus")
        if let old = change.old, let port = portOfName[old], old != change.name {
            deliver(.fromBus("NameLost") { $0.string(change.name) }, to: port)
        }
        broadcast(signal)
        if let new = change.new, let port = portOfName[new] {
            deliver(.fromBus("NameAcquired") { $0.string(change.name) }, to: port)
        }
    }

    /// Hello: gives the connection its name, and the reply.
    func welcome(_ port: LoopbackTransport, _ call: Message) {
        guard port.uniqueName == nil else {
            return deliver(.error(to: call, .failed("Already handled an Hello message")), to: port)
        }
        lastUniqueName += 1
        let name = ":1.\(lastUniqueName)"
        port.uniqueName = name
        portOfName[name] = port
        deliver(.reply(to: call) { $0.string(name) }, to: port)
        announce(NameTable.Change(name: name, old: nil, new: name))
    }

    /// Whoever changes the names announces it afterwards: who wants to hear of it may depend on them.
    func change<R>(_ change: (inout NameTable) -> R) -> R { change(&names) }

    var uniqueNames: [String] { ports.compactMap(\.uniqueName) }
}

extension DBusError {
    /// dbus-daemon's words for a call that is not to start the service.
    fileprivate static func unreachable(_ name: String) -> DBusError {
        DBusError(name: DBusError.Name.nameHasNoOwner, message: "Name \"\(name)\" does not exist")
    }
}

extension Message {
    /// A signal of the bus.
    static func fromBus(_ member: String, body: (inout MessageWriter) -> Void) -> Message {
        .signal(path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member: member, body: body)
    }

    /// Writes what a bus writes into a message that it carries. Only for messages that nobody else has yet.
    func sign(serial: UInt32, sender: String?) {
        cdbus_message_set_serial(pointer, serial)
        cdbus_message_set_sender(pointer, sender)
    }

    func address(to destination: String) {
        cdbus_message_set_destination(pointer, destination)
    }
}
