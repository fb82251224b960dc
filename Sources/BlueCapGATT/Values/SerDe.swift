public import Foundation

/// Converts values to bytes and bytes to values; the context determines the type.
///
/// ```swift
/// let bytes = SerDe.serialize(UInt16(0x1234))            // 34 12
/// let number: UInt16? = SerDe.deserialize(bytes)         // 0x1234
/// let numbers: [UInt8] = SerDe.deserialize(bytes)        // [0x34, 0x12]
/// let text: String? = SerDe.deserialize(Data("Hi".utf8)) // "Hi"
/// ```
public enum SerDe {
    /// Returns the bytes of a text, by default in UTF-8 as GATT's `utf8s`, or `nil` if the encoding cannot represent one of
    /// its characters.
    public static func serialize(_ value: String, encoding: String.Encoding = .utf8) -> Data? {
        value.data(using: encoding)
    }

    /// Returns the text of the bytes, or `nil` if they are not valid in the encoding.
    public static func deserialize(_ data: Data, encoding: String.Encoding = .utf8) -> String? {
        String(data: data, encoding: encoding)
    }

    /// Returns the bytes of a value.
    public static func serialize<Value: CharacteristicCodable>(_ value: Value) -> Data { value.serialize() }

    /// Returns the value of the bytes, or `nil` if they are too few or not allowed, as ``CharacteristicCodable`` says.
    public static func deserialize<Value: CharacteristicCodable>(_ data: Data) -> Value? { Value.deserialize(data) }

    /// Returns the bytes of values, one after another.
    public static func serialize<Value: Deserializable>(_ values: [Value]) -> Data { values.serialized() }

    /// Returns the consecutive values; a rest that is shorter than a value is ignored.
    public static func deserialize<Value: Deserializable>(_ data: Data) -> [Value] { Value.deserialize(data) }
}
