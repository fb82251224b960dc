public import Foundation

/// Links and attributes: what a test looks at and makes happen.
extension Simulator {
    // MARK: Looking

    /// The links that are up, in the order of their addresses, at the central's end; those of ``VirtualCentral``s, which
    /// have none, are left out.
    public var links: [LinkState] {
        stage.look { simulation in
            let betweenAdapters = simulation.air.hostLinks.filter(\.value.isUp).map { key, link in
                let database = simulation.daemon.databases[link.server.adapter]
                return LinkState(
                    adapter: key.adapter, address: key.address, requests: link.requestCount,
                    subscriptions: link.subscriptions.keys.sorted().compactMap {
                        database?.characteristic($0 + 1)?.uuid
                    })
            }
            let toPeripherals: [LinkState] = simulation.air.peers.values.compactMap { peer in
                guard case .linked(let link) = peer.state else { return nil }
                let subscriptions = link.subscriptions.keys.sorted().compactMap { handle in
                    peer.table.targets[handle + 1]?.characteristic.uuid
                }
                return LinkState(
                    adapter: link.key.adapter, address: link.key.address, requests: link.requestCount,
                    subscriptions: subscriptions)
            }
            return (betweenAdapters + toPeripherals).sorted {
                ($0.address, $0.adapter) < ($1.address, $1.adapter)
            }
        }
    }

    /// What a characteristic of a peripheral holds; nil where there is none.
    public func value(of characteristic: AttributeSelector, at address: VirtualAddress) -> [UInt8]? {
        stage.look { simulation in
            guard let peer = simulation.air.peers[address], let found = peer.table.characteristic(characteristic) else {
                return nil
            }
            return peer.values[found.valueHandle]
        }
    }

    /// The clients that have a session of notifications with a characteristic, by their unique names, in their order;
    /// also those that are not in effect because there is no link.
    public func subscriptions(to characteristic: AttributeSelector, at address: VirtualAddress) -> [String] {
        stage.look { simulation in
            guard let found = simulation.air.peers[address]?.table.characteristic(characteristic) else { return [] }
            return simulation.daemon.tables.sorted { $0.key < $1.key }.filter { $0.key.address == address }
                .flatMap { $0.value.characteristics[found.handle]?.clients ?? [] }.map(\.owner)
        }
    }

    // MARK: Values

    /// The value of a characteristic is this from now on. Nobody is told; a read finds it.
    public func setValue(_ value: [UInt8], of characteristic: AttributeSelector, at address: VirtualAddress) {
        stage.decide { simulation in
            guard let found = simulation.air.peers[address]?.table.characteristic(characteristic) else { return }
            simulation.air.setValue(value, ofHandle: found.valueHandle, at: address)
        }
    }

    /// A peripheral notifies or indicates a value, at most as much of it as the link's packets hold.
    ///
    /// - Returns: whether somebody is subscribed over a link; if not, the value is only kept.
    @discardableResult
    public func notify(
        _ address: VirtualAddress, characteristic: AttributeSelector, value: [UInt8]
    ) -> Bool {
        stage.decide { simulation in
            guard let found = simulation.air.peers[address]?.table.characteristic(characteristic) else { return false }
            return simulation.air.notify(found.handle, value, at: address)
        }
    }

    // MARK: Faults of a connection

    /// The link falls, as out of range: all that was asked over it fails. The address is that of a peripheral, of a
    /// ``VirtualCentral``, or of an adapter that serves, whose links all fall.
    public func simulateLinkLoss(of address: VirtualAddress) {
        simulateLinkLoss(of: address, reason: .timeout)
    }

    /// The link falls for a reason, which BlueZ reports from 5.83 on.
    ///
    /// - Parameters:
    ///   - address: of a peripheral of the room, a central, or an adapter that serves.
    ///   - reason: why; `.local` is for a link that BlueZ ends.
    public func simulateLinkLoss(of address: VirtualAddress, reason: LinkEndCause) {
        let now = seconds
        stage.decide { $0.air.drop(address, reason, now: now) }
    }

    /// The daemon closes the sockets that it gave for the characteristics of a peripheral; the links stay up.
    public func simulateSocketLoss(of address: VirtualAddress) {
        stage.decide { $0.daemon.loseSockets(of: address) }
    }

    /// A peripheral is out of range, or back: while it is out its link falls, it is not discovered, and no connection to it
    /// comes up; one that is being tried comes up when it is back in time. It keeps its values.
    ///
    /// - Parameters:
    ///   - isOut: whether it is out of range from now on.
    ///   - address: whose; nothing happens if no peripheral of the room has it.
    public func simulateOutOfRange(_ isOut: Bool = true, of address: VirtualAddress) {
        let now = seconds
        stage.decide { simulation in
            simulation.radio.setAway(address, isOut, now: now)
            simulation.air.setAway(address, isOut, now: now)
        }
    }

    /// The next `count` attempts to connect fail, after what a connection takes.
    ///
    /// - Parameters:
    ///   - count: how many attempts; 0 or less lets the next one succeed.
    ///   - error: what `Connect` is answered; BlueZ has one word for all that goes wrong on its own side.
    ///   - address: the address of the peripheral.
    public func simulateConnectFailures(
        _ count: Int, error: DaemonError = .failed("le-connection-abort-by-local"), of address: VirtualAddress
    ) {
        stage.decide { simulation in
            simulation.daemon.connectFailures[address] = Array(repeating: error, count: max(0, count))
            simulation.air.setFaults(of: address) { $0.refusals = max(0, count) }
        }
    }

