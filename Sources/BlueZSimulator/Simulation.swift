import Foundation

/// Everything that a simulator is: the room, the daemon, and what is to be done next. A pure value behind one lock.
struct Simulation: Sendable {
    var radio = Radio()
    var air = Air()
    var daemon: Daemon
    /// The controllers that are plugged in, whether the daemon lives or not.
    var hardware: [VirtualAdapter]
    var statistics = Statistics()
    /// Whether the daemon runs.
    private(set) var isAlive = false
    /// A fault: how many seconds every reply is held back.
    var replyDelay: TimeInterval = 0
    /// Faults: what becomes of the next calls, in the order in which they were asked for.
    private var callFaults: [CallFault] = []
    /// Decided and not yet done.
    private var effects: [Effect] = []

    init(hardware: [VirtualAdapter], room: Room, bluez: BlueZVersion) {
        self.hardware = hardware
        daemon = Daemon(version: bluez)
        for peripheral in room.peripherals { add(peripheral, behavior: nil, now: 0) }
    }

    mutating func add(_ peripheral: VirtualPeripheral, behavior: (any PeripheralBehavior)?, now: TimeInterval) {
        radio.add(peripheral, behavior: behavior, now: now)
        air.add(peripheral, behavior: behavior, now: now)
    }

    mutating func remove(_ address: VirtualAddress, now: TimeInterval) {
        radio.remove(address)
        air.remove(address, now: now)
    }

    // MARK: The process

    /// The daemon starts: it has what it stored, and goes to the bus.
    mutating func startDaemon() {
        guard !isAlive else { return }
        isAlive = true
        daemon.restart(hardware, remembering: radio.peripherals)
        effects.append(.joinBus)
    }

    /// The daemon ends, from one moment to the next: nobody hears a word.
    mutating func killDaemon() {
        guard isAlive else { return }
        isAlive = false
        let abandoned = daemon.serverLinks.sorted { $0.key < $1.key }.map(\.value.end)
        daemon.forgetClients()
        radio.withdrawAll()
        for case .virtual(let number) in abandoned { effects.append(.central(number, .disconnected)) }
        air.silence()
        effects.append(.leaveBus)
    }

    // MARK: Calls

    mutating func addCallFault(_ fault: CallFault) {
        if fault.remaining > 0 { callFaults.append(fault) }
    }

    /// What goes wrong with a call that has come; nil if nothing does.
    mutating func takeCallFault(of member: String) -> CallFault? {
        guard let place = callFaults.firstIndex(where: { $0.member == nil || $0.member == member }) else { return nil }
        let fault = callFaults[place]
        callFaults[place].remaining -= 1
        if fault.remaining == 1 { callFaults.remove(at: place) }
        return fault
    }

    // MARK: The loop

    /// After every decision: the radio is worked out only while somebody listens, and effects come in their order.
    mutating func settle(now: TimeInterval) {
        guard isAlive else {
            settleAir(now: now)
            radio.endListening()
            return
        }
        settleAir(now: now)
        if daemon.isListening { radio.beginListening(now: now) } else { radio.endListening() }
    }

    /// Takes orders to the air and what comes of them back, until neither has anything to say.
    private mutating func settleAir(now: TimeInterval) {
        while true {
            if isAlive { daemon.announce() }
            let decided = daemon.takeEffects()
            let events = air.takeEvents()
            for question in air.takeQuestions() { effects.append(.ask(question)) }
            guard !decided.isEmpty || !events.isEmpty else { return }
            for effect in decided {
                if case .die = effect {
                    killDaemon()
                    continue
                }
                guard case .order(let order) = effect else {
                    effects.append(effect)
                    continue
                }
                switch order {
                case .announce(let announcement): radio.announce(announcement, now: now)
                case .withdraw(let address): radio.withdraw(address)
                default: break
                }
                air.take(order, now: now)
            }
            for event in events {
                switch event {
                case .linkUp(let key, _) where air.hosts[key.address] == nil: radio.setBusy(key.address, true, now: now)
                case .linkDown(let key, _): radio.setBusy(key.address, false, now: now)
                default: break
                }
                if isAlive { daemon.take(event, now: now) }
            }
        }
    }

    /// Time has passed: what fell due happens, in its order and each thing at its time.
    mutating func timePassed(to now: TimeInterval) {
        settleAir(now: now)
        while true {
            let inTheAir = air.nextDeadline()
            let alarm = isAlive ? daemon.nextAlarm() : nil
            guard let next = [inTheAir, alarm].compactMap({ $0 }).min(), next <= now else { return }
            if next == inTheAir { _ = air.timePassed(to: next) } else { daemon.timePassed(to: next) }
            settleAir(now: next)
        }
    }

    /// A behaviour has answered.
    mutating func take(_ verdict: Verdict, now: TimeInterval) {
        air.take(verdict, now: now)
    }

    /// Whether there is anything for the loop to do.
    var isUnsettled: Bool { !effects.isEmpty || !daemon.outbox.isEmpty }

    /// What is to be done now; when that is nothing, what the daemon says when it rests.
    mutating func takeEffects() -> [Effect] {
        if effects.isEmpty, isAlive {
            daemon.rest()
            effects = daemon.takeEffects()
        }
        defer { effects.removeAll(keepingCapacity: true) }
        for case .emit(let emission) in effects { statistics.record(signal: emission.member) }
        return effects
    }

    /// When the loop must come back by itself; advertisements may wait for others until the end of a quantum.
    mutating func nextDeadline(now: TimeInterval, quantum: TimeInterval) -> TimeInterval? {
        guard isAlive else { return nil }
        let utterance = radio.nextUtterance().map { max($0, now + quantum) }
        return [utterance, air.nextDeadline(), daemon.nextAlarm()].compactMap { $0 }.min()
    }

    /// Advertisements are heard, each at its own time.
    mutating func hear(_ sightings: [(seconds: TimeInterval, sighting: Sighting)]) {
        for (seconds, sighting) in sightings {
            daemon.timePassed(to: seconds)
            daemon.hear(sighting, now: seconds)
        }
        statistics.sightings += sightings.count
    }
}

/// What goes wrong with the next calls.
struct CallFault: Sendable {
    /// The method; nil for any.
    var member: String?
    /// What is answered; nil for nothing.
    var error: DaemonError?
    /// How many calls are to come.
    var remaining: Int
}
