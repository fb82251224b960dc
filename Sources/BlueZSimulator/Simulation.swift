import Foundation

/// The state of a simulator: the radio, bluetoothd, and the effects that are to be executed. A pure value behind one lock.
struct Simulation: Sendable {
    var air = Air()
    var daemon: Daemon
    /// The controllers that are plugged in, also while bluetoothd does not run.
    var hardware: [VirtualAdapter]
    var statistics = Statistics()
    /// Whether bluetoothd runs.
    private(set) var isAlive = false
    /// A fault: the seconds by which every reply is delayed.
    var replyDelay: TimeInterval = 0
    /// Faults of the next calls, in the order in which they were set.
    private var callFaults: [CallFault] = []
    /// Decided and not yet executed.
    private var effects: [Effect] = []
    private var questions: [Question] = []

    init(hardware: [VirtualAdapter], room: Room, bluez: BlueZVersion) {
        self.hardware = hardware
        daemon = Daemon(version: bluez)
        for peripheral in room.peripherals { air.add(peripheral, behavior: nil) }
    }

    // MARK: The process

    /// Starts bluetoothd, with the devices that it has stored.
    mutating func startDaemon() {
        guard !isAlive else { return }
        isAlive = true
        daemon.restart(hardware, remembering: air.radio.peripherals)
        effects.append(.joinBus)
    }

    /// Ends bluetoothd without any signal.
    mutating func killDaemon() {
        guard isAlive else { return }
        isAlive = false
        daemon.forgetClients()
        air.silence()
        effects.append(.leaveBus)
    }

    // MARK: Calls

    mutating func addCallFault(_ fault: CallFault) {
        if fault.remaining > 0 { callFaults.append(fault) }
    }

    /// Takes the fault of a call that has come; nil if it has none.
    mutating func takeCallFault(of member: String) -> CallFault? {
        guard let place = callFaults.firstIndex(where: { $0.member == nil || $0.member == member }) else { return nil }
        let fault = callFaults[place]
        callFaults[place].remaining -= 1
        if fault.remaining == 1 { callFaults.remove(at: place) }
        return fault
    }

    // MARK: The loop

    /// The time of what is being done.
    var now: TimeInterval {
        get { air.now }
        set {
            air.now = newValue
            daemon.core.now = newValue
        }
    }

    /// Passes on what was decided. Advertisements are worked out only while an adapter scans.
    mutating func settle() {
        settleAir()
        if isAlive, daemon.discovery.isListening(daemon.core) {
            air.radio.beginListening(now: now)
        } else {
            air.radio.endListening()
        }
    }

    /// Passes orders to the radio and its events to bluetoothd, until there are no more of either.
    private mutating func settleAir() {
        while true {
            if isAlive { daemon.advertising.announce(&daemon.core) }
            let decided = daemon.core.takeEffects()
            let events = air.takeEvents()
            questions += air.takeQuestions()
            guard !decided.isEmpty || !events.isEmpty else { return }
            for effect in decided {
                switch effect {
                case .die: killDaemon()
                case .order(let order): air.take(order)
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
        settleAir()
        while true {
            let onAir = air.nextDeadline
            let alarm = isAlive ? daemon.core.alarms.next : nil
            guard let next = [onAir, alarm].compactMap({ $0 }).min(), next <= end else { return now = end }
            now = next
            if next == onAir { air.timePassed(to: next) } else { daemon.timePassed(to: next) }
            settleAir()
        }
    }

    /// Returns what is to be done now; if that is nothing, the signals that bluetoothd sends when it is idle.
    mutating func takeEffects() -> (effects: [Effect], questions: [Question]) {
        if effects.isEmpty, questions.isEmpty, isAlive {
            daemon.core.rest()
            effects = daemon.core.takeEffects()
        }
        defer {
            effects.removeAll(keepingCapacity: true)
            questions.removeAll(keepingCapacity: true)
        }
        for case .emit(let emission) in effects { statistics.record(signal: emission.member) }
        return (effects, questions)
    }

    /// Returns when the loop must run again; advertisements may wait for others until the end of a quantum.
    func nextDeadline(now: TimeInterval, quantum: TimeInterval) -> TimeInterval? {
        guard isAlive else { return nil }
        let utterance = air.radio.nextUtterance.map { max($0, now + quantum) }
        return [utterance, air.nextDeadline, daemon.core.alarms.next].compactMap { $0 }.min()
    }

    /// Passes advertisements to bluetoothd, each at its own time.
    mutating func hear(_ sightings: [Sighting]) {
        for sighting in sightings {
            daemon.timePassed(to: sighting.seconds)
            daemon.received(sighting)
        }
        statistics.sightings += sightings.count
    }
}

/// The fault of the next calls.
struct CallFault: Sendable {
    /// The method; nil for any.
    var member: String?
    /// The reply; nil for none.
    var error: DaemonError?
    /// The number of calls that are still to come.
    var remaining: Int
}
