import BlueCapDBus
package import BlueCapGATT

/// `org.bluez.Device1`: the properties of a remote device.
///
/// Kept small, 70 bytes without its data, because there may be ten thousand devices. The smallest fields are the last ones,
/// so that another field of what contains a device takes no space.
package struct Device1: Equatable, Sendable {
    /// Empty when ``name`` is `nil`.
    var rawName = ""
    package internal(set) var address: BluetoothAddress
    /// The services that the device advertises, or has after its services were resolved.
    package internal(set) var uuids: [CBUUID] = []
    package internal(set) var advertisingData = PackedData<UInt8>()
    package internal(set) var serviceData = PackedData<CBUUID>()

    // From here on, what each report changes.
    package internal(set) var manufacturerData = PackedData<UInt16>()
    /// The properties that have a value.
    package internal(set) var fields: Fields = []
    /// The Boolean properties that are true.
    var truths: Fields = []
    var rawRSSI: Int16 = Device1.unknownPower
    var rawTxPower: Int16 = Device1.unknownPower
    var rawAdvertisingFlags: UInt8 = 0
    package internal(set) var addressType = BluetoothAddress.AddressType.public

    /// The value of the specification and of `bluetoothd` for a power that is not known.
    static let unknownPower: Int16 = 127
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
        package static let isPaired = Fields(rawValue: 1 << 7)
        package static let isBonded = Fields(rawValue: 1 << 8)
        package static let isTrusted = Fields(rawValue: 1 << 9)
        package static let rssi = Fields(rawValue: 1 << 12)
        package static let txPower = Fields(rawValue: 1 << 13)
        package static let isConnected = Fields(rawValue: 1 << 14)
        package static let areServicesResolved = Fields(rawValue: 1 << 15)
        package static let uuids = Fields(rawValue: 1 << 16)
        package static let manufacturerData = Fields(rawValue: 1 << 19)
        package static let serviceData = Fields(rawValue: 1 << 20)
        package static let advertisingFlags = Fields(rawValue: 1 << 21)
        package static let advertisingData = Fields(rawValue: 1 << 22)
        /// `CablePairing`, since 5.83, of which only the presence counts.
        package static let hasCablePairing = Fields(rawValue: 1 << 24)
        /// Not a property: ``Device1/isRefused``.
        package static let isRefused = Fields(rawValue: 1 << 25)
        /// Not a property: the level of the device's battery (``ObjectTree/batteryLevel(of:)``).
        package static let battery = Fields(rawValue: 1 << 23)

        /// Those that concern the device's link and its bond.
        static let ofLink: Fields = ofStatus.union(.isRefused)
        /// What the status of a link is made of.
        package static let ofStatus: Fields = [.isConnected, .areServicesResolved, .isPaired, .isBonded]

        /// The properties that `bluetoothd` sets only from an advertisement.
        ///
        /// RSSI is signalled for every advertisement while a filter is set, changed or not (`device_set_rssi_with_delta`,
        /// with a delta of 0), so a new value of one of these means that the device was discovered.
        package static let ofAdvertisements: Fields = [
            .rssi, .txPower, .manufacturerData, .serviceData, .advertisingFlags, .advertisingData,
        ]
    }
}

// MARK: - Values

extension Device1 {
    /// The strength of the last advertisement in dBm; `nil` if the device was not discovered in this discovery session, or
    /// the controller did not measure it (127, as virtual controllers report).
    package var rssi: Int? { rawRSSI == Device1.unknownPower ? nil : Int(rawRSSI) }

    /// The transmit power in dBm that the device advertises.
    package var txPower: Int? { rawTxPower == Device1.unknownPower ? nil : Int(rawTxPower) }

    /// The name that the device advertises, or after a connection the one it has in its Generic Access service.
    package var name: String? { fields.contains(.name) ? rawName : nil }

    /// The flags of its advertisement (Core Specification Supplement, Part A, 1.3).
    package var advertisingFlags: UInt8? { fields.contains(.advertisingFlags) ? rawAdvertisingFlags : nil }

    package var isPaired: Bool { truths.contains(.isPaired) && !isRefused }
    package var isBonded: Bool { truths.contains(.isBonded) && !isRefused }
    /// Whether this program has refused the device's pairing: its bond counts as none (``BondNote/isRefused``).
    package internal(set) var isRefused: Bool {
        get { truths.contains(.isRefused) }
        set { if newValue { truths.insert(.isRefused) } else { truths.remove(.isRefused) } }
    }
    /// Whether the devices have paired: BlueZ signals `Bonded` before `Paired`.
    package var hasPaired: Bool { isPaired || isBonded }
    /// Whether BlueZ has keys of the device, also those of a bond that counts as none.
    package var hasKeys: Bool { !truths.isDisjoint(with: [.isPaired, .isBonded]) }
    /// Whether the keys remain when the link ends: ``isBonded``, which BlueZ has since 5.65, and before ``isPaired``.
    package var keepsKeys: Bool { fields.contains(.isBonded) ? isBonded : isPaired }
    package var isTrusted: Bool { truths.contains(.isTrusted) }
    package var isConnected: Bool { truths.contains(.isConnected) }
    package var areServicesResolved: Bool { truths.contains(.areServicesResolved) }
    /// Whether there is a link. BlueZ from 5.66 on may report the services of a first connection without ever reporting the
    /// connection (seen in the radio lab).
    package var hasLink: Bool { isConnected || areServicesResolved }
}

