import BlueCapKit
import BlueZSimulator
import XCTest

/// What the latest document says of writing: the middle one's names, and futures of `Void`.
final class WriteLatestTests: DocumentedCase, @unchecked Sendable {
    private func held() -> [UInt8]? { simulator.value(of: AttributeSelector(Sensor.enabledUUID), at: Sensor.address) }

    func testDataIsWritten() throws {
        let write: (Characteristic) -> (Data, TimeInterval, WriteType) -> Future<Void> =
            Characteristic.write(data:timeout:type:)
        try outcome(write(connectedCharacteristic(Sensor.enabledUUID))(Data([1]), .infinity, .withResponse))
        XCTAssertEqual(held(), [1])
    }

    func testTextsAreWritten() throws {
        let write: (Characteristic) -> ([String: String], TimeInterval, WriteType) -> Future<Void> =
            Characteristic.write(string:timeout:type:)
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        try outcome(write(characteristic)([characteristic.name: "01"], .infinity, .withResponse))
        XCTAssertEqual(held(), [1])
    }

    func testNumbersAreWritten() throws {
        func write<T: Deserializable>(_ value: T, to characteristic: Characteristic) -> Future<Void> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        try outcome(write(UInt8(1), to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1])
    }

    func testRawValuesAreWritten() throws {
        func write<T: RawDeserializable>(_ value: T, to characteristic: Characteristic) -> Future<Void> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let value = TISensorTag.AccelerometerService.Enabled.yes
        try outcome(write(value, to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1])
    }

    func testRawArraysAreWritten() throws {
        func write<T: RawArrayDeserializable>(_ value: T, to characteristic: Characteristic) -> Future<Void> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let value = TISensorTag.AccelerometerService.Data(xRaw: 1, yRaw: 2, zRaw: 3)
        try outcome(write(value, to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1, 2, 3])
    }

    func testRawPairsAreWritten() throws {
        func write<T: RawPairDeserializable>(_ value: T, to characteristic: Characteristic) -> Future<Void> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let value = try XCTUnwrap(TISensorTag.BarometerService.Data(rawValue1: 1, rawValue2: 2))
        try outcome(write(value, to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1, 0, 2, 0])
    }

    func testRawPairsOfArraysAreWritten() throws {
        func write<T: RawArrayPairDeserializable>(_ value: T, to characteristic: Characteristic) -> Future<Void> {
            characteristic.write(value, timeout: TimeInterval.infinity, type: .withResponse)
        }
        let value = try XCTUnwrap(
            TISensorTag.BarometerService.Calibration(rawValue1: [1, 2, 3, 4], rawValue2: [5, 6, 7, 8]))
        try outcome(write(value, to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held()?.count, 16)
    }
}
