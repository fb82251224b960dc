import Foundation

/// What the adapters hear, and what BlueZ makes of it.
extension Daemon {
    /// Whether any adapter would hear anything.
    var isListening: Bool {
        adapters.values.contains { $0.kernelScans && $0.isPowered && !$0.isDeaf }
    }

    /// An advertisement reaches the room's adapters.
    mutating func hear(_ sighting: Sighting, now: TimeInterval) {
        for index in adapters.keys.sorted() { hear(sighting, on: index, now: now) }
    }

    /// An advertisement reaches one adapter (`btd_adapter_update_found_device`, in its order).
    private mutating func hear(_ sighting: Sighting, on index: Int, now: TimeInterval) {
        // Nobody hears itself.
        guard let adapter = adapters[index], sighting.sender != index, adapter.kernelScans,
            adapter.isPowered, !adapter.isDeaf,
            adapter.isDiscovering, adapter.kernelFilter?.passes(sighting) ?? true
        else { return }

        let key = DeviceKey(adapter: index, address: sighting.address)
        let isDiscoverable = isDiscoverable(sighting, to: adapter)
        guard let place = placeForDevice(key, sighting, adapter: adapter, isDiscoverable: isDiscoverable) else {
            return
        }
        devices.values[place].isConnectable = sighting.report.isConnectable
        if devices.values[place].isTemporary { alarms.set(.forget(key), to: now + Self.temporaryTimeout) }

        guard isDiscoverable else { return }
        if adapter.scansWithFilter {
            // The first session that takes everything ends the search, and those behind it compare nothing.
            let comparing = adapter.scanning.prefix { $0.filter?.uuids.isEmpty == false }
            if traits.diesOfUUIDFilters, !comparing.isEmpty, !sighting.report.uuids.isEmpty {
                return effects.append(.die)
            }
            guard wanted(sighting, by: adapter.scanning) else { return }
        }
        let changed = devices.values[place].hear(
            sighting, smallestChange: reportsEveryStrength(adapter) ? 0 : 8, longestField: traits.longestField,
            repeatingData: adapter.scanning.contains { $0.filter?.reportsDuplicateData == true })
        for property in changed { outbox.changed(.device(property), of: .device(key)) }

        guard !devices.values[place].wasFound, !adapter.scanning.isEmpty else { return }
        devices.values[place].wasFound = true
        found[index, default: []].append(key)
        trimFound(of: index)
    }

    /// Whether `RSSI` is signalled even if it is what it was.
    private func reportsEveryStrength(_ adapter: Adapter) -> Bool {
        guard adapter.scansWithFilter else { return false }
        return switch traits.strengthRule {
        case .filtered: true
        case .filteredByProximity:
            adapter.scanning.contains { $0.filter?.rssi != nil || $0.filter?.pathloss != nil }
        }
    }

    /// The device's place in the table, made if this is the first that is heard of it.
    private mutating func placeForDevice(
        _ key: DeviceKey, _ sighting: Sighting, adapter: Adapter, isDiscoverable: Bool
    ) -> Dictionary<DeviceKey, Device>.Index? {
        if let place = devices.index(forKey: key) { return place }
        guard isDiscoverable else { return nil }
        var device = Device(
            key: key, adapterPath: adapter.path, addressType: sighting.addressType, sequence: nextSequence())
        device.mistyped = mistyped[key.address] ?? []
        devices[key] = device
        outbox.added(.device(key))
        return devices.index(forKey: key)
    }

    /// Whether the device counts as discoverable (`device_is_discoverable`): with a filter everything does, without
    /// one only what says so in its flags; and one client's pattern hides from all clients what does not match it.
    private func isDiscoverable(_ sighting: Sighting, to adapter: Adapter) -> Bool {
        let patterns = adapter.scanning.compactMap { $0.filter?.pattern }
        guard !patterns.isEmpty else { return adapter.scansWithFilter || sighting.report.isDiscoverable }
        let address = sighting.address.description
        return patterns.contains { pattern in
            address.hasPrefix(pattern) || sighting.report.name?.hasPrefix(pattern) == true || pattern.isEmpty
        }
    }

    /// Whether some session wants it (`is_filter_match`). The strength and the path loss are compared only where both were
    /// asked for, which no filter can have: for RSSI BlueZ relies on the kernel's merged filter alone, and a path loss
    /// filters nothing.
    private func wanted(_ sighting: Sighting, by sessions: [DiscoverySession]) -> Bool {
        sessions.contains { session in
            guard let filter = session.filter else { return true }
            return filter.uuids.isEmpty || sighting.report.uuids.contains(where: filter.uuids.contains)
        }
    }

    /// In a long scan of addresses that keep changing, the list of found devices would grow with those long gone.
    private mutating func trimFound(of index: Int) {
        guard let list = found[index], list.count > 64, list.count > 2 * devices.count else { return }
        found[index] = list.filter { devices[$0]?.wasFound == true }
    }
}
