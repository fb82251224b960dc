extension Device {
    /// Takes in what was heard and says which properties changed, in the order BlueZ notices them.
    ///
    /// - Parameters:
    ///   - smallestChange: how many dB the strength must move to be told. 8 in a scan without filters; 0 in one with,
    ///     where even the same strength is told again.
    ///   - longestField: of how many bytes the fields may be that are kept (`bt_ad_add_manufacturer_data`).
    ///   - repeatingData: whether some client asked for duplicate data: then bytes are told on every report, else only
    ///     when they differ.
    mutating func hear(_ sighting: Sighting, smallestChange: Int, longestField: Int, repeatingData: Bool)
        -> [DeviceProperty]
    {
        let report = sighting.report
        var changed: [DeviceProperty] = []
        changed.reserveCapacity(4)

        if setStrength(Int16(clamping: sighting.rssi), smallestChange: smallestChange) { changed.append(.rssi) }
        if let power = report.txPower, power != 127, txPower != Int16(clamping: power) {
            txPower = Int16(clamping: power)
            changed.append(.txPower)
        }
        if let seen = report.appearance, seen != 0, appearance != seen {
            appearance = seen
            changed.append(.appearance)
            if Self.icon(for: seen) != nil { changed.append(.icon) }
        }
        if let seen = report.name, name != seen {
            name = seen
            changed.append(.name)
            if alias == nil { changed.append(.alias) }
        }
        if !areServicesResolved, add(uuids: report.uuids) { changed.append(.uuids) }
        let manufacturers = report.manufacturerData.filter { $0.length <= longestField }
        if add(manufacturerData: manufacturers, repeating: repeatingData) {
            changed.append(.manufacturerData)
        }
        let services = report.serviceData.filter { $0.length <= longestField }
        if add(serviceData: services, repeating: repeatingData) { changed.append(.serviceData) }
        let others = report.otherData.filter { $0.bytes.count <= longestField }
        if add(otherData: others, repeating: repeatingData) { changed.append(.advertisingData) }
        if advertisingFlags != report.flags {
            advertisingFlags = report.flags
            changed.append(.advertisingFlags)
        }
        return changed
    }

    /// The type of transport discovery data.
    private static let transportDiscovery: UInt8 = 0x26

    /// Forgets how strongly it was heard, as BlueZ does for all that it found when a discovery ends.
    mutating func forgetStrength() -> [DeviceProperty] {
        var changed: [DeviceProperty] = []
        if rssi != 0 {
            rssi = 0
            changed.append(.rssi)
        }
        if txPower != 127 {
            txPower = 127
            changed.append(.txPower)
        }
        return changed
    }

    private mutating func setStrength(_ new: Int16, smallestChange: Int) -> Bool {
        if new == 0 || rssi == 0 {
            guard new != rssi else { return false }
        } else {
            guard abs(Int(new) - Int(rssi)) >= smallestChange else { return false }
        }
        rssi = new
        return true
    }

    private mutating func add(uuids heard: [String]) -> Bool {
        var changed = false
        for uuid in heard where !uuids.contains(uuid) {
            uuids.append(uuid)
            changed = true
        }
        return changed
    }

    /// Data of a company that is not sent any more stays, unless duplicates are asked for; so does BlueZ's.
    private mutating func add(manufacturerData heard: [AdvertisingReport.ManufacturerData], repeating: Bool) -> Bool {
        guard !heard.isEmpty else { return false }
        if repeating {
            manufacturerData = heard
            return true
        }
        var changed = false
        for data in heard {
            if let place = manufacturerData.firstIndex(where: { $0.company == data.company }) {
                guard manufacturerData[place].bytes != data.bytes else { continue }
                manufacturerData[place].bytes = data.bytes
            } else {
                manufacturerData.append(data)
            }
            changed = true
        }
        return changed
    }

    /// Whether the property is signalled, which it is for one type alone; the bytes of others are there for who asks (`add_data`).
    private mutating func add(otherData heard: [AdvertisingReport.OtherData], repeating: Bool) -> Bool {
        guard !heard.isEmpty else { return false }
        if repeating { otherData = [] }
        var isTold = false
        for data in heard where !otherData.contains(data) {
            otherData.removeAll { $0.type == data.type }
            otherData.append(data)
            if data.type == Self.transportDiscovery { isTold = true }
        }
        otherData.sort { $0.type < $1.type }
        return isTold
    }

    private mutating func add(serviceData heard: [AdvertisingReport.ServiceData], repeating: Bool) -> Bool {
        guard !heard.isEmpty else { return false }
        if repeating {
            serviceData = heard
            return true
        }
        var changed = false
        for data in heard {
            if let place = serviceData.firstIndex(where: { $0.uuid == data.uuid }) {
                guard serviceData[place].bytes != data.bytes else { continue }
                serviceData[place].bytes = data.bytes
            } else {
                serviceData.append(data)
            }
            changed = true
        }
        return changed
    }
}
