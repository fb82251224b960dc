import BlueCapDBus
public import Foundation

/// Faults. In process they take effect when the loop is next driven.
extension Simulator {
    // MARK: Power

    /// Switches the adapter off, as another client or the desktop's settings do: BlueZ removes temporary devices, `Powered`
    /// and `Discovering` turn false, strengths become invalid, and every session and filter ends.
    public func simulatePowerOff(adapter index: Int = 0) {
        stage.decide { try? $0.daemon.switchPower(false, of: index) }
    }

    /// Switches the adapter on; a scan does not start again.
    public func simulatePowerOn(adapter index: Int = 0) {
        stage.decide { try? $0.daemon.switchPower(true, of: index) }
    }

    /// Blocks the adapter with rfkill, or unblocks it. While it is blocked it is off, and switching it on fails with
    /// `org.bluez.Error.Blocked`; BlueZ switches it on when it is unblocked.
    public func simulateRfkill(_ isBlocked: Bool, adapter index: Int = 0) {
        stage.decide { $0.daemon.setBlocked(isBlocked, on: index) }
    }

    // MARK: Adapters

    /// Unplugs the adapter: BlueZ removes its devices' objects, then its own.
    public func simulateAdapterRemoval(_ index: Int = 0) {
        stage.decide { simulation in
            simulation.hardware.removeAll { $0.index == index }
            simulation.daemon.removeAdapter(index)
        }
    }

    /// Plugs an adapter in; it replaces one with the same number.
    public func simulateAdapterAddition(_ adapter: VirtualAdapter = VirtualAdapter()) {
        simulateAdapterRemoval(adapter.index)
        stage.decide { simulation in
            simulation.hardware.append(adapter)
            guard simulation.isAlive else { return }
            simulation.daemon.addAdapter(adapter, remembering: simulation.linkLayer.radio.peripherals)
        }
    }

    // MARK: The daemon

    /// Kills bluetoothd: its name leaves the bus, calls under way get no reply from it, and no signal reports that
    /// its objects are gone.
    public func simulateDaemonDeath() { stage.decide { $0.killDaemon() } }

    /// Stops bluetoothd as its service does: it calls `Release` of each pairing agent, and ends as with
    /// ``simulateDaemonDeath()``.
    public func simulateDaemonStop() {
        stage.decide { $0.daemon.connections.agents.release(&$0.daemon.core) }
        stage.decide { $0.killDaemon() }
    }

    /// Starts bluetoothd again: `org.bluez` has a new owner, with its adapters on and the devices that it had stored,
    /// without a strength. Devices that were only discovered are gone, and so are sessions and filters.
    public func simulateDaemonReturn() { stage.decide { $0.startDaemon() } }

    /// Refuses every call from now on with `org.freedesktop.DBus.Error.AccessDenied`, as a bus with a stricter policy does,
    /// or accepts calls again. Signals are still sent, as they would be there.
    public func simulateAccessDenied(_ isDenied: Bool = true) {
        stage.decide { $0.daemon.core.faults.refusal = isDenied ? .accessDenied : nil }
    }

    /// Delays every reply by that many seconds from now on; 0 ends it. Signals are not delayed, and a reply has the state at
    /// the time of the call: a program that asks for all objects may get fewer than were signalled before the reply, which
    /// does not happen on a real bus. So leave adapters and daemon alone while replies are slow.
    public func simulateSlowReplies(by seconds: TimeInterval) { stage.decide { $0.replyDelay = max(0, seconds) } }

    // MARK: Calls

    /// Refuses the next `count` calls of a method, such as `Connect`. Faults of calls that were set before come first.
    ///
    /// If `member` is nil, it is the next calls of all interfaces, `GetManagedObjects` and those of
    /// `org.freedesktop.DBus.Properties` too.
    public func simulateRefusedCalls(
        _ count: Int = 1, of member: String? = nil, error: DaemonError = .failed("Operation failed")
    ) {
        stage.decide { $0.callFaults.append((member, error, remaining: count)) }
    }

    /// The next `count` calls of a method get no reply and have no effect, as with a daemon that hangs. The caller's own
    /// time limit ends them, 25 s with libdbus unless it has chosen another. `member` is as with
    /// ``simulateRefusedCalls(_:of:error:)``.
    public func simulateUnansweredCalls(_ count: Int = 1, of member: String? = nil) {
        stage.decide { $0.callFaults.append((member, error: nil, remaining: count)) }
    }

