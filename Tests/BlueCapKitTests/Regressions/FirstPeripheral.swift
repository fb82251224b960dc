import BlueCapKit
import BlueZSimulator
import XCTest

extension Simulator {
    /// Starts a central manager on this bus, and returns it with the first peripheral that it discovers.
    func firstPeripheral(
        file: StaticString = #filePath, line: UInt = #line
    ) throws -> (manager: CentralManager, peripheral: Peripheral) {
        let manager = try CentralManager(configuration: .init(busAddress: address))
        XCTAssertTrue(advance(until: { manager.poweredOn }, limit: 5), file: file, line: line)
        let scan = manager.startScanning()
        XCTAssertTrue(advance(until: { !manager.peripherals.isEmpty }, limit: 5), file: file, line: line)
        manager.stopScanning()
        withExtendedLifetime(scan) {}
        return (manager, try XCTUnwrap(manager.peripherals.first, file: file, line: line))
    }
}
