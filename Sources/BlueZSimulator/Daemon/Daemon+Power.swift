import Foundation

/// Adapters: their properties, their power, their coming and going.
extension Daemon {
    mutating func setAdapterProperty(
        _ name: String, to value: BusValue?, of index: Int, call: CallID, now: TimeInterval
    ) throws(DaemonError) {
        guard let property = AdapterProperty(rawValue: name), traits.adapterProperties.contains(property) else {
            throw .noSuchProperty(name)
        }
        guard property.isWritable else { throw .notWritable(name) }
        guard let adapter = adapters[index], let value, value.signature == adapter.value(of: property).signature else {
            throw .invalidSignature(name)
        }
        switch (property, value) {
        case (.powered, .bool(let isOn)):
            try setPowered(isOn, of: index, call: call)
        case (.alias, .string(let alias)):
            try setAlias(alias.isEmpty ? nil : alias, of: index, call: call)
        case (.discoverable, .bool(let wanted)):
            if adapter.discoverableTimeout > 0, !adapter.isPowered { throw .failed("Not Powered") }
            adapters[index]?.isDiscoverableForDiscovery = false
            reply(call)
            setDiscoverable(wanted, of: index)
            if wanted, adapter.discoverableTimeout > 0 {
                alarms.set(.endDiscoverable(index), to: now + TimeInterval(adapter.discoverableTimeout))
            } else {
                alarms.remove(.endDiscoverable(index))
            }
        case (.discoverableTimeout, .uint32(let seconds)):
            adapters[index]?.discoverableTimeout = seconds
            try changeAfterReply(property, of: index, call: call)
        case (.pairable, .bool(let wanted)):
            reply(call)
            guard adapter.isPairable != wanted else { return }
            adapters[index]?.isPairable = wanted
            outbox.changed(.adapter(property), of: .adapter(index))
        case (.connectable, .bool(let wanted)):
            reply(call)
            guard adapter.isConnectable != wanted else { return }
            adapters[index]?.isConnectable = wanted
            outbox.changed(.adapter(property), of: .adapter(index))
        case (.pairableTimeout, .uint32(let seconds)):
            adapters[index]?.pairableTimeout = seconds
            try changeAfterReply(property, of: index, call: call)
        default:
            throw .invalidSignature(name)
        }
    }

    private mutating func changeAfterReply(
        _ property: AdapterProperty, of index: Int, call: CallID
    ) throws(DaemonError) {
        reply(call)
        outbox.changed(.adapter(property), of: .adapter(index))
    }

    private mutating func setAlias(_ alias: String?, of index: Int, call: CallID) throws(DaemonError) {
        reply(call)
        guard adapters[index]?.alias != alias else { return }
        adapters[index]?.alias = alias
        outbox.changed(.adapter(.alias), of: .adapter(index))
    }

    mutating func setDiscoverable(_ isDiscoverable: Bool, of index: Int) {
        guard let adapter = adapters[index], adapter.isDiscoverable != isDiscoverable else { return }
        adapters[index]?.isDiscoverable = isDiscoverable
        outbox.changed(.adapter(.discoverable), of: .adapter(index))
    }

    /// A client switches the adapter. Off: the temporary devices go first, then the reply, then the rest.
    private mutating func setPowered(_ isOn: Bool, of index: Int, call: CallID) throws(DaemonError) {
        guard let adapter = adapters[index] else { throw .doesNotExist }
        guard adapter.isPowered != isOn else { return reply(call) }
        if isOn, adapter.isBlocked { throw .blocked }
        setPowerState(isOn ? .enabling : .disabling, of: index)
        if !isOn {
            removeTemporaryDevices(of: index)
            endLinks(of: index)
        }
        reply(call)
        powerChanged(to: isOn, on: index)
    }

    private mutating func setPowerState(_ state: Adapter.PowerState, of index: Int) {
        guard let before = adapters[index]?.powerState, before != state else { return }
        adapters[index]?.powerState = state
        guard traits.adapterProperties.contains(.powerState) else { return }
        outbox.changed(.adapter(.powerState), of: .adapter(index))
    }

    /// Another client, which is not on this bus to be seen, switches the adapter.
    mutating func switchPower(_ isOn: Bool, of index: Int) {
        guard let adapter = adapters[index], adapter.isPowered != isOn, !(isOn && adapter.isBlocked) else { return }
        if !isOn { removeTemporaryDevices(of: index) }
        powerChanged(to: isOn, on: index)
    }

