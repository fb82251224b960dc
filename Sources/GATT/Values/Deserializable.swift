public import Foundation

/// A value of a fixed number of bytes: the integers from 8 to 64 bits, ``Int24``, ``UInt24``, `Float` and `Double`.
///
/// Numbers are little endian on the air whatever the byte order of the machine (Core Specification, Vol 3, Part G,
/// 2.4). A type of your own gives ``size``, ``deserialize(_:start:)`` and ``CharacteristicCodable/serialize()``.
public protocol Deserializable: CharacteristicCodable {
    /// How many bytes each value takes, at least 1.
    static var size: Int { get }

    /// The value whose bytes begin `start` bytes after the first byte of the data, whatever follows it.
    ///
    /// `nil` when fewer than ``size`` bytes are left there, or `start` is negative.
    static func deserialize(_ data: Data, start: Int) -> Self?

    /// The values that stand one after another, from the first byte on.
    ///
    /// A rest that is shorter than a value is left out; data shorter than one value gives an empty array.
    static func deserialize(_ data: Data) -> [Self]
}

extension Deserializable {
    /// The value, if the data is exactly as long as one.
    public static func deserialize(_ data: Data) -> Self? {
        guard data.count == size else { return nil }
        return deserialize(data, start: 0)
    }

    public static func deserialize(_ data: Data) -> [Self] {
        var reader = ValueReader(data)
        var values: [Self] = []
        values.reserveCapacity(data.count / max(size, 1))
        while !reader.isAtEnd, let value: Self = reader.next() { values.append(value) }
        return values
    }
}

extension Array where Element: Deserializable {
    /// The bytes of the elements one after another.
    func serialized() -> Data {
        var data = Data(capacity: count * Swift.max(Element.size, 1))
        for element in self { data.append(element.serialize()) }
        return data
    }
}
