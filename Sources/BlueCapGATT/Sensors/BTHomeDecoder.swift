public import Foundation

/// Decodes BTHome v2, an open format for sensors, buttons and dimmers (<https://bthome.io/format>).
///
/// The data of service FCD2 is a byte of device information and a list of objects, each an object identifier and a value.
/// All objects of the published table are decoded. As the specification says, an identifier that is not in the table ends the
/// list, since the length of its value is not known; so does an object that is cut short. The reading has the values before it.
///
/// - An event that did not occur (`None`) has no value, but counts in ``SensorValue/number``: of two buttons, the first of which
///   was not pressed, the reading has the value with the number 2.
/// - The packet identifier is the ``SensorReading/sequenceNumber``. Data without it can contain the same event several times.
/// - Encrypted data results in a reading with the counter of the encryption as its ``SensorReading/sequenceNumber``, which a receiver
///   compares if it has to refuse repeated data. Without the key for ``AdvertisementFields/address``, the reading has no values, and
///   ``SensorReading/isEncrypted`` is `true`.
public struct BTHomeDecoder: AdvertisementDecoder {
    /// The service that has the objects as its data.
    public static let service = CBUUID(0xFCD2)

    /// Decrypts data with AES-128 in CCM mode (RFC 3610); returns `nil` if the tag, of four bytes, is not that of the data.
    public typealias Decryption = @Sendable (_ data: Data, _ tag: Data, _ nonce: Data, _ key: Data) -> Data?

    private var keys: [BluetoothAddress: Data] = [:]
    private var decrypt: Decryption = { _, _, _, _ in nil }

    /// Creates a decoder of data that is not encrypted.
    public init() {}

    /// Creates a decoder that also decrypts the data of some sensors. The package contains no cipher: pass that of a library.
    ///
    /// - Parameters:
    ///   - keys: The bind keys of 16 bytes, by the addresses of the sensors.
    ///   - decrypt: The cipher.
    public init(keys: [BluetoothAddress: Data], decrypt: @escaping Decryption) {
        (self.keys, self.decrypt) = (keys, decrypt)
    }

    public func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        guard let data = advertisement.serviceData[Self.service], let information = data.first, information >> 5 == 2
        else { return nil }
        var bytes = [UInt8](data)[1...]
        var reading = SensorReading(format: "bthome_v2", isTriggerBased: information & 0b100 != 0)
        // The first devices of version 2 could send their address. The bit is reserved today, and no device sets it otherwise.
        if information & 0b10 != 0 {
            guard bytes.count >= 6 else { return nil }
            reading.address = BluetoothAddress(rawValue: UInt64(littleEndian: bytes.prefix(6)))
            bytes = bytes.dropFirst(6)
        }
        if information & 0b1 != 0 {
            // The encrypted objects, then four bytes of the counter, then four of the message integrity check.
            guard bytes.count > 8 else { return nil }
            reading.sequenceNumber = UInt32(littleEndian: bytes.suffix(8).prefix(4))
            guard let plain = decrypted(bytes, information, sender: reading.address ?? advertisement.address) else {
                reading.isEncrypted = true
                return reading
            }
            bytes = [UInt8](plain)[...]
        }
        var objects = BTHomeObjects(bytes)
        while objects.readNext() {}
        reading.sequenceNumber = reading.sequenceNumber ?? objects.packetID
        reading.values = objects.values
        return reading.values.isEmpty ? nil : reading
    }

    private func decrypted(_ bytes: ArraySlice<UInt8>, _ information: UInt8, sender: BluetoothAddress?) -> Data? {
        guard let sender, let key = keys[sender] else { return nil }
        let address = (1...6).map { UInt8(truncatingIfNeeded: sender.rawValue >> (48 - 8 * $0)) }
        let nonce = address + [0xD2, 0xFC, information] + bytes.suffix(8).prefix(4)
        return decrypt(Data(bytes.dropLast(8)), Data(bytes.suffix(4)), Data(nonce), key)
    }
}

/// Reads a list of objects.
private struct BTHomeObjects {
    private var bytes: ArraySlice<UInt8>
    /// What was found, with events that did not occur, which count in the numbers.
    private var found: [(quantity: SensorQuantity, value: SensorValue.Value?, unit: String)] = []
    private(set) var packetID: UInt32?

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// The values, numbered if there are several objects of one quantity.
    var values: [SensorValue] {
        let counts = Dictionary(found.map { ($0.quantity, 1) }, uniquingKeysWith: +)
        var numbers: [SensorQuantity: Int] = [:]
        return found.compactMap { quantity, value, unit in
            numbers[quantity, default: 0] += 1
            let number = counts[quantity] == 1 ? nil : numbers[quantity]
            return value.map { SensorValue(quantity, $0, unit: unit, number: number) }
        }
    }

