/// Finds a place in an array by the number that is the key of what is there: open addressing with linear probing.
///
/// Each signal begins with one look-up of an object's key. A Swift `Dictionary` takes about three times as long, because its
/// hashing resists chosen keys. Here chosen keys, which are addresses, would only make the table slow.
///
/// The table has no copies of the keys, which would take most of its memory: each function is given `keyAt`, which reads the
/// key at a place of the array.
package struct SlotTable {
    /// Marks an unused entry; not a valid place.
    @usableFromInline static var vacant: UInt32 { .max }

    @usableFromInline private(set) var entries: [UInt32]
    package private(set) var count = 0
    @usableFromInline private(set) var shift: UInt64

    package init() {
        entries = Array(repeating: SlotTable.vacant, count: 16)
        shift = 64 - 4
    }

    /// Inlinable, so that `keyAt` is compiled into it.
    @inlinable
    package func slot(of key: UInt64, _ keyAt: (Int) -> UInt64) -> Int? {
        var position = home(of: key)
        while entries[position] != SlotTable.vacant {
            let slot = Int(entries[position])
            if keyAt(slot) == key { return slot }
            position = next(position)
        }
        return nil
    }

    /// Enters a key, or gives it another place. If the key was entered, its earlier place still has it.
    package mutating func insert(_ key: UInt64, slot: Int, _ keyAt: (Int) -> UInt64) {
        if (count + 1) * 3 > entries.count * 2 { grow(keyAt) }
        var position = home(of: key)
        while entries[position] != SlotTable.vacant {
            guard keyAt(Int(entries[position])) != key else {
                entries[position] = UInt32(slot)
                return
            }
            position = next(position)
        }
        entries[position] = UInt32(slot)
        count += 1
    }

    /// Removes a key, which its place still has.
    package mutating func remove(_ key: UInt64, _ keyAt: (Int) -> UInt64) {
        var hole = home(of: key)
        while true {
            guard entries[hole] != SlotTable.vacant else { return }
            if keyAt(Int(entries[hole])) == key { break }
            hole = next(hole)
        }
        count -= 1
        // Close the gap instead of marking it, so that devices that come and go for weeks do not lengthen the probes.
        var position = next(hole)
        while entries[position] != SlotTable.vacant {
            let distanceFromHome = (position - home(of: keyAt(Int(entries[position])))) & (entries.count - 1)
            let distanceFromHole = (position - hole) & (entries.count - 1)
            if distanceFromHome >= distanceFromHole {
                entries[hole] = entries[position]
                hole = position
            }
            position = next(position)
        }
        entries[hole] = SlotTable.vacant
    }

    @inlinable
    func home(of key: UInt64) -> Int { Int((key &* 0x9E37_79B9_7F4A_7C15) >> shift) }

    @inlinable
    func next(_ position: Int) -> Int { (position + 1) & (entries.count - 1) }

    private mutating func grow(_ keyAt: (Int) -> UInt64) {
        let old = entries
        entries = Array(repeating: SlotTable.vacant, count: old.count * 2)
        shift -= 1
        for slot in old where slot != SlotTable.vacant {
            var position = home(of: keyAt(Int(slot)))
            while entries[position] != SlotTable.vacant { position = next(position) }
            entries[position] = slot
        }
    }
}
