public import Foundation

/// The UUID of a service, characteristic or descriptor, in any of Bluetooth's three lengths.
///
/// The 16 and 32 bit forms are abbreviations of a 128 bit UUID on the Bluetooth Base UUID
/// `00000000-0000-1000-8000-00805F9B34FB` (Core Specification, Vol 3, Part B, 2.5.1). The forms of one UUID are equal
/// and have the same hash:
///
/// ```swift
/// CBUUID(string: "180D") == CBUUID(string: "0000180d-0000-1000-8000-00805f9b34fb")   // true
/// ```
///
/// A value type of sixteen bytes, which is cheap to copy and compare.
public struct CBUUID: Hashable, Sendable {
    /// The first eight bytes, as written from left to right.
    package let high: UInt64
    /// The last eight bytes.
    package let low: UInt64

    static let baseHigh: UInt64 = 0x0000_0000_0000_1000
    static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Creates a UUID from text: 4, 8 or 32 hexadecimal digits in either case, the last with hyphens (8-4-4-4-12); `0x` may
    /// precede them.
    ///
    /// Never traps. A text that is not a UUID is reported on standard error, with the text. The result is then a UUID that
    /// no device has: the same one for the same text, and another one for another text. `init(validating:)` returns `nil`
    /// instead.
    public init(string: String) {
        self =
            CBUUID(validating: string)
            ?? CBUUID(
                misuse: "\"\(string)\" is not a Bluetooth UUID: write 4, 8 or 32 hexadecimal digits (8-4-4-4-12).")
    }

    /// Creates a UUID from any text; `nil` if it is none.
    ///
    /// - Parameter text: 4, 8 or 32 hexadecimal digits in either case; 32 digits with hyphens as 8-4-4-4-12. `0x` may precede
    ///   them, as on Apple's platforms.
    public init?(validating text: String) {
        var text = text
        let uuid = text.withUTF8 { text in
            let isPrefixed = text.count > 2 && text[0] == UInt8(ascii: "0") && text[1] | 0x20 == UInt8(ascii: "x")
            return CBUUID(utf8: isPrefixed ? UnsafeBufferPointer(rebasing: text[2...]) : text)
        }
        guard let uuid else { return nil }
        self = uuid
    }

    /// Creates a UUID from its bytes as written, most significant first; 2, 4 or 16 of them.
    ///
    /// Never traps: any other count is treated as a text that is not a UUID is by ``init(string:)``.
    public init(data: Data) {
        self =
            CBUUID(validating: data)
            ?? CBUUID(misuse: "The data \"\(data.hexadecimal)\" are not a Bluetooth UUID, which has 2, 4 or 16 bytes.")
    }

    /// Creates a UUID from its bytes as written, most significant first; `nil` unless there are 2, 4 or 16 of them.
    public init?(validating data: Data) {
        switch data.count {
        case 2, 4:
            self.init(data.reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        case 16:
            self.init(
                high: data.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
                low: data.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
        default:
            return nil
        }
    }

    /// Creates the UUID from Foundation's type.
    public init(nsuuid: UUID) {
        self = withUnsafeBytes(of: nsuuid.uuid) { bytes in
            CBUUID(
                high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        }
    }

    /// Creates the UUID that the Bluetooth SIG abbreviates to this number of 16 or 32 bits.
    public init(_ assignedNumber: UInt32) {
        self.init(high: UInt64(assignedNumber) << 32 | CBUUID.baseHigh, low: CBUUID.baseLow)
    }

    /// Reports a value that the program must not pass, and creates the UUID of version 5 (RFC 9562, 5.5) whose name is the
    /// report.
    ///
    /// Apple's initializers raise an exception, "String … does not represent a valid UUID", which ends the program. Texts
    /// often come from a file or a user, also in programs for iOS.
    private init(misuse report: String) {
        try? FileHandle.standardError.write(contentsOf: Data("[CoreBluetooth] API MISUSE: \(report)\n".utf8))
        self.init(nsuuid: UUID(nameHash: Array(report.utf8).withUnsafeBufferPointer { SHA1.hash($0) }))
    }

    /// The number of 16 or 32 bits that abbreviates this UUID, or `nil` if it is not on the Bluetooth Base UUID.
    public var assignedNumber: UInt32? {
        guard low == CBUUID.baseLow, high & 0xFFFF_FFFF == CBUUID.baseHigh else { return nil }
        return UInt32(truncatingIfNeeded: high >> 32)
    }

    /// The bytes of the shortest form, most significant first: 2, 4 or 16.
    public var data: Data {
        guard let number = assignedNumber else {
            return Data(high.bigEndianBytes + low.bigEndianBytes)
        }
        return Data(number.bigEndianBytes.suffix(number > 0xFFFF ? 4 : 2))
    }

    /// The same UUID as Foundation's type.
    public var nsuuid: UUID {
        let bytes = (high.bigEndian, low.bigEndian)
        return withUnsafeBytes(of: bytes) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}

extension CBUUID: CustomStringConvertible {
    /// The shortest form in upper case: `"180D"`, `"0001180D"` or `"6E400001-B5A3-F393-E0A9-E50E24DCCA9E"`.
    public var uuidString: String {
        guard let number = assignedNumber else { return fullUUIDString }
        return String(unsafeUninitializedCapacity: 8) { text in
            let count = number > 0xFFFF ? 8 : 4
            for index in 0..<count {
                text[index] = Hexadecimal.upperDigit(UInt64(number), nibblesFromTheRight: count - 1 - index)
            }
            return count
        }
    }

    /// The 128 bit form in upper case, for a UUID of any length.
    public var fullUUIDString: String { nsuuid.uuidString }

    public var description: String { uuidString }
}

extension CBUUID {
    /// Creates a UUID from ASCII text in a buffer, such as a message; `nil` if it is none.
    ///
    /// Allocates nothing: this runs for every UUID of every device that BlueZ reports.
    package init?(utf8 text: UnsafeBufferPointer<UInt8>) {
        switch text.count {
        case 4, 8:
            guard let number = Hexadecimal.value(text[...]) else { return nil }
            self.init(UInt32(truncatingIfNeeded: number))
        case 36:
            let hyphen = UInt8(ascii: "-")
            guard text[8] == hyphen, text[13] == hyphen, text[18] == hyphen, text[23] == hyphen,
                let a = Hexadecimal.value(text[0..<8]), let b = Hexadecimal.value(text[9..<13]),
                let c = Hexadecimal.value(text[14..<18]), let d = Hexadecimal.value(text[19..<23]),
                let e = Hexadecimal.value(text[24..<36])
            else { return nil }
            self.init(high: a << 32 | b << 16 | c, low: d << 48 | e)
        case 32:
            guard let high = Hexadecimal.value(text[0..<16]), let low = Hexadecimal.value(text[16..<32]) else {
                return nil
            }
            self.init(high: high, low: low)
        default:
            return nil
        }
    }

    /// Whether `a` precedes `b` in sorted tables; the order has no other meaning.
    package static func precedes(_ a: CBUUID, _ b: CBUUID) -> Bool {
        a.high != b.high ? a.high < b.high : a.low < b.low
    }
}

extension CBUUID: Codable {
    /// Reads the form that ``encode(to:)`` writes, or any other that `init(validating:)` takes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let uuid = CBUUID(validating: text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "\"\(text)\" is not a UUID.")
        }
        self = uuid
    }

    /// Writes ``uuidString``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(uuidString)
    }
}
