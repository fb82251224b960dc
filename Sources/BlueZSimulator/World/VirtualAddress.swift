/// The Bluetooth address of a device, written `AA:BB:CC:DD:EE:FF`.
public struct VirtualAddress: Hashable, Sendable {
    /// The six bytes in the low 48 bits, the first written byte highest.
    public let value: UInt64

    /// Creates an address from its low 48 bits.
    public init(value: UInt64) { self.value = value & 0xFFFF_FFFF_FFFF }

    /// Creates an address from its written form, with colons, dashes or underscores, in either case. Nil for anything else.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(omittingEmptySubsequences: false) { $0 == ":" || $0 == "-" || $0 == "_" }
        guard parts.map(\.utf8.count) == [2, 2, 2, 2, 2, 2], let value = UInt64(parts.joined(), radix: 16),
            Hexadecimal.isDigits(parts.joined())
        else { return nil }
        self.value = value
    }

    /// The written form with `separator` between the bytes, upper case as BlueZ writes it.
    func written(separator: UInt8) -> String {
        String(unsafeUninitializedCapacity: 17) { buffer in
            for index in 0..<6 {
                let byte = UInt8(truncatingIfNeeded: value >> UInt64(8 * (5 - index)))
                buffer[index * 3] = Self.digit(byte >> 4)
                buffer[index * 3 + 1] = Self.digit(byte & 0xF)
                if index < 5 { buffer[index * 3 + 2] = separator }
            }
            return 17
        }
    }

    private static func digit(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") + nibble - 10
    }
}

extension Set<VirtualAddress> {
    /// Whether an address is a member.
    subscript(address: VirtualAddress) -> Bool {
        get { contains(address) }
        set { if newValue { insert(address) } else { remove(address) } }
    }
}

extension VirtualAddress: CustomStringConvertible {
    public var description: String { written(separator: UInt8(ascii: ":")) }
}

extension VirtualAddress: ExpressibleByStringLiteral {
    /// For addresses in a program; a literal that is no address traps.
    public init(stringLiteral text: String) {
        guard let address = VirtualAddress(text) else {
            preconditionFailure("\"\(text)\" is no Bluetooth address; write six bytes, such as \"C0:FF:EE:00:00:01\".")
        }
        self = address
    }
}

extension VirtualAddress: Comparable {
    public static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}

extension VirtualAddress: Codable {
    public init(from decoder: any Decoder) throws {
        let text = try String(from: decoder)
        guard let address = VirtualAddress(text) else {
            throw decoder.failure("\"\(text)\" is no Bluetooth address; write six bytes, such as C0:FF:EE:00:00:01")
        }
        self = address
    }

    public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}

/// Whether an address is assigned to the manufacturer or chosen by the device.
public enum AddressType: String, Hashable, Sendable, Codable, CaseIterable {
    /// A public address, which is assigned to the manufacturer.
    case `public`
    /// A random address, which the device chooses.
    case random

    public init(from decoder: any Decoder) throws { self = try decoder.choice(of: Self.self, by: \.rawValue) }
}
