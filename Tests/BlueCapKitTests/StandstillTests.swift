import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// A device with constant signal strength and data stays discovered, with every version of BlueZ.
final class StandstillTests: XCTestCase {
    private let tag = VirtualPeripheral(
        "C0:00:00:00:00:01", addressType: .random, rssi: .constant(-50),
        advertisement: Advertisement(localName: "Tag", manufacturerData: [0xFFFF: [1]]), interval: 1)

    /// Scans for ten minutes.
    private func scan(_ bluez: BlueZVersion, isLowEnergyOnly: Bool, allowsDuplicates: Bool) {
        let simulator = Simulator.inProcess(
            room: Room(peripherals: [tag]), adapters: [VirtualAdapter(isLowEnergyOnly: isLowEnergyOnly)], bluez: bluez)
        let manager = try! CentralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5))
        let journal = Journal()
        journal.watch(
            manager.startScanning(
                options: ScanOptions(allowsDuplicates: allowsDuplicates)))
        journal.watchExpiries(of: manager)
        simulator.advance(by: 600)
        let place = "\(bluez)\(isLowEnergyOnly ? ", LE only" : "")\(allowsDuplicates ? ", duplicates" : "")"
        XCTAssertEqual(journal.read(\.expired), [], place)
        XCTAssertEqual(manager.peripherals.map(\.name), ["Tag"], place)
        XCTAssertEqual(simulator.devices.count, 1, place)
        XCTAssertEqual(manager.state, .poweredOn, place)
        if allowsDuplicates { XCTAssertGreaterThan(journal.sightings.count, 500, place) }
        XCTAssertEqual(Set(journal.sightings.map(\.address)).count, 1, place)
        if !allowsDuplicates { XCTAssertEqual(journal.sightings.count, 1, place) }
        manager.stopScanning()
        simulator.advance(by: 1)
    }

    func testADeviceThatStandsStillStaysForTenMinutesOnEachVersion() {
        for bluez in [BlueZVersion.v5_66, .v5_72, .v5_82, .v5_87, .head] {
            for isLowEnergyOnly in [false, true] {
                for allowsDuplicates in [false, true] {
                    scan(bluez, isLowEnergyOnly: isLowEnergyOnly, allowsDuplicates: allowsDuplicates)
                }
            }
        }
    }
}
