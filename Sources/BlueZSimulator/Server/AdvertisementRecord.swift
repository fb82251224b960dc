/// An advertisement that a client has registered, as `src/advertising.c` keeps it.
struct AdvertisementRecord: Hashable, Sendable {
    /// Where a registration stands.
    enum Stage: Hashable, Sendable {
        /// The object's tree is asked for; many have none.
        case asksObjects(CallID)
        /// Its properties are asked for.
        case asksProperties(CallID)
        case registered
    }

    struct Includes: OptionSet, Hashable, Sendable {
        let rawValue: UInt8
        static let txPower = Includes(rawValue: 1)
        static let appearance = Includes(rawValue: 2)
        static let localName = Includes(rawValue: 4)
    }

    let key: AdvertisementKey
    let owner: String
    let path: String
    /// The controller's number for it, from 1.
    let instance: Int
    /// Whether its adapter has no classic Bluetooth.
    private let isLowEnergyOnly: Bool
    private let traits: DaemonTraits
    var stage: Stage

    /// BlueZ's first value: what says nothing of its type is broadcast.
    var isPeripheral = false
    var includes: Includes = []
    var name: String?
    /// Nil where it was never said.
    var appearance: UInt16?
    var data = AdvertisingData()
    /// Beside the name.
    var scanData = AdvertisingData()
    var timeout: UInt16 = 0
    var duration: UInt16 = 0
    var discoverableTimeout: UInt16 = 0
    /// The timer of the second runs.
    var isDiscoverableTimed = false
    var secondaryChannel: String?
    /// In units of 0.625 ms; 0 is the kernel's choice.
    var minInterval = 0
    var maxInterval = 0
    /// Nil is the controller's choice.
    var txPower: Int16?

    init(
        _ key: AdvertisementKey, owner: String, path: String, instance: Int, stage: Stage,
        isLowEnergyOnly: Bool, traits: DaemonTraits
    ) {
        self.isLowEnergyOnly = isLowEnergyOnly
        self.traits = traits
        if traits.advertisingLength != .legacy {
            data.limit = Daemon.longestAdvertisement
            scanData.limit = Daemon.longestAdvertisement
        }
        self.key = key
        self.owner = owner
        self.path = path
        self.instance = instance
        self.stage = stage
    }

    /// Whether it takes connections.
    var isConnectable: Bool { isPeripheral }

    /// What broadcasts does so under an address of its own, random and not to be resolved; nil for the adapter's.
    var ownAddress: VirtualAddress? {
        isPeripheral ? nil : VirtualAddress(value: SeededGenerator.mixed(UInt64(key.number)) & 0x3FFF_FFFF_FFFF)
    }
}

/// How its properties are read: one after another in BlueZ's own order, whatever the order in which they came.
extension AdvertisementRecord {
    /// The properties that some version looks at without `--experimental`.
    static let properties = [
        "Type", "ServiceUUIDs", "ScanResponseServiceUUIDs", "SolicitUUIDs", "ScanResponseSolicitUUIDs",
        "ManufacturerData",
        "ScanResponseManufacturerData", "ServiceData", "ScanResponseServiceData", "Includes", "LocalName", "Appearance",
        "Duration", "Timeout", "Data", "ScanResponseData", "Discoverable", "DiscoverableTimeout", "SecondaryChannel",
        "MinInterval", "MaxInterval", "TxPower",
    ]

    /// Those that not all versions look at.
    private static let laterProperties: Set = [
        "ScanResponseServiceUUIDs", "ScanResponseSolicitUUIDs", "ScanResponseManufacturerData",
        "ScanResponseServiceData",
        "ScanResponseData", "MinInterval", "MaxInterval", "TxPower",
    ]

    private func isKnown(_ name: String) -> Bool {
        !Self.laterProperties.contains(name) || traits.advertisementProperties.contains(name)
    }

    /// How often it is sent, in seconds.
    var interval: Double { minInterval == 0 ? Radio.hostInterval : Double(minInterval) * 0.000_625 }

    /// Takes all of them; false where one cannot be taken, or two do not go together.
    mutating func take(_ properties: [NamedValue], adapterIsDiscoverable: Bool) -> Bool {
        for name in Self.properties where isKnown(name) {
            guard let value = properties[name] else { continue }
            guard take(name, value, adapterIsDiscoverable: adapterIsDiscoverable) else { return false }
        }
        if data.flags != nil {
            // Who broadcasts must not call itself discoverable (core specification 5.0, volume 3, part C, 9.1.2).
            guard isPeripheral else { return false }
            if isDiscoverableTimed { _ = setFlags(0x01, adapterIsDiscoverable) }
        } else if isDiscoverableTimed {
            isDiscoverableTimed = false
            discoverableTimeout = 0
        }
        return (timeout == 0 || timeout >= discoverableTimeout) && minInterval <= maxInterval
    }

