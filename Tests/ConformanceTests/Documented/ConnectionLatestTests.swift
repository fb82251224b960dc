import BlueCapKit
import BlueZSimulator
import XCTest

/// Connections in the latest document: each is a success, and each error or end of one is a failure.
final class ConnectionLatestTests: DocumentedCase, @unchecked Sendable {
    private func note(_ connection: FutureStream<Void>) {
        connection.onSuccess { self.seen.note("connected") }
        connection.onFailure { error in
            switch error {
            case PeripheralError.disconnected: self.seen.note("disconnected")
            case PeripheralError.forcedDisconnect: self.seen.note("forcedDisconnect")
            case PeripheralError.connectionTimeout: self.seen.note("connectionTimeout")
            default: self.seen.note("\(error)")
            }
        }
    }

    func testAConnectionIsAStreamOfVoidWhereThatIsAskedFor() throws {
        let connect: (Peripheral) -> (UInt, UInt, TimeInterval, Int) -> FutureStream<Void> =
            Peripheral.connect(timeoutRetries:disconnectRetries:connectionTimeout:capacity:)
        let peripheral = try discoveredSensor()
        note(connect(peripheral)(UInt.max, UInt.max, TimeInterval.infinity, Int.max))
        eventually("the link") { seen.contains("connected") }
    }

    func testOnlyTheTimeOutAndTheCapacityAreDocumented() throws {
        let connection: FutureStream<Void> = try discoveredSensor().connect(connectionTimeout: 10, capacity: 10)
        note(connection)
        eventually("the link") { seen.contains("connected") }
    }

    func testTheConnectionOfTwoLabelsIsAFunctionValue() throws {
        let connect: (Peripheral) -> (TimeInterval, Int) -> FutureStream<Void> =
            Peripheral.connect(connectionTimeout:capacity:)
        note(connect(try discoveredSensor())(10, Int.max))
        eventually("the link") { seen.contains("connected") }
    }

    func testATimeOutIsAFailure() throws {
        shyness.ignores = true
        let connection: FutureStream<Void> = try discoveredSensor().connect(connectionTimeout: 5)
        note(connection)
        eventually("the time-out") { seen.contains("connectionTimeout") }
    }

    func testAForcedDisconnectionIsAFailure() throws {
        let peripheral = try discoveredSensor()
        let connection: FutureStream<Void> = peripheral.connect()
        note(connection)
        eventually("the link") { seen.contains("connected") }
        peripheral.disconnect()
        eventually("its end") { seen.contains("forcedDisconnect") }
    }

    /// The latest document's example; its first closure takes the peripheral, which the document forgot.
    func testConnectingAsInTheLatestDocument() {
        let scanFuture = scanForTheSensor()
        let manager: CentralManager = self.manager

        let connectionFuture = scanFuture.flatMap { [weak manager] peripheral -> FutureStream<Void> in
            manager?.stopScanning()
            self.discoveredPeripheral = peripheral
            return peripheral.connect(timeoutRetries: 5, disconnectRetries: 5, connectionTimeout: 10.0)
        }

        connectionFuture.onSuccess { [weak manager] in
            self.seen.note("connected \(manager?.isScanning == true)")
        }

        connectionFuture.onFailure { error in
            switch error {
            case PeripheralError.disconnected:
                self.discoveredPeripheral?.reconnect()
                break
            case PeripheralError.forcedDisconnect:
                self.seen.note("forced")
                break
            case PeripheralError.connectionTimeout:
                break
            default:
                break
            }
        }

        eventually("the link") { seen.texts == ["connected false"] }
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the link again") { seen.count == 2 }
        discoveredPeripheral?.disconnect()
        eventually("its end") { seen.contains("forced") }
    }
}
