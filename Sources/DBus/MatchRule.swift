import CDBus

/// Which signals a subscriber wants; what is nil may be anything.
package struct MatchRule: Hashable, Sendable {
    /// A unique name, or a well-known one, which then means whoever owns it at the time.
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
        var text = "type='signal'"
        func append(_ key: String, _ value: String?) {
            guard let value else { return }
            // Within quotes a quote is written as: end, an escaped one, begin again.
            text +=
                ",\(key)='" + value.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
                + "'"
        }
        append("sender", sender)
        append("path", path?.rawValue)
        append("path_namespace", pathNamespace?.rawValue)
        append("interface", interface)
        append("member", member)
        append("arg0", arg0)
        return text
    }

    /// The well-known name that must be resolved to compare senders, which sign with their unique name.
    var wellKnownSender: String? {
        guard let sender, !sender.hasPrefix(":"), sender != "org.freedesktop.DBus" else { return nil }
        return sender
    }
}

/// A rule in the form that is compared with messages in place.
///
/// Unchecked: the C structure is written on the connection's loop only, where it is read too.
final class CompiledRule: @unchecked Sendable {
    private let strings: [CString]
    private let rule: UnsafeMutablePointer<cdbus_rule>

    init(_ rule: MatchRule) {
        var strings: [CString] = []
        func pointer(_ text: String?) -> UnsafePointer<CChar>? {
            guard let text else { return nil }
            let string = CString(text)
            strings.append(string)
            return string.pointer
        }
        let compiled = cdbus_rule(
            sender: pointer(rule.wellKnownSender == nil ? rule.sender : nil),
            path: pointer(rule.path?.rawValue),
            path_namespace: pointer(rule.pathNamespace?.rawValue),
            interface: pointer(rule.interface),
            member: pointer(rule.member),
            arg0: pointer(rule.arg0))
        self.strings = strings
        self.rule = .allocate(capacity: 1)
        self.rule.initialize(to: compiled)
    }

    deinit {
        rule.deallocate()
    }

    /// `sender`, where given, is the unique name that the message must come from.
    func matches(_ message: Message, sender: UnsafePointer<CChar>?) -> Bool {
        var heading = message.heading
        if let sender, !equal(heading.sender, sender) { return false }
        return cdbus_message_matches(message.pointer, &heading, rule)
    }
}
