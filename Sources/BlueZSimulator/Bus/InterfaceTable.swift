/// An interface: its methods with what carries them out, its properties and its signals.
///
/// Dispatch, the check of a call's arguments and introspection all read this table.
struct InterfaceTable<Target>: Sendable {
    /// Throws a ``DaemonError`` for a call that fails.
    typealias Handler = @Sendable (inout Target, MethodCall) throws -> Void

    struct Method: Sendable {
        let name: String
        /// What a call's signature must be.
        let signature: String
        let handler: Handler
        fileprivate let xml: String

        /// The arguments of the call and of the reply are written as in `application:o options:a{sv}`.
        init(_ name: String, _ takes: String = "", gives: String = "", _ handler: @escaping Handler = Self.refuse) {
            let inputs = Arguments(takes)
            self.name = name
            self.handler = handler
            signature = inputs.list.map(\.type).joined()
            xml = "<method name=\"\(name)\">\(inputs.xml("in"))\(Arguments(gives).xml("out"))</method>"
        }

        /// Refuses a method that is described and that the simulator does not have.
        private static var refuse: Handler { { _, call in throw DaemonError.unknownMethod(call) } }
    }

    var name: String
    var methods: [Method] = []
    /// The properties as introspection describes them.
    var properties = ""
    /// The arguments of each signal, written as those of a method.
    var signals: KeyValuePairs<String, String> = [:]

    func method(_ name: String) -> Method? { methods.first { $0.name == name } }

    /// Returns the XML of an object, in the form that BlueZ writes. The children are the last elements of their paths.
    static func introspection(of interfaces: [Self], children: [String]) -> String {
        let head = """
            <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
            "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
            <node>
            """
        let nodes = children.map { "<node name=\"\($0)\"/>" }
        return head + (interfaces.map(\.xml) + nodes).joined() + "</node>"
    }

    private var xml: String {
        let signals = signals.map { "<signal name=\"\($0.key)\">\(Arguments($0.value).xml())</signal>" }
        return "<interface name=\"\(name)\">\((methods.map(\.xml) + signals).joined())\(properties)</interface>"
    }
}

/// The arguments of a method or a signal.
private struct Arguments {
    let list: [(name: Substring, type: Substring)]

    init(_ text: String) {
        list = text.split(separator: " ").map { argument in
            let parts = argument.split(separator: ":")
            return (parts[0], parts[1])
        }
    }

    func xml(_ direction: String? = nil) -> String {
        let suffix = direction.map { " direction=\"\($0)\"" } ?? ""
        return list.map { "<arg name=\"\($0.name)\" type=\"\($0.type)\"\(suffix)/>" }.joined()
    }
}
