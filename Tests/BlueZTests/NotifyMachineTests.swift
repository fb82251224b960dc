import TestBasics
import TestSupport
import XCTest

@testable import BlueCapBlueZ

private final class Manager: Sendable {}

private let managers = [Manager(), Manager(), Manager()]

private func id(_ number: Int) -> ObjectIdentifier { ObjectIdentifier(managers[number - 1]) }

extension NotifyMachine: TableMachine {
    enum Event {
        case subscribe(
            Int = 1, overSocket: Bool = false, isReplyUncertain: Bool = false, isRepeated: Bool = false)
        case unsubscribe(Int = 1), notifying(Bool), timer, socketClosed, removed
        case started(UInt32, BlueZError? = nil, isNotifying: Bool = true)
        case acquired(UInt32, BlueZError? = nil), stopped(UInt32, BlueZError? = nil)
        case holds((NotifyMachine) -> Bool)
    }

    mutating func handle(_ event: Event) -> [Effect]? {
        var effects: Effects = []
        switch event {
        case .subscribe(let number, let overSocket, let isReplyUncertain, let isRepeated):
            subscribe(
                id(number), overSocket: overSocket, isReplyUncertain: isReplyUncertain, isRepeated: isRepeated,
                into: &effects)
        case .unsubscribe(let number): unsubscribe(id(number), into: &effects)
        case .notifying(let isNotifying): notifyingChanged(isNotifying, into: &effects)
        case .timer: timerFired(into: &effects)
        case .socketClosed: socketClosed(into: &effects)
        case .removed: removed(into: &effects)
        case .started(let call, let error, let isNotifying):
            started(call, error, isNotifying: isNotifying, into: &effects)
        case .acquired(let call, let error): acquired(call, error, into: &effects)
        case .stopped(let call, let error): stopped(call, error, into: &effects)
        case .holds(let condition): return condition(self) ? [] : nil
        }
        return effects
    }
}

/// The table of the notifications of one characteristic: the subscribers, and the calls to BlueZ.
final class NotifyMachineTests: RandomTestCase {
    private let machine = NotifyMachine(isVirtual: false)
    private let refused = BlueZError(name: "org.bluez.Error.NotPermitted", message: "Notify acquired")

    /// A machine that is `on`, with one call and one subscriber.
    private func on(overSocket: Bool = false) -> NotifyMachine {
        var machine = machine
        _ = machine.handle(.subscribe(overSocket: overSocket))
        XCTAssertEqual(machine.handle(overSocket ? .acquired(1) : .started(1)), [.report(id(1), .began)])
        XCTAssertEqual(machine.state, .on)
        return machine
    }

    // MARK: Starting

    func testAYesAloneIsNotEnough() {
        check(
            "a yes alone is not enough", machine, (.subscribe(), nil),
            (.started(1, isNotifying: false), [.startTimer(30)]),
            (.notifying(true), [.cancelTimer, .report(id(1), .began)]))
    }

    func testAYesThatNothingFollowsFailsInTheEndAndIsTakenBack() {
        var machine = machine
        _ = machine.handle(.subscribe())
        _ = machine.handle(.started(1, isNotifying: false))
        let effects = machine.handle(.timer) ?? []
        guard case .report(id(1), .failed(let error))? = effects.first else { return XCTFail("\(effects)") }
        XCTAssertEqual(error.cause, .noReply)
        XCTAssertEqual(Array(effects.dropFirst()), [.cancelTimer, .stop(2)])
        XCTAssertEqual(machine.handle(.stopped(2)), [.closeSocket, .stopped(nil)])
        XCTAssertTrue(machine.isIdle)
    }

    func testASubscriptionBeginsWhenBlueZNotifies() {
        check(
            "it has begun when BlueZ says that it notifies", machine,
            (.subscribe(), [.start(1)]),
            // Values may precede the reply.
            (.holds { $0.passesSignals }, nil), (.started(1), [.report(id(1), .began)]))
        check(
            "a socket is enough", machine, (.subscribe(overSocket: true), [.acquire(1)]),
            (.acquired(1), [.report(id(1), .began)]), (.holds { !$0.passesSignals }, nil))
        check(
            "a refusal ends the subscription", machine, (.subscribe(), nil),
            (.started(1, refused), [.report(id(1), .failed(refused))]), (.holds { $0.isIdle }, nil),
            (.holds { !$0.passesSignals }, nil), (.unsubscribe(), [.stopped(nil)]))
        check(
            "a subscription after a refusal is made later if asked so", machine,
            (.subscribe(isRepeated: true), [.startTimer(1)]),
            (.timer, [.cancelTimer, .report(id(1), .asked), .start(1)]))
    }

