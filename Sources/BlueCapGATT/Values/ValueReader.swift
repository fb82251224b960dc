public import Foundation

/// Reads values one after another, each only if all its bytes are present.
///
/// A count of bytes is never computed from counts that a caller gave, so nothing can overflow.
package struct ValueReader {
    /// The bytes do not hold the value that was to be read.
    private struct Malformed: Error {}

    private let data: Data
    /// How many bytes were read.
    private var position = 0

    fileprivate init(_ data: Data) { self.data = data }

    /// Returns what `body` reads, or `nil` if bytes are missing, or if `body` returns `nil`. Bytes that are left over are
    /// ignored.
    package static func read<Value>(_ data: Data, _ body: (inout ValueReader) throws -> Value?) -> Value? {
        var reader = ValueReader(data)
        return try? body(&reader)
    }

    /// Returns the next value.
    package mutating func next<Value: Deserializable>() throws -> Value {
        guard let value: Value = nextIfPresent() else { throw Malformed() }
        return value
    }

    /// Returns the next value if a flag says that there is one, else `nil`.
    package mutating func next<Value: Deserializable>(if isPresent: Bool) throws -> Value? {
        isPresent ? try next() as Value : nil
    }

    /// Returns the next value if a flag says that there is one, else `nil`; `nil` also if its bytes are not allowed, so that
    /// the other fields can be read.
    package mutating func nextIfAllowed<Value: Deserializable>(if isPresent: Bool) throws -> Value? {
        guard isPresent else { return nil }
        guard Value.size > 0, Value.size <= data.count - position else { throw Malformed() }
        defer { position += Value.size }
        return Value.deserialize(data, start: position)
    }

    /// Returns the next `count` values.
    package mutating func next<Value: Deserializable>(count: Int) throws -> [Value] {
        var values: [Value] = []
        while values.count < count { values.append(try next()) }
        return values
    }

    /// Returns all values that follow.
    package mutating func rest<Value: Deserializable>() -> [Value] {
        var values: [Value] = []
        while let value: Value = nextIfPresent() { values.append(value) }
        return values
    }

    private mutating func nextIfPresent<Value: Deserializable>() -> Value? {
        guard Value.size > 0, position < data.count, let value = Value.deserialize(data, start: position) else {
            return nil
        }
        position += Value.size
        return value
    }
}

extension Deserializable {
    public static func deserialize(_ data: Data) -> [Self] {
        var reader = ValueReader(data)
        return reader.rest()
    }
}
