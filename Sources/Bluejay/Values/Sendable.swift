public import Foundation

/// A value that can be sent to a peripheral as bytes.
///
/// ```swift
/// struct Colour: Sendable {
///     var red: UInt8, green: UInt8, blue: UInt8
///
///     func toBluetoothData() -> Data { Bluejay.combine(sendables: [red, green, blue]) }
/// }
/// ```
///
/// The fixed-width integers, `Data` and `String` conform: integers with their lowest byte first, as in Bluetooth
/// (`bigEndian` of an integer sends its highest byte first), strings in UTF-8 without a length or a terminator. `Int` and
/// `UInt` do not conform: their width depends on the machine, and a peripheral expects one width.
///
/// ## Swift's own Sendable
/// In a file that imports Bluejay the name `Sendable` is this protocol, as in the document. Swift's protocol of that name,
/// for values that may be used on several threads, is `Swift.Sendable` there; `@Sendable` before a closure is Swift's
/// everywhere.
public protocol Sendable {
    /// Returns the bytes, in the order in which they are sent.
    func toBluetoothData() -> Data
}

/// A value that can be created from the bytes that a peripheral sends.
///
/// ```swift
/// struct BatteryLevel: Receivable {
///     let percent: UInt8
///
///     init(bluetoothData: Data) throws { percent = try bluetoothData.extract(start: 0, length: 1) }
/// }
/// ```
///
/// The fixed-width integers, `Data` and `String` conform; see ``Sendable`` for their bytes.
public protocol Receivable {
    /// Creates the value. An error that is thrown here is the failure of the read or listen that received the bytes.
    init(bluetoothData: Data) throws
}

extension Data {
    /// Returns the value of `length` bytes, after the first `start`; a slice counts from its own first byte.
    ///
    /// - Throws: ``BluejayError/dataOutOfBounds(start:length:count:)`` if there are fewer bytes or an argument is negative,
    ///   and the errors of `R`: an integer that is wider than `length` throws the same.
    public func extract<R: Receivable>(start: Int, length: Int) throws -> R {
        guard start >= 0, length >= 0, start <= count, length <= count - start else {
            throw BluejayError.dataOutOfBounds(start: start, length: length, count: count)
        }
        let first = index(startIndex, offsetBy: start)
        return try R(bluetoothData: Data(self[first..<index(first, offsetBy: length)]))
    }
}

// Int and UInt do not conform: see Sendable.

extension Int8: Sendable, Receivable {}
extension Int16: Sendable, Receivable {}
extension Int32: Sendable, Receivable {}
extension Int64: Sendable, Receivable {}
extension UInt8: Sendable, Receivable {}
extension UInt16: Sendable, Receivable {}
extension UInt32: Sendable, Receivable {}
extension UInt64: Sendable, Receivable {}

extension FixedWidthInteger where Self: Sendable {
    /// Returns the bytes, the lowest first.
    public func toBluetoothData() -> Data {
        var littleEndian = self.littleEndian
        return Swift.withUnsafeBytes(of: &littleEndian) { Data($0) }
    }
}

extension FixedWidthInteger where Self: Receivable {
    /// Creates the integer from its bytes, the lowest first; bytes beyond its width are ignored.
    /// - Throws: ``BluejayError/dataOutOfBounds(start:length:count:)`` if there are fewer bytes than its width.
    public init(bluetoothData: Data) throws {
        let width = Self.bitWidth / 8
        guard bluetoothData.count >= width else {
            throw BluejayError.dataOutOfBounds(start: 0, length: width, count: bluetoothData.count)
        }
        // Byte by byte, because the bytes may be unaligned.
        self = bluetoothData.prefix(width).reversed().reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
    }
}

extension Data: Sendable, Receivable {
    public init(bluetoothData: Data) { self = bluetoothData }

    public func toBluetoothData() -> Data { self }
}

extension String: Sendable, Receivable {
    /// Creates the text from all bytes in UTF-8.
    /// - Throws: ``BluejayError/invalidText(_:)`` if they are no UTF-8.
    public init(bluetoothData: Data) throws {
        guard let text = String(validating: bluetoothData, as: UTF8.self) else {
            throw BluejayError.invalidText(bluetoothData)
        }
        self = text
    }

    public func toBluetoothData() -> Data { Data(utf8) }
}
