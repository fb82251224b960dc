/// A passkey of a pairing: a number of six digits that one side displays and the user enters or compares on the other.
///
/// A passkey is a secret until the pairing has ended, so its descriptions contain no digits: neither does a log, an error
/// or a debugger's view that contains it. ``digits`` is the only way to the number.
public struct Passkey: Hashable, Sendable {
    private let number: UInt32

    /// - Parameter number: From 0 to 999999; `nil` for any other.
    public init?(_ number: Int) {
        guard (0...999_999).contains(number) else { return nil }
        self.number = UInt32(number)
    }

    /// - Parameter digits: One to six ASCII digits, with leading zeros or without; `nil` for any other text.
    public init?(digits: String) {
        guard (1...6).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(digits)
        else { return nil }
        self.init(number)
    }

    /// The six digits to display, such as `004711`.
    public var digits: String {
        let text = String(number)
        return String(repeating: "0", count: 6 - text.count) + text
    }

    /// The number for BlueZ.
    var rawValue: UInt32 { number }
}

extension Passkey: ExpressibleByIntegerLiteral {
    /// - Precondition: The number is from 0 to 999999.
    public init(integerLiteral value: Int) {
        guard let passkey = Passkey(value) else { preconditionFailure("A passkey is a number from 0 to 999999.") }
        self = passkey
    }
}

extension Passkey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `Passkey(hidden)`, for every passkey.
    public var description: String { "Passkey(hidden)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
