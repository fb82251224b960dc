import Foundation

/// Discovery: sessions, one for each client's connection, and the one scan that they share.
extension Daemon {
    mutating func startDiscovery(on index: Int, by client: String, call: CallID) throws(DaemonError) {
        guard var adapter = adapters[index], adapter.isPowered else { throw .notReady }
        guard !adapter.scanning.contains(where: { $0.owner == client }) else { throw .inProgress }
        if !startFailures.isEmpty { throw startFailures.removeFirst() }

        let place = adapter.waiting.firstIndex { $0.owner == client }
        let session = place.map { adapter.waiting.remove(at: $0) } ?? DiscoverySession(owner: client)
        adapter.scanning.insert(session, at: 0)
        adapters[index] = adapter
        updateKernelFilter(of: index)
        // BlueZ answers when the kernel has begun, and only then says that it is discovering.
        reply(call)
        sayWhetherDiscovering(on: index)
    }

    mutating func stopDiscovery(on index: Int, by client: String, call: CallID) throws(DaemonError) {
        guard let adapter = adapters[index], adapter.isPowered else { throw .notReady }
        guard adapter.scanning.contains(where: { $0.owner == client }) else { throw .noDiscoveryStarted }
        if adapter.scanning.count > 1 {
            leave(client, on: index, keepingFilter: true)
            updateKernelFilter(of: index)
            reply(call)
            sayWhetherDiscovering(on: index)
        } else {
            setDiscoverableForDiscovery(false, on: index)
            reply(call)
            endScan(for: client, on: index, keepingFilter: true)
        }
    }

    mutating func setDiscoveryFilter(
        _ entries: [(key: String, value: FilterValue)], on index: Int, by client: String, call: CallID
    ) throws(DaemonError) {
        guard var adapter = adapters[index], adapter.isPowered else { throw .notReady }
        let filter = try DiscoveryFilter.parsed(entries, keys: traits.discoveryFilterKeys)

        if let place = adapter.scanning.firstIndex(where: { $0.owner == client }) {
            adapter.scanning[place].filter = filter
            adapters[index] = adapter
            updateKernelFilter(of: index)
        } else {
            let place = adapter.waiting.firstIndex { $0.owner == client }
            switch (place, filter) {
            case (let place?, .some): adapter.waiting[place].filter = filter
            case (let place?, nil): adapter.waiting.remove(at: place)
            case (nil, .some): adapter.waiting.insert(DiscoverySession(owner: client, filter: filter), at: 0)
            case (nil, nil): break
            }
            adapters[index] = adapter
        }
        reply(call)
        sayWhetherDiscovering(on: index)
    }

    /// A client has gone, scanning or not.
    ///
    /// BlueZ 5.66 goes through the same steps for a client that set a filter and does not scan: when exactly one other
    /// client scans, it stops that other's scan (`discovery_disconnect` to `discovery_stop`, which counts the scanning
    /// sessions and does not look whose they are). The other keeps its session and is told only by `Discovering`.
    mutating func endSession(of client: String, on index: Int) {
        guard let adapter = adapters[index],
            (adapter.scanning + adapter.waiting).contains(where: { $0.owner == client })
        else { return }
        if adapter.scanning.count > 1 {
            leave(client, on: index, keepingFilter: false)
            updateKernelFilter(of: index)
            sayWhetherDiscovering(on: index)
        } else {
            setDiscoverableForDiscovery(false, on: index)
            endScan(for: client, on: index, keepingFilter: false)
        }
    }

    /// The kernel's scan ends by itself, sessions stay: `Discovering` turns false with nobody having asked for it.
    mutating func scanDied(on index: Int) {
        adapters[index]?.kernelScans = false
        adapters[index]?.scansWithFilter = false
        setDiscovering(false, on: index)
    }

    // MARK: Steps

    private mutating func endScan(for client: String, on index: Int, keepingFilter: Bool) {
        leave(client, on: index, keepingFilter: keepingFilter)
        adapters[index]?.kernelScans = false
        adapters[index]?.scansWithFilter = false
        setDiscovering(false, on: index, evenIfUnchanged: true)
    }

    /// Takes a client's session away. One that stops and has a filter keeps the filter for the next time.
    private mutating func leave(_ client: String, on index: Int, keepingFilter: Bool) {
        guard var adapter = adapters[index] else { return }
        let session = (adapter.scanning + adapter.waiting).first { $0.owner == client }
        adapter.scanning.removeAll { $0.owner == client }
        adapter.waiting.removeAll { $0.owner == client }
        if keepingFilter, let session, session.filter != nil { adapter.waiting.insert(session, at: 0) }
        adapters[index] = adapter
        if adapter.scanning.isEmpty { cleanUpAfterDiscovery(on: index) }
    }

    /// Works out what the kernel is to pass on, and begins to scan again where that has changed.
    private mutating func updateKernelFilter(of index: Int) {
        guard var adapter = adapters[index] else { return }
        let merged = KernelFilter.merged(
            adapter.scanning, rule: traits.filterRule, adapter: adapter.hardware.transports)
        let unchanged = merged == adapter.kernelFilter && adapter.isDiscovering
        adapter.kernelFilter = merged
        if !unchanged {
            adapter.kernelScans = true
            adapter.scansWithFilter = merged != nil
            adapter.isDeaf = false
        }
        adapters[index] = adapter
        if adapter.scanning.contains(where: { $0.filter?.makesDiscoverable == true }) {
            setDiscoverableForDiscovery(true, on: index)
        }
    }

    /// Once the kernel's scan runs, says so; whether it runs is decided elsewhere.
    private mutating func sayWhetherDiscovering(on index: Int) {
        if adapters[index]?.kernelScans == true { setDiscovering(true, on: index) }
    }

    private mutating func setDiscovering(_ isDiscovering: Bool, on index: Int, evenIfUnchanged: Bool = false) {
        guard let before = adapters[index]?.isDiscovering, before != isDiscovering || evenIfUnchanged else { return }
        adapters[index]?.isDiscovering = isDiscovering
        outbox.changed(.adapter(.discovering), of: .adapter(index))
    }

    private mutating func setDiscoverableForDiscovery(_ wanted: Bool, on index: Int) {
        guard let adapter = adapters[index], adapter.isDiscoverableForDiscovery != wanted else { return }
        if wanted, adapter.isDiscoverable { return }
        adapters[index]?.isDiscoverableForDiscovery = wanted
        setDiscoverable(wanted, of: index)
    }

    /// After the last session: what was heard is not being heard any more, and what takes no connection is forgotten.
    mutating func cleanUpAfterDiscovery(on index: Int) {
        for key in (found.removeValue(forKey: index) ?? []).reversed() {
            guard let place = devices.index(forKey: key), devices.values[place].wasFound else { continue }
            devices.values[place].wasFound = false
            for property in devices.values[place].forgetStrength() {
                outbox.changed(.device(property), of: .device(key))
            }
        }
        let forgotten = devices.values.filter { $0.key.adapter == index && $0.isTemporary && !$0.isConnectable }
        for device in forgotten.sorted(by: { $0.sequence < $1.sequence }) { remove(device.key) }
    }
}
