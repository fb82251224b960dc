import Foundation

/// Decodes the advertisements of RuuviTags: data formats 5 (RAWv2) and 3 (RAWv1), in manufacturer data of company 0x0499
/// (<https://docs.ruuvi.com>).
///
/// Values that a format marks as not available are omitted. Format 3 marks none: its sensors send 0. Pressure is in hPa, as in
/// all readings; accelerations are in g, as Ruuvi documents them.
public struct RuuviDecoder: AdvertisementDecoder {
    /// The company identifier under which the tags advertise.
    public static let company: UInt16 = 0x0499

    /// Creates a decoder.
    public init() {}

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        guard let data = advertisement.manufacturerData[Self.company] else { return nil }
        let bytes = [UInt8](data)
        switch bytes.first {
        case 5 where bytes.count >= 24: return format5(bytes)
        case 3 where bytes.count >= 14: return format3(bytes)
        default: return nil
        }
    }

    private func format5(_ bytes: [UInt8]) -> SensorReading? {
        // Not available are the lowest number of signed fields and the highest of unsigned ones.
        func unsigned(_ start: Int) -> Double? {
            let number = UInt16(bigEndian: bytes[start..<start + 2])
            return number == .max ? nil : Double(number)
        }
        let power = UInt16(bigEndian: bytes[13..<15])
        let (millivolts, steps) = (power >> 5, power & 0x1F)
        let address = UInt64(bigEndian: bytes[18..<24])
        return SensorReading(
            "ruuvi_5",
            [
                (.temperature, signed(bytes, 1).map { $0 / 200 }, "°C"),
                (.humidity, unsigned(3).map { $0 / 400 }, "%"),
                (.pressure, unsigned(5).map { ($0 + 50_000) / 100 }, "hPa"),
                (.accelerationX, signed(bytes, 7).map { $0 / 1_000 }, "g"),
                (.accelerationY, signed(bytes, 9).map { $0 / 1_000 }, "g"),
                (.accelerationZ, signed(bytes, 11).map { $0 / 1_000 }, "g"),
                (.voltage, millivolts == 0x7FF ? nil : (Double(millivolts) + 1_600) / 1_000, "V"),
                (.txPower, steps == 0x1F ? nil : Double(steps) * 2 - 40, "dBm"),
                (.movementCount, bytes[15] == 0xFF ? nil : Double(bytes[15]), ""),
            ],
            sequenceNumber: unsigned(16).map { UInt32($0) },
            address: address == 0xFFFF_FFFF_FFFF ? nil : BluetoothAddress(rawValue: address))
    }

    private func format3(_ bytes: [UInt8]) -> SensorReading? {
        // The sign, seven bits of whole degrees, and a byte of hundredths.
        let hundredths = Int(bytes[2] & 0x7F) * 100 + Int(bytes[3])
        let temperature = Double(bytes[2] & 0x80 == 0 ? hundredths : -hundredths) / 100
        return SensorReading(
            "ruuvi_3",
            [
                (.temperature, bytes[3] > 99 ? nil : temperature, "°C"),
                (.humidity, Double(bytes[1]) / 2, "%"),
                (.pressure, (Double(UInt16(bigEndian: bytes[4..<6])) + 50_000) / 100, "hPa"),
                (.accelerationX, signed(bytes, 6).map { $0 / 1_000 }, "g"),
                (.accelerationY, signed(bytes, 8).map { $0 / 1_000 }, "g"),
                (.accelerationZ, signed(bytes, 10).map { $0 / 1_000 }, "g"),
                (.voltage, Double(UInt16(bigEndian: bytes[12..<14])) / 1_000, "V"),
            ])
    }

    /// The number of two bytes; `nil` for the lowest one, which is not available in format 5 and not allowed in format 3.
    private func signed(_ bytes: [UInt8], _ start: Int) -> Double? {
        let number = Int16(bigEndian: bytes[start..<start + 2])
        return number == .min ? nil : Double(number)
    }
}

