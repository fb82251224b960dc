import BlueCapKit
import TestSupport
import XCTest

/// What real `bluetoothd` makes of advertisements, and of other programs that scan beside us.
final class RadioSightingTests: XCTestCase {
    private let journal = Journal()

    private func manager(on stage: RadioStage, adapter: String = "hci0") throws -> CentralManager {
        let manager = try CentralManager(configuration: .init(adapter: adapter))
        journal.watchStates(of: manager)
        XCTAssertTrue(stage.wait(journal, limit: 30) { $0.states.contains(.poweredOn) }, manager.stateExplanation)
        return manager
    }

    override func tearDownWithError() throws { try RadioLab.reset() }

    func testServiceDataArrivesByService() throws {
        let stage = try RadioStage()
        try RadioLab.order(.server, "advertise", "hci1", "Cell", "--service", "180F", "--service-data", "180F=64")
        let manager = try manager(on: stage)
        journal.watch(manager.startScanning())

        XCTAssertTrue(stage.wait(journal, limit: 30) { !$0.sightings(named: "Cell").isEmpty }, "\(journal.sightings)")
        let cell = try XCTUnwrap(journal.sightings.first)
        XCTAssertEqual(cell.advertisements.serviceData, [CBUUID(string: "180F"): Data([0x64])])
        XCTAssertEqual(cell.address, try RadioLab.property("Address", of: "hci1"))
    }

    func testTheAdapterThatWasAskedForScans() throws {
        let stage = try RadioStage()
        try RadioLab.order(.server, "advertise", "hci0", "Other way")
        let manager = try manager(on: stage, adapter: "hci1")
        journal.watch(manager.startScanning())

        XCTAssertTrue(stage.wait(journal, limit: 30) { !$0.sightings(named: "Other way").isEmpty })
        XCTAssertEqual(try RadioLab.property("Discovering", of: "hci1"), "true")
        XCTAssertEqual(try RadioLab.property("Discovering", of: "hci0"), "false")
    }

    func testWithDuplicatesANewAdvertisementIsANewSighting() throws {
        let stage = try RadioStage()
        try RadioLab.order(.server, "advertise", "hci1", "Counter", "--manufacturer", "0xFFFF=01")
        let manager = try manager(on: stage)
        journal.watch(manager.startScanning(options: ScanOptions(allowsDuplicates: true)))
        XCTAssertTrue(stage.wait(journal, limit: 30) { !$0.sightings(named: "Counter").isEmpty })

        try RadioLab.order(.server, "advertise", "hci1", "Counter", "--manufacturer", "0xFFFF=02")
        let newData = Data([0xFF, 0xFF, 2])
        XCTAssertTrue(
            stage.wait(journal, limit: 30) { $0.sightings.last?.advertisements.manufacturerData == newData },
            "\(journal.sightings.map(\.advertisements))")
        XCTAssertEqual(manager.peripherals.count, 1)
    }

    func testAnotherProgramsScanBringsUsNothingWeDidNotAskFor() throws {
        let stage = try RadioStage()
        try stage.advertise(.strap)
        let other = try RadioLab.start("bluetoothctl", "--timeout", "60", "scan", "le")
        defer { other.terminate() }
        let manager = try manager(on: stage)

        journal.watch(manager.startScanning(forServiceUUIDs: [CBUUID(string: "1809")], timeout: 5))
        XCTAssertTrue(stage.wait(journal, limit: 30) { !$0.failures.isEmpty })
        XCTAssertEqual(journal.failures, [.peripheralScanTimeout])
        XCTAssertEqual(journal.sightings, [])
    }
}
