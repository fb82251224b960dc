import Foundation

/// Decodes manufacturer data of Govee's thermometers.
///
/// The models are H5072, H5075, H5051, H5052, H5071 and H5074 (company 0xEC88), H5179 (0x8801), and H5100 to H5105, H5108, H5110,
/// H5174, H5177 and GV5179 (0x0001). The last ones are recognized by ``AdvertisementFields/localName``, since 0x0001 is another
/// company. A sensor that reports an error has the value ``SensorQuantity/battery`` only.
public struct GoveeDecoder: AdvertisementDecoder {
    /// Creates a decoder.
    public init() {}

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        func bytes(_ company: UInt16, _ counts: Int...) -> [UInt8]? {
            advertisement.manufacturerData[company].flatMap { counts.contains($0.count) ? [UInt8]($0) : nil }
        }
        if let bytes = bytes(0xEC88, 6) { return packed(bytes, at: 1) }
        if let bytes = bytes(0xEC88, 7, 9) { return separate(bytes, at: 1) }
        if let bytes = bytes(0x8801, 9) { return separate(bytes, at: 4) }
        guard let bytes = bytes(0x0001, 6, 8), let name = advertisement.localName else { return nil }
        return name.contains(/H510[0-58]|H5110|H517[47]|GV5179/) ? packed(bytes, at: 2) : nil
    }

    /// Three bytes with the most significant first, in decimal digits TTTHHH after the sign, and a byte of the battery.
    private func packed(_ bytes: [UInt8], at start: Int) -> SensorReading? {
        let (number, battery) = (UInt32(bigEndian: bytes[start..<start + 3]), bytes[start + 3])
        let (isNegative, digits) = (number & 0x80_0000 != 0, number & 0x7F_FFFF)
        let tenths = Double(digits / 1_000)
        // From -40 to 100 °C; the highest bit of the battery is an error.
        let isMeasured = battery & 0x80 == 0 && tenths <= (isNegative ? 400 : 1_000)
        let (celsius, share) = ((isNegative ? -tenths : tenths) / 10, Double(digits % 1_000) / 10)
        return reading(isMeasured ? celsius : nil, isMeasured ? share : nil, battery & 0x7F)
    }

    private func separate(_ bytes: [UInt8], at start: Int) -> SensorReading? {
        let celsius = Double(Int16(littleEndian: bytes[start..<start + 2])) / 100
        return reading(celsius, Double(UInt16(littleEndian: bytes[start + 2..<start + 4])) / 100, bytes[start + 4])
    }

    private func reading(_ celsius: Double?, _ share: Double?, _ battery: UInt8) -> SensorReading? {
        SensorReading(
            "govee", [(.temperature, celsius, "°C"), (.humidity, share, "%"), (.battery, Double(battery), "%")])
    }
}

/// Decodes MiBeacon from version 2, the format of Xiaomi's own firmware (data of service FE95): temperature, humidity, battery, and
/// the moisture and conductivity of soil. Encrypted data results in a reading with ``SensorReading/isEncrypted``.
public struct MiBeaconDecoder: AdvertisementDecoder {
    /// Creates a decoder.
    public init() {}

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        guard let data = advertisement.serviceData[CBUUID(0xFE95)], data.count >= 5 else { return nil }
        let bytes = [UInt8](data)
        // Bit 3: encrypted; 4: with the address; 5: with a byte of capabilities; 6: with objects; 7: of a mesh.
        let control = UInt16(littleEndian: bytes[..<2])
        guard control & 0xC0 == 0x40, control >> 12 >= 2 else { return nil }
        var reading = SensorReading(format: "mibeacon", sequenceNumber: UInt32(bytes[4]))
        var objects = bytes[5...]
        if control & 0x10 != 0 {
            guard objects.count >= 6 else { return nil }
            reading.address = BluetoothAddress(rawValue: UInt64(littleEndian: objects.prefix(6)))
            objects = objects.dropFirst(6)
        }
        if control & 0x20 != 0 { objects = objects.dropFirst() }
        reading.isEncrypted = control & 0x08 != 0
        while !reading.isEncrypted, objects.count >= 3 {
            let (kind, size) = (UInt16(littleEndian: objects.prefix(2)), Int(objects[objects.startIndex + 2]))
            let value = objects.dropFirst(3).prefix(size)
            if value.count == size { reading.values += values(kind, value) }
            objects = objects[value.endIndex...]
        }
        return reading.isEncrypted || !reading.values.isEmpty ? reading : nil
    }

    private func values(_ kind: UInt16, _ bytes: ArraySlice<UInt8>) -> [SensorValue] {
        let number = Double(Int16(littleEndian: bytes.prefix(2)))
        switch (kind, bytes.count) {
        case (0x1004, 2): return [SensorValue(.temperature, .number(number / 10), unit: "°C")]
        case (0x1006, 2): return [SensorValue(.humidity, .number(number / 10), unit: "%")]
        case (0x1008, 1): return [SensorValue(.moisture, .number(number), unit: "%")]
        case (0x1009, 2): return [SensorValue(.conductivity, .number(number), unit: "µS/cm")]
        case (0x100A, 1): return [SensorValue(.battery, .number(number), unit: "%")]
        case (0x100D, 4): return values(0x1004, bytes.prefix(2)) + values(0x1006, bytes.dropFirst(2))
        default: return []
        }
    }
}

