import BlueCapKit
import BlueZSimulator
import XCTest

/// Each form of a scan compiles without an annotation, in synchronous and in `async` functions, and scans.
final class ScanFormTests: XCTestCase {
    private let service = CBUUID(string: "180D")

    private func forms(_ manager: CentralManager) -> [() -> FutureStream<Peripheral>] {
        let (service, options) = (service, ScanOptions(allowsDuplicates: true))
        return [
            { manager.startScanning() },
            { manager.startScanning(capacity: 5) },
            { manager.startScanning(timeout: 10) },
            { manager.startScanning(timeout: 0.5) },
            { manager.startScanning(timeout: .infinity) },
            { manager.startScanning(timeout: .seconds(10)) },
            { manager.startScanning(timeout: nil) },
            { manager.startScanning(options: options) },
            { manager.startScanning(options: [CBCentralManagerScanOptionAllowDuplicatesKey: true]) },
            { manager.startScanning(options: nil) },
            { manager.startScanning(forServiceUUIDs: [service]) },
            { manager.startScanning(forServiceUUIDs: nil) },
            { manager.startScanning(forServiceUUIDs: [service], capacity: 5, timeout: 10) },
            { manager.startScanning(forServiceUUIDs: [service], timeout: .milliseconds(500)) },
            { manager.startScanning(forServiceUUIDs: [service], options: options) },
            { manager.startScanning(forServiceUUIDs: [service], timeout: .seconds(10), options: options) },
            { manager.startScanning(forServiceUUIDs: [service], timeout: 10, options: nil) },
        ]
    }

    private func reports(_ manager: CentralManager) -> [() -> FutureStream<ScanReport>] {
        let (service, options) = (service, ScanOptions(allowsDuplicates: true))
        return [
            { manager.startScanningForReports() },
            { manager.startScanningForReports(timeout: 10) },
            { manager.startScanningForReports(timeout: .seconds(10)) },
            { manager.startScanningForReports(forServiceUUIDs: [service], options: options) },
            { manager.startScanningForReports(timeout: .seconds(10), options: options) },
            { manager.startScanningForReports(options: [CBCentralManagerScanOptionAllowDuplicatesKey: true]) },
        ]
    }

    private func poweredOn(_ simulator: Simulator) throws -> CentralManager {
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertTrue(simulator.advance(until: { manager.isPoweredOn }, limit: 5))
        return manager
    }

    private func scans(_ manager: CentralManager, _ simulator: Simulator, _ start: () -> Void) {
        start()
        XCTAssertTrue(manager.isScanning)
        manager.stopScanning()
        simulator.run()
    }

    func testEachFormScans() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try poweredOn(simulator)
        for form in forms(manager) { scans(manager, simulator) { _ = form() } }
        for form in reports(manager) { scans(manager, simulator) { _ = form() } }
    }

    func testADurationLimitsAScan() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try poweredOn(simulator)
        let stream = manager.startScanning(timeout: .milliseconds(2_500))
        simulator.advance(by: 2)
        XCTAssertTrue(manager.isScanning)
        simulator.advance(by: 1)
        XCTAssertFalse(manager.isScanning)
        let failed = stream.first()
        simulator.run()
        guard case .failure(CentralManagerError.peripheralScanTimeout)? = failed.result else {
            return XCTFail("\(String(describing: failed.result))")
        }
    }

    func testEachFormCompilesInAnAsyncFunction() async throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let waiting = Task(executorPreference: simulator.taskExecutor) {
            try await manager.waitUntilPoweredOn(timeout: .seconds(10))
            try await manager.waitUntilPoweredOn()
            try await manager.poweredOn(timeout: 10)
            try await manager.poweredOn()
        }
        await simulator.advance(by: 5)
        try await waiting.value
        let streams: [FutureStream<Peripheral>] = [
            manager.startScanning(), manager.startScanning(forServiceUUIDs: [service]),
            manager.startScanning(timeout: 10), manager.startScanning(timeout: .seconds(10)),
            manager.startScanning(forServiceUUIDs: [service], timeout: 10),
            manager.startScanning(forServiceUUIDs: [service], timeout: .seconds(10), options: ScanOptions()),
            manager.startScanning(options: [CBCentralManagerScanOptionAllowDuplicatesKey: true]),
        ]
        let inferred = manager.startScanningForReports(timeout: .seconds(1))
        XCTAssertEqual(streams.count, 7)
        XCTAssertTrue(manager.isScanning)
        withExtendedLifetime(inferred) { manager.stopScanning() }
    }
}
