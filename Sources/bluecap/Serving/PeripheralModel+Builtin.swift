import BlueCapKit
import BlueZSimulator
import Foundation

/// The peripherals that the tool can serve without a file.
extension PeripheralModel {
    /// By the names that the command line takes.
    static let builtin: [(name: String, summary: String, model: PeripheralModel)] = [
        ("heart-rate", "a heart rate belt with changing values, and its control point", heartRate),
        ("battery", "a battery that slowly runs down", battery),
        ("sensortag", "TI's SensorTag: six sensors with their switches, and its keys", sensorTag),
        ("uart", "Nordic's serial line, which sends back what it receives", uart),
    ]

    private static let profiles = ProfileManager.ready

    /// Returns the service with the characteristics of its profile.
    private static func service(
        _ uuid: String, _ behaviours: [String: Behaviour] = [:], values: [String: Data] = [:]
    ) -> Service {
        guard let profile = profiles.service(CBUUID(string: uuid)) else {
            preconditionFailure("The library has no profile for \(uuid): use a service that has one.")
        }
        return Service(
            uuid: profile.uuid, name: profile.name,
            characteristics: profile.characteristics.map { characteristic in
                let isOwn = { CBUUID(string: $0) == characteristic.uuid }
                return Characteristic(
                    uuid: characteristic.uuid, profile: characteristic, properties: characteristic.properties,
                    value: values.first { isOwn($0.key) }?.value ?? characteristic.initialValue ?? Data(),
                    behaviour: behaviours.first { isOwn($0.key) }?.value ?? .keeps)
            })
    }

    // MARK: Heart rate, battery, UART

    private static var heartRate: PeripheralModel {
        typealias Heart = BluetoothSIG.HeartRateService
        let service = service(
            Heart.uuid,
            [
                Heart.Measurement.uuid: .changes(.heartRate, every: 1),
                Heart.ControlPoint.uuid: .resets(CBUUID(string: Heart.Measurement.uuid)),
            ],
            values: [Heart.BodySensorLocation.uuid: Heart.BodySensorLocation.chest.serialize()])
        // "Heart Rate Belt".
        return PeripheralModel(name: "BlueCap Heart", appearance: 0x0341, services: [service])
    }

    private static var battery: PeripheralModel {
        typealias Battery = BluetoothSIG.BatteryService
        let source = ValueSource.battery(pace: 10)
        let service = service(
            Battery.uuid, [Battery.Level.uuid: .changes(source, every: 10)],
            values: [Battery.Level.uuid: source.value(at: 0)])
        return PeripheralModel(name: "BlueCap Battery", services: [service])
    }

    private static var uart: PeripheralModel {
        typealias UART = Nordic.UARTService
        let service = service(UART.uuid, [UART.RX.uuid: .echoes(to: CBUUID(string: UART.TX.uuid))])
        return PeripheralModel(name: "BlueCap UART", services: [service])
    }

    // MARK: SensorTag

    private static func measures(
        _ enabled: String, period: String? = nil, _ formula: @escaping @Sendable (Double) -> Data
    ) -> Behaviour {
        .measures(
            ValueSource(formula), enabled: CBUUID(string: enabled), period: period.map { CBUUID(string: $0) },
            every: 1)
    }

    /// It turns slowly on a desk, and a key is pressed every few seconds.
    private static var sensorTag: PeripheralModel {
        typealias Tag = TISensorTag
        let acceleration = measures(
            Tag.AccelerometerService.Enabled.uuid, period: Tag.AccelerometerService.UpdatePeriod.uuid
        ) { time in
            let (x, y) = (0.25 * sin(time / 3), 0.25 * cos(time / 3))
            return Tag.AccelerometerService.Data(x: x, y: y, z: 1)?.serialize() ?? Data()
        }
        let field = measures(
            Tag.MagnetometerService.Enabled.uuid, period: Tag.MagnetometerService.UpdatePeriod.uuid
        ) { time in
            let (x, y) = (22 * sin(time / 10), 22 * cos(time / 10))
            return Tag.MagnetometerService.Data(x: x, y: y, z: -43)?.serialize() ?? Data()
        }
        let rotation = measures(Tag.GyroscopeService.Enabled.uuid) { time in
            Tag.GyroscopeService.Data(x: sin(time), y: cos(time), z: 5.7)?.serialize() ?? Data()
        }
        let temperature = measures(Tag.TemperatureService.Enabled.uuid) { time in
            let ambient = 22 + sin(time / 60)
            return Tag.TemperatureService.Data(objectRaw: -120, ambientRaw: Int16(ambient * 128)).serialize()
        }
        let pressure = measures(Tag.BarometerService.Enabled.uuid) { time in
            let pressure = 33_995 + 40 * sin(time / 120)
            return Tag.BarometerService.Data(rawValue1: -2343, rawValue2: UInt16(pressure))?.serialize() ?? Data()
        }
        let humidity = measures(Tag.HygrometerService.Enabled.uuid) { time in
            let (temperature, humidity) = (22 + sin(time / 60), 45 + 3 * sin(time / 90))
            return Tag.HygrometerService.Data(
                temperatureRaw: UInt16((temperature + 46.85) / 175.72 * 65536),
                humidityRaw: UInt16((humidity + 6) / 125 * 65536) & ~3
            ).serialize()
        }
        let states = [Tag.KeyPressedService.State.none, .buttonOne, .none, .buttonTwo]
        let keys = ValueSource(.cycle(states.map { Array($0.serialize()) }, every: 2))
        return PeripheralModel(
            name: "SensorTag",
            services: [
                service(Tag.TemperatureService.uuid, [Tag.TemperatureService.Data.uuid: temperature]),
                service(Tag.AccelerometerService.uuid, [Tag.AccelerometerService.Data.uuid: acceleration]),
                service(Tag.HygrometerService.uuid, [Tag.HygrometerService.Data.uuid: humidity]),
                service(Tag.MagnetometerService.uuid, [Tag.MagnetometerService.Data.uuid: field]),
                service(Tag.BarometerService.uuid, [Tag.BarometerService.Data.uuid: pressure]),
                service(Tag.GyroscopeService.uuid, [Tag.GyroscopeService.Data.uuid: rotation]),
                service(Tag.KeyPressedService.uuid, [Tag.KeyPressedService.State.uuid: .changes(keys, every: 2)]),
                service(Tag.SensorTagTestService.uuid),
            ])
    }
}
