/// Devices: what is remembered, forgotten, and asked of one.
extension Daemon {
    /// A device from BlueZ's storage: known, not heard, not temporary.
    mutating func remember(_ peripheral: VirtualPeripheral, on index: Int) {
        guard let adapter = adapters[index] else { return }
        let report = AdvertisingReport(peripheral.advertisement)
        let key = DeviceKey(adapter: index, address: peripheral.address)
        guard devices[key] == nil else { return }
        var device = Device(
            key: key, adapterPath: adapter.path, addressType: peripheral.addressType, sequence: nextSequence())
        device.name = report.name ?? peripheral.name
        device.uuids = report.uuids
        device.appearance = report.appearance
        device.isTemporary = false
        device.isConnectable = true
        device.mistyped = mistyped[key.address] ?? []
        devices[key] = device
        outbox.added(.device(key))
    }

    /// A device goes, and its object with it.
    mutating func remove(_ key: DeviceKey) {
        guard let device = devices[key] else { return }
        endConnection(of: key)
        hideServices(of: key)
        sayRemoved(.device(key), path: device.path, interfaces: interfacesOfDevice)
        devices[key] = nil
        alarms.remove(.forget(key))
    }

    mutating func removeTemporaryDevices(of index: Int) {
        let temporary = devices.values.filter { $0.key.adapter == index && $0.isTemporary }
        for device in temporary.sorted(by: { $0.sequence < $1.sequence }) { remove(device.key) }
    }

    mutating func removeDevice(at path: String, of index: Int, call: CallID) throws(DaemonError) {
        guard case .device(let key)? = key(at: path), key.adapter == index, devices[key] != nil else {
            throw .doesNotExist
        }
        guard adapters[index]?.isPowered == true else { throw .notReady }
        guard devices[key]?.isConnected == true else {
            remove(key)
            return reply(call)
        }
        // The link goes first, and takes its two seconds.
        removals[key, default: []].append(call)
        beginDisconnection(of: key)
    }

    /// A device that goes takes its link with it; nobody who waits for one is ever answered (`device_free`).
    private mutating func endConnection(of key: DeviceKey) {
        if connects.removeValue(forKey: key) != nil { order(.cancelConnection(key)) }
        disconnects[key] = nil
        if serverLinks[key] != nil { endServerLink(key) }
        guard let link = links[key] else { return }
        failRequests(of: link, at: key)
        links[key] = nil
        disconnecting.remove(key)
        for alarm in [Alarm.dropLink(key), .requestTimeout(key), .export(key)] { alarms.remove(alarm) }
        order(.disconnect(key))
    }

    mutating func pair(_ key: DeviceKey) throws(DaemonError) {
        makePermanent(key)
        throw .bluez("ConnectionAttemptFailed", "Page Timeout")
    }

    /// Private addresses, which change by themselves, stay temporary whatever is done with them.
    mutating func makePermanent(_ key: DeviceKey) {
        guard let device = devices[key], device.isTemporary else { return }
        let isStatic = key.address.value >> 46 == 0b11
        guard device.addressType == .public || isStatic else { return }
        devices[key]?.isTemporary = false
        alarms.remove(.forget(key))
    }

    mutating func setDeviceProperty(
        _ name: String, to value: BusValue?, of key: DeviceKey, call: CallID
    ) throws(DaemonError) {
        guard let property = DeviceProperty(rawValue: name), traits.deviceProperties.contains(property),
            let device = devices[key]
        else {
            throw .noSuchProperty(name)
        }
        guard property.isWritable else { throw .notWritable(name) }
        switch (property, value) {
        case (.alias, .string(let text)?):
            let alias = text.isEmpty ? nil : text
            guard device.alias != alias else { return reply(call) }
            devices[key]?.alias = alias
        case (.trusted, .bool(let isTrusted)?):
            guard device.isTrusted != isTrusted else { return reply(call) }
            devices[key]?.isTrusted = isTrusted
        case (.blocked, .bool(let isBlocked)?):
            guard device.isBlocked != isBlocked else { return reply(call) }
            devices[key]?.isBlocked = isBlocked
        default:
            throw .invalidSignature(name)
        }
        outbox.changed(.device(property), of: .device(key))
        reply(call)
    }
}