/// Decodes data that is advertised for services of the Bluetooth SIG.
///
/// In the form of the characteristics these are battery levels (180F, 2A19), temperatures (2A6E, and whole °C for 1809, as Espruino
/// sends them), humidities (2A6F, in hundredths or in whole %), and pressures (2A6D); in Xiaomi's form, weights (181D of 10 bytes, and
/// 181B of 13 bytes with the impedance of the body).
public struct ServiceDataDecoder: AdvertisementDecoder {
    /// Creates a decoder.
    public init() {}

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        func bytes(_ service: UInt32, _ count: Int) -> ArraySlice<UInt8>? {
            advertisement.serviceData[CBUUID(service)].flatMap { $0.count == count ? [UInt8]($0)[...] : nil }
        }
        if let scale = bytes(0x181D, 10) { return weight(scale[1..<3], scale[0], nil) }
        if let scale = bytes(0x181B, 13) {
            return weight(scale[11..<13], scale[1] & 0xFE | scale[0] & 1, scale[1] & 0b10 == 0 ? nil : scale[9..<11])
        }
        // The lowest signed and the highest unsigned number are "not known".
        let celsius = bytes(0x2A6E, 2).map { Int16(littleEndian: $0) }
        let share = bytes(0x2A6F, 2).map { UInt16(littleEndian: $0) }
        // Each with its type: the compiler otherwise takes a second for the types of one literal.
        let temperature: Double? =
            celsius.flatMap { $0 == .min ? nil : Double($0) / 100 }
            ?? bytes(0x1809, 1).map { Double(Int8(littleEndian: $0)) }
        let humidity: Double? =
            share.flatMap { $0 == .max ? nil : Double($0) / 100 } ?? bytes(0x2A6F, 1).map { Double($0[0]) }
        let tenths: UInt32? = bytes(0x2A6D, 4).map { UInt32(littleEndian: $0) }
        let pressure: Double? = tenths.map { Double($0) / 1_000 }
        let battery: Double? = (bytes(0x180F, 1) ?? bytes(0x2A19, 1)).map { Double($0[0]) }
        return SensorReading(
            "service_data",
            [
                (.temperature, temperature, "°C"), (.humidity, humidity, "%"), (.pressure, pressure, "hPa"),
                (.battery, battery, "%"),
            ])
    }

    private func weight(_ mass: ArraySlice<UInt8>, _ flags: UInt8, _ impedance: ArraySlice<UInt8>?) -> SensorReading? {
        // Bit 0: in hundredths of pounds, not of half kilograms.
        let (isPounds, number) = (flags & 1 != 0, Double(UInt16(littleEndian: mass)))
        let mass = (SensorQuantity.mass, number / (isPounds ? 100 : 200), isPounds ? "lb" : "kg")
        let ohms = impedance.map { Double(UInt16(littleEndian: $0)) }
        var reading = SensorReading("service_data", [mass, (.impedance, ohms, "Ω")])
        // Bit 5: the weight no longer changes; 7: nothing is on the scale, and the weight is the last one.
        reading?.values.append(SensorValue(.stabilized, .flag(flags & 0xA0 == 0x20)))
        return reading
    }
}
