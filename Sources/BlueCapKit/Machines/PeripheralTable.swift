import BlueZ
import Foundation
import Reactor

/// The peripherals of a manager, at most `capacity` of them: when each was last received, and how regularly.
///
/// A peripheral is *listed* from its first report until it expires or is evicted in favour of a new one. A record that
/// is no longer listed stays until its `Peripheral` is released (`release`).
///
/// The table has no copy of what BlueZ reports: a record has the key of the device, whose values are in the object
/// tree. The record stores the last values only when BlueZ removes the device.
struct PeripheralTable {
    /// The values that a device had when BlueZ removed it.
    final class LastValues: Sendable {
        let device: Device1
        init(_ device: borrowing Device1) { self.device = copy device }
    }

    struct Record {
        /// The device in the object tree.
        private(set) var device: ObjectKey
        /// `nil` while the device is in the tree.
        private(set) var lastValues: LastValues?
        /// When it was first reported.
        let discoveredAt: Date
        var lastReceived: Instant
        /// Smoothed seconds between sightings; 0 until there have been two.
        private(set) var interval: TimeInterval = 0
        /// The scan that reported it last.
        var reportedBy: ScanNumber?
        fileprivate(set) var isListed = true
        /// Whether it neither expires nor can be evicted, because it is connected or being connected.
        var isInUse = false

        init(device: ObjectKey, discoveredAt: Date, lastReceived: Instant, reportedBy: ScanNumber?) {
            self.device = device
            self.discoveredAt = discoveredAt
            self.lastReceived = lastReceived
            self.reportedBy = reportedBy
        }

        /// Reads the values in place. The tree's lock is taken inside that of the manager's session, never the other way
        /// round; so the values of a device that BlueZ removes are either in the tree or in this record.
        func read<R>(in daemon: DaemonLink, _ body: (borrowing Device1) -> R?) -> R? {
            if let lastValues { return body(lastValues.device) }
            return daemon.readDevice(device, body)
        }

        /// The device, if BlueZ has it.
        var present: ObjectKey? { lastValues == nil ? device : nil }

        /// BlueZ has this device, on the adapter in use.
        mutating func isPresent(as device: ObjectKey) {
            self.device = device
            if lastValues != nil { lastValues = nil }
        }

        /// BlueZ removes a device. If it is the device of this record, its values are kept.
        mutating func wasRemoved(_ key: ObjectKey, _ device: borrowing Device1) {
            if key == self.device { lastValues = LastValues(device) }
        }

        /// The tree is no longer observed: these are the values from now on, unless BlueZ had removed the device
        /// before.
        mutating func keepValues(_ values: LastValues?) {
            if lastValues == nil { lastValues = values }
        }

        /// A peripheral has been silent for too long after four of its own intervals, and never before half a minute.
        /// After that time BlueZ also removes a device that it has not received (TemporaryTimeout).
        var patience: TimeInterval { max(30, 4 * interval) }

        /// Records a sighting at this moment.
        mutating func recordSighting(at now: Instant) {
            let gap = now.seconds(since: lastReceived)
            lastReceived = now
            // A long pause (another scan, a peripheral out of range) is not an interval.
            guard gap > 0, gap < 4 * patience else { return }
            interval = interval == 0 ? gap : interval * 0.75 + gap * 0.25
        }
    }

    private var records = KeyedTable<Record>()
    private(set) var listedCount = 0
    /// The largest number of listed peripherals.
    let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    subscript(key: PeripheralKey) -> Record? { records[key] }

    /// Reads from a record in place; returns `nil` if there is none.
    mutating func read<R>(_ key: PeripheralKey, _ body: (borrowing Record) -> R?) -> R? {
        records.read(key, body) ?? nil
    }

    /// Returns what `part` reads from each listed record.
    func listed<Part>(_ part: (borrowing Record) -> Part) -> [(key: PeripheralKey, part: Part)] {
        var listed: [(key: PeripheralKey, part: Part)] = []
        listed.reserveCapacity(listedCount)
        records.forEach { key, record in
            if record.isListed { listed.append((key, part(record))) }
        }
        return listed
    }

    /// Calls `body` with every record, listed or not.
    func forEach(_ body: (PeripheralKey, borrowing Record) -> Void) { records.forEach(body) }

    /// Changes a record in place; returns `nil` if there is none.
    mutating func update<R>(_ key: PeripheralKey, _ change: (inout Record) -> R) -> R? {
        records.update(key, change)
    }

    /// Lists a peripheral. Returns the peripherals that are evicted for it, the longest silent first.
    mutating func list(
        _ key: PeripheralKey, reportedBy scan: ScanNumber?, device: ObjectKey, at now: Instant, date: Date
    ) -> [PeripheralKey] {
        let wasListed = records.update(key) { record in
            defer { record.isListed = true }
            record.reportedBy = scan
            return record.isListed
        }
        guard wasListed != true else { return [] }
        if wasListed == nil {
            records[key] = Record(device: device, discoveredAt: date, lastReceived: now, reportedBy: scan)
        }
        listedCount += 1
        return makeRoom(for: key)
    }

    /// Lists a peripheral again that has a record. Returns the peripherals that are evicted for it.
    mutating func relist(_ key: PeripheralKey) -> [PeripheralKey] {
        let wasListed = records.update(key) { record in
            defer { record.isListed = true }
            return record.isListed
        }
        guard wasListed == false else { return [] }
        listedCount += 1
        return makeRoom(for: key)
    }

    private mutating func makeRoom(for key: PeripheralKey) -> [PeripheralKey] {
        guard listedCount > capacity else { return [] }
        // An eighth is evicted at once: finding the longest silent peripherals reads all records, so it must not happen
        // each time.
        var others: [(key: PeripheralKey, lastReceived: Instant)] = []
        records.forEach { other, record in
            if record.isListed, !record.isInUse, other != key { others.append((other, record.lastReceived)) }
        }
        return others.sorted { $0.lastReceived < $1.lastReceived }
            .prefix(max(1, capacity / 8))
            .map(\.key)
            .filter { unlist($0) }
    }

    /// Removes a peripheral from the list. Returns false if it was not listed.
    mutating func unlist(_ key: PeripheralKey) -> Bool {
        let wasListed = records.update(key) { record in
            defer { record.isListed = false }
            record.reportedBy = nil
            return record.isListed
        }
        guard wasListed == true else { return false }
        listedCount -= 1
        return true
    }

    /// Returns the listed peripherals that have been silent for too long.
    func silent(at now: Instant) -> [PeripheralKey] {
        listed { !$0.isInUse && now.seconds(since: $0.lastReceived) >= $0.patience }.filter(\.part).map(\.key)
    }

    /// Removes the record of a released `Peripheral`, unless it is listed.
    mutating func release(_ key: PeripheralKey) {
        if records.read(key, { $0.isListed }) == false { records[key] = nil }
    }
}
