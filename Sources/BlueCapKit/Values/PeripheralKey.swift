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

/// A dictionary of values by peripheral: finds a value in a few instructions, and gives access to it in place.
struct KeyedTable<Value> {
    private struct Entry {
        let key: PeripheralKey
        var value: Value
    }

    private var slots = SlotTable()
    /// The entries, without gaps: when one is removed, the last one moves to its place.
    private var entries: [Entry] = []

    var keys: [PeripheralKey] { entries.map(\.key) }

    subscript(key: PeripheralKey) -> Value? {
        get { slot(of: key).map { entries[$0].value } }
        set {
            guard let newValue else { return remove(key) }
            if let slot = slot(of: key) {
                entries[slot].value = newValue
            } else {
                slots.insert(key.rawValue, slot: entries.count) { entries[$0].key.rawValue }
                entries.append(Entry(key: key, value: newValue))
            }
        }
    }

    private func slot(of key: PeripheralKey) -> Int? {
        slots.slot(of: key.rawValue) { entries[$0].key.rawValue }
    }

    /// Reads or changes a value in place; returns `nil` if there is none. A copy would retain and release a dozen references.
    mutating func update<R>(_ key: PeripheralKey, _ change: (inout Value) -> R) -> R? {
        guard let slot = slot(of: key) else { return nil }
        return change(&entries[slot].value)
    }

    /// Returns what `body` returns for the values, in the order of the entries.
    func compactMap<R>(_ body: (PeripheralKey, borrowing Value) -> R?) -> [R] {
        entries.withUnsafeBufferPointer { entries in
            entries.indices.compactMap { body(entries[$0].key, entries[$0].value) }
        }
    }

    private mutating func remove(_ key: PeripheralKey) {
        guard let slot = slot(of: key), let last = entries.last else { return }
        slots.remove(key.rawValue) { entries[$0].key.rawValue }
        if last.key != key {
            slots.insert(last.key.rawValue, slot: slot) { entries[$0].key.rawValue }
            entries[slot] = last
        }
        entries.removeLast()
    }
}
