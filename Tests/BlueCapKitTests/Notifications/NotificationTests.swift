import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import XCTest

/// Subscriptions and what they bring, on the simulator in virtual time; D1 to D6 are those of Documentation/Reliability.md.
final class NotificationTests: XCTestCase {
    private let journal = NotificationJournal()

    // MARK: Subscribing

    func testValuesComeToAllFormsOfStreams() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let journals = (0..<4).map { _ in NotificationJournal() }
        journals[0].watch(characteristic.receiveNotificationUpdates())
        journals[1].watch(characteristic.receiveNotificationUpdates() as FutureStream<Data?>)
        journals[2].watch(characteristic.receiveNotificationUpdates() as FutureStream<Data>)
        journals[3].watch(characteristic.receiveNotificationUpdates(capacity: nil) as FutureStream<Characteristic>)
        try stage.start(characteristic)
        XCTAssertTrue(characteristic.isNotifying)
        stage.notify(1)
        stage.notify(2)
        for journal in journals { XCTAssertEqual(journal.bytes, [1, 2]) }
        XCTAssertEqual(characteristic.dataValue, Data([2]))
    }

    func testAnIndicationIsReceivedLikeANotification() throws {
        let stage = try AttributeStage.explored()
        let characteristic = try stage.characteristic("2A39")
        journal.watch(characteristic.receiveNotificationUpdates())
        try stage.start(characteristic)
        stage.notify(1, 2, 3, from: "2A39")
        XCTAssertEqual(journal.bytes, [1, 2, 3])
    }

    func testWhatCannotNotifyFailsAtOnce() throws {
        let stage = try AttributeStage.explored()
        let characteristic = try stage.characteristic("2A38")
        let started: Future<Void> = characteristic.startNotifying()
        XCTAssertEqual(stage.failure(of: started) as? CharacteristicError, .notifyNotSupported)
        journal.watch(characteristic.receiveNotificationUpdates())
        XCTAssertEqual(journal.entries, [.failure("\(CharacteristicError.notifyNotSupported)")])
        XCTAssertEqual(stage.count(of: "StartNotify"), 0)
    }

    func testStreamsReceiveNothingWithoutASubscription() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        journal.watch(characteristic.receiveNotificationUpdates())
        stage.notify(1)
        XCTAssertEqual(journal.entries, [])
    }

    func testASubscriptionNeedsNoStream() throws {
        let (stage, characteristic) = try AttributeStage.subscribed()
        stage.notify(1, 2)
        XCTAssertEqual(characteristic.dataValue, Data([2]))
        journal.watch(characteristic.receiveNotificationUpdates())
        stage.notify(3)
        XCTAssertEqual(journal.bytes, [3])
    }

    // MARK: Stopping

    func testStoppingThenStartingAgainKeepsTheStreams() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        stage.notify(1)
        try stage.wait(characteristic.stopNotifying() as Future<Void>)
        XCTAssertFalse(characteristic.isNotifying)
        XCTAssertEqual(stage.subscriptionCount(), 0)
        stage.notify(2)
        try stage.start(characteristic)
        stage.notify(3)
        XCTAssertEqual(journal.entries, [.number(1), .number(3)])
    }

    func testTheStreamsMayEndBeforeTheSubscription() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let stream: FutureStream<Data> = characteristic.receiveNotificationUpdates()
        journal.watch(stream)
        try stage.start(characteristic)
        characteristic.stopNotificationUpdates()
        stage.notify(1)
        XCTAssertEqual(journal.entries, [])
        XCTAssertEqual(characteristic.dataValue, Data([1]))
        try stage.wait(characteristic.stopNotifying() as Future<Characteristic>)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testTheSubscriptionMayEndBeforeTheStreams() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        let stopped: Future<Characteristic> = characteristic.stopNotifying()
        characteristic.stopNotificationUpdates()
        try stage.wait(stopped)
        stage.notify(1)
        XCTAssertEqual(journal.entries, [])
    }

    func testAStopWhileStartingIsDoneAfterTheStart() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let started: Future<Void> = characteristic.startNotifying()
        let stopped: Future<Void> = characteristic.stopNotifying()
        try stage.wait(started)
        try stage.wait(stopped)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testAStreamThatNobodyHoldsIsGivenUp() throws {
        let (stage, characteristic) = try AttributeStage.subscribed()
        weak var forgotten: FutureStream<Data>?
        do {
            let stream: FutureStream<Data> = characteristic.receiveNotificationUpdates()
            forgotten = stream
            stage.notify(1)
            XCTAssertEqual(stream.count, 1)
        }
        stage.notify(2)
        XCTAssertNil(forgotten)
    }

    // MARK: D1, order and completeness

    func testTenThousandValuesComeOnceAndInOrder() throws {
        let (stage, characteristic) = try AttributeStage.rate(link: .immediate)
        journal.watch(characteristic.receiveNotificationUpdates())
        try stage.start(characteristic)
        stage.flood(10_000, size: 20)
        XCTAssertTrue(stage.simulator.advance(until: { self.journal.values.count >= 10_000 }, limit: 600))
        expectNumbers(journal.values, 10_000)
    }

    func testASlowHandlerLosesNothing() throws {
        let (stage, characteristic) = try AttributeStage.rate(link: .immediate)
        let queue = DispatchQueue(label: "slow")
        queue.suspend()
        let stream: FutureStream<(characteristic: Characteristic, data: Data?)> =
            characteristic.receiveNotificationUpdates(capacity: 1)
        journal.watch(stream, context: QueueContext(queue: queue))
        try stage.start(characteristic)
        stage.flood(10_000, size: 20)
        let isLast: @Sendable () -> Bool = { number(of: characteristic.dataValue.map(Array.init) ?? []) == 9_999 }
        XCTAssertTrue(stage.simulator.advance(until: isLast, limit: 600))
        XCTAssertEqual(journal.entries, [])
        queue.resume()
        queue.sync {}
        let journal = journal
        let done = expectation(for: NSPredicate { _, _ in journal.values.count == 10_000 }, evaluatedWith: nil)
        wait(for: [done], timeout: 60)
        expectNumbers(journal.values, 10_000)
        XCTAssertEqual(stream.droppedCount, 0)
    }

    func testABoundedStreamWithoutAHandlerKeepsTheNewestAndCountsTheOthers() throws {
        let (stage, characteristic) = try AttributeStage.rate(link: .immediate)
        let stream: FutureStream<Data> = characteristic.receiveNotificationUpdates(capacity: 10)
        try stage.start(characteristic)
        stage.flood(100, size: 20)
        XCTAssertTrue(stage.simulator.advance(until: { stream.droppedCount == 90 }, limit: 60))
        journal.watch(stream)
        XCTAssertEqual(journal.values.map { number(of: $0) }, Array(90..<100))
    }

    private func expectNumbers(
        _ values: [[UInt8]], _ count: Int, file: StaticString = #filePath, line: UInt = #line
    ) {
        XCTAssertEqual(values.count, count, file: file, line: line)
        let wrong = values.enumerated().first { $0.offset != number(of: $0.element) }
        XCTAssertNil(wrong, "not in order", file: file, line: line)
    }

    // MARK: D2, reads

    func testAValueThatOurOwnReadBroughtIsNoNotification() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        stage.notify(1)
        stage.simulator.setValue([9], of: .uuid("2A37"), at: AttributeStage.address)
        try stage.read(characteristic)
        XCTAssertEqual(characteristic.dataValue, Data([9]))
        stage.notify(2)
        XCTAssertEqual(journal.entries, [.number(1), .number(2)])
    }

    func testNotificationsThatComeDuringAReadAreDelivered() throws {
        let (stage, characteristic) = try AttributeStage.subscribed(journal)
        stage.simulator.simulateLateAnswers(by: 1, of: AttributeStage.address)
        let read: Future<Characteristic> = characteristic.read()
        stage.notify(1, 2)
        try stage.wait(read)
        XCTAssertEqual(journal.bytes, [1, 2])
    }

    func testAReadOfAnotherManagerIsNoNotificationEither() throws {
        let stage = try AttributeStage([AttributeStage.heart])
        let other = try SecondManager(beside: stage)
        try stage.explore()
        let characteristic = try stage.characteristic("2A37")
        journal.watch(characteristic.receiveNotificationUpdates())
        try stage.start(characteristic)
        try stage.wait(other.explore(on: stage).read() as Future<Characteristic>)
        XCTAssertEqual(journal.entries, [])
    }

    // MARK: D6, sharing

    func testStartingTwiceIsOneSubscription() throws {
        let (stage, characteristic) = try AttributeStage.rate()
        let first: Future<Characteristic> = characteristic.startNotifying()
        let second: Future<Characteristic> = characteristic.startNotifying()
        try stage.wait(first)
        try stage.wait(second)
        XCTAssertEqual(stage.count(of: "StartNotify"), 1)
    }

    func testTwoManagersShareOneSubscriptionAndTheLastEndsIt() throws {
        let stage = try AttributeStage([AttributeStage.heart])
        let other = try SecondManager(beside: stage)
        try stage.explore()
        let characteristic = try stage.characteristic("2A37")
        let theirs = try other.explore(on: stage)
        let others = NotificationJournal()
        journal.watch(characteristic.receiveNotificationUpdates())
        others.watch(theirs.receiveNotificationUpdates())
        try stage.start(characteristic)
        try stage.start(theirs)
        stage.notify(1)
        XCTAssertEqual(journal.bytes, [1])
        XCTAssertEqual(others.bytes, [1])
        try stage.wait(characteristic.stopNotifying() as Future<Void>)
        XCTAssertEqual(stage.count(of: "StopNotify"), 0)
        stage.notify(2)
        XCTAssertEqual(journal.bytes, [1])
        XCTAssertEqual(others.bytes, [1, 2])
        try stage.wait(theirs.stopNotifying() as Future<Void>)
        XCTAssertEqual(stage.count(of: "StopNotify"), 1)
        XCTAssertEqual(stage.subscriptionCount(), 0)
    }

    func testAManagerThatEndsLeavesNoSubscriptionBehind() throws {
        let (stage, _) = try AttributeStage.subscribed()
        stage.endManager()
        XCTAssertTrue(stage.simulator.advance(until: { stage.subscriptionCount() == 0 }, limit: 10))
    }
}
