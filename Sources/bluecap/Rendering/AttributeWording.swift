import BlueCapKit

extension CBCharacteristicProperties {
    /// The properties by the names that BlueZ and the specification's writers use, in the order of their bits.
    var names: [String] {
        let all: [(CBCharacteristicProperties, String)] = [
            (.broadcast, "broadcast"), (.read, "read"), (.writeWithoutResponse, "write-without-response"),
            (.write, "write"), (.notify, "notify"), (.indicate, "indicate"),
            (.authenticatedSignedWrites, "authenticated-signed-writes"),
            (.extendedProperties, "extended-properties"),
            (.notifyEncryptionRequired, "notify-encryption-required"),
            (.indicateEncryptionRequired, "indicate-encryption-required"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}

extension AttributeValue {
    /// The members of a line that tell a value: its digits, and the parts that a profile sees in them.
    func add(to line: inout JSONObject) {
        line.add("value", ValueForm.hexadecimal(data))
        guard !fields.isEmpty else { return line.addNull("fields") }
        var object = JSONObject()
        for field in fields { object.add(field.name, field.text) }
        line.add("fields", object)
    }
}
