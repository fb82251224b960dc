import BlueCapKit
import BlueZSimulator
import TestSupport
import XCTest

/// The ways in which an adapter, or all of them, can disappear and come back.
enum AdapterLoss {
    typealias Loss = (name: String, go: @Sendable (Simulator) -> Void, back: @Sendable (Simulator) -> Void)

    static let all: [Loss] = [
        ("the daemon", { $0.simulateDaemonDeath() }, { $0.simulateDaemonReturn() }),
        ("the power", { $0.simulatePowerOff() }, { $0.simulatePowerOn() }),
        ("rfkill", { $0.simulateRfkill(true) }, { $0.simulateRfkill(false) }),
        ("the adapter", { $0.simulateAdapterRemoval() }, { $0.simulateAdapterAddition() }),
    ]
}

/// Links, attempts and requests when the daemon or the adapter disappears: behaviours F1 to F3.
final class AdapterLossTests: ConnectionStage {
    /// A fresh room for each loss; the peripheral in the phase that is tried.
    private func each(_ body: (AdapterLoss.Loss, Peripheral, Journal) -> Void) {
        for loss in AdapterLoss.all {
            simulator = Simulator.inProcess(room: .empty)
            body(loss, strap(link: VirtualLink(connectLatency: 1)), Journal())
        }
    }

    func testALinkEndsWithOneEventAndReconnectWaitsForTheReturn() {
        each { loss, strap, journal in
            journal.watch(strap.connect())
            XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 5))
            simulator.advance(by: 5)
            loss.go(simulator)
            simulator.advance(by: 3)
            XCTAssertEqual(journal.connectionEvents, [.connect, .disconnect], loss.name)
            XCTAssertNotEqual(strap.disconnectReason, .application)
            strap.reconnect()
            simulator.advance(by: 20)
            XCTAssertEqual(strap.state, .connecting, loss.name)
            XCTAssertEqual(journal.connectionEvents, [.connect, .disconnect], loss.name)
            loss.back(simulator)
            XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 60), loss.name)
            XCTAssertEqual(journal.connectionEvents, [.connect, .disconnect, .connect], loss.name)
            simulator.advance(by: 10)
            XCTAssertEqual(strap.connectionCount, 2)
            XCTAssertEqual(strap.disconnectionCount, 1)
        }
    }

    func testAnAttemptEndsWithOneEventAndReconnectWaitsForTheReturn() {
        each { loss, strap, journal in
            journal.watch(strap.connect())
            simulator.advance(by: 0.5)
            loss.go(simulator)
            simulator.advance(by: 3)
            XCTAssertEqual(journal.connectionEvents, [.disconnect], loss.name)
            strap.reconnect()
            loss.back(simulator)
            XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 60), loss.name)
            XCTAssertEqual(journal.connectionEvents, [.disconnect, .connect], loss.name)
        }
    }

    func testADisconnectionUnderWayIsCompleted() {
        each { loss, strap, journal in
            journal.watch(strap.connect())
            XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 5))
            strap.disconnect()
            simulator.advance(by: 0.5)
            loss.go(simulator)
            simulator.advance(by: 3)
            XCTAssertEqual(journal.connectionEvents, [.connect, .forceDisconnect], loss.name)
            loss.back(simulator)
            simulator.advance(by: 30)
            XCTAssertEqual(strap.state, .disconnected, loss.name)
            XCTAssertEqual(simulator.links, [], loss.name)
        }
    }

    func testAConnectWhileThereIsNoAdapterWaitsForIt() {
        each { loss, strap, journal in
            loss.go(simulator)
            simulator.advance(by: 10)
            journal.watch(strap.connect())
            simulator.advance(by: 60)
            XCTAssertEqual(journal.connectionEvents, [], loss.name)
            loss.back(simulator)
            XCTAssertTrue(simulator.advance(until: { strap.state == .connected }, limit: 60), loss.name)
            XCTAssertEqual(journal.connectionEvents, [.connect], loss.name)
        }
    }

    func testAWaitForTheAdapterRunsOutToo() {
        each { loss, strap, journal in
            loss.go(simulator)
            simulator.advance(by: 10)
            journal.watch(strap.connect(connectionTimeout: 20))
            simulator.advance(by: 21)
            XCTAssertEqual(journal.connectionEvents, [.timeout], loss.name)
        }
    }

    func testARemovedDeviceIsOneDisconnection() {
        let strap = strap()
        connect(strap)
        simulator.simulateDeviceRemoval(of: Self.strapAddress)
        expect(.disconnect)
        simulator.advance(by: 10)
        XCTAssertEqual(journal.connectionEvents, [.connect, .disconnect])
        strap.reconnect()
        expect(.connect)
    }
}
