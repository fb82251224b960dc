public import Foundation

/// A value that can stand in a characteristic: it can be written as bytes and read back from them.
///
/// This is what reading, writing, updating and profiles work with. The documented families ``Deserializable``,
/// ``RawDeserializable``, ``RawArrayDeserializable``, ``RawPairDeserializable`` and ``RawArrayPairDeserializable``
/// refine it and bring both methods along. Conform to it directly when a value has a form of its own, such as flags
/// that say which fields follow.
///
/// For each value `T.deserialize(value.serialize())` is that value again.
public protocol CharacteristicCodable: Sendable {
    /// The value that the bytes spell, or `nil` when they are too few, too many or not allowed. Never traps.
    static func deserialize(_ data: Data) -> Self?

    /// The bytes of the value as they go over the air, the least significant byte of each number first.
    func serialize() -> Data
}
