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
        /// Without a handler, the method is described and refused.
        init(
            _ name: String, _ takes: String = "", gives: String = "",
            _ handler: @escaping Handler = { throw DaemonError.unhandled("UnknownMethod", $1) }
        ) {
            self.name = name
            self.handler = handler
            signature = arguments(takes).map(\.type).joined()
            xml = "<method name=\"\(name)\">\(argumentXML(takes, "in"))\(argumentXML(gives, "out"))</method>"
        }
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
        let signals = signals.map { "<signal name=\"\($0.key)\">\(argumentXML($0.value))</signal>" }
        return "<interface name=\"\(name)\">\((methods.map(\.xml) + signals).joined())\(properties)</interface>"
    }
}

private func arguments(_ text: String) -> [(name: Substring, type: Substring)] {
    text.split(separator: " ").map { argument in
        let parts = argument.split(separator: ":")
        return (parts[0], parts[1])
    }
}

private func argumentXML(_ text: String, _ direction: String? = nil) -> String {
    let suffix = direction.map { " direction=\"\($0)\"" } ?? ""
    return arguments(text).map { "<arg name=\"\($0.name)\" type=\"\($0.type)\"\(suffix)/>" }.joined()
}
