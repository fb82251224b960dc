/// The name of a peripheral in topics: its address in lower-case hexadecimal digits without colons, such as `c0ffee00180d`.
public struct DeviceName: Hashable, Sendable, Comparable, CustomStringConvertible {
    public let description: String

    /// Returns `nil` for a text that is not twelve hexadecimal digits, with or without colons between each two.
    public init?(_ text: String) {
        let digits = text.lowercased().filter { $0 != ":" }
        guard digits.utf8.count == 12, digits.allSatisfy({ $0.isHexDigit && $0.isASCII }),
            text.utf8.count == 12 || (text.utf8.count == 17 && text.split(separator: ":").allSatisfy { $0.count == 2 })
        else { return nil }
        description = digits
    }

    /// The address as BlueZ writes it, such as `C0:FF:EE:00:18:0D`.
    public var address: String {
        var rest = description.uppercased()[...]
        var parts: [Substring] = []
        while !rest.isEmpty {
            parts.append(rest.prefix(2))
            rest = rest.dropFirst(2)
        }
        return parts.joined(separator: ":")
    }

    public static func < (left: DeviceName, right: DeviceName) -> Bool { left.description < right.description }
}
