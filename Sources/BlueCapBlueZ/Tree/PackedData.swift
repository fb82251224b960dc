package import Foundation
package import BlueCapGATT

/// A key of the small tables that advertisements carry.
package protocol PackedKey: Hashable, Sendable {
    /// How many bytes the key takes.
    static var packedSize: Int { get }
    init(packed bytes: UnsafeRawBufferPointer)
    func pack(into bytes: inout [UInt8])
}

/// Byte strings by key, in one allocation: manufacturer data by company, service data by service.
///
/// A device has one or two of each. A dictionary of arrays would take half a kilobyte for twenty bytes of data, and five
/// allocations at each report; this takes one, and none when the data is replaced by other data of the same length.
package struct PackedData<Key: PackedKey>: Sendable {
    // One entry after the other: the key, the length as two bytes, the data.
    private var bytes: [UInt8] = []

    package init() {}

    package init(_ dictionary: [Key: some ContiguousBytes]) {
        for (key, value) in dictionary {
            value.withUnsafeBytes { append(key, $0.bindMemory(to: UInt8.self)) }
        }
    }

    package var isEmpty: Bool { bytes.isEmpty }

    /// Appends an entry. A value longer than 65 535 bytes, which no advertisement can hold, is left out.
    package mutating func append(_ key: Key, _ value: UnsafeBufferPointer<UInt8>) {
        guard let length = UInt16(exactly: value.count) else { return }
        key.pack(into: &bytes)
        bytes.append(UInt8(truncatingIfNeeded: length))
        bytes.append(UInt8(length >> 8))
        bytes.append(contentsOf: value)
    }

    /// Empties the table and keeps its memory, which the next sighting needs again.
    package mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Calls `body` with each entry, in the order in which BlueZ gave them. The data is valid during the call only.
    package func forEach(_ body: (Key, UnsafeRawBufferPointer) -> Void) {
        bytes.withUnsafeBytes { all in
            var position = 0
            while position < all.count {
                let start = position + Key.packedSize + 2
                let length = Int(all[start - 2]) | Int(all[start - 1]) << 8
                body(
                    Key(packed: UnsafeRawBufferPointer(rebasing: all[position..<start - 2])),
                    UnsafeRawBufferPointer(rebasing: all[start..<start + length]))
                position = start + length
            }
        }
    }

    /// The entries as a dictionary.
    package var dictionary: [Key: [UInt8]] {
        var dictionary: [Key: [UInt8]] = [:]
        forEach { dictionary[$0] = Array($1) }
        return dictionary
    }

    package subscript(key: Key) -> [UInt8]? {
        var found: [UInt8]?
        forEach { if $0 == key { found = Array($1) } }
        return found
    }
}

extension PackedData: Equatable {
    /// Whether both have the same entries, in any order.
    package static func == (left: PackedData, right: PackedData) -> Bool {
        left.bytes == right.bytes || left.bytes.count == right.bytes.count && left.dictionary == right.dictionary
    }
}

extension UInt8: PackedKey {
    package static var packedSize: Int { 1 }
    package init(packed bytes: UnsafeRawBufferPointer) { self = bytes[0] }
    package func pack(into bytes: inout [UInt8]) { bytes.append(self) }
}

extension UInt16: PackedKey {
    package static var packedSize: Int { 2 }
    package init(packed bytes: UnsafeRawBufferPointer) { self = UInt16(bytes[0]) | UInt16(bytes[1]) << 8 }
    package func pack(into bytes: inout [UInt8]) {
        bytes.append(UInt8(truncatingIfNeeded: self))
        bytes.append(UInt8(self >> 8))
    }
}

extension CBUUID: PackedKey {
    package static var packedSize: Int { 16 }
    package convenience init(packed bytes: UnsafeRawBufferPointer) {
        self.init(
            high: bytes.loadUnaligned(as: UInt64.self),
            low: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    package func pack(into bytes: inout [UInt8]) {
        withUnsafeBytes(of: high) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: low) { bytes.append(contentsOf: $0) }
    }
}
