/// The state behind one `org.bluez.Device1`.
struct Device: Sendable {
    private(set) var key: DeviceKey
    private(set) var path: String
    let adapterPath: String
    var addressType: AddressType
    /// The identity of a device with a private address, once it is paired.
    var identity: VirtualAddress?
    var name: String?
    var alias: String?
    var appearance: UInt16?
    /// In dBm. BlueZ uses 0 for "not received", so that a strength of exactly 0 dBm is never reported.
    var rssi: Int16 = 0
    /// In dBm; 127 stands for "unknown".
    var txPower: Int16 = 127
    /// As advertised.
    var uuids: [String] = []
    /// Those of its primary services, sorted, from the latest discovery.
    var gattUUIDs: [String] = []
    /// The table that BlueZ has stored.
    var storedServices: [AttributeDatabase.Service] = []
    /// In percent; nil while the device has no `Battery1`.
    var batteryLevel: UInt8?
    var manufacturerData: [AdvertisingField<UInt16>] = []
    var serviceData: [AdvertisingField<String>] = []
    var otherData: [AdvertisingField<UInt8>] = []
    /// Nil until an advertisement was received; 0 if it has none.
    var advertisingFlags: UInt8?
    var isPaired = false
    var isBonded = false
    var isTrusted = false
    var isBlocked = false
    var isConnected = false
    var areServicesResolved = false
    /// Whether it is forgotten half a minute after it was last received.
    var isTemporary = true
    var isConnectable = false
    /// In the order in which the devices were found in the present discovery.
    var foundNumber: UInt64?
    /// That of the link that the adapter has made; nil without one.
    var mtu: Int?
    /// The order of the devices' objects.
    let sequence: UInt64

    init(key: DeviceKey, adapterPath: String, addressType: AddressType, sequence: UInt64) {
        self.key = key
        self.adapterPath = adapterPath
        path = Self.path(of: key, adapterPath)
        self.addressType = addressType
        self.sequence = sequence
    }

    static func path(of key: DeviceKey, _ adapterPath: String) -> String {
        adapterPath + "/dev_" + key.address.written(separator: UInt8(ascii: "_"))
    }

    /// The alias, the name, or the address as in `DC-2C-26-00-00-01`.
    var shownName: String { alias ?? name ?? key.address.written(separator: UInt8(ascii: "-")) }

    /// The advertised UUIDs until the services are resolved, and those of the services after that.
    var shownUUIDs: [String] { (areServicesResolved && !gattUUIDs.isEmpty) || uuids.isEmpty ? gattUUIDs : uuids }

    /// Returns the name of the icon that BlueZ derives from an appearance.
    static func icon(for appearance: UInt16) -> String? {
        switch (appearance >> 6, appearance & 0x3F) {
        case (0x00, _): "unknown"
        case (0x01, _): "phone"
        case (0x02, _): "computer"
        case (0x05, _): "video-display"
        case (0x0A, _): "multimedia-player"
        case (0x0B, _), (0x0F, 0x08): "scanner"
        case (0x0F, 0x01): "input-keyboard"
        case (0x0F, 0x02): "input-mouse"
        case (0x0F, 0x03), (0x0F, 0x04): "input-gaming"
        case (0x0F, 0x05): "input-tablet"
        default: nil
        }
    }
}

extension Device {
    /// What BlueZ has stored of it.
    var stored: Device {
        var device = self
        _ = device.forgetStrength()
        // bluetoothd names the object by the identity when it starts.
        device.key.address = identity ?? key.address
        device.path = Self.path(of: device.key, adapterPath)
        device.identity = nil
        device.isPaired = isBonded
        device.manufacturerData = []
        device.serviceData = []
        device.otherData = []
        device.advertisingFlags = nil
        device.isConnected = false
        device.areServicesResolved = false
        device.batteryLevel = nil
        device.foundNumber = nil
        device.mtu = nil
        return device
    }

    // MARK: Reports

    /// Takes a report, and returns the properties that changed, in BlueZ's order.
    ///
    /// - Parameters:
    ///   - smallestChange: By how many dB the strength must differ to be announced: 8 in a scan without filters; 0 in one
    ///     with filters, which announces the same strength again.
    ///   - longestField: The longest field that is kept, in bytes (`bt_ad_add_manufacturer_data`).
    ///   - repeatingData: Whether a client asked for duplicate data: then each report announces its data, else only
    ///     data that differ.
    mutating func take(_ sighting: Sighting, smallestChange: Int, longestField: Int, repeatingData: Bool)
        -> [Property<Device>]
    {
        let report = sighting.report
        var changed: [Property<Device>] = []
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
        let manufacturers = report.manufacturerData.filter { $0.bytes.count + 2 <= longestField }
        if Self.add(manufacturers, to: &manufacturerData, repeating: repeatingData) {
            changed.append(.manufacturerData)
        }
        let services = report.serviceData.filter { $0.bytes.count + ServiceUUID.size($0.key) <= longestField }
        if Self.add(services, to: &serviceData, repeating: repeatingData) { changed.append(.serviceData) }
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

    /// Forgets the strengths, as BlueZ does for the devices that it found when a discovery ends.
    mutating func forgetStrength() -> [Property<Device>] {
        defer { (rssi, txPower) = (0, 127) }
        return (rssi == 0 ? [] : [.rssi]) + (txPower == 127 ? [] : [.txPower])
    }

    private mutating func setStrength(_ new: Int16, smallestChange: Int) -> Bool {
        let isKnown = new != 0 && rssi != 0
        guard isKnown ? abs(Int(new) - Int(rssi)) >= smallestChange : new != rssi else { return false }
        rssi = new
        return true
    }

    private mutating func add(uuids received: [String]) -> Bool {
        let count = uuids.count
        for uuid in received where !uuids.contains(uuid) { uuids.append(uuid) }
        return uuids.count > count
    }

    /// Data of a company or a service that is not sent any more stay, as with BlueZ, unless duplicates are asked for.
    private static func add<Key>(
        _ received: [AdvertisingField<Key>], to data: inout [AdvertisingField<Key>], repeating: Bool
    ) -> Bool {
        if repeating, !received.isEmpty {
            data = received
            return true
        }
        var isChanged = false
        for field in received where !data.contains(field) { isChanged = data.set(field) }
        return isChanged
    }

    /// Returns whether the property is announced, which BlueZ does for one type only (`add_data`).
    private mutating func add(otherData received: [AdvertisingField<UInt8>], repeating: Bool) -> Bool {
        guard !received.isEmpty else { return false }
        if repeating { otherData = [] }
        var isAnnounced = false
        for field in received {
            if otherData.set(field), field.key == Self.transportDiscovery { isAnnounced = true }
        }
        otherData.sort { $0.key < $1.key }
        return isAnnounced
    }
}

extension BusValue {
    /// A value of another type, as a faulty daemon would write it.
    var mistyped: BusValue {
        switch self {
        case .string, .objectPath: .uint32(0xBAD)
        case .bool, .byte, .int16, .uint16, .uint32, .variant, .other: .string("not what you expect")
        case .strings, .objectPaths: .string("0000180d-0000-1000-8000-00805f9b34fb")
        case .bytes: .string("0102")
        case .dictionary: .strings(["not", "bytes"])
        }
    }
}
