import BlueCapFutures
import Foundation

/// The part of a bus daemon that clients can observe: it names connections, records owners of names, and carries messages.
/// On the bus's loop.
final class LoopbackDriver {
    private struct PendingReply {
        let caller: LoopbackTransport
        let serial: UInt32
        let callee: LoopbackTransport
    }

    private static let busName = "org.freedesktop.DBus"
    private var ports: [LoopbackTransport] = []
    private var names = NameTable()
    /// The replies that a test has set, by the names of the methods.
    var answers: [String: @Sendable (Message) -> Message] = [:]
    private var lastUniqueName = 0
    /// The pending calls, in order, so that the callers receive an error if the callee disconnects.
    private var pending: [PendingReply] = []
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
        for change in names.removeOwner(uniqueName) { announce(change) }
        failCalls(of: port)
    }

    func loseAll() {
        let lost = ports
        ports = []
        names = NameTable()
        pending = []
        for port in lost { port.lose() }
    }

    /// Sends an error to each caller that waits for a reply of this connection, as dbus-daemon does.
    private func failCalls(of callee: LoopbackTransport) {
        let orphans = pending.filter { $0.callee === callee && $0.caller !== callee }
        pending.removeAll { $0.callee === callee || $0.caller === callee }
        for orphan in orphans {
            let error = DBusError(
                name: DBusError.Name.noReply,
                message: "Message recipient disconnected from message bus without replying")
            deliver(.error(toSerial: orphan.serial, of: orphan.caller.uniqueName, error), to: orphan.caller)
        }
    }

    // MARK: Carrying messages

    func route(_ sent: Message, serial: UInt32, from port: LoopbackTransport) {
        let message = sent.carried(serial: serial, sender: port.uniqueName)
        let destination = message.destination
        if port.uniqueName == nil || destination == Self.busName { return handle(message, from: port) }
        guard let destination else {
            if message.kind == .signal { broadcast(message) }
            return
        }
        guard let target = names.owner(of: destination).flatMap(port(named:)) else {
            guard message.kind == .call, !message.expectsNoReply else { return }
            // The text of dbus-daemon for a call that must not start the service.
            let error = DBusError(
                name: DBusError.Name.nameHasNoOwner, message: "Name \"\(destination)\" does not exist")
            return deliver(.error(to: message, error), to: port)
        }
        switch message.kind {
        case .call where !message.expectsNoReply:
            pending.append(PendingReply(caller: port, serial: serial, callee: target))
        case .reply, .error:
            // As a daemon, drops replies that the destination does not expect.
            let call = pending.firstIndex { $0.caller === target && $0.serial == message.replySerial }
            guard let call else { return }
            pending.remove(at: call)
        default:
            break
        }
        target.deliver(message)
    }

    private func port(named uniqueName: String) -> LoopbackTransport? {
        ports.first { $0.uniqueName == uniqueName }
    }

    private func broadcast(_ signal: Message) {
        for port in ports where wants(signal, port) { port.deliver(signal) }
    }

    private func wants(_ signal: Message, _ port: LoopbackTransport) -> Bool {
        port.matches.contains { match in
            guard match.matches(signal) else { return false }
            guard let name = match.rule.wellKnownSender else { return true }
            return names.owner(of: name).map { signal.sender == $0 } ?? false
        }
    }

    /// Sends a message of the bus itself.
    private func deliver(_ message: Message, to port: LoopbackTransport) {
        lastSerial += 1
        port.deliver(message.carried(serial: lastSerial, sender: Self.busName, to: port.uniqueName))
    }

    /// Sends a signal of the bus to one connection, or to all that have a rule for it.
    private func signal(_ member: String, to port: LoopbackTransport? = nil, _ arguments: String...) {
        let signal = Message.signal(path: "/org/freedesktop/DBus", interface: Self.busName, member: member) { writer in
            for argument in arguments { writer.string(argument) }
        }
        if let port { return deliver(signal, to: port) }
        lastSerial += 1
        broadcast(signal.carried(serial: lastSerial, sender: Self.busName))
    }

    private func announce(_ change: NameTable.Change) {
        if let old = change.old, old != change.name, let port = port(named: old) {
            signal("NameLost", to: port, change.name)
        }
        signal("NameOwnerChanged", change.name, change.old ?? "", change.new ?? "")
        if let new = change.new, let port = port(named: new) { signal("NameAcquired", to: port, change.name) }
    }

    // MARK: The methods of org.freedesktop.DBus

    private func handle(_ call: Message, from port: LoopbackTransport) {
        guard call.kind == .call else { return }
        guard let caller = port.uniqueName else {
            guard call.isCall(interface: "org.freedesktop.DBus", member: "Hello") else { return port.lose() }
            return welcome(port, call)
        }
        if let answer = answers[call.member ?? ""] { return deliver(answer(call), to: port) }
        func reply(_ body: (inout MessageWriter) -> Void = { _ in }) {
            if !call.expectsNoReply { deliver(.reply(to: call, body: body), to: port) }
        }
        func refuse(_ name: String, _ text: String) {
            if !call.expectsNoReply { deliver(.error(to: call, DBusError(name: name, message: text)), to: port) }
        }
        var reader = call.reader
        let text = reader.string() ?? ""
        switch (call.member, call.signature) {
        case ("Hello", ""):
            refuse(DBusError.Name.failed, "Already handled an Hello message")
        case ("RequestName", "su"), ("ReleaseName", "s"):
            guard isValid(text, Syntax.isBusName), !text.hasPrefix(":"), text != Self.busName else {
                return refuse(DBusError.Name.invalidArguments, "Requested bus name \"\(text)\" is not valid")
            }
            let (answer, change): (UInt32, NameTable.Change?)
            if let flags = reader.uint32() {
                let requested = names.request(text, by: caller, flags: NameFlags(rawValue: flags))
                (answer, change) = (requested.0.rawValue, requested.1)
            } else {
                (answer, change) = names.release(text, by: caller)
            }
            // As in dbus-daemon, the reply follows the signals of the request.
            if let change { announce(change) }
            reply { $0.uint32(answer) }
        case ("GetNameOwner", "s"):
            guard let owner = text == Self.busName ? text : names.owner(of: text) else {
                return refuse(
                    DBusError.Name.nameHasNoOwner, "Could not get owner of name '\(text)': no such name")
            }
            reply { $0.string(owner) }
        case ("NameHasOwner", "s"):
            reply { $0.bool(text == Self.busName || names.owner(of: text) != nil) }
        case ("ListNames", ""):
            reply { $0.strings([Self.busName] + names.names) }
        case ("AddMatch", "s"):
            guard let rule = MatchRule(parsing: text) else {
                return refuse("org.freedesktop.DBus.Error.MatchRuleInvalid", "The match rule is not understood")
            }
            port.matches.append(CompiledRule(rule))
            reply()
        case ("RemoveMatch", "s"):
            guard let rule = MatchRule(parsing: text), let index = port.matches.lastIndex(where: { $0.rule == rule })
            else {
                return refuse(
                    DBusError.Name.matchRuleNotFound, "The given match rule wasn't found and can't be removed")
            }
            port.matches.remove(at: index)
            reply()
        case ("GetId", ""): reply { $0.string(String(repeating: "0", count: 32)) }
        case ("Ping", ""): reply()
        case ("GetConnectionUnixProcessID", "s"): reply { $0.uint32(UInt32(getpid())) }
        case ("GetConnectionUnixUser", "s"): reply { $0.uint32(getuid()) }
        default:
            let interface = call.interface ?? Self.busName
            refuse(DBusError.Name.unknownMethod, "\(interface) does not understand message \(call.member ?? "")")
        }
    }

    /// Hello: gives the connection its name.
    private func welcome(_ port: LoopbackTransport, _ call: Message) {
        lastUniqueName += 1
        let name = ":1.\(lastUniqueName)"
        port.uniqueName = name
        let (_, change) = names.request(name, by: name, flags: .doNotQueue)
        deliver(.reply(to: call) { $0.string(name) }, to: port)
        if let change { announce(change) }
    }
}