    // MARK: Discovery

    /// The next `count` attempts to start a discovery fail. BlueZ reports `InProgress` whatever the kernel's reason.
    public func simulateStartDiscoveryFailures(_ count: Int, error: DaemonError = .inProgress) {
        stage.decide { $0.daemon.core.faults.startDiscovery = Array(repeating: error, count: max(0, count)) }
    }

    /// Stops the scan although no client has asked for it; sessions stay. `Discovering` turns false if `isAnnounced`; if not,
    /// every property looks right and no device is discovered.
    public func simulateDiscoveryDeath(isAnnounced: Bool = true, adapter index: Int = 0) {
        stage.decide { $0.daemon.discovery.scanDied(on: index, isAnnounced: isAnnounced, &$0.daemon.core) }
    }

    /// Gives these properties of a device wrong types from now on; an empty set ends it.
    public func simulateWrongTypes(
        of address: VirtualAddress,
        properties: Set<String> = ["Name", "Alias", "RSSI", "UUIDs", "ManufacturerData", "Connected"]
    ) {
        stage.decide { $0.daemon.core.mistype(properties, of: address) }
    }

    // MARK: Connections

    /// Ends the link as if out of range: all requests over it fail. The address is that of a peripheral, of a
    /// ``VirtualCentral``, or of an adapter that serves, which loses all its links.
    public func simulateLinkLoss(of address: VirtualAddress) { simulateLinkLoss(of: address, reason: .timeout) }

    /// Ends the link for a reason, which BlueZ reports from 5.83 on; `.local` is for a link that BlueZ ends.
    public func simulateLinkLoss(of address: VirtualAddress, reason: LinkEndCause) {
        stage.decide { $0.linkLayer.drop(address, reason) }
    }

    /// Closes the sockets that bluetoothd has opened for the characteristics of a peripheral; the links stay up.
    public func simulateSocketLoss(of address: VirtualAddress) { stage.decide { $0.daemon.loseSockets(of: address) } }

    /// Takes a peripheral out of range, or back: while it is out its link ends, it is not discovered, and no connection to it
    /// comes up; an attempt under way succeeds if it is back in time. It keeps its values. Nothing happens if no peripheral has
    /// the address.
    public func simulateOutOfRange(_ isOut: Bool = true, of address: VirtualAddress) {
        stage.decide { $0.linkLayer.setAway(address, isOut) }
    }

    /// Weakens a peripheral at one adapter from now on, so that it can move between the adapters of a simulator.
    ///
    /// The adapter receives its advertisements with that much less strength. The `loss` is in dB, 0 to 147, or else the nearest
    /// bound; 0 ends it. Where less than -100 dBm are left, the adapter receives nothing of it: their link ends, and attempts
    /// to connect wait until it is stronger or their time is over. For links, its ``VirtualPeripheral/rssi`` counts at the time
    /// of this call and of the attempt, and not what its behaviour returns. Nothing happens if no peripheral has the address.
    public func simulateAttenuation(of address: VirtualAddress, by loss: Int, adapter index: Int = 0) {
        stage.decide { $0.linkLayer.setAttenuation(Limits.attenuation.nearest(to: loss), of: address, at: index) }
    }

    /// The next `count` attempts to connect fail, after the time that a connection takes; 0 or less lets the next one succeed.
    /// The `error` is the reply to `Connect`; BlueZ has one for all failures on its own side.
    public func simulateConnectFailures(
        _ count: Int, error: DaemonError = .failed("le-connection-abort-by-local"), of address: VirtualAddress
    ) {
        stage.decide { simulation in
            simulation.daemon.core.faults.connect[address] = Array(repeating: error, count: max(0, count))
            simulation.linkLayer.setFaults(of: address) { $0.refusals = max(0, count) }
        }
    }

    /// The next `count` links end that many seconds after `Connect` succeeded.
    public func simulateConnectReplyThenDrop(
        _ count: Int = 1, after delay: TimeInterval = 0, of address: VirtualAddress
    ) {
        setFaults(of: address) { ($0.drops, $0.dropDelay) = (max(0, count), max(0, delay)) }
    }

