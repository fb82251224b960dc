import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

final class ScanTests: BluejayCase, @unchecked Swift.Sendable {
    /// Scans, and notes everything. `answer` has the name of what was discovered.
    private func scan(
        duration: TimeInterval = 0, duplicates: Bool = false, services: [ServiceIdentifier]? = nil,
        _ answer: @escaping (String) -> ScanAction = { _ in .continue }
    ) {
        bluejay.scan(
            duration: duration, allowDuplicates: duplicates, serviceIdentifiers: services,
            discovery: { [seen] discovery, discoveries in
                seen.note("found \(discovery.peripheralIdentifier.name) of \(discoveries.count)")
                return answer(discovery.peripheralIdentifier.name)
            },
            expired: { [seen] discovery, discoveries in
                seen.note("lost \(discovery.peripheralIdentifier.name) of \(discoveries.count)")
                return .continue
            }, stopped: { [seen] discoveries, error in seen.note("stopped \(discoveries.count)", error) })
    }

    func testADiscoveryHasWhatWasAdvertised() {
        start()
        simulator.add(
            VirtualPeripheral(
                Self.address, rssi: .constant(-52),
                advertisement: Advertisement(
                    localName: "Tag", serviceUUIDs: ["180D"], manufacturerData: [0x000D: [3]], txPower: 4)))
        bluejay.scan(
            serviceIdentifiers: nil,
            discovery: { [seen] discovery, _ in
                let packet = discovery.advertisementPacket
                seen.note("\(packet[CBAdvertisementDataLocalNameKey] ?? "")")
                seen.note("\(packet[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? [])")
                seen.note("\(packet[CBAdvertisementDataManufacturerDataKey] as? Data == Data([0x0D, 0, 3]))")
                seen.note("\(packet[CBAdvertisementDataTxPowerLevelKey] ?? "") \(discovery.rssi)")
                return .stop
            }, stopped: { _, _ in })
        expect("4 -52")
        XCTAssertEqual(seen.texts, ["Tag", "\([CBUUID(string: "180D")])", "true", "4 -52"])
    }

    func testADurationEndsAScanWithoutAnError() {
        start()
        simulator.add(Self.virtual(1))
        simulator.add(Self.virtual(2))
        scan(duration: 5)
        eventually("the scan") { bluejay.isScanning }
        expect("stopped 2 nil", limit: 6)
        XCTAssertFalse(bluejay.isScanning)
        XCTAssertEqual(seen.count, 3)
        XCTAssertTrue(simulator.discoverySessions.isEmpty)
    }

    func testADurationEndsAScanThatFoundNothingWithoutAnError() {
        start()
        scan(duration: 5)
        expect("stopped 0 nil", limit: 6)
        XCTAssertFalse(bluejay.isScanning)
        XCTAssertTrue(simulator.discoverySessions.isEmpty)
    }

    func testTheDurationOfAStoppedScanDoesNotEndTheNext() {
        start()
        simulator.add(Self.virtual(1))
        scan(duration: 5) { _ in .stop }
        expect("stopped 1 nil")
        scan(duration: 60)
        eventually("the second scan") { bluejay.isScanning }
        pass(10)
        XCTAssertTrue(bluejay.isScanning)
    }

    func testABlacklistedPeripheralIsNotReportedAgainInThisScan() {
        start()
        simulator.add(Self.virtual(1))
        simulator.add(Self.virtual(2))
        scan(duration: 1, duplicates: true) { $0 == "Strap 1" ? .blacklist : .continue }
        expect("stopped 2 nil", limit: 6)
        XCTAssertEqual(seen.texts.filter { $0.contains("Strap 1") }.count, 1)
        XCTAssertGreaterThan(seen.texts.filter { $0.contains("Strap 2") }.count, 5)
        scan(duration: 1) { $0 == "Strap 1" ? .stop : .continue }
        eventually("the second scan") { seen.texts.filter { $0.contains("Strap 1") }.count == 2 }
    }