    /// Takes one property, or its disappearance; false for what cannot be taken.
    mutating func take(_ name: String, _ value: BusValue?, adapterIsDiscoverable: Bool) -> Bool {
        guard isKnown(name) else { return true }
        switch name {
        case "Type":
            guard let value else { return true }
            switch value.text {
            case "broadcast": isPeripheral = false
            case "peripheral": isPeripheral = true
            default: return false
            }
            return true
        case "ServiceUUIDs": return takeUUIDs(value, into: \.data.serviceUUIDs)
        case "ScanResponseServiceUUIDs": return takeUUIDs(value, into: \.scanData.serviceUUIDs)
        case "SolicitUUIDs": return takeUUIDs(value, into: \.data.solicitedUUIDs)
        case "ScanResponseSolicitUUIDs": return takeUUIDs(value, into: \.scanData.solicitedUUIDs)
        case "ManufacturerData": return takeManufacturerData(value, into: \.data)
        case "ScanResponseManufacturerData": return takeManufacturerData(value, into: \.scanData)
        case "ServiceData": return takeServiceData(value, into: \.data)
        case "ScanResponseServiceData": return takeServiceData(value, into: \.scanData)
        case "Data": return takeFields(value, into: \.data)
        case "ScanResponseData": return takeFields(value, into: \.scanData)
        case "MinInterval": return takeInterval(value, into: \.minInterval)
        case "MaxInterval": return takeInterval(value, into: \.maxInterval)
        case "TxPower":
            guard case .int16(let power)? = value, (-127...20).contains(power) else { return false }
            txPower = power
            return true
        case "Includes": return takeIncludes(value)
        case "LocalName":
            guard let value else { self.name = nil; return true }
            guard let text = value.text, !includes.contains(.localName) else { return false }
            self.name = text.isEmpty ? nil : text
            return true
        case "Appearance":
            guard let value else { appearance = 0; return true }
            guard let number = value.number, !includes.contains(.appearance) else { return false }
            appearance = number == .max ? nil : number
            return true
        case "Duration": return takeNumber(value) { $0.duration = $1 }
        case "Timeout": return takeNumber(value) { $0.timeout = $1 }
        case "Discoverable":
            guard let value else { data.clearFlags(); return true }
            guard let isDiscoverable = value.flag else { return false }
            return setDiscoverable(isDiscoverable, adapterIsDiscoverable)
        case "DiscoverableTimeout":
            return takeNumber(value) { record, seconds in
                record.discoverableTimeout = seconds
                record.isDiscoverableTimed = value != nil
            }
        case "SecondaryChannel":
            guard let value else { secondaryChannel = nil; return true }
            guard let text = value.text, ["1M", "2M", "Coded"].contains(text) else { return false }
            secondaryChannel = text
            return true
        default:
            return false
        }
    }

    private mutating func takeNumber(_ value: BusValue?, _ set: (inout Self, UInt16) -> Void) -> Bool {
        guard let value else { set(&self, 0); return true }
        guard let number = value.number else { return false }
        set(&self, number)
        return true
    }

    private mutating func takeInterval(_ value: BusValue?, into place: WritableKeyPath<Self, Int>) -> Bool {
        self[keyPath: place] = 0
        guard case .uint32(let milliseconds)? = value else { return false }
        let units = Int(Double(milliseconds) / 0.625)
        guard (0x20...0xFF_FFFF).contains(units) else { return false }
        self[keyPath: place] = units
        return true
    }

    private mutating func takeManufacturerData(
        _ value: BusValue?, into place: WritableKeyPath<Self, AdvertisingData>
    ) -> Bool {
        takeData(value, into: place, clear: { $0.clearManufacturerData() }) { data, key, bytes in
            guard let company = key.number else { return false }
            return data.add(company: company, bytes)
        }
    }

    private mutating func takeServiceData(
        _ value: BusValue?, into place: WritableKeyPath<Self, AdvertisingData>
    ) -> Bool {
        takeData(value, into: place, clear: { $0.clearServiceData() }) { data, key, bytes in
            guard let uuid = key.text.flatMap(AdvertisingData.UUIDField.init) else { return false }
            return data.add(service: uuid, bytes)
        }
    }

    private mutating func takeFields(
        _ value: BusValue?, into place: WritableKeyPath<Self, AdvertisingData>
    ) -> Bool {
        takeData(value, into: place, clear: { $0.clearFields() }) { data, key, bytes in
            guard case .byte(let type) = key else { return false }
            return data.add(type: type, bytes)
        }
    }

