import CDBus

/// What an interface consists of, without anybody who does it: for introspection and for checking.
package struct InterfaceDescription: Sendable {
    package let name: String
    package let methods: [MethodDescription]
    package let properties: [PropertyDescription]
    package let signals: [SignalDescription]

    func requireWellFormed() {
        precondition(
            isValid(name, cdbus_is_interface), "\"\(name)\" is not an interface name, such as org.bluez.Device1.")
        for member in methods.map(\.name) + signals.map(\.name) {
            precondition(
                cdbus_is_member(member.cString),
                "\(name) has \"\(member)\", which cannot be the name of a method or signal.")
        }
        let arguments =
            methods.flatMap { Array($0.inputs) + Array($0.outputs) } + signals.flatMap { Array($0.arguments) }
        for signature in arguments.map(\.value) + properties.map(\.signature) {
            precondition(
                cdbus_is_single_type(signature.cString), "\(name) has \"\(signature)\", which is not one complete type."
            )
        }
    }
}

package struct MethodDescription: Sendable {
    package let name: StaticString
    package let inputs: KeyValuePairs<StaticString, StaticString>
    package let outputs: KeyValuePairs<StaticString, StaticString>
    let input: CString
    let output: CString

    init(
        name: StaticString, inputs: KeyValuePairs<StaticString, StaticString>,
        outputs: KeyValuePairs<StaticString, StaticString>
    ) {
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        input = CString(inputs.map { "\($0.value)" }.joined())
        output = CString(outputs.map { "\($0.value)" }.joined())
    }
}

package struct PropertyDescription: Sendable {
    package let name: StaticString
    package let signature: StaticString
    package let isWritable: Bool

    func hasName(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        name.elementsEqual(UnsafeBufferPointer(start: self.name.utf8Start, count: self.name.utf8CodeUnitCount))
    }
}

package struct SignalDescription: Sendable {
    package let name: StaticString
    package let arguments: KeyValuePairs<StaticString, StaticString>
}
