import BlueCapBlueZ
import BlueCapFutures
public import Foundation
public import BlueCapGATT
import BlueCapReactor

/// Retrieves peripherals without a scan: those that BlueZ remembers, and those that have a link.
///
/// Retrieved peripherals are in ``CentralManager/peripherals`` from then on. Until the state is `poweredOn` the manager
/// has received no devices from BlueZ, and these methods find none.
extension CentralManager {
    /// Returns the peripherals with these identifiers that BlueZ or this manager knows, in the order of the
    /// identifiers.
    ///
    /// BlueZ remembers peripherals that were once connected, even after it restarts, unless they have a private address
    /// and no bond. Unknown identifiers are ignored.
    public func retrievePeripherals(withIdentifiers identifiers: [UUID]) -> [Peripheral] {
        let places = Dictionary(identifiers.enumerated().map { ($1, $0) }) { first, _ in first }
        // The identifiers are computed outside the locks.
        let found = candidates { _, _ in true }.compactMap { candidate in
            (places[candidate.key.identifier] ?? places[candidate.address.identifier]).map { ($0, candidate) }
        }
        return list(found.ordered { $0.0 < $1.0 }.map(\.1))
    }

    /// Returns the peripherals that have a link to the adapter and one of these services, whichever program opened the
    /// link. If the list of services is empty, returns all peripherals that have a link.
    public func retrieveConnectedPeripherals(withServices services: [CBUUID]) -> [Peripheral] {
        let services = Set(services)
        let connected = candidates { _, device in
            device.hasLink
                && (services.isEmpty || device.uuids.contains(where: services.contains))
        }
        return list(connected.ordered { $0.key < $1.key })
    }

    /// Returns the peripherals that this manager has discovered or retrieved and that are still referenced, expired or
    /// not.
    public func retrievePeripherals() -> [Peripheral] {
        list(session.core.withLock { $0.state.recordKeys }.map { ($0, $0, nil) })
    }

    /// Returns the peripherals that BlueZ has on the adapter in use, with a link or without one, and those that this manager
    /// has found.
    package func retrieveKnownPeripherals() -> [Peripheral] { list(candidates { _, _ in true }) }

    /// A peripheral, its present address, and the BlueZ device to list it for if it has no record.
    private typealias Candidate = (key: PeripheralKey, address: PeripheralKey, device: ObjectKey?)

    /// Returns the peripherals that `isIncluded` accepts, of those that BlueZ has on the adapter in use and those that
    /// this manager has found.
    private func candidates(_ isIncluded: (ObjectKey, borrowing Device1) -> Bool) -> [Candidate] {
        let daemon = session.client.daemon
        return session.core.withLock { core in
            guard let adapter = core.shell.adapter else { return [] }
            var (found, present): ([Candidate], Set<PeripheralKey>) = ([], [])
            daemon.forEachDevice(on: adapter) { source, device in
                let address = PeripheralKey(device)
                let key = core.state.key(of: source, at: address)
                present.insert(key)
                if isIncluded(source, device) { found.append((key, address, source)) }
            }
            for (key, listing) in core.state.absent(from: adapter) where !present.contains(key) {
                let isFound = listing.read(in: daemon) { isIncluded(listing.device, $0) }
                if isFound == true { found.append((key, core.state.presentAddress(of: key), nil)) }
            }
            return found
        }
    }

    /// Adds peripherals to the list, and returns them.
    private func list(_ candidates: [Candidate]) -> [Peripheral] {
        var listed: [Peripheral] = []
        let (now, date) = (session.loop.now, session.date)
        _ = session.decideIfOpen { core in
            for (key, _, candidate) in candidates {
                // BlueZ's removal of a device that exists now is reported after the device has a record.
                let device = candidate.flatMap { session.client.daemon.hasDevice($0) ? $0 : nil }
                let new = PeripheralRecord.Listing(device: device, discoveredAt: date, lastReceived: now)
                core.state.list(key, or: new, into: &core.shell.orders)
                // The record may have been removed since the peripheral was selected.
                guard core.state.peripherals[key] != nil else { continue }
                listed.append(core.state.peripherals.hold(key, in: session))
            }
        }
        return listed
    }
}
