import TestRandomness
import XCTest

@testable import BlueCapKit

final class OperationQueueMachineTests: RandomTestCase {
    private typealias Machine = OperationQueueMachine<Int, String>
    private typealias Event = Machine.Event
    private typealias Effect = Machine.Effect

    /// Each line: what happens, and what follows from it.
    private func play(
        _ lines: [(Event, [Effect])], _ machine: inout Machine, file: StaticString = #filePath, line: UInt = #line
    ) {
        for (number, (event, effects)) in lines.enumerated() {
            XCTAssertEqual(machine.event(event), effects, "line \(number): \(event)", file: file, line: line)
        }
    }

    private func play(_ lines: [(Event, [Effect])], file: StaticString = #filePath, line: UInt = #line) -> Machine {
        var machine = Machine()
        play(lines, &machine, file: file, line: line)
        return machine
    }

    func testOneAtATimeInTheOrderOfAsking() {
        let machine = play([
            (.enqueued(1), [.begin(1)]),
            (.enqueued(2), []),
            (.enqueued(3), []),
            (.began(1), []),
            (.finished(1, "a"), [.settle(1, "a"), .begin(2)]),
            (.began(2), []),
            (.finished(2, "b"), [.settle(2, "b"), .begin(3)]),
            (.began(3), []),
            (.finished(3, "c"), [.settle(3, "c")]),
        ])
        XCTAssertTrue(machine.isIdle)
    }

    func testWhoWaitsIsCancelledAtOnceAndTheOthersKeepTheirPlaces() {
        var machine = play([
            (.enqueued(1), [.begin(1)]),
            (.enqueued(2), []),
            (.enqueued(3), []),
            (.enqueued(4), []),
            (.began(1), []),
            (.cancelled(3, "enough"), [.settle(3, "enough")]),
        ])
        XCTAssertEqual(machine.waiting, [2, 4])
        XCTAssertEqual([1, 2, 3, 4].map { machine.position(of: $0) }, [0, 1, nil, 2])
        play(
            [(.finished(1, "a"), [.settle(1, "a"), .begin(2)]), (.finished(2, "b"), [.settle(2, "b"), .begin(4)])],
            &machine)
    }

    func testWhatWasToBeginIsCancelledAndNeverBegins() {
        let machine = play([
            (.enqueued(1), [.begin(1)]),
            (.enqueued(2), []),
            (.cancelled(1, "enough"), [.settle(1, "enough"), .begin(2)]),
            (.began(1), []),
        ])
        XCTAssertEqual(machine.current, 2)
    }

    func testWhatRunsIsSettledAtOnceAndTheNextWaitsForItsEnd() {
        var machine = play([
            (.enqueued(1), [.begin(1)]),
            (.enqueued(2), []),
            (.began(1), []),
            (.cancelled(1, "enough"), [.settle(1, "enough"), .stop(1)]),
            (.cancelled(1, "again"), []),
            (.enqueued(3), []),
        ])
        XCTAssertNil(machine.current)
        XCTAssertFalse(machine.isIdle)
        XCTAssertEqual(machine.count, 2)
        XCTAssertEqual([1, 2, 3].map { machine.position(of: $0) }, [nil, 1, 2])
        play([(.finished(1, "late"), [.begin(2)])], &machine)
    }

    func testAllAreCancelledInTheirOrder() {
        var machine = play([
            (.enqueued(1), [.begin(1)]),
            (.enqueued(2), []),
            (.enqueued(3), []),
            (.began(1), []),
            (.allCancelled("off"), [.settle(1, "off"), .stop(1), .settle(2, "off"), .settle(3, "off")]),
            (.allCancelled("off"), []),
            (.enqueued(4), []),
            (.finished(1, "late"), [.begin(4)]),
        ])
        play([(.allCancelled("off"), [.settle(4, "off")]), (.enqueued(5), [.begin(5)])], &machine)
    }

