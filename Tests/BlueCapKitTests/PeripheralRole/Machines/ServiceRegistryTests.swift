import XCTest

@testable import BlueCapKit

final class ServiceRegistryTests: XCTestCase {
    private typealias Number = ServiceRegistry.Number
    private typealias Effect = ServiceRegistry.Effect

    private var registry = ServiceRegistry()
    private let a = Number(rawValue: 1)
    private let b = Number(rawValue: 2)
    private let busFailure = BusFailure(name: "org.bluez.Error.Failed", message: "No")

    private func powerOn() { XCTAssertEqual(registry.managerStateChanged(.poweredOn), []) }

    private func added(_ number: Number) {
        _ = registry.add(number)
        _ = registry.registered(number, failure: nil)
    }

    func testAServiceIsRegisteredAtOnceWhileTheManagerIsOn() {
        powerOn()
        XCTAssertEqual(registry.add(a, timeout: 10), [.startTimer(a, 10), .register(a)])
        XCTAssertEqual(registry.added, [])
        XCTAssertEqual(registry.registered(a, failure: nil), [.cancelTimer(a), .settle(a, nil)])
        XCTAssertEqual(registry.added, [a])
    }

    func testAServiceWaitsForPower() {
        XCTAssertEqual(registry.add(a, timeout: 10), [.startTimer(a, 10)])
        XCTAssertEqual(registry.managerStateChanged(.poweredOff), [])
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [.register(a)])
    }

    func testWithoutATimeoutThereIsNoTimer() {
        XCTAssertEqual(registry.add(a), [])
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [.register(a)])
    }

    func testAServiceThatHasWaitedForLongFailsWithTheState() {
        _ = registry.add(a)
        _ = registry.managerStateChanged(.unsupported)
        XCTAssertEqual(registry.timerFired(a), [.drop(a), .settle(a, .notPoweredOn(.unsupported))])
        XCTAssertFalse(registry.contains(a))
        XCTAssertEqual(registry.timerFired(a), [])
    }

    func testALateTimerDoesNothing() {
        _ = registry.add(a)
        powerOnWaiting()
        _ = registry.registered(a, failure: nil)
        XCTAssertEqual(registry.timerFired(a), [])
        _ = registry.managerStateChanged(.poweredOff)
        XCTAssertEqual(registry.timerFired(a), [], "What was added stays.")
        XCTAssertEqual(registry.added, [a])
    }

    private func powerOnWaiting() { _ = registry.managerStateChanged(.poweredOn) }

    func testThereIsOneTimeoutForPowerAndRegistration() {
        powerOn()
        _ = registry.add(a, timeout: 10)
        XCTAssertEqual(registry.managerStateChanged(.resetting), [])
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [])
        _ = registry.managerStateChanged(.resetting)
        XCTAssertEqual(
            registry.timerFired(a), [.unregister(a), .drop(a), .settle(a, .notPoweredOn(.resetting))])
        XCTAssertEqual(registry.registered(a, failure: nil), [], "Too late.")
    }

    func testATimeoutSaysWhatKeptBlueZ() {
        powerOn()
        let delays: [(ServiceRegistry.Failure?, ServiceRegistry.Failure)] = [
            (nil, .unanswered), (.notSupported, .notSupported), (.refused(busFailure), .refused(busFailure)),
        ]
        for (delay, failure) in delays {
            _ = registry.add(a, timeout: 1)
            XCTAssertEqual(registry.delayed(a, by: .notSupported), [])
            XCTAssertEqual(registry.delayed(a, by: delay), [])
            XCTAssertEqual(registry.timerFired(a), [.unregister(a), .drop(a), .settle(a, failure)])
        }
    }

    func testARefusalTakesOutThatServiceAlone() {
        powerOn()
        added(a)
        _ = registry.add(b)
        XCTAssertEqual(
            registry.registered(b, failure: .refused(busFailure)),
            [.cancelTimer(b), .unregister(b), .drop(b), .settle(b, .refused(busFailure))])
        XCTAssertEqual(registry.added, [a])
    }

    func testTheOrderIsThatOfTheWishes() {
        powerOn()
        _ = registry.add(a)
        _ = registry.add(b)
        _ = registry.registered(b, failure: nil)
        _ = registry.registered(a, failure: nil)
        XCTAssertEqual(registry.added, [a, b])
    }

    func testAServiceIsAddedOnce() {
        powerOn()
        _ = registry.add(a)
        XCTAssertEqual(registry.add(a), [])
    }

    func testWhatIsRemovedIsUnregistered() {
        powerOn()
        added(a)
        XCTAssertEqual(registry.remove(a), [.unregister(a), .drop(a)])
        XCTAssertEqual(registry.remove(a), [])
    }

    func testARemovalSettlesWhoWaits() {
        _ = registry.add(a)
        XCTAssertEqual(registry.remove(a), [.cancelTimer(a), .drop(a), .settle(a, .removed)])
        powerOn()
        _ = registry.add(b)
        XCTAssertEqual(
            registry.removeAll(.ended), [.cancelTimer(b), .unregister(b), .drop(b), .settle(b, .ended)])
        XCTAssertEqual(registry.registered(b, failure: nil), [])
    }

    func testServicesStayWhilePowerIsOff() {
        powerOn()
        added(a)
        XCTAssertEqual(registry.managerStateChanged(.poweredOff), [])
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [])
        XCTAssertEqual(registry.added, [a])
    }

    func testAnotherAdapterGetsWhatTheFormerOneHad() {
        powerOn()
        added(a)
        _ = registry.add(b)
        XCTAssertEqual(registry.placeChanged(), [.register(a), .register(b)])
        XCTAssertEqual(
            registry.registered(a, failure: .refused(busFailure)), [], "It was added, and is tried again by itself.")
        XCTAssertEqual(registry.added, [a])
    }
}
