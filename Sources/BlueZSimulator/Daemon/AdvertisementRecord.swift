/// An advertisement that a client has registered, as `src/advertising.c` keeps it.
struct AdvertisementRecord: Hashable, Sendable {
    let key: AdvertisementKey
    let owner: String
    let path: String
    /// The controller's number for it, from 1.
    let instance: Int
    let traits: DaemonTraits
    /// The call that registers it; nil once that has its reply.
    var registration: CallID?

    /// Whether it takes connections. BlueZ broadcasts an advertisement without a `Type`.
    var isPeripheral = false
    /// What the kernel adds: `tx-power`, `appearance`, `local-name`.
    var includes: [String] = []
    var name: String?
    /// Nil if the object never had it.
    var appearance: UInt16?
    var data = AdvertisingData()
    /// The scan response without the name.
    var scanData = AdvertisingData()
    var timeout: UInt16 = 0
    var discoverableTimeout: UInt16 = 0
    var isDiscoverableTimed = false
    var hasSecondaryChannel = false
    /// In units of 0.625 ms; 0 is the kernel's choice.
    var minInterval = 0
    var maxInterval = 0
    /// Nil is the controller's choice.
    var txPower: Int16?

    /// The longest advertisement and the longest scan response, in bytes.
    private var limit: Int { traits.hasLongAdvertisements ? AdvertisingData.longestExtended : AdvertisingData.longest }

    /// The address of a broadcast, which is random and cannot be resolved; nil for the adapter's.
    var ownAddress: VirtualAddress? {
        isPeripheral ? nil : VirtualAddress(value: SeededGenerator.mixed(key.number) & 0x3FFF_FFFF_FFFF)
    }

    // MARK: Properties

    /// The properties that some version reads without `--experimental`, in the order in which BlueZ reads them, whatever the
    /// order in the message.
    static let properties = [
        "Type", "ServiceUUIDs", "ScanResponseServiceUUIDs", "SolicitUUIDs", "ScanResponseSolicitUUIDs",
        "ManufacturerData", "ScanResponseManufacturerData", "ServiceData", "ScanResponseServiceData", "Includes",
        "LocalName", "Appearance", "Duration", "Timeout", "Data", "ScanResponseData", "Discoverable",
        "DiscoverableTimeout", "SecondaryChannel", "MinInterval", "MaxInterval", "TxPower",
    ]

    /// The advertising interval, in seconds.
    var interval: Double { minInterval == 0 ? Radio.hostInterval : Double(minInterval) * 0.000_625 }

    /// Takes all properties. Returns false if one cannot be taken, or if two contradict each other.
    mutating func take(_ properties: [NamedValue], of adapter: Adapter) -> Bool {
        for name in Self.properties {
            if let value = properties[name], !take(name, value, of: adapter) { return false }
        }
        if data.flags != nil {
            // A broadcast must not be discoverable (core specification 5.0, volume 3, part C, 9.1.2).
            guard isPeripheral else { return false }
            if isDiscoverableTimed { _ = setFlags(0x01, adapter) }
        } else if isDiscoverableTimed {
            isDiscoverableTimed = false
            discoverableTimeout = 0
        }
        return (timeout == 0 || timeout >= discoverableTimeout) && minInterval <= maxInterval
    }

    /// Takes a property, or its invalidation. Returns false if it cannot be taken.
    mutating func take(_ name: String, _ value: BusValue?, of adapter: Adapter) -> Bool {
        if traits.missingProperties.contains("LEAdvertisement1." + name) { return true }
        let isResponse = name.hasPrefix(Self.scanResponse)
        let part: WritableKeyPath<Self, AdvertisingData> = isResponse ? \.scanData : \.data
        switch isResponse ? String(name.dropFirst(Self.scanResponse.count)) : name {
        case "Type":
            guard value == nil || ["broadcast", "peripheral"].contains(value?.text) else { return false }
            if let value { isPeripheral = value == .string("peripheral") }
        case "ServiceUUIDs": return takeUUIDs(value, into: part.appending(path: \.serviceUUIDs))
        case "SolicitUUIDs": return takeUUIDs(value, into: part.appending(path: \.solicitedUUIDs))
        case "ManufacturerData":
            return takeFields(value, into: part.appending(path: \.manufacturerData)) { key in
                key.number.map { ($0, width: 2) }
            }
        case "ServiceData":
            return takeFields(value, into: part.appending(path: \.serviceData)) { key in
                key.text.flatMap(ServiceUUID.sent).map { ($0, width: $0.count) }
            }
        case "Data":
            return takeFields(value, into: part.appending(path: \.fields)) { key in
                guard case .byte(let type) = key, !AdvertisingData.rejected.contains(type) else { return nil }
                return (type, width: 0)
            }
        case "MinInterval": return takeInterval(value, into: \.minInterval)
        case "MaxInterval": return takeInterval(value, into: \.maxInterval)
        case "TxPower":
            guard case .int16(let power)? = value, (-127...20).contains(power) else { return false }
            txPower = power
        case "Includes":
            includes = value?.strings ?? []
            return value?.isArray != false
        case "LocalName":
            guard let value else { self.name = nil; return true }
            guard let text = value.text, !includes.contains("local-name") else { return false }
            self.name = text.isEmpty ? nil : text
        case "Appearance":
            guard let value else { appearance = 0; return true }
            guard let number = value.number, !includes.contains("appearance") else { return false }
            appearance = number == .max ? nil : number
        case "Duration": return value == nil || value?.number != nil
        case "Timeout":
            guard let seconds = (value ?? .uint16(0)).number else { return false }
            timeout = seconds
        case "Discoverable":
            guard let value, value != .bool(false) || traits.undiscoverableFlags != nil else {
                data.clearFlags()
                return true
            }
            guard let isDiscoverable = value.flag else { return false }
            if traits.sparesBroadcasts, !isDiscoverable, !isPeripheral { return true }
            guard setFlags(isDiscoverable ? 0x02 : 0, adapter) else {
                // The same flags again remove them.
                data.clearFlags()
                return false
            }
        case "DiscoverableTimeout":
            guard let seconds = (value ?? .uint16(0)).number else { return false }
            discoverableTimeout = seconds
            isDiscoverableTimed = value != nil
        case "SecondaryChannel":
            guard value == nil || ["1M", "2M", "Coded"].contains(value?.text) else { return false }
            hasSecondaryChannel = value != nil
        default: return false
        }
        return true
    }