/// Each property of `org.bluez.Device1` that we use, once (BlueZ's `doc/org.bluez.Device.rst`, up to 5.70
/// `doc/device-api.txt`, and `src/device.c`). None contains whether the device can be connected to.
extension Device1: PropertyOwner {
    package static let table = PropertyTable<Device1>(
        "org.bluez.Device1",
        [
            // Of the last advertisement; gone when discovery stops. 127 is "not available".
            .value(
                "RSSI", .rssi, "n", isOptional: true,
                read: { $0.int16().set(&$1.rawRSSI) }, clear: { $0.rawRSSI = Device1.unknownPower }),
            // As advertised; gone when discovery stops.
            .value(
                "TxPower", .txPower, "n", isOptional: true,
                read: { $0.int16().set(&$1.rawTxPower) }, clear: { $0.rawTxPower = Device1.unknownPower }),
            // By company identifier.
            .value(
                "ManufacturerData", .manufacturerData, "a{qv}", isOptional: true,
                read: { $1.manufacturerData.read(&$0) { $0.uint16() } }, clear: { $0.manufacturerData.removeAll() }),
            // By service.
            .value(
                "ServiceData", .serviceData, "a{sv}", isOptional: true,
                read: { $1.serviceData.read(&$0) { $0.withString { CBUUID(utf8: $0) } ?? nil } },
                clear: { $0.serviceData.removeAll() }),
            // The 48 bit address.
            .value("Address", .address, "s") { $0.address().set(&$1.address) },
            // "public" or "random"; of a BR/EDR device "public".
            .value("AddressType", .addressType, "s") { $0.addressType().set(&$1.addressType) },
            // The remote name. Changes at a connection from the advertised one to that of Generic Access.
            .value("Name", .name, "s", isOptional: true, read: { $1.readName(&$0) }, clear: { $0.rawName = "" }),
            // The name that it has on this machine, of which only the change counts.
            .value("Alias", .alias, "s") { reader, _ in reader.withString { _ in } != nil },
            .flag("Paired", .isPaired),
            // Since 5.65.
            .flag("Bonded", .isBonded),
            .flag("Trusted", .isTrusted),
            .flag("CablePairing", .hasCablePairing),
            .flag("Connected", .isConnected),
            // True after discovery of the services, also when it failed.
            .flag("ServicesResolved", .areServicesResolved),
            // Services, advertised or resolved.
            .value("UUIDs", .uuids, "as", read: { $0.uuids().set(&$1.uuids) }, clear: { $0.uuids = [] }),
            // One byte of flags, 0 of a packet without flags. Up to 5.77 only with --experimental.
            .value("AdvertisingFlags", .advertisingFlags, "ay", isOptional: true) {
                ($0.withBytes { $0.first } ?? nil).set(&$1.rawAdvertisingFlags)
            },
            // The parts of the advertisement that no other property has, by their type. Up to 5.77 only with
            // --experimental. `bt_ad_add_data` rejects most types, those of solicited services too (5.55 to 5.87); and only
            // a change of type 0x26 is signalled (`add_data`).
            .value(
                "AdvertisingData", .advertisingData, "a{yv}", isOptional: true,
                read: { $1.advertisingData.read(&$0) { $0.byte() } }, clear: { $0.advertisingData.removeAll() }),
        ])
}

// MARK: - Reading values

extension Device1 {
    private mutating func readName(_ reader: inout MessageReader) -> Bool {
        let isText: Void? = reader.withString { text in
            guard !text.equals(rawName) else { return }
            rawName = String(decoding: text, as: UTF8.self)
        }
        return isText != nil
    }
}

extension PackedData {
    /// Replaces the entries by those of a dictionary whose values are byte arrays in variants. Entries of another form are
    /// left out; a value that is no dictionary changes nothing.
    fileprivate mutating func read(
        _ reader: inout MessageReader, key: (inout MessageReader) -> Key?
    ) -> Bool {
        guard reader.elementType == .dictionaryEntry else { return false }
        removeAll()
        reader.dictionary { entry in
            guard let key = key(&entry) else { return }
            entry.variant { $0.withBytes { append(key, $0) } }
        }
        return true
    }
}

extension Optional {
    /// Stores the value in a property, if there is one, and returns whether there is.
    func set(_ place: inout Wrapped) -> Bool {
        guard let value = self else { return false }
        place = value
        return true
    }

    func set(_ place: inout Wrapped?) -> Bool {
        guard let value = self else { return false }
        place = value
        return true
    }
}

extension MessageReader {
    mutating func address() -> BluetoothAddress? { withString { BluetoothAddress(utf8: $0) } ?? nil }

    /// "public" or "random".
    mutating func addressType() -> BluetoothAddress.AddressType? {
        withString { $0.equals("random") ? .random : .public }
    }

    /// The UUIDs of an array of strings, without the strings that are none; nil for another type. Not by `texts`, whose
    /// closure is not specialised: that costs 3 % of a discovery.
    mutating func uuids() -> [CBUUID]? {
        guard elementType == .string else { return nil }
        var uuids: [CBUUID] = []
        array { element in
            if let uuid = element.withString({ CBUUID(utf8: $0) }) ?? nil { uuids.append(uuid) }
        }
        return uuids
    }
}
