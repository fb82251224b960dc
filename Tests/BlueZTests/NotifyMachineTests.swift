import TestRandomness
import XCTest

@testable import BlueCapBlueZ

/// The table of the notifications of one characteristic: the subscribers, and the calls to BlueZ.
final class NotifyMachineTests: RandomTestCase {
    private typealias Effects = NotifyMachine.Effects

    private final class Manager {}

    private var machine = NotifyMachine(isVirtual: false)
    private let managers = [Manager(), Manager(), Manager()]
    private let refused = BlueZError(name: "org.bluez.Error.NotPermitted", message: "Notify acquired")

    private func id(_ number: Int) -> ObjectIdentifier { ObjectIdentifier(managers[number - 1]) }

    private func effects(_ event: (inout NotifyMachine, inout Effects) -> Void) -> Effects {
        var effects: Effects = []
        event(&machine, &effects)
        return effects
    }

    private func subscribe(
        _ number: Int = 1, overSocket: Bool = false, isReplyUncertain: Bool = false, isRepeated: Bool = false
    ) -> Effects {
        effects {
            $0.subscribe(
                id(number), overSocket: overSocket, isReplyUncertain: isReplyUncertain, isRepeated: isRepeated,
                into: &$1)
        }
    }

    private func unsubscribe(_ number: Int = 1) -> Effects { effects { $0.unsubscribe(id(number), into: &$1) } }

    private func started(_ call: UInt32, _ error: BlueZError? = nil, isNotifying: Bool = true) -> Effects {
        effects { $0.started(call, error, isNotifying: isNotifying, into: &$1) }
    }

    private func acquired(_ call: UInt32, _ error: BlueZError? = nil) -> Effects {
        effects { $0.acquired(call, error, into: &$1) }
    }

    private func stopped(_ call: UInt32, _ error: BlueZError? = nil) -> Effects {
        effects { $0.stopped(call, error, into: &$1) }
    }

    private func notifying(_ isNotifying: Bool) -> Effects { effects { $0.notifyingChanged(isNotifying, into: &$1) } }

    private func timer() -> Effects { effects { $0.timerFired(into: &$1) } }

    /// Brings the machine to `on`, with one call and one subscriber.
    private func turnOn(overSocket: Bool = false) {
        _ = subscribe(overSocket: overSocket)
        XCTAssertEqual(overSocket ? acquired(1) : started(1), [.report(id(1), .began)])
        XCTAssertEqual(machine.state, .on)
    }

    // MARK: Starting

    func testItHasBegunWhenBlueZSaysThatItNotifies() {
        XCTAssertEqual(subscribe(), [.start(1)])
        XCTAssertTrue(machine.passesSignals, "Values may precede the reply.")
        XCTAssertEqual(started(1), [.report(id(1), .began)])
    }

    func testAYesAloneIsNotEnough() {
        _ = subscribe()
        XCTAssertEqual(started(1, isNotifying: false), [.startTimer(30)])
        XCTAssertEqual(notifying(true), [.cancelTimer, .report(id(1), .began)])
    }

    func testAYesThatNothingFollowsFailsInTheEndAndIsTakenBack() {
        _ = subscribe()
        _ = started(1, isNotifying: false)
        let effects = timer()
        guard case .report(id(1), .failed(let error))? = effects.first else { return XCTFail("\(effects)") }
        XCTAssertEqual(error.cause, .noReply)
        XCTAssertEqual(Array(effects.dropFirst()), [.cancelTimer, .stop(2)])
        XCTAssertEqual(stopped(2), [.closeSocket, .stopped(nil)])
        XCTAssertTrue(machine.isIdle)
    }

    func testASocketIsEnough() {
        XCTAssertEqual(subscribe(overSocket: true), [.acquire(1)])
        XCTAssertEqual(acquired(1), [.report(id(1), .began)])
        XCTAssertFalse(machine.passesSignals)
    }

    func testARefusalEndsTheSubscription() {
        _ = subscribe()
        XCTAssertEqual(started(1, refused), [.report(id(1), .failed(refused))])
        XCTAssertTrue(machine.isIdle)
        XCTAssertFalse(machine.passesSignals)
        XCTAssertEqual(unsubscribe(), [.stopped(nil)])
    }

    func testASubscriptionAfterARefusalIsMadeLaterIfAskedSo() {
        XCTAssertEqual(subscribe(isRepeated: true), [.startTimer(1)])
        XCTAssertEqual(timer(), [.cancelTimer, .report(id(1), .asked), .start(1)])
    }

    // MARK: Several subscribers

