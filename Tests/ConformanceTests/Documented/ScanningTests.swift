import BlueCapKit
import BlueZSimulator
import XCTest

/// What the three documents say of scanning alike, or under two names.
final class ScanningTests: DocumentedCase, @unchecked Sendable {
    typealias Scan = FutureStream<Peripheral>

    func testScansAreStreamsOfPeripherals() {
        let all: (CentralManager) -> (Int, TimeInterval, [String: Any]?) -> Scan =
            CentralManager.startScanning(capacity:timeout:options:)
        let some: (CentralManager) -> ([CBUUID]?, Int, TimeInterval, [String: Any]?) -> Scan =
            CentralManager.startScanning(forServiceUUIDs:capacity:timeout:options:)
        simulator.add(Sensor.peripheral)
        let manager = poweredManager()

        let found = all(manager)(Int.max, TimeInterval.infinity, nil)
        eventually("the sensor") { found.count == 1 }
        manager.stopScanning()
        let foundByService = some(manager)([Sensor.serviceUUID], 10, TimeInterval.infinity, nil)
        eventually("the sensor") { foundByService.count == 1 }
    }

    func testTheEarliestDocumentsScansHaveADuration() {
        let all: (CentralManager) -> (Int, TimeInterval, [String: Any]?) -> Scan =
            CentralManager.startScanning(capacity:duration:options:)
        let some: (CentralManager) -> ([CBUUID]?, Int, TimeInterval, [String: Any]?) -> Scan =
            CentralManager.startScanning(forServiceUUIDs:capacity:duration:options:)
        simulator.add(Sensor.peripheral)
        let manager = poweredManager()

        let found = all(manager)(Int.max, TimeInterval.infinity, nil)
        eventually("the sensor") { found.count == 1 }
        manager.stopScanning()
        let foundByService = some(manager)([Sensor.serviceUUID], 10, TimeInterval.infinity, nil)
        eventually("the sensor") { foundByService.count == 1 }
    }

    func testAllButTheServicesHasADefault() {
        let manager = poweredManager()
        _ = manager.startScanning()
        manager.stopScanning()
        _ = manager.startScanning(forServiceUUIDs: nil)
        manager.stopScanning()
        _ = manager.startScanning(options: [CBCentralManagerScanOptionAllowDuplicatesKey: true as NSNumber])
        XCTAssertTrue(manager.isScanning)
        manager.stopScanning()
    }

    func testAScanThatFindsNothingFailsAndStops() {
        let manager = poweredManager()
        let scanFuture = manager.startScanning(timeout: 5)
        scanFuture.onFailure { error in
            if case CentralManagerError.peripheralScanTimeout = error { self.seen.note("peripheralScanTimeout") }
            if case CentralManagerError.serviceScanTimeout = error { self.seen.note("serviceScanTimeout") }
        }
        eventually("the time-out") { seen.count == 2 }
        XCTAssertFalse(manager.isScanning)
        XCTAssertEqual(CentralManagerError.serviceScanTimeout, .peripheralScanTimeout)
    }

    func testADurationEndsTheEarliestDocumentsScan() {
        let manager = poweredManager()
        manager.startScanning(forServiceUUIDs: [Sensor.serviceUUID], duration: 5).onFailure { error in
            self.seen.note("\(error as? CentralManagerError == .peripheralScanTimeout)")
        }
        eventually("the time-out") { seen.contains("true") }
        XCTAssertFalse(manager.isScanning)
    }

    func testATimeOutAfterADiscoveryIsNoError() {
        simulator.add(Sensor.peripheral)
        let manager = poweredManager()
        let scans: [() -> Scan] = [{ manager.startScanning(timeout: 5) }, { manager.startScanning(duration: 5) }]
        for (index, scan) in scans.enumerated() {
            let found = scan()
            found.onFailure { error in self.seen.note("\(error)") }
            found.collect().onSuccess { found in self.seen.note("end \(index): \(found.count)") }
            eventually("the end") { seen.contains("end \(index): 1") }
            XCTAssertFalse(manager.isScanning)
        }
        XCTAssertEqual(seen.count, 2)
    }

    func testOptionsAreThoseOfCoreBluetooth() {
        simulator.add(Sensor.peripheral)
        let manager = poweredManager()
        let options: [String: Any] = [CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: true)]
        manager.startScanning(options: options).onSuccess { _ in self.seen.note("a sighting") }
        eventually("a second sighting") { seen.count == 2 }
    }

    func testStoppingEndsAScan() {
        let stopScanning: (CentralManager) -> () -> Void = CentralManager.stopScanning
        let manager = poweredManager()
        _ = manager.startScanning()
        eventually("discovery") { simulator.adapters[0].isDiscovering }
        stopScanning(manager)()
        eventually("the end") { !simulator.adapters[0].isDiscovering }
        XCTAssertFalse(manager.isScanning)
    }

    func testAResetStartsOver() {
        let reset: (CentralManager) -> () -> Void = CentralManager.reset
        let manager = poweredManager()
        _ = manager.startScanning()
        settle()
        reset(manager)()
        eventually("poweredOn again") { manager.poweredOn }
        XCTAssertFalse(manager.isScanning)
    }

    func testTheSensorsServiceIsReadyMade() {
        XCTAssertEqual(TISensorTag.AccelerometerService.UUID, TISensorTag.AccelerometerService.uuid)
        XCTAssertEqual(
            CBUUID(string: TISensorTag.AccelerometerService.uuid).uuidString, "F000AA10-0451-4000-B000-000000000000")
    }
}
