public import Foundation

/// The other spelling of ``SerDe`` in the documents.
public typealias Serde = SerDe

/// BlueCap's functions of `Data`.
///
/// Numbers are little endian, as on the air. BlueCap takes a value of any type and sends its memory; here the type is one
/// that has a transmitted form, so that a reference or a padding byte is never sent.
extension Data {
    /// Returns the bytes as pairs of lower case hexadecimal digits, with nothing between them: `"0a1b"`.
    public func hexStringValue() -> String { hexadecimal }

    /// Returns the bytes of a text, as `SerDe.serialize` does.
    public static func fromString(_ value: String, encoding: String.Encoding = .utf8) -> Data? {
        SerDe.serialize(value, encoding: encoding)
    }

    /// Returns the bytes of a value, as `SerDe.serialize` does.
    public static func serialize<Value: CharacteristicCodable>(_ value: Value) -> Data { value.serialize() }

    /// Returns the bytes of values, one after the other.
    public static func serialize<Value: Deserializable>(_ values: [Value]) -> Data { values.serialized() }

    /// Returns the bytes of two values, one after the other.
    public static func serialize<First: CharacteristicCodable, Second: CharacteristicCodable>(
        _ value1: First, value2: Second
    ) -> Data {
        joined(value1.serialize(), value2.serialize())
    }

    /// Returns the bytes of two arrays of values, one after the other.
    public static func serialize<First: Deserializable, Second: Deserializable>(
        _ value1: [First], value2: [Second]
    ) -> Data {
        joined(value1.serialized(), value2.serialized())
    }

    /// Returns the bytes of values, one after the other.
    public static func serializeArray<Value: Deserializable>(_ values: [Value]) -> Data { values.serialized() }

    /// Returns the bytes of two arrays of values, one after the other.
    public static func serializeArrays<First: Deserializable, Second: Deserializable>(
        _ values1: [First], values2: [Second]
    ) -> Data {
        serialize(values1, value2: values2)
    }
}

extension String {
    /// Returns the bytes of pairs of hexadecimal digits.
    ///
    /// A pair that is no number counts as 0, and a last digit without a partner is ignored, as in BlueCap.
    public func dataFromHexString() -> Data {
        let digits = Array(utf8)
        return Data(
            stride(from: 0, to: digits.count - 1, by: 2).map { start in
                UInt8(String(decoding: digits[start..<start + 2], as: UTF8.self), radix: 16) ?? 0
            })
    }
}

extension FixedWidthInteger where Self: Deserializable {
    /// Creates the number from a floating-point number, without its fraction.
    ///
    /// - Returns: `nil` if the number does not fit.
    public init?(doubleValue: Double) {
        guard doubleValue.isFinite else { return nil }
        self.init(exactly: doubleValue.rounded(.towardZero))
    }

    /// Creates the number from an unsigned number; `nil` if that does not fit.
    public init?(uintValue: UInt16) { self.init(exactly: uintValue) }

    /// Creates the number from a signed number; `nil` if that does not fit.
    public init?(intValue: Int16) { self.init(exactly: intValue) }
}

extension ServiceProfile {
    /// The profiles of the characteristics, by their UUIDs.
    public var characteristic: [CBUUID: CharacteristicProfile] {
        Dictionary(characteristics.map { ($0.uuid, $0) }) { first, _ in first }
    }

    /// Returns the profile of the characteristic with this UUID.
    ///
    /// - Returns: The profile that was added; if there is none, one that has only the UUID and the name "Unknown".
    public func characteristicProfile(withUUID uuid: CBUUID) -> CharacteristicProfile {
        characteristic(uuid) ?? CharacteristicProfile(uuid: uuid.uuidString)
    }
}
