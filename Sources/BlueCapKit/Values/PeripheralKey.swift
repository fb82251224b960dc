import BlueCapBlueZ
import Foundation
import BlueCapGATT

/// Identifies a peripheral within a manager: its address and address type in one machine word.
struct PeripheralKey: Hashable, Comparable, Sendable {
    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    init(_ address: BluetoothAddress, _ type: BluetoothAddress.AddressType) {
        rawValue = address.rawValue | (type == .random ? 1 << 48 : 0)
    }

    init(_ device: borrowing Device1) { self.init(device.address, device.addressType) }

    static func < (left: PeripheralKey, right: PeripheralKey) -> Bool { left.rawValue < right.rawValue }

    var address: BluetoothAddress { BluetoothAddress(rawValue: rawValue) }
    var addressType: BluetoothAddress.AddressType { rawValue & 1 << 48 == 0 ? .public : .random }
    var identifier: UUID { address.identifier(type: addressType) }
}

/// A key of a ``KeyedTable``.
protocol TableKey: Equatable {
    /// A number that no other key has.
    var number: UInt64 { get }
}

extension PeripheralKey: TableKey {
    var number: UInt64 { rawValue }
}

/// A dictionary of values by a number: finds a value in a few instructions, and gives access to it in place.
struct KeyedTable<Key: TableKey, Value> {
    private struct Entry {
        let key: Key
        var value: Value
    }

    private var slots = SlotTable()
    /// The entries, without gaps: when one is removed, the last one moves to its place.
    private var entries: [Entry] = []

    var keys: [Key] { entries.map(\.key) }
    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }

    subscript(key: Key) -> Value? {
        get { slot(of: key).map { entries[$0].value } }
        set {
            guard let newValue else {
                remove(key)
                return
            }
            if !insert(newValue, key), let slot = slot(of: key) { entries[slot].value = newValue }
        }
    }

    private func slot(of key: Key) -> Int? { slots.slot(of: key.number) { entries[$0].key.number } }

    /// Inserts a value if there is none for the key. Returns whether it was inserted.
    @discardableResult
    mutating func insert(_ value: Value, _ key: Key) -> Bool {
        guard slot(of: key) == nil else { return false }
        slots.insert(key.number, slot: entries.count) { entries[$0].key.number }
        entries.append(Entry(key: key, value: value))
        return true
    }

    /// Reads a value in place; returns `nil` if there is none.
    func read<R>(_ key: Key, _ body: (borrowing Value) -> R?) -> R? {
        guard let slot = slot(of: key) else { return nil }
        return entries.withUnsafeBufferPointer { body($0[slot].value) }
    }

    /// Reads or changes a value in place; returns `nil` if there is none. A copy would retain and release a dozen references.
    mutating func update<R>(_ key: Key, _ change: (inout Value) -> R) -> R? {
        guard let slot = slot(of: key) else { return nil }
        return change(&entries[slot].value)
    }

    /// Returns what `body` returns for the values, in the order of the entries.
    func compactMap<R>(_ body: (Key, borrowing Value) -> R?) -> [R] {
        entries.withUnsafeBufferPointer { entries in
            entries.indices.compactMap { body(entries[$0].key, entries[$0].value) }
        }
    }

    /// Returns the number of values that satisfy a condition.
    func count(where isCounted: (borrowing Value) -> Bool) -> Int {
        entries.withUnsafeBufferPointer { entries in entries.indices.count { isCounted(entries[$0].value) } }
    }

    /// Removes a value and returns it; `nil` if there is none.
    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        guard let slot = slot(of: key) else { return nil }
        slots.remove(key.number) { entries[$0].key.number }
        let last = entries.count - 1
        if slot < last {
            // The place of the last entry is found by the number that is still there.
            slots.insert(entries[last].key.number, slot: slot) { entries[$0].key.number }
            entries.swapAt(slot, last)
        }
        return entries.removeLast().value
    }
}
