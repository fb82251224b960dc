import BlueZ
import Foundation
import GATT
import Reactor

/// Peripherals without a scan; any thread.
extension CentralSession {
    func retrievePeripherals(_ identifiers: [UUID]) -> [Peripheral] {
        let places = Dictionary(identifiers.enumerated().map { ($1, $0) }) { first, _ in first }
        return retrieve { core, adapter in
            var found: [(place: Int, key: PeripheralKey)] = []
            for key in core.state.keys(on: adapter, where: { _, _ in true }) {
                if let place = places[key.address.identifier(type: key.addressType)] { found.append((place, key)) }
            }
            return found.sorted { $0.place < $1.place }.map(\.key)
        }
    }

    func retrieveConnectedPeripherals(_ services: Set<CBUUID>) -> [Peripheral] {
        retrieve { core, adapter in
            let connected = Set(core.state.connectedKeys)
            return core.state.keys(on: adapter) { key, device in
                connected.contains(key) && (services.isEmpty || device.uuids.contains(where: services.contains))
            }
            .sorted { $0.rawValue < $1.rawValue }
        }
    }

    func retrievePeripherals() -> [Peripheral] {
        let (keys, now, date) = (core.withLock { $0.state.recordKeys }, loop.now, loop.date)
        return retrieve(keys, now, date)
    }

    private func retrieve(_ select: (inout Core, ObjectKey) -> [PeripheralKey]) -> [Peripheral] {
        let keys = core.withLock { core -> [PeripheralKey] in
            guard let adapter = core.link.adapter else { return [] }
            return select(&core, adapter)
        }
        return retrieve(keys, loop.now, loop.date)
    }

    private func retrieve(_ keys: [PeripheralKey], _ now: Instant, _ date: Date) -> [Peripheral] {
        var retrieved: [Peripheral] = []
        _ = decideIfOpen { core in
            var effects: [CentralState.Effect] = []
            for key in keys {
                effects += core.state.list(key, at: now, date: date)
                // It may have gone since it was picked.
                guard core.state.peripherals[key] != nil else { continue }
                retrieved.append(core.handles.hold(key) { Peripheral(session: self, key: key) })
            }
            return effects
        }
        return retrieved
    }
}
