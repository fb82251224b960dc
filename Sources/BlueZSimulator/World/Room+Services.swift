/// The services of the built-in peripherals.
extension Room {
    /// Heart rate, with a rate each second, the location of the sensor, and the reset of the energy that was spent.
    static let heartRateServices = [
        service(
            "180d",
            sender("2a37", [.notify], [[0, 72], [0, 74], [0, 77], [0, 75], [0, 71]], every: 1),
            VirtualCharacteristic("2a38", value: [1]),
            VirtualCharacteristic("2a39", [.write])),
        battery(87),
        deviceInformation(manufacturer: "Pulse & Co", model: "Strap 7F"),
    ]

    /// Some sensors of TI's development kit: acceleration, temperature, keys.
    static let sensorTagServices = [
        deviceInformation(manufacturer: "Texas Instruments", model: "CC2650 SensorTag"),
        sensor("IR Temperature", "aa0", values: [[0x40, 0x0B, 0x20, 0x0C], [0x48, 0x0B, 0x24, 0x0C]]),
        sensor("Accelerometer", "aa1", values: [[0x00, 0x01, 0x40], [0x02, 0xFF, 0x3F], [0xFE, 0x00, 0x41]]),
        service("ffe0", sender("ffe1", [.notify], [[1], [0], [2], [0]], every: 2, description: "Key Press State")),
    ]

    /// Nordic's serial port, which sends back what is written to it.
    static let uartServices = [
        service(
            "6e400001-b5a3-f393-e0a9-e50e24dcca9e",
            VirtualCharacteristic(
                "6e400002-b5a3-f393-e0a9-e50e24dcca9e", [.write, .writeWithoutResponse],
                echo: "6e400003-b5a3-f393-e0a9-e50e24dcca9e"),
            VirtualCharacteristic("6e400003-b5a3-f393-e0a9-e50e24dcca9e", [.notify])),
        deviceInformation(manufacturer: "Shelf Audio", model: "Bookshelf"),
    ]

    /// A thermometer that indicates 21.5 °C, and the type of the measurement.
    static let thermometerServices = [
        service(
            "1809",
            sender("2a1c", [.indicate], [[0, 0xD7, 0, 0, 0xFF], [0, 0xD8, 0, 0, 0xFF]], every: 2),
            VirtualCharacteristic("2a1d", value: [2])),
        battery(64),
    ]

    /// Air: temperature in hundredths of a degree, humidity in hundredths of a percent.
    static let gardenServices = [
        service(
            "181a",
            VirtualCharacteristic("2a6e", value: [0x6E, 0x09]),
            VirtualCharacteristic("2a6f", value: [0x9C, 0x15]))
    ]

    /// Wheels and cranks, counted each second.
    static let cyclingServices = [
        service(
            "1816",
            sender("2a5b", [.notify], [[2, 10, 0, 0, 4], [2, 11, 0, 0, 8], [2, 12, 0, 0, 12]], every: 1),
            VirtualCharacteristic("2a5c", value: [2, 0])),
        deviceInformation(manufacturer: "Spoke Works", model: "Cadence 2"),
        battery(42),
    ]

    /// A key tracker that can ring.
    static let trackerServices = [
        service("1802", VirtualCharacteristic("2a06", [.writeWithoutResponse])),
        service("fd5a", VirtualCharacteristic("2a06", [.read, .write], value: [0])),
    ]

    // MARK: Parts

    private static func service(_ uuid: String, _ characteristics: VirtualCharacteristic...) -> VirtualService {
        VirtualService(uuid, characteristics: characteristics)
    }

    static func battery(_ percent: UInt8) -> VirtualService {
        service("180f", VirtualCharacteristic("2a19", [.read, .notify], value: [percent]))
    }

    static func deviceInformation(manufacturer: String, model: String) -> VirtualService {
        service(
            "180a",
            VirtualCharacteristic("2a29", value: Array(manufacturer.utf8)),
            VirtualCharacteristic("2a24", value: Array(model.utf8)),
            VirtualCharacteristic("2a26", value: Array("1.0.3".utf8)))
    }

    /// Returns a characteristic that sends these values one after another.
    private static func sender(
        _ uuid: String, _ flags: Set<CharacteristicFlag>, _ values: [[UInt8]], every interval: Double,
        description: String? = nil
    ) -> VirtualCharacteristic {
        VirtualCharacteristic(
            uuid, flags, value: flags.contains(.read) ? values[0] : [],
            descriptors: description.map { [.description($0)] } ?? [], notifications: .cycle(values, every: interval))
    }

    /// Returns a sensor of the development kit with its data, switch and period, whose UUIDs begin with three digits.
    private static func sensor(_ name: String, _ digits: String, values: [[UInt8]]) -> VirtualService {
        func long(_ digit: Int) -> String { "f000\(digits)\(digit)-0451-4000-b000-000000000000" }
        func setting(_ digit: Int, _ value: UInt8, _ text: String) -> VirtualCharacteristic {
            VirtualCharacteristic(
                long(digit), [.read, .write], value: [value], descriptors: [.description("\(name) \(text)")])
        }
        return service(
            long(0), sender(long(1), [.read, .notify], values, every: 1, description: "\(name) Data"),
            setting(2, 0, "Conf."), setting(3, 100, "Period"))
    }
}
