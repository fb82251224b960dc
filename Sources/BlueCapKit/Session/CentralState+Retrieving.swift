import BlueZ
import Foundation
import GATT
import Reactor

/// The peripherals that a manager can name without a scan.
extension CentralState {
    /// The peripherals that this manager has found and whose device BlueZ has removed, or has on another adapter.
    func absent(from adapter: ObjectKey) -> [(key: PeripheralKey, record: PeripheralTable.Record)] {
        var absent: [(PeripheralKey, PeripheralTable.Record)] = []
        peripherals.forEach { key, record in
            if record.lastValues != nil || record.device.adapter != adapter { absent.append((key, copy record)) }
        }
        return absent
    }

    /// All peripherals that this manager has found, the first discovered first.
    var recordKeys: [PeripheralKey] {
        var records: [(key: PeripheralKey, date: Date)] = []
        peripherals.forEach { key, record in records.append((key, record.discoveredAt)) }
        return records.sorted { $0.date < $1.date }.map(\.key)
    }

    /// Lists a peripheral that was retrieved: one that was found before, or a device of BlueZ.
    mutating func list(_ key: PeripheralKey, device: ObjectKey?, at now: Instant, date: Date) -> [Effect] {
        guard peripherals[key] == nil else { return relist(key) }
        guard let device else { return [] }
        return peripherals.list(key, reportedBy: nil, device: device, at: now, date: date).map { drop($0) }
    }
}
