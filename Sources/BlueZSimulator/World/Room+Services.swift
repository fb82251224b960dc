/// The services of the built-in peripherals.
extension Room {
    /// Heart rate, with a rate each second, the location of the sensor, and the reset of the energy that was spent.
    static let heartRateServices = [
        VirtualService(
            "180d",
            characteristics: [
                VirtualCharacteristic(
                    "2a37", [.notify],
                    notifications: .cycle([[0, 72], [0, 74], [0, 77], [0, 75], [0, 71]], every: 1)),
                VirtualCharacteristic("2a38", [.read], value: [1]),
                VirtualCharacteristic("2a39", [.write]),
            ]),
        battery(87),
        deviceInformation(manufacturer: "Pulse & Co", model: "Strap 7F"),
    ]

    /// Some sensors of TI's development kit: acceleration, temperature, keys.
    static let sensorTagServices = [
        deviceInformation(manufacturer: "Texas Instruments", model: "CC2650 SensorTag"),
        sensor(
            "aa00", data: "aa01", configuration: "aa02", period: "aa03", name: "IR Temperature",
            values: [[0x40, 0x0B, 0x20, 0x0C], [0x48, 0x0B, 0x24, 0x0C]]),
        sensor(
            "aa10", data: "aa11", configuration: "aa12", period: "aa13", name: "Accelerometer",
            values: [[0x00, 0x01, 0x40], [0x02, 0xFF, 0x3F], [0xFE, 0x00, 0x41]]),
        VirtualService(
            "ffe0",
            characteristics: [
                VirtualCharacteristic(
                    "ffe1", [.notify], descriptors: [.description("Key Press State")],
                    notifications: .cycle([[1], [0], [2], [0]], every: 2))
            ]),
    ]

    /// Nordic's serial port, which sends back what is written to it.
    static let uartServices = [
        VirtualService(
            "6e400001-b5a3-f393-e0a9-e50e24dcca9e",
            characteristics: [
                VirtualCharacteristic(
                    "6e400002-b5a3-f393-e0a9-e50e24dcca9e", [.write, .writeWithoutResponse],
                    echo: "6e400003-b5a3-f393-e0a9-e50e24dcca9e"),
                VirtualCharacteristic("6e400003-b5a3-f393-e0a9-e50e24dcca9e", [.notify]),
            ]),
        deviceInformation(manufacturer: "Shelf Audio", model: "Bookshelf"),
    ]

    /// A thermometer that indicates 21.5 °C, and the type of the measurement.
    static let thermometerServices = [
        VirtualService(
            "1809",
            characteristics: [
                VirtualCharacteristic(
                    "2a1c", [.indicate],
                    notifications: .cycle([[0, 0xD7, 0, 0, 0xFF], [0, 0xD8, 0, 0, 0xFF]], every: 2)),
                VirtualCharacteristic("2a1d", [.read], value: [2]),
            ]),
        battery(64),
    ]

    /// Air: temperature in hundredths of a degree, humidity in hundredths of a percent.
    static let gardenServices = [
        VirtualService(
            "181a",
            characteristics: [
                VirtualCharacteristic("2a6e", [.read], value: [0x6E, 0x09]),
                VirtualCharacteristic("2a6f", [.read], value: [0x9C, 0x15]),
            ])
    ]

    /// Wheels and cranks, counted each second.
    static let cyclingServices = [
        VirtualService(
            "1816",
            characteristics: [
                VirtualCharacteristic(
                    "2a5b", [.notify],
                    notifications: .cycle([[2, 10, 0, 0, 4], [2, 11, 0, 0, 8], [2, 12, 0, 0, 12]], every: 1)),
                VirtualCharacteristic("2a5c", [.read], value: [2, 0]),
            ]),
        deviceInformation(manufacturer: "Spoke Works", model: "Cadence 2"),
        battery(42),
    ]

    /// A key tracker that can ring.
    static let trackerServices = [
        VirtualService("1802", characteristics: [VirtualCharacteristic("2a06", [.writeWithoutResponse])]),
        VirtualService("fd5a", characteristics: [VirtualCharacteristic("2a06", [.read, .write], value: [0])]),
    ]

    // MARK: Parts

    static func battery(_ percent: UInt8) -> VirtualService {
        VirtualService("180f", characteristics: [VirtualCharacteristic("2a19", [.read, .notify], value: [percent])])
    }

    static func deviceInformation(manufacturer: String, model: String) -> VirtualService {
        VirtualService(
            "180a",
            characteristics: [
                VirtualCharacteristic("2a29", [.read], value: Array(manufacturer.utf8)),
                VirtualCharacteristic("2a24", [.read], value: Array(model.utf8)),
                VirtualCharacteristic("2a26", [.read], value: Array("1.0.3".utf8)),
            ])
    }

    private static func sensor(
        _ service: String, data: String, configuration: String, period: String, name: String, values: [[UInt8]]
    ) -> VirtualService {
        func long(_ digits: String) -> String { "f000\(digits)-0451-4000-b000-000000000000" }
        return VirtualService(
            long(service),
            characteristics: [
                VirtualCharacteristic(
                    long(data), [.read, .notify], value: values[0], descriptors: [.description(name + " Data")],
                    notifications: .cycle(values, every: 1)),
                VirtualCharacteristic(
                    long(configuration), [.read, .write], value: [0], descriptors: [.description(name + " Conf.")]),
                VirtualCharacteristic(
                    long(period), [.read, .write], value: [100], descriptors: [.description(name + " Period")]),
            ])
    }
}
