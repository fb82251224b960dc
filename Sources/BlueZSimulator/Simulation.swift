import Foundation

/// The state of a simulator: the link layer, bluetoothd, and the effects to execute. A pure value behind one lock.
struct Simulation: Sendable {
    var linkLayer = LinkLayer()
    var daemon: Daemon
    /// The controllers that are plugged in, also while bluetoothd does not run.
    var hardware: [VirtualAdapter]
    var statistics = Statistics()
    /// Whether bluetoothd runs.
    private(set) var isAlive = false
    /// A fault: the seconds by which every reply is delayed.
    var replyDelay: TimeInterval = 0
    /// Faults of the next calls, in the order in which they were set: the method, nil for any; the reply, nil for none; and the
    /// number of calls that are still to come.
    var callFaults: [(member: String?, error: DaemonError?, remaining: Int)] = []
    /// Decided and not yet executed.
    private var effects: [Effect] = []

    init(hardware: [VirtualAdapter], room: Room, bluez: BlueZVersion) {
        self.hardware = hardware
        daemon = Daemon(version: bluez)
        for peripheral in room.peripherals { linkLayer.add(peripheral, behavior: nil) }
    }

    /// The adapters on the bus, by their number; none while bluetoothd does not run.
    var adapters: [Adapter] {
        isAlive ? daemon.core.tree.adapters.values.sorted { $0.hardware.index < $1.hardware.index } : []
    }

    // MARK: The process

    /// Starts bluetoothd, with the devices that it has stored.
    mutating func startDaemon() {
        guard !isAlive else { return }
        isAlive = true
        daemon.restart(hardware, remembering: linkLayer.radio.peripherals)
        effects.append(.connectToBus)
    }

    /// Ends bluetoothd without any signal.
    mutating func killDaemon() {
        guard isAlive else { return }
        isAlive = false
        daemon.forgetClients()
        linkLayer.silence()
        effects.append(.disconnectFromBus)
    }

    // MARK: Calls

    /// Passes a call to bluetoothd, unless it has a fault.
    mutating func receive(_ call: MethodCall) {
        statistics.record(call, seconds: now)
        callFaults.removeAll { $0.remaining <= 0 }
        guard let place = callFaults.firstIndex(where: { $0.member == nil || $0.member == call.member }) else {
            statistics.recordFilter(of: call)
            return daemon.receive(call)
        }
        callFaults[place].remaining -= 1
        if let error = callFaults[place].error { daemon.core.fail(call.id, error) }
    }

    // MARK: The loop

    /// The time of what is being done.
    var now: TimeInterval {
        get { linkLayer.now }
        set {
            linkLayer.now = newValue
            daemon.core.now = newValue
        }
    }

    /// Passes on what was decided. Advertisements are worked out only while an adapter scans.
    mutating func settle() {
        settleLinkLayer()
        if isAlive, daemon.discovery.isListening(daemon.core) {
            linkLayer.radio.beginListening(now: now)
        } else {
            linkLayer.radio.endListening()
        }
    }

    /// Passes commands to the link layer and its events to bluetoothd, until there are no more of either.
    private mutating func settleLinkLayer() {
        while true {
            if isAlive { daemon.advertising.announce(&daemon.core) }
            let decided = daemon.core.takeEffects()
            let events = linkLayer.takeEvents()
            guard !decided.isEmpty || !events.isEmpty else { return }
            for effect in decided {
                switch effect {
                case .die: killDaemon()
                case .order(let order): linkLayer.take(order)
                default: effects.append(effect)
                }
            }
            for event in events {
                if case .central(let end, let news) = event, case .virtual = end {
                    effects.append(.central(end, news))
                } else if isAlive {
                    daemon.take(event)
                }
            }
        }
    }

    /// Does what has fallen due, in its order and each thing at its time.
    mutating func timePassed(to end: TimeInterval) {
        now = end
        settleLinkLayer()
        while true {
            let linkDeadline = linkLayer.nextDeadline
            let alarm = isAlive ? daemon.core.alarms.next : nil
            guard let next = [linkDeadline, alarm].compactMap({ $0 }).min(), next <= end else { return now = end }
            now = next
            if next == linkDeadline { linkLayer.timePassed(to: next) } else { daemon.timePassed(to: next) }
            settleLinkLayer()
        }
    }

    /// Returns what is to be done now; if that is nothing, the signals that bluetoothd sends when it is idle.
    mutating func takeEffects() -> (effects: [Effect], questions: [Question]) {
        let questions = linkLayer.takeQuestions()
        if effects.isEmpty, questions.isEmpty, isAlive {
            daemon.core.rest()
            effects = daemon.core.takeEffects()
        }
        defer { effects.removeAll(keepingCapacity: true) }
        for case .emit(let emission) in effects { statistics.record(signal: emission.member) }
        return (effects, questions)
    }

    /// Returns when the loop must run again; advertisements may wait for others until the end of a quantum.
    func nextDeadline(now: TimeInterval, quantum: TimeInterval) -> TimeInterval? {
        guard isAlive else { return nil }
        let utterance = linkLayer.radio.nextUtterance.map { max($0, now + quantum) }
        return [utterance, linkLayer.nextDeadline, daemon.core.alarms.next].compactMap { $0 }.min()
    }

    /// Passes advertisements to bluetoothd, each at its own time.
    mutating func receive(_ sightings: [Sighting]) {
        for sighting in sightings {
            daemon.timePassed(to: sighting.seconds)
            daemon.received(sighting)
        }
        statistics.sightings += sightings.count
    }
}