/// Decodes the unencrypted telemetry of Eddystone beacons, ``Eddystone/TLM``.
public struct EddystoneTelemetryDecoder: AdvertisementDecoder {
    /// Creates a decoder.
    public init() {}

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        guard let data = advertisement.serviceData[Eddystone.service], let frame = Eddystone.TLM(data: data)
        else { return nil }
        return SensorReading(
            "eddystone_tlm",
            [
                (.voltage, frame.batteryMillivolts.map { Double($0) / 1_000 }, "V"),
                (.temperature, frame.temperature, "°C"),
                (.advertisementCount, Double(frame.advertisementCount), ""),
                (.uptime, frame.uptime, "s"),
            ], sequenceNumber: frame.advertisementCount)
    }
}

/// Decodes the formats of the free firmware for thermometers of Xiaomi and others, as data of service 181A: that of ATC1441, and
/// the custom format of pvvx (<https://github.com/pvvx/ATC_MiThermometer>).
///
/// Service 181A (Environmental Sensing) belongs to no manufacturer. The decoder recognizes its formats by their lengths, 13 and 15
/// bytes, and by the address of the sender, which both contain: if ``AdvertisementFields/address`` is not `nil`, data with another
/// address is not decoded. The encrypted variants of these formats have nothing by which they can be recognized; they are not
/// decoded.
public struct XiaomiThermometerDecoder: AdvertisementDecoder {
    /// The service that has the formats as its data.
    public static let service = CBUUID(0x181A)

    /// Creates a decoder.
    public init() {}

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        guard let data = advertisement.serviceData[Self.service] else { return nil }
        let bytes = [UInt8](data)
        let reading = bytes.count == 13 ? atc1441(bytes) : bytes.count == 15 ? pvvx(bytes) : nil
        return advertisement.address == nil || advertisement.address == reading?.address ? reading : nil
    }

    /// The address and all numbers have the most significant byte first.
    private func atc1441(_ bytes: [UInt8]) -> SensorReading? {
        SensorReading(
            "atc1441",
            [
                (.temperature, Double(Int16(bigEndian: bytes[6..<8])) / 10, "°C"),
                (.humidity, Double(bytes[8]), "%"),
                (.battery, Double(bytes[9]), "%"),
                (.voltage, Double(UInt16(bigEndian: bytes[10..<12])) / 1_000, "V"),
            ], sequenceNumber: UInt32(bytes[12]), address: BluetoothAddress(rawValue: UInt64(bigEndian: bytes[0..<6])))
    }

    /// The address and all numbers have the least significant byte first.
    private func pvvx(_ bytes: [UInt8]) -> SensorReading? {
        SensorReading(
            "pvvx",
            [
                (.temperature, Double(Int16(littleEndian: bytes[6..<8])) / 100, "°C"),
                (.humidity, Double(UInt16(littleEndian: bytes[8..<10])) / 100, "%"),
                (.voltage, Double(UInt16(littleEndian: bytes[10..<12])) / 1_000, "V"),
                (.battery, Double(bytes[12]), "%"),
                (.statusFlags, Double(bytes[14]), ""),
            ], sequenceNumber: UInt32(bytes[13]),
            address: BluetoothAddress(rawValue: UInt64(littleEndian: bytes[0..<6])))
    }
}

extension SensorReading {
    /// Creates a reading of those numbers that are available; `nil` if none is.
    init?(
        _ format: String, _ numbers: [(SensorQuantity, Double?, unit: String)], sequenceNumber: UInt32? = nil,
        address: BluetoothAddress? = nil
    ) {
        let values = numbers.compactMap { quantity, number, unit in
            number.map { SensorValue(quantity, .number($0), unit: unit) }
        }
        guard !values.isEmpty else { return nil }
        self.init(format: format, values: values, sequenceNumber: sequenceNumber, address: address)
    }
}

extension FixedWidthInteger {
    /// The number of little endian bytes, without a sign if there are fewer than the type has.
    init(littleEndian bytes: ArraySlice<UInt8>) {
        self = bytes.reversed().reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
    }
}
