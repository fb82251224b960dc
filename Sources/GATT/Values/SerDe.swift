public import Foundation

/// Turns values into bytes and bytes into values; what type is meant, the context says.
///
/// ```swift
/// let bytes = SerDe.serialize(UInt16(0x1234))            // 34 12
/// let number: UInt16? = SerDe.deserialize(bytes)         // 0x1234
/// let numbers: [UInt8] = SerDe.deserialize(bytes)        // [0x34, 0x12]
/// let text: String? = SerDe.deserialize(Data("Hi".utf8)) // "Hi"
/// ```
public enum SerDe {
    /// The bytes of a text, or `nil` when the encoding has no form for one of its characters.
    ///
    /// - Parameters:
    ///   - value: the text.
    ///   - encoding: UTF-8 unless given, as GATT's `utf8s`.
    public static func serialize(_ value: String, encoding: String.Encoding = .utf8) -> Data? {
        value.data(using: encoding)
    }

    /// The text that the bytes spell, or `nil` when they are not valid in the encoding.
    ///
    /// - Parameters:
    ///   - data: the bytes.
    ///   - encoding: UTF-8 unless given, as GATT's `utf8s`.
    public static func deserialize(_ data: Data, encoding: String.Encoding = .utf8) -> String? {
        String(data: data, encoding: encoding)
    }

    /// The bytes of a value.
    public static func serialize<Value: CharacteristicCodable>(_ value: Value) -> Data { value.serialize() }

    /// The value that the bytes spell, or `nil` when they are too few, too many or not allowed.
    public static func deserialize<Value: CharacteristicCodable>(_ data: Data) -> Value? { Value.deserialize(data) }

    /// The bytes of values one after another.
    public static func serialize<Value: Deserializable>(_ values: [Value]) -> Data { values.serialized() }

    /// The values that stand one after another; a rest that is shorter than a value is left out.
    public static func deserialize<Value: Deserializable>(_ data: Data) -> [Value] { Value.deserialize(data) }
}

/// ``SerDe`` as some of the documents spell it.
public typealias Serde = SerDe
