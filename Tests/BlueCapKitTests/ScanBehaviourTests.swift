import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// What users suffer from while scanning, and what happens here instead; the letters are those of the behaviours in
/// Documentation/Reliability.md.
final class ScanBehaviourTests: XCTestCase {
    private let journal = Journal()
    private var simulator = Simulator.inProcess(room: .empty)

    private let strap = VirtualPeripheral(
        "C0:00:00:00:00:01", rssi: .constant(-50),
        advertisement: Advertisement(localName: "Strap", serviceUUIDs: ["180D"]), interval: 0.2)
    private let scale = VirtualPeripheral(
        "C0:00:00:00:00:02", rssi: .constant(-80),
        advertisement: Advertisement(localName: "Scale", serviceUUIDs: ["181D"]), interval: 0.2)

    private func manager(
        _ configuration: CentralManager.Configuration = .init(), in room: [VirtualPeripheral]? = nil
    ) -> CentralManager {
        for peripheral in room ?? [] { simulator.add(peripheral) }
        return simulator.central(configuration)
    }

    private var held: CentralManager?

    override func tearDown() {
        held = nil
        super.tearDown()
    }

    /// A manager that has scanned for some seconds, with the journal watching. It ends with the test.
    @discardableResult
    private func scanning(
        _ options: ScanOptions = ScanOptions(), in room: [VirtualPeripheral], for seconds: TimeInterval
    ) -> CentralManager {
        let manager = manager(in: room)
        journal.watch(manager.startScanning(options: options))
        simulator.advance(by: seconds)
        held = manager
        return manager
    }

    private var calls: (start: Int, stop: Int, filter: Int) {
        let statistics = simulator.statistics
        return (
            statistics.count(of: "StartDiscovery"), statistics.count(of: "StopDiscovery"),
            statistics.count(of: "SetDiscoveryFilter")
        )
    }

    // MARK: A1, one session for all

    func testTwoManagersShareOneSessionAndSeeTheirOwn() {
        let first = manager(in: [strap, scale])
        let second = manager()
        let others = Journal()
        journal.watch(first.startScanning(forServiceUUIDs: [CBUUID(string: "180D")]))
        others.watch(second.startScanning(forServiceUUIDs: [CBUUID(string: "181D")]))
        simulator.advance(by: 2)
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap"])
        XCTAssertEqual(others.sightings.map(\.name), ["Scale"])
        XCTAssertEqual(calls.start, 1)
        XCTAssertEqual(simulator.discoverySessions.count, 1)

        first.stopScanning()
        simulator.advance(by: 1)
        XCTAssertEqual(calls.stop, 0)
        XCTAssertEqual(simulator.discoverySessions.count, 1)

        second.stopScanning()
        simulator.advance(by: 1)
        XCTAssertEqual(calls.stop, 1)
        XCTAssertEqual(simulator.discoverySessions, [])
    }

    func testADeallocatedManagerLeavesNothingBehind() {
        weak var weakManager: CentralManager?
        do {
            let manager = manager(in: [strap])
            weakManager = manager
            journal.watch(manager.startScanning())
            simulator.advance(by: 1)
            XCTAssertEqual(simulator.discoverySessions.count, 1)
        }
        simulator.advance(by: 1)
        XCTAssertNil(weakManager)
        XCTAssertEqual(simulator.discoverySessions, [])
        XCTAssertEqual(simulator.adapters.map(\.isDiscovering), [false])
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap"], "A peripheral outlives its manager.")
    }

    func testTheEndOfAScanIsReportedWhenBlueZHasConfirmedIt() {
        let manager = scanning(in: [strap], for: 1)
        simulator.simulateSlowReplies(by: 0.5)
        manager.stopScanning()
        journal.watch(manager.whenScanningStopped())
        simulator.advance(by: 0.9)
        XCTAssertEqual(journal.read(\.completions), 0)
        simulator.advance(by: 0.2)
        XCTAssertEqual(journal.read(\.completions), 1)
    }

