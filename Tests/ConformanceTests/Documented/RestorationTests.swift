import BlueCapKit
import BlueZSimulator
import XCTest

final class RestorationTests: DocumentedCase, @unchecked Sendable {
    typealias Restored = (peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])

    /// Creates a manager that keeps its links, and releases it during a connection and a scan.
    private func endWhileConnected() {
        var earlier: CentralManager? = CentralManager(options: [
            CBCentralManagerOptionRestoreIdentifierKey: "us.gnos.BlueCap.documentation-manager" as NSString,
            "CentralManagerOptionBusAddressKey": simulator.address,
            "CentralManagerOptionKeepsLinksKey": true,
        ])
        simulator.add(Sensor.peripheral)
        eventually("poweredOn") { earlier?.poweredOn == true }
        _ = earlier?.startScanning(
            forServiceUUIDs: [Sensor.serviceUUID], options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
        eventually("the sensor") { earlier?.peripherals.isEmpty == false }
        earlier?.peripherals.first?.connect()
        eventually("the link") { earlier?.peripherals.first?.state == .connected }
        pass(1)
        earlier = nil
        settle()
    }

    func testTheRestoredStateIsPeripheralsServicesAndOptions() throws {
        let whenStateRestored: (CentralManager) -> () -> Future<Restored> = CentralManager.whenStateRestored
        endWhileConnected()
        let manager = documentedManager()
        let restored = try outcome(whenStateRestored(manager)())
        XCTAssertEqual(restored.peripherals.map(\.name), ["SensorTag"])
        XCTAssertEqual(restored.scannedServices, [Sensor.serviceUUID])
        XCTAssertNotNil(restored.options[CBCentralManagerScanOptionAllowDuplicatesKey])
    }

    func testItIsThatWhenNothingElseIsSaid() {
        let manager = documentedManager()
        manager.whenStateRestored().onSuccess { (peripherals, scannedServices, options) in
            self.seen.note("\(peripherals.count) \(scannedServices.count) \(options.count)")
        }
        eventually("nothing") { seen.texts == ["0 0 0"] }
    }

    func testTheRestoredStateIsNothingInTheLatestDocument() throws {
        let whenStateRestored: (CentralManager) -> () -> Future<Void> = CentralManager.whenStateRestored
        let manager = documentedManager()
        try outcome(whenStateRestored(manager)())
    }

    func testADamagedStateIsAFailure() throws {
        endWhileConnected()
        let folder = try XCTUnwrap(ProcessInfo.processInfo.environment["XDG_STATE_HOME"])
        let file = folder + "/bluecap/central/us.gnos.BlueCap.documentation-manager.json"
        try Data("{".utf8).write(to: URL(fileURLWithPath: file))
        let manager = documentedManager()
        let restoration: Future<Restored> = manager.whenStateRestored()
        XCTAssertEqual(failure(of: restoration) as? CentralManagerError, .restoreFailed)
    }
}
