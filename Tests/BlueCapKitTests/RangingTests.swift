import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

/// Ranging of beacons in a simulated room, in virtual time.
final class RangingTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)
    private let sightings = Locked([BeaconSighting]())
    private let journal = Journal()
    private let floor = CBUUID(string: "F7826DA6-4FA2-4E98-8024-BC5B71E0893E").nsuuid

    private let beaconAddress: VirtualAddress = "D4:F5:13:00:00:01"
    private let signAddress: VirtualAddress = "E3:1D:A5:00:00:02"

    private func addBeacon(rssi: Int = -59) {
        let beacon = IBeacon(uuid: floor, major: 1, minor: 7, measuredPower: -59)
        simulator.add(
            VirtualPeripheral(
                beaconAddress, addressType: .random, rssi: .constant(rssi),
                advertisement: Advertisement(
                    manufacturerData: [IBeacon.company: [UInt8](beacon.data)], isConnectable: false), interval: 0.1))
    }

    private func addSign() throws {
        let link = try XCTUnwrap(Eddystone.URL("https://goo.gl/room4", powerAtZeroMetres: -18))
        simulator.add(
            VirtualPeripheral(
                signAddress, addressType: .random, rssi: .constant(-79),
                advertisement: Advertisement(
                    serviceUUIDs: ["feaa"], serviceData: ["feaa": [UInt8](link.data)], isConnectable: false),
                interval: 0.1))
    }

    private func watch(_ stream: FutureStream<BeaconSighting>) {
        stream.onComplete(context: ImmediateContext()) { [sightings, journal] result in
            switch result {
            case .success(let sighting): sightings.withLock { $0.append(sighting) }
            case .failure(let error): journal.write { $0.failures.append(error) }
            }
        }
    }

    private var seen: [BeaconSighting] { sightings.withLock { $0 } }

    func testABeaconIsReportedAgainAndAgainWithItsDistance() throws {
        addBeacon()
        simulator.add(
            VirtualPeripheral(
                "C0:00:00:00:00:03", advertisement: Advertisement(localName: "Strap", serviceUUIDs: ["180D"]),
                interval: 0.1))
        let manager = simulator.central()
        watch(manager.startRangingBeacons())
        simulator.advance(by: 3)
        XCTAssertGreaterThan(seen.count, 10)
        let sighting = try XCTUnwrap(seen.last)
        XCTAssertEqual(
            Set(seen.map(\.beacon)), [.iBeacon(IBeacon(uuid: floor, major: 1, minor: 7, measuredPower: -59))])
        XCTAssertEqual(sighting.rssi, -59)
        XCTAssertEqual(try XCTUnwrap(sighting.distance).metres, 1, accuracy: 1e-6)
        XCTAssertEqual(sighting.proximity, .near)
        XCTAssertEqual(manager.peripherals, [sighting.peripheral])
        XCTAssertEqual(sighting.peripheral.address, "D4:F5:13:00:00:01")
    }

    func testFiltersChooseWhatIsReported() throws {
        addBeacon()
        try addSign()
        let manager = simulator.central()
        watch(manager.startRangingBeacons([.kind(.eddystoneURL), .iBeacon(floor, minor: 8)]))
        simulator.advance(by: 3)
        XCTAssertEqual(Set(seen.map(\.beacon.kind)), [.eddystoneURL])
        XCTAssertEqual(seen.last?.proximity, .far)
        XCTAssertEqual(manager.peripherals.map(\.address), ["E3:1D:A5:00:00:02"])
    }

    func testRangingEndsAndLeavesNoDiscovery() {
        addBeacon()
        let manager = simulator.central()
        let stream = manager.startRangingBeacons()
        watch(stream)
        simulator.advance(by: 1)
        XCTAssertTrue(manager.isRangingBeacons)
        XCTAssertFalse(manager.isScanning)
        XCTAssertTrue(simulator.adapters.contains(where: \.isDiscovering))
        manager.stopRangingBeacons()
        journal.watch(manager.whenScanningStopped())
        simulator.advance(by: 1)
        let count = seen.count
        XCTAssertEqual(journal.read(\.completions), 1)
        XCTAssertFalse(manager.isRangingBeacons)
        XCTAssertEqual(simulator.discoverySessions, [])
        simulator.advance(by: 3)
        XCTAssertEqual(seen.count, count)
        XCTAssertTrue(journal.read { $0.failures.isEmpty })
    }

    func testAScanAndRangingStandBesideEachOther() {
        addBeacon()
        let manager = simulator.central()
        let scan = Journal()
        watch(manager.startRangingBeacons())
        simulator.advance(by: 1)
        scan.watch(manager.startScanning())
        simulator.advance(by: 2)
        XCTAssertEqual(scan.sightings.count, 1, "without duplicates each is reported once")
        XCTAssertEqual(manager.peripherals.count, 1)

        manager.stopRangingBeacons()
        simulator.advance(by: 1)
        XCTAssertTrue(manager.isScanning)
        XCTAssertTrue(simulator.adapters.contains(where: \.isDiscovering))
        let count = seen.count

        watch(manager.startRangingBeacons())
        simulator.advance(by: 1)
        XCTAssertGreaterThan(seen.count, count)
        manager.stopScanning()
        simulator.advance(by: 1)
        let later = seen.count
        simulator.advance(by: 1)
        XCTAssertGreaterThan(seen.count, later, "ranging goes on without the scan")
        XCTAssertEqual(scan.failures, [])
    }

    func testASecondRangingIsRefusedAndAnotherManagersIsNot() {
        addBeacon()
        let (first, second) = (simulator.central(), simulator.central())
        watch(first.startRangingBeacons())
        journal.watch(first.startScanning(timeout: 100))
        let refused = Journal()
        first.startRangingBeacons().onFailure(context: ImmediateContext()) { error in
            refused.write { $0.failures.append(error) }
        }
        XCTAssertEqual(refused.failures, [.isRanging])
        let before = seen.count
        first.stopRangingBeacons()
        watch(second.startRangingBeacons())
        simulator.advance(by: 2)
        XCTAssertGreaterThan(seen.count, before)
        XCTAssertEqual(journal.failures, [])
    }

    func testRangingNeedsPower() {
        let manager = simulator.central()
        simulator.simulatePowerOff()
        simulator.advance(by: 1)
        watch(manager.startRangingBeacons())
        simulator.advance(by: 1)
        XCTAssertEqual(journal.failures, [.isPoweredOff])
        XCTAssertFalse(manager.isRangingBeacons)
        watch(manager.startRangingBeacons(smoothing: .seconds(-1)))
        XCTAssertEqual(
            journal.failures.last, .invalidOption("Smoothing takes zero or more seconds, not -1.0 seconds."))
    }

    func testRangingGoesOnAfterTheDaemonsRestart() {
        addBeacon()
        let manager = simulator.central()
        watch(manager.startRangingBeacons())
        simulator.advance(by: 1)
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        simulator.simulateDaemonReturn()
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 10))
        let count = seen.count
        XCTAssertTrue(simulator.advance(until: { self.seen.count > count }, limit: 10))
        XCTAssertTrue(journal.read { $0.failures.isEmpty })
    }

    func testABeaconThatFallsSilentExpires() {
        addBeacon()
        let manager = simulator.central()
        journal.watchExpiries(of: manager)
        watch(manager.startRangingBeacons())
        simulator.advance(by: 2)
        simulator.remove(beaconAddress)
        simulator.advance(by: 60)
        XCTAssertEqual(journal.expired.map(\.address), ["D4:F5:13:00:00:01"])
        XCTAssertEqual(manager.peripherals, [])
    }

    func testTheStreamEndsWithItsManager() {
        addBeacon()
        var manager: CentralManager? = simulator.central()
        manager.map { watch($0.startRangingBeacons()) }
        simulator.advance(by: 1)
        XCTAssertFalse(seen.isEmpty)
        sightings.withLock { $0 = [] }
        manager = nil
        simulator.advance(by: 2)
        XCTAssertTrue(seen.isEmpty)
        XCTAssertEqual(simulator.discoverySessions, [])
    }
}