    /// The adapter went off or on by other hands than a client's.
    mutating func powerChanged(to isOn: Bool, on index: Int) {
        guard let adapter = adapters[index], adapter.isPowered != isOn else { return }
        if !isOn { endLinks(of: index) }
        adapters[index]?.isPowered = isOn
        outbox.changed(.adapter(.powered), of: .adapter(index))
        setPowerState(isOn ? .on : adapter.isBlocked ? .blocked : .off, of: index)
        if !isOn { stop(index) }
        outbox.changed(.adapter(.deviceClass), of: .adapter(index))
        refreshWatches()
    }

    /// rfkill holds the adapter off; when it lets go, BlueZ switches on again by itself (`AutoEnable`).
    mutating func setBlocked(_ isBlocked: Bool, on index: Int) {
        adapters[index]?.isBlocked = isBlocked
        if !isBlocked, adapters[index]?.isPowered == false {
            setPowerState(.enabling, of: index)
            flush()
        }
        powerChanged(to: !isBlocked, on: index)
    }

    /// What ends with the power (`adapter_stop`): every session and every filter, the scan, and what was heard.
    private mutating func stop(_ index: Int) {
        adapters[index]?.scanning = []
        adapters[index]?.waiting = []
        cleanUpAfterDiscovery(on: index)
        adapters[index]?.kernelFilter = nil
        adapters[index]?.kernelScans = false
        adapters[index]?.scansWithFilter = false
        adapters[index]?.isDeaf = false
        adapters[index]?.isDiscovering = false
        if adapters[index]?.isDiscoverableForDiscovery == true {
            adapters[index]?.isDiscoverableForDiscovery = false
            setDiscoverable(false, of: index)
        }
        outbox.changed(.adapter(.discovering), of: .adapter(index))
    }

    /// An adapter is plugged in, with the devices that BlueZ remembers of it.
    mutating func addAdapter(_ hardware: VirtualAdapter, remembering peripherals: [VirtualPeripheral]) {
        adapters[hardware.index] = Adapter(hardware, version: version)
        databases[hardware.index] = AttributeDatabase(
            name: hardware.name, hasAddressResolution: traits.hasAddressResolution, version: version)
        outbox.added(.adapter(hardware.index))
        for peripheral in peripherals where peripheral.isRemembered { remember(peripheral, on: hardware.index) }
    }

    /// An adapter is pulled out: its devices go first, then itself.
    mutating func removeAdapter(_ index: Int) {
        guard let adapter = adapters[index] else { return }
        for application in applications.values.filter({ $0.adapter == index }).sorted(by: {
            $0.id.number < $1.id.number
        }) {
            removeApplication(application.id)
        }
        releaseAdvertisements(of: index)
        databases[index] = nil
        for device in devices.values.filter({ $0.key.adapter == index }).sorted(by: { $0.sequence < $1.sequence }) {
            remove(device.key)
        }
        found[index] = nil
        sayRemoved(.adapter(index), path: adapter.path, interfaces: interfacesOfAdapter)
        adapters[index] = nil
        alarms.remove(.endDiscoverable(index))
        refreshWatches()
    }

    /// The process ends without a word: sessions, filters and whatever was only heard are gone; what was stored is
    /// there again when it starts, unheard.
    mutating func restart(_ hardware: [VirtualAdapter], remembering peripherals: [VirtualPeripheral]) {
        let stored = devices.values.filter { !$0.isTemporary }.sorted { $0.sequence < $1.sequence }
        let aliases = adapters.mapValues(\.alias)
        let blocked = adapters.mapValues(\.isBlocked)
        forgetClients()
        alarms.removeAll()
        adapters.removeAll()
        devices.removeAll()
        found.removeAll()
        for adapter in hardware {
            addAdapter(adapter, remembering: peripherals)
            adapters[adapter.index]?.alias = aliases[adapter.index] ?? nil
            if blocked[adapter.index] == true {
                adapters[adapter.index]?.isBlocked = true
                adapters[adapter.index]?.isPowered = false
                adapters[adapter.index]?.powerState = .blocked
            }
        }
        for var device in stored where adapters[device.key.adapter] != nil {
            _ = device.forgetStrength()
            device.manufacturerData = []
            device.serviceData = []
            device.otherData = []
            device.advertisingFlags = nil
            device.isConnected = false
            device.areServicesResolved = false
            device.batteryLevel = nil
            device.wasFound = false
            devices[device.key] = device
        }
        // Nobody was there to hear of it: a client that comes asks for all objects.
        outbox.removeAll()
    }
}
