import Foundation
import GatewayCore
import XCTest

@testable import GatewayStore

final class CourierTests: XCTestCase {
    private var folder = URL(fileURLWithPath: "/")
    private var broker = TestBroker()
    private var tasks: [Task<Void, Never>] = []

    override func setUpWithError() throws {
        folder = try temporaryFolder(self, inMemory: true)
        broker = TestBroker()
        tasks = []
    }

    override func tearDown() async throws { await end() }

    private func outbox(_ limits: OutboxLimits = OutboxLimits()) throws -> Outbox {
        try Outbox(path: folder.appendingPathComponent("outbox.sqlite").path, limits: limits, logger: silent)
    }

    private func options(_ change: (inout Courier.Options) -> Void = { _ in }) -> Courier.Options {
        var options = Courier.Options()
        (options.acknowledgementDelay, options.retryDelay) = (.milliseconds(5), .milliseconds(20))
        change(&options)
        return options
    }

    /// Runs a courier, and passes the broker's events to it.
    private func start(_ outbox: Outbox, _ options: Courier.Options) -> Courier {
        let courier = Courier(outbox: outbox, transport: broker, options: options, logger: silent)
        tasks.append(Task { await courier.run() })
        tasks.append(Task { [broker] in for await event in broker.events { await courier.handle(event) } })
        return courier
    }

    /// Ends the tasks as a program that ends in order.
    private func end() async {
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        tasks = []
    }

    private func envelopes() throws -> [Envelope] { try broker.received.map { try Envelope($0.payload) } }

