import BlueZ
import Foundation
import GATT
import Reactor

/// Whom a manager can name without a scan.
extension CentralState {
    /// BlueZ has added a device, or changed it in something that matters to those who retrieve.
    mutating func deviceKnown(_ key: PeripheralKey, _ device: borrowing Device1) { known[key] = copy device }

    mutating func isKnown(_ key: PeripheralKey) -> Bool { known.read(key) { _ in true } ?? false }

    /// The keys of the peripherals that BlueZ or this manager knows on an adapter and that `isWanted` picks.
    func keys(on adapter: ObjectKey, where isWanted: (PeripheralKey, borrowing Device1) -> Bool) -> [PeripheralKey] {
        var keys: [PeripheralKey] = []
        peripherals.forEach { key, record in
            if isWanted(key, record.values) { keys.append(key) }
        }
        let found = Set(keys)
        known.forEach { key, device in
            if device.adapter == adapter, !found.contains(key), isWanted(key, device) { keys.append(key) }
        }
        return keys
    }

    /// Everybody of whom something is known, the first discovered first.
    var recordKeys: [PeripheralKey] {
        var records: [(key: PeripheralKey, date: Date)] = []
        peripherals.forEach { key, record in records.append((key, record.discoveredAt)) }
        return records.sorted { $0.date < $1.date }.map(\.key)
    }

    /// Puts a peripheral on the list that was retrieved.
    mutating func list(_ key: PeripheralKey, at now: Instant, date: Date) -> [Effect] {
        guard peripherals[key] == nil else { return relist(key) }
        guard let values = known[key] else { return [] }
        return peripherals.list(key, reportedBy: nil, values: values, at: now, date: date).map { drop($0) }
    }
}
