public import Foundation

// Int and UInt are left out: see Sendable.

extension Int8: Sendable, Receivable {}
extension Int16: Sendable, Receivable {}
extension Int32: Sendable, Receivable {}
extension Int64: Sendable, Receivable {}
extension UInt8: Sendable, Receivable {}
extension UInt16: Sendable, Receivable {}
extension UInt32: Sendable, Receivable {}
extension UInt64: Sendable, Receivable {}

extension FixedWidthInteger where Self: Sendable {
    /// Its bytes, the lowest first.
    public func toBluetoothData() -> Data {
        var littleEndian = self.littleEndian
        return Swift.withUnsafeBytes(of: &littleEndian) { Data($0) }
    }
}

extension FixedWidthInteger where Self: Receivable {
    /// From its bytes, the lowest first; bytes beyond its width are passed over.
    /// - Throws: ``BluejayError/dataOutOfBounds(start:length:count:)`` where there are fewer bytes than it has.
    public init(bluetoothData: Data) throws {
        let width = Self.bitWidth / 8
        guard bluetoothData.count >= width else {
            throw BluejayError.dataOutOfBounds(start: 0, length: width, count: bluetoothData.count)
        }
        // Byte by byte: the bytes lie wherever they lie, and a load from there may be one of an odd address.
        self = bluetoothData.prefix(width).reversed().reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
    }
}

extension Data: Sendable, Receivable {
    public init(bluetoothData: Data) { self = bluetoothData }

    public func toBluetoothData() -> Data { self }
}

extension String: Sendable, Receivable {
    /// From its bytes in UTF-8, all of them.
    /// - Throws: ``BluejayError/invalidText(_:)`` where they are no UTF-8.
    public init(bluetoothData: Data) throws {
        guard let text = String(validating: bluetoothData, as: UTF8.self) else {
            throw BluejayError.invalidText(bluetoothData)
        }
        self = text
    }

    public func toBluetoothData() -> Data { Data(utf8) }
}
