import BlueCapKit
import BlueZSimulator
import XCTest

typealias WriteType = CBCharacteristicWriteType

/// What the middle document says of writing; the other two have the same under other names or with other results.
final class WriteTests: DocumentedCase, @unchecked Sendable {
    /// What the sensor holds after a write to one of its characteristics.
    private func held(_ uuid: CBUUID = Sensor.enabledUUID) -> [UInt8]? {
        simulator.value(of: AttributeSelector(uuid), at: Sensor.address)
    }

    // MARK: Declarations

    func testDataIsWritten() throws {
        let write: (Characteristic) -> (Data, TimeInterval, WriteType) -> Future<Characteristic> =
            Characteristic.write(data:timeout:type:)
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        XCTAssertEqual(try outcome(write(characteristic)(Data([1]), .infinity, .withResponse)), characteristic)
        XCTAssertEqual(held(), [1])
        _ = try outcome(characteristic.write(data: Data([0])))
        XCTAssertEqual(held(), [0])
    }

    func testTextsAreWritten() throws {
        let write: (Characteristic) -> ([String: String], TimeInterval, WriteType) -> Future<Characteristic> =
            Characteristic.write(string:timeout:type:)
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let name = characteristic.name
        _ = try outcome(write(characteristic)([name: "01"], .infinity, .withResponse))
        XCTAssertEqual(held(), [1])
        _ = try outcome(characteristic.write(string: [name: "00"]))
        XCTAssertEqual(held(), [0])
    }

    func testTextsThatSpellNothingAreNotSerializable() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let error = failure(of: characteristic.write(string: ["nonsense": "x"]) as Future<Characteristic>)
        XCTAssertEqual(error as? CharacteristicError, .notSerializable)
    }

    func testNumbersAreWritten() throws {
        func write<T: Deserializable>(_ value: T, to characteristic: Characteristic) -> Future<Characteristic> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let characteristic = try connectedCharacteristic(Sensor.updatePeriodUUID)
        _ = try outcome(write(UInt8(42), to: characteristic))
        XCTAssertEqual(held(Sensor.updatePeriodUUID), [42])
    }

    func testRawValuesAreWritten() throws {
        func write<T: RawDeserializable>(_ value: T, to characteristic: Characteristic) -> Future<Characteristic> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        _ = try outcome(write(TISensorTag.AccelerometerService.Enabled.yes, to: characteristic))
        XCTAssertEqual(held(), [1])
    }

    func testRawArraysAreWritten() throws {
        func write<T: RawArrayDeserializable>(_ value: T, to characteristic: Characteristic) -> Future<Characteristic> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let value = TISensorTag.AccelerometerService.Data(xRaw: 1, yRaw: 2, zRaw: -1)
        _ = try outcome(write(value, to: characteristic))
        XCTAssertEqual(held(), [1, 2, 0xFF])
    }

    func testRawPairsAreWritten() throws {
        func write<T: RawPairDeserializable>(_ value: T, to characteristic: Characteristic) -> Future<Characteristic> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let value = try XCTUnwrap(TISensorTag.BarometerService.Data(rawValue1: -2, rawValue2: 0x0102))
        _ = try outcome(write(value, to: characteristic))
        XCTAssertEqual(held(), [0xFE, 0xFF, 0x02, 0x01])
    }

    func testRawPairsOfArraysAreWritten() throws {
        func write<T: RawArrayPairDeserializable>(
            _ value: T, to characteristic: Characteristic
        ) -> Future<Characteristic> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let value = try XCTUnwrap(
            TISensorTag.BarometerService.Calibration(rawValue1: [1, 2, 3, 4], rawValue2: [5, 6, 7, -8]))
        _ = try outcome(write(value, to: characteristic))
        XCTAssertEqual(held(), [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0xF8, 0xFF])
    }

    // MARK: Parameters

    func testAWriteThatTakesTooLongFails() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        simulator.simulateSilence(of: Sensor.address)
        let error = failure(of: characteristic.write(data: Data([1]), timeout: 2) as Future<Characteristic>)
        XCTAssertEqual(error as? CharacteristicError, .writeTimeout)
    }

    func testAWriteTypeThatIsNotThereFails() throws {
        XCTAssertEqual(WriteType.allCases, [.withResponse, .withoutResponse])
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let error = failure(of: characteristic.write(data: Data([1]), type: .withoutResponse) as Future<Characteristic>)
        XCTAssertEqual(error as? CharacteristicError, .writeNotSupported)
    }
}
