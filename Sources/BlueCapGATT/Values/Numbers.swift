public import Foundation

extension Deserializable where Self: FixedWidthInteger & BitwiseCopyable {
    public static var size: Int { bitWidth / 8 }

    public static func deserialize(_ data: Data, start: Int) -> Self? {
        data.number(at: start, count: size).map { Self(truncatingIfNeeded: $0) }
    }

    public static func deserialize(_ data: Data) -> Self? { exactly(data) }

    public func serialize() -> Data {
        withUnsafeBytes(of: littleEndian) { Data($0) }
    }
}

extension UInt8: Deserializable {}
extension Int8: Deserializable {}
extension UInt16: Deserializable {}
extension Int16: Deserializable {}
extension UInt32: Deserializable {}
extension Int32: Deserializable {}
extension UInt64: Deserializable {}
extension Int64: Deserializable {}

extension Float: Deserializable {
    /// Four bytes: IEEE 754, single precision.
    public static var size: Int { UInt32.size }

    public static func deserialize(_ data: Data, start: Int) -> Float? {
        UInt32.deserialize(data, start: start).map { Float(bitPattern: $0) }
    }

    public static func deserialize(_ data: Data) -> Float? { exactly(data) }

    public func serialize() -> Data { bitPattern.serialize() }
}

extension Double: Deserializable {
    /// Eight bytes: IEEE 754, double precision.
    public static var size: Int { UInt64.size }

    public static func deserialize(_ data: Data, start: Int) -> Double? {
        UInt64.deserialize(data, start: start).map { Double(bitPattern: $0) }
    }

    public static func deserialize(_ data: Data) -> Double? { exactly(data) }

    public func serialize() -> Data { bitPattern.serialize() }
}

/// A number of three bytes without a sign, as GATT's `uint24`: 0 to 16 777 215.
public struct UInt24: Deserializable, Hashable {
    /// The number.
    public let value: UInt32

    /// The largest number that fits.
    public static let max = UInt24(truncating: .max)

    /// Returns `nil` for a number that does not fit in 24 bits.
    public init?(_ value: UInt32) {
        guard value <= 0xFF_FFFF else { return nil }
        self.value = value
    }

    private init(truncating value: UInt32) { self.value = value & 0xFF_FFFF }

    public static var size: Int { 3 }

    public static func deserialize(_ data: Data, start: Int) -> UInt24? {
        data.number(at: start, count: 3).map { UInt24(truncating: UInt32($0)) }
    }

    public static func deserialize(_ data: Data) -> UInt24? { exactly(data) }

    public func serialize() -> Data { value.serialize().prefix(3) }
}

/// A number of three bytes with a sign, as GATT's `sint24`: -8 388 608 to 8 388 607.
public struct Int24: Deserializable, Hashable {
    /// The number.
    public let value: Int32

    /// Returns `nil` for a number that does not fit in 24 bits.
    public init?(_ value: Int32) {
        guard (-0x80_0000...0x7F_FFFF).contains(value) else { return nil }
        self.value = value
    }

    public static var size: Int { 3 }

    public static func deserialize(_ data: Data, start: Int) -> Int24? {
        guard let bits = UInt24.deserialize(data, start: start) else { return nil }
        // Shifting up and down again extends the sign over the highest byte.
        return Int24(Int32(bitPattern: bits.value << 8) >> 8)
    }

    public static func deserialize(_ data: Data) -> Int24? { exactly(data) }

    public func serialize() -> Data { value.serialize().prefix(3) }
}

/// A transmitted number that is a measured quantity when divided by a constant.
public protocol ScalableNumber: Deserializable, Equatable {
    /// The exact number.
    var doubleValue: Double { get }
    /// Returns the nearest number, or `nil` if it does not fit or is not a number.
    init?(nearest value: Double)
}

extension ScalableNumber where Self: FixedWidthInteger {
    public var doubleValue: Double { Double(self) }
    public init?(nearest value: Double) { self.init(exactly: value.rounded()) }
}

extension UInt8: ScalableNumber {}
extension Int8: ScalableNumber {}
extension UInt16: ScalableNumber {}
extension Int16: ScalableNumber {}
extension UInt32: ScalableNumber {}
extension Int32: ScalableNumber {}

extension UInt24: ScalableNumber {
    public var doubleValue: Double { Double(value) }
    public init?(nearest value: Double) {
        guard let number = UInt32(nearest: value) else { return nil }
        self.init(number)
    }
}

extension Int24: ScalableNumber {
    public var doubleValue: Double { Double(value) }
    public init?(nearest value: Double) {
        guard let number = Int32(nearest: value) else { return nil }
        self.init(number)
    }
}

// An `Int` is what a program without a type in mind reads into.

@available(*, unavailable, message: "A transmitted number has a fixed width: write Int8, Int16, Int32 or Int64.")
extension Int: CharacteristicCodable {
    public static func deserialize(_ data: Data) -> Int? { nil }
    public func serialize() -> Data { Data() }
}

@available(*, unavailable, message: "A transmitted number has a fixed width: write UInt8, UInt16, UInt32 or UInt64.")
extension UInt: CharacteristicCodable {
    public static func deserialize(_ data: Data) -> UInt? { nil }
    public func serialize() -> Data { Data() }
}