    // MARK: Several subscribers

    func testSubscribersShareOneCall() {
        for overSocket in [false, true] {
            check(
                "a second subscriber shares the transport of the first: \(overSocket)", on(overSocket: overSocket),
                (.subscribe(2, overSocket: !overSocket), [.report(id(2), .began)]))
        }
        check(
            "two that subscribe at once are one call", machine, (.subscribe(), nil),
            (.subscribe(2), []), (.started(1), [.report(id(1), .began), .report(id(2), .began)]))
        check(
            "the last one turns notifications off", on(), (.subscribe(2), nil), (.unsubscribe(1), [.stopped(nil)]),
            (.unsubscribe(2), [.cancelTimer, .stop(2)]), (.stopped(2), [.closeSocket, .stopped(nil)]))
    }

    // MARK: Stopping

    func testTheLastEndTurnsNotificationsOff() {
        let nothing = BlueZError(name: "org.bluez.Error.Failed", message: "No notify session started")
        check(
            "the socket is closed after BlueZ knows", on(overSocket: true), (.unsubscribe(), [.cancelTimer, .stop(2)]),
            (.socketClosed, [.closeSocket]), (.stopped(2, refused), [.closeSocket, .stopped(refused)]))
        check(
            "that there was nothing to stop is no failure", on(), (.unsubscribe(), nil),
            (.stopped(2, nothing), [.closeSocket, .stopped(nil)]))
        check(
            "a new subscription waits for the end of the last one", on(), (.unsubscribe(), nil),
            (.subscribe(2, overSocket: true), []),
            // Values may precede the reply.
            (.holds { $0.passesSignals }, nil), (.unsubscribe(2), []), (.subscribe(2, overSocket: true), []),
            (.stopped(2), [.closeSocket, .stopped(nil), .acquire(3)]))
        check(
            "a reply to a withdrawn call is ignored", machine,
            (.subscribe(overSocket: true), nil), (.unsubscribe(), [.cancelTimer, .stop(2)]),
            // Its socket is closed.
            (.holds { !$0.isAcquiring(1) }, nil), (.acquired(1), []), (.stopped(2), nil), (.subscribe(), [.start(3)]),
            (.started(1), []), (.stopped(2), []))
    }

    // MARK: A socket that the peripheral may refuse

    func testASocketIsTriedOverSignalsFirst() {
        check(
            "a socket whose refusal has no reply is tried over signals first", machine,
            (.subscribe(overSocket: true, isReplyUncertain: true), [.start(1)]), (.holds { !$0.passesSignals }, nil),
            (.started(1, isNotifying: false), [.cancelTimer, .stop(2)]),
            (.stopped(2), [.closeSocket, .stopped(nil), .acquire(3)]), (.acquired(3), [.report(id(1), .began)]))
        check(
            "a refusal of the try is final", machine,
            (.subscribe(overSocket: true, isReplyUncertain: true), nil),
            (.started(1, refused), [.report(id(1), .failed(refused))]),
            (.subscribe(overSocket: true, isReplyUncertain: true), [.start(2)]))
        check(
            "a socket that is withdrawn during the try is not acquired", machine,
            (.subscribe(overSocket: true, isReplyUncertain: true), nil), (.unsubscribe(), [.cancelTimer, .stop(2)]),
            (.started(1), []), (.stopped(2), [.closeSocket, .stopped(nil)]), (.holds { $0.isIdle }, nil))
    }

    // MARK: Interruptions

    func testASocketThatClosesIsAcquiredAgain() {
        check(
            "a socket that closes is acquired again", on(overSocket: true),
            (.socketClosed, [.closeSocket, .report(id(1), .interrupted), .startTimer(1)]), (.notifying(true), []),
            (.timer, [.cancelTimer, .report(id(1), .asked), .acquire(2)]))
    }

