import BlueCapDBus
import Foundation
import BlueCapFutures
import BlueCapReactor

/// The virtual peripherals: which there are, what they send, and their values.
extension Simulator {
    /// Adds a peripheral, or changes the one with its address. BlueZ exports the object of one that it remembers at once, and
    /// that of any other when an adapter discovers it. The `behavior` is kept until the peripheral is removed.
    public func add(_ peripheral: VirtualPeripheral, behavior: (any PeripheralBehavior)? = nil) {
        stage.decide { simulation in
            simulation.linkLayer.add(peripheral, behavior: behavior)
            for adapter in simulation.adapters where peripheral.isRemembered {
                simulation.daemon.remember(peripheral, on: adapter.hardware.index)
            }
        }
    }

    /// Removes a peripheral: its link ends, it sends nothing more, and BlueZ removes its object after 30 seconds if no
    /// client ever connected to it.
    public func remove(_ address: VirtualAddress) { stage.decide { $0.linkLayer.remove(address) } }

    /// Changes the value of a characteristic without a notification; a read finds it.
    public func setValue(_ value: [UInt8], of characteristic: AttributeSelector, at address: VirtualAddress) {
        stage.decide { simulation in
            guard let found = simulation.linkLayer.characteristic(characteristic, at: address) else { return }
            simulation.linkLayer.setValue(value, of: found.valueHandle, at: address)
        }
    }

    /// Notifies or indicates a value of a peripheral, at most as much of it as the link's packets hold.
    ///
    /// - Returns: whether a central is subscribed over a link; if not, the value is only kept.
    @discardableResult
    public func notify(_ address: VirtualAddress, characteristic: AttributeSelector, value: [UInt8]) -> Bool {
        stage.decide { simulation in
            guard let found = simulation.linkLayer.characteristic(characteristic, at: address) else { return false }
            return simulation.linkLayer.notify(found, value, at: address)
        }
    }

    // MARK: Advertisements

    /// Sends an advertisement of a peripheral now, apart from its interval, with a strength in dBm or with that of its course.
    /// Nothing happens while no adapter scans, or if no peripheral has the address.
    public func simulateSighting(of address: VirtualAddress, rssi: Int? = nil) {
        let now = seconds
        guard var sighting = stage.look({ $0.linkLayer.radio.sender(address) })?.sighting(at: now) else { return }
        if let rssi { sighting.rssi = RSSICourse.nearest(to: rssi) }
        stage.decide { [sighting] in $0.receive([sighting]) }
    }

    /// Sends an advertisement of each peripheral, one after another and again, as fast as the bus carries the signals,
    /// until adapters have received `updates`. Nothing happens while no adapter scans.
    ///
    /// The strength changes from each advertisement of a peripheral to its next, by enough for a signal in any kind of
    /// scan. The next advertisements wait until the bus has taken the signals, so that memory stays flat. `finished` is called
    /// on the simulator's loop when the bus has taken the last one; not at all if bluetoothd is killed or the simulator ends
    /// before.
    public func simulateFlood(updates: Int, finished: @escaping @Sendable () -> Void = {}) {
        let now = seconds
        let sightings = stage.look { simulation in
            simulation.linkLayer.radio.peripherals.filter { !$0.isRemembered }
                .compactMap { simulation.linkLayer.radio.sender($0.address)?.sighting(at: now) }
        }
        guard !sightings.isEmpty, updates > 0 else { return stage.loop.post(finished) }
        let count = sightings.count
        // Never one peripheral twice in a group: its changes would become one signal.
        stage.flood(updates, group: min(count, 256), finished: finished) { simulation, places in
            simulation.receive(
                places.map { place in
                    var sighting = sightings[place % count]
                    // 10 dB: more than the 8 that a scan without filters waits for.
                    if place / count % 2 == 1 { sighting.rssi += sighting.rssi < -60 ? 10 : -10 }
                    sighting.seconds = simulation.now
                    return sighting
                })
        }
    }

    // MARK: Notifications

    /// A peripheral notifies `count` values as fast as the bus, or the socket that a client has acquired, carries them.
    ///
    /// Each value is its number from 0 on, little-endian, with zeros up to `size` bytes, 1 to 512; what does not fit the link's
    /// packets is cut. The next values wait until those before have been taken, so that memory stays flat, no value is lost,
    /// and their order is kept. Without a subscription no value is sent. `finished` is called as with
    /// ``simulateFlood(updates:finished:)``.
    public func simulateNotifications(
        count: Int, size: Int, of address: VirtualAddress, characteristic: AttributeSelector,
        finished: @escaping @Sendable () -> Void = {}
    ) {
        stage.flood(count, group: 128, waitsForSockets: true, finished: finished) { simulation, numbers in
            guard let found = simulation.linkLayer.characteristic(characteristic, at: address) else { return }
            for number in numbers {
                simulation.linkLayer.notify(found, NotificationSource.number(number, size: size), at: address)
            }
        }
    }
}

extension Stage {
    /// Sends advertisements or values from this position on in groups, each when the bus has taken the one before, and with
    /// `waitsForSockets` when acquired sockets have taken theirs too.
    fileprivate func flood(
        _ count: Int, from position: Int = 0, group: Int, waitsForSockets: Bool = false,
        finished: @escaping @Sendable () -> Void, _ send: @escaping @Sendable (inout Simulation, Range<Int>) -> Void
    ) {
        let next: @Sendable () -> Void = { [weak self] in
            guard let self else { return }
            guard position < count else { return finished() }
            let end = min(count, position + group)
            decide { send(&$0, position..<end) }
            // After the turn that sends this group, which `decide` has just posted.
            loop.post { [weak self] in
                self?.connection?.whenDrained { [weak self] in
                    self?.flood(
                        count, from: end, group: group, waitsForSockets: waitsForSockets, finished: finished, send)
                }
            }
        }
        if waitsForSockets { whenSocketsDrained(next) } else { loop.post(next) }
    }
}
