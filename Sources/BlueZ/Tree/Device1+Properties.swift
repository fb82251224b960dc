import DBus
import GATT

/// Each property of `org.bluez.Device1` that we use, once (BlueZ's `doc/org.bluez.Device.rst`, up to 5.70
/// `doc/device-api.txt`, and `src/device.c`). None says whether the device can be connected to.
extension Device1: PropertyOwner {
    package static let table = PropertyTable<Device1>(
        "org.bluez.Device1",
        [
            // The 48 bit address.
            .value("Address", .address, "s") {
                guard let address = $0.withString({ BluetoothAddress(utf8: $0) }) ?? nil else { return false }
                $1.address = address
                return true
            },
            // "public" or "random"; of a BR/EDR device "public".
            .value("AddressType", .addressType, "s") {
                guard let isRandom = $0.withString({ $0.equals("random") }) else { return false }
                $1.addressType = isRandom ? .random : .public
                return true
            },
            // The remote name. Changes at a connection from the advertised one to that of Generic Access.
            .value("Name", .name, "s", isOptional: true, read: { $1.readName(&$0) }, clear: { $0.setName("") }),
            // The name that it has on this machine; never missing.
            .value("Alias", .alias, "s") { $1.readAlias(&$0) },
            // BR/EDR class of device.
            .value("Class", .deviceClass, "u", isOptional: true) { $0.uint32().set(&$1.rawClass) },
            // GAP appearance.
            .value("Appearance", .appearance, "q", isOptional: true) { $0.uint16().set(&$1.rawAppearance) },
            // A name from the freedesktop icon theme, derived from class or appearance.
            .value(
                "Icon", .icon, "s", isOptional: true,
                read: {
                    guard let icon = $0.string() else { return false }
                    $1.setIcon(icon)
                    return true
                }, clear: { $0.setIcon("") }),
            .flag("Paired", .isPaired),
            // Since 5.65.
            .flag("Bonded", .isBonded),
            .flag("CablePairing", .hasCablePairing),
            .flag("Trusted", .isTrusted),
            .flag("Blocked", .isBlocked),
            .flag("LegacyPairing", .usesLegacyPairing),
            // Of the last advertisement; gone when discovery stops. 127 is "not available".
            .value(
                "RSSI", .rssi, "n", isOptional: true,
                read: { $0.int16().set(&$1.rawRSSI) }, clear: { $0.rawRSSI = Device1.unknownPower }),
            // As advertised; gone when discovery stops.
            .value(
                "TxPower", .txPower, "n", isOptional: true,
                read: { $0.int16().set(&$1.rawTxPower) }, clear: { $0.rawTxPower = Device1.unknownPower }),
            .flag("Connected", .isConnected),
            // True after discovery of the services, also when it failed.
            .flag("ServicesResolved", .areServicesResolved),
            // Services, advertised or resolved.
            .value("UUIDs", .uuids, "as", read: { $1.readUUIDs(&$0) }, clear: { $0.uuids = [] }),
            .value(
                "Modalias", .modalias, "s", isOptional: true,
                read: {
                    guard let modalias = $0.string() else { return false }
                    $1.setModalias(modalias)
                    return true
                }, clear: { $0.setModalias("") }),
            // The path of the adapter; below it lies the device's own.
            .value("Adapter", .adapter, "o") {
                guard let key = $0.withString({ ObjectKey(path: $0) }) else { return false }
                if let key { $1.adapter = key }
                return true
            },
            // By company identifier.
            .value(
                "ManufacturerData", .manufacturerData, "a{qv}", isOptional: true,
                read: { $1.manufacturerData.read(&$0) { $0.uint16() } }, clear: { $0.manufacturerData.removeAll() }),
            // By service.
            .value(
                "ServiceData", .serviceData, "a{sv}", isOptional: true,
                read: { $1.serviceData.read(&$0) { $0.withString { CBUUID(utf8: $0) } ?? nil } },
                clear: { $0.serviceData.removeAll() }),
            // One byte of flags, 0 of a packet without flags. Up to 5.77 only with --experimental.
            .value("AdvertisingFlags", .advertisingFlags, "ay", isOptional: true) {
                guard let flags = $0.withBytes({ $0.first }) ?? nil else { return false }
                $1.rawAdvertisingFlags = flags
                return true
            },
            // The parts of the advertisement that no other property has, by their type. Up to 5.77 only with
            // --experimental. `bt_ad_add_data` rejects most types, those of solicited services too (5.55 to 5.87); and only
            // a change of type 0x26 is signalled (`add_data`).
            .value(
                "AdvertisingData", .advertisingData, "a{yv}", isOptional: true,
                read: { $1.advertisingData.read(&$0) { $0.byte() } }, clear: { $0.advertisingData.removeAll() }),
        ])
}

// MARK: - Values that are more than a number

extension Device1 {
    private mutating func readName(_ reader: inout MessageReader) -> Bool {
        let isText: Void? = reader.withString { text in
            guard !text.equals(rawName) else { return }
            setName(String(decoding: text, as: UTF8.self))
        }
        return isText != nil
    }

    /// The alias that was "the same as the name" stays what it was: BlueZ says so if it changes along.
    private mutating func setName(_ name: String) {
        if shortAlias == .sameAsName { shortAlias = .own(rawName) }
        rawName = name
    }

    private mutating func readAlias(_ reader: inout MessageReader) -> Bool {
        let isText: Void? = reader.withString { text in
            shortAlias =
                if !rawName.isEmpty, text.equals(rawName) { .sameAsName } else {
                    .own(String(decoding: text, as: UTF8.self))
                }
        }
        return isText != nil
    }

    /// Finds the short form of the alias, once all properties of a message are in: they come in any order.
    mutating func settleAlias() {
        guard case .own(let alias) = shortAlias else { return }
        if !rawName.isEmpty, alias == rawName {
            shortAlias = .sameAsName
        } else if alias == Device1.hyphenated(address) {
            shortAlias = .addressWithHyphens
        }
    }

    private mutating func readUUIDs(_ reader: inout MessageReader) -> Bool {
        guard reader.elementType == .string else { return false }
        var new: [CBUUID] = []
        reader.array { element in
            if let uuid = element.withString({ CBUUID(utf8: $0) }) ?? nil { new.append(uuid) }
        }
        uuids = new
        return true
    }
}

extension PackedData {
    /// Replaces the entries by those of the dictionary at which the reader stands, whose values are byte arrays in
    /// variants. Entries of another form are left out; a value that is no dictionary changes nothing.
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
    /// Puts the value where it belongs, if there is one, and says whether there was.
    func set(_ place: inout Wrapped) -> Bool {
        guard let value = self else { return false }
        place = value
        return true
    }
}
