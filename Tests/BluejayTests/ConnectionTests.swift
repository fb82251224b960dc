import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

final class ConnectionTests: BluejayCase, @unchecked Swift.Sendable {
    func testAScanFindsAndAConnectionFollows() {
        start()
        simulator.add(Self.virtual())
        bluejay.scan(
            serviceIdentifiers: [Self.heartRate],
            discovery: { [seen] discovery, discoveries in
                seen.note("found \(discovery.peripheralIdentifier.name) of \(discoveries.count)")
                return .connect(discovery) { seen.note("connected", $0) }
            }, stopped: { [seen] discoveries, error in seen.note("stopped \(discoveries.count)", error) })
        XCTAssertFalse(bluejay.isConnected)
        expect("connected Strap 1")
        XCTAssertEqual(seen.texts, ["found Strap 1 of 1", "stopped 1 nil", "connected Strap 1"])
        XCTAssertTrue(bluejay.isConnected)
        XCTAssertFalse(bluejay.isScanning)
        XCTAssertFalse(bluejay.isConnecting)
    }

    func testReadsWritesAndListensFindWhatTheyNeed() throws {
        connect()
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        bluejay.write(to: Self.location, value: UInt8(5)) { [seen] in seen.note("write", $0) }
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        bluejay.listen(to: Self.measurement) { [seen] (result: ReadResult<Data>) in
            if case .success(let data) = result {
                seen.note("received \([UInt8](data))")
            } else {
                seen.note("\(result)")
            }
        }
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("last", result) }
        expect("last 5")
        XCTAssertTrue(try bluejay.isListening(to: Self.measurement))
        notify([0, 61])
        notify([0, 62])
        bluejay.endListen(to: Self.measurement) { [seen] in seen.note("end", $0) }
        expect("end done")
        notify([0, 63])
        XCTAssertFalse(try bluejay.isListening(to: Self.measurement))
        XCTAssertEqual(
            seen.texts,
            ["read 1", "write done", "read 5", "last 5", "received [0, 61]", "received [0, 62]", "end done"])
    }

    func testALossFailsEverythingInItsOrderAndBluejayReconnects() {
        let observer = Observer(seen)
        bluejay.register(observer: observer)
        let handler = Handler(seen)
        bluejay.registerDisconnectHandler(handler: handler)
        connect()
        bluejay.listen(to: Self.measurement) { [seen] (result: ReadResult<Data>) in seen.note("listen", result) }
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("first", result) }
        expect("first 1")
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        bluejay.write(to: Self.location, value: UInt8(1)) { [seen] in seen.note("write", $0) }
        simulator.simulateLinkLoss(of: Self.address)
        expect("willReconnect true notConnected")
        eventually("the connection") { bluejay.isConnected }
        settle()
        XCTAssertEqual(
            seen.texts,
            [
                "available true", "connected Strap 1", "first 1", "read notConnected", "write notConnected",
                "listen notConnected", "disconnected Strap 1", "willReconnect true notConnected", "connected Strap 1",
            ])
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("again", result) }
        expect("again 1")
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
    }

    func testAQueuedDisconnectionWaitsForItsTurn() {
        connect()
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("late", result) }
        bluejay.disconnect { [seen] in seen.note("second", $0) }
        expect("disconnect Strap 1")
        XCTAssertEqual(
            seen.texts,
            [
                "late disconnectQueued", "second multipleDisconnectNotSupported", "read 1", "disconnect Strap 1",
            ])
        XCTAssertFalse(bluejay.shouldAutoReconnect)
        XCTAssertFalse(bluejay.isConnected)
    }

    func testAnImmediateDisconnectionFailsTheQueue() {
        connect()
        for name in ["a", "b"] {
            bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note(name, result) }
        }
        bluejay.disconnect(immediate: true) { [seen] in seen.note("disconnect", $0) }
        XCTAssertTrue(bluejay.isDisconnecting)
        expect("disconnect Strap 1")
        XCTAssertEqual(seen.texts, ["a explicitDisconnect", "b explicitDisconnect", "disconnect Strap 1"])
        XCTAssertFalse(bluejay.shouldAutoReconnect)
    }
}

// Unchecked: called on the callback queue alone.
final class Observer: ConnectionObserver, @unchecked Swift.Sendable {
    let seen: Notes
    var onDisconnected: () -> Void = {}

    init(_ seen: Notes) { self.seen = seen }

    func bluetoothAvailable(_ available: Bool) { seen.note("available \(available)") }
    func connected(to peripheral: Peripheral) { seen.note("connected \(peripheral.name)") }
    func disconnected(from peripheral: Peripheral) {
        seen.note("disconnected \(peripheral.name)")
        onDisconnected()
    }
}

