/// Finds a place in an array by a number: open addressing with linear probing.
///
/// Each signal begins with one look-up of an object's key. A Swift `Dictionary` takes about three times as long, because its
/// hashing resists chosen keys. Here chosen keys, which are addresses, would only make the table slow.
package struct SlotTable {
    private struct Entry {
        var key: UInt64
        var slot: UInt32
    }

    /// Marks an unused entry; not a valid key.
    private static let vacant = UInt64.max

    private var entries: [Entry]
    package private(set) var count = 0
    private var shift: UInt64

    package init() {
        entries = Array(repeating: Entry(key: SlotTable.vacant, slot: 0), count: 16)
        shift = 64 - 4
    }

    package func slot(of key: UInt64) -> Int? {
        var position = home(of: key)
        while true {
            let entry = entries[position]
            if entry.key == key { return Int(entry.slot) }
            if entry.key == SlotTable.vacant { return nil }
            position = next(position)
        }
    }

    /// Enters a key, which is not `UInt64.max`, or gives it another place.
    package mutating func insert(_ key: UInt64, slot: Int) {
        if (count + 1) * 3 > entries.count * 2 { grow() }
        var position = home(of: key)
        while entries[position].key != SlotTable.vacant {
            guard entries[position].key != key else {
                entries[position].slot = UInt32(slot)
                return
            }
            position = next(position)
        }
        entries[position] = Entry(key: key, slot: UInt32(slot))
        count += 1
    }

    package mutating func remove(_ key: UInt64) {
        var hole = home(of: key)
        while entries[hole].key != key {
            guard entries[hole].key != SlotTable.vacant else { return }
            hole = next(hole)
        }
        count -= 1
        // Close the gap instead of marking it, so that devices that come and go for weeks do not lengthen the probes.
        var position = next(hole)
        while entries[position].key != SlotTable.vacant {
            let distanceFromHome = (position - home(of: entries[position].key)) & (entries.count - 1)
            let distanceFromHole = (position - hole) & (entries.count - 1)
            if distanceFromHome >= distanceFromHole {
                entries[hole] = entries[position]
                hole = position
            }
            position = next(position)
        }
        entries[hole].key = SlotTable.vacant
    }

    private func home(of key: UInt64) -> Int { Int((key &* 0x9E37_79B9_7F4A_7C15) >> shift) }

    private func next(_ position: Int) -> Int { (position + 1) & (entries.count - 1) }

    private mutating func grow() {
        let old = entries
        entries = Array(repeating: Entry(key: SlotTable.vacant, slot: 0), count: old.count * 2)
        shift -= 1
        count = 0
        for entry in old where entry.key != SlotTable.vacant { insert(entry.key, slot: Int(entry.slot)) }
    }
}