    func testAnInterruptedSubscriptionIsMadeAgain() {
        check(
            "notifying that ends by itself is asked for again", on(), (.subscribe(2), nil),
            (.notifying(false), [.report(id(1), .interrupted), .report(id(2), .interrupted), .startTimer(1)]),
            // BlueZ may notify again by itself.
            (.holds { $0.passesSignals }, nil),
            (.timer, [.cancelTimer, .report(id(1), .asked), .report(id(2), .asked), .start(2)]),
            (.started(2), [.report(id(1), .began), .report(id(2), .began)]))
        check(
            "notifying that returns by itself is not asked for", on(), (.notifying(false), nil),
            (.notifying(true), [.cancelTimer, .report(id(1), .began)]))
        check(
            "an interrupted subscription is turned off when the link falls", on(overSocket: true),
            (.socketClosed, nil), (.unsubscribe(), [.cancelTimer, .stop(2)]))
        check(
            "what others do with the characteristic is none of ours", machine,
            (.notifying(true), []), (.notifying(false), []))
        check(
            "what others do with the characteristic is none of ours", on(overSocket: true), (.notifying(false), []))
    }

    // MARK: Objects

    func testARemovedObjectLeavesNothing() {
        var machine = on(overSocket: true)
        let gone = machine.handle(.removed)
        XCTAssertEqual(
            gone, [.cancelTimer, .closeSocket, .stopped(nil), .report(id(1), .failed(.noSuchObject))])
        XCTAssertTrue(machine.isIdle)
        XCTAssertEqual(machine.handle(.subscribe(overSocket: true)), [.acquire(2)])
        XCTAssertEqual(machine.handle(.acquired(1)), [])
    }

    func testAVirtualValueNeedsNoCall() {
        var machine = NotifyMachine(isVirtual: true)
        XCTAssertEqual(machine.handle(.subscribe()), [.report(id(1), .began)])
        XCTAssertTrue(machine.passesSignals)
        XCTAssertEqual(machine.handle(.unsubscribe()), [.cancelTimer, .stopped(nil)])
        let effects = machine.handle(.subscribe(overSocket: true)) ?? []
        guard case .report(id(1), .failed(let error))? = effects.first else { return XCTFail("\(effects)") }
        XCTAssertEqual(error.cause, .notSupported)
    }

    // MARK: Any order

    /// Each subscription begins or fails unless it is withdrawn, each end is completed, and BlueZ has nothing in the end.
    func testWhateverHappensNothingIsLeftInTheEnd() {
        var random = TestRandom(self)
        for round in 0..<2_000 {
            var machine = machine
            var calls: [NotifyMachine.Effect] = []
            var waiting: Set<ObjectIdentifier> = []
            var stops = 0
            var isTimerSet = false
            func take(_ event: NotifyMachine.Event) {
                for effect in machine.handle(event) ?? [] {
                    switch effect {
                    case .start, .acquire, .stop: calls.append(effect)
                    case .report(let id, .interrupted): waiting.insert(id)
                    case .report(_, .asked): break
                    case .report(let id, _): waiting.remove(id)
                    case .stopped: stops = 0
                    case .startTimer: isTimerSet = true
                    case .cancelTimer: isTimerSet = false
                    case .closeSocket: break
                    }
                }
            }
            func answer() {
                let error = UInt8.random(in: 0..<4, using: &random) == 0 ? refused : nil
                switch calls.removeFirst() {
                case .start(let call): take(.started(call, error, isNotifying: Bool.random(using: &random)))
                case .acquire(let call): take(.acquired(call, error))
                case .stop(let call): take(.stopped(call, error))
                default: break
                }
            }
            for _ in 0..<60 {
                let number = Int.random(in: 1...3, using: &random)
                let flags = (0..<3).map { _ in Bool.random(using: &random) }
                switch UInt8.random(in: 0..<10, using: &random) {
                case 0, 1:
                    waiting.insert(id(number))
                    take(.subscribe(number, overSocket: flags[0], isReplyUncertain: flags[1], isRepeated: flags[2]))
                case 2:
                    waiting.remove(id(number))
                    stops += 1
                    take(.unsubscribe(number))
                case 3: take(.notifying(flags[0]))
                case 4: take(.socketClosed)
                case 5:
                    guard UInt8.random(in: 0..<4, using: &random) == 0 else { break }
                    calls = []
                    take(.removed)
                case 6:
                    guard isTimerSet else { break }
                    isTimerSet = false
                    take(.timer)
                default: if !calls.isEmpty { answer() }
                }
            }
            while !calls.isEmpty || isTimerSet {
                if calls.isEmpty {
                    isTimerSet = false
                    take(.timer)
                } else {
                    answer()
                }
            }
            XCTAssertEqual(waiting, [], "round \(round)")
            for number in 1...3 {
                stops += 1
                take(.unsubscribe(number))
            }
            while !calls.isEmpty { answer() }
            XCTAssertEqual(stops, 0, "round \(round)")
            XCTAssertTrue(machine.isIdle && !isTimerSet, "round \(round)")
        }
    }
}
