extension Message: CustomStringConvertible {
    /// For logs and bug reports: the header, then every argument.
    package var description: String {
        var text = "\(kind)"
        if let path { text += " \(path)" }
        if let interface { text += " \(interface)" }
        if let member { text += ".\(member)" }
        if let errorName { text += " \(errorName)" }
        if let sender { text += " from \(sender)" }
        if let destination { text += " to \(destination)" }
        var reader = reader
        return text + " (" + reader.describeAll() + ")"
    }
}

extension MessageReader {
    /// All values that are left, in a form for people; at most a few hundred bytes of each array of bytes.
    package mutating func describeAll() -> String {
        var values: [String] = []
        while !isAtEnd { values.append(describe()) }
        return values.joined(separator: ", ")
    }

    private mutating func describe() -> String {
        switch type {
        case .byte: describe(byte())
        case .bool: describe(bool())
        case .int16: describe(int16())
        case .uint16: describe(uint16())
        case .int32: describe(int32())
        case .uint32: describe(uint32())
        case .int64: describe(int64())
        case .uint64: describe(uint64())
        case .double: describe(double())
        case .string: describe(string().map { "\"\($0)\"" })
        case .objectPath: describe(objectPath())
        case .signature: describe(signatureValue())
        case .descriptor: describe(descriptor().map { _ in "descriptor" })
        case .variant: "<" + (variant { $0.describeAll() } ?? "") + ">"
        case .structure: "(" + (structure { $0.describeAll() } ?? "") + ")"
        case .array: describeArray()
        default: skipped()
        }
    }

    private mutating func describeArray() -> String {
        if elementType == .byte {
            return "0x"
                + (bytes() ?? []).prefix(256).map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }
                .joined()
        }
        var values: [String] = []
        if dictionary({ entry in values.append(entry.describe() + ": " + entry.describe()) }) {
            return "{" + values.joined(separator: ", ") + "}"
        }
        array { element in values.append(element.describe()) }
        return "[" + values.joined(separator: ", ") + "]"
    }

    private mutating func skipped() -> String {
        skip()
        return "?"
    }

    /// A value that could not be read (a descriptor, when the process has none left) must still be stepped over.
    private mutating func describe<T>(_ value: T?) -> String {
        guard let value else { return skipped() }
        return "\(value)"
    }
}