// Unchecked: called on the callback queue alone.
final class Handler: DisconnectHandler, @unchecked Swift.Sendable {
    let seen: Notes
    var mode = AutoReconnectMode.noChange

    init(_ seen: Notes) { self.seen = seen }

    func didDisconnect(
        from peripheral: Peripheral, with error: (any Error)?, willReconnect autoReconnect: Bool
    ) -> AutoReconnectMode {
        seen.note("willReconnect \(autoReconnect)", error)
        return mode
    }
}

// MARK: - Going wrong

final class ConnectionEndTests: BluejayCase, @unchecked Swift.Sendable {
    func testATimeOutEndsAnAttempt() {
        let identifier = find()
        strap.connectionAnswer = .ignore
        bluejay.connect(identifier, timeout: .seconds(3)) { [seen] in seen.note("connect", $0) }
        XCTAssertTrue(bluejay.isConnecting)
        expect("connect connectionTimedOut", limit: 5)
        XCTAssertFalse(bluejay.isConnecting)
        strap.connectionAnswer = .accept(after: 0)
        bluejay.connect(identifier, timeout: .seconds(15)) { [seen] in seen.note("again", $0) }
        expect("again Strap 1")
        XCTAssertEqual(seen.count, 2)
    }

    func testATimeOutOfNothingIsRefused() {
        let identifier = find()
        bluejay.connect(identifier, timeout: .seconds(0)) { [seen] _ in seen.note("connect") }
        expect("connect")
        XCTAssertFalse(bluejay.isConnecting)
    }

    func testASecondConnectionIsRefused() {
        let identifier = find()
        bluejay.connect(identifier) { [seen] in seen.note("first", $0) }
        bluejay.connect(identifier) { [seen] in seen.note("second", $0) }
        expect("first Strap 1")
        bluejay.connect(identifier) { [seen] in seen.note("third", $0) }
        expect("third multipleConnectNotSupported")
        XCTAssertEqual(
            seen.texts, ["second multipleConnectNotSupported", "first Strap 1", "third multipleConnectNotSupported"])
    }

    func testWhoNobodyKnowsCannotBeConnectedTo() {
        start()
        let unknown = PeripheralIdentifier(uuid: UUID(), name: "Unknown")
        bluejay.connect(unknown) { [seen] result in
            guard case .failure(let error) = result else { return }
            seen.note("\(error as? BluejayError == .unexpectedPeripheral(unknown))")
        }
        expect("true")
        XCTAssertFalse(bluejay.isConnecting)
    }

    func testADisconnectionAndTheNextConnectionMayBeQueuedTogether() {
        let identifier = connect()
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        bluejay.connect(identifier) { [seen] in seen.note("connect", $0) }
        expect("connect Strap 1")
        XCTAssertEqual(seen.texts, ["disconnect Strap 1", "connect Strap 1"])
        XCTAssertTrue(bluejay.shouldAutoReconnect)
    }

    func testCancellingEverythingMayLeaveTheConnection() throws {
        connect()
        bluejay.listen(to: Self.measurement) { [seen] (result: ReadResult<Data>) in seen.note("listen", result) }
        awaitSubscription()
        for name in ["a", "b"] {
            bluejay.write(to: Self.location, value: UInt8(1)) { [seen] in seen.note(name, $0) }
        }
        bluejay.cancelEverything(shouldDisconnect: false)
        settle()
        XCTAssertEqual(seen.texts, ["a cancelled", "b cancelled"])
        XCTAssertTrue(bluejay.isConnected)
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        expect("read 1")
        notify([0, 61])
        expect("listen 2 bytes")
        XCTAssertTrue(try bluejay.isListening(to: Self.measurement))
    }

    func testCancellingEverythingDisconnects() {
        let observer = Observer(seen)
        connect()
        bluejay.register(observer: observer)
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        bluejay.cancelEverything()
        expect("disconnected Strap 1")
        XCTAssertEqual(
            seen.texts.sorted(),
            ["available true", "connected Strap 1", "disconnected Strap 1", "read cancelled"])
        XCTAssertFalse(bluejay.shouldAutoReconnect)
        pass(5)
        XCTAssertFalse(bluejay.isConnected)
    }

    func testCancellingEndsAnAttempt() {
        let identifier = find()
        strap.connectionAnswer = .ignore
        bluejay.connect(identifier) { [seen] in seen.note("connect", $0) }
        pass(1)
        bluejay.cancelEverything(error: BluejayError.listenTimedOut)
        expect("connect listenTimedOut")
        eventually("the end") { !bluejay.isDisconnecting }
        XCTAssertFalse(bluejay.isConnecting)
    }

