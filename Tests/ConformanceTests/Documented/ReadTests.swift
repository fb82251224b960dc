import BlueCapKit
import BlueZSimulator
import XCTest

/// The documents' value of the earliest and the middle revision.
private enum Enabled: UInt8, RawDeserializable {
    case No = 0
    case Yes = 1
    public static let uuid = "F000AA12-0451-4000-B000-000000000000"
}

private enum AppError: Error {
    case characteristicNotFound
}

private typealias ApplicationError = AppError

/// What the earliest and the middle document say of reading, and all three of values.
final class ReadTests: DocumentedCase, @unchecked Sendable {
    private let enabledUUID = CBUUID(string: Enabled.uuid)

    /// A characteristic that was read, so that it has a value.
    private func read(_ uuid: CBUUID, holding bytes: [UInt8]) throws -> Characteristic {
        let characteristic = try connectedCharacteristic(uuid)
        simulator.setValue(bytes, of: AttributeSelector(uuid), at: Sensor.address)
        return try outcome(characteristic.read())
    }

    // MARK: Declarations

    func testReadingYieldsTheCharacteristic() throws {
        let read: (Characteristic) -> (TimeInterval) -> Future<Characteristic> = Characteristic.read(timeout:)
        let characteristic = try connectedCharacteristic(enabledUUID)
        XCTAssertEqual(try outcome(read(characteristic)(Double.infinity)), characteristic)
        XCTAssertEqual(characteristic.dataValue, Data([0]))
        _ = try outcome(characteristic.read())
    }

    func testATimeOutNeedsNoLabel() throws {
        let characteristic = try connectedCharacteristic(enabledUUID)
        XCTAssertEqual(try outcome(characteristic.read(10.0)), characteristic)
        simulator.simulateSilence(of: Sensor.address)
        XCTAssertEqual(failure(of: characteristic.read(2.0)) as? CharacteristicError, .readTimeout)
    }

    func testReadingYieldsNothingInTheLatestDocument() throws {
        let read: (Characteristic) -> (TimeInterval) -> Future<Void> = Characteristic.read(timeout:)
        let characteristic = try connectedCharacteristic(enabledUUID)
        try outcome(read(characteristic)(TimeInterval.infinity))
        XCTAssertEqual(characteristic.dataValue, Data([0]))
    }

    func testAReadThatTakesTooLongFails() throws {
        let characteristic = try connectedCharacteristic(enabledUUID)
        simulator.simulateSilence(of: Sensor.address)
        let error = failure(of: characteristic.read(timeout: 2) as Future<Characteristic>)
        XCTAssertEqual(error as? CharacteristicError, .readTimeout)
    }

    func testTheValueAsData() throws {
        let dataValue: Data? = try read(enabledUUID, holding: [1]).dataValue
        XCTAssertEqual(dataValue, Data([1]))
    }

    func testTheValueAsTexts() throws {
        let stringValue: [String: String]? = try read(Sensor.dataUUID, holding: [1, 2, 3]).stringValue
        XCTAssertEqual(stringValue?.values.first, "010203")
    }

    func testTheValueAsANumber() throws {
        let value: UInt8? = try read(Sensor.updatePeriodUUID, holding: [42]).value()
        XCTAssertEqual(value, 42)
        func declared<T: Deserializable>(_ characteristic: Characteristic) -> T? { characteristic.value() }
    }

    func testTheValueAsARawValue() throws {
        let value: Enabled? = try read(enabledUUID, holding: [1]).value()
        XCTAssertEqual(value, .Yes)
        func declared<T: RawDeserializable>(_ characteristic: Characteristic) -> T? where T.RawType: Deserializable {
            characteristic.value()
        }
    }

    func testTheValueAsARawArray() throws {
        let value: TISensorTag.AccelerometerService.Data? = try read(Sensor.dataUUID, holding: [64, 32, 0]).value()
        XCTAssertEqual(value?.rawValue, [64, 32, 0])
        func declared<T: RawArrayDeserializable>(_ characteristic: Characteristic) -> T?
        where T.RawType: Deserializable {
            characteristic.value()
        }
    }

