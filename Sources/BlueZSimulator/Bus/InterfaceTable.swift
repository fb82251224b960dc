/// An interface: its methods with what carries them out, its properties and its signals.
///
/// Dispatch, the check of a call's arguments and introspection all read this table.
struct InterfaceTable<Target>: Sendable {
    /// Throws a ``DaemonError`` for a call that fails.
    typealias Handler = @Sendable (inout Target, MethodCall) throws -> Void

    struct Method: Sendable {
        let name: String
        let takes: [Argument]
        let gives: [Argument]
        /// What a call's signature must be.
        let signature: String
        let handler: Handler

        /// - Parameters:
        ///   - takes: The arguments as in `application:o options:a{sv}`.
        ///   - gives: Those of the reply.
        init(_ name: String, _ takes: String = "", gives: String = "", _ handler: @escaping Handler = Self.refuse) {
            self.name = name
            self.takes = Argument.list(takes)
            self.gives = Argument.list(gives)
            signature = self.takes.map(\.signature).joined()
            self.handler = handler
        }

        /// Refuses a method that is described and that the simulator does not have.
        private static var refuse: Handler { { _, call in throw DaemonError.unknownMethod(call) } }
    }

    struct Signal: Sendable {
        let name: String
        let carries: [Argument]

        init(_ name: String, _ carries: String) {
            self.name = name
            self.carries = Argument.list(carries)
        }
    }

    struct Argument: Sendable {
        let name: String
        let signature: String

        fileprivate static func list(_ text: String) -> [Argument] {
            text.split(separator: " ").map { word in
                let parts = word.split(separator: ":")
                return Argument(name: String(parts[0]), signature: String(parts[1]))
            }
        }
    }

    var name: String
    var methods: [Method] = []
    var properties: [PropertyDescription] = []
    var signals: [Signal] = []

    func method(_ name: String) -> Method? { methods.first { $0.name == name } }
}

/// A property as introspection describes it.
struct PropertyDescription: Sendable {
    var name: String
    var signature: String
    var isWritable = false
}

// MARK: - Introspection

extension InterfaceTable {
    /// Returns the XML of an object.
    ///
    /// - Parameter children: The last elements of the paths of the objects below.
    static func introspection(of interfaces: [Self], children: [String]) -> String {
        let nodes = children.map { "    <node name=\"\($0)\"/>\n" }.joined()
        return doctype + "<node>\n" + interfaces.map(\.xml).joined() + nodes + "</node>\n"
    }

    private static var doctype: String {
        """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
        "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">

        """
    }

    private var xml: String {
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

    private static func arguments(_ arguments: [Argument], direction: String?) -> String {
        let suffix = direction.map { " direction=\"\($0)\"" } ?? ""
        return arguments.map { "            <arg name=\"\($0.name)\" type=\"\($0.signature)\"\(suffix)/>\n" }.joined()
    }
}
