import Foundation

/// Programs that advertise: `LEAdvertisingManager1` (`src/advertising.c`).
extension Daemon {
    /// So many advertisements an adapter of the simulator carries.
    static let mostAdvertisements = 3

    mutating func registerAdvertisement(
        at path: String, on index: Int, by client: String, call: CallID
    ) throws(DaemonError) {
        let others = advertisements[index] ?? []
        guard !others.contains(where: { $0.owner == client && $0.path == path }) else { throw .alreadyExists }
        let taken = Set(others.map(\.instance))
        guard let instance = (1...Self.mostAdvertisements).first(where: { !taken.contains($0) }) else {
            throw .notPermitted("Maximum advertisements reached")
        }
        advertisementNumber += 1
        let key = AdvertisementKey(adapter: index, number: advertisementNumber)
        advertisements[index, default: []].append(
            AdvertisementRecord(
                key, owner: client, path: path, instance: instance, stage: .asksObjects(call),
                isLowEnergyOnly: adapters[index]?.hardware.isLowEnergyOnly == true, traits: traits))
        // It may be an object manager itself, and most are not.
        callClient(
            client, path, InterfaceName.objectManager, "GetManagedObjects", form: .objects,
            for: .advertisementObjects(key))
    }

    mutating func unregisterAdvertisement(
        at path: String, on index: Int, by client: String, call: CallID
    ) throws(DaemonError) {
        let records = advertisements[index] ?? []
        guard let record = records.first(where: { $0.owner == client && $0.path == path }) else {
            throw .doesNotExist
        }
        removeAdvertisement(record.key)
        switch record.stage {
        case .asksObjects(let registration), .asksProperties(let registration):
            reply(call)
            fail(registration, .failed("Failed to complete registration"))
        case .registered: reply(call)
        }
    }

    // MARK: Registering

    mutating func advertisementObjectsCame(_ key: AdvertisementKey, _ answer: ClientReply) {
        guard let record = advertisement(key), case .asksObjects(let call) = record.stage else { return }
        if case .objects(let objects) = answer,
            let interface = objects.first(where: { $0.path == record.path })?.interfaces
                .first(where: { $0.name == InterfaceName.advertisement })
        {
            return take(interface.properties, for: key, call: call)
        }
        change(key) { $0.stage = .asksProperties(call) }
        callClient(
            record.owner, record.path, InterfaceName.properties, "GetAll", [.string(InterfaceName.advertisement)],
            form: .properties, for: .advertisementProperties(key))
    }

    /// Where they could not be read BlueZ goes on with none of them: that makes a broadcast that says nothing.
    mutating func advertisementPropertiesCame(_ key: AdvertisementKey, _ answer: ClientReply) {
        guard let record = advertisement(key), case .asksProperties(let call) = record.stage else { return }
        if case .properties(let properties) = answer {
            take(properties, for: key, call: call)
        } else {
            take([], for: key, call: call)
        }
    }

    private mutating func take(_ properties: [NamedValue], for key: AdvertisementKey, call: CallID) {
        guard var record = advertisement(key), let adapter = adapters[key.adapter] else { return }
        guard record.take(properties, adapterIsDiscoverable: adapter.isDiscoverable) else {
            return giveUp(key, call, .failed("Failed to parse advertisement."))
        }
        // The kernel says how strongly it will send, and BlueZ passes it on; most programs have no such property.
        callClient(
            record.owner, record.path, InterfaceName.properties, "Set",
            [
                .string(InterfaceName.advertisement), .string("TxPower"),
                .variant(.int16(record.txPower ?? Int16(Self.txPower))),
            ],
            form: .ignored, for: nil)
        let isRefused = !advertisementFailures.isEmpty
        let error = isRefused ? advertisementFailures.removeFirst() : .failed("Failed to register advertisement")
        // The kernel takes new ones only while it is on.
        guard !isRefused, adapter.isPowered, onAir(record) != nil else { return giveUp(key, call, error) }
        record.stage = .registered
        change(key) { $0 = record }
        if record.timeout > 0 { alarms.set(.endAdvertisement(key), to: now + TimeInterval(record.timeout)) }
        if record.isDiscoverableTimed {
            alarms.set(.endAdvertisedDiscoverable(key), to: now + TimeInterval(record.discoverableTimeout))
        }
        sayInstances(of: key.adapter)
        if traits.setsAdvertisementInstance, properties["Instance"] != nil {
            callClient(
                record.owner, record.path, InterfaceName.properties, "Set",
                [.string(InterfaceName.advertisement), .string("Instance"), .variant(.byte(UInt8(record.instance)))],
                form: .ignored, for: nil)
        }
        reply(call)
    }