    private static let scanResponse = "ScanResponse"

    private mutating func takeInterval(_ value: BusValue?, into place: WritableKeyPath<Self, Int>) -> Bool {
        self[keyPath: place] = 0
        guard case .uint32(let milliseconds)? = value else { return false }
        let units = Int(Double(milliseconds) / 0.625)
        guard (0x20...0xFF_FFFF).contains(units) else { return false }
        self[keyPath: place] = units
        return true
    }

    private mutating func takeUUIDs(_ value: BusValue?, into place: WritableKeyPath<Self, [[UInt8]]>) -> Bool {
        let texts = value?.strings ?? []
        let uuids = texts.compactMap(ServiceUUID.sent)
        let isValid = uuids.count == texts.count
        self[keyPath: place] = isValid ? uuids : []
        return isValid && value?.isArray != false
    }

    /// Takes a dictionary of fields. If one is too long, or is there twice with the same bytes, none is taken.
    ///
    /// - Parameter key: returns a field's key, with the number of bytes that it takes behind the type.
    private mutating func takeFields<Key>(
        _ value: BusValue?, into place: WritableKeyPath<Self, [AdvertisingField<Key>]>,
        key: (BusValue) -> (Key, width: Int)?
    ) -> Bool {
        self[keyPath: place] = []
        guard case .dictionary(_, _, let entries)? = value else { return value?.isArray != false }
        var fields: [AdvertisingField<Key>] = []
        for entry in entries {
            guard let bytes = entry.value.bytes, let (key, width) = key(entry.key),
                bytes.count + width <= limit - 2, fields.set(AdvertisingField(key: key, bytes: bytes))
            else { return false }
        }
        self[keyPath: place] = fields
        return true
    }

    /// Sets the flags. Returns false if they are set already. The flag "no classic Bluetooth" is added for an adapter without
    /// it, and for an advertisement that is discoverable while its adapter is not; from 5.77 on for each advertisement of such
    /// an adapter.
    private mutating func setFlags(_ flags: UInt8, _ adapter: Adapter) -> Bool {
        let isClassicHidden = !adapter.isDiscoverable && (flags != 0 || traits.undiscoverableFlags != 0)
        let all = adapter.hardware.isLowEnergyOnly || isClassicHidden ? flags | Self.withoutClassic : flags
        return data.fields.set(AdvertisingField(key: AdvertisingData.flagsType, bytes: [all]))
    }

    private static let withoutClassic: UInt8 = 0x04

    /// Returns the bytes of the advertisement and of the scan response; nil if they are too many.
    ///
    /// The kernel adds to BlueZ's part what BlueZ only asks for: flags before it, the transmission power behind it, and the
    /// adapter's name in the scan response (`eir_create_adv_data`).
    func advertisingData(from adapter: Adapter) -> (data: [UInt8], scanResponse: [UInt8])? {
        let length = data.generated(within: .max)?.count ?? 0
        // With a second channel an advertisement that takes connections has no scan response.
        let isExtended =
            hasSecondaryChannel || !traits.needsSecondaryChannel && length > AdvertisingData.longest
        let hasScanResponse = !(isPeripheral && isExtended)
        // The kernel refuses what BlueZ asks for and sends as well (`tlv_data_is_valid`).
        guard let own = data.generated(within: limit, name: hasScanResponse ? nil : name, appearance: appearance),
            !includes.contains("appearance")
        else { return nil }

        var bytes = own
        if isPeripheral, adapter.isDiscoverable, data.flags == nil {
            let flags = adapter.hardware.isLowEnergyOnly ? 0x02 | Self.withoutClassic : 0x02
            bytes = AdvertisingData.field(AdvertisingData.flagsType, [flags]) + own
        }
        if includes.contains("tx-power") {
            let power = Int8(clamping: txPower ?? Self.defaultPower)
            bytes += AdvertisingData.field(0x0A, [UInt8(bitPattern: power)])
        }
        guard bytes.count <= (isExtended ? limit : AdvertisingData.longest) else { return nil }

        guard hasScanResponse else { return (bytes, []) }
        guard var scanned = scanData.generated(within: limit, name: name),
            isExtended || scanned.count <= AdvertisingData.longest
        else { return nil }
        if name == nil, includes.contains("local-name") {
            scanned = scanData.generated(within: limit, name: adapter.name) ?? []
        }
        return (bytes, scanned)
    }

    /// The controller's transmission power, in dBm.
    static let defaultPower: Int16 = 0
}

/// An advertisement of an adapter; the number is unique.
struct AdvertisementKey: Hashable, Sendable {
    let adapter: Int
    let number: UInt64
}