    func testASecondSubscriberSharesTheTransportOfTheFirst() {
        for overSocket in [false, true] {
            machine = NotifyMachine(isVirtual: false)
            turnOn(overSocket: overSocket)
            XCTAssertEqual(subscribe(2, overSocket: !overSocket), [.report(id(2), .began)])
        }
    }

    func testTwoThatSubscribeAtOnceAreOneCall() {
        _ = subscribe()
        XCTAssertEqual(subscribe(2), [])
        XCTAssertEqual(started(1), [.report(id(1), .began), .report(id(2), .began)])
    }

    func testTheLastOneTurnsNotificationsOff() {
        turnOn()
        _ = subscribe(2)
        XCTAssertEqual(unsubscribe(1), [.stopped(nil)])
        XCTAssertEqual(unsubscribe(2), [.cancelTimer, .stop(2)])
        XCTAssertEqual(stopped(2), [.closeSocket, .stopped(nil)])
    }

    // MARK: Stopping

    func testTheSocketIsClosedAfterBlueZKnows() {
        turnOn(overSocket: true)
        XCTAssertEqual(unsubscribe(), [.cancelTimer, .stop(2)])
        XCTAssertEqual(effects { $0.socketClosed(into: &$1) }, [.closeSocket])
        XCTAssertEqual(stopped(2, refused), [.closeSocket, .stopped(refused)])
    }

    func testThatThereWasNothingToStopIsNoFailure() {
        turnOn()
        _ = unsubscribe()
        let nothing = BlueZError(name: "org.bluez.Error.Failed", message: "No notify session started")
        XCTAssertEqual(stopped(2, nothing), [.closeSocket, .stopped(nil)])
    }

    func testANewSubscriptionWaitsForTheEndOfTheLastOne() {
        turnOn()
        _ = unsubscribe()
        XCTAssertEqual(subscribe(2, overSocket: true), [])
        XCTAssertTrue(machine.passesSignals, "Values may precede the reply.")
        XCTAssertEqual(unsubscribe(2), [])
        XCTAssertEqual(subscribe(2, overSocket: true), [])
        XCTAssertEqual(stopped(2), [.closeSocket, .stopped(nil), .acquire(3)])
    }

    func testAReplyToAWithdrawnCallIsIgnored() {
        _ = subscribe(overSocket: true)
        XCTAssertEqual(unsubscribe(), [.cancelTimer, .stop(2)])
        XCTAssertFalse(machine.isAcquiring(1), "Its socket is closed.")
        XCTAssertEqual(acquired(1), [])
        _ = stopped(2)
        XCTAssertEqual(subscribe(), [.start(3)])
        XCTAssertEqual(started(1), [])
        XCTAssertEqual(stopped(2), [])
    }

    // MARK: A socket that the peripheral may refuse

    func testASocketWhoseRefusalHasNoReplyIsTriedOverSignalsFirst() {
        XCTAssertEqual(subscribe(overSocket: true, isReplyUncertain: true), [.start(1)])
        XCTAssertFalse(machine.passesSignals)
        XCTAssertEqual(started(1, isNotifying: false), [.cancelTimer, .stop(2)])
        XCTAssertEqual(stopped(2), [.closeSocket, .stopped(nil), .acquire(3)])
        XCTAssertEqual(acquired(3), [.report(id(1), .began)])
    }

    func testARefusalOfTheTryIsFinal() {
        _ = subscribe(overSocket: true, isReplyUncertain: true)
        XCTAssertEqual(started(1, refused), [.report(id(1), .failed(refused))])
        XCTAssertEqual(subscribe(overSocket: true, isReplyUncertain: true), [.start(2)])
    }

    func testASocketThatIsWithdrawnDuringTheTryIsNotAcquired() {
        _ = subscribe(overSocket: true, isReplyUncertain: true)
        XCTAssertEqual(unsubscribe(), [.cancelTimer, .stop(2)])
        XCTAssertEqual(started(1), [])
        XCTAssertEqual(stopped(2), [.closeSocket, .stopped(nil)])
        XCTAssertTrue(machine.isIdle)
    }

    // MARK: Interruptions

    func testNotifyingThatEndsByItselfIsAskedForAgain() {
        turnOn()
        _ = subscribe(2)
        XCTAssertEqual(
            notifying(false), [.report(id(1), .interrupted), .report(id(2), .interrupted), .startTimer(1)])
        XCTAssertTrue(machine.passesSignals, "BlueZ may notify again by itself.")
        XCTAssertEqual(timer(), [.cancelTimer, .report(id(1), .asked), .report(id(2), .asked), .start(2)])
        XCTAssertEqual(started(2), [.report(id(1), .began), .report(id(2), .began)])
    }

