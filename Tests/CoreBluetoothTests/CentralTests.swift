import BlueCapKit
import BlueZSimulator
import CoreBluetooth
import TestSupport
import XCTest

/// The state, the scan and the connections of a `CBCentralManager`.
final class CentralTests: CoreBluetoothCase, @unchecked Sendable {
    // MARK: State

    func testTheStateIsUnknownUntilTheDelegateIsCalled() {
        central = CBCentralManager(delegate: recorder, queue: callbacks)
        XCTAssertEqual(central.state, .unknown)
        XCTAssertEqual(CBCentralManager.authorization, .allowedAlways)
        expect("state 5")
        XCTAssertEqual(central.state, .poweredOn)
        simulator.simulatePowerOff()
        expect("state 4")
        simulator.simulatePowerOn()
        eventually("power") { self.seen.texts == ["state 5", "state 4", "state 5"] }
        simulator.simulateDaemonDeath()
        expect("state 1")
    }

    func testCallbacksComeOnTheQueueOfTheProgram() {
        recorder.onState = { _ in dispatchPrecondition(condition: .onQueue(self.callbacks)) }
        start()
        XCTAssertEqual(seen.texts, ["state 5"])
    }

    func testCallbacksComeOnTheMainQueueWithoutAQueue() {
        recorder.onState = { _ in
            dispatchPrecondition(condition: .onQueue(.main))
            XCTAssertTrue(Thread.isMainThread)
        }
        central = CBCentralManager(delegate: recorder, queue: nil)
        runMainQueue()
        XCTAssertEqual(seen.texts, ["state 5"])
    }

    func testTheDelegateIsNotRetained() {
        weak var released: Recorder?
        autoreleasing {
            let delegate = Recorder(seen)
            released = delegate
            central = CBCentralManager(delegate: delegate, queue: callbacks)
        }
        XCTAssertNil(released)
        XCTAssertNil(central.delegate)
        pass(1)
        XCTAssertEqual(seen.texts, [])
        XCTAssertEqual(central.state, .poweredOn)
    }

    private func autoreleasing(_ body: () -> Void) { body() }

    func testCommandsBeforeThePowerAreMisuse() {
        central = CBCentralManager(delegate: recorder, queue: callbacks)
        central.scanForPeripherals(withServices: nil)
        XCTAssertFalse(central.isScanning)
        XCTAssertEqual(central.retrieveConnectedPeripherals(withServices: []), [])
        XCTAssertEqual(seen.texts.count, 2)
        XCTAssertTrue(seen.texts[0].hasPrefix("log API MISUSE: <CBCentralManager"), seen.texts[0])
        XCTAssertTrue(
            seen.texts[0].hasSuffix("can only accept scanForPeripherals while in the powered on state"), seen.texts[0])
    }

    // MARK: Discovery

    func testADiscoveryHasTheDocumentedTypes() throws {
        let peripheral = find()
        XCTAssertEqual(peripheral.name, "Strap 1")
        XCTAssertEqual(peripheral.state, .disconnected)
        let data = recorder.advertisementData
        XCTAssertEqual(data[CBAdvertisementDataLocalNameKey] as? String, "Strap 1")
        XCTAssertEqual(data[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID], [Self.heartRate])
        XCTAssertEqual(data[CBAdvertisementDataManufacturerDataKey] as? Data, Data([0x4C, 0, 1, 2]))
        XCTAssertEqual(data[CBAdvertisementDataServiceDataKey] as? [CBUUID: Data], [Self.heartRate: Data([9])])
        XCTAssertEqual(data[CBAdvertisementDataTxPowerLevelKey] as? NSNumber, 4)
        XCTAssertEqual((data[CBAdvertisementDataIsConnectable] as? NSNumber)?.boolValue, true)
    }