    /// Reads one object. Returns `false` at the end of those that can be read.
    mutating func readNext() -> Bool {
        guard let identifier = take(1)?.first, let kind = BTHomeObject.all[identifier] else { return false }
        switch kind {
        case .packetID:
            guard let number = take(1)?.first else { return false }
            packetID = UInt32(number)
        case .unsigned(let quantity, let size, let per, let unit):
            guard let bytes = take(size) else { return false }
            found.append((quantity, .number(Double(UInt32(littleEndian: bytes)) / per), unit))
        case .signed(let quantity, let size, let times, let per, let unit):
            guard let bytes = take(size) else { return false }
            let unused = 32 - 8 * size
            let number = (Int32(littleEndian: bytes) << unused) >> unused
            found.append((quantity, .number(Double(number) * times / per), unit))
        case .flag(let quantity):
            guard let state = take(1)?.first else { return false }
            found.append((quantity, .flag(state != 0), ""))
        case .text(let isText):
            guard let length = take(1)?.first, let bytes = take(Int(length)) else { return false }
            if isText {
                found.append((.text, String(validating: bytes, as: UTF8.self).map { .text($0) }, ""))
            } else {
                found.append((.raw, .text(Data(bytes).hexadecimal), ""))
            }
        case .version(let size):
            guard let bytes = take(size) else { return false }
            found.append((.firmwareVersion, .text(bytes.reversed().map(String.init).joined(separator: ".")), ""))
        case .button:
            guard let event = take(1)?.first else { return false }
            found.append((.button, BTHomeObject.buttonEvents[event].map { .text($0) }, ""))
        case .dimmer:
            guard let event = take(2) else { return false }
            appendEvent(.dimmer, BTHomeObject.dimmerEvents[event.first ?? 0], .dimmerSteps, steps: event.last)
        case .command:
            // Three bits are reserved; the other five are the length of the arguments, which follow the operation.
            guard let header = take(1)?.first, let event = take(1 + Int(header & 0x1F)) else { return false }
            let operation = event.first ?? 0
            let isStep = (3...4).contains(operation) && event.count == 2
            appendEvent(
                .command, BTHomeObject.commands[operation], .commandSteps, steps: isStep ? event.last : nil)
        }
        return true
    }

    /// Appends an event and its steps, which have the same number.
    private mutating func appendEvent(
        _ quantity: SensorQuantity, _ event: String?, _ stepQuantity: SensorQuantity, steps: UInt8?
    ) {
        found.append((quantity, event.map { .text($0) }, ""))
        found.append((stepQuantity, event == nil ? nil : steps.map { .number(Double($0)) }, ""))
    }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard bytes.count >= count else { return nil }
        defer { bytes = bytes.dropFirst(count) }
        return bytes.prefix(count)
    }
}

/// An entry of BTHome's tables.
private enum BTHomeObject {
    case packetID
    /// A little endian integer of one to four bytes, divided by `per`. Division by a power of ten results in the number nearest
    /// to the decimal fraction, which multiplication by 0.01 does not.
    case unsigned(SensorQuantity, Int, per: Double = 1, _ unit: String = "")
    case signed(SensorQuantity, Int, times: Double = 1, per: Double = 1, _ unit: String = "")
    case flag(SensorQuantity)
    /// A length and as many bytes: UTF-8, or any bytes.
    case text(isText: Bool)
    case version(size: Int)
    case button, dimmer, command

    static let buttonEvents: [UInt8: String] = [
        1: "press", 2: "double_press", 3: "triple_press", 4: "long_press", 5: "long_double_press",
        6: "long_triple_press", 0x80: "hold_press",
    ]
    static let dimmerEvents: [UInt8: String] = [1: "rotate_left", 2: "rotate_right"]
    static let commands: [UInt8: String] = [0: "off", 1: "on", 2: "toggle", 3: "step_up", 4: "step_down"]