    private mutating func giveUp(_ key: AdvertisementKey, _ call: CallID, _ error: DaemonError) {
        advertisements[key.adapter]?.removeAll { $0.key == key }
        fail(call, error)
    }

    // MARK: Changing and ending

    /// Properties of the object have changed: what can be taken goes on the air at once.
    mutating func advertisementChanged(
        at path: String, of client: String, _ changed: [NamedValue], _ invalidated: [String]
    ) {
        for record in advertisements.sorted(by: { $0.key < $1.key }).flatMap(\.value)
        where record.owner == client && record.path == path && record.stage == .registered {
            var record = record
            let isDiscoverable = adapters[record.key.adapter]?.isDiscoverable == true
            let news = changed.map { ($0.name, BusValue?.some($0.value)) } + invalidated.map { ($0, nil) }
            for (name, value) in news where AdvertisementRecord.properties.contains(name) {
                let before = record
                let isTaken = record.take(name, value, adapterIsDiscoverable: isDiscoverable)
                // The controller goes on with what it had where the new is refused.
                if !isTaken || onAir(record) == nil { record = before }
                restartTimer(of: record, name)
            }
            let settled = record
            change(record.key) { $0 = settled }
        }
    }

    private mutating func restartTimer(of record: AdvertisementRecord, _ name: String) {
        switch name {
        case "Timeout":
            if record.timeout > 0 {
                alarms.set(.endAdvertisement(record.key), to: now + TimeInterval(record.timeout))
            } else {
                alarms.remove(.endAdvertisement(record.key))
            }
        case "DiscoverableTimeout":
            if record.isDiscoverableTimed {
                alarms.set(
                    .endAdvertisedDiscoverable(record.key), to: now + TimeInterval(record.discoverableTimeout))
            } else {
                alarms.remove(.endAdvertisedDiscoverable(record.key))
            }
        default: break
        }
    }

    /// Its time is over: the program is told, and it goes.
    mutating func advertisementTimedOut(_ key: AdvertisementKey) {
        release(key)
        removeAdvertisement(key)
    }

    mutating func advertisedDiscoverableEnded(_ key: AdvertisementKey) {
        change(key) { record in
            record.isDiscoverableTimed = false
            record.data.clearFlags()
        }
    }

    private mutating func release(_ key: AdvertisementKey) {
        guard let record = advertisement(key) else { return }
        callClient(record.owner, record.path, InterfaceName.advertisement, "Release", form: .none, for: nil)
    }

    private mutating func removeAdvertisement(_ key: AdvertisementKey) {
        advertisements[key.adapter]?.removeAll { $0.key == key }
        alarms.remove(.endAdvertisement(key))
        alarms.remove(.endAdvertisedDiscoverable(key))
        sayInstances(of: key.adapter)
    }

    mutating func removeAdvertisements(of client: String) {
        for record in advertisements.values.joined().sorted(by: { $0.key.number < $1.key.number })
        where record.owner == client {
            removeAdvertisement(record.key)
        }
    }

    /// An adapter that goes releases what was registered with it.
    mutating func releaseAdvertisements(of index: Int) {
        for record in advertisements[index] ?? [] {
            release(record.key)
            alarms.remove(.endAdvertisement(record.key))
            alarms.remove(.endAdvertisedDiscoverable(record.key))
        }
        advertisements[index] = nil
    }

