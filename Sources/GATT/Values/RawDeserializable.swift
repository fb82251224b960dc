public import Foundation

/// A value that is one number on the air, of which perhaps not every number is allowed.
///
/// An enumeration with a raw value has everything but the UUID already:
///
/// ```swift
/// enum Enabled: UInt8, RawDeserializable {
///     case no = 0
///     case yes = 1
///     static let uuid = "F000AA12-0451-4000-B000-000000000000"
/// }
/// ```
public protocol RawDeserializable: CharacteristicCodable {
    /// The number on the air.
    associatedtype RawType: Deserializable
    /// The UUID of the characteristic that holds such values, as `CBUUID(string:)` takes it.
    static var uuid: String { get }
    /// The number that stands for this value.
    var rawValue: RawType { get }
    /// The value that the number stands for, or `nil` when it stands for none.
    init?(rawValue: RawType)
}

extension RawDeserializable {
    public static func deserialize(_ data: Data) -> Self? {
        let rawValue: RawType? = RawType.deserialize(data)
        return rawValue.flatMap { Self(rawValue: $0) }
    }

    public func serialize() -> Data { rawValue.serialize() }
}

/// A value that is a fixed count of numbers of one type on the air, such as the three axes of an accelerometer.
public protocol RawArrayDeserializable: CharacteristicCodable {
    /// The type of each number on the air.
    associatedtype RawType: Deserializable
    /// The UUID of the characteristic that holds such values, as `CBUUID(string:)` takes it.
    static var uuid: String { get }
    /// How many numbers there are: elements, not bytes.
    static var size: Int { get }
    /// The numbers that stand for this value, ``size`` of them.
    var rawValue: [RawType] { get }
    /// The value that the numbers stand for, or `nil` when they stand for none.
    init?(rawValue: [RawType])
}

extension RawArrayDeserializable {
    public static func deserialize(_ data: Data) -> Self? {
        var reader = ValueReader(data)
        guard let rawValue: [RawType] = reader.next(count: size), reader.isAtEnd else { return nil }
        return Self(rawValue: rawValue)
    }

    public func serialize() -> Data { rawValue.serialized() }
}
