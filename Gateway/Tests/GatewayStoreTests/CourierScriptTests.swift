import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

@testable import GatewayStore

/// Plays random sequences of events: submissions, arrivals, acknowledgements, ends of the connection and of the process.
final class CourierScriptTests: XCTestCase {
    func testNothingIsLostAndEachRepetitionIsMarked() async throws {
        try await play(runs: 1_000, bytes: .max)
    }

    func testWhatIsDroppedIsReported() async throws {
        try await play(runs: 250, bytes: 2_000)
    }

    private func play(runs: UInt64, bytes: Int) async throws {
        let folder = try temporaryFolder(self, inMemory: true)
        let seed = SeededNumbers.seed
        print("BLUECAP_SEED=\(seed)")
        for run in 0..<runs {
            let path = folder.appendingPathComponent("outbox.sqlite").path
            let script = try Script(path: path, seed: seed &+ run, bytes: bytes)
            let failures = try await script.play()
            XCTAssertEqual(failures, [], "BLUECAP_SEED=\(seed &+ run) repeats it in the first run")
            if !failures.isEmpty { return }
            for suffix in ["", "-wal"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        }
    }
}

private final class Script {
    private let path: String
    private let limits: OutboxLimits
    private let broker = TestBroker()
    private let options: Courier.Options
    private var generator: SeededNumbers
    private var outbox: Outbox
    private var courier: Courier
    private var submitted: [DeviceName: Int64] = [:]
    /// How many values may be marked without need.
    private var allowedMarks = 0

    init(path: String, seed: UInt64, bytes: Int) throws {
        (self.path, limits) = (path, OutboxLimits(bytes: bytes, bodyBytes: min(bytes, 1_000)))
        generator = SeededNumbers(seed)
        var options = Courier.Options()
        options.window = Int.random(in: 1...12, using: &generator)
        options.pageCount = Int.random(in: 1...8, using: &generator)
        options.markAhead = 4
        // Only the steps of the script cause actions.
        (options.acknowledgementDelay, options.retryDelay) = (.seconds(3_600), .seconds(3_600))
        self.options = options
        outbox = try Outbox(path: path, limits: limits, logger: silent)
        courier = Courier(outbox: outbox, transport: broker, options: options, logger: silent)
    }

    /// Returns what is wrong.
    func play() async throws -> [String] {
        for _ in 0..<Int.random(in: 10...45, using: &generator) { try await step() }
        try await deliverAll()
        if limits.bytes < .max {
            // Later values report what was dropped at the end.
            try await submit([1, 2, 3])
            try await deliverAll()
        }
        await courier.finish()
        var failures = try check()
        let depth = try outbox.statistics().depth
        if depth != 0 { failures.append("\(depth) values remain") }
        outbox.close()
        return failures
    }

    private func submit(_ devices: [Int]) async throws {
        for value in try await courier.submit(devices.map { try value($0) }) {
            submitted[value.device] = value.sequence
        }
    }

    private func step() async throws {
        switch Int.random(in: 0..<20, using: &generator) {
        case 0..<6:
            let count = Int.random(in: 1...5, using: &generator)
            try await submit((0..<count).map { _ in Int.random(in: 1...3, using: &generator) })
        case 6..<10: await courier.send()
        case 10..<13: broker.receive(Int.random(in: 1...6, using: &generator))
        case 13..<16: await acknowledge(Int.random(in: 1...6, using: &generator))
        case 16: await disconnect()
        case 17:
            if broker.isConnected { await disconnect() }
            await connect()
        case 18: broker.setRoom(Int.random(in: 0...12, using: &generator))
        default: try await restart(inOrder: Bool.random(using: &generator))
        }
    }

    private func acknowledge(_ count: Int) async {
        for token in broker.acknowledge(count, using: &generator) { await courier.handle(.acknowledged(token: token)) }
    }

    private func connect() async {
        broker.connect()
        await courier.handle(.connected)
    }

    private func disconnect() async {
        broker.disconnect(after: Int.random(in: 0...6, using: &generator))
        // The courier may send before it learns of the end.
        if Bool.random(using: &generator) { await courier.send() }
        await courier.handle(.disconnected(reason: "script"))
    }

    /// Ends the process, in order or as a kill does, and starts another one.
    private func restart(inOrder: Bool) async throws {
        broker.disconnect(after: Int.random(in: 0...6, using: &generator))
        if inOrder { await courier.finish() } else { allowedMarks += Int(options.markAhead) }
        outbox.close()
        outbox = try Outbox(path: path, limits: limits, logger: silent)
        courier = Courier(outbox: outbox, transport: broker, options: options, logger: silent)
    }

    private func deliverAll() async throws {
        broker.setRoom(.max)
        if broker.isConnected { await disconnect() }
        await connect()
        for _ in 0..<2_000 {
            await courier.send()
            broker.receive()
            await acknowledge(.max)
            await courier.finish()
            if try outbox.statistics().depth == 0 { return }
        }
    }

    private func check() throws -> [String] {
        var failures: [String] = []
        var last: [String: Int64] = [:]
        var (missing, reported): ([String: Int64], [String: [Int64: Int64]]) = ([:], [:])
        for message in broker.received {
            let envelope = try Envelope(message.payload)
            let before = last[message.topic] ?? 0
            let dropped = envelope.dropped ?? 0
            reported[message.topic, default: [:]][envelope.sequence] = dropped
            if envelope.sequence <= before {
                // Either it has arrived before, or it was overtaken.
                if envelope.repeated != true { failures.append("\(message.topic) \(envelope.sequence) is not marked") }
                continue
            }
            let gap = envelope.sequence - before - 1
            if gap > dropped { failures.append("\(message.topic): a gap of \(gap), reported \(dropped)") }
            missing[message.topic, default: 0] += gap
            last[message.topic] = envelope.sequence
        }
        for (device, sequence) in submitted {
            let topic = "bluecap/g/reading/\(device)"
            if last[topic] != sequence { failures.append("\(topic) ends at \(last[topic] ?? 0), not \(sequence)") }
            let sum = reported[topic]?.values.reduce(0, +) ?? 0
            if missing[topic] ?? 0 > sum {
                failures.append("\(topic): \(missing[topic] ?? 0) missing, \(sum) reported")
            }
        }
        if limits.bytes == .max {
            if !missing.values.allSatisfy({ $0 == 0 }) { failures.append("missing: \(missing)") }
            if reported.values.contains(where: { $0.values.contains { $0 > 0 } }) { failures.append("drops reported") }
        }
        if broker.largestUnacknowledged > options.window { failures.append("the window was exceeded") }
        failures += try checkMarks()
        return failures
    }

    /// Of the first publications of values, only so many are marked as the ends of processes allow.
    private func checkMarks() throws -> [String] {
        var (failures, marks): ([String], Int) = ([], 0)
        var seen: Set<UInt64> = []
        for publication in broker.published {
            let isFirst = seen.insert(publication.token).inserted
            let isMarked = try Envelope(publication.message.payload).repeated == true
            if !isFirst, !isMarked { failures.append("\(publication.token) is published again without a mark") }
            if isFirst, isMarked { marks += 1 }
        }
        if marks > allowedMarks { failures.append("\(marks) marks without need, \(allowedMarks) allowed") }
        return failures
    }
}
