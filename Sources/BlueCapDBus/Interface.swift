import BlueCapFutures
import BlueCapReactor

/// One interface of exported objects, written once for all objects that have it: its methods, properties and signals, each
/// with the signature and with what to do for a `Target`.
///
///     static let battery = InterfaceTable<Battery>(
///         "org.bluez.Battery1",
///         properties: [.init("Percentage", "y") { battery, value in value.byte(battery.percentage) }])
///
///     connection.export(ExportedObject("/org/bluez/hci0", [battery.bound(to: theBattery)]))
///
/// Calls of methods, `org.freedesktop.DBus.Properties` and introspection all use this table. Handlers run on the
/// connection's loop.
package struct InterfaceTable<Target: Sendable>: Sendable {
    /// Names and signatures, in order.
    package typealias Arguments = KeyValuePairs<StaticString, StaticString>

    package struct Method: Sendable {
        fileprivate let method: Interface.Method

        /// - Parameter handler: Replies to the invocation, now or later.
        package init(
            _ name: StaticString, in inputs: Arguments = [:], out outputs: Arguments = [:],
            handler: @escaping @Sendable (Target, Invocation) -> Void
        ) {
            method = Interface.Method(
                name: name, inputs: inputs, outputs: outputs, input: CopiedText(inputs.map { "\($0.value)" }.joined()),
                output: CopiedText(outputs.map { "\($0.value)" }.joined()), handler: { handler(typed($0), $1) })
        }
    }

    package struct Property: Sendable {
        fileprivate let property: Interface.Property

        /// - Parameters:
        ///   - exists: Whether the object has the property at present; `nil` if it always has.
        ///   - set: Reads the new value, which has the property's type, and replies to the invocation, now or later. `nil`
        ///     for a read-only property.
        ///   - get: Writes one value of the property's type.
        package init(
            _ name: StaticString, _ signature: StaticString, exists: (@Sendable (Target) -> Bool)? = nil,
            set: (@Sendable (Target, inout MessageReader, Invocation) -> Void)? = nil,
            get: @escaping @Sendable (Target, inout MessageWriter) -> Void
        ) {
            var erasedSet: Interface.Property.Setter?
            if let set { erasedSet = { set(typed($0), &$1, $2) } }
            property = Interface.Property(
                name: name, signature: signature, exists: { exists?(typed($0)) ?? true }, set: erasedSet,
                get: { get(typed($0), &$1) })
        }
    }

    private let interface: Interface

    /// Traps if a name or a signature is not well-formed.
    package init(
        _ name: StaticString, methods: [Method] = [], properties: [Property] = [],
        signals: KeyValuePairs<StaticString, Arguments> = [:]
    ) {
        interface = Interface(
            name: "\(name)", methods: methods.map(\.method), properties: properties.map(\.property),
            signals: signals)
    }

    /// Returns this interface of one object.
    package func bound(to target: Target) -> ExportedInterface {
        ExportedInterface(interface: interface, target: target)
    }
}

private func typed<Target>(_ target: any Sendable) -> Target {
    guard let target = target as? Target else {
        preconditionFailure("An interface of \(Target.self) was bound to a \(type(of: target)).")
    }
    return target
}

/// The contents of an `InterfaceTable`, without the type of its targets.
final class Interface: Sendable {
    typealias Arguments = KeyValuePairs<StaticString, StaticString>

    struct Method: Sendable {
        let name: StaticString
        let inputs: Arguments
        let outputs: Arguments
        /// The signatures of all inputs and of all outputs.
        let input: CopiedText
        let output: CopiedText
        let handler: @Sendable (any Sendable, Invocation) -> Void
    }

    struct Property: Sendable {
        typealias Setter = @Sendable (any Sendable, inout MessageReader, Invocation) -> Void

        let name: StaticString
        let signature: StaticString
        let exists: @Sendable (any Sendable) -> Bool
        let set: Setter?
        let get: @Sendable (any Sendable, inout MessageWriter) -> Void
    }

    let name: String
    let methods: [Method]
    let properties: [Property]
    private let signals: KeyValuePairs<StaticString, Arguments>

    init(
        name: String, methods: [Method], properties: [Property], signals: KeyValuePairs<StaticString, Arguments>
    ) {
        (self.name, self.methods, self.properties, self.signals) = (name, methods, properties, signals)
        precondition(
            isValid(name, Syntax.isInterface), "\"\(name)\" is not an interface name, such as org.bluez.Device1.")
        for member in methods.map(\.name) + signals.map(\.key) {
            precondition(
                Syntax.isMember(member.bytes),
                "\(name) has \"\(member)\", which cannot be the name of a method or signal.")
        }
        let arguments = methods.flatMap { [$0.inputs, $0.outputs] } + signals.map(\.value)
        for signature in arguments.flatMap({ $0.map(\.value) }) + properties.map(\.signature) {
            precondition(
                Syntax.isSingleType(signature.bytes), "\(name) has \"\(signature)\", which is not one complete type."
            )
        }
    }

