import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

@testable import GatewayStore

/// The outbox in a process of its own, which is killed, whose disk is full, and whose clock is set.
final class ProcessTests: XCTestCase {
    func testWhatAKilledProcessHadStoredIsThere() throws {
        let kills = ProcessInfo.processInfo.environment["BLUECAP_LONG"] == nil ? 20 : 200
        let writer = builtProgram("outbox-writer")
        let path = try temporaryFolder(self).appendingPathComponent("outbox.sqlite").path
        var generator = SeededNumbers(SeededNumbers.seed)
        print("BLUECAP_SEED=\(SeededNumbers.seed)")
        var (stored, deleting): (Set<String>, Set<String>) = ([], [])
        var last: [String: Int64] = [:]
        for kill in 0..<kills {
            let child = try Child(writer, ["append", path])
            for _ in 0..<Int.random(in: 0...120, using: &generator) {
                guard let line = child.line() else { return XCTFail("the writer has ended") }
                try note(line, &stored, &deleting, &last)
            }
            child.kill()
            while let line = child.line() { try note(line, &stored, &deleting, &last) }
            let outbox = try Outbox(path: path, logger: silent)
            let values = try outbox.values(after: 0, count: .max)
            let present = Set(values.map { "\($0.device) \($0.sequence)" })
            let lost = stored.subtracting(deleting).subtracting(present)
            XCTAssertEqual(lost, [], "after kill \(kill)")
            for (device, values) in Dictionary(grouping: values, by: \.device) {
                let sequences = values.map(\.sequence)
                XCTAssertEqual(sequences, sequences.sorted())
                XCTAssertEqual(Set(sequences).count, sequences.count, "\(device) has a number twice")
                // A transaction that was not reported may be there.
                last[device.description] = max(last[device.description] ?? 0, sequences.last ?? 0)
            }
            XCTAssertEqual(try outbox.statistics().dropped.values.reduce(0, +), 0)
            outbox.close()
        }
        XCTAssertGreaterThan(stored.count, kills)
        print("\(kills) kills, \(stored.count) values reported, \(deleting.count) acknowledged")
    }

    /// Notes a line of the writer. A number is greater than all that the device had before.
    private func note(
        _ line: String, _ stored: inout Set<String>, _ deleting: inout Set<String>, _ last: inout [String: Int64]
    ) throws {
        let words = line.split(separator: " ").map(String.init)
        guard words.count == 3, let sequence = Int64(words[2]) else { return XCTFail(line) }
        let name = words[1] + " " + words[2]
        guard words[0] == "stored" else {
            deleting.insert(name)
            return
        }
        XCTAssertGreaterThan(sequence, last[words[1]] ?? 0, "\(words[1]) repeats a number")
        XCTAssert(stored.insert(name).inserted)
        last[words[1]] = sequence
    }

    func testOnAFullFileSystemWhatWasStoredStaysAndSpaceIsUsedAgain() throws {
        let writer = builtProgram("outbox-writer")
        let folder = try temporaryFolder(self)
        // The mount belongs to the child's namespace and ends with it.
        let child = try Child(
            "/usr/bin/env",
            [
                "unshare", "--mount", "--map-root-user", "sh", "-c",
                "mount -t tmpfs -o size=12m tmpfs \"$1\" || { echo no mount; exit 1; }; exec \"$2\" fill \"$1/o.sqlite\"",
                "sh", folder.path, writer,
            ])
        var results: [String: [Int]] = [:]
        while let line = child.line() {
            if line == "no mount" { throw XCTSkip("this user may not mount a tmpfs in a namespace of its own") }
            let words = line.split(separator: " ").map(String.init)
            results[words[0]] = words.dropFirst().compactMap(Int.init)
            print(line)
        }
        child.kill()
        // What the disk took, and differences that are 0 if all is there.
        XCTAssertEqual(results["full"].map { $0.dropFirst() }, [0, 0])
        XCTAssertLessThan(results["full"]?.first ?? .max, 10)
        XCTAssertEqual(results["recovered"]?.last, 0)
        XCTAssertGreaterThan(results["recovered"]?.first ?? 0, 1_000)
        XCTAssertEqual(results["acknowledged"], [0])
        XCTAssertGreaterThan(results["reused"]?.first ?? 0, 1_000)
        XCTAssertEqual(results["reused"]?.last, 0)
        XCTAssertEqual(results["numbers"], [1, 0])
    }

    func testNothingIsDroppedWhenTheWallClockIsSet() throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/faketime") else {
            throw XCTSkip("Debian's package faketime is not installed")
        }
        let folder = try temporaryFolder(self)
        let clock = folder.appendingPathComponent("clock")
        func set(_ offset: String) throws { try Data((offset + "\n").utf8).write(to: clock) }
        try set("+0d")
        // Of the program's own start, the library is to change the clock only: `faketime` loads it, and the file replaces
        // the time that `faketime` sets.
        let child = try Child(
            "/usr/bin/faketime",
            [
                "-m", "--exclude-monotonic", "-f", "+0d", "/usr/bin/env", "-u", "FAKETIME",
                "FAKETIME_TIMESTAMP_FILE=\(clock.path)", "FAKETIME_NO_CACHE=1", builtProgram("outbox-writer"), "step",
                folder.appendingPathComponent("outbox.sqlite").path, "3600",
            ])
        var envelopes: [Envelope] = []
        for (index, offset) in ["+0d", "-400d", "+400d", "-1d"].enumerated() {
            try set(offset)
            try child.send("append")
            let line = try XCTUnwrap(child.line())
            XCTAssert(line.hasPrefix("\(index + 1) {"), "nothing is dropped: \(line)")
            envelopes.append(try Envelope(Data(line.drop { $0 != "{" }.utf8)))
        }
        child.kill()
        XCTAssertEqual(envelopes.map(\.sequence), [1, 2, 3, 4])
        let order = envelopes.indices.sorted { envelopes[$0].time < envelopes[$1].time }
        XCTAssertEqual(order, [1, 3, 0, 2], "the clock was set: \(envelopes.map(\.time))")
    }
}
