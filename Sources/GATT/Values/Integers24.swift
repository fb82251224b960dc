public import Foundation

/// A number of three bytes without a sign, as GATT's `uint24`: 0 to 16 777 215.
public struct UInt24: Deserializable, Hashable {
    /// The number.
    public let value: UInt32

    /// The largest number that fits.
    public static let max = UInt24(truncating: .max)

    /// `nil` for a number that does not fit in 24 bits.
    public init?(_ value: UInt32) {
        guard value <= 0xFF_FFFF else { return nil }
        self.value = value
    }

    private init(truncating value: UInt32) { self.value = value & 0xFF_FFFF }

    public static var size: Int { 3 }

    public static func deserialize(_ data: Data, start: Int) -> UInt24? {
        guard start >= 0, start <= data.count - 3 else { return nil }
        let first = data.startIndex + start
        return UInt24(
            truncating: UInt32(data[first]) | UInt32(data[first + 1]) << 8 | UInt32(data[first + 2]) << 16)
    }

    public func serialize() -> Data { value.serialize().prefix(3) }
}

/// A number of three bytes with a sign, as GATT's `sint24`: -8 388 608 to 8 388 607.
public struct Int24: Deserializable, Hashable {
    /// The number.
    public let value: Int32

    /// `nil` for a number that does not fit in 24 bits.
    public init?(_ value: Int32) {
        guard (-0x80_0000...0x7F_FFFF).contains(value) else { return nil }
        self.value = value
    }

    public static var size: Int { 3 }

    public static func deserialize(_ data: Data, start: Int) -> Int24? {
        guard let bits = UInt24.deserialize(data, start: start) else { return nil }
        // Up to the top and down again, so that the sign is spread over the highest byte.
        return Int24(Int32(bitPattern: bits.value << 8) >> 8)
    }

    public func serialize() -> Data { value.serialize().prefix(3) }
}
