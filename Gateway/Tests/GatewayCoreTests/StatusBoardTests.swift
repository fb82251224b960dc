import Foundation
import GatewayCore
import XCTest

final class StatusBoardTests: XCTestCase {
    /// Time that a test sets.
    // `@unchecked`: `seconds` is accessed only while `lock` is held.
    private final class TestTime: @unchecked Sendable {
        private let lock = NSLock()
        private var now = 0.0
        var seconds: Double {
            get { lock.withLock { now } }
            set { lock.withLock { now = newValue } }
        }
    }

    private let time = TestTime()

    private func board(_ change: (inout StatusBoard.Limits) -> Void = { _ in }) -> StatusBoard {
        var limits = StatusBoard.Limits()
        change(&limits)
        let time = time
        return StatusBoard(
            gateway: "g", version: "1", broker: "b:1883", limits: limits, uptime: { .seconds(time.seconds) },
            date: { Date(timeIntervalSince1970: 1_000_000 + time.seconds) })
    }

    private func device(_ number: Int) -> DeviceName {
        DeviceName(String(format: "c0ffee%06x", number))!  // twelve digits
    }

    func testStrengthIsSmoothedAndKeptInStepsOfFiveSeconds() throws {
        let board = board()
        board.reported(device(1), name: "one", strength: -60)
        board.reported(device(1), name: nil, strength: -40)
        time.seconds = 5
        board.reported(device(1), name: "", strength: nil)
        time.seconds = 16
        board.reported(device(1), name: nil, strength: -80)
        let found = try XCTUnwrap(board.snapshot().devices.first)
        XCTAssertEqual(found.name, "one")
        XCTAssertEqual(found.strength, -80, "After ten seconds of silence, a report counts as a whole.")
        XCTAssertEqual(found.history, .init(end: 3, values: [-55, nil, nil, -80]))
        XCTAssertEqual(found.reported, 1_000_016_000)
        time.seconds = 1_000
        board.reported(device(1), name: nil, strength: 500)
        XCTAssertEqual(board.snapshot().devices.first?.history, .init(end: 200, values: [20]))
        time.seconds = 1_300
        board.reported(device(1), name: nil, strength: -1_000)
        XCTAssertEqual(board.snapshot().devices.first?.history, .init(end: 260, values: [-127]))
        time.seconds = 1_590
        board.reported(device(1), name: nil, strength: -50)
        let values = try XCTUnwrap(board.snapshot().devices.first?.history.values)
        XCTAssertEqual(values, [-127] + Array(repeating: nil, count: 57) + [-50])
    }

    func testChangesHaveOnlyWhatHasChanged() {
        let board = board()
        board.reported(device(1), name: "one", strength: -60)
        board.reported(device(2), name: "two", strength: -60)
        board.value(device(1), service: "180f", characteristic: "2a19", text: "1")
        board.refused("a", why: "b")
        var (snapshot, mark) = board.changes(since: nil)
        XCTAssertTrue(snapshot.whole)
        XCTAssertEqual(snapshot.devices.count, 2)
        (snapshot, mark) = board.changes(since: mark)
        XCTAssertFalse(snapshot.whole)
        XCTAssertEqual([snapshot.devices.count, snapshot.values.count, snapshot.refusals.count], [0, 0, 0])
        time.seconds = 7
        board.decoded(device(2), [StatusReading(name: "temperature", value: .number(20), unit: "°C")])
        board.value(device(1), service: "180f", characteristic: "2a19", text: "2")
        board.refused("c", why: "d")
        (snapshot, mark) = board.changes(since: mark)
        XCTAssertEqual(snapshot.devices.map(\.name), ["two"])
        XCTAssertEqual(snapshot.values.map(\.text), ["2"])
        XCTAssertEqual(snapshot.refusals.map(\.number), [2])
        board.reported(device(2), name: nil, strength: -60)
        (snapshot, mark) = board.changes(since: mark)
        XCTAssertEqual(snapshot.devices.map(\.history), [.init(end: 1, values: [-60])])
        board.link(device(1), .connecting, detail: "slot 1")
        (snapshot, mark) = board.changes(since: mark)
        XCTAssertEqual(snapshot.devices.map(\.detail), ["slot 1"])
    }

    func testSilentDevicesAreRemovedAndNamed() {
        let board = board()
        board.reported(device(1), name: nil, strength: -60)
        board.link(device(2), .connected)
        board.reported(device(3), name: nil, strength: -60)
        let mark = board.changes(since: nil).mark
        time.seconds = 899
        board.reported(device(3), name: nil, strength: -60)
        time.seconds = 901
        var snapshot = board.changes(since: mark).snapshot
        XCTAssertEqual(snapshot.removed, ["c0ffee000001"])
        XCTAssertEqual(snapshot.counts.devices, 2)
        XCTAssertEqual(snapshot.counts.connected, 1)
        board.reported(device(1), name: "again", strength: -60)
        snapshot = board.changes(since: mark).snapshot
        XCTAssertEqual(snapshot.removed, [])
        XCTAssertTrue(snapshot.devices.map(\.name).contains("again"))
        board.link(device(2), .none)
        XCTAssertEqual(board.numbers().counts.connected, 0)
    }

