import BlueCapDBus
import TestSupport
import XCTest

@testable import BlueCapBlueZ

final class DaemonMachineTests: XCTestCase {
    private let noServer = DBusError(name: DBusError.Name.noServer, message: "No such socket")
    private let denied = DBusError(name: DBusError.Name.accessDenied, message: "Rejected send message")
    private let noReply = DBusError(name: DBusError.Name.noReply, message: "")

    private func loadingMachine() -> DaemonMachine {
        var machine = DaemonMachine()
        _ = machine.start()
        _ = machine.busOpened()
        _ = machine.ownerChanged(":1.5")
        return machine
    }

    private func readyMachine() -> DaemonMachine {
        var machine = loadingMachine()
        _ = machine.loadReplied(1, error: nil)
        XCTAssertEqual(machine.state, .ready(owner: ":1.5"))
        return machine
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

    func testTheBusIsOpenedAndTheDaemonLoaded() {
        let lost = DBusError.lost
        check(
            "from the bus to the daemon to its objects", DaemonMachine(), (.start, [.openBus, .report(.connecting)]),
            (.busOpened, [.watchDaemon]), (.ownerChanged(":1.5"), [.cancelTimer, .report(.loading), .load(1)]),
            (.loadReplied(1), [.report(.ready)]))
        check(
            "a bus without a daemon is watched until one comes", DaemonMachine(), (.start, nil), (.busOpened, nil),
            (.ownerChanged(nil), [.cancelTimer, .report(.noDaemon)]),
            (.ownerChanged(":1.9"), [.cancelTimer, .report(.loading), .load(1)]))
        check(
            "a daemon that dies takes its objects along", readyMachine(),
            (.ownerChanged(nil), [.clearTree, .cancelTimer, .report(.noDaemon)]),
            (.ownerChanged(":1.6"), [.cancelTimer, .report(.loading), .load(2)]))
        check(
            "a new owner of the name is loaded again", readyMachine(),
            (.ownerChanged(":1.6"), [.clearTree, .cancelTimer, .report(.loading), .load(2)]))
        check(
            "the same owner reported twice is loaded once", readyMachine(), (.ownerChanged(":1.5"), []))
        check(
            "a late answer of a dead daemon is ignored", loadingMachine(), (.ownerChanged(":1.6"), nil),
            (.loadReplied(1), []),
            (.loadReplied(2), [.report(.ready)]))
        check(
            "a bus that is lost is opened again", readyMachine(),
            (.busClosed(lost), [.clearTree, .report(.noBus(lost)), .startTimer(seconds: 0.5)]),
            (.timerFired, [.openBus]), (.busOpened, [.watchDaemon]))
        check(
            "a policy that forbids the daemon is a refusal", loadingMachine(),
            (.loadReplied(1, denied), [.report(.refused(denied))]), (.timerFired, []),
            (.ownerChanged(":1.6"), [.cancelTimer, .report(.loading), .load(2)]))
        check(
            "a bus that does not let us in is a refusal", DaemonMachine(), (.start, nil),
            (.busClosed(denied), [.report(.refused(denied)), .startTimer(seconds: 0.5)]))
        check(
            "a daemon that does not answer is asked again", loadingMachine(),
            (.loadReplied(1, noReply), [.report(.notLoaded(noReply)), .startTimer(seconds: 1)]),
            (.timerFired, [.load(2)]), (.loadReplied(2, noReply), [.startTimer(seconds: 2)]),
            (.holds { [self] in $0.availability == .notLoaded(noReply) }, nil), (.timerFired, [.load(3)]),
            (.loadReplied(3), [.report(.ready)]))
        check(
            "stopping leaves nothing behind from any state", readyMachine(),
            (.stop, [.clearTree, .cancelTimer, .closeBus]), (.stop, []), (.busClosed(.closed), []),
            (.ownerChanged(":1.5"), []), (.start, [.openBus, .report(.connecting)]))
    }
}