    // MARK: A2, what the filter lets through by mistake

    func testAWeakSignalThatAnotherClientsFilterLetsThroughIsNotReported() {
        let strict = manager(in: [strap, scale])
        let greedy = manager()
        journal.watch(strict.startScanning(options: ScanOptions(rssiThreshold: -70)))
        let all = Journal()
        all.watch(greedy.startScanning())
        simulator.advance(by: 2)
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap"])
        XCTAssertEqual(Set(all.sightings.map(\.name)), ["Strap", "Scale"])
    }

    func testAPatternFindsByNameAndByAddress() {
        let manager = scanning(ScanOptions(pattern: "Sca"), in: [strap, scale], for: 1)
        XCTAssertEqual(journal.sightings.map(\.name), ["Scale"])
        manager.stopScanning()
        simulator.advance(by: 1)
        journal.watch(manager.startScanning(options: ScanOptions(pattern: "c0:00:00:00:00:01")))
        simulator.advance(by: 1)
        XCTAssertEqual(journal.sightings.map(\.name), ["Scale", "Strap"])
    }

    // MARK: A3, InProgress

    func testAStartThatIsRefusedTwiceSucceeds() {
        let manager = manager(in: [strap])
        simulator.simulateStartDiscoveryFailures(2)
        journal.watch(manager.startScanning())
        simulator.advance(by: 3)
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap"])
        XCTAssertTrue(journal.failures.isEmpty)
    }

    func testAStartThatIsAlwaysRefusedFailsWithTheBusesWords() {
        let manager = manager(in: [strap])
        simulator.simulateStartDiscoveryFailures(1_000)
        journal.watch(manager.startScanning())
        XCTAssertTrue(simulator.advance(until: { !self.journal.failures.isEmpty }, limit: 3))
        guard case .scanFailed(let failure)? = journal.failures.first else {
            return XCTFail("Not the failure expected: \(journal.failures)")
        }
        XCTAssertEqual(failure.name, "org.bluez.Error.InProgress")
        XCTAssertFalse(manager.isScanning)
    }

    // MARK: A4, a discovery that ends without a report

    func testADiscoveryThatEndsByItselfIsStartedAgain() {
        let manager = manager(in: [strap])
        let restarts = Journal()
        manager.whenScanningRestarts().onSuccess(context: ImmediateContext()) { _ in
            restarts.write { $0.completions += 1 }
        }
        journal.watch(manager.startScanning(options: ScanOptions(allowsDuplicates: true)))
        simulator.advance(by: 1)
        simulator.simulateDiscoveryDeath()
        simulator.advance(by: 3)
        XCTAssertEqual(restarts.read(\.completions), 1)
        XCTAssertEqual(simulator.adapters.map(\.isScanning), [true])
    }

    func testAScanThatReceivesNothingIsStartedAgainByTheWatchdog() {
        scanning(ScanOptions(allowsDuplicates: true), in: [strap], for: 1)
        simulator.simulateDiscoveryDeath(isAnnounced: false)
        simulator.advance(by: 5)
        let before = journal.sightings.count
        simulator.advance(by: 150)
        XCTAssertGreaterThan(journal.sightings.count, before)
        XCTAssertEqual(calls.start, 2)
    }

    // MARK: A5, the discovery filter

    func testTheFilterHasExactlyTheKeysAskedFor() {
        let manager = manager()
        journal.watch(manager.startScanning())
        simulator.advance(by: 1)
        // Pathloss makes each report bring a strength, on every version; BlueZ takes it or RSSI, not both.
        XCTAssertEqual(simulator.statistics.discoveryFilters.last.map { Set($0.keys) }, ["Transport", "Pathloss"])
        XCTAssertEqual(simulator.statistics.discoveryFilters.last?["Pathloss"], .uint16(137))
        manager.stopScanning()
        simulator.advance(by: 1)
        journal.watch(
            manager.startScanning(
                forServiceUUIDs: [CBUUID(string: "180D")],
                options: ScanOptions(allowsDuplicates: true, rssiThreshold: -70, pattern: "S")))
        simulator.advance(by: 1)
        XCTAssertEqual(
            simulator.statistics.discoveryFilters.last.map { Set($0.keys) },
            ["Transport", "UUIDs", "RSSI", "Pattern", "DuplicateData"])
    }

