import Foundation

/// Discovery: a session for each client, the one scan of an adapter that they share, and the reports that it brings.
struct Discovery: Sendable {
    struct Scan: Sendable {
        /// The latest first.
        fileprivate(set) var sessions: [DiscoverySession] = []
        /// Nil is the scan without filters, which differs in what is reported and how.
        fileprivate var kernelFilter: KernelFilter?
        /// Whether the controller scans.
        fileprivate(set) var isRunning = false
        /// A fault: whether the scan reports nothing any more.
        fileprivate(set) var isDeaf = false
        /// Whether the adapter is discoverable only because a filter asks for it.
        fileprivate var makesDiscoverable = false

        /// Whether it brings reports.
        var isListening: Bool { isRunning && !isDeaf }
        var scanning: LazyFilterSequence<[DiscoverySession]> { sessions.lazy.filter(\.isScanning) }
    }

    /// The discovery of each adapter, by its number.
    var scans: [Int: Scan] = [:]

    var owners: [String] { scans.values.flatMap { $0.sessions.map(\.owner) } }

    /// Whether an adapter receives advertisements.
    func isListening(_ core: Core) -> Bool {
        scans.contains { $1.isListening && core.tree.adapters[$0]?.isPowered == true }
    }

    // MARK: Sessions

    mutating func start(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let index = call.adapter
        var scan = try powered(index, core)
        guard !scan.scanning.contains(where: { $0.owner == call.client }) else { throw .inProgress }
        if !core.faults.startDiscovery.isEmpty { throw core.faults.startDiscovery.removeFirst() }
        let filter = scan.remove(call.client)?.filter
        scan.sessions.insert(DiscoverySession(owner: call.client, filter: filter, isScanning: true), at: 0)
        scans[index] = scan
        updateKernelFilter(of: index, &core)
        // BlueZ replies when the kernel has started, and announces `Discovering` after that.
        core.reply(call.id)
        announceRunning(on: index, &core)
    }

    /// Returns the devices that are removed with the last session.
    mutating func stop(_ call: MethodCall, _ core: inout Core) throws(DaemonError) -> [DeviceKey] {
        let index = call.adapter
        let scan = try powered(index, core)
        guard scan.scanning.contains(where: { $0.owner == call.client }) else { throw .noDiscoveryStarted }
        return removeSession(of: call.client, on: index, stopping: call.id, &core)
    }

    mutating func setFilter(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let index = call.adapter
        var scan = try powered(index, core)
        let filter = try DiscoveryFilter.parsed(call.options(0), keys: core.traits.discoveryFilterKeys)
        if let place = scan.sessions.firstIndex(where: { $0.owner == call.client }) {
            scan.sessions[place].filter = filter
        } else {
            scan.sessions.insert(DiscoverySession(owner: call.client, filter: filter), at: 0)
        }
        scan.sessions.removeAll { !$0.isScanning && $0.filter == nil }
        scans[index] = scan
        if scan.scanning.contains(where: { $0.owner == call.client }) { updateKernelFilter(of: index, &core) }
        core.reply(call.id)
        announceRunning(on: index, &core)
    }

    private func powered(_ index: Int, _ core: Core) throws(DaemonError) -> Scan {
        guard core.tree.adapters[index]?.isPowered == true else { throw .notReady }
        return scans[index] ?? Scan()
    }

    /// Ends the session of a client that has left the bus, scanning or not. Returns the devices that are removed with
    /// the last session.
    ///
    /// BlueZ 5.66 takes the same steps for a client that set a filter and does not scan: if exactly one other client
    /// scans, it stops that other's scan (`discovery_disconnect` to `discovery_stop`, which counts the scanning sessions
    /// and ignores their owners). The other client keeps its session, and only `Discovering` shows what has happened.
    mutating func clientLeft(_ client: String, _ core: inout Core) -> [DeviceKey] {
        scans.sorted { $0.key < $1.key }.filter { $0.value.sessions.contains { $0.owner == client } }
            .flatMap { removeSession(of: client, on: $0.key, stopping: nil, &core) }
    }