    func testNotifyingThatReturnsByItselfIsNotAskedFor() {
        turnOn()
        _ = notifying(false)
        XCTAssertEqual(notifying(true), [.cancelTimer, .report(id(1), .began)])
    }

    func testASocketThatClosesIsAcquiredAgain() {
        turnOn(overSocket: true)
        XCTAssertEqual(
            effects { $0.socketClosed(into: &$1) }, [.closeSocket, .report(id(1), .interrupted), .startTimer(1)])
        XCTAssertEqual(notifying(true), [])
        XCTAssertEqual(timer(), [.cancelTimer, .report(id(1), .asked), .acquire(2)])
    }

    func testAnInterruptedSubscriptionIsTurnedOffWhenTheLinkFalls() {
        turnOn(overSocket: true)
        _ = effects { $0.socketClosed(into: &$1) }
        XCTAssertEqual(unsubscribe(), [.cancelTimer, .stop(2)])
    }

    func testWhatOthersDoWithTheCharacteristicIsNoneOfOurs() {
        XCTAssertEqual(notifying(true), [])
        XCTAssertEqual(notifying(false), [])
        turnOn(overSocket: true)
        XCTAssertEqual(notifying(false), [])
    }

    // MARK: Objects

    func testARemovedObjectLeavesNothing() {
        turnOn(overSocket: true)
        let gone = effects { $0.removed(into: &$1) }
        XCTAssertEqual(
            gone, [.cancelTimer, .closeSocket, .stopped(nil), .report(id(1), .failed(.noSuchObject))])
        XCTAssertTrue(machine.isIdle)
        XCTAssertEqual(subscribe(overSocket: true), [.acquire(2)])
        XCTAssertEqual(acquired(1), [])
    }

    func testAVirtualValueNeedsNoCall() {
        machine = NotifyMachine(isVirtual: true)
        XCTAssertEqual(subscribe(), [.report(id(1), .began)])
        XCTAssertTrue(machine.passesSignals)
        XCTAssertEqual(unsubscribe(), [.cancelTimer, .stopped(nil)])
        let effects = subscribe(overSocket: true)
        guard case .report(id(1), .failed(let error))? = effects.first else { return XCTFail("\(effects)") }
        XCTAssertEqual(error.cause, .notSupported)
    }

    // MARK: Any order

    /// Each subscription begins or fails unless it is withdrawn, each end is completed, and BlueZ has nothing in the end.
    func testWhateverHappensNothingIsLeftInTheEnd() {
        var random = TestRandom(self)
        for round in 0..<2_000 {
            machine = NotifyMachine(isVirtual: false)
            var calls: [NotifyMachine.Effect] = []
            var waiting: Set<ObjectIdentifier> = []
            var stops = 0
            var isTimerSet = false
            func take(_ effects: Effects) {
                for effect in effects {
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
                case .start(let call): take(started(call, error, isNotifying: Bool.random(using: &random)))
                case .acquire(let call): take(acquired(call, error))
                case .stop(let call): take(stopped(call, error))
                default: break
                }
            }
            for _ in 0..<60 {
                let number = Int.random(in: 1...3, using: &random)
                let flags = (0..<3).map { _ in Bool.random(using: &random) }
                switch UInt8.random(in: 0..<10, using: &random) {
                case 0, 1:
                    waiting.insert(id(number))
                    take(subscribe(number, overSocket: flags[0], isReplyUncertain: flags[1], isRepeated: flags[2]))
                case 2:
                    waiting.remove(id(number))
                    stops += 1
                    take(unsubscribe(number))
                case 3: take(notifying(flags[0]))
                case 4: take(effects { $0.socketClosed(into: &$1) })
                case 5:
                    guard UInt8.random(in: 0..<4, using: &random) == 0 else { break }
                    calls = []
                    take(effects { $0.removed(into: &$1) })
                case 6:
                    guard isTimerSet else { break }
                    isTimerSet = false
                    take(timer())
                default: if !calls.isEmpty { answer() }
                }
            }
            while !calls.isEmpty || isTimerSet {
                if calls.isEmpty {
                    isTimerSet = false
                    take(timer())
                } else {
                    answer()
                }
            }
            XCTAssertEqual(waiting, [], "round \(round)")
            for number in 1...3 {
                stops += 1
                take(unsubscribe(number))
            }
            while !calls.isEmpty { answer() }
            XCTAssertEqual(stops, 0, "round \(round)")
            XCTAssertTrue(machine.isIdle && !isTimerSet, "round \(round)")
        }
    }
}