    /// The published table, by object identifier.
    static let all: [UInt8: BTHomeObject] = [
        0x00: .packetID, 0x01: .unsigned(.battery, 1, "%"), 0x02: .signed(.temperature, 2, per: 100, "°C"),
        0x03: .unsigned(.humidity, 2, per: 100, "%"), 0x04: .unsigned(.pressure, 3, per: 100, "hPa"),
        0x05: .unsigned(.illuminance, 3, per: 100, "lx"), 0x06: .unsigned(.mass, 2, per: 100, "kg"),
        0x07: .unsigned(.mass, 2, per: 100, "lb"), 0x08: .signed(.dewPoint, 2, per: 100, "°C"),
        0x09: .unsigned(.count, 1), 0x0A: .unsigned(.energy, 3, per: 1_000, "kWh"),
        0x0B: .unsigned(.power, 3, per: 100, "W"), 0x0C: .unsigned(.voltage, 2, per: 1_000, "V"),
        0x0D: .unsigned(.pm2_5, 2, "µg/m³"), 0x0E: .unsigned(.pm10, 2, "µg/m³"), 0x0F: .flag(.genericBoolean),
        0x10: .flag(.powerOn), 0x11: .flag(.opening), 0x12: .unsigned(.co2, 2, "ppm"),
        0x13: .unsigned(.tvoc, 2, "µg/m³"), 0x14: .unsigned(.moisture, 2, per: 100, "%"), 0x15: .flag(.batteryLow),
        0x16: .flag(.batteryCharging), 0x17: .flag(.carbonMonoxide), 0x18: .flag(.cold), 0x19: .flag(.connectivity),
        0x1A: .flag(.door), 0x1B: .flag(.garageDoor), 0x1C: .flag(.gasDetected), 0x1D: .flag(.heat),
        0x1E: .flag(.light), 0x1F: .flag(.lock), 0x20: .flag(.moistureDetected), 0x21: .flag(.motion),
        0x22: .flag(.moving), 0x23: .flag(.occupancy), 0x24: .flag(.plug), 0x25: .flag(.presence),
        0x26: .flag(.problem), 0x27: .flag(.running), 0x28: .flag(.safety), 0x29: .flag(.smoke), 0x2A: .flag(.sound),
        0x2B: .flag(.tamper), 0x2C: .flag(.vibration), 0x2D: .flag(.window), 0x2E: .unsigned(.humidity, 1, "%"),
        0x2F: .unsigned(.moisture, 1, "%"), 0x3A: .button, 0x3B: .command, 0x3C: .dimmer, 0x3D: .unsigned(.count, 2),
        0x3E: .unsigned(.count, 4), 0x3F: .signed(.rotation, 2, per: 10, "°"), 0x40: .unsigned(.distance, 2, "mm"),
        0x41: .unsigned(.distance, 2, per: 10, "m"), 0x42: .unsigned(.duration, 3, per: 1_000, "s"),
        0x43: .unsigned(.current, 2, per: 1_000, "A"), 0x44: .unsigned(.speed, 2, per: 100, "m/s"),
        0x45: .signed(.temperature, 2, per: 10, "°C"), 0x46: .unsigned(.uvIndex, 1, per: 10),
        0x47: .unsigned(.volume, 2, per: 10, "L"), 0x48: .unsigned(.volume, 2, "mL"),
        0x49: .unsigned(.volumeFlowRate, 2, per: 1_000, "m³/h"), 0x4A: .unsigned(.voltage, 2, per: 10, "V"),
        0x4B: .unsigned(.gas, 3, per: 1_000, "m³"), 0x4C: .unsigned(.gas, 4, per: 1_000, "m³"),
        0x4D: .unsigned(.energy, 4, per: 1_000, "kWh"), 0x4E: .unsigned(.volume, 4, per: 1_000, "L"),
        0x4F: .unsigned(.water, 4, per: 1_000, "L"), 0x50: .unsigned(.timestamp, 4, "s"),
        0x51: .unsigned(.acceleration, 2, per: 1_000, "m/s²"), 0x52: .unsigned(.gyroscope, 2, per: 1_000, "°/s"),
        0x53: .text(isText: true), 0x54: .text(isText: false), 0x55: .unsigned(.volumeStorage, 4, per: 1_000, "L"),
        0x56: .unsigned(.conductivity, 2, "µS/cm"), 0x57: .signed(.temperature, 1, "°C"),
        0x58: .signed(.temperature, 1, times: 35, per: 100, "°C"), 0x59: .signed(.count, 1), 0x5A: .signed(.count, 2),
        0x5B: .signed(.count, 4), 0x5C: .signed(.power, 4, per: 100, "W"),
        0x5D: .signed(.current, 2, per: 1_000, "A"), 0x5E: .unsigned(.direction, 2, per: 100, "°"),
        0x5F: .unsigned(.precipitation, 2, per: 10, "mm"), 0x60: .unsigned(.channel, 1),
        0x61: .unsigned(.rotationalSpeed, 2, "rpm"), 0x62: .signed(.speed, 4, per: 1_000_000, "m/s"),
        0x63: .signed(.acceleration, 4, per: 1_000_000, "m/s²"), 0x64: .unsigned(.lightLevel, 1),
        0x65: .unsigned(.settingsRevision, 1), 0xF0: .unsigned(.deviceTypeID, 2), 0xF1: .version(size: 4),
        0xF2: .version(size: 3),
    ]
}
