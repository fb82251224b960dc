import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case characteristicNotFound
    case unlikely
}

/// The value of the middle (`Yes`) and the latest (`yes`) document.
private enum Enabled: UInt8, RawDeserializable {
    case no = 0
    case yes = 1
    static let uuid = "F000AA12-0451-4000-B000-000000000000"
    static let Yes = Enabled.yes
}

/// The examples of writing in the middle and the latest document.
final class WriteExampleTests: DocumentedCase, @unchecked Sendable {
    private func held() -> [UInt8]? { simulator.value(of: AttributeSelector(Sensor.enabledUUID), at: Sensor.address) }

    func testWritingToAConnectedCharacteristicAsInTheMiddleDocument() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let writeFuture = characteristic.write(Enabled.Yes)
        XCTAssertEqual(try outcome(writeFuture), characteristic)
        XCTAssertEqual(held(), [1])
    }

    func testWritingInAChainAsInTheMiddleDocument() throws {
        let discoveryFuture = Future(value: try XCTUnwrap(connectedCharacteristic(Sensor.enabledUUID).service))
        let enabledUUID = CBUUID(string: Enabled.uuid)

        let writeFuture = discoveryFuture.flatMap { service in
            guard let characteristic = service.characteristic(enabledUUID) else {
                throw AppError.characteristicNotFound
            }
            return characteristic.write(Enabled.Yes)
        }

        XCTAssertEqual(try outcome(writeFuture).uuid, enabledUUID)
        XCTAssertEqual(held(), [1])
    }

    func testWritingToAConnectedCharacteristicAsInTheLatestDocument() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let writeFuture = characteristic.write(Enabled.yes)
        _ = try outcome(writeFuture)
        XCTAssertEqual(held(), [1])
    }

    /// With its `let let` corrected.
    func testWritingInAChainAsInTheLatestDocument() throws {
        let characteristic = try connectedCharacteristic(Sensor.enabledUUID)
        let discoveryFuture = Future<Void>(value: ())

        let writeFuture = discoveryFuture.flatMap { [weak characteristic] () -> Future<Void> in
            guard let characteristic = characteristic else {
                throw AppError.unlikely
            }
            return characteristic.write(Enabled.yes)
        }

        try outcome(writeFuture)
        XCTAssertEqual(held(), [1])
    }
}