    /// `Connected` turns true without a signal from now on, or with one again. BlueZ leaves it out about every other time.
    public func simulateUntoldConnections(_ areUntold: Bool = true, of address: VirtualAddress) {
        stage.decide { $0.daemon.core.faults.silentConnections[address] = areUntold }
    }

    /// Of all connections from now on, that share fails, each in a way that is drawn from `seed`: refused, ended at
    /// once or after some requests or in a write, silent, late, without services. The same seed gives the same faults. The
    /// share is from 0, which ends it, to 1.
    public func simulateRandomFaults(seed: UInt64, share: Double = 0.5, of address: VirtualAddress) {
        setFaults(of: address) { $0 = PeripheralFaults(random: share > 0 ? (SeededGenerator(seed: seed), share) : nil) }
    }

    /// Ends the link in place of the response to the `requests`th request from now on. Subscriptions count too, and
    /// BlueZ's own requests to the battery service.
    public func simulateDropAfter(requests: Int, of address: VirtualAddress) {
        setFaults(of: address) { $0.requestsUntilDrop = max(1, requests) }
    }

    /// Ends the link during the next write, of which no byte is kept.
    public func simulateVanishingMidWrite(of address: VirtualAddress) {
        setFaults(of: address) { $0.vanishesInWrite = true }
    }

    // MARK: Responses

    /// Requests get no response from now on, or get one again; BlueZ ends a silent link after 30 seconds.
    public func simulateSilence(_ isSilent: Bool = true, of address: VirtualAddress) {
        setFaults(of: address) { $0.isSilent = isSilent }
    }

    /// Delays responses by that many seconds from now on; 0 ends it.
    public func simulateLateAnswers(by seconds: TimeInterval, of address: VirtualAddress) {
        setFaults(of: address) { $0.extraDelay = max(0, seconds) }
    }

    /// Reads return so many bytes more than there are, or fewer if negative, from now on; 0 ends it.
    public func simulateWrongLength(by difference: Int, of address: VirtualAddress) {
        setFaults(of: address) { $0.extraLength = difference }
    }

    private func setFaults(of address: VirtualAddress, _ body: (inout PeripheralFaults) -> Void) {
        stage.decide { $0.linkLayer.setFaults(of: address, body) }
    }

    /// Calls of methods of a device's characteristics and descriptors get no reply from now on, also if the link ends,
    /// and have no effect; or they get replies again. BlueZ 5.82 sends no reply to a read if pairing fails.
    public func simulateUnansweredAttributes(_ areUnanswered: Bool = true, of address: VirtualAddress) {
        stage.decide { $0.daemon.core.faults.unanswering[address] = areUnanswered }
    }

    // MARK: Services

    /// A discovery finds nothing from now on, and BlueZ still reports the services as resolved; or it finds them again.
    public func simulateUnresolvedServices(_ isUnresolved: Bool = true, of address: VirtualAddress) {
        setFaults(of: address) { $0.isUnresolved = isUnresolved }
    }

    /// The objects of a peripheral's attributes are late from the next connection on: new ones appear one by one, the first
    /// of them after `ServicesResolved`. A program that takes `ServicesResolved` for the end of the discovery misses them.
    /// Calls get no reply before the last object has appeared.
    ///
    /// The `seconds` are those between two objects, and from `ServicesResolved` to the first. With 0 all objects precede
    /// `ServicesResolved` again. In a file of virtual peripherals, `exportDelay` of the link is this fault from the beginning.
    public func simulateLateObjects(by seconds: TimeInterval = 0.005, of address: VirtualAddress) {
        setFaults(of: address) { $0.exportDelay = Limits.seconds.nearest(to: seconds) }
    }

    /// Gives a peripheral other services. If it is connected, BlueZ discovers them again: all its objects go, and those
    /// that it finds come; subscriptions end.
    public func simulateServicesChanged(of address: VirtualAddress, to services: [VirtualService]) {
        stage.decide { $0.linkLayer.setServices(services, of: address) }
    }

    // MARK: Pairing

    /// Removes the keys of a pairing with a peripheral or a ``VirtualCentral`` on one side, whose devices do not inform each
    /// other: the device forgets the adapters, or the adapters forget the device, which BlueZ still reports as bonded.
    public func simulateKeyLoss(of address: VirtualAddress, side: KeySide = .device) {
        stage.decide {
            $0.linkLayer.security.loseKeys(of: $0.linkLayer.identity(of: address), byDevice: side == .device)
        }
    }

