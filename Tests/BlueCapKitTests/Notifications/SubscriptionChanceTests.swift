import TestRandomness
import XCTest

@testable import BlueCapKit

/// The subscription under events in any order.
final class SubscriptionChanceTests: RandomTestCase {
    /// A random course of events.
    private struct Course {
        private var random: TestRandom
        private var machine = SubscriptionMachine(isReady: true)
        private(set) var asked: [OperationID] = []
        private(set) var settled: [OperationID: Int] = [:]
        private(set) var openSockets: Set<SubscriptionMachine.Call> = []
        private var unanswered: [Order.Action] = []

        init(_ random: TestRandom) { self.random = random }

        mutating func run(steps: Int) {
            for _ in 0..<steps { take(randomEvent()) }
            take(.closed(canCall: Bool.random(using: &random)))
            while !unanswered.isEmpty { take(answer()) }
        }

        private mutating func randomEvent() -> SubscriptionMachine.Event {
            let transport: NotificationTransport = Bool.random(using: &random) ? .signals : .socket
            switch UInt8.random(in: 0..<16, using: &random) {
            case 0: return .startAsked(newID(), transport)
            case 1: return .startAsked(newID(), transport, outlivesLinks: true)
            case 2: return .stopAsked(newID())
            case 3: return .linkWentDown(.disconnected, canCall: Bool.random(using: &random))
            case 4, 5: return .attributesReady
            case 6: return .notifyingChanged(Bool.random(using: &random))
            case 7:
                let socket = openSockets.min { $0.rawValue < $1.rawValue }
                return socket.map { .socketClosed($0) } ?? .notifyingChanged(false)
            case 8: return .fired(Bool.random(using: &random) ? .confirmation : .interruption)
            case 9: return Bool.random(using: &random) ? .attributeRemoved : .invalidated
            case 10: return .linkWentUp
            case 11: return asked.randomElement(using: &random).map { .timedOut($0) } ?? .valuesCame
            case 12: return .valuesCame
            default: return unanswered.isEmpty ? .attributesReady : answer()
            }
        }

        private mutating func newID() -> OperationID {
            asked.append(OperationID(rawValue: UInt64(asked.count)))
            return asked[asked.count - 1]
        }

        private mutating func answer() -> SubscriptionMachine.Event {
            let isGood = UInt8.random(in: 0..<4, using: &random) > 0
            let refusal = PeripheralFailure.characteristic(.notifyFailed(BusFailure(name: "no", message: "")))
            switch unanswered.removeFirst() {
            case .callStart(let call):
                return isGood
                    ? .startReplied(call, isNotifying: Bool.random(using: &random)) : .startFailed(call, refusal)
            case .acquire(let call):
                if isGood { openSockets.insert(call) }
                return isGood ? .startReplied(call, isNotifying: false) : .startFailed(call, refusal)
            case .callStop(let call):
                return .stopReplied(call, isGood ? nil : refusal)
            default:
                return .attributesReady
            }
        }

        private mutating func take(_ event: SubscriptionMachine.Event) {
            for effect in machine.event(event) {
                switch effect {
                case .callStart, .acquire, .callStop: unanswered.append(effect)
                case .settle(let id, _): settled[id, default: 0] += 1
                case .closeSocket(let call): openSockets.remove(call)
                default: break
                }
            }
        }
    }

    func testWhateverHappensEachAskIsSettledOnceAndNoSocketStaysOpen() {
        var random = TestRandom(self)
        for round in 0..<2_000 {
            var course = Course(random.split())
            course.run(steps: 60)
            XCTAssertEqual(course.settled.count, course.asked.count, "round \(round)")
            XCTAssertTrue(course.settled.values.allSatisfy { $0 == 1 }, "round \(round)")
            XCTAssertEqual(course.openSockets, [], "round \(round)")
        }
    }
}