    func property(named name: UnsafeBufferPointer<UInt8>) -> Property? {
        properties.first { $0.name.bytes.elementsEqual(name) }
    }

    /// The interface in the XML of org.freedesktop.DBus.Introspectable, in the form that BlueZ writes. Names and
    /// signatures were checked and have no character that XML would escape.
    var xml: String {
        func arguments(_ arguments: Arguments, _ direction: String = "") -> String {
            arguments.map { "<arg name=\"\($0.key)\" type=\"\($0.value)\"\(direction)/>" }.joined()
        }
        var xml = "<interface name=\"\(name)\">"
        for method in methods {
            xml += "<method name=\"\(method.name)\">" + arguments(method.inputs, " direction=\"in\"")
            xml += arguments(method.outputs, " direction=\"out\"") + "</method>"
        }
        for signal in signals {
            xml += "<signal name=\"\(signal.key)\">" + arguments(signal.value) + "</signal>"
        }
        for property in properties {
            let access = property.set == nil ? "read" : "readwrite"
            xml += "<property name=\"\(property.name)\" type=\"\(property.signature)\" access=\"\(access)\"></property>"
        }
        return xml + "</interface>"
    }
}

/// An interface of one object: a table's contents and the target of its handlers.
package struct ExportedInterface: Sendable {
    let interface: Interface
    let target: any Sendable

    /// Calls the method with that name and signature; false if the interface has none.
    func call(_ message: Message, on connection: ConnectionCore) -> Bool {
        guard message.hasInterface(interface.name) else { return false }
        for method in interface.methods
        where message.hasMember(method.name) && equal(message.signatureText, method.input.bytes) {
            method.handler(target, Invocation(message, of: method, on: connection))
            return true
        }
        return false
    }

    /// Writes all properties that the object has at present, as an `a{sv}`.
    func writeProperties(_ writer: inout MessageWriter) {
        writer.options { dictionary in
            for property in interface.properties where property.exists(target) {
                dictionary.entry { entry in
                    entry.string(static: property.name)
                    entry.variant(static: property.signature) { property.get(target, &$0) }
                }
            }
        }
    }
}

/// An object of this process on the bus: a path and its interfaces.
package struct ExportedObject: Sendable {
    package let path: ObjectPath
    package let interfaces: [ExportedInterface]
    /// Whether the object implements org.freedesktop.DBus.ObjectManager for all objects below it.
    package let isObjectManager: Bool

    package init(_ path: ObjectPath, _ interfaces: [ExportedInterface] = [], isObjectManager: Bool = false) {
        self.path = path
        self.interfaces = interfaces
        self.isObjectManager = isObjectManager
    }
}

/// One call of a method that this side exports, until the reply is sent.
///
/// It needs exactly one reply, at any time and on any thread. If it is released without one, it replies with an error, so
/// that the caller does not wait for the time-out. A second reply is a mistake in the program, and traps.
package final class Invocation: Sendable {
    package let message: Message
    private let method: Interface.Method
    private let connection: Locked<ConnectionCore?>

    init(_ message: Message, of method: Interface.Method, on connection: ConnectionCore) {
        self.message = message
        self.method = method
        self.connection = Locked(connection)
    }

    deinit {
        let connection = connection.withLock { $0 }
        connection.map { send(.error(to: message, .failed("\(method.name) was not answered.")), on: $0) }
    }

    /// Reads the arguments from the first on.
    package var reader: MessageReader { message.reader }
    /// The unique name of the caller.
    package var sender: String { message.sender ?? "" }

    /// Replies with the method's results, which must have the signature that its table contains.
    package func reply(_ body: (inout MessageWriter) -> Void = { _ in }) {
        let reply = Message.reply(to: message, body: body)
        precondition(
            !reply.isComplete || equal(reply.signatureText, method.output.bytes),
            """
            \(method.name) returns "\(method.output.string)", and was answered with \
            "\(reply.signature)": write what its table says.
            """)
        finish(reply)
    }

    /// Replies with an error.
    package func fail(_ error: DBusError) {
        finish(.error(to: message, error))
    }

    private func finish(_ reply: Message) {
        guard let connection = connection.withLock({ $0.take() }) else {
            preconditionFailure("\(method.name) was answered twice: answer each invocation once.")
        }
        send(reply, on: connection)
    }

    private func send(_ reply: Message, on connection: ConnectionCore) {
        if !message.expectsNoReply { connection.loop.perform { connection.send(reply) } }
    }
}
