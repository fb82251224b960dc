/// Writes what org.freedesktop.DBus.Introspectable answers: the XML of the specification, in the form that BlueZ gives it.
enum Introspection {
    static func xml(interfaces: [any ExportedInterface], children: [String]) -> String {
        var xml = """
            <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
            "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
            <node>
            """
        for interface in interfaces { write(interface.description, to: &xml) }
        for child in children { xml += "<node name=\"\(child)\"/>" }
        return xml + "</node>"
    }

    // Names and signatures are checked when a table is made, and have no character that XML would mind.
    private static func write(_ interface: InterfaceDescription, to xml: inout String) {
        xml += "<interface name=\"\(interface.name)\">"
        for method in interface.methods {
            xml += "<method name=\"\(method.name)\">"
            write(method.inputs, direction: " direction=\"in\"", to: &xml)
            write(method.outputs, direction: " direction=\"out\"", to: &xml)
            xml += "</method>"
        }
        for signal in interface.signals {
            xml += "<signal name=\"\(signal.name)\">"
            write(signal.arguments, direction: "", to: &xml)
            xml += "</signal>"
        }
        for property in interface.properties {
            let access = property.isWritable ? "readwrite" : "read"
            xml += "<property name=\"\(property.name)\" type=\"\(property.signature)\" access=\"\(access)\"></property>"
        }
        xml += "</interface>"
    }

    private static func write(
        _ arguments: KeyValuePairs<StaticString, StaticString>, direction: String, to xml: inout String
    ) {
        for (name, signature) in arguments { xml += "<arg name=\"\(name)\" type=\"\(signature)\"\(direction)/>" }
    }
}