    func testWhatIsNotInTheQueueMeansNothing() {
        let machine = play([
            (.began(1), []),
            (.finished(1, "a"), []),
            (.cancelled(1, "a"), []),
            (.allCancelled("a"), []),
            (.enqueued(2), [.begin(2)]),
            (.enqueued(3), []),
            (.began(3), []),
            (.finished(3, "a"), []),
        ])
        XCTAssertEqual(machine.count, 2)
    }

    /// Anything in any order: each is settled once, no two are at work together, and what begins does so in the order of
    /// asking.
    func testByChance() {
        var random = TestRandom(self)
        for round in 0..<300 {
            var machine = Machine()
            var model = Model()
            for _ in 0..<400 {
                let event = model.anything(&random)
                model.take(machine.event(event), of: event)
                XCTAssertEqual(machine.count, model.unsettled.count, "round \(round)")
                if let problem = model.problem { return XCTFail("round \(round): \(problem) at \(event)") }
            }
            model.take(machine.event(.allCancelled("end")), of: .allCancelled("end"))
            if let id = model.atWork { model.take(machine.event(.finished(id, "late")), of: .finished(id, "late")) }
            XCTAssertTrue(machine.isIdle, "round \(round)")
            XCTAssertEqual(model.unsettled, [], "round \(round)")
            XCTAssertEqual(model.settled.count, model.last, "round \(round)")
            XCTAssertNil(model.problem, "round \(round)")
        }
    }

    func testALongLineCostsNoMoreThanItsLength() {
        var machine = Machine()
        for id in 0..<20_000 { _ = machine.event(.enqueued(id)) }
        for id in 0..<20_000 { _ = machine.event(.finished(id, "")) }
        XCTAssertTrue(machine.isIdle)
    }
}

/// Drives the machine and checks its effects.
private struct Model {
    typealias Machine = OperationQueueMachine<Int, String>

    var last = 0
    var unsettled: [Int] = []
    var settled: Set<Int> = []
    var begun = 0
    /// The operation that was ordered to begin and has not begun.
    var ordered: Int?
    /// The operation that has begun and has not finished.
    var atWork: Int?
    var problem: String?

    func anything(_ random: inout TestRandom) -> Machine.Event {
        switch Int.random(in: 0..<12, using: &random) {
        case 0...3: return .enqueued(last + 1)
        case 4, 5: return ordered.map { .began($0) } ?? .began(last)
        case 6...8: return (atWork ?? ordered).map { .finished($0, "done") } ?? .finished(last, "late")
        case 9, 10: return .cancelled(Int.random(in: 0...last, using: &random), "cancelled")
        default:
            return Int.random(in: 0..<8, using: &random) == 0 ? .allCancelled("all") : .enqueued(last + 1)
        }
    }

    mutating func take(_ effects: [Machine.Effect], of event: Machine.Event) {
        switch event {
        case .enqueued(let id) where id > last:
            last = id
            unsettled.append(id)
        case .began(let id) where ordered == id:
            (ordered, atWork) = (nil, id)
        case .finished(let id, _):
            if ordered == id { ordered = nil }
            if atWork == id { atWork = nil }
        case .enqueued, .began, .cancelled, .allCancelled: break
        }
        for effect in effects {
            switch effect {
            case .begin(let id):
                if ordered != nil || atWork != nil { problem = "\(id) begins while another is at work" }
                if id <= begun { problem = "\(id) begins after \(begun)" }
                if unsettled.first != id { problem = "\(id) begins before \(unsettled.first ?? 0)" }
                (ordered, begun) = (id, id)
            case .settle(let id, _):
                if !settled.insert(id).inserted { problem = "\(id) is settled twice" }
                unsettled.removeAll { $0 == id }
                if ordered == id { ordered = nil }
            case .stop(let id):
                if atWork != id { problem = "\(id) is stopped and does not work" }
            }
        }
    }
}
