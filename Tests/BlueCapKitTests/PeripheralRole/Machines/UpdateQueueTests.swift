import BlueCapBlueZ
import TestBasics
import TestSupport
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
        for number in numbers { XCTAssertEqual(queue.add(value(number)), []) }
    }

    private func take() -> [ServerUpdate] { Array(sequence(state: ()) { _ in self.queue.next() }) }

    /// The numbers of updates, as in `0-2 5 6!`, with a `!` behind those for one central.
    private func words(_ updates: [ServerUpdate]) -> String {
        var texts: [String] = []
        var range: (first: Int, last: Int)?
        for update in updates {
            let number = Int(update.value[0]) | Int(update.value[1]) << 8
            let isDirected = update.centrals != nil
            if let last = range, last.last + 1 == number, !isDirected {
                range = (last.first, number)
                texts[texts.count - 1] = "\(last.first)-\(number)"
            } else {
                range = isDirected ? nil : (number, number)
                texts.append("\(number)" + (isDirected ? "!" : ""))
            }
        }
        return texts.isEmpty ? "none" : texts.joined(separator: " ")
    }

    /// Executes an event of a table: `add 0-2` adds three updates, `add 1!` one for one central.
    private func send(_ event: [String]) throws -> String {
        let bounds = event.count > 1 ? event[1].split(separator: "-").compactMap { Int($0.prefix { $0.isNumber }) } : []
        switch event[0] {
        case "pending": return words(queue.pending.map { ServerUpdate($0) })
        case "dropped": return "\(queue.dropped)"
        case "isEmpty": return "\(queue.isEmpty)"
        case "mustWake": return "\(queue.mustWake())"
        case "limit" where bounds.isEmpty: return "\(queue.limit)"
        case "limit": queue.limit(to: bounds[0])
        case "dropOldest": queue.policy = .dropOldest
        case "subscribed": queue.subscribed()
        case "unsubscribed": return words(queue.unsubscribed())
        case "keep":
            return words(queue.keepUnsubscribed(UnsubscribedUpdatePolicy.allCases.first { "\($0)" == event[1] }!))
        case "take": return words(take())
        case "next": return words([queue.next()].compactMap(\.self))
        case "sent": return words([queue.ended(.sent)].compactMap(\.self))
        case "unconfirmed": return words([queue.ended(.unconfirmed)].compactMap(\.self))
        case "unreachable": return words([queue.ended(.unreachable)].compactMap(\.self))
        case "removeAll": return words(queue.removeAll())
        case "add":
            let centrals = event[1].hasSuffix("!") ? [ObjectKey(adapter: 0)].compactMap(\.self) : nil
            let results = (bounds[0]...bounds[bounds.count - 1]).map { number in
                let dropped = queue.add(ServerUpdate(value(number).value, for: centrals))
                return dropped.map { $0.isEmpty ? "queued" : "dropped " + words($0) } ?? "refused"
            }
            if results.count > 1 { XCTAssertEqual(Set(results), ["queued"]) }
            return results[0]
        default: throw UnknownEvent(event)
        }
        return "none"
    }

    private func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            queue = UpdateQueue()
            return { [self] in try send($0) }
        }
    }

    func testSubscriptions() {
        play(
            """
            Without subscribers updates wait:
            add 0-2; mustWake → false; take → none; pending → 0-2
            A subscription sends what waits in order, which stays pending until it is sent:
            add 0-2; subscribed; mustWake → true; take → 0-2; pending → 0-2; sent; sent; pending → 2
            One wake is enough for all that come together:
            subscribed; add 0; mustWake → true; add 1-4; mustWake → false; take → 0-4; mustWake → false
            What was not confirmed is sent again in the next subscription:
            subscribed; add 0-3; take; sent; unsubscribed → none; sent → none; pending → 1-3; add 4; subscribed
            take → 1-4
            A removal is no loss of updates:
            keep discard; subscribed; add 0-2; removeAll → 0-2; isEmpty → true; dropped → 0
            An unconfirmed indication is sent once more and then dropped:
            subscribed; add 0-1; next → 0; unconfirmed → none; mustWake → true; next → 0; unconfirmed → 0; dropped → 1
            next → 1
            """)
    }

    func testNoMoreThanAWindowIsUnderWay() {
        queue.subscribed()
        add(0..<200)
        XCTAssertEqual(take(), values(0..<UpdateQueue.window))
        XCTAssertEqual(take(), [])
        for _ in 1..<UpdateQueue.window / 2 { _ = queue.ended(.sent) }
        XCTAssertFalse(queue.mustWake(), "A wake is for many.")
        _ = queue.ended(.sent)
        XCTAssertTrue(queue.mustWake())
        XCTAssertEqual(take(), values(UpdateQueue.window..<UpdateQueue.window + UpdateQueue.window / 2))
    }

    func testWithoutSubscriptions() {
        play(
            """
            The newest stay and nothing is refused; a lower limit alone drops nothing:
            limit 3; add 0-2; add 3 → dropped 0; add 4 → dropped 1; pending → 2-4; dropped → 2; limit 1; pending → 2-4
            add 5 → dropped 2-4; pending → 5
            A subscriber receives what was accepted, so more is refused:
            limit 1; add 5; subscribed; add 6 → refused
            A limit that was lowered applies to what is under way when the last subscriber leaves:
            subscribed; add 0-4; take → 0-4; limit 2; pending → 0-4; unsubscribed → 0-2; pending → 3-4; dropped → 3
            limit 1; keep queue → 3
            With latest the newest waits, from the change of the policy on:
            add 0-2; keep latest → 0-1; add 3 → dropped 2; dropped → 3; subscribed; take → 3
            add 4-5; pending → 3-5; unsubscribed → 3-4; pending → 5; dropped → 5
            With discard nothing waits:
            add 0-1; keep discard → 0-1; add 2 → dropped 2; subscribed; take → none; add 3-4; take → 3-4; sent
            unsubscribed → 4; isEmpty → true; dropped → 4
            A policy that is set during a subscription applies at its end:
            subscribed; add 0-2; keep latest → none; pending → 0-2; unsubscribed → 0-1
            """)
    }

    func testAFullQueue() {
        play(
            """
            It refuses, and has a place for one at least:
            subscribed; limit 2; add 0-1; add 2 → refused; pending → 0-1; limit 0; limit → 1
            It may drop the oldest that is not under way; behind what is under way one waits:
            dropOldest; limit 3; subscribed; add 0; take; add 1-2; add 3 → dropped 1; pending → 0 2-3; dropped → 1
            take; add 4 → queued; add 5 → dropped 4; pending → 0 2-3 5
            """)
    }

    func testUpdatesForOneCentral() {
        play(
            """
            What cannot reach its central is dropped alone:
            subscribed; add 0; add 1! → queued; add 2; take → 0 1! 2; sent; unreachable → 1!; dropped → 1; sent
            isEmpty → true
            What is for one central does not wait for the next subscriber:
            subscribed; add 0; add 1! → queued; add 2; take; unsubscribed → 1!; dropped → 1; subscribed; take → 0 2
            """)
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
