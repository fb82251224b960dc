import XCTest

@testable import BlueZSimulator

final class DiscoverySessionTests: XCTestCase {
    func testTheReplyToAStartComesBeforeDiscovering() {
        var bench = DaemonBench()
        XCTAssertEqual(bench.ask(.start).outline, ["reply", "/hci0 Discovering"])
        XCTAssertEqual(bench.ask(.stop).outline, ["reply", "/hci0 Discovering"])
    }

    func testASecondStartByTheSameClientIsInProgress() {
        var bench = DaemonBench()
        _ = bench.ask(.start)
        XCTAssertEqual(bench.error(of: .start), .inProgress)
        XCTAssertEqual(bench.ask(.start, as: ":1.8").outline, ["reply"], "another client shares the scan")
    }

    func testStoppingWithoutHavingStartedFailsWithNoDiscoveryStarted() {
        var bench = DaemonBench()
        XCTAssertEqual(bench.error(of: .stop), .failed("No discovery started"))
        _ = bench.ask(.start)
        XCTAssertEqual(bench.error(of: .stop, as: ":1.8"), .noDiscoveryStarted)
    }

    func testTheScanEndsWithTheLastSession() {
        var bench = DaemonBench()
        _ = bench.ask(.start, as: ":1.7")
        _ = bench.ask(.start, as: ":1.8")
        XCTAssertEqual(bench.ask(.stop, as: ":1.7").outline, ["reply"])
        XCTAssertTrue(bench.isListening)
        XCTAssertEqual(bench.ask(.stop, as: ":1.8").outline, ["reply", "/hci0 Discovering"])
        XCTAssertFalse(bench.isListening)
    }

    func testASessionDiesWithItsClient() {
        var bench = DaemonBench()
        _ = bench.ask(.start)
        XCTAssertEqual(bench.signals { $0.clientLeft(":1.7") }.map(\.outline), ["/hci0 Discovering"])
        XCTAssertTrue(bench.daemon.discovery.scans[0]?.scanning.isEmpty == true)
    }

    func testClientsAreWatchedWhileTheyHaveSomethingHere() {
        var bench = DaemonBench()
        bench.daemon.receive(Request.start.call(by: ":1.7", CallID(number: 1)))
        XCTAssertTrue(bench.daemon.core.takeEffects().contains(.watch(client: ":1.7")))
        bench.daemon.receive(Request.stop.call(by: ":1.7", CallID(number: 2)))
        XCTAssertTrue(bench.daemon.core.takeEffects().contains(.unwatch(client: ":1.7")))
    }

    func testAFilterOutlivesAStopAndEndsWithAnEmptyOne() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Transport", .string("le"))))
        _ = bench.ask(.start)
        _ = bench.ask(.stop)
        XCTAssertEqual(bench.daemon.discovery.scans[0]?.waiting.count, 1)
        _ = bench.ask(.filter())
        XCTAssertEqual(bench.daemon.discovery.scans[0]?.waiting.count, 0)
    }

    /// BlueZ 5.66 counts the scanning sessions and ignores their owners.
    func testAClientThatOnlySetAFilterAndLeavesEndsTheScanOfTheOneOther() {
        var bench = DaemonBench()
        _ = bench.ask(.start, as: ":1.7")
        _ = bench.ask(.filter(("Transport", .string("le"))), as: ":1.8")
        XCTAssertEqual(bench.signals { $0.clientLeft(":1.8") }.map(\.outline), ["/hci0 Discovering"])
        XCTAssertFalse(bench.isListening)
        XCTAssertEqual(bench.error(of: .start, as: ":1.7"), .inProgress, "its session is still there")
        XCTAssertEqual(bench.ask(.stop, as: ":1.7").outline, ["reply", "/hci0 Discovering"])
        XCTAssertEqual(bench.ask(.start, as: ":1.7").outline, ["reply", "/hci0 Discovering"])
    }

    func testNothingStartsWhileTheAdapterIsOff() {
        var bench = DaemonBench(adapters: [VirtualAdapter(isPowered: false)])
        XCTAssertEqual(bench.error(of: .start), .notReady)
        XCTAssertEqual(bench.error(of: .stop), .notReady)
        XCTAssertEqual(bench.error(of: .filter()), .notReady)
    }

    func testSimulatedFailuresAnswerTheNextStartsAndLeaveNoSession() {
        var bench = DaemonBench()
        bench.daemon.core.faults.startDiscovery = [.inProgress, .failed("no luck")]
        XCTAssertEqual(bench.error(of: .start), .inProgress)
        XCTAssertEqual(bench.error(of: .start), .failed("no luck"))
        XCTAssertEqual(bench.ask(.start).outline, ["reply", "/hci0 Discovering"])
    }

    func testARefusedCallerReceivesAccessDenied() {
        var bench = DaemonBench()
        bench.daemon.core.faults.refusal = .accessDenied
        XCTAssertEqual(bench.error(of: .start)?.name, "org.freedesktop.DBus.Error.AccessDenied")
    }

    func testAScanThatDiesLeavesTheSessionAndStartsAgainAfterAStop() {
        var bench = DaemonBench()
        _ = bench.ask(.start)
        XCTAssertEqual(
            bench.signals { $0.discovery.scanDied(on: 0, isAnnounced: true, &$0.core) }.map(\.outline),
            ["/hci0 Discovering"])
        XCTAssertEqual(bench.receive(Cast.tag), [])
        XCTAssertEqual(bench.error(of: .start), .inProgress)
        _ = bench.ask(.stop)
        _ = bench.ask(.start)
        XCTAssertEqual(bench.receive(Cast.tag).map(\.outline), ["+ _00_02"])
    }
}
