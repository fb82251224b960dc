import TestBasics
import TestSupport
import XCTest

@testable import BlueCapKit

final class OperationQueueMachineTests: RandomTestCase {
    private typealias Machine = OperationQueueMachine<Int, String>
    private typealias Effect = Machine.Effect

    func testPlays() {
        play(
            """
            One at a time in the order of the requests:
            enqueue 1 → begin 1; enqueue 2 → none; enqueue 3 → none; began 1 → none; finish 1 a → settle 1 a, begin 2
            began 2 → none; finish 2 b → settle 2 b, begin 3; began 3 → none; finish 3 c → settle 3 c; isIdle → true
            What waits is cancelled at once, and the others keep their places:
            enqueue 1 → begin 1; enqueue 2 → none; enqueue 3 → none; enqueue 4 → none; began 1 → none
            cancel 3 enough → settle 3 enough; waiting → 2 4
            position 1 → 0; position 2 → 1; position 3 → none; position 4 → 2
            finish 1 a → settle 1 a, begin 2; finish 2 b → settle 2 b, begin 4
            What was to begin is cancelled and never begins:
            enqueue 1 → begin 1; enqueue 2 → none; cancel 1 enough → settle 1 enough, begin 2; began 1 → none
            current → 2
            What runs is settled at once, and the next waits for its end:
            enqueue 1 → begin 1; enqueue 2 → none; began 1 → none; cancel 1 enough → settle 1 enough, stop 1
            cancel 1 again → none; enqueue 3 → none; current → none; isIdle → false; count → 2
            position 1 → none; position 2 → 1; position 3 → 2; finish 1 late → begin 2
            All are cancelled in their order:
            enqueue 1 → begin 1; enqueue 2 → none; enqueue 3 → none; began 1 → none
            cancelAll off → settle 1 off, stop 1, settle 2 off, settle 3 off; cancelAll off → none; enqueue 4 → none
            finish 1 late → begin 4; cancelAll off → settle 4 off; enqueue 5 → begin 5
            What is not in the queue does nothing:
            began 1 → none; finish 1 a → none; cancel 1 a → none; cancelAll a → none; enqueue 2 → begin 2
            enqueue 3 → none
            began 3 → none; finish 3 a → none; count → 2
            """
        ) {
            var machine = Machine()
            return { try Self.send($0, to: &machine) }
        }
    }

    /// Executes an event of the table.
    private static func send(_ event: [String], to machine: inout Machine) throws -> String {
        let id = event.count > 1 ? Int(event[1]) ?? 0 : 0
        let effects: [Effect]
        switch event[0] {
        case "isIdle": return "\(machine.isIdle)"
        case "count": return "\(machine.count)"
        case "current": return machine.current.map(String.init) ?? "none"
        case "waiting": return machine.waiting.map(String.init).joined(separator: " ")
        case "position": return machine.position(of: id).map(String.init) ?? "none"
        case "enqueue": effects = machine.event(.enqueued(id))
        case "began": effects = machine.event(.began(id))
        case "finish": effects = machine.event(.finished(id, event[2]))
        case "cancel": effects = machine.event(.cancelled(id, event[2]))
        case "cancelAll": effects = machine.event(.allCancelled(event[1]))
        default: throw UnknownEvent(event)
        }
        let words = effects.map { effect in
            switch effect {
            case .begin(let id): "begin \(id)"
            case .stop(let id): "stop \(id)"
            case .settle(let id, let result): "settle \(id) \(result)"
            }
        }
        return words.isEmpty ? "none" : words.joined(separator: ", ")
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
