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
/// ``uuidString`` and ``data`` have the form in which the UUID was written. A UUID that BlueZ reports has its shortest form.
///
/// It is a class, as on Apple's platforms, whose extensions have `convenience` initializers in many programs. It cannot be
/// changed, and is compared by its value.
public final class CBUUID: Sendable {
    /// The bytes of a UUID, and how many of them are written.
    fileprivate struct Form {
        let high: UInt64
        let low: UInt64
        /// 2, 4 or 16.
        let width: UInt8

        /// - Parameter width: `nil` for the shortest form.
        init(high: UInt64, low: UInt64, width: UInt8? = nil) {
            self.high = high
            self.low = low
            let isShort = low == CBUUID.baseLow && high & 0xFFFF_FFFF == CBUUID.baseHigh
            self.width = width ?? (isShort ? high >> 48 == 0 ? 2 : 4 : 16)
        }

        /// - Parameter width: 2 or 4; `nil` for the shorter form.
        init(_ assignedNumber: UInt32, width: UInt8? = nil) {
            self.init(high: UInt64(assignedNumber) << 32 | CBUUID.baseHigh, low: CBUUID.baseLow, width: width)
        }
    }

    private let form: Form

    /// The first eight bytes, as written from left to right.
    package var high: UInt64 { form.high }
    /// The last eight bytes.
    package var low: UInt64 { form.low }

    static let baseHigh: UInt64 = 0x0000_0000_0000_1000
    static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB

    private init(_ form: Form) { self.form = form }

    /// Creates the UUID of zeros, which no attribute has. Apple's class inherits this initializer from `NSObject`.
    public convenience init() { self.init(Form(high: 0, low: 0)) }

    package convenience init(high: UInt64, low: UInt64) { self.init(Form(high: high, low: low)) }

    /// Creates a UUID from text: 4, 8 or 32 hexadecimal digits in either case, the last with hyphens (8-4-4-4-12) or without;
    /// `0x` may precede them, as on Apple's platforms.
    ///
    /// Never traps. A text that is not a UUID is reported on standard error, with the text. The result is then a UUID that
    /// no device has: the same one for the same text, and another one for another text. `init(validating:)` returns `nil`
    /// instead.
    public convenience init(string: String) {
        self.init(
            Form(text: string)
                ?? Form(
                    misuse: "\"\(string)\" is not a Bluetooth UUID: write 4, 8 or 32 hexadecimal digits (8-4-4-4-12)."))
    }

    /// Creates a UUID from any text, in the forms of ``init(string:)``; `nil` if it is none.
    public convenience init?(validating text: String) {
        guard let form = Form(text: text) else { return nil }
        self.init(form)
    }

    /// Creates a UUID from its bytes as written, most significant first; 2, 4 or 16 of them.
    ///
    /// Never traps: any other count is treated as a text that is not a UUID is by ``init(string:)``.
    public convenience init(data: Data) {
        self.init(
            Form(data: data)
                ?? Form(
                    misuse: "The data \"\(data.hexadecimal)\" are not a Bluetooth UUID, which has 2, 4 or 16 bytes."))
    }

    /// Creates a UUID from its bytes as written, most significant first; `nil` unless there are 2, 4 or 16 of them.
    public convenience init?(validating data: Data) {
        guard let form = Form(data: data) else { return nil }
        self.init(form)
    }

    /// Creates the UUID from Foundation's type; its form is that of 128 bits.
    public convenience init(nsuuid: UUID) { self.init(Form(nsuuid: nsuuid)) }

    /// Creates the UUID that the Bluetooth SIG abbreviates to this number of 16 or 32 bits.
    public convenience init(_ assignedNumber: UInt32) { self.init(Form(assignedNumber)) }

    /// Creates a UUID from ASCII text in a buffer, such as a message of BlueZ, in its shortest form; `nil` if it is none.
    package convenience init?(utf8 text: UnsafeBufferPointer<UInt8>) {
        guard let form = Form(utf8: text) else { return nil }
        self.init(high: form.high, low: form.low)
    }

    /// The number of 16 or 32 bits that abbreviates this UUID, or `nil` if it is not on the Bluetooth Base UUID.
    public var assignedNumber: UInt32? {
        guard low == CBUUID.baseLow, high & 0xFFFF_FFFF == CBUUID.baseHigh else { return nil }
        return UInt32(truncatingIfNeeded: high >> 32)
    }

    /// The bytes of the form in which the UUID was written, most significant first: 2, 4 or 16.
    public var data: Data {
        switch form.width {
        case 2: Data((high >> 32).bigEndianBytes.suffix(2))
        case 4: Data((high >> 32).bigEndianBytes.suffix(4))
        default: Data(high.bigEndianBytes + low.bigEndianBytes)
        }
    }

