import CBlueCapDBus

/// A rule that selects signals; a part that is nil matches everything.
package struct MatchRule: Hashable, Sendable {
    /// A unique name, or a well-known one, which stands for its present owner.
    package var sender: String?
    package var path: ObjectPath?
    /// This path or any below it.
    package var pathNamespace: ObjectPath?
    package var interface: String?
    package var member: String?
    /// The first argument, a string.
    package var arg0: String?

    package init(
        sender: String? = nil, path: ObjectPath? = nil, pathNamespace: ObjectPath? = nil, interface: String? = nil,
        member: String? = nil, arg0: String? = nil
    ) {
        self.sender = sender
        self.path = path
        self.pathNamespace = pathNamespace
        self.interface = interface
        self.member = member
        self.arg0 = arg0
    }

    /// The rule as the bus reads it.
    package var text: String {
        let parts = [
            ("sender", sender), ("path", path?.rawValue), ("path_namespace", pathNamespace?.rawValue),
            ("interface", interface), ("member", member), ("arg0", arg0),
        ]
        return parts.reduce(into: "type='signal'") { text, part in
            guard let value = part.1 else { return }
            // Inside quotes, a quote is written as: end, an escaped quote, begin.
            let pieces = value.split(separator: "'", omittingEmptySubsequences: false)
            text += ",\(part.0)='" + pieces.joined(separator: "'\\''") + "'"
        }
    }

    /// Reads a rule that `text` wrote; nil if it contains anything else.
    init?(parsing text: String) {
        self.init()
        var rest = Substring(text)
        while !rest.isEmpty {
            guard let equals = rest.firstIndex(of: "=") else { return nil }
            let key = rest[..<equals]
            rest = rest[rest.index(after: equals)...]
            guard let value = MatchRule.parseValue(&rest) else { return nil }
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

    /// Consumes a value and the comma after it.
    private static func parseValue(_ rest: inout Substring) -> String? {
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

    /// The well-known name of the sender, if any. Messages contain the unique name of its owner.
    var wellKnownSender: String? {
        guard let sender, !sender.hasPrefix(":"), sender != "org.freedesktop.DBus" else { return nil }
        return sender
    }
}

/// A rule, its text, and the form that is compared with messages in place.
///
/// Unchecked: the C structure is written during the initialisation only.
final class CompiledRule: @unchecked Sendable {
    let rule: MatchRule
    let text: String
    private let strings: [CString]
    private let compiled: UnsafeMutablePointer<cdbus_rule>

    init(_ rule: MatchRule) {
        self.rule = rule
        text = rule.text
        var strings: [CString] = []
        func pointer(_ text: String?) -> UnsafePointer<CChar>? {
            guard let text else { return nil }
            let string = CString(text)
            strings.append(string)
            return string.pointer
        }
        compiled = .allocate(capacity: 1)
        compiled.initialize(
            to: cdbus_rule(
                sender: pointer(rule.wellKnownSender == nil ? rule.sender : nil),
                path: pointer(rule.path?.rawValue),
                path_namespace: pointer(rule.pathNamespace?.rawValue),
                interface: pointer(rule.interface),
                member: pointer(rule.member),
                arg0: pointer(rule.arg0)))
        self.strings = strings
    }

    deinit {
        compiled.deallocate()
    }

    /// Whether the message is a signal that the rule selects. A well-known sender is not compared.
    func matches(_ message: Message) -> Bool {
        var heading = message.heading
        return cdbus_message_matches(message.pointer, &heading, compiled)
    }
}
