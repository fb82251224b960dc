import Foundation

/// The advertisements that programs have registered: `LEAdvertisingManager1` (`src/advertising.c`).
struct Advertising: Sendable {
    private var records: [AdvertisementKey: AdvertisementRecord] = [:] { didSet { announcedChanges = nil } }
    /// The number of adapter changes that are announced; nil if the advertisements have changed since.
    private var announcedChanges: Int?

    var owners: [String] { records.values.map(\.owner) }

    /// In the order of their registration.
    private var all: [AdvertisementRecord] { records.values.sorted { $0.key.number < $1.key.number } }

    // MARK: Registration

    mutating func register(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let index = call.adapter
        guard record(call) == nil else { throw .alreadyExists }
        let taken = records.values.filter { $0.key.adapter == index }.map(\.instance)
        guard let instance = (1...Adapter.mostAdvertisements).first(where: { !taken.contains($0) }) else {
            throw .notPermitted("Maximum advertisements reached")
        }
        let key = AdvertisementKey(adapter: index, number: core.nextNumber())
        records[key] = AdvertisementRecord(
            key: key, owner: call.client, path: call.path(0), instance: instance, traits: core.traits,
            registration: call.id)
        updateCount(of: index, &core)
        // The object may be an object manager itself, though most are not.
        core.requestObjects(of: call) { $0.advertising.objectsCame(key, $1, &$0.core) }
    }

    mutating func unregister(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard let record = record(call) else { throw .doesNotExist }
        remove(record.key, &core)
        core.reply(call.id)
        if let registration = record.registration {
            core.fail(registration, .failed("Failed to complete registration"))
        }
    }

    mutating func objectsCame(_ key: AdvertisementKey, _ reply: ClientReply, _ core: inout Core) {
        guard let record = records[key] else { return }
        let object = reply.value?.objects?.first { $0.path == record.path }
        if let interface = object?.interfaces.first(where: { $0.name == InterfaceName.advertisement }) {
            return take(interface.properties, for: key, &core)
        }
        // If the properties cannot be read BlueZ goes on without any, which makes an empty broadcast.
        core.call(
            record.owner, record.path, InterfaceName.properties, "GetAll", [.string(InterfaceName.advertisement)],
            reply: .values
        ) { $0.advertising.take($1.value?.options ?? [], for: key, &$0.core) }
    }

    private mutating func take(_ properties: [NamedValue], for key: AdvertisementKey, _ core: inout Core) {
        guard var record = records[key], let call = record.registration,
            let adapter = core.tree.adapters[key.adapter]
        else { return }
        guard record.take(properties, of: adapter) else {
            return fail(key, call, .failed("Failed to parse advertisement."), &core)
        }
        // BlueZ passes on the transmission power that the kernel reports; most programs have no such property.
        core.setProperty(
            "TxPower", of: InterfaceName.advertisement, to: .int16(record.txPower ?? AdvertisementRecord.defaultPower),
            at: record.path, of: record.owner)
        if !core.faults.registerAdvertisement.isEmpty {
            return fail(key, call, core.faults.registerAdvertisement.removeFirst(), &core)
        }
        // The kernel accepts new ones only while the adapter is on.
        guard adapter.isPowered, record.advertisingData(from: adapter) != nil else {
            return fail(key, call, .failed("Failed to register advertisement"), &core)
        }
        record.registration = nil
        records[key] = record
        for property in ["Timeout", "DiscoverableTimeout"] { restartTimer(of: record, property, &core) }
        core.announceInstances(of: key.adapter)
        if core.traits.setsAdvertisementInstance, properties["Instance"] != nil {
            core.setProperty(
                "Instance", of: InterfaceName.advertisement, to: .byte(UInt8(record.instance)), at: record.path,
                of: record.owner)
        }
        core.reply(call)
    }

    private mutating func fail(_ key: AdvertisementKey, _ call: CallID, _ error: DaemonError, _ core: inout Core) {
        drop(key, &core)
        core.fail(call, error)
    }

    // MARK: Changes

