import BlueZSimulator
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapKit

/// Virtual time ran out while another thread read or wrote the state of a manager, on a machine that was busy.
final class SlowDiskTests: XCTestCase {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("slow-disk-\(UUID())")

    override func setUpWithError() throws {
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    override func tearDown() {
        RestorationKeeper.waitForAll()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Keeps the queue of the disk busy until `hasPassed` is signalled, but no longer than 0.2 s of real time.
    private func delayDisk(until hasPassed: DispatchSemaphore) throws {
        let other = try XCTUnwrap(RestorationKeeper(identifier: "other", folder: folder.path))
        other.open(for: ManualLoop()) { _ in _ = hasPassed.wait(timeout: .now() + 0.2) }
        other.finish(nil, for: ManualLoop())
    }

    private func manager(_ simulator: Simulator) -> CentralManager {
        try! CentralManager(
            configuration: .init(
                busAddress: simulator.address, restoreIdentifier: "scanner", stateDirectory: folder.path))
    }

    func testAStateIsRestoredBeforeVirtualTimePasses() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let hasPassed = DispatchSemaphore(value: 0)
        try delayDisk(until: hasPassed)
        let manager = manager(simulator)
        let restored: Future<Void> = manager.whenStateRestored()

        XCTAssertTrue(simulator.advance(until: { restored.completed }, limit: 1))
        hasPassed.signal()
    }

    func testAStateIsWrittenWhenItsDelayIsOver() throws {
        let simulator = Simulator.inProcess(room: .empty)
        let manager = manager(simulator)
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 1))
        simulator.advance(by: 1)
        let file = folder.appendingPathComponent("central/scanner.json").path
        XCTAssertFalse(FileManager.default.fileExists(atPath: file))
        let hasPassed = DispatchSemaphore(value: 0)
        try delayDisk(until: hasPassed)

        _ = manager.startScanning()
        simulator.advance(by: 1)
        XCTAssertTrue(FileManager.default.fileExists(atPath: file))
        hasPassed.signal()
    }
}
