public import Foundation

extension Deserializable where Self: FixedWidthInteger & BitwiseCopyable {
    public static var size: Int { bitWidth / 8 }

    public static func deserialize(_ data: Data, start: Int) -> Self? {
        guard start >= 0, start <= data.count - size else { return nil }
        return data.withUnsafeBytes { bytes in
            Self(littleEndian: bytes.loadUnaligned(fromByteOffset: start, as: Self.self))
        }
    }

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

    public func serialize() -> Data { bitPattern.serialize() }
}

extension Double: Deserializable {
    /// Eight bytes: IEEE 754, double precision.
    public static var size: Int { UInt64.size }

    public static func deserialize(_ data: Data, start: Int) -> Double? {
        UInt64.deserialize(data, start: start).map { Double(bitPattern: $0) }
    }

    public func serialize() -> Data { bitPattern.serialize() }
}
