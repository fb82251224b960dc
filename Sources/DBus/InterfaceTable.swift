import CDBus

/// One interface of exported objects, written down once for all objects that have it: its methods, properties and
/// signals, each with the signature and with what to do for a `Target`.
///
///     static let battery = InterfaceTable<Battery>(
///         "org.bluez.Battery1",
///         properties: [.init("Percentage", "y") { battery, value in value.byte(battery.percentage) }])
///
///     connection.export(ExportedObject("/org/bluez/hci0", [battery.bound(to: theBattery)]))
///
/// All of it runs on the connection's loop.
package final class InterfaceTable<Target: Sendable>: Sendable {
    /// Names and signatures, in order.
    package typealias Arguments = KeyValuePairs<StaticString, StaticString>

    package struct Method: Sendable {
        let description: MethodDescription
        let handler: @Sendable (Target, Invocation) -> Void

        /// The handler answers the invocation, now or later.
        package init(
            _ name: StaticString, in inputs: Arguments = [:], out outputs: Arguments = [:],
            handler: @escaping @Sendable (Target, Invocation) -> Void
        ) {
            description = MethodDescription(name: name, inputs: inputs, outputs: outputs)
            self.handler = handler
        }
    }

    package struct Property: Sendable {
        let description: PropertyDescription
        let exists: (@Sendable (Target) -> Bool)?
        let get: @Sendable (Target, inout MessageWriter) -> Void
        let set: (@Sendable (Target, inout MessageReader, Invocation) -> Void)?

        /// - Parameters:
        ///   - exists: Whether the object has the property at present; always, where nil.
        ///   - set: Reads the new value, which is of the property's type, and answers the invocation, now or later. Nil
        ///     for a property that is only read.
        ///   - get: Writes one value of the property's type.
        package init(
            _ name: StaticString, _ signature: StaticString, exists: (@Sendable (Target) -> Bool)? = nil,
            set: (@Sendable (Target, inout MessageReader, Invocation) -> Void)? = nil,
            get: @escaping @Sendable (Target, inout MessageWriter) -> Void
        ) {
            description = PropertyDescription(name: name, signature: signature, isWritable: set != nil)
            self.exists = exists
            self.get = get
            self.set = set
        }
    }

    package struct Signal: Sendable {
        let description: SignalDescription

        package init(_ name: StaticString, _ arguments: Arguments = [:]) {
            description = SignalDescription(name: name, arguments: arguments)
        }
    }

    package let name: String
    let methods: [Method]
    let properties: [Property]
    let description: InterfaceDescription

    /// Traps where a name or a signature is not well-formed.
    package init(
        _ name: StaticString, methods: [Method] = [], properties: [Property] = [], signals: [Signal] = []
    ) {
        self.name = "\(name)"
        self.methods = methods
        self.properties = properties
        description = InterfaceDescription(
            name: self.name, methods: methods.map(\.description), properties: properties.map(\.description),
            signals: signals.map(\.description))
        description.requireWellFormed()
    }

    /// This interface of one object.
    package func bound(to target: Target) -> any ExportedInterface {
        BoundInterface(table: self, target: target)
    }
}

/// An interface of one object: a table and the target that it speaks of.
package protocol ExportedInterface: Sendable {
    var name: String { get }
    /// What introspection tells of it.
    var description: InterfaceDescription { get }
    /// Calls the method of that name and signature; false where there is none.
    func call(_ message: Message, answer: (MethodDescription) -> Invocation) -> Bool
    /// What the object has of the property of that name at present.
    func property(named name: UnsafeBufferPointer<UInt8>) -> PropertyAccess?
    /// Writes all properties that the object has at present, as entries of an `a{sv}`.
    func writeProperties(_ writer: inout MessageWriter)
}

/// One property of one object.
package struct PropertyAccess {
    package let description: PropertyDescription
    /// Whether the object has the property at present.
    package let exists: Bool
    package let get: (inout MessageWriter) -> Void
    package let set: ((inout MessageReader, Invocation) -> Void)?
}

private struct BoundInterface<Target: Sendable>: ExportedInterface {
    let table: InterfaceTable<Target>
    let target: Target

    var name: String { table.name }
    var description: InterfaceDescription { table.description }

    func call(_ message: Message, answer: (MethodDescription) -> Invocation) -> Bool {
        let member = message.heading.member
        let signature = cdbus_message_signature(message.pointer)
        for method in table.methods
        where equal(member, method.description.name.cString) && equal(signature, method.description.input.pointer) {
            method.handler(target, answer(method.description))
            return true
        }
        return false
    }

    func property(named name: UnsafeBufferPointer<UInt8>) -> PropertyAccess? {
        guard let property = table.properties.first(where: { $0.description.hasName(name) }) else { return nil }
        return PropertyAccess(
            description: property.description,
            exists: property.exists?(target) ?? true,
            get: { property.get(target, &$0) },
            set: property.set.map { set in { set(target, &$0, $1) } })
    }

    func writeProperties(_ writer: inout MessageWriter) {
        for property in table.properties where property.exists?(target) ?? true {
            writer.entry { entry in
                entry.string(static: property.description.name)
                entry.variant(static: property.description.signature) { property.get(target, &$0) }
            }
        }
    }
}
