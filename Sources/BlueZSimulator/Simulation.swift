import Foundation

/// Everything that a simulator is: the room, the daemon, and what is to be done next. A pure value behind one lock.
struct Simulation: Sendable {
    var radio = Radio()
    var daemon = Daemon()
    /// The controllers that are plugged in, whether the daemon lives or not.
    var hardware: [VirtualAdapter]
    var statistics = Statistics()
    /// Whether the daemon runs.
    private(set) var isAlive = false
    /// A fault: how many seconds every reply is held back.
    var replyDelay: TimeInterval = 0
    /// Decided and not yet done.
    private var effects: [Effect] = []

    init(hardware: [VirtualAdapter], room: Room) {
        self.hardware = hardware
        for peripheral in room.peripherals { radio.add(peripheral, behavior: nil, now: 0) }
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
        daemon.forgetClients()
        effects.append(.leaveBus)
    }

    // MARK: The loop

    /// After every decision: the radio is worked out only while somebody listens, and effects come in their order.
    mutating func settle(now: TimeInterval) {
        guard isAlive else {
            radio.endListening()
            return
        }
        effects += daemon.takeEffects()
        if daemon.isListening { radio.beginListening(now: now) } else { radio.endListening() }
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

    /// When the loop must come back by itself.
    mutating func nextDeadline() -> TimeInterval? {
        guard isAlive else { return nil }
        switch (radio.nextUtterance(), daemon.nextAlarm()) {
        case (let utterance?, let alarm?): return min(utterance, alarm)
        case (let utterance, let alarm): return utterance ?? alarm
        }
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
