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
        if let rssi { sighting.rssi = RSSICourse.nearest(to: rssi) }
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

extension Simulator {
    /// A peripheral notifies `count` values as fast as the bus, or the socket that somebody has acquired, carries them.
    ///
    /// Each value is its number from 0 on, little-endian, with zeros up to `size` bytes. Never more is under way than has
    /// been taken, so memory stays flat, nothing is lost, and nothing overtakes anything. Without a subscription the
    /// values go nowhere.
    ///
    /// - Parameters:
    ///   - count: how many values.
    ///   - size: how long each is, in bytes, 1 to 512; what does not fit the link's packets is cut.
    ///   - address: the address of the peripheral.
    ///   - characteristic: the characteristic whose value is notified.
    ///   - finished: called on the simulator's loop when the last one has been taken; not at all when the daemon dies or
    ///     the simulator ends before.
    public func simulateNotifications(
        count: Int, size: Int, of address: VirtualAddress, characteristic: AttributeSelector,
        finished: @escaping @Sendable () -> Void = {}
    ) {
        let flood = NotificationFlood(
            address: address, characteristic: characteristic, size: size, count: count, finished: finished)
        stage.loop.post { [weak stage] in stage?.flood(flood) }
    }
}

/// A flood of notifications under way.
struct NotificationFlood: Sendable {
    let address: VirtualAddress
    let characteristic: AttributeSelector
    let size: Int
    let count: Int
    let finished: @Sendable () -> Void
    var position = 0
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
    /// The next notifications, when those before have been taken. On the loop.
    func flood(_ flood: NotificationFlood) {
        guard flood.position < flood.count else { return flood.finished() }
        let end = min(flood.count, flood.position + 128)
        decide { simulation in
            guard let found = simulation.air.peers[flood.address]?.table.characteristic(flood.characteristic) else {
                return
            }
            for number in flood.position..<end {
                let value = NotificationSource.number(number, size: flood.size)
                simulation.air.notify(found.handle, value, at: flood.address)
            }
        }
        var rest = flood
        rest.position = end
        let next = rest
        loop.post { [weak self] in
            self?.whenDrained { stage in
                stage.whenSocketsDrained { [weak stage] in stage?.flood(next) }
            }
        }
    }

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