    private mutating func sayInstances(of index: Int) {
        guard adapters[index] != nil else { return }
        outbox.changed(.advertising(.supportedInstances), of: .advertising(index))
        outbox.changed(.advertising(.activeInstances), of: .advertising(index))
    }

    // MARK: On the air

    /// The bytes that the controller sends; nil where they are too many.
    func onAir(_ record: AdvertisementRecord) -> (data: [UInt8], scanResponse: [UInt8])? {
        guard let adapter = adapters[record.key.adapter] else { return nil }
        return record.onAir(
            adapterName: adapter.alias ?? adapter.hardware.name, adapterIsDiscoverable: adapter.isDiscoverable,
            txPower: record.txPower.map { Int8(clamping: $0) } ?? Self.txPower)
    }

    /// What a controller that is not told otherwise sends with, in dBm.
    static let txPower: Int8 = 0

    /// What an adapter sends at the moment, each of its advertisements with its bytes.
    func sent(by index: Int) -> [(record: AdvertisementRecord, data: [UInt8], scanResponse: [UInt8])] {
        guard adapters[index]?.isPowered == true else { return [] }
        return (advertisements[index] ?? []).filter { $0.stage == .registered }.compactMap { record in
            onAir(record).map { (record, $0.data, $0.scanResponse) }
        }
    }

    /// Tells the air what each adapter sends, where that has changed.
    mutating func announce() {
        // Asked at every turn, and nearly always there is nothing to say.
        guard mayHaveNews else { return }
        mayHaveNews = false
        for index in Set(adapters.keys).union(announced.keys).sorted() {
            let announcement = adapters[index].map { adapter in
                let sent = sent(by: index)
                return HostAnnouncement(
                    adapter: index, address: adapter.hardware.address, name: adapter.hardware.name,
                    isConnectable: sent.contains { $0.record.isConnectable },
                    reports: sent.map { sent in
                        HostReport(
                            address: sent.record.ownAddress ?? adapter.hardware.address,
                            addressType: sent.record.ownAddress == nil ? .public : .random,
                            report: AdvertisingReport(
                                onAir: sent.data, scanResponse: sent.scanResponse,
                                isConnectable: sent.record.isConnectable), interval: sent.record.interval)
                    })
            }
            guard announced[index] != announcement else { continue }
            if let before = announced[index], before.address != announcement?.address {
                order(.withdraw(before.address))
            }
            announced[index] = announcement
            if let announcement { order(.announce(announcement)) }
        }
    }

    // MARK: Looking

    func advertisement(_ key: AdvertisementKey) -> AdvertisementRecord? {
        advertisements[key.adapter]?.first { $0.key == key }
    }

    private mutating func change(_ key: AdvertisementKey, _ body: (inout AdvertisementRecord) -> Void) {
        guard let place = advertisements[key.adapter]?.firstIndex(where: { $0.key == key }) else { return }
        body(&advertisements[key.adapter]![place])
    }

    /// The manager's properties.
    func value(of property: AdvertisingProperty, on index: Int) -> BusValue {
        let count = advertisements[index]?.count ?? 0
        return switch property {
        case .activeInstances: .byte(UInt8(count))
        case .supportedInstances: .byte(UInt8(Self.mostAdvertisements - count))
        case .supportedIncludes: .strings(["tx-power", "appearance", "local-name"])
        case .supportedSecondaryChannels: .strings(["1M", "2M", "Coded"])
        case .supportedCapabilities:
            .options([
                NamedValue(name: "MinTxPower", value: .int16(-34)), NamedValue(name: "MaxTxPower", value: .int16(7)),
                NamedValue(name: "MaxAdvLen", value: .byte(UInt8(AdvertisingData.longestExtended))),
                NamedValue(name: "MaxScnRspLen", value: .byte(UInt8(AdvertisingData.longestExtended))),
            ])
        case .supportedFeatures: .strings(["CanSetTxPower", "HardwareOffload"])
        }
    }

}
