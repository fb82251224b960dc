import BlueCapKit
public import Foundation
import XCTest

/// The scan tests, once. Each test target has a class that plays them on its own stage.
public struct ScanBodies: StagePlayer {
    private let stage: any ScanStage
    public let journal = Journal()
    /// In seconds of the stage's time; an emulated radio is slow.
    public let limit: TimeInterval = 30
    public var ground: any ScanStage { stage }

    public init(on stage: any ScanStage) { self.stage = stage }

    private func manager() throws -> CentralManager {
        let manager = try CentralManager(configuration: stage.centralConfiguration)
        journal.watchStates(of: manager)
        XCTAssertTrue(
            stage.wait(journal, limit: limit) { $0.states.contains(.poweredOn) },
            "The manager never got on: \(journal.states), \(manager.stateExplanation)")
        return manager
    }

    /// Ends the scan and waits until BlueZ has confirmed it.
    private func end(_ manager: CentralManager) {
        manager.stopScanning()
        let before = journal.read(\.completions)
        journal.watch(manager.whenScanningStopped())
        expect("the end of discovery") { $0.completions > before }
    }

    public func reportsWhatIsAdvertised() throws {
        try stage.advertise(.strap)
        let manager = try manager()
        journal.watch(manager.startScanning())
        expect("the strap") { !$0.sightings(named: "Strap").isEmpty }

        let strap = try XCTUnwrap(journal.read { $0.sightings(named: "Strap").first })
        XCTAssertEqual(strap.advertisements.localName, "Strap")
        XCTAssertEqual(strap.advertisements.serviceUUIDs?.contains(CBUUID(string: "180D")), true)
        XCTAssertEqual(strap.advertisements.manufacturerData, Data([0xFF, 0xFF, 1, 2, 3]))
        XCTAssertEqual(strap.rssi, stage.measuresRSSI ? -48 : nil)
        XCTAssertEqual(strap.RSSI, stage.measuresRSSI ? -48 : 127)
        XCTAssertTrue(manager.peripherals.contains(strap))
        XCTAssertEqual(journal.failures, [])
        end(manager)
    }

    public func reportsOnlyWhoAdvertisesTheService() throws {
        try stage.advertise(.strap)
        let manager = try manager()
        journal.watch(manager.startScanning(forServiceUUIDs: [CBUUID(string: "180D")]))
        expect("the strap") { !$0.sightings(named: "Strap").isEmpty }
        end(manager)

        let others = Journal()
        others.watch(manager.startScanning(forServiceUUIDs: [CBUUID(string: "1809")], timeout: 3))
        XCTAssertTrue(stage.wait(others, limit: limit) { !$0.failures.isEmpty })
        XCTAssertEqual(others.sightings, [])
        XCTAssertEqual(others.failures, [.peripheralScanTimeout])
    }

    public func aScanThatTimesOutStops() throws {
        let manager = try manager()
        journal.watch(manager.startScanning(forServiceUUIDs: [CBUUID(string: "1809")], timeout: 2))
        XCTAssertTrue(manager.isScanning)
        expect("the time-out") { !$0.failures.isEmpty }
        XCTAssertEqual(journal.failures, [.peripheralScanTimeout])
        XCTAssertFalse(manager.isScanning)
        end(manager)
        XCTAssertFalse(try stage.isDiscovering())
    }

    public func aTimeOutAfterADiscoveryIsNoError() throws {
        try stage.advertise(.strap)
        let manager = try manager()
        let scan = manager.startScanning(forServiceUUIDs: [CBUUID(string: "180D")], timeout: 10)
        journal.watch(scan)
        journal.watch(scan.collect().map(context: ImmediateContext()) { _ in })
        expect("the scan's end") { $0.completions == 1 }
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap"])
        XCTAssertEqual(journal.failures, [])
        XCTAssertFalse(manager.isScanning)
    }

    public func aSecondScanOfOneManagerIsRefused() throws {
        let manager = try manager()
        let first = Journal()
        first.watch(manager.startScanning())
        journal.watch(manager.startScanning())
        XCTAssertEqual(journal.failures, [.isScanning])
        XCTAssertTrue(manager.isScanning)
        end(manager)
        XCTAssertEqual(first.failures, [])
    }

    public func stoppingLeavesNoDiscoveryBehind() throws {
        try stage.advertise(.strap)
        let manager = try manager()
        journal.watch(manager.startScanning())
        expect("the strap") { !$0.sightings.isEmpty }
        XCTAssertTrue(try stage.isDiscovering())
        end(manager)
        XCTAssertFalse(try stage.isDiscovering())
    }

    public func theStateFollowsThePower() throws {
        let manager = try manager()
        try stage.setPower(false)
        expect("off") { $0.states.contains(.poweredOff) }
        journal.watch(manager.startScanning())
        XCTAssertEqual(journal.failures, [.isPoweredOff])
        try stage.setPower(true)
        expect("on again") { $0.states.last == .poweredOn }
        XCTAssertEqual(journal.states, [.poweredOn, .poweredOff, .poweredOn])
    }

    public func aScanGoesOnAfterTheDaemonsRestart() throws {
        let manager = try manager()
        journal.watch(
            manager.startScanning(options: ScanOptions(allowsDuplicates: true)))
        try stage.restartDaemon()
        expect("resetting") { $0.states.contains(.resetting) }
        expect("on again") { $0.states.last == .poweredOn }
        XCTAssertTrue(manager.isScanning)
        let before = journal.sightings.count
        try stage.advertise(.strap)
        expect("the strap after the restart") { $0.sightings.dropFirst(before).contains { $0.name == "Strap" } }
        XCTAssertEqual(journal.states, [.poweredOn, .resetting, .poweredOn])
        XCTAssertEqual(journal.failures, [])
        end(manager)
    }
}