    func testTheHandlerMayTurnReconnectingOff() {
        let handler = Handler(seen)
        handler.mode = .change(shouldAutoReconnect: false)
        connect()
        bluejay.registerDisconnectHandler(handler: handler)
        loseLink()
        expect("willReconnect true notConnected")
        pass(5)
        XCTAssertFalse(bluejay.shouldAutoReconnect)
        XCTAssertFalse(bluejay.isConnected)
        XCTAssertFalse(bluejay.isConnecting)
    }

    func testTheHandlerMayScanAndTheObserverMayConnect() {
        let observer = Observer(seen)
        let identifier = connect()
        bluejay.register(observer: observer)
        observer.onDisconnected = { [weak self] in
            self?.bluejay.connect(identifier) { self?.seen.note("connect", $0) }
        }
        loseLink()
        expect("connect Strap 1")
        pass(2)
        XCTAssertEqual(
            seen.texts,
            [
                "available true", "connected Strap 1", "disconnected Strap 1", "connect Strap 1", "connected Strap 1",
            ])
    }

    func testAttemptsToReconnectGoOnUntilOneSucceeds() {
        connect()
        strap.connectionAnswer = .ignore
        loseLink()
        pass(120, step: 1)
        XCTAssertTrue(bluejay.isConnecting)
        strap.connectionAnswer = .accept(after: 0)
        eventually("the connection", limit: 60) { bluejay.isConnected }
    }

    func testDisconnectingEndsReconnecting() {
        connect()
        strap.connectionAnswer = .ignore
        loseLink()
        eventually("the attempt") { bluejay.isConnecting }
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        expect("disconnect Strap 1")
        strap.connectionAnswer = .accept(after: 0)
        pass(10)
        XCTAssertFalse(bluejay.isConnected)
        XCTAssertFalse(bluejay.shouldAutoReconnect)
    }

    func testWithoutAConnectionThereIsNothingToDisconnectOrToRead() {
        start()
        bluejay.disconnect { [seen] in seen.note("disconnect", $0) }
        bluejay.disconnect()
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        bluejay.run(backgroundTask: { _ in }) { [seen] in seen.note("run", $0) }
        settle()
        XCTAssertEqual(seen.texts, ["disconnect notConnected", "read notConnected", "run notConnected"])
        XCTAssertThrowsError(try bluejay.isListening(to: Self.measurement)) { error in
            XCTAssertEqual(error as? BluejayError, .notConnected)
        }
    }

    func testPowersEndFailsEverythingAndItsReturnReconnects() {
        let observer = Observer(seen)
        connect()
        bluejay.register(observer: observer)
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        simulator.simulatePowerOff()
        expect("disconnected Strap 1")
        XCTAssertEqual(seen.texts.filter { $0.hasPrefix("read") }.count, 1)
        XCTAssertTrue(seen.texts.contains("available false"))
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("late", result) }
        expect("late bluetoothUnavailable")
        simulator.simulatePowerOn()
        eventually("the connection") { bluejay.isConnected }
        XCTAssertEqual(seen.texts.last, "connected Strap 1")
    }

    func testTheDaemonsDeathFailsEverythingAndItsReturnReconnects() {
        connect()
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        bluejay.listen(to: Self.measurement) { [seen] (result: ReadResult<Data>) in seen.note("listen", result) }
        simulator.simulateDaemonDeath()
        eventually("the failures") { seen.count == 2 }
        eventually("the loss") { !bluejay.isConnected }
        XCTAssertTrue(bluejay.isBluetoothStateUpdateImminent)
        simulator.simulateDaemonReturn()
        eventually("the connection") { bluejay.isConnected }
        XCTAssertEqual(seen.count, 2)
    }

    func testObserversAreHeldWeaklyAndMayLeave() {
        var observer: Observer? = Observer(seen)
        let other = Observer(seen)
        start(observer)
        bluejay.register(observer: other)
        bluejay.unregister(observer: other)
        settle()
        seen.note("-")
        observer = nil
        simulator.simulatePowerOff()
        eventually("the power's end") { !bluejay.isBluetoothAvailable }
        settle()
        XCTAssertEqual(seen.texts.last, "-")
        withExtendedLifetime((observer, other)) {}
    }

    /// The completion of `connect` is called before the observers receive the connection. An observer that the completion
    /// registers receives it once nevertheless.
    func testAnObserverThatRegistersInACallbackReceivesTheConnectionOnce() {
        let observer = Observer(seen)
        let identifier = find()
        bluejay.connect(identifier) { [weak self] _ in self?.bluejay.register(observer: observer) }
        expect("connected Strap 1")
        pass(1)
        XCTAssertEqual(seen.texts, ["available true", "connected Strap 1"])
    }

    func testAHandlerMayLeave() {
        let handler = Handler(seen)
        handler.mode = .change(shouldAutoReconnect: false)
        connect()
        bluejay.registerDisconnectHandler(handler: handler)
        bluejay.removeDisconnectHandler()
        loseLink()
        eventually("the connection") { bluejay.isConnected }
        XCTAssertEqual(seen.texts, [])
    }
}

