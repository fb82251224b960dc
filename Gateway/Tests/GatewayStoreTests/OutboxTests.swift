import Foundation
import GRDB
import GatewayCore
import XCTest

@testable import GatewayStore

/// A clock that a test sets.
private final class TestUptime: @unchecked Sendable {
    private let lock = NSLock()
    private var value = Duration.zero
    func set(_ duration: Duration) { lock.withLock { value = duration } }
    var now: @Sendable () -> Duration { { [self] in lock.withLock { value } } }
}

final class OutboxTests: XCTestCase {
    private func path() throws -> String { try temporaryFolder(self).appendingPathComponent("outbox.sqlite").path }

    private func outbox(_ path: String, _ limits: OutboxLimits = OutboxLimits()) throws -> Outbox {
        try Outbox(path: path, limits: limits, logger: silent)
    }

    func testEachCommitIsSynchronisedAndTheFileIsExclusive() throws {
        let path = try path()
        let outbox = try outbox(path)
        let modes = try ["journal_mode", "synchronous", "locking_mode"].flatMap { try outbox.execute("PRAGMA \($0)") }
        XCTAssertEqual(modes, ["\"wal\"", "2", "\"exclusive\""])
        XCTAssertThrowsError(try self.outbox(path)) { XCTAssertEqual($0 as? OutboxError, .inUse(path: path)) }
        let permissions = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        XCTAssertEqual(permissions, 0o600)
        outbox.close()
        XCTAssertThrowsError(try outbox.append([value(1)]))
        XCTAssertNoThrow(try self.outbox(path))
    }

    func testNumbersDoNotRepeatAfterDeletionAndRestart() throws {
        let path = try path()
        var outbox = try outbox(path)
        let first = try outbox.append([value(1), value(2), value(1)])
        XCTAssertEqual(first.map(\.sequence), [1, 1, 2])
        try outbox.acknowledge(first.map(Delivery.init))
        XCTAssertEqual(try outbox.append([value(1)]).map(\.sequence), [3])
        outbox.close()
        outbox = try self.outbox(path)
        let stored = try outbox.values(after: 0, count: 10)
        XCTAssertEqual(stored.map(\.sequence), [3])
        try outbox.acknowledge(stored.map(Delivery.init))
        outbox.close()
        outbox = try self.outbox(path)
        let last = try outbox.append([value(1), value(2)])
        XCTAssertEqual(last.map(\.sequence), [4, 2])
        XCTAssertEqual(last.map(\.id), [5, 6])
        XCTAssertEqual(try outbox.values(after: 0, count: 10), last)
        XCTAssertEqual(try outbox.values(after: 5, count: 10), [last[1]])
        XCTAssertEqual(try outbox.values(after: 0, count: 10, bytes: 1), [last[0]])
    }

    func testAValueThatCannotBeStoredNamesTheReasonAndStoresNothing() throws {
        let outbox = try outbox(path(), OutboxLimits(bytes: 5_000, bodyBytes: 4_990))
        let large = #"{"v":"\#(String(repeating: "x", count: 5_000))"}"#
        let tooMuch = #"{"v":"\#(String(repeating: "x", count: 4_980))"}"#
        var unnamed = try value(1)
        unnamed.topic = ""
        for bad in [try value(1, body: "[]"), try value(1, body: large), try value(1, body: tooMuch), unnamed] {
            XCTAssertThrowsError(try outbox.append([value(1), bad])) { error in
                guard case OutboxError.invalid = error else { return XCTFail("\(error)") }
            }
        }
        XCTAssertEqual(try outbox.statistics().depth, 0)
    }

    func testTheSizeIsBoundedAndTheNextValueReportsWhatWasDropped() throws {
        let size = 64 + 7 + "bluecap/g/reading/c0ffee000001".utf8.count
        let path = try path()
        var outbox = try outbox(path, OutboxLimits(bytes: 3 * size))
        try outbox.append([value(1), value(1), value(2)])
        try outbox.append([value(2), value(2)])  // drops both of device 1
        XCTAssertEqual(try outbox.values(after: 0, count: 10).map(\.dropped), [0, 0, 0])
        let next = try outbox.append([value(1)])  // drops one of device 2
        XCTAssertEqual(next.map(\.dropped), [2])
        XCTAssertEqual(try outbox.values(after: 0, count: 10).map(\.dropped), [1, 0, 2])
        XCTAssertEqual(try outbox.statistics().dropped[.size], 3)
        XCTAssertEqual(try outbox.statistics().bytes, 3 * size)
        outbox.close()
        outbox = try self.outbox(path, OutboxLimits(bytes: size))  // a lower limit drops both of device 2
        XCTAssertEqual(try outbox.statistics().dropped[.size], 5)
        XCTAssertEqual(try outbox.append([value(2)]).map(\.dropped), [3])
        XCTAssertEqual(try outbox.append([value(1)]).map(\.dropped), [3], "2 before, and the carrier itself")
    }