    /// The next `count` links fall again by themselves, that many seconds after `Connect` was answered with success.
    public func simulateConnectReplyThenDrop(
        _ count: Int = 1, after delay: TimeInterval = 0, of address: VirtualAddress
    ) {
        stage.decide { simulation in
            simulation.air.setFaults(of: address) { faults in
                faults.drops = max(0, count)
                faults.dropDelay = max(0, delay)
            }
        }
    }

    /// `Connected` turns true without a signal from now on, or with one again. BlueZ leaves it out about every other time.
    public func simulateUntoldConnections(_ areUntold: Bool = true, of address: VirtualAddress) {
        stage.decide { simulation in
            if areUntold {
                simulation.daemon.untoldConnections.insert(address)
            } else {
                simulation.daemon.untoldConnections.remove(address)
            }
        }
    }

    /// Of all connections from now on, that share goes wrong, each in a way that is drawn from `seed`: refused, fallen at
    /// once or after some requests or in a write, silent, late, without services. The same seed brings the same faults.
    ///
    /// - Parameters:
    ///   - seed: what the faults are drawn from.
    ///   - share: from 0, which ends it, to 1.
    ///   - address: the address of the peripheral.
    public func simulateRandomFaults(seed: UInt64, share: Double = 0.5, of address: VirtualAddress) {
        stage.decide { $0.air.setRandomFaults(share > 0 ? RandomFaults(seed: seed, share: share) : nil, of: address) }
    }

    /// The link falls in the place of the response to the `requests`th request from now on. Subscriptions count too, and
    /// what BlueZ reads of a battery by itself.
    public func simulateDropAfter(requests: Int, of address: VirtualAddress) {
        stage.decide { simulation in
            simulation.air.setFaults(of: address) { $0.requestsUntilDrop = max(1, requests) }
        }
    }

    /// The link falls during the next write, of which nothing is kept.
    public func simulateVanishingMidWrite(of address: VirtualAddress) {
        stage.decide { simulation in simulation.air.setFaults(of: address) { $0.vanishesInWrite = true } }
    }

    // MARK: Faults of responses

    /// Requests get no response from now on, or get one again; BlueZ gives a silent link up after 30 seconds.
    public func simulateSilence(_ isSilent: Bool = true, of address: VirtualAddress) {
        stage.decide { simulation in simulation.air.setFaults(of: address) { $0.isSilent = isSilent } }
    }

    /// Responses come that many seconds later than they would from now on; 0 ends it.
    public func simulateLateAnswers(by seconds: TimeInterval, of address: VirtualAddress) {
        stage.decide { simulation in simulation.air.setFaults(of: address) { $0.extraDelay = max(0, seconds) } }
    }

    /// Reads give so many bytes more than there are, or fewer where negative, from now on; 0 ends it.
    public func simulateWrongLength(by difference: Int, of address: VirtualAddress) {
        stage.decide { simulation in simulation.air.setFaults(of: address) { $0.extraLength = difference } }
    }

    /// Calls of methods of a device's characteristics and descriptors are not answered from now on, also if the link falls,
    /// and have no effect; or they are answered again. BlueZ 5.82 leaves a read unanswered if pairing fails.
    public func simulateUnansweredAttributes(_ areUnanswered: Bool = true, of address: VirtualAddress) {
        stage.decide { simulation in
            if areUnanswered {
                simulation.daemon.unanswering.insert(address)
            } else {
                simulation.daemon.unanswering.remove(address)
            }
        }
    }

    // MARK: Faults of services

    /// Discovery finds nothing from now on, and BlueZ calls the services resolved all the same; or finds them again.
    public func simulateUnresolvedServices(_ isUnresolved: Bool = true, of address: VirtualAddress) {
        stage.decide { simulation in simulation.air.setFaults(of: address) { $0.isUnresolved = isUnresolved } }
    }

    /// A peripheral has other services from now on. Where it is connected BlueZ is told: all its objects go, and those
    /// that it finds come; subscriptions are gone with them.
    public func simulateServicesChanged(of address: VirtualAddress, to services: [VirtualService]) {
        let now = seconds
        stage.decide { $0.air.setServices(services, of: address, now: now) }
    }

    /// A device's objects go, as when another program removes it, and its link with them. Whoever waits for its
    /// connection is never answered, as with BlueZ.
    public func simulateDeviceRemoval(of address: VirtualAddress) {
        stage.decide { simulation in
            for key in simulation.daemon.devices.keys.sorted() where key.address == address {
                simulation.daemon.remove(key)
            }
        }
    }
}

/// A link that is up.
public struct LinkState: Hashable, Sendable {
    /// The number in `hciN`.
    public var adapter: Int
    public var address: VirtualAddress
    /// How many requests have come over it that want a response.
    public var requests: Int
    /// The UUIDs of the characteristics that are subscribed to, in the order of their handles.
    public var subscriptions: [String]
}
