import BlueCapDBus
import XCTest

@testable import BlueCapBlueZ

final class DaemonMachineTests: XCTestCase {
    private let noServer = DBusError(name: DBusError.Name.noServer, message: "No such socket")
    private let denied = DBusError(name: DBusError.Name.accessDenied, message: "Rejected send message")
    private let noReply = DBusError(name: DBusError.Name.noReply, message: "")

    private func readyMachine() -> DaemonMachine {
        var machine = DaemonMachine()
        _ = machine.start()
        _ = machine.busOpened()
        _ = machine.ownerChanged(":1.5")
        _ = machine.loadReplied(1, error: nil)
        XCTAssertEqual(machine.state, .ready(owner: ":1.5"))
        return machine
    }

    func testFromTheBusToTheDaemonToItsObjects() {
        var machine = DaemonMachine()
        XCTAssertEqual(machine.start(), [.openBus, .report(.connecting)])
        XCTAssertEqual(machine.busOpened(), [.watchDaemon])
        XCTAssertEqual(machine.ownerChanged(":1.5"), [.cancelTimer, .report(.loading), .load(1)])
        XCTAssertEqual(machine.loadReplied(1, error: nil), [.report(.ready)])
    }

    func testABusWithoutADaemonIsWatchedUntilOneComes() {
        var machine = DaemonMachine()
        _ = machine.start()
        _ = machine.busOpened()
        XCTAssertEqual(machine.ownerChanged(nil), [.cancelTimer, .report(.noDaemon)])
        XCTAssertEqual(machine.ownerChanged(":1.9"), [.cancelTimer, .report(.loading), .load(1)])
    }

    func testADaemonThatDiesTakesItsObjectsAlong() {
        var machine = readyMachine()
        XCTAssertEqual(machine.ownerChanged(nil), [.clearTree, .cancelTimer, .report(.noDaemon)])
        XCTAssertEqual(machine.ownerChanged(":1.6"), [.cancelTimer, .report(.loading), .load(2)])
    }

    func testANewOwnerOfTheNameIsLoadedAgain() {
        var machine = readyMachine()
        XCTAssertEqual(machine.ownerChanged(":1.6"), [.clearTree, .cancelTimer, .report(.loading), .load(2)])
    }

    func testTheSameOwnerReportedTwiceIsLoadedOnce() {
        var machine = readyMachine()
        XCTAssertEqual(machine.ownerChanged(":1.5"), [])
    }

    func testALateAnswerOfADeadDaemonIsIgnored() {
        var machine = DaemonMachine()
        _ = machine.start()
        _ = machine.busOpened()
        _ = machine.ownerChanged(":1.5")
        _ = machine.ownerChanged(":1.6")
        XCTAssertEqual(machine.loadReplied(1, error: nil), [])
        XCTAssertEqual(machine.loadReplied(2, error: nil), [.report(.ready)])
    }

    func testABusThatCannotBeReachedIsTriedAgainLessAndLessOften() {
        var machine = DaemonMachine()
        _ = machine.start()
        XCTAssertEqual(machine.busClosed(noServer), [.report(.noBus(noServer)), .startTimer(seconds: 0.5)])
        var delays: [Double] = []
        for _ in 0..<8 {
            XCTAssertEqual(machine.timerFired(), [.openBus])
            if case .startTimer(let seconds)? = machine.busClosed(noServer).first { delays.append(seconds) }
        }
        XCTAssertEqual(delays, [1, 2, 4, 8, 16, 30, 30, 30])
    }

    /// Two connections a second were opened, without end.
    func testABusThatDoesNotNameTheOwnerIsOpenedLessAndLessOften() {
        var machine = DaemonMachine()
        _ = machine.start()
        var delays: [Double] = []
        for _ in 0..<8 {
            XCTAssertEqual(machine.busOpened(), [.watchDaemon])
            if case .startTimer(let seconds)? = machine.busClosed(denied).last { delays.append(seconds) }
            XCTAssertEqual(machine.timerFired(), [.openBus])
        }
        XCTAssertEqual(delays, [0.5, 1, 2, 4, 8, 16, 30, 30])
        // The next loss after an answer is the first one again.
        _ = machine.busOpened()
        _ = machine.ownerChanged(nil)
        XCTAssertEqual(machine.busClosed(denied).last, .startTimer(seconds: 0.5))
    }

    func testABusThatIsLostIsOpenedAgain() {
        var machine = readyMachine()
        let lost = DBusError.lost
        XCTAssertEqual(machine.busClosed(lost), [.clearTree, .report(.noBus(lost)), .startTimer(seconds: 0.5)])
        XCTAssertEqual(machine.timerFired(), [.openBus])
        XCTAssertEqual(machine.busOpened(), [.watchDaemon])
    }

    func testAPolicyThatForbidsTheDaemonIsARefusal() {
        var machine = DaemonMachine()
        _ = machine.start()
        _ = machine.busOpened()
        _ = machine.ownerChanged(":1.5")
        XCTAssertEqual(machine.loadReplied(1, error: denied), [.report(.refused(denied))])
        XCTAssertEqual(machine.timerFired(), [])
        XCTAssertEqual(machine.ownerChanged(":1.6"), [.cancelTimer, .report(.loading), .load(2)])
    }

    func testABusThatDoesNotLetUsInIsARefusal() {
        var machine = DaemonMachine()
        _ = machine.start()
        XCTAssertEqual(machine.busClosed(denied), [.report(.refused(denied)), .startTimer(seconds: 0.5)])
    }

    func testADaemonThatDoesNotAnswerIsAskedAgain() {
        var machine = DaemonMachine()
        _ = machine.start()
        _ = machine.busOpened()
        _ = machine.ownerChanged(":1.5")
        XCTAssertEqual(
            machine.loadReplied(1, error: noReply), [.report(.notLoaded(noReply)), .startTimer(seconds: 1)])
        XCTAssertEqual(machine.timerFired(), [.load(2)])
        XCTAssertEqual(machine.loadReplied(2, error: noReply), [.startTimer(seconds: 2)])
        XCTAssertEqual(machine.availability, .notLoaded(noReply))
        XCTAssertEqual(machine.timerFired(), [.load(3)])
        XCTAssertEqual(machine.loadReplied(3, error: nil), [.report(.ready)])
    }

    func testStoppingLeavesNothingBehindFromAnyState() {
        var machine = readyMachine()
        XCTAssertEqual(machine.stop(), [.clearTree, .cancelTimer, .closeBus])
        XCTAssertEqual(machine.stop(), [])
        XCTAssertEqual(machine.busClosed(.closed), [])
        XCTAssertEqual(machine.ownerChanged(":1.5"), [])
        XCTAssertEqual(machine.start(), [.openBus, .report(.connecting)])
    }
}