    func testADropThatAnAcknowledgedPayloadDidNotReportIsReportedByTheNext() throws {
        let size = 64 + 7 + "bluecap/g/reading/c0ffee000001".utf8.count
        let outbox = try outbox(path(), OutboxLimits(bytes: 2 * size))
        let sent = try outbox.append([value(1), value(1)])
        try outbox.append([value(2)])  // drops the first, and the second was sent without a report
        try outbox.acknowledge([Delivery(sent[1])])
        XCTAssertEqual(try outbox.append([value(1)]).map(\.dropped), [1])
    }

    func testAgeCountsTheTimeThatTheOutboxIsOpen() throws {
        let (path, uptime) = (try path(), TestUptime())
        let limits = OutboxLimits(age: .seconds(100))
        var outbox = try Outbox(path: path, limits: limits, logger: silent, uptime: uptime.now)
        // The times of the values, far apart and not in order, have no influence.
        try outbox.append([value(1, time: .distantFuture), value(1, time: .distantPast)])
        uptime.set(.seconds(60))
        try outbox.append([value(1)])
        uptime.set(.seconds(100))
        try outbox.expire()
        XCTAssertEqual(try outbox.statistics().depth, 3)
        XCTAssertEqual(try outbox.statistics().oldestAge, .seconds(100))
        uptime.set(.seconds(50))  // runs backwards: nothing changes
        try outbox.expire()
        XCTAssertEqual(try outbox.statistics().oldestAge, .seconds(100))
        outbox.close()
        // Another start, and the machine's uptime begins at 0: the age goes on from 100 s.
        uptime.set(.zero)
        outbox = try Outbox(path: path, limits: limits, logger: silent, uptime: uptime.now)
        XCTAssertEqual(try outbox.statistics().depth, 3)
        uptime.set(.milliseconds(1))
        try outbox.expire()
        XCTAssertEqual(try outbox.statistics().depth, 1)
        XCTAssertEqual(try outbox.statistics().dropped[.age], 2)
        XCTAssertEqual(try outbox.values(after: 0, count: 9).map(\.dropped), [2])
        uptime.set(.seconds(61))
        try outbox.expire()
        XCTAssertEqual(try outbox.statistics().depth, 0)
        XCTAssertNil(try outbox.statistics().oldestAge)
    }

    func testAStampFromTheFutureIsClamped() throws {
        let (path, uptime) = (try path(), TestUptime())
        let limits = OutboxLimits(age: .seconds(100))
        var outbox = try Outbox(path: path, limits: limits, logger: silent, uptime: uptime.now)
        try outbox.append([value(1)])
        outbox.close()
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: "UPDATE message SET stamp = 9000000000000") }
        try queue.close()
        outbox = try Outbox(path: path, limits: limits, logger: silent, uptime: uptime.now)
        XCTAssertEqual(try outbox.statistics().oldestAge, .zero)
        uptime.set(.seconds(101))
        try outbox.expire()
        XCTAssertEqual(try outbox.statistics().depth, 0)
    }

    func testNumbersOfForgottenDevicesDoNotRepeat() throws {
        let outbox = try outbox(path(), OutboxLimits(devices: 2))
        try outbox.acknowledge(outbox.append([value(1), value(1), value(1)]).map(Delivery.init))
        let kept = try outbox.append([value(2)])
        try outbox.append([value(3)])  // removes device 1
        let returned = try outbox.append([value(1)])
        XCTAssertEqual(returned.map(\.sequence), [4])
        XCTAssertEqual(returned.map(\.isRestarted), [true])
        XCTAssertEqual(try outbox.append([value(2)]).map(\.sequence), [2], "it has values and stays: \(kept)")
    }

    func testAFullDiskLeavesWhatWasStored() throws {
        let outbox = try outbox(path())
        let before = try outbox.append([value(1)])
        try outbox.execute("PRAGMA max_page_count = 1")
        var count = 0
        XCTAssertThrowsError(try { while true { count += try outbox.append([value(1)]).count } }()) { error in
            guard case OutboxError.diskFull = error else { return XCTFail("\(error)") }
            XCTAssert("\(error)".hasPrefix("No space is left"), "\(error)")
        }
        XCTAssertEqual(try outbox.values(after: 0, count: .max).count, 1 + count)
        XCTAssertEqual(try outbox.values(after: 0, count: 1), before)
        try outbox.execute("PRAGMA max_page_count = 1000000")
        XCTAssertEqual(try outbox.append([value(1)]).map(\.sequence), [Int64(count) + 2])
    }

    func testADatabaseOfAnotherProgramIsNotTouched() throws {
        let path = try path()
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: "CREATE TABLE other (id INTEGER)") }
        try queue.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        XCTAssertThrowsError(try outbox(path)) { error in
            guard case OutboxError.cannotOpen = error else { return XCTFail("\(error)") }
        }
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), before)
    }

    func testAMissingFolderIsNamed() throws {
        XCTAssertThrowsError(try outbox(path() + "/no/outbox.sqlite")) { error in
            guard case OutboxError.cannotOpen(_, let reason) = error else { return XCTFail("\(error)") }
            XCTAssert(reason.contains("folder"), reason)
        }
    }
}
