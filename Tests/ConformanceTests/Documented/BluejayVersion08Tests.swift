import Bluejay
import BlueZSimulator
import XCTest

/// Bluejay as programs use it since version 0.8, beside the guide's spelling.
final class BluejayVersion08Tests: DocumentedBluejayCase, @unchecked Swift.Sendable {
    private let heartRate = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))

    /// An observer, which notes what it receives.
    private class Observer {
        let seen: Notes

        init(_ seen: Notes) { self.seen = seen }
    }

    /// A view controller of a program of that time.
    private final class SensorViewController: Observer, ConnectionObserver {
        func bluetoothAvailable(_ available: Bool) { seen.note("available \(available)") }
        func connected(to peripheral: PeripheralIdentifier) { seen.note("connected \(peripheral.name)") }
        func disconnected(from peripheral: PeripheralIdentifier) { seen.note("disconnected \(peripheral.name)") }
    }

    /// One with a part of its methods converted.
    private final class MixedViewController: Observer, ConnectionObserver {
        func connected(to peripheral: Peripheral) { seen.note("connected \(peripheral.identifier)") }
        func disconnected(from peripheral: PeripheralIdentifier) { seen.note("disconnected \(peripheral.uuid)") }
    }

    private func loseTheLink() {
        simulator.simulateLinkLoss(of: Self.address)
        eventually("the loss") { !bluejay.isConnected }
    }

    // MARK: Observers

    func testAConnectionObserverReceivesIdentifiers() {
        let controller = SensorViewController(seen)
        bluejay.register(connectionObserver: controller)
        connectedSensor()
        loseTheLink()
        eventually("the loss") { seen.contains("disconnected Heart") }
        XCTAssertEqual(seen.texts.prefix(3), ["available true", "connected Heart", "disconnected Heart"])

        bluejay.unregister(connectionObserver: controller)
        let count = seen.count
        eventually("the connection") { bluejay.isConnected }
        settle()
        XCTAssertEqual(seen.count, count)
    }

    func testAnObserverReceivesIdentifiersByTheGuidesRegistration() {
        let controller = SensorViewController(seen)
        bluejay.start(mode: .new(StartOptions.default), connectionObserver: controller)
        connectedSensor()
        settle()
        XCTAssertEqual(seen.texts, ["available true", "connected Heart"])
    }

    func testEachMethodMayHaveItsOwnSpelling() {
        let controller = MixedViewController(seen)
        let identifier = connectedSensor()
        bluejay.register(connectionObserver: controller)
        loseTheLink()
        eventually("the loss") { seen.count >= 2 }
        XCTAssertEqual(seen.texts.prefix(2), ["connected \(identifier.uuid)", "disconnected \(identifier.uuid)"])
    }

    private final class Handler: Observer, DisconnectHandler {
        func didDisconnect(
            from peripheral: PeripheralIdentifier, with error: (any Error)?, willReconnect autoReconnect: Bool
        ) -> AutoReconnectMode {
            seen.note("didDisconnect \(peripheral.name) \(autoReconnect)")
            return .change(shouldAutoReconnect: false)
        }
    }

    func testADisconnectHandlerReceivesAnIdentifierAndIsRemoved() {
        let handler = Handler(seen)
        bluejay.registerDisconnectHandler(handler: handler)
        let identifier = connectedSensor()
        loseTheLink()
        eventually("the handler") { seen.contains("didDisconnect Heart true") }
        pass(3)
        XCTAssertFalse(bluejay.isConnected || bluejay.isConnecting)

        bluejay.unregisterDisconnectHandler()
        bluejay.connect(identifier) { _ in }
        eventually("the connection") { bluejay.isConnected }
        loseTheLink()
        eventually("the connection") { bluejay.isConnected }
        XCTAssertEqual(seen.count, 1)
    }

    private final class RSSIViewController: Observer, RSSIObserver {
        func didReadRSSI(from peripheral: PeripheralIdentifier, RSSI: NSNumber, error: (any Error)?) {
            seen.note("\(peripheral.name) \(RSSI) \(error as? PeripheralError == .rssiUnavailable)")
        }
    }

    func testAnRSSIObserverReceivesEachReading() throws {
        let controller = RSSIViewController(seen)
        bluejay.register(rssiObserver: controller)
        XCTAssertThrowsError(try bluejay.readRSSI()) { XCTAssertEqual($0 as? BluejayError, .stopped) }
        startBluejay()
        XCTAssertThrowsError(try bluejay.readRSSI()) { XCTAssertEqual($0 as? BluejayError, .notConnected) }
        connectedSensor()
        // BlueZ has the strength of advertisements alone, and forgets it when discovery has stopped.
        pass(5)
        try bluejay.readRSSI()
        eventually("a reading") { seen.count == 1 }
        bluejay.scan(
            allowDuplicates: true, serviceIdentifiers: nil, discovery: { _, _ in .continue }, stopped: { _, _ in })
        eventually("the scan") { simulator.adapters[0].isDiscovering }
        pass(4)
        simulator.simulateSighting(of: Self.address, rssi: -47)
        pass(1)
        try bluejay.readRSSI()
        eventually("a reading") { seen.count == 2 }
        XCTAssertEqual(seen.texts, ["Heart 127 true", "Heart -47 false"])

        bluejay.unregister(rssiObserver: controller)
        try bluejay.readRSSI()
        pass(1)
        XCTAssertEqual(seen.count, 2)
    }

    private final class ServiceViewController: Observer, ServiceObserver {
        func didModifyServices(from peripheral: PeripheralIdentifier, invalidatedServices: [ServiceIdentifier]) {
            seen.note("\(peripheral.name) \(invalidatedServices.map { "\($0)" })")
        }
    }

    func testAServiceObserverReceivesTheServicesThatAreGone() {
        let controller = ServiceViewController(seen)
        bluejay.register(serviceObserver: controller)
        connectedSensor()
        pass(1)
        XCTAssertEqual(seen.texts, [])

        simulator.simulateServicesChanged(of: Self.address, to: Array(Self.sensor.services.dropFirst()))

        eventually("the change") { seen.count == 1 }
        XCTAssertEqual(seen.texts, ["Heart \(["\(ServiceIdentifier(uuid: "180D"))"])"])
        bluejay.unregister(serviceObserver: controller)
        simulator.simulateServicesChanged(of: Self.address, to: Self.sensor.services)
        pass(3)
        XCTAssertEqual(seen.count, 1)
    }

    func testAServiceObserverMayComeWithTheConnectionAndStaysForTheNext() {
        let controller = ServiceViewController(seen)
        connectedSensor()
        bluejay.register(serviceObserver: controller)
        pass(1)
        loseTheLink()
        eventually("the connection") { bluejay.isConnected }
        pass(1)
        simulator.simulateServicesChanged(of: Self.address, to: Array(Self.sensor.services.dropLast()))
        eventually("the change") { seen.count == 1 }
        pass(1)
        XCTAssertEqual(seen.count, 1)
    }

    private final class Logger: Observer, LogObserver {
        func debug(_ text: String) { seen.note(text) }
    }

    func testALogObserverReceivesWhatHappens() {
        let logger = Logger(seen)
        bluejay = Bluejay(logObserver: logger, callbackQueue: callbacks)
        connectedSensor()
        loseTheLink()
        settle()
        for line in ["Started.", "Bluetooth is available.", "Connected to Heart.", "Reconnecting."] {
            XCTAssertTrue(seen.contains(line), "\(line) is not among \(seen.texts)")
        }
        bluejay.unregister(logObserver: logger)
        let count = seen.count
        bluejay.register(logObserver: logger)
        bluejay.unregister(logObserver: logger)
        _ = bluejay.stopAndExtractBluetoothState()
        settle()
        XCTAssertEqual(seen.count, count)
    }

    func testADisconnectHandlerIsRegisteredWithTheStart() {
        let handler = Handler(seen)
        bluejay.start(mode: .new(.default), disconnectHandler: handler)
        connectedSensor()
        loseTheLink()
        eventually("the handler") { seen.contains("didDisconnect Heart true") }
    }

    // MARK: Scanning and batches

    func testAScanIgnoresSmallChangesOfTheStrength() {
        startBluejay()
        simulator.add(Self.sensor)
        let seen = seen
        bluejay.scan(
            duration: 0, allowDuplicates: true, throttleRSSIDelta: 5, serviceIdentifiers: nil,
            discovery: { discovery, _ in
                seen.note("\(discovery.rssi)")
                return .continue
            }, stopped: { _, _ in })
        eventually("the sensor") { seen.count == 1 }
        pass(1)
        for strength in [-40, -44, -45, -41, -36] {
            simulator.simulateSighting(of: Self.address, rssi: strength)
            settle()
        }
        // Each is compared with the last that was reported.
        XCTAssertEqual(seen.texts.suffix(3), ["-40", "-45", "-36"])
    }

    func testAFlushTakesATimeOutThatIsNotNone() {
        connectedSensor()
        let (seen, heartRate) = (seen, heartRate)
        bluejay.run(backgroundTask: { peripheral -> Bool in
            try peripheral.flushListen(to: heartRate, nonZeroTimeout: .seconds(1)) { seen.note("flushed") }
            try peripheral.flushListen(to: heartRate, nonZeroTimeout: .none) { seen.note("never") }
            return true
        }) { (result: RunResult<Bool>) in
            if case .failure(let error) = result { seen.note("\(error as? BluejayError == .indefiniteFlush)") }
        }
        eventually("the end") { seen.count == 2 }
        XCTAssertEqual(seen.texts, ["flushed", "true"])
    }

    func testPaddingIsZeros() {
        XCTAssertEqual(Bluejay.combine(sendables: [UInt8(1), DataPadding(2)]), Data([1, 0, 0]))
        XCTAssertEqual(DataPadding(-1).toBluetoothData(), Data())
    }

    // MARK: Results

    func testADisconnectionResultHasTheCaseDisconnected() {
        connectedSensor()
        let seen = seen
        bluejay.disconnect(immediate: true) { result in
            switch result {
            case .disconnected(let peripheral): seen.note("disconnected \(peripheral.name) \(peripheral.uuid)")
            case .failure(let error): seen.note(error.localizedDescription)
            }
        }
        eventually("the end") { seen.count == 1 }
        XCTAssertTrue(seen.texts[0].hasPrefix("disconnected Heart "))
        bluejay.disconnect { result in
            switch result {
            case .disconnected: seen.note("disconnected")
            case .failure: seen.note("failure")
            }
        }
        bluejay.disconnect(completion: { (result: IdentifierDisconnectionResult) in
            if case .failure(let error) = result { seen.note("\(error as? BluejayError == .notConnected)") }
        })
        eventually("the refusals") { seen.count == 3 }
        XCTAssertEqual(seen.texts.suffix(2), ["failure", "true"])
    }

    func testAConnectionResultHasAnIdentifier() {
        let identifier = discoveredSensor()
        var selectedSensor: PeripheralIdentifier?
        bluejay.connect(identifier, timeout: .seconds(15)) { result in
            switch result {
            case .success(let peripheral): selectedSensor = peripheral
            case .failure(let error): XCTFail(error.localizedDescription)
            }
        }
        eventually("the connection") { bluejay.isConnected }
        settle()
        XCTAssertEqual(selectedSensor, identifier)
    }

    func testAScansConnectionResultHasAnIdentifier() {
        startBluejay()
        simulator.add(Self.sensor)
        var connected: [PeripheralIdentifier] = []
        let result: (IdentifierConnectionResult) -> Void = { result in
            if case .success(let peripheral) = result { connected.append(peripheral) }
        }
        bluejay.scan(
            serviceIdentifiers: nil,
            discovery: { discovery, _ in .connect(discovery, .seconds(15), WarningOptions.default, result) },
            stopped: { _, _ in })
        eventually("the connection") { connected.map(\.name) == ["Heart"] }
        bluejay.disconnect()
        eventually("the end") { !bluejay.isConnected }
        bluejay.scan(
            serviceIdentifiers: nil, discovery: { discovery, _ in .connect(discovery, result) },
            stopped: { _, _ in })
        eventually("the connection") { connected.count == 2 }
    }

    // MARK: Background restoration

    /// The program's delegate, as in Bluejay's demonstration.
    private final class AppDelegate: Observer, BackgroundRestorer, ListenRestorer, ConnectionObserver {
        var action = ListenRestoreAction.promiseRestoration

        func didFinishLaunching(_ bluejay: Bluejay) {
            let backgroundRestoreConfig = BackgroundRestoreConfig(
                restoreIdentifier: "com.steamclock.bluejay", backgroundRestorer: self, listenRestorer: self,
                launchOptions: nil)
            let backgroundRestoreMode = BackgroundRestoreMode.enable(backgroundRestoreConfig)
            let options = StartOptions(enableBluetoothAlert: true, backgroundRestore: backgroundRestoreMode)
            bluejay.register(connectionObserver: self)
            bluejay.start(mode: .new(options))
        }

        func connected(to peripheral: PeripheralIdentifier) { seen.note("connected") }

        func didRestoreConnection(to peripheral: PeripheralIdentifier) -> BackgroundRestoreCompletion {
            seen.note("didRestoreConnection \(peripheral.name)")
            return .callback { [seen] in seen.note("callback") }
        }

        func didFailToRestoreConnection(
            to peripheral: PeripheralIdentifier, error: any Error
        ) -> BackgroundRestoreCompletion {
            seen.note("didFailToRestoreConnection \(peripheral.name) \(error as? BluejayError == .connectionTimedOut)")
            return .continue
        }

        func didReceiveUnhandledListen(
            from peripheral: PeripheralIdentifier, on characteristic: CharacteristicIdentifier, with value: Data?
        ) -> ListenRestoreAction {
            seen.note("unhandled \(peripheral.name) \(value.map(Array.init) ?? [])")
            return action
        }
    }

    /// Ends a program that is listening. Its link stays, as after a killed process.
    private func endWhileListening() {
        bluejay.start(
            mode: .new(
                StartOptions(
                    enableBluetoothAlert: false, backgroundRestore: .enable("com.steamclock.bluejay"),
                    managerConfiguration: .init(keepsLinks: true))))
        XCTAssertTrue(bluejay.isBackgroundRestorationEnabled)
        connectedSensor()
        bluejay.listen(to: heartRate) { (_: ReadResult<Data>) in }
        awaitListen()
        pass(1)
        bluejay = nil
        settle()
        bluejay = Bluejay(callbackQueue: callbacks)
        pass(1)
    }

    func testABackgroundRestorerReceivesTheConnectionFirst() {
        endWhileListening()
        let delegate = AppDelegate(seen)
        delegate.didFinishLaunching(bluejay)
        eventually("the connection") { seen.contains("connected") }
        XCTAssertEqual(seen.texts, ["didRestoreConnection Heart", "callback", "connected"])
        pass(20)
        XCTAssertEqual(seen.count, 3)
    }

    func testAConnectionThatDoesNotComeBackIsReportedAndGivenUp() {
        endWhileListening()
        simulator.remove(Self.address)
        pass(5)
        let delegate = AppDelegate(seen)
        delegate.didFinishLaunching(bluejay)
        eventually("the failure", limit: 30) { seen.contains("didFailToRestoreConnection Heart true") }
        eventually("the end of the attempt") { !bluejay.isConnecting && !bluejay.isDisconnecting }
        simulator.add(Self.sensor)
        pass(20)
        XCTAssertFalse(bluejay.isConnected)
        XCTAssertEqual(seen.count, 1)
    }

    func testAListenRestorerReceivesUnhandledValuesUntilTheApplicationListens() {
        endWhileListening()
        let delegate = AppDelegate(seen)
        delegate.didFinishLaunching(bluejay)
        awaitListen()
        notify([0, 80])
        let seen = seen
        eventually("the value") { seen.contains("unhandled Heart [0, 80]") }
        XCTAssertEqual(try? bluejay.isListening(to: heartRate), false)

        bluejay.listen(to: heartRate) { (result: ReadResult<Data>) in
            if case .success(let value) = result { seen.note("listen \(Array(value))") }
        }
        pass(1)
        notify([0, 81])
        eventually("the value") { seen.contains("listen [0, 81]") }
        XCTAssertEqual(seen.texts.filter { $0.hasPrefix("unhandled") }.count, 1)
        XCTAssertEqual(try? bluejay.isListening(to: heartRate), true)
    }

    func testAListenRestorerStopsAListen() {
        endWhileListening()
        let delegate = AppDelegate(seen)
        delegate.action = .stopListen
        delegate.didFinishLaunching(bluejay)
        awaitListen()
        notify([0, 80])
        eventually("the end of the listen") {
            simulator.subscriptions(to: .uuid("2A37"), at: Self.address).isEmpty
        }
        XCTAssertEqual(seen.texts.filter { $0.hasPrefix("unhandled") }, ["unhandled Heart [0, 80]"])
    }
}
