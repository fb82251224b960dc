import BlueZ
import Foundation
import GATT
import Reactor

/// The peripherals that were asked for something.
extension CentralState {
    /// Nobody holds this peripheral's handle any more. What is under way with it comes to its end first.
    mutating func release(_ key: PeripheralKey) {
        peripherals.release(key)
        guard let isInUse = dealings.read(key, { $0.isInUse }) else { return }
        if isInUse { released.insert(key) } else { endDealing(with: key) }
    }

    private mutating func endDealing(with key: PeripheralKey) {
        released.remove(key)
        dealings[key] = nil
        if facts[key]?.isConnected != true { facts[key] = nil }
    }

    /// Decides about one peripheral. Its state begins with what BlueZ says of it.
    mutating func peripheral(
        _ key: PeripheralKey, _ decision: (inout PeripheralState) -> [PeripheralState.Effect]
    ) -> [Effect] {
        if !deals(with: key) { beginDealing(with: key) }
        var use: Bool?
        let effects = dealings.update(key) { state in
            let wasInUse = state.isInUse
            let effects = decision(&state) + state.follow()
            if state.isInUse != wasInUse { use = !wasInUse }
            return effects
        }
        if let use { useChanged(of: key, isInUse: use) }
        return (effects ?? []).map { .peripheral(key, $0) }
    }

    private mutating func beginDealing(with key: PeripheralKey) {
        var state = PeripheralState(backOff: BackOff(seed: backOffSeed ^ key.rawValue))
        // Nothing follows from how things stand before anything is wanted.
        _ = state.managerStateChanged(managerState) + state.factsChanged(firstFacts(of: key))
        dealings[key] = state
    }

    /// A characteristic's newest value, as its notifications brought it.
    mutating func notified(_ subject: NotificationChannels.Subject, _ value: Data) {
        dealings.update(subject.peripheral) { $0.attributes.notified(subject.characteristic, value) }
    }

    /// Whether a peripheral was asked for something.
    mutating func deals(with key: PeripheralKey) -> Bool { dealings.read(key) { _ in true } ?? false }

    /// A peripheral that somebody is connected to, or wants to be, stays on the list.
    private mutating func useChanged(of key: PeripheralKey, isInUse: Bool) {
        _ = peripherals.update(key) { $0.isInUse = isInUse }
        // Somebody may hold it again.
        if !isInUse, released.contains(key), peripherals[key] == nil { endDealing(with: key) }
    }

    /// Puts a peripheral on the list again that had left it.
    mutating func relist(_ key: PeripheralKey) -> [Effect] { peripherals.relist(key).map { drop($0) } }

    /// The user is done with a peripheral.
    mutating func forget(_ key: PeripheralKey) -> [Effect] {
        let wasRestored = unlistedRestored.remove(key) != nil
        return peripherals.unlist(key) || wasRestored ? [drop(key)] : []
    }

    /// The end of a link is a sign of life, too.
    mutating func linkEnded(_ key: PeripheralKey, at now: Instant) {
        _ = peripherals.update(key) { $0.lastHeard = now }
    }

    /// Where a dealing begins: a device without a link is known from its sightings alone.
    private mutating func firstFacts(of key: PeripheralKey) -> PeripheralState.Facts {
        if let known = facts[key] { return known }
        let device = peripherals.read(key) { $0.device }
        let first = PeripheralState.Facts(device: device)
        facts[key] = first
        return first
    }

    /// Reads from what was decided about a peripheral; `nil` where nothing was.
    mutating func readDealing<R>(with key: PeripheralKey, _ body: (borrowing PeripheralState) -> R?) -> R? {
        dealings.read(key, body) ?? nil
    }

    /// Changes what was decided about a peripheral, without anything following from it; `nil` where nothing was.
    mutating func updateDealing<R>(with key: PeripheralKey, _ change: (inout PeripheralState) -> R) -> R? {
        dealings.update(key, change)
    }

    /// BlueZ has told something of a device's object or link.
    mutating func factsChanged(_ new: PeripheralState.Facts, of key: PeripheralKey) -> [Effect] {
        guard dealings.read(key, { _ in true }) == true else {
            if new.isConnected {
                facts[key] = new
            } else if !facts.isEmpty {
                facts[key] = nil
            }
            return []
        }
        facts[key] = new
        return peripheral(key) { $0.factsChanged(new) }
    }

    mutating func tellPeripherals(
        _ event: (inout PeripheralState) -> [PeripheralState.Effect]
    ) -> [Effect] {
        dealings.keys.flatMap { peripheral($0, event) }
    }

    /// All that BlueZ knows of an adapter's devices: what is not there any more has no link either.
    mutating func factsReplaced(_ all: [PeripheralKey: PeripheralState.Facts]) -> [Effect] {
        facts = all.filter { $0.value.isConnected }
        return dealings.keys.flatMap { key in
            let new = all[key] ?? PeripheralState.Facts()
            facts[key] = new
            return peripheral(key) { $0.factsChanged(new) }
        }
    }

    /// The devices on other adapters to which we have opened a link, or are about to.
    func ownLinks(besides adapter: ObjectKey) -> [(key: PeripheralKey, device: ObjectKey)] {
        var links: [(PeripheralKey, ObjectKey)] = []
        dealings.forEach { key, state in
            if let device = state.facts.device, device.adapter != adapter, state.connection.hasOwnLink {
                links.append((key, device))
            }
        }
        return links
    }

    /// The adapter in use from now on has this device.
    mutating func found(_ key: PeripheralKey, _ source: ObjectKey) {
        _ = peripherals.update(key) { $0.isPresent(as: source) }
    }

    /// The peripherals that were asked for something.
    var dealingKeys: [PeripheralKey] { dealings.keys }

    /// The manager ends, and with it every dealing.
    mutating func closePeripherals(keepingLinks: Bool) -> [Effect] {
        defer { dealings = KeyedTable() }
        return tellPeripherals { $0.closed(keepingLinks: keepingLinks) }
    }
}
