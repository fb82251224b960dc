public import Foundation

/// The 48 bit address of a Bluetooth device, as in `"C0:26:DF:12:34:56"`.
public struct BluetoothAddress: Hashable, Sendable {
    /// The address as a number: the first byte as written is the most significant of the lower 48 bits.
    public let rawValue: UInt64

    /// Whether an address was bought from the IEEE or drawn at random.
    ///
    /// The same 48 bits can name two devices, one of each type, so an address without its type names nobody.
    public enum AddressType: String, Hashable, Sendable, CaseIterable, Codable {
        /// Registered with the IEEE; worldwide unique and lasting.
        case `public`
        /// Drawn by the device itself; ``BluetoothAddress/randomKind`` says how long it lasts.
        case random
    }

    /// The three kinds of random address, told apart by the two highest bits (Core Specification, Vol 6, Part B, 1.3.2).
    public enum RandomKind: Hashable, Sendable {
        /// Kept at least until the device is powered off.
        case `static`
        /// Changes every few minutes; who holds the device's key recognizes it.
        case resolvable
        /// Changes, and cannot be recognized.
        case nonResolvable
    }

    /// An address from its number, of which the upper sixteen bits are left out.
    public init(rawValue: UInt64) { self.rawValue = rawValue & 0xFFFF_FFFF_FFFF }

    /// An address from text such as `"C0:26:DF:12:34:56"` in either case, or `nil` when it is none.
    public init?(_ text: String) {
        var text = text
        guard let address = text.withUTF8({ BluetoothAddress(utf8: $0) }) else { return nil }
        self = address
    }

    /// An address from ASCII text where it lies, or `nil` when it is none.
    package init?(utf8 text: UnsafeBufferPointer<UInt8>) {
        guard text.count == 17 else { return nil }
        var value: UInt64 = 0
        for start in stride(from: 0, to: 17, by: 3) {
            guard start == 0 || text[start - 1] == UInt8(ascii: ":"),
                let byte = Hexadecimal.value(text[start..<start + 2])
            else { return nil }
            value = value << 8 | byte
        }
        rawValue = value
    }

    /// The kind that this address is of if it is random. Of a public address the bits mean nothing.
    ///
    /// `nil` for the bit pattern that the specification reserves.
    public var randomKind: RandomKind? {
        switch rawValue >> 46 {
        case 0b11: .static
        case 0b01: .resolvable
        case 0b00: .nonResolvable
        default: nil
        }
    }

    /// Whether the address, taken as a random one, is static.
    public var isRandomStatic: Bool { randomKind == .static }
    /// Whether the address, taken as a random one, is private and resolvable.
    public var isResolvablePrivate: Bool { randomKind == .resolvable }
    /// Whether the address, taken as a random one, is private and not resolvable.
    public var isNonResolvablePrivate: Bool { randomKind == .nonResolvable }
}

extension BluetoothAddress: CustomStringConvertible {
    /// The address as people write it: `"C0:26:DF:12:34:56"`.
    public var description: String {
        String(unsafeUninitializedCapacity: 17) { text in
            writeText(into: text)
            return 17
        }
    }

    /// Writes the seventeen characters of ``description`` at the start of a buffer.
    func writeText(into text: UnsafeMutableBufferPointer<UInt8>) {
        for index in 0..<17 {
            text[index] =
                index % 3 == 2
                ? UInt8(ascii: ":")
                : Hexadecimal.upperDigit(rawValue, nibblesFromTheRight: 11 - (index / 3 * 2 + index % 3))
        }
    }
}

extension BluetoothAddress: Comparable {
    public static func < (a: BluetoothAddress, b: BluetoothAddress) -> Bool { a.rawValue < b.rawValue }
}

extension BluetoothAddress: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let address = BluetoothAddress(text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "\"\(text)\" is not a Bluetooth address.")
        }
        self = address
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension BluetoothAddress {
    /// The namespace of ``identifier(type:)``: any tool that makes name-based UUIDs finds the same identifiers.
    public static let identifierNamespace = UUID(
        uuid: (
            0x5F, 0xB6, 0x0E, 0x1C, 0x7A, 0x4D, 0x4C, 0x0B, 0x9E, 0x52, 0xB1, 0xC3, 0xD0, 0x8A, 0x6E, 0x47
        ))

    /// The identifier of the device with this address: the same on every run and every machine.
    ///
    /// A UUID of version 5 (RFC 9562, 5.5: the SHA-1 of a name in a namespace), with ``identifierNamespace`` and the
    /// name `"public/C0:26:DF:12:34:56"` or `"random/C0:26:DF:12:34:56"`. A shell finds the same one:
    /// `uuidgen --sha1 --namespace 5fb60e1c-7a4d-4c0b-9e52-b1c3d08a6e47 --name public/C0:26:DF:12:34:56`.
    ///
    /// A device that changes its private address changes its identifier too.
    public func identifier(type: AddressType) -> UUID {
        // Both type names have six letters: sixteen bytes of namespace, seven of type and slash, seventeen of address.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16 + 7 + 17) { name in
            withUnsafeBytes(of: BluetoothAddress.identifierNamespace.uuid) { namespace in
                for index in 0..<16 { name[index] = namespace[index] }
            }
            let prefix: StaticString =
                switch type {
                case .public: "public/"
                case .random: "random/"
                }
            prefix.withUTF8Buffer { letters in
                for index in 0..<7 { name[16 + index] = letters[index] }
            }
            writeText(into: UnsafeMutableBufferPointer(rebasing: name[23...]))
            return UUID(nameHash: SHA1.hash(UnsafeBufferPointer(name)))
        }
    }
}

extension UUID {
    /// A UUID of version 5 out of the SHA-1 of its namespace and name.
    fileprivate init(nameHash hash: SHA1.Digest) {
        var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &bytes) { bytes in
            for index in 0..<16 { bytes[index] = hash[byte: index] }
            bytes[6] = bytes[6] & 0x0F | 0x50
            bytes[8] = bytes[8] & 0x3F | 0x80
        }
        self.init(uuid: bytes)
    }
}