    /// The kernel's scan ends on its own. Sessions stay; `Discovering` turns false unless the end goes unnoticed.
    mutating func scanDied(on index: Int, isAnnounced: Bool, _ core: inout Core) {
        guard isAnnounced else {
            scans[index]?.isDeaf = true
            return
        }
        scans[index]?.isRunning = false
        core.set(\.isDiscovering, to: false, of: index, announcing: .discovering)
    }

    /// The adapter goes off (`adapter_stop`): every session, every filter and the scan end. Returns the devices that are
    /// removed.
    mutating func adapterStopped(_ index: Int, _ core: inout Core) -> [DeviceKey] {
        let gone = forgetFound(on: index, &core)
        let makesDiscoverable = scans.updateValue(Scan(), forKey: index)?.makesDiscoverable == true
        core.tree.adapters[index]?.isDiscovering = false
        if makesDiscoverable { core.set(\.isDiscoverable, to: false, of: index, announcing: .discoverable) }
        core.announce(.discovering, of: index)
        return gone
    }

    /// A client has set `Discoverable`, which then does not depend on filters any more.
    mutating func discoverableWasSet(on index: Int) { scans[index]?.makesDiscoverable = false }

    // MARK: Steps

    /// Removes a client's session, but for a filter if the client has called to stop, and stops the scan with the last one.
    private mutating func removeSession(
        of client: String, on index: Int, stopping call: CallID?, _ core: inout Core
    ) -> [DeviceKey] {
        let isLast = scans[index]?.scanning.count ?? 0 <= 1
        if isLast { setDiscoverable(false, on: index, &core) }
        if let filter = scans[index]?.remove(client)?.filter, call != nil {
            scans[index]?.sessions.insert(DiscoverySession(owner: client, filter: filter), at: 0)
        }
        if !isLast { updateKernelFilter(of: index, &core) }
        if let call { core.reply(call) }
        guard isLast else {
            announceRunning(on: index, &core)
            return []
        }
        let gone = scans[index]?.scanning.isEmpty == true ? forgetFound(on: index, &core) : []
        scans[index]?.isRunning = false
        core.tree.adapters[index]?.isDiscovering = false
        core.announce(.discovering, of: index)
        return gone
    }

    /// Works out what the kernel passes on, and starts the scan again if that has changed.
    private mutating func updateKernelFilter(of index: Int, _ core: inout Core) {
        guard var scan = scans[index], let adapter = core.tree.adapters[index] else { return }
        let merged = KernelFilter.merged(
            Array(scan.scanning), countsEveryFilter: core.traits.countsEveryFilter,
            adapter: adapter.hardware.isLowEnergyOnly ? .lowEnergy : .both)
        if merged != scan.kernelFilter || !adapter.isDiscovering {
            scan.isRunning = true
            scan.isDeaf = false
        }
        scan.kernelFilter = merged
        scans[index] = scan
        if scan.scanning.contains(where: { $0.filter?.makesDiscoverable == true }) {
            setDiscoverable(true, on: index, &core)
        }
    }

    private func announceRunning(on index: Int, _ core: inout Core) {
        guard scans[index]?.isRunning == true else { return }
        core.set(\.isDiscovering, to: true, of: index, announcing: .discovering)
    }

    private mutating func setDiscoverable(_ isDiscoverable: Bool, on index: Int, _ core: inout Core) {
        guard scans[index]?.makesDiscoverable == !isDiscoverable else { return }
        if isDiscoverable, core.tree.adapters[index]?.isDiscoverable == true { return }
        scans[index]?.makesDiscoverable = isDiscoverable
        core.set(\.isDiscoverable, to: isDiscoverable, of: index, announcing: .discoverable)
    }

    /// After the last session: the strengths of the devices that were found are forgotten. Returns the devices to remove:
    /// those that are temporary and take no connections.
    private func forgetFound(on index: Int, _ core: inout Core) -> [DeviceKey] {
        let devices = core.tree.devices(of: index)
        let found = devices.compactMap { device in device.foundNumber.map { (device.key, $0) } }
        for (key, _) in found.sorted(by: { $0.1 > $1.1 }) {
            let changed = core.change(key) { device in
                device.foundNumber = nil
                return device.forgetStrength()
            }
            for property in changed ?? [] { core.announce(property, of: key) }
        }
        return devices.filter { $0.isTemporary && !$0.isConnectable }.map(\.key)
    }

