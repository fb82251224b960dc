import BlueCapBlueZ
import Foundation
import TestRandomness
import XCTest

@testable import BlueCapKit

final class UpdateQueueTests: RandomTestCase {
    private var queue = UpdateQueue()

    private func value(_ number: Int) -> ServerUpdate {
        ServerUpdate(Data([UInt8(truncatingIfNeeded: number), UInt8(number >> 8)]))
    }
    private func values(_ numbers: some Sequence<Int>) -> [ServerUpdate] { numbers.map(value) }
    private func data(_ numbers: some Sequence<Int>) -> [Data] { numbers.map { value($0).value } }

    private func add(_ numbers: some Sequence<Int>) {
        for number in numbers { XCTAssertEqual(queue.add(value(number)), .queued) }
    }

    private func take() -> [ServerUpdate] { Array(sequence(state: ()) { _ in self.queue.next() }) }

    private func confirm(_ count: Int) { for _ in 0..<count { _ = queue.ended(.sent) } }

    func testWithoutSubscribersUpdatesWait() {
        add(0..<3)
        XCTAssertFalse(queue.mustWake())
        XCTAssertEqual(take(), [])
        XCTAssertEqual(queue.pending, data(0..<3))
    }

    func testASubscriptionSendsWhatWaitsInOrder() {
        add(0..<3)
        queue.subscribed()
        XCTAssertTrue(queue.mustWake())
        XCTAssertEqual(take(), values(0..<3))
        XCTAssertEqual(queue.pending, data(0..<3), "Handed over is not taken.")
        confirm(2)
        XCTAssertEqual(queue.pending, data(2..<3))
    }

    func testOneWakeIsEnoughForAllThatComeTogether() {
        queue.subscribed()
        add(0..<1)
        XCTAssertTrue(queue.mustWake())
        add(1..<5)
        XCTAssertFalse(queue.mustWake())
        XCTAssertEqual(take(), values(0..<5))
        XCTAssertFalse(queue.mustWake())
    }

    func testNoMoreThanAWindowIsUnderWay() {
        queue.subscribed()
        add(0..<200)
        XCTAssertEqual(take(), values(0..<UpdateQueue.window))
        XCTAssertEqual(take(), [])
        confirm(UpdateQueue.window / 2 - 1)
        XCTAssertFalse(queue.mustWake(), "A wake is for many.")
        confirm(1)
        XCTAssertTrue(queue.mustWake())
        XCTAssertEqual(take(), values(UpdateQueue.window..<UpdateQueue.window + UpdateQueue.window / 2))
    }

    func testWhatWasNotConfirmedGoesOutAgainInTheNextSubscription() {
        queue.subscribed()
        add(0..<4)
        _ = take()
        confirm(1)
        XCTAssertEqual(queue.unsubscribed(), [])
        XCTAssertNil(queue.ended(.sent), "Nothing is under way.")
        XCTAssertEqual(queue.pending, data(1..<4))
        add(4..<5)
        queue.subscribed()
        XCTAssertEqual(take(), values(1..<5))
    }

    // MARK: Without subscriptions

    func testWithoutSubscribersTheNewestStayAndNothingIsRefused() {
        queue.limit(to: 3)
        add(0..<3)
        XCTAssertEqual(queue.add(value(3)), .dropped([value(0)]))
        XCTAssertEqual(queue.add(value(4)), .dropped([value(1)]))
        XCTAssertEqual(queue.pending, data(2..<5))
        XCTAssertEqual(queue.dropped, 2)
        queue.limit(to: 1)
        XCTAssertEqual(queue.pending, data(2..<5), "Lowering the limit alone drops nothing.")
        XCTAssertEqual(queue.add(value(5)), .dropped(values(2..<5)))
        XCTAssertEqual(queue.pending, data([5]))
        queue.subscribed()
        XCTAssertEqual(queue.add(value(6)), .refused, "A subscriber is owed what was promised to it.")
    }

    func testALimitThatWasLoweredAppliesWhenTheLastSubscriberLeaves() {
        queue.subscribed()
        add(0..<5)
        XCTAssertEqual(take(), values(0..<5))
        queue.limit(to: 2)
        XCTAssertEqual(queue.pending, data(0..<5))
        XCTAssertEqual(queue.unsubscribed(), values(0..<3), "The oldest, although they were handed over.")
        XCTAssertEqual(queue.pending, data(3..<5))
        XCTAssertEqual(queue.dropped, 3)
        queue.limit(to: 1)
        XCTAssertEqual(queue.keepUnsubscribed(.queue), values(3..<4))
    }

    func testOfLatestTheNewestWaits() {
        add(0..<3)
        XCTAssertEqual(queue.keepUnsubscribed(.latest), values(0..<2), "The policy applies at once.")
        XCTAssertEqual(queue.add(value(3)), .dropped([value(2)]))
        XCTAssertEqual(queue.dropped, 3)
        queue.subscribed()
        XCTAssertEqual(take(), values([3]))
        add(4..<6)
        XCTAssertEqual(queue.pending, data(3..<6), "While a central is subscribed everything is sent.")
        XCTAssertEqual(queue.unsubscribed(), values(3..<5))
        XCTAssertEqual(queue.pending, data([5]))
        XCTAssertEqual(queue.dropped, 5)
    }

