import BlueCapKit
import BlueZSimulator
import XCTest

/// What the earliest and the middle document say of connections.
final class ConnectionTests: DocumentedCase, @unchecked Sendable {
    typealias Connection = FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>

    private func note(_ connection: Connection) {
        connection.onSuccess { (_, connectionEvent) in self.seen.note("\(connectionEvent)") }
        connection.onFailure { error in self.seen.note("failure \(error as? PeripheralError == .disconnected)") }
    }

    // MARK: Declarations

    func testTheEventsAreTheDocumentedOnes() {
        let documented: [ConnectionEvent] = [.connect, .timeout, .disconnect, .forceDisconnect, .giveUp]
        XCTAssertEqual(documented, ConnectionEvent.allCases)
    }

    func testAConnectionIsAStreamOfPeripheralsAndEvents() throws {
        let connect: (Peripheral) -> (UInt, UInt, TimeInterval, Int) -> Connection =
            Peripheral.connect(timeoutRetries:disconnectRetries:connectionTimeout:capacity:)
        let peripheral = try discoveredSensor()
        connect(peripheral)(UInt.max, UInt.max, TimeInterval.infinity, Int.max).onSuccess { element in
            self.seen.note("\(element.peripheral === peripheral) \(element.connectionEvent)")
        }
        eventually("the link") { seen.contains("true connect") }
    }

    func testAConnectionIsOfEventsWhenNothingElseIsSaid() throws {
        let connection = try discoveredSensor().connect()
        connection.onSuccess { (peripheral, connectionEvent) in self.seen.note("\(peripheral.name) \(connectionEvent)")
        }
        eventually("the link") { seen.contains("SensorTag connect") }
    }

    // MARK: Parameters

    func testTimeOutsBeyondTheRetriesGiveUp() throws {
        shyness.ignores = true
        let peripheral = try discoveredSensor()
        let connection = peripheral.connect(timeoutRetries: 2, connectionTimeout: 5)
        note(connection)
        connection.onSuccess { (peripheral, connectionEvent) in
            if connectionEvent == .timeout { peripheral.reconnect() }
        }
        eventually("giving up", limit: 120) { seen.contains("giveUp") }
        XCTAssertEqual(seen.texts, ["timeout", "timeout", "giveUp"])
    }

    func testDisconnectionsBeyondTheRetriesGiveUp() throws {
        let peripheral = try discoveredSensor()
        let connection = peripheral.connect(disconnectRetries: 1)
        note(connection)
        connection.onSuccess { (peripheral, connectionEvent) in
            if connectionEvent == .disconnect { peripheral.reconnect() }
        }
        for links in 1...2 {
            eventually("a link") { peripheral.connectionCount == links && peripheral.state == .connected }
            simulator.simulateLinkLoss(of: Sensor.address)
        }
        eventually("giving up") { seen.contains("giveUp") }
        XCTAssertEqual(seen.texts, ["connect", "disconnect", "connect", "giveUp"])
    }

    func testTheTimeOutIsInSeconds() throws {
        shyness.ignores = true
        let peripheral = try discoveredSensor()
        let began = simulator.seconds
        note(peripheral.connect(connectionTimeout: 7))
        eventually("the time-out") { seen.contains("timeout") }
        XCTAssertGreaterThanOrEqual(simulator.seconds - began, 7)
        XCTAssertLessThan(simulator.seconds - began, 11)
    }

    func testTheCapacityIsThatOfTheStream() throws {
        let peripheral = try discoveredSensor()
        let connection = peripheral.connect(capacity: 1)
        eventually("the link") { peripheral.state == .connected }
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("its end") { peripheral.state == .disconnected }
        note(connection)
        settle()
        XCTAssertEqual(seen.texts, ["disconnect"])
    }

    // MARK: Reconnecting, disconnecting

