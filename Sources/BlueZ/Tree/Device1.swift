package import GATT

/// `org.bluez.Device1`: what `bluetoothd` knows of a remote device.
///
/// Kept small, about 150 bytes and what its data needs, because a busy place has ten thousand of them.
package struct Device1: Equatable, Sendable {
    /// Which properties there are. The first fields are those that each sighting touches.
    package internal(set) var fields: Fields = []
    /// Of the properties that are yes or no, those that are yes.
    var truths: Fields = []
    var rawRSSI: Int16 = Device1.unknownPower
    var rawTxPower: Int16 = Device1.unknownPower
    package internal(set) var manufacturerData = PackedData<UInt16>()
    package internal(set) var serviceData = PackedData<CBUUID>()
    package internal(set) var advertisingData = PackedData<UInt8>()

    /// The services that the device advertises, or has after its services were resolved.
    package internal(set) var uuids: [CBUUID] = []
    package internal(set) var address: BluetoothAddress
    /// The adapter that found the device.
    package internal(set) var adapter: ObjectKey
    /// Empty when ``name`` is `nil`.
    var rawName = ""
    var shortAlias = Alias.absent
    private(set) var rawIcon = ""
    private(set) var rawModalias = ""
    var rawClass: UInt32 = 0
    var rawAppearance: UInt16 = 0
    var rawAdvertisingFlags: UInt8 = 0
    package internal(set) var addressType = BluetoothAddress.AddressType.public

    /// What the specification and `bluetoothd` both write for a power that is not known.
    static let unknownPower: Int16 = 127

    init(address: BluetoothAddress, adapter: ObjectKey) {
        self.address = address
        self.adapter = adapter
    }
}

extension Device1 {
    /// The properties of the interface, as a set.
    package struct Fields: OptionSet, Hashable, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let address = Fields(rawValue: 1 << 0)
        package static let addressType = Fields(rawValue: 1 << 1)
        package static let name = Fields(rawValue: 1 << 2)
        package static let alias = Fields(rawValue: 1 << 3)
        package static let deviceClass = Fields(rawValue: 1 << 4)
        package static let appearance = Fields(rawValue: 1 << 5)
        package static let icon = Fields(rawValue: 1 << 6)
        package static let isPaired = Fields(rawValue: 1 << 7)
        package static let isBonded = Fields(rawValue: 1 << 8)
        package static let isTrusted = Fields(rawValue: 1 << 9)
        package static let isBlocked = Fields(rawValue: 1 << 10)
        package static let usesLegacyPairing = Fields(rawValue: 1 << 11)
        package static let rssi = Fields(rawValue: 1 << 12)
        package static let txPower = Fields(rawValue: 1 << 13)
        package static let isConnected = Fields(rawValue: 1 << 14)
        package static let areServicesResolved = Fields(rawValue: 1 << 15)
        package static let uuids = Fields(rawValue: 1 << 16)
        package static let modalias = Fields(rawValue: 1 << 17)
        package static let adapter = Fields(rawValue: 1 << 18)
        package static let manufacturerData = Fields(rawValue: 1 << 19)
        package static let serviceData = Fields(rawValue: 1 << 20)
        package static let advertisingFlags = Fields(rawValue: 1 << 21)
        package static let advertisingData = Fields(rawValue: 1 << 22)
        /// `CablePairing`, since 5.83; only that it is there counts.
        package static let hasCablePairing = Fields(rawValue: 1 << 24)
        /// No property of the device: the battery beside it (``ObjectTree/batteryLevel(of:)``).
        package static let battery = Fields(rawValue: 1 << 23)

        /// Those that `bluetoothd` sets from an advertisement and from nothing else.
        ///
        /// RSSI is signalled at every sighting while a filter is set, changed or not (`device_set_rssi_with_delta`, with
        /// a delta of 0), so a set of these is a sighting.
        package static let heard: Fields = [
            .rssi, .txPower, .manufacturerData, .serviceData, .advertisingFlags, .advertisingData,
        ]
    }

    /// An alias is nearly always the name, or the address with hyphens for a device without one: neither is stored.
    enum Alias: Hashable, Sendable {
        case absent
        case sameAsName
        case addressWithHyphens
        case own(String)
    }
}

// MARK: - Values

extension Device1 {
    /// The strength of the last advertisement in dBm; `nil` when the device was not heard in this discovery session, or
    /// the controller did not measure it (127, as virtual controllers say).
    package var rssi: Int? { rawRSSI == Device1.unknownPower ? nil : Int(rawRSSI) }

    /// The power in dBm at which the device says it sends.
    package var txPower: Int? { rawTxPower == Device1.unknownPower ? nil : Int(rawTxPower) }

    /// The name that the device advertises, or after a connection the one it has in its Generic Access service.
    package var name: String? { fields.contains(.name) ? rawName : nil }

    /// The name that somebody on this machine gave the device; its own otherwise, and of one without, its address.
    package var alias: String? {
        switch shortAlias {
        case .absent: nil
        case .sameAsName: rawName
        case .addressWithHyphens: Device1.hyphenated(address)
        case .own(let alias): alias
        }
    }

    /// What the device is, as a name from the desktop's icon theme.
    package var icon: String? { fields.contains(.icon) ? rawIcon : nil }
    /// Maker and product, such as `bluetooth:v004CpD001`.
    package var modalias: String? { fields.contains(.modalias) ? rawModalias : nil }
    /// The class of a BR/EDR device.
    package var deviceClass: UInt32? { fields.contains(.deviceClass) ? rawClass : nil }
    /// What the device is, by the SIG's table.
    package var appearance: UInt16? { fields.contains(.appearance) ? rawAppearance : nil }
    /// The flags of its advertisement (Core Specification Supplement, Part A, 1.3).
    package var advertisingFlags: UInt8? { fields.contains(.advertisingFlags) ? rawAdvertisingFlags : nil }

    package var isPaired: Bool { truths.contains(.isPaired) }
    package var isBonded: Bool { truths.contains(.isBonded) }
    package var isTrusted: Bool { truths.contains(.isTrusted) }
    package var isBlocked: Bool { truths.contains(.isBlocked) }
    package var usesLegacyPairing: Bool { truths.contains(.usesLegacyPairing) }
    package var isConnected: Bool { truths.contains(.isConnected) }
    package var areServicesResolved: Bool { truths.contains(.areServicesResolved) }

    static func hyphenated(_ address: BluetoothAddress) -> String {
        String(address.description.map { $0 == ":" ? "-" : $0 })
    }

    mutating func setIcon(_ icon: String) { rawIcon = icon }
    mutating func setModalias(_ modalias: String) { rawModalias = modalias }
}