    /// The next `count` pairings with a device fail, before any user is asked.
    public func simulatePairingFailures(
        _ count: Int = 1, reason: PairingFailure = .pairingNotSupported, of address: VirtualAddress
    ) {
        stage.decide { simulation in
            let identity = simulation.linkLayer.identity(of: address)
            simulation.linkLayer.security.failures[identity] = Array(repeating: reason, count: max(0, count))
        }
    }

    /// Another program, which is not on this bus, calls `Pair` for a device. It has no agent of its own, so that the default
    /// agent is asked: that of ``add(_:)`` with a ``VirtualAgent``, or that of a program on the bus.
    public func simulateForeignPairing(of address: VirtualAddress, adapter index: Int = 0) {
        stage.decide { simulation in
            try? simulation.daemon.connections.pair(
                DeviceKey(adapter: index, address: address), call: nil, client: nil, &simulation.daemon.core)
        }
    }

    /// Registers the agent of another program, such as a desktop's, which is not on this bus.
    public func add(_ agent: VirtualAgent) { stage.decide { $0.daemon.connections.agents.add(agent, &$0.daemon.core) } }

    /// Another program on this bus, which is not bluetoothd, calls `RequestAuthorization` of each agent, for a device of an
    /// adapter, which need not exist. `completion` is called on the simulator's loop for each agent, with the name of the
    /// D-Bus error; nil if the agent agreed.
    public func simulateAgentCall(
        about address: VirtualAddress, adapter index: Int = 0, completion: @escaping @Sendable (String?) -> Void
    ) {
        let device = Device.path(of: DeviceKey(adapter: index, address: address), "/org/bluez/hci\(index)")
        let agents = stage.look { $0.daemon.connections.agents.paths }
        let connection = Connection.open(.custom(stage.address), loop: stage.loop)
        for agent in agents {
            guard let path = ObjectPath(validating: agent.path) else { continue }
            let call = Message.call(
                destination: agent.client, path: path, interface: InterfaceName.agent, member: "RequestAuthorization"
            ) { $0.value(.objectPath(device)) }
            // The connection lasts as long as its calls.
            connection.call(call, timeout: 25) { result in
                withExtendedLifetime(connection) {}
                if case .failure(let error) = result { completion(error.name) } else { completion(nil) }
            }
        }
    }

    /// Removes a device's objects, as when another program removes the device, and its link and its keys with them. A `Connect` under way
    /// gets no reply, as with BlueZ.
    public func simulateDeviceRemoval(of address: VirtualAddress) {
        stage.decide { simulation in
            for key in simulation.daemon.core.tree.devices.keys.sorted() where key.address == address {
                simulation.daemon.removeWithKeys(key)
            }
        }
    }

    // MARK: Serving

    /// From now on bluetoothd crashes, as BlueZ does, if a central's link ends while a program has not answered a request of
    /// that central: five seconds after the request. It returns with ``simulateDaemonReturn()``.
    public func simulateDeathByAbandonedAnswers(_ dies: Bool = true) {
        stage.decide { $0.daemon.core.faults.diesOfAbandonedAnswers = dies }
    }

    /// The next `count` registrations of an application fail.
    public func simulateRegistrationFailures(
        _ count: Int, error: DaemonError = .failed("Failed to create entry in database")
    ) {
        stage.decide { $0.daemon.core.faults.registerApplication = Array(repeating: error, count: max(0, count)) }
    }

    /// The next `count` registrations of an advertisement fail, after its properties were read.
    public func simulateAdvertisementFailures(
        _ count: Int, error: DaemonError = .failed("Failed to register advertisement")
    ) {
        stage.decide { $0.daemon.core.faults.registerAdvertisement = Array(repeating: error, count: max(0, count)) }
    }

    /// From now on bluetoothd accepts `RegisterApplication` and `RegisterAdvertisement` and sends no reply to them; all other
    /// calls get theirs. `false` ends it: bluetoothd then executes, in their order, the registrations that it has accepted
    /// from clients that are still connected to the bus.
    public func simulateIgnoredRegistrations(_ areIgnored: Bool = true) {
        stage.decide { $0.daemon.ignoresRegistrations = areIgnored }
    }
}

/// One of the sides that have keys of a pairing.
public enum KeySide: Hashable, Sendable {
    /// The virtual device.
    case device
    /// The simulated adapter.
    case adapter
}
