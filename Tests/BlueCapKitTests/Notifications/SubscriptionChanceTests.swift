import TestBasics
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
        /// Whether BlueZ has a subscriber for it.
        private(set) var isHeld = false
        private var lastCall = SubscriptionMachine.Call(rawValue: 0)
        private var unanswered: [Order.Action] = []

        init(_ random: TestRandom) { self.random = random }

        mutating func run(steps: Int) {
            for _ in 0..<steps { take(randomEvent()) }
            take(.closed)
            while !unanswered.isEmpty { take(answer()) }
        }

        private mutating func randomEvent() -> SubscriptionMachine.Event {
            let transport: NotificationTransport = Bool.random(using: &random) ? .signals : .socket
            switch UInt8.random(in: 0..<17, using: &random) {
            case 0: return .startAsked(newID(), transport)
            case 1:
                let isForStream = Bool.random(using: &random)
                return .startAsked(newID(), transport, outlivesLinks: true, isForStream: isForStream)
            case 2: return .stopAsked(newID())
            case 3: return .linkWentDown(.disconnected, keepsSecuring: Bool.random(using: &random))
            case 4, 5: return .attributesReady
            case 6: return Bool.random(using: &random) ? .interrupted(lastCall) : .asked(lastCall)
            case 7: return Bool.random(using: &random) ? .securityNeeded(lastCall) : .pairingRejected(.timedOut)
            case 8: return .secured(Bool.random(using: &random) ? .timedOut : nil)
            case 9: return Bool.random(using: &random) ? .attributeRemoved : .invalidated
            case 10: return .restored(transport)
            case 11: return asked.randomElement(using: &random).map { .timedOut($0) } ?? .linkWentUp
            case 12: return .valuesCame(lastCall)
            case 13: return .readersEnded
            default: return unanswered.isEmpty ? .attributesReady : answer()
            }
        }

        private mutating func newID() -> OperationID {
            asked.append(OperationID(rawValue: UInt64(asked.count)))
            return asked[asked.count - 1]
        }

        private mutating func answer() -> SubscriptionMachine.Event {
            let isGood = UInt8.random(in: 0..<4, using: &random) > 0
            let refusal = PeripheralFailure.characteristic(.notifyFailed(BusError(name: "no", message: "")))
            switch unanswered.removeFirst() {
            case .subscribe(let call, _, _, _): return isGood ? .began(call) : .failed(call, refusal)
            case .unsubscribe(let call): return .stopped(call, isGood ? nil : refusal)
            default: return .attributesReady
            }
        }

        private mutating func take(_ event: SubscriptionMachine.Event) {
            switch event {
            case .failed(let call, _), .securityNeeded(let call): if call == lastCall { isHeld = false }
            default: break
            }
            for effect in machine.event(event) {
                switch effect {
                case .subscribe(let call, _, _, _):
                    (lastCall, isHeld) = (call, true)
                    unanswered.append(effect)
                case .unsubscribe:
                    isHeld = false
                    unanswered.append(effect)
                case .settle(let id, _): settled[id, default: 0] += 1
                default: break
                }
            }
        }
    }

    func testWhateverHappensEachAskIsSettledOnceAndNothingStaysSubscribed() {
        var random = TestRandom(self)
        for round in 0..<2_000 {
            var course = Course(random.split())
            course.run(steps: 60)
            XCTAssertEqual(course.settled.count, course.asked.count, "round \(round)")
            XCTAssertTrue(course.settled.values.allSatisfy { $0 == 1 }, "round \(round)")
            XCTAssertFalse(course.isHeld, "round \(round)")
        }
    }
}