    func testReconnectingTakesADelay() throws {
        let reconnect: (Peripheral) -> (Double) -> Void = Peripheral.reconnect(withDelay:)
        let peripheral = try connectedSensor()
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the end") { peripheral.state == .disconnected }
        let began = simulator.seconds
        reconnect(peripheral)(5)
        eventually("the link") { peripheral.state == .connected }
        XCTAssertGreaterThanOrEqual(simulator.seconds - began, 5)
    }

    func testReconnectingBeforeConnectingConnects() throws {
        let peripheral = try discoveredSensor()
        peripheral.reconnect()
        eventually("the link") { peripheral.state == .connected }
    }

    func testDisconnectingIsAForcedDisconnection() throws {
        let disconnect: (Peripheral) -> () -> Void = Peripheral.disconnect
        let peripheral = try discoveredSensor()
        note(peripheral.connect())
        eventually("the link") { seen.contains("connect") }
        disconnect(peripheral)()
        eventually("its end") { seen.contains("forceDisconnect") }
        XCTAssertEqual(seen.texts, ["connect", "forceDisconnect"])
    }

    func testDisconnectingWithoutALinkIsAFailure() throws {
        let peripheral = try discoveredSensor()
        note(peripheral.connect())
        eventually("the link") { seen.contains("connect") }
        peripheral.disconnect()
        eventually("its end") { seen.contains("forceDisconnect") }
        peripheral.disconnect()
        eventually("the failure") { seen.contains("failure true") }
    }

    func testTerminatingDisconnectsAndForgets() throws {
        let terminate: (Peripheral) -> () -> Void = Peripheral.terminate
        let peripheral = try connectedSensor()
        terminate(peripheral)()
        eventually("the end") { simulator.links.isEmpty }
        XCTAssertEqual(manager.peripherals, [])
    }

    // MARK: Examples

    /// The earliest document's example.
    func testConnectingAsInTheEarliestDocument() {
        let scanFuture = scanForTheSensor()
        let manager: CentralManager = self.manager

        let connectionFuture = scanFuture.flatMap {
            peripheral -> FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)> in
            manager.stopScanning()
            return peripheral.connect(timeoutRetries: 5, disconnectRetries: 5, connectionTimeout: 10.0)
        }

        connectionFuture.onSuccess { (peripheral, connectionEvent) in
            self.seen.note("\(connectionEvent)")
            switch connectionEvent {
            case .connect:
                break
            case .timeout:
                peripheral.reconnect()
            case .disconnect:
                peripheral.reconnect()
            case .forceDisconnect:
                break
            case .giveUp:
                peripheral.terminate()
            }
        }

        connectionFuture.onFailure { error in
            self.seen.note("\(error)")
        }

        eventually("the link") { seen.texts == ["connect"] }
        XCTAssertFalse(manager.isScanning)
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the link again") { seen.texts == ["connect", "disconnect", "connect"] }
    }

    /// The middle document's example.
    func testConnectingAsInTheMiddleDocument() {
        let scanFuture = scanForTheSensor()
        let manager: CentralManager = self.manager
        shyness.ignores = true

        let connectionFuture = scanFuture.flatMap {
            peripheral -> FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)> in
            manager.stopScanning()
            self.discoveredPeripheral = peripheral
            return peripheral.connect(timeoutRetries: 5, disconnectRetries: 5, connectionTimeout: 10.0)
        }

        connectionFuture.onSuccess { (peripheral, connectionEvent) in
            self.seen.note("\(connectionEvent)")
            switch connectionEvent {
            case .connect:
                break
            case .timeout:
                peripheral.reconnect()
            case .disconnect:
                peripheral.reconnect()
            case .forceDisconnect:
                break
            case .giveUp:
                peripheral.terminate()
            }
        }

        eventually("giving up", limit: 300) { seen.contains("giveUp") }
        XCTAssertEqual(seen.texts, Array(repeating: "timeout", count: 5) + ["giveUp"])
        eventually("its removal") { manager.peripherals.isEmpty }
        XCTAssertEqual(discoveredPeripheral?.name, "SensorTag")
    }
}
