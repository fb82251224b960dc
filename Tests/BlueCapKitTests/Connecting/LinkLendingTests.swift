import BlueCapBlueZ
import XCTest

@testable import BlueCapKit

/// Links that runs and other operations need for a time, beside the connection that the application requests.
final class LinkLendingTests: XCTestCase {
    private func machine(isUsable: Bool = true, isLinkUp: Bool = false) -> ReportedMachine {
        ReportedMachine(backOff: BackOff(seed: 1), isUsable: isUsable, isPresent: true, isLinkUp: isLinkUp)
    }

    private func lent() -> ReportedMachine {
        var machine = machine()
        XCTAssertEqual(machine.event(.linkNeeded(.run)), [.callConnect(1)])
        _ = machine.event(.connectStarted(1))
        _ = machine.deviceChanged(isConnected: true)
        _ = machine.event(.connectReplied(1, nil))
        XCTAssertEqual(machine.state, .connected)
        return machine
    }

    func testALinkThatWasMadeForBorrowersEndsWithThem() {
        var machine = lent()
        XCTAssertFalse(machine.isWanted, "It is not to come back after a crash.")
        XCTAssertTrue(machine.event(.linkNotNeeded(.run)).contains(.callDisconnect))
        XCTAssertEqual(machine.event(.disconnectReplied), [.report(0, .forced)])
        XCTAssertEqual(machine.state, .disconnected)
        XCTAssertEqual(machine.event(.linkNotNeeded(.run)), [])
    }

    func testALinkOfTheUserStays() {
        var machine = machine()
        _ = machine.event(.connectAsked(ConnectionPolicy()))
        XCTAssertEqual(machine.event(.linkNeeded(.run)), [])
        _ = machine.event(.connectStarted(1))
        _ = machine.deviceChanged(isConnected: true)
        _ = machine.event(.connectReplied(1, nil))
        XCTAssertEqual(machine.event(.linkNeeded(.run)), [])
        XCTAssertEqual(machine.event(.linkNotNeeded(.run)), [])
        XCTAssertEqual(machine.state, .connected)
    }

    func testALinkThatTheUserAsksForMeanwhileStays() {
        for event in [ConnectionMachine.Event.connectAsked(ConnectionPolicy()), .reconnectAsked(delay: 0)] {
            var machine = lent()
            _ = machine.event(event)
            XCTAssertTrue(machine.isWanted)
            XCTAssertEqual(machine.event(.linkNotNeeded(.run)), [], "\(event)")
            XCTAssertEqual(machine.state, .connected)
        }
    }

    func testALinkThatSomebodyElseHasMadeStays() {
        var machine = machine(isLinkUp: true)
        XCTAssertEqual(
            machine.event(.linkNeeded(.run)), [.startTimer(.stability, 3), .linkWentUp, .report(0, .connected)])
        XCTAssertEqual(machine.event(.linkNotNeeded(.run)), [])
    }

    func testATryThatNobodyNeedsAnyMoreIsTakenBack() {
        var machine = machine()
        _ = machine.event(.linkNeeded(.run))
        XCTAssertEqual(
            machine.event(.linkNotNeeded(.run)),
            [.cancelConnect])
        var waiting = self.machine(isUsable: false)
        XCTAssertEqual(waiting.event(.linkNeeded(.run)), [])
        XCTAssertEqual(waiting.state, .waiting(.power))
        XCTAssertEqual(waiting.event(.linkNotNeeded(.run)), [.report(0, .forced)])
        XCTAssertEqual(waiting.state, .disconnected)
    }

    func testTheUsersTryThatWaitsBeginsSooner() {
        var machine = machine()
        _ = machine.event(.reconnectAsked(delay: 60))
        XCTAssertEqual(machine.event(.linkNeeded(.run)), [.cancelTimer(.wait), .callConnect(1)])
        XCTAssertEqual(machine.event(.linkNotNeeded(.run)), [], "It is the user's.")
    }

    func testALinkThatEndsIsFollowedByAnother() {
        var machine = lent()
        _ = machine.event(.linkNotNeeded(.run))
        XCTAssertEqual(machine.event(.linkNeeded(.run)), [])
        XCTAssertEqual(machine.deviceChanged(isConnected: false), [])
        XCTAssertEqual(
            machine.event(.disconnectReplied), [.report(0, .forced), .callConnect(2)])
        XCTAssertEqual(machine.purpose, .run)
        // If no run needs the link before the first one has ended, it is not established again.
        var other = lent()
        _ = other.event(.linkNotNeeded(.run))
        _ = other.event(.linkNeeded(.run))
        XCTAssertEqual(other.event(.linkNotNeeded(.run)), [])
        XCTAssertEqual(other.event(.disconnectReplied), [.report(0, .forced)])
        XCTAssertEqual(other.state, .disconnected)
    }

    func testNothingIsLentByAManagerThatIsGone() {
        var machine = machine()
        _ = machine.event(.closed(keepingLinks: false))
        XCTAssertEqual(machine.event(.linkNeeded(.run)), [])
        XCTAssertEqual(machine.event(.linkNotNeeded(.run)), [])
    }
}