    // MARK: A6, a bounded table

    func testACrowdNeverExceedsTheTable() {
        simulator = .inProcess(room: .crowd(300))
        let manager = manager(.init(maximumPeripherals: 100))
        journal.watch(manager.startScanning(capacity: 0))
        simulator.advance(by: 5)
        XCTAssertLessThanOrEqual(manager.peripherals.count, 100)
        XCTAssertEqual(Set(journal.sightings.map(\.address)).count, 300)
    }

    func testAPeripheralOutOfRangeExpiresOnce() {
        let manager = manager(in: [strap, scale])
        journal.watchExpiries(of: manager)
        journal.watch(manager.startScanning())
        simulator.advance(by: 2)
        simulator.remove(strap.address)
        simulator.advance(by: 60)
        XCTAssertEqual(journal.expired.map(\.name), ["Strap"])
        XCTAssertEqual(manager.peripherals.map(\.name), ["Scale"])
        XCTAssertEqual(
            journal.expired.first?.advertisements.localName, "Strap", "The last advertisement is still known.")
    }

    // MARK: A7, devices that BlueZ remembers

    func testARememberedDeviceIsReportedOnlyWhenItAdvertises() {
        var old = scale
        old.isRemembered = true
        scanning(in: [strap, old], for: 2)
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap"])
        simulator.add(scale)
        simulator.advance(by: 2)
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap", "Scale"])
    }

    func testADeviceThatAdvertisesWhenTheScanStartsIsReported() {
        let first = manager(in: [strap])
        _ = first.startScanning(capacity: 0)
        simulator.advance(by: 2)
        let second = manager()
        journal.watch(second.startScanning())
        simulator.run()
        XCTAssertEqual(journal.sightings.map(\.name), ["Strap"])
    }

    // MARK: Values

    func testAPropertyOfAnUnexpectedTypeHidesNothingElse() {
        let manager = manager()
        simulator.simulateWrongTypes(of: strap.address, properties: ["Name", "ManufacturerData"])
        simulator.add(strap)
        journal.watch(manager.startScanning())
        simulator.advance(by: 2)
        XCTAssertEqual(journal.sightings.map(\.address), ["C0:00:00:00:00:01"])
        XCTAssertEqual(journal.sightings.first?.rssi, -50)
        XCTAssertEqual(journal.sightings.first?.advertisements.serviceUUIDs, [CBUUID(string: "180D")])
        XCTAssertEqual(journal.sightings.first?.name, "Unknown")
    }

    func testValuesFollowBlueZAlsoWithoutAScanAndRemainWhenItRemovesTheDevice() {
        let manager = scanning(in: [strap], for: 2)
        XCTAssertEqual(journal.sightings.first?.rssi, -50)
        manager.stopScanning()
        simulator.advance(by: 1)
        XCTAssertNil(journal.sightings.first?.rssi, "BlueZ takes the strength back when discovery ends.")
        XCTAssertEqual(journal.sightings.first?.name, "Strap")
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        XCTAssertEqual(journal.sightings.first?.name, "Strap")
        XCTAssertEqual(journal.sightings.first?.advertisements.serviceUUIDs, [CBUUID(string: "180D")])
    }

    func testOnePeripheralIsOneObject() {
        scanning(ScanOptions(allowsDuplicates: true), in: [strap], for: 3)
        XCTAssertGreaterThan(journal.sightings.count, 3)
        XCTAssertEqual(Set(journal.sightings).count, 1)
        XCTAssertEqual(journal.sightings.first?.identifier, journal.sightings.last?.identifier)
    }