    func testOfDiscardNothingWaits() {
        add(0..<2)
        XCTAssertEqual(queue.keepUnsubscribed(.discard), values(0..<2))
        XCTAssertEqual(queue.add(value(2)), .dropped([value(2)]))
        queue.subscribed()
        XCTAssertEqual(take(), [])
        add(3..<5)
        XCTAssertEqual(take(), values(3..<5))
        confirm(1)
        XCTAssertEqual(queue.unsubscribed(), values([4]))
        XCTAssertTrue(queue.isEmpty)
        XCTAssertEqual(queue.dropped, 4)
    }

    func testAPolicyThatIsSetDuringASubscriptionAppliesAtItsEnd() {
        queue.subscribed()
        add(0..<3)
        XCTAssertEqual(queue.keepUnsubscribed(.latest), [])
        XCTAssertEqual(queue.pending, data(0..<3))
        XCTAssertEqual(queue.unsubscribed(), values(0..<2))
    }

    func testARemovalIsNoLossOfUpdates() {
        _ = queue.keepUnsubscribed(.discard)
        queue.subscribed()
        add(0..<3)
        XCTAssertEqual(queue.removeAll(), values(0..<3))
        XCTAssertTrue(queue.isEmpty)
        XCTAssertEqual(queue.dropped, 0)
    }

    func testAnUnconfirmedIndicationIsSentOnceMoreAndThenGivenUp() {
        queue.subscribed()
        add(0..<2)
        XCTAssertEqual(queue.next(), value(0))
        XCTAssertNil(queue.ended(.unconfirmed))
        XCTAssertTrue(queue.mustWake())
        XCTAssertEqual(queue.next(), value(0))
        XCTAssertEqual(queue.ended(.unconfirmed), value(0))
        XCTAssertEqual(queue.dropped, 1)
        XCTAssertEqual(queue.next(), value(1))
    }

    func testAFullQueueRefuses() {
        queue.subscribed()
        queue.limit(to: 2)
        add(0..<2)
        XCTAssertEqual(queue.add(value(2)), .refused)
        XCTAssertEqual(queue.pending, data(0..<2))
        queue.limit(to: 0)
        XCTAssertEqual(queue.limit, 1, "A queue takes one at least.")
    }

    func testAFullQueueMayDropTheOldestThatIsNotUnderWay() {
        queue.policy = .dropOldest
        queue.limit(to: 3)
        queue.subscribed()
        add(0..<1)
        _ = take()
        add(1..<3)
        XCTAssertEqual(queue.add(value(3)), .dropped([value(1)]))
        XCTAssertEqual(queue.pending, data([0, 2, 3]))
        XCTAssertEqual(queue.dropped, 1)
        _ = take()
        XCTAssertEqual(queue.add(value(4)), .queued, "What is under way cannot be called back: one waits behind it.")
        XCTAssertEqual(queue.add(value(5)), .dropped([value(4)]))
        XCTAssertEqual(queue.pending, data([0, 2, 3, 5]))
    }

    // MARK: For one central

    private func directed(_ number: Int) -> ServerUpdate {
        ServerUpdate(value(number).value, for: [ObjectKey(adapter: 0)].compactMap(\.self))
    }

    func testWhatCannotReachItsCentralIsDroppedAlone() {
        queue.subscribed()
        add(0..<1)
        XCTAssertEqual(queue.add(directed(1)), .queued)
        add(2..<3)
        XCTAssertEqual(take(), [value(0), directed(1), value(2)])
        confirm(1)
        XCTAssertEqual(queue.ended(.unreachable), directed(1))
        XCTAssertEqual(queue.dropped, 1)
        confirm(1)
        XCTAssertTrue(queue.isEmpty)
    }

    func testWhatIsForOneCentralDoesNotWaitForTheNextSubscriber() {
        queue.subscribed()
        add(0..<1)
        XCTAssertEqual(queue.add(directed(1)), .queued)
        add(2..<3)
        _ = take()
        XCTAssertEqual(queue.unsubscribed(), [directed(1)])
        XCTAssertEqual(queue.dropped, 1)
        queue.subscribed()
        XCTAssertEqual(take(), values([0, 2]))
    }

    func testThousandsPassInOrderWithoutGrowing() {
        queue.subscribed()
        var sent: [ServerUpdate] = []
        var next = 0
        while sent.count < 10_000 {
            for _ in 0..<7 where next < 10_000 {
                add(next..<next + 1)
                next += 1
            }
            let taken = take()
            sent += taken
            for (index, update) in taken.enumerated() {
                XCTAssertEqual(queue.ended(.sent), update, "at \(index)")
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
                case 1: XCTAssertEqual(queue.unsubscribed(), [])
                case 2, 3:
                    add(next..<next + 1)
                    next += 1
                default:
                    for _ in 0..<Int.random(in: 0...3, using: &random) {
                        _ = take()
                        if let update = queue.ended(.sent) { arrived.append(update.value) }
                    }
                }
            }
            XCTAssertEqual(arrived + queue.pending, data(0..<next), "round \(round)")
        }
    }
}
