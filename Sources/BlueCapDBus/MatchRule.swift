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
final class CompiledRule: Sendable {
    let rule: MatchRule
    let text: String
    private let sender: CopiedText?
    private let path: CopiedText?
    private let pathNamespace: CopiedText?
    let interface: CopiedText?
    let member: CopiedText?

    init(_ rule: MatchRule) {
        self.rule = rule
        text = rule.text
        sender = rule.wellKnownSender == nil ? rule.sender.map(CopiedText.init) : nil
        path = rule.path.map { CopiedText($0.rawValue) }
        pathNamespace = rule.pathNamespace.map { CopiedText($0.rawValue) }
        interface = rule.interface.map(CopiedText.init)
        member = rule.member.map(CopiedText.init)
    }

    /// Whether the message is a signal that the rule selects. A well-known sender is not compared.
    func matches(_ message: Message) -> Bool {
        guard message.kind == .signal else { return false }
        let header = message.header
        // The member tells the most signals apart, so it goes first.
        guard selects(member, header.member), selects(interface, header.interface), selects(sender, header.sender),
            selects(path, header.path), pathNamespace.map({ isBelow($0.bytes, header.path) }) ?? true
        else { return false }
        guard let arg0 = rule.arg0 else { return true }
        var reader = message.reader
        return reader.type == .string && reader.withString { arg0.utf8.elementsEqual($0) } ?? false
    }

    private func selects(_ wanted: CopiedText?, _ found: WireText) -> Bool {
        wanted.map { equal($0.bytes, found) } ?? true
    }

    /// Whether a path is the namespace itself or below it ("/a" has "/a" and "/a/b", not "/ab").
    private func isBelow(_ namespace: WireText, _ path: WireText) -> Bool {
        // "/" has every path.
        guard namespace.count > 1 else { return !path.isEmpty }
        guard path.starts(with: namespace) else { return false }
        return path.count == namespace.count || path[namespace.count] == UInt8(ascii: "/")
    }
}
