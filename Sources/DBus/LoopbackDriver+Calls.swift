import CDBus
import Foundation

/// The methods of org.freedesktop.DBus that clients use.
extension LoopbackDriver {
    func drive(_ call: Message, from port: LoopbackTransport) {
        guard call.kind == .call else { return }
        guard port.uniqueName != nil || call.isCall(interface: "org.freedesktop.DBus", member: "Hello") else {
            return port.lose()
        }
        if port.uniqueName != nil, let answer = answers[call.member ?? ""] { return deliver(answer(call), to: port) }
        var reader = call.reader
        switch (call.member, call.signature) {
        case ("Hello", ""): welcome(port, call)
        case ("RequestName", "su"): requestName(call, from: port)
        case ("ReleaseName", "s"): releaseName(call, from: port)
        case ("GetNameOwner", "s"): answerOwner(call, of: reader.string() ?? "", to: port)
        case ("NameHasOwner", "s"):
            let owner = owner(of: reader.string() ?? "")
            reply(call, to: port) { $0.bool(owner != nil) }
        case ("ListNames", ""):
            let all = ["org.freedesktop.DBus"] + names.names + uniqueNames
            reply(call, to: port) { $0.strings(all) }
        case ("AddMatch", "s"): addMatch(call, from: port)
        case ("RemoveMatch", "s"): removeMatch(call, from: port)
        case ("GetId", ""): reply(call, to: port) { $0.string(String(repeating: "0", count: 32)) }
        case ("Ping", ""): reply(call, to: port) { _ in }
        case ("GetConnectionUnixProcessID", "s"): reply(call, to: port) { $0.uint32(UInt32(getpid())) }
        case ("GetConnectionUnixUser", "s"): reply(call, to: port) { $0.uint32(getuid()) }
        default: refuse(call, to: port, .unknownMethod(call))
        }
    }

    private func reply(_ call: Message, to port: LoopbackTransport, body: (inout MessageWriter) -> Void) {
        if !call.expectsNoReply { deliver(.reply(to: call, body: body), to: port) }
    }

    private func refuse(_ call: Message, to port: LoopbackTransport, _ error: DBusError) {
        if !call.expectsNoReply { deliver(.error(to: call, error), to: port) }
    }

    private func owner(of name: String) -> String? {
        if name == "org.freedesktop.DBus" { return name }
        return names.owner(of: name) ?? uniqueNames.first { $0 == name }
    }

    private func answerOwner(_ call: Message, of name: String, to port: LoopbackTransport) {
        if let owner = owner(of: name) {
            reply(call, to: port) { $0.string(owner) }
        } else {
            refuse(
                call, to: port,
                DBusError(
                    name: DBusError.Name.nameHasNoOwner,
                    message: "Could not get owner of name '\(name)': no such name"))
        }
    }

    private func requestName(_ call: Message, from port: LoopbackTransport) {
        var reader = call.reader
        guard let name = reader.string(), let flags = reader.uint32(), let owner = port.uniqueName else { return }
        guard isValid(name, cdbus_is_bus_name), !name.hasPrefix(":"), name != "org.freedesktop.DBus" else {
            return refuse(call, to: port, .invalidArguments("Requested bus name \"\(name)\" is not valid"))
        }
        let (answer, change) = change { $0.request(name, by: owner, flags: NameFlags(rawValue: flags)) }
        // The daemon's order: the reply follows the signals that the request has caused.
        if let change { announce(change) }
        reply(call, to: port) { $0.uint32(answer.rawValue) }
    }

    private func releaseName(_ call: Message, from port: LoopbackTransport) {
        var reader = call.reader
        guard let name = reader.string(), let owner = port.uniqueName else { return }
        let (answer, change) = change { $0.release(name, by: owner) }
        if let change { announce(change) }
        reply(call, to: port) { $0.uint32(answer) }
    }

    private func addMatch(_ call: Message, from port: LoopbackTransport) {
        var reader = call.reader
        guard let text = reader.string(), let rule = MatchRule(parsing: text) else {
            return refuse(
                call, to: port,
                DBusError(
                    name: "org.freedesktop.DBus.Error.MatchRuleInvalid", message: "The match rule is not understood"))
        }
        port.matches.append(LoopbackMatch(text: text, rule: rule, compiled: CompiledRule(rule)))
        reply(call, to: port) { _ in }
    }

    private func removeMatch(_ call: Message, from port: LoopbackTransport) {
        var reader = call.reader
        let text = reader.string()
        guard let index = port.matches.lastIndex(where: { $0.text == text }) else {
            return refuse(
                call, to: port,
                DBusError(
                    name: DBusError.Name.matchRuleNotFound,
                    message: "The given match rule wasn't found and can't be removed"))
        }
        port.matches.remove(at: index)
        reply(call, to: port) { _ in }
    }
}

extension DBusError {
    fileprivate static func unknownMethod(_ call: Message) -> DBusError {
        DBusError(
            name: Name.unknownMethod,
            message: "\(call.interface ?? "org.freedesktop.DBus") does not understand message \(call.member ?? "")")
    }
}

extension MatchRule {
    /// Reads what `text` writes; nil where there is something else in it.
    init?(parsing text: String) {
        self.init()
        var rest = Substring(text)
        while !rest.isEmpty {
            guard let equals = rest.firstIndex(of: "=") else { return nil }
            let key = rest[..<equals]
            rest = rest[rest.index(after: equals)...]
            guard let value = MatchRule.takeValue(&rest) else { return nil }
            switch key {
            case "type": if value != "signal" { return nil }
            case "sender": sender = value
            case "path":
                guard let value = ObjectPath(validating: value) else { return nil }
                path = value
            case "path_namespace":
                guard let value = ObjectPath(validating: value) else { return nil }
                pathNamespace = value
            case "interface": interface = value
            case "member": member = value
            case "arg0": arg0 = value
            default: return nil
            }
        }
    }

    /// A value up to the next comma outside quotes, which is taken too.
    private static func takeValue(_ rest: inout Substring) -> String? {
        var value = ""
        var isQuoted = false
        while let character = rest.popFirst() {
            switch character {
            case "'": isQuoted.toggle()
            case "\\" where !isQuoted && rest.first == "'": value.append(rest.removeFirst())
            case "," where !isQuoted: return value
            default: value.append(character)
            }
        }
        return isQuoted ? nil : value
    }
}
