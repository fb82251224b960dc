import BlueCapKit
import BlueCapFutures
import XCTest

/// Methods of a characteristic as function values: without a call the name is the documented method, though there are
/// further overloads.
final class FunctionValueTests: XCTestCase {
    func testReadWithoutACallIsTheMethodWithATimeout() throws {
        let stage = try AttributeStage.explored()
        let characteristic = try stage.characteristic("2A38")
        let read: (TimeInterval) -> Future<Characteristic> = characteristic.read
        XCTAssertEqual(try stage.wait(read(5)).uuid, characteristic.uuid)
        XCTAssertEqual(try stage.wait(characteristic.read(5.0)).uuid, characteristic.uuid)
    }

    func testNotifyingWithoutACallIsTheMethodWithoutATimeout() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let start: () -> Future<Characteristic> = characteristic.startNotifying
        let startOver: (NotificationTransport) -> Future<Characteristic> = characteristic.startNotifying
        let startAlone: () -> Future<Void> = characteristic.startNotifying
        let stop = characteristic.stopNotifying
        let stopAlone: () -> Future<Void> = characteristic.stopNotifying
        try stage.wait(start())
        XCTAssertTrue(characteristic.isNotifying)
        try stage.wait(startOver(.signals))
        try stage.wait(stop())
        XCTAssertFalse(characteristic.isNotifying)
        try stage.wait(startAlone())
        try stage.wait(stopAlone())
        XCTAssertFalse(characteristic.isNotifying)
    }

    func testTheEndOfASubscriptionWithATimeoutYieldsTheCharacteristicOrNothing() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(over: .signals)
        let stopped = characteristic.stopNotifying(timeout: 5)
        XCTAssertEqual(try stage.wait(stopped).uuid, characteristic.uuid)
        try stage.start(characteristic, over: .signals)
        try stage.wait(characteristic.stopNotifying(timeout: 5) as Future<Void>)
        XCTAssertFalse(characteristic.isNotifying)
    }

    func testAcquireWriterWithoutACallIsTheMethodWithoutATimeout() throws {
        let stage = try AttributeStage.explored()
        let characteristic = try stage.characteristic("2A3B")
        let acquire = characteristic.acquireWriter
        let writer = try stage.wait(acquire())
        withExtendedLifetime(writer) {}
    }
}
