import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// What is advertised is on the air byte for byte, and comes back.
final class AdvertisingBehaviourTests: PeripheralStage {
    private let long = CBUUID(string: TISensorTag.AccelerometerService.uuid)

    func testANameAndServicesAreAdvertised() throws {
        try value(of: manager.startAdvertising("Strap", uuids: [CBUUID(string: "180D"), CBUUID(string: "180F")]))
        XCTAssertTrue(manager.isAdvertising)
        let sent = try XCTUnwrap(simulator.advertisements.first)
        XCTAssertEqual(sent.scanResponse, [6, 0x09] + Array("Strap".utf8))
        XCTAssertEqual(sent.data, [5, 0x03, 0x0D, 0x18, 0x0F, 0x18, 2, 0x01, 0x06])
        XCTAssertTrue(sent.isConnectable)
        try value(of: manager.stopAdvertising())
        XCTAssertFalse(manager.isAdvertising)
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testABeaconIsSentByteForByte() throws {
        let uuid = try XCTUnwrap(UUID(uuidString: "B9407F30-F5F8-466E-AFF9-25556B57FE6D"))
        let region = BeaconRegion(proximityUUID: uuid, identifier: "iBeacon", major: 1, minor: 2)
        try value(of: manager.startAdvertising(region))
        let sent = try XCTUnwrap(simulator.advertisements.first)
        XCTAssertEqual(
            sent.data,
            [26, 0xFF, 0x4C, 0x00, 0x02, 0x15] + withUnsafeBytes(of: uuid.uuid) { Array($0) } + [0, 1, 0, 2, 0xC5])
        XCTAssertFalse(sent.isConnectable)
    }

    func testOneNameOrRegionAtATime() throws {
        let first = manager.startAdvertising("Strap")
        XCTAssertEqual(managerError(of: manager.startAdvertising("Other"), within: 0.01), .isAdvertising)
        try value(of: first)
        let uuid = UUID()
        let region = BeaconRegion(proximityUUID: uuid, identifier: "b", major: 1, minor: 1)
        XCTAssertEqual(managerError(of: manager.startAdvertising(region)), .isAdvertising)
        try value(of: manager.stopAdvertising())
        try value(of: manager.startAdvertising(region))
    }

    func testSeveralAreAdvertisedAtOnce() throws {
        try value(of: manager.startAdvertising("Strap"))
        var data = AdvertisingData()
        data.serviceData = [CBUUID(string: "180F"): Data([80])]
        let second = try value(of: manager.startAdvertising(data))
        data.serviceData = [CBUUID(string: "180F"): Data([81])]
        let third = try value(of: manager.startAdvertising(data))
        XCTAssertEqual(simulator.advertisements.count, 3)
        XCTAssertEqual(manager.advertisements.count, 3)
        XCTAssertTrue(second.isOnAir && third.isOnAir)
        try value(of: second.stop())
        XCTAssertEqual(simulator.advertisements.count, 2)
        XCTAssertEqual(try value(of: second.whenEnded()), .stopped)
        XCTAssertTrue(manager.isAdvertising)
        try value(of: manager.stopAdvertising())
        XCTAssertEqual(simulator.advertisements, [])
        XCTAssertEqual(try value(of: third.whenEnded()), .stopped)
    }

    func testMoreThanTheAdapterHasRoomForAreRefused() throws {
        let room = try XCTUnwrap(value(of: manager.advertisingLimits()).available)
        XCTAssertGreaterThan(room, 0)
        for number in 0..<room {
            var data = AdvertisingData()
            data.manufacturerData = [0xFFFF: Data([UInt8(number)])]
            _ = try value(of: manager.startAdvertising(data))
        }
        XCTAssertEqual(managerError(of: manager.startAdvertising("One more")), .tooManyAdvertisements(room))
        XCTAssertEqual(manager.advertisements.count, room)
    }

    func testWhatDoesNotFitIsRefusedBeforeBlueZIsAsked() throws {
        simulator = .inProcess(room: .empty, bluez: .v5_66)
        XCTAssertEqual(
            managerError(of: manager.startAdvertising(String(repeating: "n", count: 40)), within: 0.01),
            .advertisementTooLong(field: .localName, by: 11))
        XCTAssertEqual(
            managerError(of: manager.startAdvertising("a", uuids: [long, CBUUID(nsuuid: UUID())]), within: 0.01),
            .advertisementTooLong(field: .serviceUUIDs, by: 6))
        XCTAssertFalse(manager.isAdvertising)
    }

    func testWithoutPowerItFailsAfterTenSeconds() throws {
        simulator.simulatePowerOff()
        let manager = unreadyManager()
        let started = manager.startAdvertising("Strap")
        simulator.advance(by: 9.9)
        XCTAssertNil(started.result)
        XCTAssertTrue(manager.isAdvertising)
        XCTAssertEqual(managerError(of: started, within: 0.2), .notPoweredOn(.poweredOff))
        XCTAssertFalse(manager.isAdvertising)
    }

    func testARefusalHasBlueZsText() {
        let manager = manager
        simulator.simulateAdvertisementFailures(20)
        guard case .advertisementRefused(let failure)? = managerError(of: manager.startAdvertising("Strap")) else {
            return XCTFail("It was taken.")
        }
        XCTAssertEqual(failure.name, "org.bluez.Error.Failed")
        XCTAssertFalse(manager.isAdvertising)
    }

    func testItIsBackAfterTheDaemonsDeathAndAfterPower() throws {
        var data = AdvertisingData(localName: "Strap")
        data.manufacturerData = [0xFFFF: Data([1])]
        let running = try value(of: manager.startAdvertising(data))
        let former = simulator.advertisements.map(\.data)
        simulator.simulateDaemonDeath()
        wait { !running.isOnAir }
        XCTAssertTrue(manager.isAdvertising)
        simulator.simulateDaemonReturn()
        wait(30) { running.isOnAir }
        XCTAssertEqual(simulator.advertisements.map(\.data), former)
        simulator.simulatePowerOff()
        wait { !running.isOnAir }
        simulator.simulatePowerOn()
        wait(30) { running.isOnAir }
        XCTAssertEqual(simulator.advertisements.map(\.data), former)
        XCTAssertNil(running.whenEnded().result)
    }

    func testATimeOutEndsIt() throws {
        var data = AdvertisingData(localName: "Strap")
        data.timeout = .seconds(5)
        let running = try value(of: manager.startAdvertising(data))
        XCTAssertEqual(try value(of: running.whenEnded(), within: 10), .timedOut)
        XCTAssertFalse(manager.isAdvertising)
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testItCanBeChanged() throws {
        var data = AdvertisingData()
        data.isDiscoverable = false
        data.manufacturerData = [0xFFFF: Data([1])]
        let running = try value(of: manager.startAdvertising(data))
        data.manufacturerData = [0xFFFF: Data([2])]
        try running.change(to: data)
        wait { self.simulator.advertisements.first?.data == [4, 0xFF, 0xFF, 0xFF, 2] }
        XCTAssertEqual(running.data, data)
        data.manufacturerData = [0xFFFF: Data(count: 300)]
        XCTAssertThrowsError(try running.change(to: data))
    }

    func testIntervalAndPowerAreUsedWhereBlueZAllowsIt() throws {
        var data = AdvertisingData(localName: "Strap")
        data.interval = .milliseconds(100) ... .milliseconds(200)
        data.txPower = 4
        XCTAssertEqual(try value(of: manager.startAdvertising(data)).notes, [])
    }

    func testWhatBlueZ566IgnoresIsSaid() throws {
        simulator = .inProcess(room: .empty, bluez: .v5_66)
        var data = AdvertisingData(localName: "Strap")
        data.interval = .milliseconds(100) ... .milliseconds(200)
        data.txPower = 4
        let running = try value(of: manager.startAdvertising(data))
        XCTAssertEqual(running.notes, [.intervalIgnored, .txPowerIgnored])
        XCTAssertTrue("\(running.notes[0])".contains("--experimental"))
    }

    func testStoppingWhatIsNotThereSucceeds() throws {
        try value(of: manager.stopAdvertising(), within: 0.01)
    }

    func testAStopThatTakesTooLongFails() throws {
        try value(of: manager.startAdvertising("Strap"))
        simulator.simulateSlowReplies(by: 15)
        let began = simulator.seconds
        XCTAssertEqual(managerError(of: manager.stopAdvertising(timeout: 3)), .stopAdvertisingTimeout)
        XCTAssertEqual(simulator.seconds - began, 3, accuracy: 0.1)
        XCTAssertFalse(manager.isAdvertising)
    }

    func testASecondStopWaitsForWhatTheFirstOneEnds() throws {
        try value(of: manager.startAdvertising("Strap"))
        simulator.simulateSlowReplies(by: 2)
        let stops = (1...2).map { _ in manager.stopAdvertising() }
        simulator.advance(by: 1)
        XCTAssertEqual(stops.map(\.completed), [false, false])
        simulator.advance(by: 2)
        XCTAssertEqual(stops.map(\.completed), [true, true])
    }

    func testAStopSucceedsAtTheEndOfTheManager() throws {
        var manager: PeripheralManager? = makeManager()
        let running = try value(of: XCTUnwrap(manager).startAdvertising(AdvertisingData(localName: "Strap")))
        simulator.simulateSlowReplies(by: 15)
        let stopped = try XCTUnwrap(manager).stopAdvertising(timeout: .infinity)
        manager = nil
        simulator.advance(by: 1)
        XCTAssertTrue(stopped.completed)
        try value(of: running.stop(), within: 0.01)
    }

    func testAStopSettlesAStartThatIsUnderWay() throws {
        let started = manager.startAdvertising("Strap")
        try value(of: manager.stopAdvertising())
        XCTAssertEqual(managerError(of: started), .advertisingStopped)
        simulator.advance(by: 2)
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testAnAdvertisementComesBackOnTheAdapterThatReturns() throws {
        try serve(Self.heart())
        simulator.simulateAdapterRemoval()
        simulator.advance(by: 20)
        XCTAssertEqual(manager.state, .unsupported)
        simulator.simulateAdapterAddition()
        wait(30) { self.simulator.advertisements.count == 1 && self.offered() == ["180D"] }
    }
}
