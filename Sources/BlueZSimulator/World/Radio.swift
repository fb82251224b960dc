import Foundation

/// An advertisement as an adapter receives it.
struct Sighting: Sendable, Equatable {
    var address: VirtualAddress
    var addressType: AddressType
    var rssi: Int
    var report: AdvertisingReport
    /// The adapter that sent it; nil for a peripheral.
    var sender: Int?
    /// The time at which it was sent.
    var seconds: TimeInterval = 0
    /// What an adapter that has paired with the sender makes of its address.
    var privacy: VirtualPrivacy?
    /// What weakens it on the way to adapters, in dB by their numbers.
    var attenuation: [Int: Int] = [:]

    /// Returns what an adapter receives of it; nil if that is nothing.
    func received(by adapter: Int) -> Sighting? {
        guard let loss = attenuation[adapter] else { return self }
        guard let rssi = RSSICourse.weakened(rssi, by: loss) else { return nil }
        var weakened = self
        weakened.rssi = rssi
        return weakened
    }
}

/// What an adapter sends.
struct HostAnnouncement: Hashable, Sendable {
    var adapter: Int
    var address: VirtualAddress
    var name: String
    /// Whether one of its advertisements takes connections.
    var isConnectable: Bool
    var reports: [HostReport]
    var security: SecurityManager.Adapter
}

/// One advertisement of an adapter, with the address that it bears.
struct HostReport: Hashable, Sendable {
    var address: VirtualAddress
    var addressType: AddressType
    var report: AdvertisingReport
    /// In seconds.
    var interval: TimeInterval
}

/// The advertisements of virtual peripherals and of adapters, and their times. A pure value without bus and clock.
struct Radio: Sendable {
    struct Resident: Sendable {
        var peripheral: VirtualPeripheral
        /// Its advertisement as adapters report it, prepared once and shared by thousands of sightings.
        var report: AdvertisingReport
        var behavior: (any PeripheralBehavior)?
        /// The number of the adapter; nil for a peripheral.
        var adapter: Int?
        /// As in ``Sighting``.
        var attenuation: [Int: Int] = [:]

        /// Returns what adapters receive; nil if that is nothing. Calls the behaviour, so never under a lock.
        func sighting(at seconds: TimeInterval) -> Sighting? {
            var sighting = Sighting(
                address: peripheral.address, addressType: peripheral.addressType, rssi: 0, report: report,
                sender: adapter, seconds: seconds, privacy: peripheral.security.privacy, attenuation: attenuation)
            guard let behavior else {
                sighting.rssi = peripheral.rssi.rssi(at: seconds)
                return sighting
            }
            guard let rssi = behavior.rssi(of: peripheral, at: seconds) else { return nil }
            sighting.rssi = RSSICourse.nearest(to: rssi)
            let advertisement = behavior.advertisement(of: peripheral, at: seconds)
            if advertisement != peripheral.advertisement { sighting.report = AdvertisingReport(advertisement) }
            return sighting
        }
    }

    private(set) var residents: [VirtualAddress: Resident] = [:]
    private var order: [VirtualAddress] = []
    /// The advertisements of adapters, by the addresses that they bear.
    private var hosts: [VirtualAddress: [Resident]] = [:]
    /// The peripherals that do not advertise because they have a link, or are out of range.
    private var silent: Set<VirtualAddress> = []
    /// Nil while no adapter scans.
    private var schedule: DeadlineQueue<VirtualAddress>?

    /// In the order in which they were added.
    var peripherals: [VirtualPeripheral] { order.compactMap { residents[$0]?.peripheral } }

    /// Adds a peripheral, or changes the one with its address.
    mutating func add(_ peripheral: VirtualPeripheral, behavior: (any PeripheralBehavior)?, now: TimeInterval) {
        if residents[peripheral.address] == nil { order.append(peripheral.address) }
        residents[peripheral.address] = Resident(
            peripheral: peripheral, report: AdvertisingReport(peripheral.advertisement), behavior: behavior,
            attenuation: residents[peripheral.address]?.attenuation ?? [:])
        schedule?.remove(peripheral.address)
        plan(peripheral.address, atOrAfter: now)
    }