/// The owners of a bus's names, unique ones included, and the connections that wait for names: the rules of
/// org.freedesktop.DBus.RequestName as a pure value.
struct NameTable {
    struct Change: Equatable {
        let name: String
        let old: String?
        let new: String?
    }

    private struct Claim {
        let owner: String
        var flags: NameFlags
    }

    /// The owner of each name, then the connections that wait for it.
    private var claims: [String: [Claim]] = [:]

    var names: [String] { claims.keys.ordered() }

    func owner(of name: String) -> String? { claims[name]?.first?.owner }

    mutating func request(_ name: String, by owner: String, flags: NameFlags) -> (NameReply, Change?) {
        var queue = claims[name] ?? []
        defer { claims[name] = queue }
        let claim = Claim(owner: owner, flags: flags)
        guard let first = queue.first else {
            queue = [claim]
            return (.primaryOwner, Change(name: name, old: nil, new: owner))
        }
        if first.owner == owner {
            queue[0].flags = flags
            return (.alreadyOwner, nil)
        }
        queue.removeAll { $0.owner == owner }
        if flags.contains(.replaceExisting), first.flags.contains(.allowReplacement) {
            // The replaced owner is the first to wait, unless its flags exclude waiting.
            if first.flags.contains(.doNotQueue) { queue.removeFirst() }
            queue.insert(claim, at: 0)
            return (.primaryOwner, Change(name: name, old: first.owner, new: owner))
        }
        if flags.contains(.doNotQueue) { return (.exists, nil) }
        queue.append(claim)
        return (.inQueue, nil)
    }

    /// Returns the number that org.freedesktop.DBus.ReleaseName returns: 1 released, 2 no such name, 3 not the owner's.
    mutating func release(_ name: String, by owner: String) -> (UInt32, Change?) {
        guard let queue = claims[name] else { return (2, nil) }
        guard queue.contains(where: { $0.owner == owner }) else { return (3, nil) }
        return (1, remove(owner, from: name))
    }

    /// Removes a connection from all names that it owns or waits for. Its unique name is the last change.
    mutating func removeOwner(_ owner: String) -> [Change] {
        names.reversed().compactMap { remove(owner, from: $0) }
    }

    private mutating func remove(_ owner: String, from name: String) -> Change? {
        guard var queue = claims[name] else { return nil }
        let wasOwner = queue.first?.owner == owner
        queue.removeAll { $0.owner == owner }
        claims[name] = queue.isEmpty ? nil : queue
        return wasOwner ? Change(name: name, old: owner, new: queue.first?.owner) : nil
    }
}
