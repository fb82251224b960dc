/// A remote device as `bluetoothd` remembers it: the state behind one `org.bluez.Device1`.
struct Device: Sendable {
    let key: DeviceKey
    let path: String
    let adapterPath: String
    var addressType: AddressType
    var name: String?
    var alias: String?
    var appearance: UInt16?
    /// 0 is BlueZ's own sign for "not heard", so a strength of exactly 0 dBm cannot be told.
    var rssi: Int16 = 0
    /// 127 is BlueZ's sign for "unknown".
    var txPower: Int16 = 127
    /// As advertised.
    var uuids: [String] = []
    /// Those of its primary services, sorted, from the latest discovery.
    var gattUUIDs: [String] = []
    /// Its table as BlueZ has it on disk.
    var storedServices: [AttributeDatabase.Service] = []
    /// What the interface for batteries says; nil while it is not there.
    var batteryLevel: UInt8?
    var manufacturerData: [AdvertisingReport.ManufacturerData] = []
    var serviceData: [AdvertisingReport.ServiceData] = []
    var otherData: [AdvertisingReport.OtherData] = []
    /// Nil until it was heard; 0 where it sends none.
    var advertisingFlags: UInt8?
    var isPaired = false
    var isBonded = false
    var isTrusted = false
    var isBlocked = false
    var isConnected = false
    var areServicesResolved = false
    /// Forgotten half a minute after it was last heard.
    var isTemporary = true
    var isConnectable = false
    /// Heard in the discovery that is going on.
    var wasFound = false
    /// The properties that a fault makes the daemon write with a wrong type.
    var mistyped: Set<String> = []
    /// Objects are listed in the order they came.
    let sequence: Int

    init(key: DeviceKey, adapterPath: String, addressType: AddressType, sequence: Int) {
        self.key = key
        self.adapterPath = adapterPath
        path = adapterPath + "/dev_" + key.address.written(separator: UInt8(ascii: "_"))
        self.addressType = addressType
        self.sequence = sequence
    }

    /// `DC-2C-…`, what BlueZ calls a device that has given no name.
    private var addressAsName: String { key.address.written(separator: UInt8(ascii: "-")) }

    /// The value of a property; nil when it is absent.
    func value(of property: DeviceProperty) -> BusValue? {
        let value = properValue(of: property)
        guard !mistyped.isEmpty, mistyped.contains(property.rawValue) else { return value }
        return value?.mistyped
    }

    private func properValue(of property: DeviceProperty) -> BusValue? {
        switch property {
        case .address: .string(key.address.description)
        case .addressType: .string(addressType.rawValue)
        case .name: name.map(BusValue.string)
        case .alias: .string(alias ?? name ?? addressAsName)
        case .appearance: appearance.map(BusValue.uint16)
        case .icon: appearance.flatMap(Self.icon).map(BusValue.string)
        case .paired: .bool(isPaired)
        case .bonded: .bool(isBonded)
        case .trusted: .bool(isTrusted)
        case .blocked: .bool(isBlocked)
        case .legacyPairing, .cablePairing: .bool(false)
        case .rssi: rssi == 0 ? nil : .int16(rssi)
        case .connected: .bool(isConnected)
        case .uuids: .strings(shownUUIDs)
        case .adapter: .objectPath(adapterPath)
        case .manufacturerData: manufacturerData.isEmpty ? nil : .manufacturerData(manufacturerData)
        case .serviceData: serviceData.isEmpty ? nil : .serviceData(serviceData)
        case .txPower: txPower == 127 ? nil : .int16(txPower)
        case .advertisingFlags: advertisingFlags.map { .bytes([$0]) }
        case .advertisingData: otherData.isEmpty ? nil : .advertisingData(otherData)
        case .servicesResolved: .bool(areServicesResolved)
        }
    }

    /// What is advertised counts until the services are known, and after that only what they are.
    private var shownUUIDs: [String] {
        (areServicesResolved && !gattUUIDs.isEmpty) || uuids.isEmpty ? gattUUIDs : uuids
    }

    /// The icon's name that BlueZ derives from an appearance.
    static func icon(for appearance: UInt16) -> String? {
        switch appearance >> 6 {
        case 0x00: "unknown"
        case 0x01: "phone"
        case 0x02: "computer"
        case 0x05: "video-display"
        case 0x0A: "multimedia-player"
        case 0x0B: "scanner"
        case 0x0F:
            switch appearance & 0x3F {
            case 0x01: "input-keyboard"
            case 0x02: "input-mouse"
            case 0x03, 0x04: "input-gaming"
            case 0x05: "input-tablet"
            case 0x08: "scanner"
            default: nil
            }
        default: nil
        }
    }
}

extension BusValue {
    /// A value of another type, as a faulty daemon would write it.
    fileprivate var mistyped: BusValue {
        switch self {
        case .string, .objectPath: .uint32(0xBAD)
        case .bool, .byte, .int16, .uint16, .uint32, .variant, .other: .string("not what you expect")
        case .strings, .objectPaths: .string("0000180d-0000-1000-8000-00805f9b34fb")
        case .bytes: .string("0102")
        case .dictionary: .strings(["not", "bytes"])
        }
    }
}
