import BlueCapFutures
import BlueCapGATT
import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// What managers say that BlueZ can do.
final class CapabilityTests: XCTestCase {
    private let simulator = Simulator.inProcess(room: .empty)

    private func central() -> CentralManager {
        try! CentralManager(configuration: .init(busAddress: simulator.address))
    }

    func testCapabilitiesAreKnownWhenTheAdapterIs() {
        let manager = central()
        XCTAssertEqual(manager.capabilities, BluetoothCapabilities())
        let atPowerOn = Locked<BluetoothCapabilities?>(nil)
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { [weak manager] state in
            if state == .poweredOn { atPowerOn.withLock { $0 = manager?.capabilities } }
        }
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 5))
        simulator.advance(by: 1)

        XCTAssertNotNil(manager.capabilities.version)
        XCTAssertEqual(atPowerOn.withLock { $0 }, manager.capabilities)
        XCTAssertTrue(manager.capabilities.serviceFilter)
    }

    func testBothRolesHaveTheSame() throws {
        let manager = central()
        let peripheral = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn && peripheral.poweredOn }, limit: 5))
        XCTAssertEqual(manager.capabilities, peripheral.capabilities)
        XCTAssertNotEqual(peripheral.capabilities, BluetoothCapabilities())
    }

    func testARestartedDaemonGetsANewValue() throws {
        let manager = central()
        let peripheral = try PeripheralManager(configuration: .init(busAddress: simulator.address))
        let reported = Locked<[[BluetoothCapabilities]]>([[], []])
        manager.whenCapabilitiesChange().onSuccess(context: ImmediateContext()) { value in
            reported.withLock { $0[0].append(value) }
        }
        peripheral.whenCapabilitiesChange().onSuccess(context: ImmediateContext()) { value in
            reported.withLock { $0[1].append(value) }
        }
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn && peripheral.poweredOn }, limit: 5))
        let known = manager.capabilities
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        XCTAssertEqual(manager.capabilities, BluetoothCapabilities())
        XCTAssertEqual(peripheral.capabilities, BluetoothCapabilities())
        simulator.simulateDaemonReturn()
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn && peripheral.poweredOn }, limit: 20))
        XCTAssertEqual(manager.capabilities, known)
        let expected = [known, BluetoothCapabilities(), known]
        XCTAssertEqual(reported.withLock { $0 }, [expected, expected])
    }

    func testARefusedWriteNamesTheServicesThatBlueZUsesItself() {
        let refusal = BusError(
            name: "org.bluez.Error.NotAuthorized", message: "Operation Not Authorized",
            attError: .insufficientAuthorization)
        XCTAssertTrue(CharacteristicError.writeFailed(refusal).description.contains("ExportClaimedServices"))
    }

    func testTheyCanBeWrittenAsJSON() throws {
        var value = BluetoothCapabilities()
        value.version = .init(5, 82)
        value.secondaryChannels = [.coded, .twoMegabit]
        value.advertisingPowerRange = -34...7
        value.maximumAdvertisingLength = 251
        let data = try JSONEncoder().encode(value)
        XCTAssertEqual(try JSONDecoder().decode(BluetoothCapabilities.self, from: data), value)
        XCTAssertEqual(value.version?.description, "5.82")
        XCTAssertLessThan(BluetoothCapabilities.Version(5, 66), .init(5, 82))
    }
}

/// What the central role makes of the differences between versions of BlueZ.
final class CapabilityVersionTests: XCTestCase {
    private let versions: [BlueZVersion] = [.v5_66, .v5_72, .v5_82, .v5_87]

    private let heartRate = VirtualService(
        "180D", characteristics: [VirtualCharacteristic("2A38", [.read], value: [1])])

    private func stage(_ bluez: BlueZVersion) throws -> AttributeStage { try AttributeStage([heartRate], bluez: bluez) }

    func testCapabilitiesAreThoseOfTheVersion() {
        for bluez in versions {
            let known = Simulator.inProcess(room: .empty, bluez: bluez).central().capabilities
            XCTAssertEqual(known.version, .init(bluez.major, bluez.minor), "\(bluez)")
            XCTAssertEqual(known.powerState, bluez.minor >= 73, "\(bluez)")
            XCTAssertEqual(known.advertisingData, bluez.minor >= 78, "\(bluez)")
            XCTAssertEqual(known.disconnectReasons, bluez.minor >= 83, "\(bluez)")
            XCTAssertEqual(known.serviceFilter, bluez.minor != 87, "\(bluez)")
            XCTAssertEqual(known.refusedSocketsAnswered, bluez.minor >= 84, "\(bluez)")
            XCTAssertEqual(known.directedUpdates, bluez.minor >= 76, "\(bluez)")
            XCTAssertEqual(known.maximumWriteLength, bluez.minor >= 69 ? 512 : 510, "\(bluez)")
            XCTAssertEqual(known.scanResponseFields, bluez.minor >= 80, "\(bluez)")
            XCTAssertEqual(known.advertisingInterval, bluez.minor >= 77, "\(bluez)")
            XCTAssertFalse(known.experimental, "\(bluez)")
        }
    }

    func testAScanForServicesFindsThemAndTheDaemonLives() {
        for bluez in versions {
            let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
            simulator.add(
                VirtualPeripheral(
                    "C0:00:00:00:00:01", advertisement: Advertisement(localName: "Strap", serviceUUIDs: ["180D"]),
                    interval: 0.2))
            simulator.add(
                VirtualPeripheral(
                    "C0:00:00:00:00:02", advertisement: Advertisement(localName: "Scale", serviceUUIDs: ["181D"]),
                    interval: 0.2))
            let manager = simulator.central()
            let journal = Journal()
            journal.watch(manager.startScanning(forServiceUUIDs: [CBUUID(string: "180D")]))
            simulator.advance(by: 30)
            XCTAssertEqual(journal.sightings.map(\.name), ["Strap"], "\(bluez)")
            XCTAssertEqual(manager.state, .poweredOn, "\(bluez)")
            XCTAssertEqual(simulator.statistics.count(of: "StartDiscovery"), 1, "\(bluez)")
        }
    }

