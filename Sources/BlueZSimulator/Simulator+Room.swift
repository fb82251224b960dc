import DBus
import Foundation
import Futures
import Reactor

/// Who is in the room, and what is heard of them.
extension Simulator {
    /// Takes a peripheral into the room, or changes the one with its address. One that BlueZ remembers gets its object
    /// at once, any other when it is heard.
    ///
    /// - Parameters:
    ///   - peripheral: who it is and what it sends out.
    ///   - behavior: what it does where its value does not say; kept as long as the peripheral is in the room.
    public func add(_ peripheral: VirtualPeripheral, behavior: (any PeripheralBehavior)? = nil) {
        let now = seconds
        stage.decide { simulation in
            simulation.add(peripheral, behavior: behavior, now: now)
            guard peripheral.isRemembered, simulation.isAlive else { return }
            for index in simulation.daemon.adapters.keys.sorted() { simulation.daemon.remember(peripheral, on: index) }
        }
    }

    /// Takes a peripheral out of the room: its link falls, it is not heard again, and BlueZ forgets it after half a
    /// minute if it was never connected to.
    public func remove(_ address: VirtualAddress) {
        let now = seconds
        stage.decide { $0.remove(address, now: now) }
    }

    /// An advertisement of a peripheral is heard now, out of turn; nothing comes of it while no adapter scans.
    ///
    /// - Parameters:
    ///   - address: whose; nothing happens where nobody in the room has it.
    ///   - rssi: how strongly, in dBm; nil for what its course says.
    public func simulateSighting(of address: VirtualAddress, rssi: Int? = nil) {
        let now = seconds
        guard var sighting = stage.look({ $0.radio.utterance(of: address, now: now) })?.sighting() else { return }
        if let rssi { sighting.rssi = rssi }
        stage.decide { $0.hear([(seconds: now, sighting: sighting)]) }
    }

    /// Everybody in the room is heard, one after another and again, as fast as the bus carries it, until there were
    /// `updates` sightings. Nothing comes of them while no adapter scans.
    ///
    /// The strength changes from each sighting of a peripheral to its next, by enough to be told in any kind of scan.
    /// Never more is under way than the bus has taken, so memory stays flat.
    ///
    /// - Parameters:
    ///   - updates: how many sightings in all.
    ///   - finished: called on the simulator's loop when the bus has taken the last one; not at all when the daemon dies
    ///     or the simulator ends before.
    public func simulateFlood(updates: Int, finished: @escaping @Sendable () -> Void = {}) {
        let now = seconds
        let sightings = stage.look { simulation in
            simulation.radio.peripherals.filter { !$0.isRemembered }
                .compactMap { simulation.radio.utterance(of: $0.address, now: now)?.sighting() }
        }
        guard !sightings.isEmpty, updates > 0 else { return stage.loop.post(finished) }
        stage.loop.post { [weak stage] in
            stage?.flood(Flood(sightings: sightings, remaining: updates, finished: finished))
        }
    }
}

/// A flood under way.
struct Flood: Sendable {
    /// One of each peripheral, to be varied.
    let sightings: [Sighting]
    var remaining: Int
    var position = 0
    let finished: @Sendable () -> Void

    /// Few enough to be taken by the bus together, and never one peripheral twice, whose changes would become one.
    mutating func nextGroup() -> [Sighting] {
        let count = min(remaining, sightings.count, 256)
        let group = (0..<count).map { offset in
            let place = position + offset
            var sighting = sightings[place % sightings.count]
            // 10 dB: more than the 8 that a scan without filters waits for.
            if place / sightings.count % 2 == 1 { sighting.rssi += sighting.rssi < -60 ? 10 : -10 }
            return sighting
        }
        position += count
        remaining -= count
        return group
    }
}

extension Stage {
    private func whenDrained(_ work: @escaping @Sendable (Stage) -> Void) {
        wire.withLock { $0.connection }?.whenDrained { [weak self] in
            if let self { work(self) }
        }
    }

    /// The next group, when the bus has taken the one before. On the loop.
    func flood(_ flood: Flood) {
        guard flood.remaining > 0 else { return flood.finished() }
        var flood = flood
        let group = flood.nextGroup()
        let now = seconds
        decide { $0.hear(group.map { (seconds: now, sighting: $0) }) }
        let rest = flood
        // Behind the turn that sends this group, which `decide` has just posted.
        loop.post { [weak self] in self?.whenDrained { $0.flood(rest) } }
    }
}
