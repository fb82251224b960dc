import TestBasics
import XCTest

@testable import BlueCapFutures
@testable import BlueCapReactor

final class TimerQueueTests: RandomTestCase {
    private func at(_ seconds: Double) -> Instant { Instant.origin.advanced(by: seconds) }

    func testEntriesFallDueInTheOrderOfTheirDeadlines() {
        var queue = TimerQueue<String>()
        _ = queue.add("late", deadline: at(3))
        _ = queue.add("early", deadline: at(1))
        _ = queue.add("middle", deadline: at(2))

        XCTAssertEqual(queue.nextDeadline, at(1))
        XCTAssertNil(queue.popDue(at: at(0.5)))
        XCTAssertEqual(queue.popDue(at: at(2)), "early")
        XCTAssertEqual(queue.popDue(at: at(2)), "middle")
        XCTAssertNil(queue.popDue(at: at(2)))
        XCTAssertEqual(queue.popDue(at: at(9)), "late")
        XCTAssertTrue(queue.isEmpty)
    }

    func testEqualDeadlinesKeepTheOrderOfAdding() {
        var queue = TimerQueue<Int>()
        for value in 0..<50 { _ = queue.add(value, deadline: at(1)) }

        XCTAssertEqual((0..<50).compactMap { _ in queue.popDue(at: at(1)) }, Array(0..<50))
    }

    func testACancelledEntryNeverFallsDue() {
        var queue = TimerQueue<String>()
        let first = queue.add("first", deadline: at(1))
        _ = queue.add("second", deadline: at(2))

        XCTAssertEqual(queue.cancel(first), "first")
        XCTAssertNil(queue.cancel(first))
        XCTAssertEqual(queue.nextDeadline, at(2))
        XCTAssertEqual(queue.popDue(at: at(5)), "second")
        XCTAssertNil(queue.popDue(at: at(5)))
    }

    func testCancelledEntriesDoNotAccumulate() {
        var queue = TimerQueue<Int>()
        _ = queue.add(-1, deadline: at(1))
        for value in 0..<100_000 {
            let number = queue.add(value, deadline: at(1000 + Double(value)))
            queue.cancel(number)
        }

        XCTAssertEqual(queue.count, 1)
        XCTAssertLessThan(queue.storedCount, 100)
        XCTAssertEqual(queue.popDue(at: at(1)), -1)
    }

    func testTakingEverythingOutKeepsTheOrderOfAdding() {
        var queue = TimerQueue<Int>()
        for value in 0..<20 { _ = queue.add(value, deadline: at(Double(20 - value))) }

        XCTAssertEqual(queue.removeAll(), Array(0..<20))
        XCTAssertNil(queue.nextDeadline)
    }

    /// Against a plain sorted list, over random additions, cancellations and steps of time.
    func testItBehavesLikeASortedList() {
        var random = TestRandom(self)
        var queue = TimerQueue<UInt64>()
        var model: [(deadline: Instant, number: UInt64)] = []
        var now = Instant.origin
        for _ in 0..<20_000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let deadline = now.advanced(by: Double.random(in: 0..<10, using: &random))
                let number = queue.add(0, deadline: deadline)
                queue[number] = number
                model.append((deadline, number))
            case 5..<8:
                guard let index = model.indices.randomElement(using: &random) else { continue }
                XCTAssertEqual(queue.cancel(model[index].number), model[index].number)
                model.remove(at: index)
            default:
                now = now.advanced(by: Double.random(in: 0..<1, using: &random))
                let due = model.filter { $0.deadline <= now }.sorted {
                    ($0.deadline, $0.number) < ($1.deadline, $1.number)
                }
                var popped: [UInt64] = []
                while let number = queue.popDue(at: now) { popped.append(number) }
                XCTAssertEqual(popped, due.map(\.number))
                model.removeAll { $0.deadline <= now }
            }
            XCTAssertEqual(queue.count, model.count)
        }
    }
}

final class RingTests: RandomTestCase {
    /// Against a plain array, over random additions and removals, and with few elements as with thousands.
    func testItBehavesLikeAnArray() {
        var random = TestRandom(self)
        var queue = Ring<Int>()
        var model: [Int] = []
        for value in 0..<50_000 {
            let isGrowing = (value / 5_000).isMultiple(of: 2)
            if Int.random(in: 0..<10, using: &random) < (isGrowing ? 7 : 3) {
                queue.append(value)
                model.append(value)
            } else if value.isMultiple(of: 20) {
                queue.prepend(value)
                model.insert(value, at: 0)
            } else if value.isMultiple(of: 99), let meant = model.randomElement(using: &random) {
                XCTAssertEqual(queue.remove { $0 == meant }, meant)
                model.removeAll { $0 == meant }
                XCTAssertEqual(queue.elements, model)
            } else {
                XCTAssertEqual(queue.first, model.first)
                XCTAssertEqual(queue.popFirst(), model.isEmpty ? nil : model.removeFirst())
            }
            XCTAssertEqual(queue.count, model.count)
            XCTAssertEqual(queue.isEmpty, model.isEmpty)
        }
        queue.removeAll()
        XCTAssertNil(queue.popFirst())
    }

    func testARingThatIsNeverEmptyKeepsNoRemovedElements() {
        var queue = Ring<Int>()
        queue.append(0)
        for value in 1...100_000 {
            queue.append(value)
            XCTAssertEqual(queue.popFirst(), value - 1)
        }
        XCTAssertLessThan(queue.slots.count, 200)
    }
}

final class InstantTests: XCTestCase {
    func testSpansAreAddedAndMeasured() {
        let start = Instant(nanoseconds: 5)
        let later = start.advanced(by: 1.5)

        XCTAssertEqual(later.nanoseconds, 1_500_000_005)
        XCTAssertEqual(later.seconds(since: start), 1.5)
        XCTAssertEqual(start.seconds(since: later), -1.5)
    }

    func testSpansThatDoNotFitGiveTheDistantFuture() {
        XCTAssertEqual(Instant.origin.advanced(by: .infinity), .distantFuture)
        XCTAssertEqual(Instant(nanoseconds: .max - 5).advanced(by: 1), .distantFuture)
        XCTAssertEqual(Instant.origin.advanced(by: 1e30), .distantFuture)
    }

    func testSpansThatAreNoneChangeNothing() {
        let now = Instant(nanoseconds: 7)
        XCTAssertEqual(now.advanced(by: -1), now)
        XCTAssertEqual(now.advanced(by: .nan), now)
        XCTAssertEqual(now.advanced(by: 0), now)
    }
}
