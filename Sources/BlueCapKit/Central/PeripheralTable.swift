import BlueCapBlueZ
import Foundation
import BlueCapReactor

/// The records of a manager's peripherals, of which at most `capacity` are listed.
///
/// A peripheral is *listed* from its first report until it expires or is evicted in favour of a new one. Its listing stays
/// until its `Peripheral` is released (``release(_:)``).
struct PeripheralTable {
    private var records = KeyedTable<PeripheralKey, PeripheralRecord>()
    private(set) var listedCount = 0
    /// The largest number of listed peripherals.
    let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    /// Changes the record of a peripheral in place. A record is made if there is none, and removed if it is empty.
    mutating func change<R>(_ key: PeripheralKey, _ change: (inout PeripheralRecord) -> R) -> R {
        if let changed = records.update(key, { record in (result: change(&record), isEmpty: record.isEmpty) }) {
            if changed.isEmpty { records[key] = nil }
            return changed.result
        }
        var record = PeripheralRecord()
        defer { if !record.isEmpty { records[key] = record } }
        return change(&record)
    }

    /// Returns what `body` returns for the records, in their order.
    func compactMap<R>(_ body: (PeripheralKey, borrowing PeripheralRecord) -> R?) -> [R] { records.compactMap(body) }

    /// Removes the objects and what is in use, and returns them in the order of the keys. The listings stay for objects that
    /// outlive the manager.
    mutating func removeObjects() -> (objects: [Peripheral], uses: [PeripheralUse]) {
        var removed: (objects: [Peripheral], uses: [PeripheralUse]) = ([], [])
        for key in records.keys.sorted() {
            change(key) { record in
                if let object = record.object.object { removed.objects.append(object) }
                if let use = record.use.take() { removed.uses.append(use) }
                record.object = ObjectReference()
            }
        }
        return removed
    }

    // MARK: Use

    /// What the manager has of a peripheral that the application uses, or is ending the use of.
    mutating func use(of key: PeripheralKey) -> PeripheralUse? { records.update(key) { $0.use } ?? nil }

    /// The peripherals in use, in the order of their records.
    var used: [(key: PeripheralKey, use: PeripheralUse)] {
        compactMap { key, record in record.use.map { (key, $0) } }
    }

    // MARK: Objects

    /// The object of a peripheral, if there is one.
    subscript(objectOf key: PeripheralKey) -> Peripheral? { records[key]?.object.object }

    /// Returns the object of a listed peripheral, and references it strongly; makes it if there is none.
    mutating func hold(_ key: PeripheralKey, in session: CentralSession) -> Peripheral {
        change(key) { $0.object.hold { Peripheral(session: session, key: key) } }
    }

    /// Makes the references to the objects of a peripheral weak. Returns them, to be released after the lock.
    mutating func weaken(_ key: PeripheralKey) -> (Peripheral?, [AttributeID: ObjectReference<AnyObject>]?) {
        change(key) { record in
            defer { record.object.weaken() }
            return (record.object.object, record.use?.weaken())
        }
    }

    // MARK: The list

    /// The listing of a peripheral; `nil` if there is none.
    subscript(key: PeripheralKey) -> PeripheralRecord.Listing? { records[key]?.listing }

    /// Reads from a listing in place; returns `nil` if there is none.
    mutating func read<R>(_ key: PeripheralKey, _ body: (borrowing PeripheralRecord.Listing) -> R?) -> R? {
        update(key) { body($0) } ?? nil
    }

    /// Changes a listing in place; returns `nil` if there is none.
    mutating func update<R>(_ key: PeripheralKey, _ change: (inout PeripheralRecord.Listing) -> R) -> R? {
        records.update(key) { $0.listing == nil ? nil : change(&$0.listing!) } ?? nil
    }

    /// Returns when each listed peripheral was discovered.
    var listed: [(key: PeripheralKey, discoveredAt: Date)] {
        compactMap { key, record in
            guard let listing = record.listing, listing.isListed else { return nil }
            return (key, listing.discoveredAt)
        }
    }

    /// Returns what `body` returns for the listed peripherals that may leave the list.
    private func idle<R>(_ body: (PeripheralKey, borrowing PeripheralRecord.Listing) -> R?) -> [R] {
        compactMap { key, record in
            guard record.listing?.isListed == true, !record.isInUse else { return nil }
            // Not bound to a name, which would copy it; the line above has found that there is one.
            return body(key, record.listing!)
        }
    }

    /// Lists a peripheral that has a listing, or gets `new` as its listing. Returns the peripherals that are evicted for it,
    /// the longest silent first.
    mutating func list(
        _ key: PeripheralKey, reportedBy scan: ScanNumber? = nil, or new: PeripheralRecord.Listing? = nil
    ) -> [PeripheralKey] {
        let isNew = change(key) { record in
            record.object.strengthen()
            guard var listing = record.listing ?? new else { return false }
            let wasListed = listing.isListed
            listing.isListed = true
            if let scan { listing.reportedBy = scan }
            record.listing = listing
            return !wasListed
        }
        return isNew ? makeRoom(for: key) : []
    }

    private mutating func makeRoom(for key: PeripheralKey) -> [PeripheralKey] {
        listedCount += 1
        guard listedCount > capacity else { return [] }
        // An eighth is evicted at once: finding the longest silent peripherals reads all records, so it must not happen
        // each time.
        return idle { $0 == key ? nil : (key: $0, lastReceived: $1.lastReceived) }
            .sorted { $0.lastReceived < $1.lastReceived }
            .prefix(max(1, capacity / 8))
            .map(\.key)
            .filter { unlist($0) }
    }

    /// Removes a peripheral from the list. Returns false if it was not listed.
    mutating func unlist(_ key: PeripheralKey) -> Bool {
        let wasListed = update(key) { listing in
            defer { listing.isListed = false }
            (listing.reportedBy, listing.track) = (nil, nil)
            return listing.isListed
        }
        guard wasListed == true else { return false }
        listedCount -= 1
        return true
    }

    /// Returns the listed peripherals that have been silent for too long.
    func silent(at now: Instant) -> [PeripheralKey] {
        idle { now.seconds(since: $1.lastReceived) >= $1.patience ? $0 : nil }
    }

    /// Removes what belongs to the object of a peripheral, which was released. A listed peripheral keeps its listing.
    /// Returns what its release must not happen under the lock of.
    mutating func release(_ key: PeripheralKey) -> PeripheralUse.Released? {
        change(key) { record in
            record.object = ObjectReference()
            if record.listing?.isListed == false { record.listing = nil }
            return record.use?.release()
        }
    }
}
