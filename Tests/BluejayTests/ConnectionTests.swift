import Bluejay
import BlueZSimulator
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
            if case .success(let data) = result { seen.note("heard \([UInt8](data))") } else { seen.note("\(result)") }
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
            seen.texts, ["read 1", "write done", "read 5", "last 5", "heard [0, 61]", "heard [0, 62]", "end done"])
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