    // MARK: States

    func testTheStateNamesWhatIsMissing() {
        let bus = simulator
        let manager = manager()
        bus.simulateAdapterRemoval()
        XCTAssertTrue(bus.advance(until: { manager.state == .unsupported }, limit: 10))
        XCTAssertTrue(manager.stateExplanation.contains("no Bluetooth adapter"), manager.stateExplanation)
        bus.simulateAdapterAddition()
        XCTAssertTrue(bus.advance(until: { manager.state == .poweredOn }, limit: 10))
        bus.simulateRfkill(true)
        XCTAssertTrue(bus.advance(until: { manager.state == .poweredOff }, limit: 10))
        bus.simulateRfkill(false)
        XCTAssertTrue(bus.advance(until: { manager.state == .poweredOn }, limit: 10))
        bus.simulateDaemonDeath()
        XCTAssertTrue(bus.advance(until: { manager.state == .resetting }, limit: 10))
        bus.simulateDaemonReturn()
        XCTAssertTrue(bus.advance(until: { manager.state == .poweredOn }, limit: 10))
    }

    func testARefusalIsUnauthorized() throws {
        simulator.simulateAccessDenied()
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertTrue(simulator.advance(until: { manager.state == .unauthorized }, limit: 10), "\(manager.state)")
    }

    func testWithoutADaemonItIsUnsupportedUntilOneComes() throws {
        simulator.simulateDaemonDeath()
        simulator.run()
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertEqual(manager.state, .unknown)
        XCTAssertTrue(simulator.advance(until: { manager.state == .unsupported }, limit: 10))
        simulator.simulateDaemonReturn()
        XCTAssertTrue(simulator.advance(until: { manager.state == .poweredOn }, limit: 10))
    }

    func testASecondWatcherOfTheStateDoesNotSilenceTheFirst() {
        let manager = manager()
        let others = Journal()
        journal.watchStates(of: manager)
        others.watchStates(of: manager)
        simulator.simulatePowerOff()
        simulator.advance(by: 1)
        XCTAssertEqual(journal.states, [.poweredOn, .poweredOff])
        XCTAssertEqual(others.states, [.poweredOn, .poweredOff])
    }

    func testAnAdapterIsChosenByNameOrAddress() throws {
        simulator = .inProcess(
            room: .empty,
            adapters: [VirtualAdapter(), VirtualAdapter(index: 1, address: "00:AA:01:00:00:01")])
        let second = manager(.init(adapter: "hci1"))
        journal.watch(second.startScanning())
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.adapters.map(\.isDiscovering), [false, true])

        let missing = try CentralManager(configuration: .init(busAddress: simulator.address, adapter: "hci7"))
        XCTAssertTrue(simulator.advance(until: { missing.state == .unsupported }, limit: 10))
        XCTAssertTrue(missing.stateExplanation.contains("hci0, hci1"), missing.stateExplanation)
    }

    func testResetStartsOver() {
        let manager = manager(in: [strap])
        journal.watchStates(of: manager)
        journal.watch(manager.startScanning())
        simulator.advance(by: 1)
        manager.reset()
        simulator.advance(by: 1)
        XCTAssertFalse(manager.isScanning)
        XCTAssertEqual(journal.states, [.poweredOn, .poweredOn])
        XCTAssertEqual(simulator.discoverySessions, [])
    }

    func testAWrongOptionIsNamed() {
        let manager = CentralManager(options: [
            "CentralManagerOptionBusAddressKey": simulator.address, "CentralManagerOptionAdapterKey": 7,
        ])
        journal.watch(manager.startScanning())
        simulator.run()
        XCTAssertEqual(
            journal.failures,
            [
                .invalidOption(
                    "The option CentralManagerOptionAdapterKey takes the name of an adapter, such as hci0, or its address, "
                        + "not 7.")
            ])
    }
}
