import Foundation

/// Reads values one after another, each only when all its bytes are there.
///
/// A count of bytes is never computed from counts that a caller gave, so nothing can overflow.
struct ValueReader {
    private let data: Data
    /// How many bytes were read.
    private var position = 0

    init(_ data: Data) { self.data = data }

    /// Whether every byte was read.
    var isAtEnd: Bool { position == data.count }

    /// The next value, or `nil` (and nothing is read) when too few bytes are left.
    mutating func next<Value: Deserializable>(_ type: Value.Type = Value.self) -> Value? {
        guard Value.size > 0, let value = Value.deserialize(data, start: position) else { return nil }
        position += Value.size
        return value
    }

    /// The next `count` values, or `nil` when there are fewer.
    mutating func next<Value: Deserializable>(count: Int) -> [Value]? {
        var values: [Value] = []
        while values.count < count {
            guard let value: Value = next() else { return nil }
            values.append(value)
        }
        return values
    }

    /// The bytes that are left; afterwards none is.
    mutating func rest() -> Data {
        defer { position = data.count }
        return Data(data.dropFirst(position))
    }
}