    func testTheValueAsARawPair() throws {
        let value: TISensorTag.BarometerService.Data? =
            try read(Sensor.dataUUID, holding: [0xD9, 0xF6, 0xCB, 0x84]).value()
        XCTAssertEqual(value?.rawValue1, -2343)
        XCTAssertEqual(value?.rawValue2, 33995)
        func declared<T: RawPairDeserializable>(_ characteristic: Characteristic) -> T?
        where T.RawType1: Deserializable, T.RawType2: Deserializable {
            characteristic.value()
        }
    }

    func testAValueOfTheWrongLengthIsNone() throws {
        let value: TISensorTag.BarometerService.Data? = try read(Sensor.dataUUID, holding: [1]).value()
        XCTAssertNil(value)
    }

    // MARK: Examples

    /// The earliest document's example: `flatMap`, `let`, the label of `read` and the call of `value` mended.
    func testReadingAsInTheEarliestDocument() throws {
        let characteristicsDiscoveredFuture = Future(value: try connectedCharacteristic(enabledUUID).peripheral)
        let (serviceUUID, enabledUUID) = (Sensor.serviceUUID, self.enabledUUID)
        simulator.setValue([1], of: AttributeSelector(enabledUUID), at: Sensor.address)

        let readCharacteristicFuture = characteristicsDiscoveredFuture.flatMap { peripheral -> Future<Characteristic> in
            if let service = peripheral.service(serviceUUID), let characteristic = service.characteristic(enabledUUID) {
                return characteristic.read(10.0)
            } else {
                let promise = Promise<Characteristic>()
                promise.failure(ApplicationError.characteristicNotFound)
                return promise.future
            }
        }
        readCharacteristicFuture.onSuccess { characteristic in
            if let value: Enabled = characteristic.value() {
                self.seen.note("\(value)")
            }
        }
        readCharacteristicFuture.onFailure { error in
            self.seen.note("\(error)")
        }

        eventually("the value") { seen.texts == ["Yes"] }
    }

    /// The middle document's first example says `write` where it means `read`.
    func testReadingAConnectedCharacteristicAsInTheMiddleDocument() throws {
        let characteristic = try connectedCharacteristic(enabledUUID)
        let readFuture = characteristic.read()
        readFuture.onSuccess { characteristic in self.seen.note("\(characteristic.dataValue == Data([0]))") }
        eventually("the value") { seen.texts == ["true"] }
    }

    /// The middle document's second example.
    func testReadingInAChainAsInTheMiddleDocument() throws {
        let discoveryFuture = Future(value: try XCTUnwrap(connectedCharacteristic(self.enabledUUID).service))
        let enabledUUID = CBUUID(string: Enabled.uuid)
        simulator.setValue([1], of: AttributeSelector(enabledUUID), at: Sensor.address)

        let readFuture = discoveryFuture.flatMap { service -> Future<Characteristic> in
            guard let characteristic = service.characteristic(enabledUUID) else {
                throw AppError.characteristicNotFound
            }
            return characteristic.read()
        }

        readFuture.onSuccess { characteristic in
            guard let value: Enabled = characteristic.value() else {
                return
            }
            self.seen.note("\(value)")
        }

        eventually("the value") { seen.texts == ["Yes"] }
    }

    /// The latest document's first example.
    func testReadingAConnectedCharacteristicAsInTheLatestDocument() throws {
        let characteristic = try connectedCharacteristic(enabledUUID)
        let readFuture = characteristic.read()
        _ = try outcome(readFuture)
        XCTAssertEqual(characteristic.dataValue, Data([0]))
    }

    /// The latest document's second example, with the `guard` of its neighbours.
    func testReadingInAChainAsInTheLatestDocument() throws {
        let characteristic = try connectedCharacteristic(enabledUUID)
        let discoveryFuture = Future<Void>(value: ())
        let readFuture = discoveryFuture.flatMap { [weak characteristic] () -> Future<Void> in
            guard let characteristic = characteristic else {
                throw AppError.characteristicNotFound
            }
            return characteristic.read()
        }
        try outcome(readFuture)
        XCTAssertEqual(characteristic.dataValue, Data([0]))
    }
}