    func testAPeripheralIsDiscoveredOnceUnlessDuplicatesAreAllowed() {
        start()
        simulator.add(Self.virtual(), behavior: strap)
        central.scanForPeripherals(withServices: nil)
        XCTAssertTrue(central.isScanning)
        pass(3)
        XCTAssertEqual(seen.texts.filter { $0 == "discovered Strap 1" }.count, 1)
        central.scanForPeripherals(
            withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: true)])
        for number in 1...5 {
            simulator.simulateSighting(of: Self.address, rssi: -50 - 10 * (number % 2))
            pass(0.1)
        }
        XCTAssertGreaterThan(seen.texts.filter { $0 == "discovered Strap 1" }.count, 4)
        XCTAssertEqual(recorder.peripherals.count, 1, "One object for one peripheral.")
        central.stopScan()
        XCTAssertFalse(central.isScanning)
    }

    func testAScanForOtherServicesFindsNothing() {
        start()
        simulator.add(Self.virtual(), behavior: strap)
        central.scanForPeripherals(withServices: [CBUUID(string: "1809")])
        pass(3)
        XCTAssertEqual(seen.texts, ["state 5"])
    }

    func testTheScanEndsWithThePower() {
        start()
        central.scanForPeripherals(withServices: nil)
        simulator.simulatePowerOff()
        expect("state 4")
        XCTAssertFalse(central.isScanning)
        simulator.simulatePowerOn()
        pass(2)
        XCTAssertFalse(central.isScanning)
        XCTAssertEqual(seen.texts, ["state 5", "state 4", "state 5"])
    }

    func testRetrievedPeripheralsAreTheSameObjects() {
        let peripheral = find()
        XCTAssertTrue(central.retrievePeripherals(withIdentifiers: [peripheral.identifier]).first === peripheral)
        XCTAssertTrue(central.peripheral(peripheral.blueCap) === peripheral)
        XCTAssertEqual(central.retrievePeripherals(withIdentifiers: [UUID()]), [])
        XCTAssertEqual(central.retrieveConnectedPeripherals(withServices: [Self.heartRate]), [])
        central.connect(peripheral)
        expect("connected Strap 1")
        XCTAssertTrue(central.retrieveConnectedPeripherals(withServices: [Self.heartRate]).first === peripheral)
        XCTAssertTrue(peripheral.copy() as? CBPeripheral === peripheral)
    }

    // MARK: Connections

    func testConnectAndCancel() {
        let peripheral = find()
        seen.clear()
        central.registerForConnectionEvents(options: [.peripheralUUIDs: [peripheral.identifier]])
        central.connect(peripheral, options: [CBConnectPeripheralOptionNotifyOnConnectionKey: true])
        XCTAssertEqual(peripheral.state, .connecting)
        expect("connected Strap 1")
        XCTAssertEqual(peripheral.state, .connected)
        central.cancelPeripheralConnection(peripheral)
        XCTAssertEqual(peripheral.state, .disconnecting)
        expect("disconnected nil")
        XCTAssertEqual(peripheral.state, .disconnected)
        XCTAssertEqual(seen.texts, ["event 1", "connected Strap 1", "event 0", "disconnected nil"])
        central.cancelPeripheralConnection(peripheral)
        pass(3)
        XCTAssertEqual(seen.texts.count, 4, "Nothing to cancel.")
    }

    func testASecondConnectOfAConnectedPeripheralIsReported() {
        let peripheral = connect()
        central.registerForConnectionEvents(options: [.peripheralUUIDs: [peripheral.identifier]])
        seen.clear()
        central.connect(peripheral)
        expectOnly("connected Strap 1")
    }

    func testALostLinkIsReportedOnceAndNotMadeAgain() {
        let peripheral = connect()
        seen.clear()
        simulator.simulateLinkLoss(of: Self.address)
        expect("disconnected CBError.peripheralDisconnected")
        pass(60)
        XCTAssertEqual(seen.texts, ["disconnected CBError.peripheralDisconnected"])
        XCTAssertEqual(peripheral.state, .disconnected)
        XCTAssertEqual(simulator.links, [])
    }

    func testTheCauseOfALossIsItsErrorWithANewerBlueZ() throws {
        let simulator = Simulator.inProcess(room: .empty, bluez: .v5_87)
        simulator.add(Self.virtual(), behavior: strap)
        let central = try CBCentralManager(
            delegate: recorder, queue: callbacks, configuration: .init(busAddress: simulator.address))
        recorder.onState = { $0.scanForPeripherals(withServices: nil) }
        func wait(for text: String) {
            for _ in 0..<2_000 where !seen.texts.contains(text) {
                simulator.advance(by: 0.05)
                callbacks.sync {}
            }
            XCTAssertTrue(seen.texts.contains(text), "\(text): \(seen.texts)")
        }
        wait(for: "discovered Strap 1")
        central.connect(recorder.peripherals[0])
        wait(for: "connected Strap 1")
        simulator.simulateLinkLoss(of: Self.address, reason: .timeout)
        wait(for: "disconnected CBError.connectionTimeout")
    }

    func testALossIsReportedBeforeTheEndOfALaterRequest() {
        let peripheral = connect()
        seen.clear()
        simulator.simulateLinkLoss(of: Self.address)
        settle()
        XCTAssertEqual(seen.texts, [], "The end of the power may be the cause.")
        central.connect(peripheral)
        central.cancelPeripheralConnection(peripheral)
        expect("disconnected nil")
        pass(5)
        XCTAssertEqual(seen.texts, ["disconnected CBError.peripheralDisconnected", "disconnected nil"])
    }

    func testConnectWaitsForDays() {
        let peripheral = find()
        simulator.simulateOutOfRange(of: Self.address)
        central.connect(peripheral)
        for _ in 0..<48 { pass(3_600, step: 600) }
        XCTAssertEqual(peripheral.state, .connecting)
        seen.clear()
        simulator.simulateOutOfRange(false, of: Self.address)
        expectOnly("connected Strap 1", limit: 600)
    }

    func testConnectSurvivesPowerCyclesAndTheDaemon() {
        let peripheral = find()
        simulator.simulateOutOfRange(of: Self.address)
        central.connect(peripheral)
        for _ in 0..<3 {
            simulator.simulatePowerOff()
            pass(30)
            XCTAssertEqual(peripheral.state, .connecting, "\(seen.texts) \(peripheral.blueCap.failedAttempts)")
            simulator.simulatePowerOn()
            pass(30)
        }
        simulator.simulateDaemonDeath()
        pass(10)
        simulator.simulateDaemonReturn()
        pass(10)
        XCTAssertEqual(peripheral.state, .connecting)
        seen.clear()
        simulator.simulateOutOfRange(false, of: Self.address)
        expectOnly("connected Strap 1", limit: 600)
    }

    func testAProgramThatConnectsAgainInItsCallbackKeepsThePeripheralOverPowerCycles() {
        recorder.onDisconnection = { central, peripheral in central.connect(peripheral) }
        connect()
        for _ in 0..<5 {
            seen.clear()
            simulator.simulatePowerOff()
            pass(10)
            simulator.simulatePowerOn()
            expect("connected Strap 1", limit: 120)
            let calls = seen.texts.filter { $0.contains("connected") }
            XCTAssertEqual(calls.count, 2, "\(seen.texts)")
            XCTAssertTrue(calls[0].hasPrefix("disconnected CBError"), calls[0])
        }
    }

    func testSeveralRequestsForOneConnectionAreReportedOnce() {
        let peripheral = find()
        central.registerForConnectionEvents(options: [.peripheralUUIDs: [peripheral.identifier]])
        seen.clear()
        central.connect(peripheral)
        central.connect(peripheral)
        expect("connected Strap 1")
        pass(5)
        XCTAssertEqual(seen.texts, ["event 1", "connected Strap 1"])

        // As many programs do, in both callbacks.
        recorder.onDisconnection = { central, peripheral in central.connect(peripheral) }
        recorder.onState = { central in central.connect(peripheral) }
        for _ in 0..<3 {
            seen.clear()
            simulator.simulatePowerOff()
            pass(10)
            simulator.simulatePowerOn()
            expect("connected Strap 1", limit: 120)
            pass(10)
            XCTAssertEqual(
                seen.texts,
                ["state 4", "event 0", "disconnected CBError.unknown", "state 5", "event 1", "connected Strap 1"])
        }
        // The link is up, and its report is due: the second request is for the same connection.
        recorder.onDisconnection = nil
        recorder.onState = nil
        central.cancelPeripheralConnection(peripheral)
        expect("disconnected nil")
        seen.clear()
        callbacks.sync {
            central.connect(peripheral)
            for _ in 0..<200 where peripheral.state != .connected { simulator.advance(by: 0.05) }
            XCTAssertEqual(peripheral.state, .connected)
            central.connect(peripheral)
        }
        pass(5)
        XCTAssertEqual(seen.texts, ["event 1", "connected Strap 1"])
    }

    func testConnectWhileTheAdapterIsOffIsAccepted() {
        let peripheral = find()
        simulator.simulatePowerOff()
        expect("state 4")
        seen.clear()
        central.connect(peripheral)
        XCTAssertEqual(peripheral.state, .connecting)
        pass(30)
        XCTAssertEqual(seen.texts, [])
        simulator.simulatePowerOn()
        expect("connected Strap 1")
        XCTAssertEqual(seen.texts, ["state 5", "connected Strap 1"])
    }

    /// A program looks at the state in `didDisconnectPeripheral`. BlueZ reports the ends of the links first.
    func testTheStateIsReportedBeforeTheConnectionsThatItEnds() {
        let ends: [(state: Int, go: (Simulator) -> Void, back: (Simulator) -> Void)] = [
            (4, { $0.simulatePowerOff() }, { $0.simulatePowerOn() }),
            (4, { $0.simulateRfkill(true) }, { $0.simulateRfkill(false) }),
            (1, { $0.simulateDaemonDeath() }, { $0.simulateDaemonReturn() }),
            (2, { $0.simulateAdapterRemoval() }, { $0.simulateAdapterAddition() }),
        ]
        var peripheral = connect()
        for end in ends {
            central.registerForConnectionEvents(options: [.peripheralUUIDs: [peripheral.identifier]])
            seen.clear()
            end.go(simulator)
            expect("disconnected CBError.unknown")
            pass(5)
            XCTAssertEqual(seen.texts, ["state \(end.state)", "event 0", "disconnected CBError.unknown"])
            end.back(simulator)
            expect("state 5")
            peripheral = central.retrievePeripherals(withIdentifiers: [peripheral.identifier]).first ?? peripheral
            seen.clear()
            central.connect(peripheral)
            expect("connected Strap 1")
        }
    }

    func testAPendingConnectionCanBeCancelled() {
        let peripheral = find()
        simulator.simulateOutOfRange(of: Self.address)
        seen.clear()
        central.connect(peripheral)
        pass(5)
        XCTAssertEqual(seen.texts, [])
        central.cancelPeripheralConnection(peripheral)
        expect("disconnected nil")
        XCTAssertEqual(peripheral.state, .disconnected)
        central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: NSNumber(value: 5)])
        XCTAssertEqual(peripheral.state, .connecting)
        pass(1)
        seen.clear()
        central.cancelPeripheralConnection(peripheral)
        expect("disconnected nil")
        XCTAssertEqual(peripheral.state, .disconnected)
        pass(10)
        XCTAssertEqual(seen.texts, ["disconnected nil"])
    }

    func testAConnectionCanBeDelayed() {
        let peripheral = find()
        central.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: NSNumber(value: 5)])
        pass(4.5)
        XCTAssertFalse(seen.texts.contains("connected Strap 1"))
        expect("connected Strap 1", limit: 2)
    }

    func testAutoReconnectReportsThatItReconnects() {
        let delegate = TimestampRecorder(seen)
        let peripheral = find()
        central.delegate = delegate
        seen.clear()
        central.connect(peripheral, options: [CBConnectPeripheralOptionEnableAutoReconnect: true])
        expect("again")
        for _ in 0..<3 {
            seen.clear()
            simulator.simulateLinkLoss(of: Self.address)
            expect("again")
            XCTAssertEqual(seen.texts, ["lost true false", "again"])
        }
        central.cancelPeripheralConnection(peripheral)
        expect("lost false true")
    }

    func testARefusedConnectionFails() {
        let peripheral = find()
        strap.connectionAnswer = .refuse
        simulator.simulateConnectFailures(1_000, error: .notSupported, of: Self.address)
        seen.clear()
        central.connect(peripheral)
        expect("failed CBError.connectionFailed")
        XCTAssertEqual(peripheral.state, .disconnected)
    }

    func testAPeripheralThatIsNotRetainedIsDisconnected() {
        connect()
        seen.clear()
        recorder.peripherals = []
        eventually("the end of the link") { self.simulator.links.isEmpty }
        XCTAssertEqual(seen.texts.count, 1)
        XCTAssertTrue(seen.texts[0].contains("API MISUSE: Cancelling connection for unused peripheral"), seen.texts[0])
    }

    func testAPeripheralThatIsReleasedAfterItWasCancelledIsReported() {
        let identifier = connect().identifier
        seen.clear()
        central.cancelPeripheralConnection(recorder.peripherals[0])
        recorder.peripherals = []
        expectOnly("disconnected nil")
        XCTAssertEqual(central.retrievePeripherals(withIdentifiers: [identifier]).count, 1)
    }

    func testAPeripheralOfAnotherManagerIsMisuse() {
        let peripheral = find()
        let other = CBCentralManager(delegate: nil, queue: callbacks)
        seen.clear()
        other.connect(peripheral)
        XCTAssertEqual(peripheral.state, .disconnected)
        XCTAssertEqual(seen.texts.count, 1)
        XCTAssertTrue(seen.texts[0].contains("is not a peripheral of"), seen.texts[0])
    }

    func testTheEndOfTheManagerEndsItsLinks() {
        let peripheral = connect()
        central = nil
        eventually("the end of the link") { self.simulator.links.isEmpty }
        XCTAssertEqual(peripheral.state, .disconnected)
    }

    // MARK: Configurations

    func testAnInvalidConfigurationIsRefusedAtOnce() {
        XCTAssertThrowsError(
            try CBCentralManager(delegate: nil, queue: callbacks, configuration: .init(maximumPeripherals: 0))
        ) { XCTAssertEqual(($0 as? ConfigurationError)?.property, "maximumPeripherals") }
    }

    func testAnInvalidDefaultConfigurationFailsWhatIsRequested() {
        CBCentralManager.defaultConfiguration.maximumPeripherals = 0
        let central = CBCentralManager(delegate: nil, queue: callbacks)
        XCTAssertTrue(central.blueCap.stateExplanation.contains("maximumPeripherals"), central.blueCap.stateExplanation)
    }

    func testAConfigurationReplacesTheDefaultOne() throws {
        CBCentralManager.defaultConfiguration.adapter = "hci7"
        let central = try CBCentralManager(
            delegate: nil, queue: callbacks, configuration: .init(busAddress: simulator.address))
        XCTAssertEqual(central.blueCap.pairingPolicy, .reject)
        eventually("power") { central.blueCap.isPoweredOn }
    }

    /// A subclass overrides one initializer with arguments, and inherits the others.
    private final class Counting: CBCentralManager {
        nonisolated(unsafe) static var count = 0

        override init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]?) {
            Self.count += 1
            super.init(delegate: delegate, queue: queue, options: options)
        }
    }

    func testASubclassHasTheInitializerWithAConfiguration() throws {
        Counting.count = 0
        let central = try Counting(
            delegate: nil, queue: callbacks, configuration: .init(busAddress: simulator.address, pairingPolicy: .ask))
        XCTAssertEqual(central.blueCap.pairingPolicy, .ask)
        XCTAssertEqual(Counting.count, 1)
    }
}
