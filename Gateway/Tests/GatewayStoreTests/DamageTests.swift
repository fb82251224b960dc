import Foundation
import GatewayCore
import XCTest

@testable import GatewayStore

final class DamageTests: XCTestCase {
    private var folder = URL(fileURLWithPath: "/")
    private var path: String { folder.appendingPathComponent("outbox.sqlite").path }

    override func setUpWithError() throws { folder = try temporaryFolder(self) }

    private func outbox() throws -> Outbox { try Outbox(path: path, logger: silent) }

    private func damaged() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.contains(".damaged-") && !$0.hasSuffix("-wal") }.sorted()
    }

    /// Writes over the part of the file that a fraction of its length determines.
    private func overwrite(from start: Double, _ count: Int = 8_192) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        let size = try file.seekToEnd()
        try file.seek(toOffset: UInt64(Double(size) * start))
        try file.write(contentsOf: Data(repeating: 0xA5, count: count))
        try file.close()
    }

    private func fill(_ outbox: Outbox, _ count: Int = 4_000) throws {
        let body = #"{"v":"\#(String(repeating: "x", count: 1_000))"}"#
        for _ in 0..<count / 100 { try outbox.append((0..<100).map { _ in try value(1, body: body) }) }
    }

    func testADamagedFileIsKeptAndNumbersContinueAboveTheEarlierOnes() throws {
        var outbox = try outbox()
        try fill(outbox, 200)
        outbox.close()
        var last: Int64 = 200
        // The header, a page, the length, and a file of another kind.
        let damages: [() throws -> Void] = [
            { try self.overwrite(from: 0, 100) }, { try self.overwrite(from: 0.5, 500_000) },
            { try Data(repeating: 1, count: 5_000).write(to: URL(fileURLWithPath: self.path)) },
            { XCTAssertEqual(truncate(self.path, 20_000), 0) },
        ]
        for (index, damage) in damages.enumerated() {
            try damage()
            outbox = try self.outbox()
            XCTAssertEqual(try damaged().count, index + 1)
            let stored = try outbox.append([value(1), value(1)])
            XCTAssertEqual(stored.map(\.isRestarted), [true, false])
            XCTAssertGreaterThan(stored[0].sequence, last)
            XCTAssertGreaterThan(stored[0].id, last)
            XCTAssertEqual(stored[1].sequence, stored[0].sequence + 1)
            XCTAssertLessThan(stored[1].sequence, 1 << 53)
            XCTAssertEqual(try outbox.values(after: 0, count: 9), stored)
            last = stored[1].sequence
            try fill(outbox, 200)
            outbox.close()
        }
        try overwrite(from: 0, 100)
        outbox = try self.outbox()
        XCTAssertEqual(try damaged().count, 4, "the oldest file is removed")
    }

    func testNumbersIncreaseAlsoIfTheClockWasSetBack() throws {
        // As if a file had been set aside in the year 2100.
        let epoch: Int64 = 4_102_444_800
        try Data().write(to: URL(fileURLWithPath: path + ".damaged-\(epoch)"))
        try Data("no database at all, but long enough to be one".utf8).write(to: URL(fileURLWithPath: path))
        let outbox = try outbox()
        XCTAssertGreaterThan(try outbox.append([value(1)])[0].sequence, epoch << 20)
    }

    func testDamageThatAppearsWhileTheFileIsOpenIsFound() async throws {
        var outbox = try outbox()
        try fill(outbox)
        outbox.close()
        outbox = try self.outbox()
        try overwrite(from: 0, 4_000_000)
        _ = try outbox.values(after: 0, count: .max)
        XCTAssertEqual(try damaged().count, 1)
        let stored = try outbox.append([value(1)])
        XCTAssertEqual(stored.map(\.isRestarted), [true])
        XCTAssertGreaterThan(stored[0].id, 4_000)
        XCTAssertEqual(try outbox.values(after: 0, count: .max), stored)
    }

    func testALogWithoutItsFileIsNotAppliedToANewOne() throws {
        let outbox = try outbox()
        try outbox.append([value(1)])
        // The copy of the log of a process that is killed.
        try FileManager.default.copyItem(atPath: path + "-wal", toPath: path + ".copy")
        outbox.close()
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: path + ".copy", toPath: path + "-wal")
        let next = try self.outbox()
        XCTAssertEqual(try next.values(after: 0, count: 9), [])
        XCTAssertGreaterThan(try next.append([value(1)])[0].sequence, 1)
    }
}