    func testValuesArePublishedInOrderAndDeletedWhenAcknowledged() async throws {
        let courier = start(try outbox(), options())
        broker.connect(answersAtOnce: true)
        let time = Date(timeIntervalSince1970: 1.5)
        let stored = try await courier.submit([value(1, body: #"{"a":1}"#, time: time), value(2, body: "{}")])
        XCTAssertEqual(stored.map(\.sequence), [1, 1])
        try await courier.submit([value(1)])
        try await eventually("all is deleted") { try await courier.statistics.outbox.depth == 0 }
        XCTAssertEqual(try envelopes().map(\.sequence), [1, 1, 2])
        XCTAssertEqual(
            broker.received.first?.payload, Data(#"{"sequence":1,"time":"1970-01-01T00:00:01.500Z","a":1}"#.utf8))
        XCTAssertEqual(broker.received.map(\.quality), [.atLeastOnce, .atLeastOnce, .atLeastOnce])
        let statistics = try await courier.statistics
        XCTAssertEqual(
            [statistics.stored, statistics.sent, statistics.acknowledged, statistics.repeated], [3, 3, 3, 0])
    }

    func testValuesAreStoredWhileTheBrokerIsAwayAndSentWhenItReturns() async throws {
        let courier = start(try outbox(), options { $0.window = 10 })
        for _ in 0..<30 { try await courier.submit([value(1)]) }
        XCTAssertEqual(broker.published.count, 0)
        broker.connect()
        try await eventually("the window is full") { broker.published.count == 10 }
        broker.disconnect(after: 4)
        broker.connect(answersAtOnce: true)
        try await eventually("all is deleted") { try await courier.statistics.outbox.depth == 0 }
        let all = try envelopes()
        XCTAssertEqual(all.map(\.sequence), Array(1...4) + Array(1...30))
        XCTAssertEqual(all.map { $0.repeated ?? false }, Array(repeating: false, count: 4) + (1...30).map { $0 <= 10 })
    }

    func testAFullTransportIsTriedAgainWithoutAnAcknowledgement() async throws {
        let courier = start(try outbox(), options())
        broker.setRoom(0)
        broker.connect()
        try await courier.submit([value(1)])
        XCTAssertEqual(broker.published.count, 0)
        broker.setRoom(1)
        try await eventually("the value is sent") { broker.published.count == 1 }
    }

    func testAFullTransportIsTriedAgainAfterAnAcknowledgementOfAnotherUser() async throws {
        let courier = start(try outbox(), options { $0.retryDelay = .seconds(3_600) })
        broker.setRoom(1)
        broker.connect()
        try await courier.submit([value(1), value(1)])
        try await eventually("the first is sent") { broker.published.count == 1 }
        broker.setRoom(2)
        await courier.handle(.acknowledged(token: Courier.freeTokens.lowerBound))
        try await eventually("the second is sent") { broker.published.count == 2 }
        let statistics = try await courier.statistics
        XCTAssertEqual([statistics.acknowledged, statistics.inFlight, statistics.outbox.depth], [0, 2, 2])
    }

    func testAValueThatTheTransportRefusesIsDroppedAndReported() async throws {
        let courier = start(try outbox(), options())
        broker.setRefuses { (try? Envelope($0.payload).sequence) == 2 }
        broker.connect(answersAtOnce: true)
        try await courier.submit([value(1), value(1), value(1)])
        try await eventually("all is deleted") { try await courier.statistics.outbox.depth == 0 }
        XCTAssertEqual(try envelopes().map(\.sequence), [1, 3])
        XCTAssertEqual(try envelopes().map(\.dropped), [nil, 1])
        let dropped = try await courier.statistics.outbox.dropped[.refused]
        XCTAssertEqual(dropped, 1)
    }

    func testAProcessThatEndedInOrderMarksExactlyWhatWasSent() async throws {
        var store = try outbox()
        var courier = start(store, options { $0.window = 3 })
        try await courier.submit((0..<6).map { _ in try value(1) })
        broker.connect()
        try await eventually("the window is full") { broker.published.count == 3 }
        await end()
        store.close()
        broker = TestBroker()
        store = try outbox()
        courier = start(store, options())
        broker.connect(answersAtOnce: true)
        try await eventually("all is deleted") { try await courier.statistics.outbox.depth == 0 }
        XCTAssertEqual(try envelopes().map { $0.repeated ?? false }, [true, true, true, false, false, false])
    }

    func testAcknowledgementsAreDeletedWhenTheTaskIsCancelled() async throws {
        let store = try outbox()
        let courier = start(store, options { $0.acknowledgementDelay = .seconds(3_600) })
        broker.connect(answersAtOnce: true)
        try await courier.submit([value(1)])
        try await eventually("it is acknowledged") { try await courier.statistics.acknowledged == 1 }
        XCTAssertEqual(try store.statistics().depth, 1)
        await end()
        XCTAssertEqual(try store.statistics().depth, 0)
    }

    func testSubmissionsThatArriveTogetherShareTransactionsAndKeepTheirResults() async throws {
        let courier = start(try outbox(), options { $0.group = 7 })
        let results = try await withThrowingTaskGroup(of: [StoredValue].self) { group in
            for count in 1...40 {
                let values = try (0..<count % 4 + 1).map { try value(count % 3, body: #"{"v":\#(count * 10 + $0)}"#) }
                group.addTask {
                    let stored = try await courier.submit(values)
                    XCTAssertEqual(stored.map(\.body), values.map(\.body))
                    return stored
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        XCTAssertEqual(Set(results.map(\.id)).count, results.count)
        for (_, values) in Dictionary(grouping: results, by: \.device) {
            XCTAssertEqual(values.map(\.sequence).sorted(), Array(1...Int64(values.count)))
        }
    }

    func testValuesThatAreTooOldAreDroppedWhileTheBrokerIsAway() async throws {
        let store = try outbox(OutboxLimits(age: .milliseconds(20)))
        let courier = start(store, options { $0.expiryInterval = .milliseconds(5) })
        try await courier.submit([value(1), value(1)])
        try await eventually("both are dropped") { try store.statistics().dropped[.age] == 2 }
        broker.connect(answersAtOnce: true)
        // Its own age may pass before it is sent: the value that is sent at last reports all that were dropped.
        try await eventually("a value is sent") {
            try await courier.submit([value(1)])
            return broker.received.count > 0
        }
        let first = try XCTUnwrap(envelopes().first)
        XCTAssertEqual(first.dropped, first.sequence - 1)
    }

    func testTooManyWaitingValuesAreRefused() async throws {
        let courier = start(try outbox(), options { $0.waiting = 3 })
        do {
            try await courier.submit((0..<4).map { _ in try value(1) })
            XCTFail("stored")
        } catch { XCTAssertEqual(error as? OutboxError, .overloaded(waiting: 0)) }
        try await courier.submit([value(1)])
    }

    func testOnAFullDiskSubmissionsFailAndSendingGoesOn() async throws {
        let store = try outbox()
        let courier = start(store, options())
        let body = #"{"v":"\#(String(repeating: "x", count: 3_000))"}"#
        let values = try (0..<20).map { _ in try value(1, body: body) }
        try await courier.submit(values)
        try store.execute("PRAGMA max_page_count = 1")
        do {
            try await courier.submit(values)
            XCTFail("stored")
        } catch {
            guard case OutboxError.diskFull = error else { return XCTFail("\(error)") }
        }
        let failed = try await courier.statistics
        XCTAssertEqual(failed.outbox.depth, 20)
        XCTAssertEqual(failed.waiting, 0)
        XCTAssertNotNil(failed.lastError)
        broker.connect(answersAtOnce: true)
        try await eventually("all is deleted") { try await courier.statistics.outbox.depth == 0 }
        try await courier.submit(values)  // the pages of the deleted values are free
        try await eventually("all is sent") { try await courier.statistics.outbox.depth == 0 }
        XCTAssertEqual(try envelopes().map(\.sequence), Array(1...40))
        let recovered = try await courier.statistics
        XCTAssertNil(recovered.lastError)
    }

    func testSendingStopsIfNothingCanBeDeletedAndGoesOnLater() async throws {
        let store = try outbox()
        try store.append((0..<200).map { _ in try value(1) })
        try store.execute(
            "CREATE TEMP TRIGGER stuck BEFORE DELETE ON message BEGIN SELECT RAISE(ABORT, 'the test forbids it'); END")
        let courier = start(store, options { $0.window = 5 })
        broker.connect(answersAtOnce: true)
        try await eventually("ten windows are acknowledged") { try await courier.statistics.acknowledged >= 50 }
        broker.disconnect()
        broker.connect(answersAtOnce: true)  // what is acknowledged is not sent again
        try await eventually("the error is reported") { try await courier.statistics.lastError != nil }
        XCTAssertLessThanOrEqual(broker.published.count, 55)
        XCTAssertEqual(try store.statistics().depth, 200)
        try store.execute("DROP TRIGGER stuck")
        try await eventually("all is deleted") { try store.statistics().depth == 0 }
        XCTAssertEqual(try envelopes().map(\.sequence), Array(1...200))
    }

    func testMemoryIsFlatWithAHundredThousandValues() async throws {
        let store = try outbox()
        for group in 0..<100 { try store.append((0..<1_000).map { _ in try value(group % 7) }) }
        XCTAssertEqual(try store.statistics().depth, 100_000)
        broker.setRecords(false)
        let before = residentBytes()
        let courier = start(store, options { $0.window = 500 })
        broker.connect(answersAtOnce: true)
        try await eventually("all is deleted", within: .seconds(120)) { try store.statistics().depth == 0 }
        let statistics = try await courier.statistics
        XCTAssertEqual(statistics.sent, 100_000)
        XCTAssertEqual(statistics.repeated, 0)
        XCTAssertLessThanOrEqual(statistics.largestPage, 256)
        XCTAssertGreaterThanOrEqual(statistics.pages, 100_000 / 256)
        XCTAssertLessThan(residentBytes() - before, 48 << 20)
    }

    private func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }
}