    // MARK: Reports

    /// An advertisement reaches the adapters.
    mutating func received(_ sighting: Sighting, _ core: inout Core) {
        for index in scans.keys.sorted() { received(sighting, on: index, &core) }
    }

    /// An advertisement reaches one adapter (`btd_adapter_update_found_device`, in its order).
    private mutating func received(_ sent: Sighting, on index: Int, _ core: inout Core) {
        // An adapter does not receive what it sends.
        guard let sighting = sent.received(by: index), let scan = scans[index], sighting.sender != index,
            scan.isListening, let adapter = core.tree.adapters[index], adapter.isPowered, adapter.isDiscovering,
            scan.kernelFilter?.passes(sighting) ?? true
        else { return }

        var key = DeviceKey(adapter: index, address: sighting.address)
        if let identity = sighting.privacy?.identity {
            let known = DeviceKey(adapter: index, address: identity)
            if core.tree.devices[known]?.isBonded == true { key = known }
        }
        let isDiscoverable = scan.isDiscoverable(sighting)
        if core.tree.devices[key] == nil {
            guard isDiscoverable else { return }
            core.addDevice(key, sighting.addressType)
        }
        core.change(key) { $0.isConnectable = sighting.report.isConnectable }
        core.forgetLater(key)

        guard isDiscoverable else { return }
        if scan.kernelFilter != nil {
            // The search ends at the first session that takes everything, and compares nothing for those after it.
            let comparing = scan.scanning.prefix { $0.filter?.uuids.isEmpty == false }
            if core.traits.diesOfUUIDFilters, !comparing.isEmpty, !sighting.report.uuids.isEmpty {
                return core.perform(.die)
            }
            guard scan.matches(sighting) else { return }
        }
        // Whether `RSSI` is announced even if it is the same.
        let repeatsStrength =
            scan.kernelFilter != nil
            && (!core.traits.repeatsStrengthByProximityOnly
                || scan.scanning.contains { $0.filter?.rssi != nil || $0.filter?.pathloss != nil })
        let longestField = core.traits.longestField
        let foundNumber = scan.scanning.isEmpty ? nil : core.nextNumber()
        let changed = core.change(key) { device in
            if device.foundNumber == nil { device.foundNumber = foundNumber }
            return device.take(
                sighting, smallestChange: repeatsStrength ? 0 : 8, longestField: longestField,
                repeatingData: scan.scanning.contains { $0.filter?.reportsDuplicateData == true })
        }
        for property in changed ?? [] { core.announce(property, of: key) }
    }
}

extension Discovery.Scan {
    fileprivate mutating func remove(_ client: String) -> DiscoverySession? {
        sessions.firstIndex { $0.owner == client }.map { sessions.remove(at: $0) }
    }

    /// Whether the device counts as discoverable (`device_is_discoverable`): with a filter each device does, without one
    /// only those whose flags say so. The pattern of one client hides other devices from all clients.
    fileprivate func isDiscoverable(_ sighting: Sighting) -> Bool {
        let patterns = scanning.compactMap { $0.filter?.pattern }
        guard !patterns.isEmpty else { return kernelFilter != nil || sighting.report.isDiscoverable }
        let address = sighting.address.description
        return patterns.contains { pattern in
            address.hasPrefix(pattern) || sighting.report.name?.hasPrefix(pattern) == true || pattern.isEmpty
        }
    }

    /// Whether a session takes the report (`is_filter_match`).
    ///
    /// The strength and the path loss are compared only if both were asked for, which no filter can have. For RSSI BlueZ
    /// relies on the kernel's merged filter, and a path loss filters nothing.
    fileprivate func matches(_ sighting: Sighting) -> Bool {
        scanning.contains { session in
            guard let filter = session.filter else { return true }
            return filter.uuids.isEmpty || sighting.report.uuids.contains(where: filter.uuids.contains)
        }
    }
}

/// A client's part in an adapter's discovery; it ends with the client's connection to the bus at the latest.
struct DiscoverySession: Hashable, Sendable {
    /// The client's unique name.
    var owner: String
    var filter: DiscoveryFilter?
    /// False for a client that has set a filter only.
    var isScanning = false
}
