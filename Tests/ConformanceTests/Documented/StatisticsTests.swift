import BlueCapKit
import BlueZSimulator
import XCTest

final class StatisticsTests: DocumentedCase, @unchecked Sendable {
    func testBeforeTheFirstConnectionNothingIsCounted() throws {
        let peripheral = try discoveredSensor()
        XCTAssertEqual(peripheral.connectedAt, .distantPast)
        XCTAssertEqual(peripheral.disconnectedAt, .distantPast)
        XCTAssertEqual(peripheral.connectionCount, 0)
        XCTAssertEqual(peripheral.secondsConnected, 0)
        XCTAssertEqual(peripheral.totalSecondsConnected, 0)
    }

    func testDatesOfDiscoveryConnectionAndDisconnection() throws {
        let peripheral = try connectedSensor()
        pass(3)
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the end") { peripheral.state == .disconnected }
        let discoveredAt: Date = peripheral.discoveredAt
        let connectedAt: Date = peripheral.connectedAt
        let disconnectedAt: Date = peripheral.disconnectedAt
        XCTAssertLessThan(discoveredAt, connectedAt)
        XCTAssertGreaterThanOrEqual(disconnectedAt.timeIntervalSince(connectedAt), 3)
    }

    func testConnectionsAndDisconnectionsAreCounted() throws {
        let peripheral = try connectedSensor()
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the end") { peripheral.state == .disconnected }
        peripheral.reconnect()
        eventually("the link") { peripheral.state == .connected }
        let connectionCount: UInt = peripheral.connectionCount
        let disconnectionCount: UInt = peripheral.disconnectionCount
        XCTAssertEqual(connectionCount, 2)
        XCTAssertEqual(disconnectionCount, 1)
    }

    func testTimeOutsAreCounted() throws {
        shyness.ignores = true
        let peripheral = try discoveredSensor()
        peripheral.connect(connectionTimeout: 5)
        eventually("the time-out") { peripheral.timeoutCount > 0 }
        let timeoutCount: UInt = peripheral.timeoutCount
        XCTAssertEqual(timeoutCount, 1)
    }

    func testSecondsOfTheConnection() throws {
        let peripheral = try connectedSensor()
        pass(3)
        let secondsConnected: TimeInterval = peripheral.secondsConnected
        XCTAssertEqual(secondsConnected, 3, accuracy: 0.5)
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the end") { peripheral.state == .disconnected }
        pass(5)
        XCTAssertEqual(peripheral.secondsConnected, 3, accuracy: 0.5)
    }

    func testTheTotalIsWithoutThePresentConnectionAndTheCumulativeSumWith() throws {
        let peripheral = try connectedSensor()
        pass(3)
        XCTAssertEqual(peripheral.totalSecondsConnected, 0)
        XCTAssertEqual(peripheral.cumlativeSecondsConnected, 3, accuracy: 0.5)
        simulator.simulateLinkLoss(of: Sensor.address)
        eventually("the end") { peripheral.state == .disconnected }
        peripheral.reconnect()
        eventually("the link") { peripheral.state == .connected }
        pass(4)
        let totalSecondsConnected: TimeInterval = peripheral.totalSecondsConnected
        let cumlativeSecondsConnected: TimeInterval = peripheral.cumlativeSecondsConnected
        XCTAssertEqual(totalSecondsConnected, 3, accuracy: 0.5)
        XCTAssertEqual(cumlativeSecondsConnected, 7, accuracy: 1)
        XCTAssertEqual(peripheral.cumulativeSecondsConnected, cumlativeSecondsConnected, accuracy: 0.1)
    }

    func testSecondsWithoutAConnection() throws {
        let peripheral = try discoveredSensor()
        pass(6)
        let cumlativeSecondsDisconnected: TimeInterval = peripheral.cumlativeSecondsDisconnected
        XCTAssertEqual(cumlativeSecondsDisconnected, 6, accuracy: 0.5)
        XCTAssertEqual(peripheral.cumulativeSecondsDisconnected, cumlativeSecondsDisconnected, accuracy: 0.1)
    }
}