// MARK: - Beginning and end

final class StartTests: BluejayCase, @unchecked Swift.Sendable {
    func testBeforeTheStartNothingGoes() {
        XCTAssertFalse(bluejay.hasStarted)
        XCTAssertFalse(bluejay.isBluetoothAvailable)
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        bluejay.scan(
            serviceIdentifiers: nil, discovery: { _, _ in .stop },
            stopped: { [seen] in seen.note("scan \($0.count)", $1) })
        bluejay.cancelEverything()
        settle()
        XCTAssertEqual(seen.texts, ["read stopped", "scan 0 stopped"])
    }

    func testASecondStartDoesNothing() {
        start()
        bluejay.start()
        settle()
        XCTAssertTrue(bluejay.isBluetoothAvailable)
    }

    func testTheStateIsGivenAwayAndEverythingFails() {
        connect()
        bluejay.listen(to: Self.measurement) { [seen] (result: ReadResult<Data>) in seen.note("listen", result) }
        awaitSubscription()
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        let (manager, peripheral) = bluejay.stopAndExtractBluetoothState()
        XCTAssertFalse(bluejay.hasStarted)
        settle()
        XCTAssertEqual(seen.texts, ["read stopped", "listen stopped"])
        pass(5)
        XCTAssertEqual(peripheral?.state, .connected)
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("late", result) }
        expect("late stopped")
        withExtendedLifetime(manager) {}
    }

    func testAnotherBluejayGoesOnWithWhatWasGivenAway() {
        connect()
        let (manager, peripheral) = bluejay.stopAndExtractBluetoothState()
        let observer = Observer(seen)
        bluejay = Bluejay(callbackQueue: callbacks)
        bluejay.start(mode: .use(manager: manager, peripheral: peripheral), connectionObserver: observer)
        eventually("the connection") { bluejay.isConnected }
        settle()
        XCTAssertEqual(seen.texts, ["available true", "connected Strap 1"])
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("read", result) }
        expect("read 1")
        XCTAssertEqual(simulator.statistics.count(of: "Connect"), 1)
    }

    func testAManagerThatIsNotConnectedIsUsedAsItIs() throws {
        let manager = try CentralManager(configuration: managerConfiguration)
        bluejay.start(mode: .use(manager: manager, peripheral: nil))
        eventually("Bluetooth") { bluejay.isBluetoothAvailable }
        XCTAssertFalse(bluejay.isConnecting)
        connect()
        let state = bluejay.stopAndExtractBluetoothState()
        XCTAssertTrue(state.manager === manager)
        XCTAssertNotNil(state.peripheral)
    }

    func testItMayBeStartedAgain() {
        let identifier = connect()
        _ = bluejay.stopAndExtractBluetoothState()
        settle()
        eventually("the link's end") { simulator.links.isEmpty }
        start()
        bluejay.connect(identifier) { [seen] in seen.note("connect", $0) }
        expect("connect Strap 1")
    }

    func testAReleasedBluejaySettlesEverything() {
        connect()
        bluejay.listen(to: Self.measurement) { [seen] (result: ReadResult<Data>) in seen.note("listen", result) }
        awaitSubscription()
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("first", result) }
        bluejay.read(from: Self.location) { [seen] (result: ReadResult<UInt8>) in seen.note("second", result) }
        weak let session = bluejay
        bluejay = nil
        settle()
        XCTAssertNil(session)
        XCTAssertEqual(seen.texts, ["first stopped", "second stopped", "listen stopped"])
        eventually("the link's end") { simulator.links.isEmpty }
    }

    func testAScanAndAnAttemptAreSettledToo() {
        let identifier = find()
        strap.connectionAnswer = .ignore
        bluejay.connect(identifier) { [seen] in seen.note("connect", $0) }
        bluejay.scan(
            serviceIdentifiers: nil, discovery: { _, _ in .continue },
            stopped: { [seen] in seen.note("scan \($0.count)", $1) })
        pass(1)
        bluejay = nil
        settle()
        XCTAssertEqual(seen.texts, ["connect stopped", "scan 0 stopped"])
    }
}