    func testRefreshedServicesLeaveTheDaemonAlive() throws {
        for bluez in versions {
            let stage = try stage(bluez)
            try stage.explore()
            let refresh = stage.peripheral.refreshServices()
            try stage.wait(refresh)
            XCTAssertEqual(stage.simulator.statistics.count(of: "RemoveDevice"), 1, "\(bluez)")
            XCTAssertEqual(stage.manager?.state, .poweredOn, "\(bluez)")
            XCTAssertTrue(stage.isLinked, "\(bluez)")
        }
    }

    func testARefreshThatForgetsNothingFailsAsBlueZDid() throws {
        for bluez in versions {
            let stage = try stage(bluez)
            try stage.explore()
            // The connection's call, which the refresh joins.
            stage.simulator.simulateRefusedCalls(1, of: "Disconnect")
            let refresh = stage.peripheral.refreshServices(timeout: 60)
            if bluez == .v5_87 {
                XCTAssertEqual((stage.failure(of: refresh) as? BusError)?.name, "org.bluez.Error.Failed")
            } else {
                try stage.wait(refresh)
            }
            XCTAssertEqual(
                stage.simulator.statistics.count(of: "RemoveDevice"), bluez == .v5_87 ? 0 : 1, "\(bluez)")

            stage.simulator.advance(by: 30)
            stage.simulator.simulateRefusedCalls(1, of: "RemoveDevice", error: .alreadyExists)
            let second = stage.peripheral.refreshServices(timeout: 60)
            XCTAssertEqual(
                (stage.failure(of: second) as? BusError)?.name, "org.bluez.Error.AlreadyExists", "\(bluez)")
            XCTAssertTrue(stage.simulator.advance(until: { stage.isLinked }, limit: 30), "\(bluez)")
        }
    }

    func testALinkOfAnotherProgramEndsTheReasonOfTheLast() throws {
        let stage = try stage(.v5_87).connected()
        stage.simulator.advance(by: 5)
        stage.peripheral.disconnect()
        XCTAssertTrue(stage.simulator.advance(until: { stage.peripheral.disconnectDetail != nil }, limit: 5))
        let other = stage.simulator.central()
        let connected = try XCTUnwrap(other.retrievePeripherals(withIdentifiers: [stage.peripheral.identifier]).first)
        connected.connect()
        XCTAssertTrue(stage.simulator.advance(until: { connected.state == .connected }, limit: 10))
        XCTAssertTrue(stage.simulator.advance(until: { stage.peripheral.disconnectDetail == nil }, limit: 10))
        withExtendedLifetime(other) {}
    }

    func testTheReasonOfALossIsBlueZsFrom583On() throws {
        for bluez in versions {
            let stage = try stage(bluez)
            for (reason, cause) in [
                (LinkEndCause.timeout, DisconnectDetail.Cause.timeout), (.remote, .remote),
                (.authentication, .authentication), (.unknown, .unspecified),
            ] {
                stage.connect()
                XCTAssertNil(stage.peripheral.disconnectDetail, "\(bluez)")
                stage.simulator.advance(by: 5)
                stage.simulator.simulateLinkLoss(of: AttributeStage.address, reason: reason)
                XCTAssertTrue(stage.simulator.advance(until: { !stage.isLinked }, limit: 5), "\(bluez)")
                XCTAssertEqual(stage.peripheral.disconnectReason, .linkLost, "\(bluez)")
                XCTAssertEqual(stage.peripheral.disconnectDetail?.cause, bluez.minor >= 83 ? cause : nil, "\(bluez)")
                stage.simulator.advance(by: 1)
            }
        }
    }

    func testAnEndThatIsAskedForIsTheApplicationsAndLocal() throws {
        for bluez in versions {
            let stage = try stage(bluez).connected()
            stage.simulator.advance(by: 5)
            stage.peripheral.disconnect()
            stage.simulator.advance(by: 5)
            XCTAssertEqual(stage.peripheral.disconnectReason, .application, "\(bluez)")
            XCTAssertEqual(stage.peripheral.disconnectDetail?.cause, bluez.minor >= 83 ? .local : nil, "\(bluez)")
        }
    }

    func testABlockedAdapterIsNamedWherePowerStateSaysSo() {
        for bluez in versions {
            let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
            let manager = simulator.central()
            simulator.simulateRfkill(true)
            XCTAssertTrue(simulator.advance(until: { manager.state == .poweredOff }, limit: 5), "\(bluez)")
            simulator.advance(by: 1)
            XCTAssertEqual(manager.stateExplanation.contains(") is blocked"), bluez.minor >= 73, "\(bluez)")
            XCTAssertTrue(manager.stateExplanation.contains("rfkill unblock bluetooth"), "\(bluez)")
            simulator.simulateRfkill(false)
        }
    }

    func testServicesThatBlueZKeepsAreReadWhereItExportsThem() throws {
        for bluez in versions {
            let stage = try stage(bluez)
            try stage.explore()
            let hasGenericAccess = stage.peripheral.services.contains { $0.uuid == CBUUID(string: "1800") }
            XCTAssertEqual(hasGenericAccess, bluez.minor >= 80, "\(bluez)")
            let missing = PeripheralError.serviceNotFound(CBUUID(string: "1812"), available: [])
            XCTAssertTrue(missing.description.contains("does not export services of this kind"), "\(bluez)")
        }
    }
}
