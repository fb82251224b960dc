import BlueZ
import Foundation
import GATT
import Reactor

/// Peripherals without a scan; any thread.
extension CentralSession {
    func retrievePeripherals(_ identifiers: [UUID]) -> [Peripheral] {
        let places = Dictionary(identifiers.enumerated().map { ($1, $0) }) { first, _ in first }
        func place(_ key: PeripheralKey) -> Int? { places[key.address.identifier(type: key.addressType)] }
        // The identifiers are computed outside the locks.
        let found = candidates { _ in true }.compactMap { candidate in place(candidate.key).map { ($0, candidate) } }
        return retrieve(found.sorted { $0.0 < $1.0 }.map(\.1))
    }

    func retrieveConnectedPeripherals(_ services: Set<CBUUID>) -> [Peripheral] {
        let connected = candidates { device in
            PeripheralState.Facts(device).isConnected
                && (services.isEmpty || device.uuids.contains(where: services.contains))
        }
        return retrieve(connected.sorted { $0.key < $1.key })
    }

    func retrievePeripherals() -> [Peripheral] {
        retrieve(core.withLock { $0.state.recordKeys }.map { ($0, nil) })
    }

    /// The peripherals that `isIncluded` accepts, of those that BlueZ has on the adapter in use and those that this manager
    /// has found.
    private func candidates(
        _ isIncluded: (borrowing Device1) -> Bool
    ) -> [(key: PeripheralKey, device: ObjectKey?)] {
        guard let adapter = core.withLock({ $0.link.adapter }) else { return [] }
        var found: [(key: PeripheralKey, device: ObjectKey?)] = []
        var present: Set<PeripheralKey> = []
        client.daemon.forEachDevice(on: adapter) { source, device in
            let key = PeripheralKey(device)
            present.insert(key)
            if isIncluded(device) { found.append((key, source)) }
        }
        for (key, record) in core.withLock({ $0.state.absent(from: adapter) }) where !present.contains(key) {
            let isFound =
                record.lastValues.map { isIncluded($0.device) } ?? client.daemon.readDevice(record.device, isIncluded)
            if isFound == true { found.append((key, nil)) }
        }
        return found
    }

    private func retrieve(_ candidates: [(key: PeripheralKey, device: ObjectKey?)]) -> [Peripheral] {
        let (now, date) = (loop.now, loop.date)
        var retrieved: [Peripheral] = []
        _ = decideIfOpen { core in
            for (key, device) in candidates {
                core.state.list(key, device: device, at: now, date: date, into: &core.orders)
                // Its record may have gone since it was picked.
                guard core.state.peripherals[key] != nil else { continue }
                retrieved.append(core.handles.hold(key) { Peripheral(session: self, key: key) })
            }
        }
        return retrieved
    }
}
