/// The XML that `Introspect` answers.
enum Introspection {
    /// Of an object with these interfaces and these children, the last elements of their paths.
    static func xml(interfaces: [InterfaceTable], children: [String]) -> String {
        let described = interfaces.map(\.xml).joined()
        let nodes = children.map { "    <node name=\"\($0)\"/>\n" }.joined()
        return doctype + "<node>\n" + described + nodes + "</node>\n"
    }

    private static let doctype = """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
        "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">

        """
}

extension InterfaceTable {
    fileprivate var xml: String {
        var text = "    <interface name=\"\(name)\">\n"
        for method in methods {
            text += "        <method name=\"\(method.name)\">\n"
            text += Self.arguments(method.takes, direction: "in") + Self.arguments(method.gives, direction: "out")
            text += "        </method>\n"
        }
        for signal in signals {
            text += "        <signal name=\"\(signal.name)\">\n" + Self.arguments(signal.carries, direction: nil)
            text += "        </signal>\n"
        }
        for property in properties {
            let access = property.isWritable ? "readwrite" : "read"
            text +=
                "        <property name=\"\(property.name)\" type=\"\(property.signature)\" access=\"\(access)\"/>\n"
        }
        return text + "    </interface>\n"
    }

    private static func arguments(_ arguments: [(name: String, signature: String)], direction: String?) -> String {
        let suffix = direction.map { " direction=\"\($0)\"" } ?? ""
        return arguments.map { "            <arg name=\"\($0.name)\" type=\"\($0.signature)\"\(suffix)/>\n" }.joined()
    }
}
