public import Foundation

/// A value of a characteristic, which is written as bytes and read back from them.
///
/// Reading, writing, updating and profiles work with such values. The documented families ``Deserializable``,
/// ``RawDeserializable``, ``RawArrayDeserializable``, ``RawPairDeserializable`` and ``RawArrayPairDeserializable``
/// refine this protocol and implement both methods. Conform to it directly if a value has a form of its own, such as
/// flags that announce optional fields.
///
/// For each value `T.deserialize(value.serialize())` is that value again.
public protocol CharacteristicCodable: Sendable {
    /// Returns the value of the bytes, or `nil` if they are too few or not allowed. Never traps.
    ///
    /// Peripherals add fields to values, so bytes that follow the fields of a value are ignored. A number of a fixed width
    /// (`UInt16`, `Float`, and what ``RawDeserializable`` makes of one) has no fields: it is `nil` if there are more bytes.
    static func deserialize(_ data: Data) -> Self?

    /// Returns the bytes of the value as they are transmitted, the least significant byte of each number first.
    func serialize() -> Data
}

/// A value of a fixed number of bytes: the integers from 8 to 64 bits, ``Int24``, ``UInt24``, `Float` and `Double`.
///
/// Transmitted numbers are little endian whatever the byte order of the machine (Core Specification, Vol 3, Part G,
/// 2.4). A type of your own implements ``size``, ``deserialize(_:start:)`` and ``CharacteristicCodable/serialize()``.
public protocol Deserializable: CharacteristicCodable {
    /// How many bytes each value takes, at least 1.
    static var size: Int { get }

    /// Returns the value whose bytes begin `start` bytes after the first byte of the data, whatever follows it.
    ///
    /// Returns `nil` if fewer than ``size`` bytes are left there, or `start` is negative.
    static func deserialize(_ data: Data, start: Int) -> Self?

    /// Returns the consecutive values from the first byte on.
    ///
    /// A rest that is shorter than a value is ignored; data shorter than one value gives an empty array.
    static func deserialize(_ data: Data) -> [Self]
}

extension Deserializable {
    /// Returns the value that the data begins with.
    public static func deserialize(_ data: Data) -> Self? { deserialize(data, start: 0) }

    /// Returns the number if the data is exactly as long as one.
    static func exactly(_ data: Data) -> Self? {
        guard data.count == size else { return nil }
        return deserialize(data, start: 0)
    }
}

extension Array where Element: Deserializable {
    /// Returns the bytes of the elements, one after another.
    package func serialized() -> Data {
        var data = Data(capacity: count * Swift.max(Element.size, 1))
        for element in self { data.append(element.serialize()) }
        return data
    }
}

extension Data {
    /// Returns the bytes of the parts that there are, one after another.
    package static func joined(_ parts: Data?...) -> Data {
        var data = Data()
        for case let part? in parts { data.append(part) }
        return data
    }

    /// Returns the little-endian number of `count` bytes, at most 16; `nil` if they are not all there.
    ///
    /// Not generic, so that the numbers of all sizes share its code.
    @inline(never) func number(at start: Int, count: Int) -> UInt128? {
        precondition((0...16).contains(count), "A number has 0 to 16 bytes, not \(count).")
        guard start >= 0, start <= self.count - count else { return nil }
        var number: UInt128 = 0
        Swift.withUnsafeMutableBytes(of: &number) { target in
            self.withUnsafeBytes {
                target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + count]))
            }
        }
        return UInt128(littleEndian: number)
    }
}
