import BlueCapKit
import BlueZSimulator
import XCTest

private enum ApplicationError: Error {
    case characteristicNotFound
}

/// The document's value.
private enum Enabled: UInt8, RawDeserializable {
    case No = 0
    case Yes = 1
    public static let uuid = "F000AA12-0451-4000-B000-000000000000"
}

/// What the earliest document says of writing: the names of Swift 2, where `NSData` is `Data` since.
final class WriteEarliestTests: DocumentedCase, @unchecked Sendable {
    private func held() -> [UInt8]? { simulator.value(of: AttributeSelector(Sensor.enabledUUID), at: Sensor.address) }

    func testDataIsWritten() throws {
        let write: (Characteristic) -> (Data, Double, WriteType) -> Future<Characteristic> =
            Characteristic.writeData(value:timeout:type:)
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        _ = try outcome(write(characteristic)(Data([1]), Double.infinity, .withResponse))
        XCTAssertEqual(held(), [1])
        _ = try outcome(characteristic.writeData(Data([0])))
        XCTAssertEqual(held(), [0])
    }

    func testTextsAreWritten() throws {
        let write: (Characteristic) -> ([String: String], Double, WriteType) -> Future<Characteristic> =
            Characteristic.writeString(stringValue:timeout:type:)
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        _ = try outcome(write(characteristic)([characteristic.name: "01"], Double.infinity, .withResponse))
        XCTAssertEqual(held(), [1])
        _ = try outcome(characteristic.writeString([characteristic.name: "00"]))
        XCTAssertEqual(held(), [0])
    }

    func testNumbersAreWritten() throws {
        func write<T: Deserializable>(value: T, to characteristic: Characteristic) -> Future<Characteristic> {
            characteristic.write(value: value, timeout: Double.infinity, type: .withResponse)
        }
        _ = try outcome(write(value: UInt8(1), to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1])
    }

    func testRawValuesAreWritten() throws {
        func write<T: RawDeserializable>(value: T, to characteristic: Characteristic) -> Future<Characteristic> {
            characteristic.write(value: value, timeout: Double.infinity, type: .withResponse)
        }
        _ = try outcome(write(value: Enabled.Yes, to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1])
    }

    func testRawArraysAreWritten() throws {
        func write<T: RawArrayDeserializable>(value: T, to characteristic: Characteristic) -> Future<Characteristic> {
            characteristic.write(value: value, timeout: Double.infinity, type: .withResponse)
        }
        let value = TISensorTag.AccelerometerService.Data(xRaw: 1, yRaw: 2, zRaw: 3)
        _ = try outcome(write(value: value, to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1, 2, 3])
    }

    func testRawPairsAreWritten() throws {
        func write<T: RawPairDeserializable>(value: T, to characteristic: Characteristic) -> Future<Characteristic> {
            characteristic.write(value: value, timeout: Double.infinity, type: .withResponse)
        }
        let value = try XCTUnwrap(TISensorTag.BarometerService.Data(rawValue1: 1, rawValue2: 2))
        _ = try outcome(write(value: value, to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1, 0, 2, 0])
    }

    func testRawPairsOfArraysAreWritten() throws {
        func write<T: RawArrayPairDeserializable>(
            value: T, to characteristic: Characteristic
        ) -> Future<Characteristic> {
            characteristic.write(value: value, timeout: Double.infinity, type: .withResponse)
        }
        let value = try XCTUnwrap(
            TISensorTag.BarometerService.Calibration(rawValue1: [1, 2, 3, 4], rawValue2: [5, 6, 7, 8]))
        _ = try outcome(write(value: value, to: connectedCharacteristic(Sensor.enabledUUID)))
        XCTAssertEqual(held(), [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0])
    }

    /// The document's example: `flatMap` and `let` mended, `CBUUID(string:)` without its `!`.
    func testWritingAsInTheEarliestDocument() throws {
        let enabledUUID = CBUUID(string: Enabled.uuid)
        let serviceUUID = Sensor.serviceUUID
        let characteristicsDiscoveredFuture = Future(value: try connectedCharacteristic(enabledUUID).peripheral)

        let writeCharacteristicFuture = characteristicsDiscoveredFuture.flatMap {
            peripheral -> Future<Characteristic> in
            if let service = peripheral.service(serviceUUID),
                let characteristic = service.characteristic(enabledUUID)
            {
                return characteristic.write(Enabled.Yes, timeout: 20.0)
            } else {
                let promise = Promise<Characteristic>()
                promise.failure(ApplicationError.characteristicNotFound)
                return promise.future
            }
        }

        writeCharacteristicFuture.onSuccess { characteristic in
            self.seen.note("\(characteristic.uuid)")
        }
        writeCharacteristicFuture.onFailure { error in
            self.seen.note("\(error)")
        }

        eventually("the write") { seen.texts == ["\(enabledUUID)"] }
        XCTAssertEqual(held(), [1])
    }
}