    func testWhoFallsSilentExpires() {
        start()
        simulator.add(Self.virtual(1))
        simulator.add(Self.virtual(2))
        scan(duplicates: true)
        expect("found Strap 2 of 2")
        simulator.remove(Self.virtual(1).address)
        expect("lost Strap 1 of 1", limit: 60)
        bluejay.stopScanning()
        expect("stopped 1 nil")
        XCTAssertEqual(seen.texts.filter { $0.hasPrefix("lost") }.count, 1)
    }

    func testWhatIsBlacklistedIsNotLostEither() {
        start()
        simulator.add(Self.virtual(1))
        simulator.add(Self.virtual(2))
        scan(duplicates: true) { $0 == "Strap 1" ? .blacklist : .continue }
        expect("found Strap 2 of 2")
        simulator.remove(Self.virtual(1).address)
        simulator.remove(Self.virtual(2).address)
        eventually("the second", limit: 90, step: 1) { seen.texts.contains { $0.hasPrefix("lost Strap 2") } }
        pass(5)
        XCTAssertEqual(seen.texts.filter { $0.hasPrefix("lost Strap 1") }, [])
    }

    func testCancellingEverythingRightAfterTheStartLeavesTheNextScanItsWaitForBluetooth() {
        simulator.add(Self.virtual())
        bluejay.start(mode: .new(options))
        scan()
        bluejay.cancelEverything()
        scan { _ in .stop }
        expect("stopped 1 nil")
        XCTAssertEqual(seen.texts, ["stopped 0 cancelled", "found Strap 1 of 1", "stopped 1 nil"])
    }

    func testThereIsOneScanAtATime() {
        start()
        scan()
        scan()
        expect("stopped 0 multipleScanNotSupported")
        bluejay.stopScanning()
        bluejay.stopScanning()
        expect("stopped 0 nil")
        scan(duration: 1)
        eventually("the next") { seen.texts.filter { $0 == "stopped 0 nil" }.count == 2 }
    }

    func testAfterItsEndAScanReportsNothing() {
        start()
        for number in 1...5 { simulator.add(Self.virtual(number)) }
        scan { _ in .stop }
        expect("stopped 1 nil")
        pass(2)
        XCTAssertEqual(seen.count, 2)
    }

    func testPowersEndStopsAScan() {
        start()
        scan()
        eventually("the scan") { bluejay.isScanning }
        simulator.simulatePowerOff()
        expect("stopped 0 bluetoothUnavailable")
        XCTAssertFalse(bluejay.isBluetoothAvailable)
        scan()
        eventually("the refusal") { seen.texts.filter { $0 == "stopped 0 bluetoothUnavailable" }.count == 2 }
        simulator.simulatePowerOn()
        eventually("the power") { bluejay.isBluetoothAvailable }
        pass(1)
        XCTAssertTrue(simulator.discoverySessions.isEmpty)
    }

    func testAScanRightAfterTheStartWaitsForBluetooth() {
        simulator.add(Self.virtual())
        bluejay.start(mode: .new(options))
        XCTAssertTrue(bluejay.isBluetoothStateUpdateImminent)
        scan { _ in .stop }
        expect("stopped 1 nil")
        XCTAssertFalse(bluejay.isBluetoothStateUpdateImminent)
    }

    func testAScanOfNoUUIDIsAnError() {
        start()
        scan(services: [ServiceIdentifier(uuid: "heart")])
        eventually("an error") { seen.texts.first?.contains("is not a Bluetooth UUID") == true }
        XCTAssertEqual(seen.count, 1)
    }

    func testWhatRefusesToScanIsAnError() {
        start()
        simulator.simulateStartDiscoveryFailures(100)
        scan()
        eventually("an error") { seen.texts.first?.contains("bluetoothd refused to scan") == true }
    }
}
