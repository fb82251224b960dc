import XCTest

@testable import BlueCapKit

final class AdvertisingRegistryTests: XCTestCase {
    private typealias Number = AdvertisingRegistry.Number
    private typealias Effect = AdvertisingRegistry.Effect

    private var registry = AdvertisingRegistry()
    private let a = Number(rawValue: 1)
    private let b = Number(rawValue: 2)
    private let busFailure = BusFailure(name: "org.bluez.Error.Failed", message: "No")

    private func powerOn() { _ = registry.managerStateChanged(.poweredOn) }

    private func onAir(_ number: Number, isMain: Bool = false) {
        _ = registry.begin(number, isMain: isMain)
        _ = registry.limitsKnown(number, refusal: nil)
        _ = registry.told(number, .registered)
        XCTAssertEqual(registry.stage(of: number), .onAir)
    }

    func testTheAdapterIsAskedAndThenAdvertises() {
        powerOn()
        XCTAssertEqual(registry.begin(a, isMain: true, timeout: 10), [.startTimer(a, 10), .askLimits(a)])
        XCTAssertTrue(registry.isAdvertising)
        XCTAssertTrue(registry.hasMain)
        XCTAssertEqual(registry.limitsKnown(a, refusal: nil), [.start(a)])
        XCTAssertEqual(registry.told(a, .registering), [])
        XCTAssertEqual(registry.told(a, .registered), [.cancelTimer(a), .settle(a, nil)])
    }

    func testWithoutPowerItWaitsAndThenFails() {
        XCTAssertEqual(registry.begin(a, isMain: true, timeout: 10), [.startTimer(a, 10)])
        _ = registry.managerStateChanged(.poweredOff)
        XCTAssertEqual(
            registry.timerFired(a), [.settle(a, .notPoweredOn(.poweredOff)), .ended(a, .notStarted)])
        XCTAssertFalse(registry.isAdvertising)
    }

