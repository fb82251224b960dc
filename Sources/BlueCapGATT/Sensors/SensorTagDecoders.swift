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
        func unsigned(_ range: Range<Int>) -> Double? {
            let number = UInt16(bigEndian: bytes[range])
            return number == .max ? nil : Double(number)
        }
        let power = UInt16(bigEndian: bytes[13..<15])
        let (millivolts, steps) = (power >> 5, power & 0x1F)
        let address = UInt64(bigEndian: bytes[18..<24])
        let climate: [SensorValue?] = [
            SensorValue(.temperature, signed(bytes[1..<3]).map { $0 / 200 }, unit: "°C"),
            SensorValue(.humidity, unsigned(3..<5).map { $0 / 400 }, unit: "%"),
            SensorValue(.pressure, unsigned(5..<7).map { ($0 + 50_000) / 100 }, unit: "hPa"),
        ]
        let others: [SensorValue?] = [
            SensorValue(.voltage, millivolts == 0x7FF ? nil : (Double(millivolts) + 1_600) / 1_000, unit: "V"),
            SensorValue(.txPower, steps == 0x1F ? nil : Double(steps) * 2 - 40, unit: "dBm"),
            SensorValue(.movementCount, bytes[15] == 0xFF ? nil : Double(bytes[15])),
        ]
        let values = (climate + accelerations(bytes, at: 7) + others).compactMap(\.self)
        guard !values.isEmpty else { return nil }
        return SensorReading(
            format: "ruuvi_5", values: values, sequenceNumber: unsigned(16..<18).map { UInt32($0) },
            address: address == 0xFFFF_FFFF_FFFF ? nil : BluetoothAddress(rawValue: address))
    }

    private func format3(_ bytes: [UInt8]) -> SensorReading {
        // The sign, seven bits of whole degrees, and a byte of hundredths.
        let hundredths = Int(bytes[2] & 0x7F) * 100 + Int(bytes[3])
        let temperature = bytes[3] > 99 ? nil : Double(bytes[2] & 0x80 == 0 ? hundredths : -hundredths) / 100
        let pressure = Double(UInt16(bigEndian: bytes[4..<6])) + 50_000
        let climate: [SensorValue?] = [
            SensorValue(.temperature, temperature, unit: "°C"),
            SensorValue(.humidity, Double(bytes[1]) / 2, unit: "%"),
            SensorValue(.pressure, pressure / 100, unit: "hPa"),
        ]
        let voltage = SensorValue(.voltage, Double(UInt16(bigEndian: bytes[12..<14])) / 1_000, unit: "V")
        let values = (climate + accelerations(bytes, at: 6) + [voltage]).compactMap(\.self)
        return SensorReading(format: "ruuvi_3", values: values)
    }

    private func accelerations(_ bytes: [UInt8], at start: Int) -> [SensorValue?] {
        [SensorQuantity.accelerationX, .accelerationY, .accelerationZ].enumerated().map { index, axis in
            let offset = start + 2 * index
            return SensorValue(axis, signed(bytes[offset..<offset + 2]).map { $0 / 1_000 }, unit: "g")
        }
    }

    /// The number of two bytes; `nil` for the lowest one, which is not available in format 5 and not allowed in format 3.
    private func signed(_ bytes: ArraySlice<UInt8>) -> Double? {
        let number = Int16(bigEndian: bytes)
        return number == .min ? nil : Double(number)
    }
}

/// Decodes the unencrypted telemetry of Eddystone beacons, ``Eddystone/TLM``: voltage, temperature, and how long the beacon has
/// been switched on and how much it has sent.
public struct EddystoneTelemetryDecoder: AdvertisementDecoder {
    /// Creates a decoder.
    public init() {}

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        guard let data = advertisement.serviceData[Eddystone.service], let frame = Eddystone.TLM(data: data)
        else { return nil }
        let values: [SensorValue?] = [
            SensorValue(.voltage, frame.batteryMillivolts.map { Double($0) / 1_000 }, unit: "V"),
            SensorValue(.temperature, frame.temperature, unit: "°C"),
            SensorValue(.advertisementCount, .number(Double(frame.advertisementCount))),
            SensorValue(.uptime, .number(frame.uptime), unit: "s"),
        ]
        return SensorReading(
            format: "eddystone_tlm", values: values.compactMap(\.self), sequenceNumber: frame.advertisementCount)
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
        let reading: SensorReading
        switch bytes.count {
        case 13: reading = atc1441(bytes)
        case 15: reading = pvvx(bytes)
        default: return nil
        }
        return advertisement.address == nil || advertisement.address == reading.address ? reading : nil
    }

    /// The address and all numbers have the most significant byte first.
    private func atc1441(_ bytes: [UInt8]) -> SensorReading {
        SensorReading(
            format: "atc1441",
            values: [
                SensorValue(.temperature, .number(Double(Int16(bigEndian: bytes[6..<8])) / 10), unit: "°C"),
                SensorValue(.humidity, .number(Double(bytes[8])), unit: "%"),
                SensorValue(.battery, .number(Double(bytes[9])), unit: "%"),
                SensorValue(.voltage, .number(Double(UInt16(bigEndian: bytes[10..<12])) / 1_000), unit: "V"),
            ],
            sequenceNumber: UInt32(bytes[12]), address: BluetoothAddress(rawValue: UInt64(bigEndian: bytes[0..<6])))
    }

    /// The address and all numbers have the least significant byte first.
    private func pvvx(_ bytes: [UInt8]) -> SensorReading {
        SensorReading(
            format: "pvvx",
            values: [
                SensorValue(.temperature, .number(Double(Int16(littleEndian: bytes[6..<8])) / 100), unit: "°C"),
                SensorValue(.humidity, .number(Double(UInt16(littleEndian: bytes[8..<10])) / 100), unit: "%"),
                SensorValue(.voltage, .number(Double(UInt16(littleEndian: bytes[10..<12])) / 1_000), unit: "V"),
                SensorValue(.battery, .number(Double(bytes[12])), unit: "%"),
                SensorValue(.statusFlags, .number(Double(bytes[14]))),
            ],
            sequenceNumber: UInt32(bytes[13]), address: BluetoothAddress(rawValue: UInt64(littleEndian: bytes[0..<6])))
    }
}

extension SensorValue {
    /// Creates a number; `nil` if it is not available.
    fileprivate init?(_ quantity: SensorQuantity, _ number: Double?, unit: String = "") {
        guard let number else { return nil }
        self.init(quantity, .number(number), unit: unit)
    }
}

extension FixedWidthInteger {
    /// The number of little endian bytes, without a sign if there are fewer than the type has.
    init(littleEndian bytes: ArraySlice<UInt8>) {
        self = bytes.reversed().reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
    }
}
