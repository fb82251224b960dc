import TestSupport
import XCTest

@testable import BlueZSimulator

final class DiscoverySessionTests: XCTestCase {
    func testClientsAreWatchedWhileTheyHaveSomethingHere() {
        var bench = DaemonBench()
        bench.daemon.receive(Request.start.call(by: ":1.7", CallID(number: 1)))
        XCTAssertTrue(bench.daemon.core.takeEffects().contains(.watch(client: ":1.7")))
        bench.daemon.receive(Request.stop.call(by: ":1.7", CallID(number: 2)))
        XCTAssertTrue(bench.daemon.core.takeEffects().contains(.unwatch(client: ":1.7")))
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

    func testSessionsBeginAndEndAsInBlueZ() {
        check(
            "the reply to a start comes before discovering", DaemonBench(),
            (.ask(.start), ["reply", "/hci0 Discovering"]), (.ask(.stop), ["reply", "/hci0 Discovering"]))
        check(
            "a second start by the same client is in progress", DaemonBench(), (.ask(.start), nil),
            (.refused(.start, .inProgress), []),
            // another client shares the scan.
            (.ask(.start, as: ":1.8"), ["reply"]))
        check(
            "stopping without having started fails with no discovery started", DaemonBench(),
            (.refused(.stop, .failed("No discovery started")), []), (.ask(.start), nil),
            (.refused(.stop, as: ":1.8", .noDiscoveryStarted), []))
        check(
            "the scan ends with the last session", DaemonBench(), (.ask(.start, as: ":1.7"), nil),
            (.ask(.start, as: ":1.8"), nil), (.ask(.stop, as: ":1.7"), ["reply"]), (.holds { $0.isListening }, nil),
            (.ask(.stop, as: ":1.8"), ["reply", "/hci0 Discovering"]), (.holds { !$0.isListening }, nil))
        check(
            "a session dies with its client", DaemonBench(), (.ask(.start), nil),
            (.signals({ $0.clientLeft(":1.7") }), ["/hci0 Discovering"]),
            (.holds { $0.daemon.discovery.scans[0]?.scanning.isEmpty == true }, nil))
        check(
            "a filter outlives a stop and ends with an empty one", DaemonBench(),
            (.ask(.filter(("Transport", .string("le")))), nil), (.ask(.start), nil), (.ask(.stop), nil),
            (.holds { $0.daemon.discovery.scans[0]?.sessions.map(\.isScanning) == [false] }, nil),
            (.ask(.filter()), nil),
            (.holds { $0.daemon.discovery.scans[0]?.sessions == [] }, nil))
        // BlueZ 5.66 counts the scanning sessions and ignores their owners.
        check(
            "a client that only set a filter and leaves ends the scan of the one other", DaemonBench(),
            (.ask(.start, as: ":1.7"), nil), (.ask(.filter(("Transport", .string("le"))), as: ":1.8"), nil),
            (.signals({ $0.clientLeft(":1.8") }), ["/hci0 Discovering"]), (.holds { !$0.isListening }, nil),
            // its session is still there.
            (.refused(.start, as: ":1.7", .inProgress), []),
            (.ask(.stop, as: ":1.7"), ["reply", "/hci0 Discovering"]),
            (.ask(.start, as: ":1.7"), ["reply", "/hci0 Discovering"]))
        check(
            "nothing starts while the adapter is off", DaemonBench(adapters: [VirtualAdapter(isPowered: false)]),
            (.refused(.start, .notReady), []), (.refused(.stop, .notReady), []), (.refused(.filter(), .notReady), []))
        check(
            "a scan that dies leaves the session and starts again after a stop", DaemonBench(), (.ask(.start), nil),
            (.signals({ $0.discovery.scanDied(on: 0, isAnnounced: true, &$0.core) }), ["/hci0 Discovering"]),
            (.receive(Cast.tag), []), (.refused(.start, .inProgress), []), (.ask(.stop), nil), (.ask(.start), nil),
            (.receive(Cast.tag), ["+ _00_02"]))
    }
}