    func testItBeginsWhenThePowerComes() {
        _ = registry.begin(a, isMain: true)
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [.askLimits(a)])
    }

    func testPowerThatGoesInTheMidstIsWaitedFor() {
        powerOn()
        _ = registry.begin(a, isMain: true, timeout: 10)
        XCTAssertEqual(registry.managerStateChanged(.resetting), [])
        XCTAssertEqual(registry.limitsKnown(a, refusal: nil), [], "Asked before the daemon died.")
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [.askLimits(a)])
        _ = registry.limitsKnown(a, refusal: nil)
        XCTAssertEqual(registry.managerStateChanged(.resetting), [])
        XCTAssertEqual(
            registry.timerFired(a), [.settle(a, .notPoweredOn(.resetting)), .ended(a, .notStarted), .end(a)])
    }

    func testWhatTheAdapterCannotDoIsNotStarted() {
        powerOn()
        _ = registry.begin(a, isMain: true)
        XCTAssertEqual(
            registry.limitsKnown(a, refusal: .tooMany(3)),
            [.cancelTimer(a), .settle(a, .tooMany(3)), .ended(a, .notStarted)])
        XCTAssertFalse(registry.isAdvertising)
    }

    func testARefusalFailsTheStart() {
        powerOn()
        _ = registry.begin(a, isMain: true)
        _ = registry.limitsKnown(a, refusal: nil)
        XCTAssertEqual(
            registry.told(a, .refused(busFailure)),
            [.cancelTimer(a), .settle(a, .refused(busFailure)), .ended(a, .refused(busFailure)), .end(a)])
        XCTAssertFalse(registry.isAdvertising)
    }

    func testAnAdapterWithoutAdvertisingIsGivenTime() {
        powerOn()
        _ = registry.begin(a, isMain: true)
        _ = registry.limitsKnown(a, refusal: nil)
        XCTAssertEqual(registry.told(a, .waitingForSupport), [])
        XCTAssertEqual(
            registry.timerFired(a), [.settle(a, .notSupported), .ended(a, .notStarted), .end(a)])
    }

    func testATimeoutSaysWhatKeptBlueZ() {
        powerOn()
        let events: [(AdvertisingRegistry.Event, AdvertisingRegistry.Failure)] = [
            (.registering, .unanswered), (.retrying(busFailure), .refused(busFailure)),
            (.waitingForSupport, .notSupported),
        ]
        for (event, failure) in events {
            _ = registry.begin(a, isMain: true, timeout: 1)
            _ = registry.limitsKnown(a, refusal: nil)
            _ = registry.told(a, event)
            XCTAssertEqual(registry.timerFired(a), [.settle(a, failure), .ended(a, .notStarted), .end(a)])
            _ = registry.confirmedEnd(a)
        }
    }

    func testAnAdapterThatDoesNotSayWhatItCanDoIsNotWaitedFor() {
        powerOn()
        _ = registry.begin(a, isMain: true, timeout: 1)
        XCTAssertEqual(registry.timerFired(a), [.settle(a, .unanswered), .ended(a, .notStarted)])
        XCTAssertEqual(registry.limitsKnown(a, refusal: nil), [])
    }

    func testARegistrationWithoutAnAnswerFailsTheStart() {
        powerOn()
        _ = registry.begin(a, isMain: true)
        _ = registry.limitsKnown(a, refusal: nil)
        XCTAssertEqual(
            registry.told(a, .unanswered(busFailure)),
            [.cancelTimer(a), .settle(a, .unanswered), .ended(a, .refused(busFailure)), .end(a)])
    }

    func testItComesBackByItself() {
        powerOn()
        onAir(a)
        XCTAssertEqual(registry.told(a, .waitingForAdapter), [])
        XCTAssertEqual(registry.stage(of: a), .returning)
        XCTAssertTrue(registry.isAdvertising)
        XCTAssertEqual(registry.told(a, .registered), [])
        XCTAssertEqual(registry.stage(of: a), .onAir)
    }

    func testARefusalLaterEndsIt() {
        powerOn()
        onAir(a)
        XCTAssertEqual(registry.told(a, .refused(busFailure)), [.ended(a, .refused(busFailure)), .end(a)])
    }

    func testItsTimeOutEndsIt() {
        powerOn()
        onAir(a)
        XCTAssertEqual(registry.told(a, .timedOut), [.ended(a, .timedOut), .end(a)])
        XCTAssertFalse(registry.isAdvertising)
    }

    func testAStopWaitsForBlueZ() {
        powerOn()
        onAir(a)
        onAir(b)
        let (stop, effects) = registry.stop(nil, timeout: 3)
        XCTAssertEqual(
            effects, [.ended(a, .stopped), .end(a), .ended(b, .stopped), .end(b), .startStopTimer(stop, 3)])
        XCTAssertFalse(registry.isAdvertising)
        XCTAssertEqual(registry.confirmedEnd(a), [])
        XCTAssertEqual(registry.confirmedEnd(b), [.cancelStopTimer(stop), .settleStop(stop, true)])
    }

    func testAStopThatTakesTooLongFails() {
        powerOn()
        onAir(a)
        let (stop, _) = registry.stop(nil, timeout: 3)
        XCTAssertEqual(registry.stopTimerFired(stop), [.settleStop(stop, false)])
        XCTAssertEqual(registry.confirmedEnd(a), [])
        XCTAssertEqual(registry.stopTimerFired(stop), [])
    }

    func testASecondStopWaitsForWhatTheFirstOneEnds() {
        powerOn()
        onAir(a)
        let (first, _) = registry.stop(nil, timeout: .infinity)
        let (second, effects) = registry.stop(nil, timeout: .infinity)
        XCTAssertEqual(effects, [])
        XCTAssertEqual(
            registry.confirmedEnd(a),
            [
                .cancelStopTimer(first), .settleStop(first, true), .cancelStopTimer(second), .settleStop(second, true),
            ])
    }

    func testAStopOfNothingSucceedsAtOnce() {
        let (stop, effects) = registry.stop(nil, timeout: 3)
        XCTAssertEqual(effects, [.settleStop(stop, true)])
    }

    func testAStopSettlesAStartThatIsUnderWay() {
        powerOn()
        _ = registry.begin(a, isMain: true)
        var (stop, effects) = registry.stop(nil, timeout: 3)
        XCTAssertEqual(
            effects, [.cancelTimer(a), .settle(a, .stopped), .ended(a, .stopped), .settleStop(stop, true)])
        _ = registry.begin(b, isMain: true)
        _ = registry.limitsKnown(b, refusal: nil)
        (stop, effects) = registry.stop(b, timeout: 3)
        XCTAssertEqual(
            effects,
            [.cancelTimer(b), .settle(b, .stopped), .ended(b, .stopped), .end(b), .startStopTimer(stop, 3)])
    }

    func testTheManagersEndSettlesEverybody() {
        powerOn()
        onAir(a)
        let (stop, _) = registry.stop(nil, timeout: 3)
        _ = registry.begin(b, isMain: true)
        XCTAssertEqual(
            registry.endAll(.ended, .managerEnded) + registry.forgetStops(),
            [
                .cancelTimer(b), .settle(b, .ended), .ended(b, .managerEnded), .cancelStopTimer(stop),
                .settleStop(stop, true),
            ])
    }

    func testAnotherAdapterAdvertisesWhatTheFormerOneDid() {
        powerOn()
        onAir(a)
        _ = registry.begin(b, isMain: false)
        XCTAssertEqual(registry.placeChanged(), [.start(a)])
        XCTAssertEqual(registry.told(a, .registered), [], "It was told before.")
    }
}
