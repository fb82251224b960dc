import XCTest

@testable import BlueCapKit

/// The subscription under events in any order.
final class SubscriptionChanceTests: XCTestCase {
    /// A course of events that a seed decides.
    private struct Course {
        private var generator: SplitMix
        private var machine = SubscriptionMachine(isReady: true)
        private(set) var asked: [OperationID] = []
        private(set) var settled: [OperationID: Int] = [:]
        private(set) var openSockets: Set<SubscriptionMachine.Call> = []
        private var unanswered: [SubscriptionMachine.Effect] = []

        private struct SplitMix: RandomNumberGenerator {
            var state: UInt64

            mutating func next() -> UInt64 {
                state &+= 0x9E37_79B9_7F4A_7C15
                var word = state
                word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
                word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
                return word ^ (word >> 31)
            }
        }

        init(seed: UInt64) { generator = SplitMix(state: seed) }

        mutating func run(steps: Int) {
            for _ in 0..<steps { take(randomEvent()) }
            take(.closed(canCall: Bool.random(using: &generator)))
            while !unanswered.isEmpty { take(answer()) }
        }

        private mutating func randomEvent() -> SubscriptionMachine.Event {
            let transport: NotificationTransport = Bool.random(using: &generator) ? .signals : .socket
            switch UInt8.random(in: 0..<14, using: &generator) {
            case 0, 1: return .startAsked(newID(), transport)
            case 2: return .stopAsked(newID())
            case 3: return .linkWentDown(.disconnected, canCall: Bool.random(using: &generator))
            case 4, 5: return .attributesReady
            case 6: return .notifyingChanged(Bool.random(using: &generator))
            case 7: return openSockets.first.map { .socketClosed($0) } ?? .notifyingChanged(false)
            case 8: return .fired(Bool.random(using: &generator) ? .confirmation : .interruption)
            case 9: return Bool.random(using: &generator) ? .attributeRemoved : .invalidated
            case 10: return .linkWentUp
            default: return unanswered.isEmpty ? .attributesReady : answer()
            }
        }

        private mutating func newID() -> OperationID {
            asked.append(OperationID(rawValue: UInt64(asked.count)))
            return asked[asked.count - 1]
        }

        private mutating func answer() -> SubscriptionMachine.Event {
            let isGood = UInt8.random(in: 0..<4, using: &generator) > 0
            let refusal = SubscriptionMachine.Failure.refused(BusFailure(name: "no", message: ""))
            switch unanswered.removeFirst() {
            case .callStart(let call):
                return isGood
                    ? .startReplied(call, isNotifying: Bool.random(using: &generator)) : .startFailed(call, refusal)
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
        for seed in 0..<2_000 as Range<UInt64> {
            var course = Course(seed: seed)
            course.run(steps: 60)
            XCTAssertEqual(course.settled.count, course.asked.count, "seed \(seed)")
            XCTAssertTrue(course.settled.values.allSatisfy { $0 == 1 }, "seed \(seed)")
            XCTAssertEqual(course.openSockets, [], "seed \(seed)")
        }
    }
}
