import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case invalidState
    case resetting
    case poweredOff
    case unsupported
    case unlikely
}

final class PeripheralAdvertisingTests: PeripheralCase, @unchecked Sendable {
    private static let uuid = "B9407F30-F5F8-466E-AFF9-25556B57FE6D"

    func testANameAndServicesAreAdvertised() throws {
        let startAdvertising: (PeripheralManager) -> (String, [CBUUID]?) -> Future<Void> =
            PeripheralManager.startAdvertising(_:uuids:)
        let manager = poweredPeripheralManager()
        try outcome(startAdvertising(manager)("Sensor", [CBUUID(string: "180D")]))
        XCTAssertTrue(manager.isAdvertising)
        try outcome(manager.stopAdvertising())
        let withoutServices: Future<Void> = manager.startAdvertising("Sensor")
        try outcome(withoutServices)
    }

    func testAdvertisingIsStoppedWithinATime() throws {
        let stopAdvertising: (PeripheralManager) -> (TimeInterval) -> Future<Void> =
            PeripheralManager.stopAdvertising(timeout:)
        let manager = poweredPeripheralManager()
        try outcome(manager.startAdvertising("Sensor"))
        try outcome(stopAdvertising(manager)(10.0))
        XCTAssertFalse(manager.isAdvertising)
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testARegionIsAdvertised() throws {
        let startAdvertising: (PeripheralManager) -> (BeaconRegion) -> Future<Void> =
            PeripheralManager.startAdvertising(_:)
        let manager = poweredPeripheralManager()
        let uuid = try XCTUnwrap(UUID(uuidString: Self.uuid))
        let region = BeaconRegion(proximityUUID: uuid, identifier: "iBeacon", major: 1, minor: 1)
        try outcome(startAdvertising(manager)(region))
        let sent = try XCTUnwrap(simulator.advertisements.first)
        XCTAssertEqual(sent.data.prefix(6), [26, 0xFF, 0x4C, 0x00, 0x02, 0x15])
        XCTAssertEqual(sent.data.suffix(5), [0, 1, 0, 1, 0xC5])
    }

    func testARegionHasItsParameters() throws {
        let uuid = try XCTUnwrap(UUID(uuidString: Self.uuid))
        let region = BeaconRegion(proximityUUID: uuid, identifier: "iBeacon", major: 1, minor: 2, capacity: 10)
        XCTAssertEqual(region.proximityUUID, uuid)
        XCTAssertEqual(region.identifier, "iBeacon")
        XCTAssertEqual(region.major, 1)
        XCTAssertEqual(region.minor, 2)
        XCTAssertEqual(region.capacity, 10)
        XCTAssertEqual(
            BeaconRegion(proximityUUID: uuid, identifier: "iBeacon", major: 1, minor: 2).capacity, Int.max)
    }

    func testABeaconIsEmulatedAsDocumented() {
        let manager = documentedPeripheralManager()

        let uuid = UUID(uuidString: "B9407F30-F5F8-466E-AFF9-25556B57FE6D")!
        let beaconRegion = BeaconRegion(proximityUUID: uuid, identifier: "iBeacon", major: 1, minor: 1)

        let startAdvertiseFuture = manager.whenStateChanges().flatMap { [weak manager] state -> Future<Void> in
            guard let manager = manager else {
                throw AppError.unlikely
            }
            switch state {
            case .poweredOn:
                return manager.startAdvertising(beaconRegion)
            case .poweredOff:
                throw AppError.poweredOff
            case .unauthorized, .unknown:
                throw AppError.invalidState
            case .unsupported:
                throw AppError.unsupported
            case .resetting:
                throw AppError.resetting
            }
        }

        startAdvertiseFuture.onFailure { [weak manager] error in
            guard let manager = manager else {
                return
            }
            switch error {
            case AppError.poweredOff:
                break
            case AppError.resetting:
                manager.reset()
            case AppError.unsupported:
                break
            default:
                break
            }
            _ = manager.stopAdvertising()
            self.seen.note("stopped")
        }

        eventually("the beacon") { simulator.advertisements.count == 1 }
        simulator.simulatePowerOff()
        eventually("stopped") { seen.contains("stopped") && !manager.isAdvertising }
        simulator.simulatePowerOn()
        eventually("the beacon again") { simulator.advertisements.count == 1 }
    }

    func testTheStateIsRestored() throws {
        let manager = documentedPeripheralManager()
        let whenStateRestored: Future<PeripheralAdvertisements> = manager.whenStateRestored()
        let advertisements = try outcome(whenStateRestored)
        XCTAssertNil(advertisements.localName)
    }
}
