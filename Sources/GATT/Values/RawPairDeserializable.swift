public import Foundation

/// A value that is two numbers on the air, of two types that may differ.
public protocol RawPairDeserializable: CharacteristicCodable {
    /// The type of the first number.
    associatedtype RawType1: Deserializable
    /// The type of the second number.
    associatedtype RawType2: Deserializable
    /// The UUID of the characteristic that holds such values, as `CBUUID(string:)` takes it.
    static var uuid: String { get }
    /// The number that comes first.
    var rawValue1: RawType1 { get }
    /// The number that follows it.
    var rawValue2: RawType2 { get }
    /// The value that the two numbers stand for, or `nil` when they stand for none.
    init?(rawValue1: RawType1, rawValue2: RawType2)
}

extension RawPairDeserializable {
    public static func deserialize(_ data: Data) -> Self? {
        var reader = ValueReader(data)
        guard let rawValue1: RawType1 = reader.next(), let rawValue2: RawType2 = reader.next(), reader.isAtEnd else {
            return nil
        }
        return Self(rawValue1: rawValue1, rawValue2: rawValue2)
    }

    public func serialize() -> Data { rawValue1.serialize() + rawValue2.serialize() }
}

/// A value that is two runs of numbers on the air: so many of one type, then so many of another.
///
/// The counts may differ, and so may the types; each number takes as many bytes as its type has.
public protocol RawArrayPairDeserializable: CharacteristicCodable {
    /// The type of each number of the first run.
    associatedtype RawType1: Deserializable
    /// The type of each number of the second run.
    associatedtype RawType2: Deserializable
    /// The UUID of the characteristic that holds such values, as `CBUUID(string:)` takes it.
    static var uuid: String { get }
    /// How many numbers are in the first run: elements, not bytes.
    static var size1: Int { get }
    /// How many numbers are in the second run: elements, not bytes.
    static var size2: Int { get }
    /// The numbers that come first, ``size1`` of them.
    var rawValue1: [RawType1] { get }
    /// The numbers that follow, ``size2`` of them.
    var rawValue2: [RawType2] { get }
    /// The value that the numbers stand for, or `nil` when they stand for none.
    init?(rawValue1: [RawType1], rawValue2: [RawType2])
}

extension RawArrayPairDeserializable {
    public static func deserialize(_ data: Data) -> Self? {
        var reader = ValueReader(data)
        guard let rawValue1: [RawType1] = reader.next(count: size1),
            let rawValue2: [RawType2] = reader.next(count: size2), reader.isAtEnd
        else { return nil }
        return Self(rawValue1: rawValue1, rawValue2: rawValue2)
    }

    public func serialize() -> Data { rawValue1.serialized() + rawValue2.serialized() }
}
