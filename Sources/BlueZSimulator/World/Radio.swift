import Foundation

/// One advertisement as it reaches an adapter.
struct Sighting: Sendable, Equatable {
    var address: VirtualAddress
    var addressType: AddressType
    var rssi: Int
    var report: AdvertisingReport
    /// The adapter that sent it; nil for a peripheral.
    var sender: Int?
}

/// The air of the room: who is in it, and who speaks when. A pure value; it knows neither buses nor clocks.
struct Radio: Sendable {
    struct Resident: Sendable {
        var peripheral: VirtualPeripheral
        /// What its advertisement says, prepared once: thousands of sightings share it.
        var report: AdvertisingReport
        var behavior: (any PeripheralBehavior)?
        /// The number of the adapter that it is; nil for a peripheral.
        var adapter: Int?
    }

    /// Somebody speaks, at a time.
    struct Utterance: Sendable {
        var resident: Resident
        var seconds: TimeInterval

        /// What is heard of it; asks the behaviour, so never under a lock. Nil when nothing is.
        func sighting() -> Sighting? {
            let peripheral = resident.peripheral
            guard let behavior = resident.behavior else {
                return Sighting(
                    address: peripheral.address, addressType: peripheral.addressType,
                    rssi: peripheral.rssi.rssi(at: seconds), report: resident.report, sender: resident.adapter)
            }
            guard let rssi = behavior.rssi(of: peripheral, at: seconds).map(RSSICourse.nearest) else { return nil }
            let advertisement = behavior.advertisement(of: peripheral, at: seconds)
            return Sighting(
                address: peripheral.address, addressType: peripheral.addressType, rssi: rssi,
                report: advertisement == peripheral.advertisement ? resident.report : AdvertisingReport(advertisement))
        }
    }

    private(set) var residents: [VirtualAddress: Resident] = [:]
    private var order: [VirtualAddress] = []
    /// Adapters that advertise, by the addresses under which they do, each with all that is sent under it.
    private var hosts: [VirtualAddress: [Resident]] = [:]
    /// By its own address, the addresses that an adapter speaks under.
    private var hostAddresses: [VirtualAddress: Set<VirtualAddress>] = [:]
    /// Those that are connected to, and do not advertise meanwhile.
    private var busy: Set<VirtualAddress> = []
    /// Those that are out of range.
    private var away: Set<VirtualAddress> = []
    private var schedule = DeadlineQueue<VirtualAddress>()
    /// Whether anybody listens; nobody's advertisements are worked out while none does.
    private(set) var isListening = false

    /// In the order they came in.
    var peripherals: [VirtualPeripheral] { order.compactMap { residents[$0]?.peripheral } }

    /// Takes a peripheral in, or changes the one with its address.
    mutating func add(_ peripheral: VirtualPeripheral, behavior: (any PeripheralBehavior)?, now: TimeInterval) {
        if residents[peripheral.address] == nil { order.append(peripheral.address) }
        residents[peripheral.address] = Resident(
            peripheral: peripheral, report: AdvertisingReport(peripheral.advertisement), behavior: behavior)
        schedule.remove(peripheral.address)
        plan(peripheral.address, atOrAfter: now)
    }

    /// Takes a peripheral out; it is not heard again.
    @discardableResult
    mutating func remove(_ address: VirtualAddress) -> Bool {
        guard residents.removeValue(forKey: address) != nil else { return false }
        order.removeAll { $0 == address }
        schedule.remove(address)
        away.remove(address)
        return true
    }

    /// From now on, somebody listens.
    mutating func beginListening(now: TimeInterval) {
        guard !isListening else { return }
        isListening = true
        for address in order + hosts.keys.sorted() { plan(address, atOrAfter: now) }
    }

    /// Nobody listens any more.
    mutating func endListening() {
        isListening = false
        schedule.removeAll()
    }

    /// When somebody speaks next; nil when nobody does or nobody listens.
    mutating func nextUtterance() -> TimeInterval? { schedule.next() }

    /// Who has spoken up to `now`, in order of time. At most `limit` at once, so that a loop that fell behind still
    /// gets to its other work; the rest is there when asked again.
    mutating func utterances(upTo now: TimeInterval, limit: Int = 512) -> [Utterance] {
        var heard: [Utterance] = []
        while heard.count < limit, let due = schedule.popDue(at: now) {
            let speaking = residents[due.key].map { [$0] } ?? hosts[due.key] ?? []
            guard !speaking.isEmpty else { continue }
            heard += speaking.map { Utterance(resident: $0, seconds: due.deadline) }
            // The smallest step later finds the next place on this peripheral's own grid.
            plan(due.key, atOrAfter: due.deadline + Limits.advertisingInterval.lowerBound / 2)
        }
        return heard
    }

    /// What `address` sends at `now`, asked for out of turn.
    func utterance(of address: VirtualAddress, now: TimeInterval) -> Utterance? {
        (residents[address] ?? hosts[address]?.first).map { Utterance(resident: $0, seconds: now) }
    }

    // MARK: Adapters

    /// How often an adapter speaks by the kernel's default (`le_adv_min_interval`), in seconds.
    static let hostInterval: TimeInterval = 1.28

    /// What an adapter sends from now on; it is heard at once.
    mutating func announce(_ announcement: HostAnnouncement, now: TimeInterval) {
        withdraw(announcement.address)
        for report in announcement.reports {
            let address = report.address
            hostAddresses[announcement.address, default: []].insert(address)
            // Its first place in the grid is now, whatever its address makes of it; and not a bit before.
            let delay = SeededGenerator.fraction(of: address.value) * report.interval
            let speaker = VirtualPeripheral(
                address, addressType: report.addressType, rssi: .constant(Self.hostStrength),
                interval: report.interval, appearsAfter: now - delay + 1e-6)
            hosts[address, default: []].append(
                Resident(peripheral: speaker, report: report.report, adapter: announcement.adapter))
        }
        for address in (hostAddresses[announcement.address] ?? []).sorted() { plan(address, atOrAfter: now) }
    }

    /// The adapter with this address of its own says nothing any more.
    mutating func withdraw(_ adapter: VirtualAddress) {
        for address in hostAddresses.removeValue(forKey: adapter) ?? [] {
            hosts[address] = nil
            schedule.remove(address)
        }
    }

    mutating func withdrawAll() {
        for adapter in hostAddresses.keys.sorted() { withdraw(adapter) }
    }

    /// How strongly one adapter is heard by another, in dBm.
    static let hostStrength = -50

    /// A peripheral is connected to, or no longer is: while it is, it does not advertise.
    mutating func setBusy(_ address: VirtualAddress, _ isBusy: Bool, now: TimeInterval) {
        if isBusy {
            busy.insert(address)
            schedule.remove(address)
        } else if busy.remove(address) != nil {
            plan(address, atOrAfter: now)
        }
    }

    /// A peripheral goes out of range, or comes back.
    mutating func setAway(_ address: VirtualAddress, _ isAway: Bool, now: TimeInterval) {
        guard residents[address] != nil else { return }
        if isAway {
            away.insert(address)
            schedule.remove(address)
        } else if away.remove(address) != nil {
            plan(address, atOrAfter: now)
        }
    }

    private mutating func plan(_ address: VirtualAddress, atOrAfter seconds: TimeInterval) {
        guard isListening, !busy.contains(address), !away.contains(address),
            let next = (residents[address] ?? hosts[address]?.first)?.peripheral.advertises(atOrAfter: seconds)
        else { return }
        schedule.set(address, to: next)
    }
}
