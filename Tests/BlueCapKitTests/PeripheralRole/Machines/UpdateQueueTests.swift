import Foundation
import TestRandomness
import XCTest

@testable import BlueCapKit

final class UpdateQueueTests: XCTestCase {
    private var queue = UpdateQueue()

    private func value(_ number: Int) -> Data { Data([UInt8(truncatingIfNeeded: number), UInt8(number >> 8)]) }
    private func values(_ numbers: some Sequence<Int>) -> [Data] { numbers.map(value) }

    private func add(_ numbers: some Sequence<Int>) {
        for number in numbers { XCTAssertEqual(queue.add(value(number)), .queued) }
    }

    private func confirm(_ count: Int) { for _ in 0..<count { _ = queue.confirmed(queue.epoch) } }

    func testWithoutSubscribersUpdatesWait() {
        add(0..<3)
        XCTAssertFalse(queue.mustWake())
        XCTAssertEqual(queue.take(), [])
        XCTAssertEqual(queue.pending, values(0..<3))
    }

    func testASubscriptionSendsWhatWaitsInOrder() {
        add(0..<3)
        queue.subscribed()
        XCTAssertTrue(queue.mustWake())
        XCTAssertEqual(queue.take(), values(0..<3))
        XCTAssertEqual(queue.pending, values(0..<3), "Handed over is not taken.")
        confirm(2)
        XCTAssertEqual(queue.pending, values(2..<3))
    }

    func testOneWakeIsEnoughForAllThatComeTogether() {
        queue.subscribed()
        add(0..<1)
        XCTAssertTrue(queue.mustWake())
        add(1..<5)
        XCTAssertFalse(queue.mustWake())
        XCTAssertEqual(queue.take(), values(0..<5))
        XCTAssertFalse(queue.mustWake())
    }

    func testNoMoreThanAWindowIsUnderWay() {
        queue.subscribed()
        add(0..<200)
        XCTAssertEqual(queue.take(), values(0..<UpdateQueue.window))
        XCTAssertEqual(queue.take(), [])
        confirm(UpdateQueue.window / 2 - 1)
        XCTAssertFalse(queue.mustWake(), "A wake is for many.")
        confirm(1)
        XCTAssertTrue(queue.mustWake())
        XCTAssertEqual(queue.take(), values(UpdateQueue.window..<UpdateQueue.window + UpdateQueue.window / 2))
    }

    func testWhatWasNotConfirmedGoesOutAgainInTheNextSubscription() {
        queue.subscribed()
        add(0..<4)
        _ = queue.take()
        confirm(1)
        let ended = queue.epoch
        queue.unsubscribed()
        XCTAssertNil(queue.confirmed(ended), "A late answer means nothing.")
        XCTAssertNil(queue.failed(ended, .nobodySubscribed))
        XCTAssertEqual(queue.pending, values(1..<4))
        add(4..<5)
        queue.subscribed()
        XCTAssertEqual(queue.take(), values(1..<5))
    }

    func testAFailedHandOverEndsTheSubscription() {
        queue.subscribed()
        add(0..<2)
        _ = queue.take()
        XCTAssertNil(queue.failed(queue.epoch, .nobodySubscribed))
        XCTAssertFalse(queue.isSubscribed)
        XCTAssertEqual(queue.pending, values(0..<2))
    }

    func testAnUnconfirmedIndicationIsSentOnceMoreAndThenGivenUp() {
        queue.subscribed()
        add(0..<2)
        XCTAssertEqual(queue.take(), values(0..<2))
        XCTAssertNil(queue.failed(queue.epoch, .unconfirmed))
        XCTAssertTrue(queue.mustWake())
        XCTAssertEqual(queue.take(), values(0..<2))
        XCTAssertEqual(queue.failed(queue.epoch, .unconfirmed), value(0))
        XCTAssertEqual(queue.dropped, 1)
        XCTAssertEqual(queue.take(), values(1..<2))
    }

    func testAFullQueueRefuses() {
        queue.limit(to: 2)
        add(0..<2)
        XCTAssertEqual(queue.add(value(2)), .refused)
        XCTAssertEqual(queue.pending, values(0..<2))
        queue.limit(to: 0)
        XCTAssertEqual(queue.limit, 1, "A queue takes one at least.")
    }

    func testAFullQueueMayDropTheOldestThatIsNotUnderWay() {
        queue.policy = .dropOldest
        queue.limit(to: 3)
        queue.subscribed()
        add(0..<1)
        _ = queue.take()
        add(1..<3)
        XCTAssertEqual(queue.add(value(3)), .dropped(value(1)))
        XCTAssertEqual(queue.pending, values([0, 2, 3]))
        XCTAssertEqual(queue.dropped, 1)
        _ = queue.take()
        XCTAssertEqual(queue.add(value(4)), .queued, "What is under way cannot be called back: one waits behind it.")
        XCTAssertEqual(queue.add(value(5)), .dropped(value(4)))
        XCTAssertEqual(queue.pending, values([0, 2, 3, 5]))
    }

    func testThousandsPassInOrderWithoutGrowing() {
        queue.subscribed()
        var sent: [Data] = []
        var next = 0
        while sent.count < 10_000 {
            for _ in 0..<7 where next < 10_000 {
                add(next..<next + 1)
                next += 1
            }
            let taken = queue.take()
            sent += taken
            for (index, data) in taken.enumerated() {
                XCTAssertEqual(queue.confirmed(queue.epoch), data, "at \(index)")
            }
        }
        XCTAssertEqual(sent, values(0..<10_000))
        XCTAssertTrue(queue.isEmpty)
    }

    func testNothingIsLostOrDoubledOverSubscriptionsThatEndAnywhere() {
        var random = TestRandom(self)
        for round in 0..<50 {
            queue = UpdateQueue()
            var arrived: [Data] = []
            var next = 0
            for _ in 0..<300 {
                switch Int.random(in: 0..<5, using: &random) {
                case 0: queue.subscribed()
                case 1: queue.unsubscribed()
                case 2, 3:
                    add(next..<next + 1)
                    next += 1
                default:
                    for _ in 0..<Int.random(in: 0...3, using: &random) {
                        _ = queue.take()
                        if let data = queue.confirmed(queue.epoch) { arrived.append(data) }
                    }
                }
            }
            XCTAssertEqual(arrived + queue.pending, values(0..<next), "round \(round)")
        }
    }
}
