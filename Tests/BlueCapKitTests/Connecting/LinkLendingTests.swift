import BlueZ
import XCTest

@testable import BlueCapKit

/// Links for those who need one for a while, beside what the user wants of the connection.
final class LinkLendingTests: XCTestCase {
    private func machine(isUsable: Bool = true, isLinkUp: Bool = false) -> ConnectionMachine {
        ConnectionMachine(backOff: BackOff(seed: 1), isUsable: isUsable, isPresent: true, isLinkUp: isLinkUp)
    }

    private func lent() -> ConnectionMachine {
        var machine = machine()
        XCTAssertEqual(machine.event(.linkNeededByRun), [.callConnect(1)])
        _ = machine.event(.connectStarted(1))
        _ = machine.event(.connectedChanged(true))
        _ = machine.event(.connectReplied(1, nil))
        XCTAssertEqual(machine.state, .connected)
        return machine
    }

    func testALinkThatWasMadeForBorrowersEndsWithThem() {
        var machine = lent()
        XCTAssertFalse(machine.isWanted, "It is not to come back after a crash.")
        XCTAssertTrue(machine.event(.linkNotNeededByRuns).contains(.callDisconnect))
        XCTAssertEqual(machine.event(.connectedChanged(false)), [.cancelTimer(.drop), .report(0, .forced)])
        XCTAssertEqual(machine.state, .disconnected)
        XCTAssertEqual(machine.event(.linkNotNeededByRuns), [])
    }

    func testALinkOfTheUserStays() {
        var machine = machine()
        _ = machine.event(.connectAsked(ConnectionPolicy()))
        XCTAssertEqual(machine.event(.linkNeededByRun), [])
        _ = machine.event(.connectStarted(1))
        _ = machine.event(.connectedChanged(true))
        _ = machine.event(.connectReplied(1, nil))
        XCTAssertEqual(machine.event(.linkNeededByRun), [])
        XCTAssertEqual(machine.event(.linkNotNeededByRuns), [])
        XCTAssertEqual(machine.state, .connected)
    }

    func testALinkThatTheUserAsksForMeanwhileStays() {
        for event in [ConnectionMachine.Event.connectAsked(ConnectionPolicy()), .reconnectAsked(delay: 0)] {
            var machine = lent()
            _ = machine.event(event)
            XCTAssertTrue(machine.isWanted)
            XCTAssertEqual(machine.event(.linkNotNeededByRuns), [], "\(event)")
            XCTAssertEqual(machine.state, .connected)
        }
    }

    func testALinkThatSomebodyElseHasMadeStays() {
        var machine = machine(isLinkUp: true)
        XCTAssertEqual(
            machine.event(.linkNeededByRun), [.startTimer(.stability, 3), .linkWentUp, .report(0, .connected)])
        XCTAssertEqual(machine.event(.linkNotNeededByRuns), [])
    }

    func testATryThatNobodyNeedsAnyMoreIsTakenBack() {
        var machine = machine()
        _ = machine.event(.linkNeededByRun)
        XCTAssertEqual(
            machine.event(.linkNotNeededByRuns),
            [.cancelConnect, .startTimer(.cancellation, ConnectionMachine.cancellationLimit)])
        var waiting = self.machine(isUsable: false)
        XCTAssertEqual(waiting.event(.linkNeededByRun), [])
        XCTAssertEqual(waiting.state, .waiting(.power))
        XCTAssertEqual(waiting.event(.linkNotNeededByRuns), [.report(0, .forced)])
        XCTAssertEqual(waiting.state, .disconnected)
    }

    func testTheUsersTryThatWaitsBeginsSooner() {
        var machine = machine()
        _ = machine.event(.reconnectAsked(delay: 60))
        XCTAssertEqual(machine.event(.linkNeededByRun), [.cancelTimer(.delay), .callConnect(1)])
        XCTAssertEqual(machine.event(.linkNotNeededByRuns), [], "It is the user's.")
    }

    func testALinkThatEndsIsFollowedByAnother() {
        var machine = lent()
        _ = machine.event(.linkNotNeededByRuns)
        XCTAssertEqual(machine.event(.linkNeededByRun), [])
        XCTAssertEqual(
            machine.event(.connectedChanged(false)), [.cancelTimer(.drop), .report(0, .forced), .callConnect(2)])
        XCTAssertTrue(machine.isForRuns)
        // And where nobody needs it before the first has ended, by none.
        var other = lent()
        _ = other.event(.linkNotNeededByRuns)
        _ = other.event(.linkNeededByRun)
        XCTAssertEqual(other.event(.linkNotNeededByRuns), [])
        XCTAssertEqual(other.event(.connectedChanged(false)), [.cancelTimer(.drop), .report(0, .forced)])
        XCTAssertEqual(other.state, .disconnected)
    }

    func testNothingIsLentByAManagerThatIsGone() {
        var machine = machine()
        _ = machine.event(.closed(keepingLinks: false))
        XCTAssertEqual(machine.event(.linkNeededByRun), [])
        XCTAssertEqual(machine.event(.linkNotNeededByRuns), [])
    }
}