    func testAllThatIsHeldIsBounded() {
        let board = board {
            ($0.devices, $0.values, $0.refusals, $0.readings, $0.text) = (100, 10, 5, 4, 16)
        }
        board.link(device(0), .connected)
        let mark = board.changes(since: nil).mark
        for number in 1...1_000 {
            time.seconds = Double(number) / 1000
            board.reported(device(number), name: String(repeating: "é", count: 1_000), strength: -60)
            board.value(
                device(number), service: "180f", characteristic: "2a19", text: String(repeating: "a", count: 99))
            board.refused(String(repeating: "w", count: 99), why: "\(number)")
            board.decoded(device(number), (0..<40).map { StatusReading(name: "\($0)", value: .number(1)) })
        }
        let snapshot = board.snapshot()
        XCTAssertLessThanOrEqual(snapshot.devices.count, 100)
        XCTAssertGreaterThanOrEqual(snapshot.devices.count, 95)
        XCTAssertTrue(snapshot.devices.contains { $0.device == "c0ffee000000" }, "A device with a link was removed.")
        XCTAssertTrue(snapshot.devices.contains { $0.device == "c0ffee0003e8" }, "The last device was removed.")
        XCTAssertTrue(snapshot.devices.allSatisfy { ($0.name ?? "").utf8.count <= 16 && $0.readings.count <= 4 })
        XCTAssertEqual(snapshot.values.count, 10)
        XCTAssertEqual(snapshot.values.last?.text, "aaaaaaaaaaaaa…")
        XCTAssertEqual(snapshot.refusals.map(\.why), (996...1_000).map { "\($0)" })
        XCTAssertEqual(snapshot.counts.refusals, 1_000)
        XCTAssertTrue(board.changes(since: mark).snapshot.whole, "So many removals are not held.")
    }

    func testTimesFollowTheClockOfTheDay() {
        let time = time
        let board = StatusBoard(
            gateway: "g", version: "1", broker: "b", uptime: { .seconds(time.seconds) },
            date: { Date(timeIntervalSince1970: 500 + time.seconds) })
        time.seconds = 10
        board.broker(connected: true)
        time.seconds = 20
        board.broker(connected: true)
        XCTAssertEqual(board.numbers().gateway.started, 500_000)
        XCTAssertEqual(board.numbers().broker.since, 510_000)
        board.broker(connected: false, reason: "ended")
        XCTAssertEqual(board.numbers().broker.since, 520_000)
        XCTAssertEqual(board.numbers().broker.reason, "ended")
    }

    func testSnapshotsSurviveJSON() throws {
        let board = board()
        board.reported(device(1), name: "\u{2028}\u{1F600}\"\\\u{0}", strength: -60)
        board.decoded(
            device(1),
            [
                StatusReading(name: "a", value: .flag(true)), StatusReading(name: "b", value: .number(0.5)),
                StatusReading(name: "c", value: .text("1")), StatusReading(name: "d", value: .number(1)),
                StatusReading(name: "e", value: .number(-1e300)), StatusReading(name: "f", value: .number(1e-9)),
            ])
        board.link(device(1), .waiting, detail: "line\r\n\u{1F}\u{7F}")
        time.seconds = 12
        board.reported(device(1), name: nil, strength: -60)
        board.link(device(2), .none)
        board.value(device(1), service: "180f", characteristic: "2a19", text: "\"")
        board.value(device(2), service: "180f", characteristic: "2a19", text: "")
        board.refused("a", why: "b")
        board.broker(connected: false, reason: "c")
        board.queue(depth: 1, stored: 2, acknowledged: 3, dropped: 4)
        let snapshot = board.snapshot()
        for json in [snapshot.json, try JSONEncoder().encode(snapshot)] {
            XCTAssertEqual(try JSONDecoder().decode(StatusSnapshot.self, from: json), snapshot)
            XCTAssertFalse(json.contains { $0 < 0x20 })
        }
        let members = try [snapshot.json, JSONEncoder().encode(snapshot)].map {
            try XCTUnwrap(JSONSerialization.jsonObject(with: $0) as? NSDictionary)
        }
        XCTAssertEqual(members[0], members[1])
        board.decoded(device(1), [StatusReading(name: "g", value: .number(-.infinity))])
        XCTAssertNoThrow(try JSONSerialization.jsonObject(with: board.snapshot().json))
    }
}
