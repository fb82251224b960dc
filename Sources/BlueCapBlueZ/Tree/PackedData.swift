package import Foundation
package import BlueCapGATT

/// A key of the small tables that advertisements carry.
package protocol PackedKey: Hashable, Sendable {
    /// How many bytes the key takes.
    static var packedSize: Int { get }
    init(packed bytes: UnsafeRawBufferPointer)
    func pack(into bytes: UnsafeMutableRawPointer)
}

/// Byte strings by key, in one allocation: manufacturer data by company, service data by service.
///
/// A device has one or two of each. A dictionary of arrays would take half a kilobyte for twenty bytes of data, and five
/// allocations at each report; this takes one, and none when the data is replaced by other data of the same length.
///
/// Unchecked `Sendable`: the bytes are changed only while there is one reference to them.
package struct PackedData<Key: PackedKey>: @unchecked Sendable {
    /// The number of bytes, and the bytes: one entry after the other, with the key, the length as two bytes, and the data.
    /// It takes 14 bytes less than an array.
    private typealias Storage = ManagedBuffer<UInt16, UInt8>
    private var storage: Storage?

    package init() {}

    package init(_ dictionary: [Key: some ContiguousBytes]) {
        for (key, value) in dictionary {
            value.withUnsafeBytes { append(key, $0.bindMemory(to: UInt8.self)) }
        }
    }

    package var isEmpty: Bool { count == 0 }

    private var count: Int { storage.map { Int($0.header) } ?? 0 }

    /// Appends an entry, unless all together would take more than 65,535 bytes, which no advertisement has.
    package mutating func append(_ key: Key, _ value: UnsafeBufferPointer<UInt8>) {
        let start = count
        let end = start + Key.packedSize + 2 + value.count
        guard let total = UInt16(exactly: end) else { return }
        let storage = reserve(end, keeping: start)
        storage.withUnsafeMutablePointers { header, bytes in
            let place = UnsafeMutableRawPointer(bytes + start)
            key.pack(into: place)
            place.storeBytes(of: UInt16(value.count).littleEndian, toByteOffset: Key.packedSize, as: UInt16.self)
            let room = UnsafeMutableRawBufferPointer(start: place + Key.packedSize + 2, count: value.count)
            room.copyMemory(from: UnsafeRawBufferPointer(value))
            header.pointee = total
        }
    }

    /// Returns storage for `size` bytes to which there is one reference, with the first `count` bytes of the present one.
    private mutating func reserve(_ size: Int, keeping count: Int) -> Storage {
        if isKnownUniquelyReferenced(&storage), let storage, storage.capacity >= size { return storage }
        // A table with several entries grows by doubling.
        let new = Storage.create(minimumCapacity: max(size, 2 * count)) { _ in 0 }
        storage?.withUnsafeMutablePointerToElements { old in
            new.withUnsafeMutablePointerToElements { $0.initialize(from: old, count: count) }
        }
        storage = new
        return new
    }

    /// Empties the table and keeps its memory, which the next sighting needs again.
    package mutating func removeAll() {
        if isKnownUniquelyReferenced(&storage) { storage?.header = 0 } else { storage = nil }
    }

    private func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        guard let storage else { return body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        return storage.withUnsafeMutablePointers { body(UnsafeRawBufferPointer(start: $1, count: Int($0.pointee))) }
    }

    /// Calls `body` with each entry, in the order in which BlueZ gave them. The data is valid during the call only.
    package func forEach(_ body: (Key, UnsafeRawBufferPointer) -> Void) {
        withBytes { all in
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
        guard left.count == right.count else { return false }
        let isSame = left.withBytes { left in right.withBytes { left.elementsEqual($0) } }
        return isSame || left.dictionary == right.dictionary
    }
}

extension UInt8: PackedKey {
    package static var packedSize: Int { 1 }
    package init(packed bytes: UnsafeRawBufferPointer) { self = bytes[0] }
    package func pack(into bytes: UnsafeMutableRawPointer) { bytes.storeBytes(of: self, as: UInt8.self) }
}

extension UInt16: PackedKey {
    package static var packedSize: Int { 2 }
    package init(packed bytes: UnsafeRawBufferPointer) { self = UInt16(bytes[0]) | UInt16(bytes[1]) << 8 }
    package func pack(into bytes: UnsafeMutableRawPointer) { bytes.storeBytes(of: littleEndian, as: UInt16.self) }
}

extension CBUUID: PackedKey {
    package static var packedSize: Int { 16 }
    package convenience init(packed bytes: UnsafeRawBufferPointer) {
        self.init(
            high: bytes.loadUnaligned(as: UInt64.self),
            low: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    package func pack(into bytes: UnsafeMutableRawPointer) {
        bytes.storeBytes(of: high, as: UInt64.self)
        bytes.storeBytes(of: low, toByteOffset: 8, as: UInt64.self)
    }
}