    /// Properties of the object have changed: those that are accepted are sent at once.
    mutating func changed(
        at path: String, of client: String, _ changed: [NamedValue], _ invalidated: [String],
        _ core: inout Core
    ) {
        let news = changed.map { ($0.name, BusValue?.some($0.value)) } + invalidated.map { ($0, nil) }
        for var record in all where record.owner == client && record.path == path && record.registration == nil {
            guard let adapter = core.tree.adapters[record.key.adapter] else { continue }
            for (name, value) in news where AdvertisementRecord.properties.contains(name) {
                let before = record
                let isTaken = record.take(name, value, of: adapter)
                // The controller goes on with what it had if the new value is refused.
                if !isTaken || record.advertisingData(from: adapter) == nil { record = before }
                restartTimer(of: record, name, &core)
            }
            records[record.key] = record
        }
    }

    private func restartTimer(of record: AdvertisementRecord, _ name: String, _ core: inout Core) {
        switch name {
        case "Timeout": core.setAlarm(.endAdvertisement(record.key), after: record.timeout, if: record.timeout > 0)
        case "DiscoverableTimeout":
            core.setAlarm(
                .endAdvertisedDiscoverable(record.key), after: record.discoverableTimeout,
                if: record.isDiscoverableTimed)
        default: break
        }
    }

    // MARK: Removal

    /// The time of an advertisement is over: it is released and removed.
    mutating func timedOut(_ key: AdvertisementKey, _ core: inout Core) {
        if let record = records[key] { release(record, &core) }
        remove(key, &core)
    }

    mutating func discoverableEnded(_ key: AdvertisementKey) {
        records[key]?.isDiscoverableTimed = false
        records[key]?.data.clearFlags()
    }

    mutating func clientLeft(_ client: String, _ core: inout Core) {
        for record in all where record.owner == client { remove(record.key, &core) }
    }

    /// An adapter that is removed releases what is registered with it.
    mutating func removeAdapter(_ index: Int, _ core: inout Core) {
        for record in all where record.key.adapter == index {
            release(record, &core)
            drop(record.key, &core)
        }
    }

    private func release(_ record: AdvertisementRecord, _ core: inout Core) {
        core.call(record.owner, record.path, InterfaceName.advertisement, "Release", reply: .none)
    }

    private mutating func remove(_ key: AdvertisementKey, _ core: inout Core) {
        drop(key, &core)
        core.announceInstances(of: key.adapter)
    }

    private mutating func drop(_ key: AdvertisementKey, _ core: inout Core) {
        records[key] = nil
        core.alarms.remove(.endAdvertisement(key), .endAdvertisedDiscoverable(key))
        updateCount(of: key.adapter, &core)
    }

    private func record(_ call: MethodCall) -> AdvertisementRecord? {
        records.values.first { $0.key.adapter == call.adapter && $0.owner == call.client && $0.path == call.path(0) }
    }

    private func updateCount(of index: Int, _ core: inout Core) {
        let count = records.keys.count { $0.adapter == index }
        core.tree.adapters[index]?.advertisements = count
    }

    // MARK: The advertising data

    /// Returns what an adapter sends at the moment.
    func sent(by adapter: Adapter) -> [(record: AdvertisementRecord, data: [UInt8], scanResponse: [UInt8])] {
        guard adapter.isPowered else { return [] }
        return all.filter { $0.key.adapter == adapter.hardware.index && $0.registration == nil }.compactMap { record in
            record.advertisingData(from: adapter).map { (record, $0.data, $0.scanResponse) }
        }
    }

    /// Passes what each adapter sends to the link layer, if that can have changed.
    mutating func announce(_ core: inout Core) {
        // This runs in each turn, which changes neither adapters nor advertisements as a rule.
        guard announcedChanges != core.tree.adapterChanges else { return }
        announcedChanges = core.tree.adapterChanges
        core.order(.announce(core.tree.adapters.sorted { $0.key < $1.key }.map { announcement(of: $0.value) }))
    }

    private func announcement(of adapter: Adapter) -> HostAnnouncement {
        let sent = sent(by: adapter)
        return HostAnnouncement(
            adapter: adapter.hardware.index, address: adapter.hardware.address, name: adapter.hardware.name,
            isConnectable: sent.contains { $0.record.isPeripheral },
            reports: sent.map { sent in
                HostReport(
                    address: sent.record.ownAddress ?? adapter.hardware.address,
                    addressType: sent.record.ownAddress == nil ? .public : .random,
                    report: AdvertisingReport(
                        advertisingData: sent.data, scanResponse: sent.scanResponse,
                        isConnectable: sent.record.isPeripheral),
                    interval: sent.record.interval)
            },
            security: SecurityManager.Adapter(
                address: adapter.hardware.address, capability: adapter.capability, isBondable: adapter.isPairable))
    }
}