    private mutating func takeUUIDs(
        _ value: BusValue?, into place: WritableKeyPath<Self, [AdvertisingData.UUIDField]>
    ) -> Bool {
        self[keyPath: place] = []
        guard let value else { return true }
        guard value.isArray else { return false }
        for text in value.strings ?? [] {
            guard let uuid = AdvertisingData.UUIDField(text) else {
                self[keyPath: place] = []
                return false
            }
            self[keyPath: place].append(uuid)
        }
        return true
    }

    private mutating func takeData(
        _ value: BusValue?, into place: WritableKeyPath<Self, AdvertisingData>,
        clear: (inout AdvertisingData) -> Void, _ add: (inout AdvertisingData, BusValue, [UInt8]) -> Bool
    ) -> Bool {
        clear(&self[keyPath: place])
        guard let value else { return true }
        guard case .dictionary(_, let entries) = value else { return value.isArray }
        for entry in entries {
            guard case .bytes(let bytes) = entry.value, add(&self[keyPath: place], entry.key, bytes) else {
                clear(&self[keyPath: place])
                return false
            }
        }
        return true
    }

    private mutating func takeIncludes(_ value: BusValue?) -> Bool {
        includes = []
        guard let value else { return true }
        guard value.isArray else { return false }
        for text in value.strings ?? [] {
            switch text {
            case "tx-power": includes.insert(.txPower)
            case "appearance": includes.insert(.appearance)
            case "local-name": includes.insert(.localName)
            default: break
            }
        }
        return true
    }

    private mutating func setDiscoverable(_ isDiscoverable: Bool, _ adapterIsDiscoverable: Bool) -> Bool {
        if !isDiscoverable {
            switch traits.undiscoverableFlags {
            case .none:
                data.clearFlags()
                return true
            case .withoutClassicInPeripherals where !isPeripheral: return true
            case .zero, .withoutClassic, .withoutClassicInPeripherals: break
            }
        }
        guard setFlags(isDiscoverable ? 0x02 : 0, adapterIsDiscoverable) else {
            // Said again, they are gone.
            data.clearFlags()
            return false
        }
        return true
    }

    /// False where these are the flags already. An adapter without classic Bluetooth says so, and so does an advertisement that
    /// is discoverable while its adapter is not; from 5.77 on each advertisement of such an adapter.
    private mutating func setFlags(_ flags: UInt8, _ adapterIsDiscoverable: Bool) -> Bool {
        let isClassicHidden = !adapterIsDiscoverable && (flags != 0 || traits.undiscoverableFlags != .zero)
        return data.setFlags(isLowEnergyOnly || isClassicHidden ? flags | Self.withoutClassic : flags)
    }

    private static let withoutClassic: UInt8 = 0x04
}

/// What goes on the air.
extension AdvertisementRecord {
    /// The bytes of the advertisement and of the scan response; nil where they are too many.
    ///
    /// BlueZ gives its own part, and the kernel puts beside it what it was only told of: flags before it, the
    /// transmission power behind it, the adapter's name in the scan response (`eir_create_adv_data`).
    func onAir(adapterName: String, adapterIsDiscoverable: Bool, txPower: Int8) -> (
        data: [UInt8], scanResponse: [UInt8]
    )? {
        var data = data
        data.appearance = includes.contains(.appearance) ? appearance ?? 0 : appearance
        // With a second channel an advertisement that takes connections has no scan response.
        let isExtended =
            secondaryChannel != nil || traits.advertisingLength == .controller && data.length > AdvertisingData.longest
        let hasScanResponse = !(isPeripheral && isExtended)
        if !hasScanResponse { data.name = name }
        // The kernel refuses from BlueZ what it was asked to send itself (`tlv_data_is_valid`).
        guard let own = data.generated(), !includes.contains(.appearance) else { return nil }

        let kernelFlags = isPeripheral && adapterIsDiscoverable && data.flags == nil
        var room = isExtended ? data.limit : AdvertisingData.longest
        if kernelFlags { room -= 3 }
        if includes.contains(.txPower) { room -= 3 }
        guard own.count <= room else { return nil }
        var bytes =
            kernelFlags
            ? AdvertisingData.field(AdvertisingData.flagsType, [isLowEnergyOnly ? 0x02 | Self.withoutClassic : 0x02])
            : []
        bytes += own
        if includes.contains(.txPower) { bytes += AdvertisingData.field(0x0A, [UInt8(bitPattern: txPower)]) }

        guard hasScanResponse else { return (bytes, []) }
        var response = scanData
        response.name = name
        guard var scanned = response.generated(), isExtended || scanned.count <= AdvertisingData.longest else {
            return nil
        }
        if name == nil, includes.contains(.localName) {
            response.name = adapterName
            scanned = response.generated() ?? []
        }
        return (bytes, scanned)
    }
}
