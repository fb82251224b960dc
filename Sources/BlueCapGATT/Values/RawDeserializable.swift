public import Foundation

/// A value that is transmitted as one number, of which perhaps not every number is allowed.
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
    /// The type of the number.
    associatedtype RawType: Deserializable
    /// The UUID of the characteristic that holds such values, as `CBUUID(string:)` accepts it.
    static var uuid: String { get }
    /// The number of this value.
    var rawValue: RawType { get }
    /// Creates the value of a number; `nil` if the number has none.
    init?(rawValue: RawType)
}

/// A value that is transmitted as a fixed count of numbers of one type, such as the three axes of an accelerometer.
public protocol RawArrayDeserializable: CharacteristicCodable {
    /// The type of each number.
    associatedtype RawType: Deserializable
    /// The UUID of the characteristic that holds such values, as `CBUUID(string:)` accepts it.
    static var uuid: String { get }
    /// How many numbers there are: elements, not bytes.
    static var size: Int { get }
    /// The numbers of this value, ``size`` of them.
    var rawValue: [RawType] { get }
    /// Creates the value of the numbers; `nil` if they have none.
    init?(rawValue: [RawType])
}

/// A value that is transmitted as two numbers, of two types that may differ.
public protocol RawPairDeserializable: CharacteristicCodable {
    /// The type of the first number.
    associatedtype RawType1: Deserializable
    /// The type of the second number.
    associatedtype RawType2: Deserializable
    /// The UUID of the characteristic that holds such values, as `CBUUID(string:)` accepts it.
    static var uuid: String { get }
    /// The number that comes first.
    var rawValue1: RawType1 { get }
    /// The number that follows it.
    var rawValue2: RawType2 { get }
    /// Creates the value of the two numbers; `nil` if they have none.
    init?(rawValue1: RawType1, rawValue2: RawType2)
}

/// A value that is transmitted as two sequences of numbers: a count of one type, then a count of another.
///
/// The counts may differ, and so may the types; each number takes as many bytes as its type has.
public protocol RawArrayPairDeserializable: CharacteristicCodable {
    /// The type of each number of the first sequence.
    associatedtype RawType1: Deserializable
    /// The type of each number of the second sequence.
    associatedtype RawType2: Deserializable
    /// The UUID of the characteristic that holds such values, as `CBUUID(string:)` accepts it.
    static var uuid: String { get }
    /// How many numbers are in the first sequence: elements, not bytes.
    static var size1: Int { get }
    /// How many numbers are in the second sequence: elements, not bytes.
    static var size2: Int { get }
    /// The numbers that come first, ``size1`` of them.
    var rawValue1: [RawType1] { get }
    /// The numbers that follow, ``size2`` of them.
    var rawValue2: [RawType2] { get }
    /// Creates the value of the numbers; `nil` if they have none.
    init?(rawValue1: [RawType1], rawValue2: [RawType2])
}

extension RawDeserializable {
    public static func deserialize(_ data: Data) -> Self? {
        let number: RawType? = RawType.deserialize(data)
        return number.flatMap { Self(rawValue: $0) }
    }

    public func serialize() -> Data { rawValue.serialize() }
}

extension RawArrayDeserializable {
    public static func deserialize(_ data: Data) -> Self? {
        ValueReader.read(data) { Self(rawValue: try $0.next(count: size)) }
    }

    public func serialize() -> Data { rawValue.serialized() }
}

extension RawPairDeserializable {
    public static func deserialize(_ data: Data) -> Self? {
        ValueReader.read(data) { Self(rawValue1: try $0.next(), rawValue2: try $0.next()) }
    }

    public func serialize() -> Data { .joined(rawValue1.serialize(), rawValue2.serialize()) }
}

extension RawArrayPairDeserializable {
    public static func deserialize(_ data: Data) -> Self? {
        ValueReader.read(data) { Self(rawValue1: try $0.next(count: size1), rawValue2: try $0.next(count: size2)) }
    }

    public func serialize() -> Data { .joined(rawValue1.serialized(), rawValue2.serialized()) }
}