    mutating func remove(_ address: VirtualAddress) {
        guard residents.removeValue(forKey: address) != nil else { return }
        order.removeAll { $0 == address }
        schedule?.remove(address)
        silent.remove(address)
    }

    mutating func beginListening(now: TimeInterval) {
        guard schedule == nil else { return }
        schedule = DeadlineQueue()
        for address in order + hosts.keys.sorted() { plan(address, atOrAfter: now) }
    }

    mutating func endListening() { schedule = nil }

    /// The time of the next advertisement; nil if there is none or no adapter scans.
    var nextUtterance: TimeInterval? { schedule?.next }

    /// Returns the advertisements up to `now`, in order of time: at most `limit` at once, so that a loop that is late
    /// can do other work too. The next call returns the rest.
    mutating func utterances(
        upTo now: TimeInterval, limit: Int = 512
    ) -> [(resident: Resident, seconds: TimeInterval)] {
        var due: [(resident: Resident, seconds: TimeInterval)] = []
        while due.count < limit, let next = schedule?.popDue(at: now) {
            let sending = residents[next.key].map { [$0] } ?? hosts[next.key] ?? []
            guard !sending.isEmpty else { continue }
            due += sending.map { ($0, next.deadline) }
            // Later by the smallest step, which gives the next time of this peripheral's own grid.
            plan(next.key, atOrAfter: next.deadline + Limits.advertisingInterval.lowerBound / 2)
        }
        return due
    }

    /// Returns the peripheral with an address, or the first advertisement of an adapter that bears it.
    func sender(_ address: VirtualAddress) -> Resident? { residents[address] ?? hosts[address]?.first }

    // MARK: Adapters

    /// The kernel's default for the interval of an adapter (`le_adv_min_interval`), in seconds.
    static let hostInterval: TimeInterval = 1.28

    /// Replaces what an adapter sends; it is sent at once.
    mutating func announce(_ announcement: HostAnnouncement, now: TimeInterval) {
        withdraw(announcement.adapter)
        for report in announcement.reports {
            // The first time of its grid is now, whatever its address gives, and not a fraction earlier.
            let delay = SeededGenerator.fraction(of: report.address.value) * report.interval
            let sender = VirtualPeripheral(
                report.address, addressType: report.addressType, rssi: .constant(Self.hostStrength),
                interval: report.interval, appearsAfter: now - delay + 1e-6)
            hosts[report.address, default: []].append(
                Resident(peripheral: sender, report: report.report, adapter: announcement.adapter))
        }
        for address in Set(announcement.reports.map(\.address)).sorted() { plan(address, atOrAfter: now) }
    }

    /// Ends what an adapter sends; all of them, if none is given.
    mutating func withdraw(_ adapter: Int? = nil) {
        for (address, senders) in hosts where adapter == nil || senders.contains(where: { $0.adapter == adapter }) {
            hosts[address] = nil
            schedule?.remove(address)
        }
    }

    /// The strength of one adapter at another, in dBm.
    static let hostStrength = -50

    mutating func setAttenuation(_ loss: Int, of address: VirtualAddress, at adapter: Int) {
        residents[address]?.attenuation[adapter] = loss == 0 ? nil : loss
    }

    /// Returns whether an adapter receives a peripheral at `now`, by its course of strength.
    func reaches(_ address: VirtualAddress, _ adapter: Int, now: TimeInterval) -> Bool {
        guard let resident = residents[address], let loss = resident.attenuation[adapter] else { return true }
        return RSSICourse.weakened(resident.peripheral.rssi.rssi(at: now), by: loss) != nil
    }

    mutating func setSilent(_ address: VirtualAddress, _ isSilent: Bool, now: TimeInterval) {
        if isSilent {
            silent.insert(address)
            schedule?.remove(address)
        } else if silent.remove(address) != nil {
            plan(address, atOrAfter: now)
        }
    }

    private mutating func plan(_ address: VirtualAddress, atOrAfter seconds: TimeInterval) {
        guard schedule != nil, !silent.contains(address),
            let next = sender(address)?.peripheral.advertises(atOrAfter: seconds)
        else { return }
        schedule?.set(address, to: next)
    }
}
