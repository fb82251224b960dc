public import Foundation

/// What goes wrong. Each verb may be called on any thread; it takes effect on the simulator's loop, after what was asked
/// for before. In process that is when the loop is next driven.
extension Simulator {
    // MARK: Power

    /// The adapter is switched off, as by another client or in the desktop's settings: temporary devices go, `Powered`
    /// and `Discovering` turn false, strengths become invalid, every session and filter is gone.
    public func simulatePowerOff(adapter index: Int = 0) {
        stage.decide { $0.daemon.switchPower(false, of: index) }
    }

    /// The adapter is switched on; no scan comes back by itself.
    public func simulatePowerOn(adapter index: Int = 0) {
        stage.decide { $0.daemon.switchPower(true, of: index) }
    }

    /// rfkill holds the adapter off, or lets it go. While it holds, switching on fails with `org.bluez.Error.Blocked`;
    /// when it lets go, BlueZ switches on by itself.
    public func simulateRfkill(_ isBlocked: Bool, adapter index: Int = 0) {
        stage.decide { $0.daemon.setBlocked(isBlocked, on: index) }
    }

    // MARK: Adapters

    /// The adapter is pulled out: its devices' objects go, then its own.
    public func simulateAdapterRemoval(_ index: Int = 0) {
        stage.decide { simulation in
            simulation.hardware.removeAll { $0.index == index }
            simulation.daemon.removeAdapter(index)
        }
    }

    /// An adapter is plugged in, in the place of one with the same number.
    public func simulateAdapterAddition(_ adapter: VirtualAdapter = VirtualAdapter()) {
        stage.decide { simulation in
            simulation.daemon.removeAdapter(adapter.index)
            simulation.hardware.removeAll { $0.index == adapter.index }
            simulation.hardware.append(adapter)
            guard simulation.isAlive else { return }
            simulation.daemon.addAdapter(adapter, remembering: simulation.radio.peripherals)
        }
    }

    // MARK: The daemon

    /// The daemon is killed: its name leaves the bus, calls under way are never answered by it, and no signal says that
    /// its objects are gone.
    public func simulateDaemonDeath() {
        stage.decide { $0.killDaemon() }
    }

    /// The daemon is started again: a new owner of `org.bluez`, with its adapters on and the devices it had stored,
    /// unheard; those that were only heard are forgotten, and so are sessions and filters.
    public func simulateDaemonReturn() {
        stage.decide { $0.startDaemon() }
    }

    /// Every call is refused from now on, or taken again: `org.freedesktop.DBus.Error.AccessDenied`, as a bus with a
    /// stricter policy answers. Signals still come, as they would there.
    public func simulateAccessDenied(_ isDenied: Bool = true) {
        stage.decide { $0.daemon.refusal = isDenied ? .accessDenied : nil }
    }

    /// Every reply comes that many seconds late from now on; 0 ends it. Signals are not held back, and what a reply says is
    /// as it was when the call came: a program that asks for all objects meanwhile may be told less than it was signalled
    /// before, which a real bus never does. So leave adapters and daemon alone while replies are slow.
    public func simulateSlowReplies(by seconds: TimeInterval) {
        stage.decide { $0.replyDelay = max(0, seconds) }
    }

    // MARK: Calls

    /// The next `count` calls of a method are refused. Faults of calls that were asked for before come first.
    ///
    /// - Parameters:
    ///   - count: how many calls.
    ///   - member: the method, such as `Connect`; nil for all methods of all interfaces, `GetManagedObjects` and those of
    ///     `org.freedesktop.DBus.Properties` too.
    ///   - error: what is answered.
    public func simulateRefusedCalls(
        _ count: Int = 1, of member: String? = nil, error: DaemonError = .failed("Operation failed")
    ) {
        stage.decide { $0.addCallFault(CallFault(member: member, error: error, remaining: count)) }
    }

    /// The next `count` calls of a method get no reply and have no effect, as with a daemon that hangs. The caller's own
    /// time limit ends them, 25 s with libdbus unless it has chosen another.
    ///
    /// - Parameters:
    ///   - count: how many calls.
    ///   - member: the method, such as `Connect`; nil for all methods of all interfaces.
    public func simulateUnansweredCalls(_ count: Int = 1, of member: String? = nil) {
        stage.decide { $0.addCallFault(CallFault(member: member, error: nil, remaining: count)) }
    }

    // MARK: Discovery

    /// The next `count` attempts to start a discovery fail. `InProgress` is what BlueZ says whatever the kernel's reason.
    public func simulateStartDiscoveryFailures(_ count: Int, error: DaemonError = .inProgress) {
        stage.decide { $0.daemon.startFailures = Array(repeating: error, count: max(0, count)) }
    }

    /// The scan stops by itself, and no client has asked for it; sessions stay.
    ///
    /// - Parameters:
    ///   - isAnnounced: whether `Discovering` turns false. If not, everything looks well and nothing is heard.
    ///   - index: the adapter's number.
    public func simulateDiscoveryDeath(isAnnounced: Bool = true, adapter index: Int = 0) {
        stage.decide { simulation in
            guard isAnnounced else {
                simulation.daemon.adapters[index]?.isDeaf = true
                return
            }
            simulation.daemon.scanDied(on: index)
        }
    }

    /// The daemon writes these properties of a device with wrong types from now on; an empty set ends it.
    public func simulateWrongTypes(
        of address: VirtualAddress,
        properties: Set<String> = ["Name", "Alias", "RSSI", "UUIDs", "ManufacturerData", "Connected"]
    ) {
        stage.decide { $0.daemon.mistype(properties, of: address) }
    }
}