    /// The same UUID as Foundation's type.
    public var nsuuid: UUID {
        let bytes = (high.bigEndian, low.bigEndian)
        return withUnsafeBytes(of: bytes) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    /// The form in which the UUID was written, in upper case: `"180D"`, `"0001180D"` or
    /// `"6E400001-B5A3-F393-E0A9-E50E24DCCA9E"`.
    public var uuidString: String { text(width: form.width) }

    /// The shortest form in upper case: `"180D"` also for a UUID that was written with all digits.
    package var shortestString: String { text(width: Form(high: high, low: low).width) }

    /// The 128 bit form in upper case, for a UUID of any length.
    public var fullUUIDString: String { nsuuid.uuidString }

    private func text(width: UInt8) -> String {
        guard width < 16 else { return fullUUIDString }
        return String(unsafeUninitializedCapacity: 8) { text in
            let count = 2 * Int(width)
            for index in 0..<count {
                text[index] = Hexadecimal.upperDigit(high >> 32, nibblesFromTheRight: count - 1 - index)
            }
            return count
        }
    }
}

extension CBUUID: Hashable {
    /// Whether both are forms of one UUID.
    public static func == (one: CBUUID, other: CBUUID) -> Bool { one.high == other.high && one.low == other.low }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(high)
        hasher.combine(low)
    }

    /// Whether `object` is a form of the same UUID, as `==` says. For programs that were written for Apple's class.
    public func isEqual(_ object: Any?) -> Bool { (object as? CBUUID) == self }

    /// Whether `a` precedes `b` in sorted tables; the order has no other meaning.
    package static func precedes(_ a: CBUUID, _ b: CBUUID) -> Bool {
        a.high != b.high ? a.high < b.high : a.low < b.low
    }
}

extension CBUUID: CustomStringConvertible, CustomDebugStringConvertible {
    /// The same as ``uuidString``.
    public var description: String { uuidString }

    /// The same as ``uuidString``.
    public var debugDescription: String { uuidString }
}

extension CBUUID.Form {
    /// Reports a value that the program must not pass, and creates the UUID of version 5 (RFC 9562, 5.5) whose name is the
    /// report.
    ///
    /// Apple's initializers raise an exception, "String … does not represent a valid UUID", which ends the program. Texts
    /// often come from a file or a user, also in programs for iOS.
    init(misuse report: String) {
        try? FileHandle.standardError.write(contentsOf: Data("[CoreBluetooth] API MISUSE: \(report)\n".utf8))
        self.init(nsuuid: UUID(nameHash: Array(report.utf8).withUnsafeBufferPointer { SHA1.hash($0) }))
    }

    init(nsuuid: UUID) {
        self = withUnsafeBytes(of: nsuuid.uuid) { bytes in
            Self(
                high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)), width: 16)
        }
    }

    init?(data: Data) {
        switch data.count {
        case 2, 4:
            self.init(data.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }, width: UInt8(data.count))
        case 16:
            self.init(
                high: data.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
                low: data.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }, width: 16)
        default:
            return nil
        }
    }

    init?(text: String) {
        var text = text
        let form = text.withUTF8 { text in
            let isPrefixed = text.count > 2 && text[0] == UInt8(ascii: "0") && text[1] | 0x20 == UInt8(ascii: "x")
            return Self(utf8: isPrefixed ? UnsafeBufferPointer(rebasing: text[2...]) : text)
        }
        guard let form else { return nil }
        self = form
    }

    init?(utf8 text: UnsafeBufferPointer<UInt8>) {
        switch text.count {
        case 4, 8:
            guard let number = Hexadecimal.value(text[...]) else { return nil }
            self.init(UInt32(truncatingIfNeeded: number), width: UInt8(text.count / 2))
        case 36:
            let hyphen = UInt8(ascii: "-")
            guard text[8] == hyphen, text[13] == hyphen, text[18] == hyphen, text[23] == hyphen,
                let a = Hexadecimal.value(text[0..<8]), let b = Hexadecimal.value(text[9..<13]),
                let c = Hexadecimal.value(text[14..<18]), let d = Hexadecimal.value(text[19..<23]),
                let e = Hexadecimal.value(text[24..<36])
            else { return nil }
            self.init(high: a << 32 | b << 16 | c, low: d << 48 | e, width: 16)
        case 32:
            guard let high = Hexadecimal.value(text[0..<16]), let low = Hexadecimal.value(text[16..<32]) else {
                return nil
            }
            self.init(high: high, low: low, width: 16)
        default:
            return nil
        }
    }
}

extension CBUUID: Codable {
    /// Reads the form that ``encode(to:)`` writes, or any other that `init(validating:)` takes.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let form = Form(text: text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "\"\(text)\" is not a UUID.")
        }
        self.init(form)
    }

    /// Writes ``uuidString``.
    public func encode(to encoder: any Encoder) throws {
        try uuidString.encode(to: encoder)
    }
}
