import TestSupport
import XCTest

@testable import BlueCapBlueZ

/// How an advertisement is kept registered.
final class AdvertisementRegistrationTests: XCTestCase {
    private typealias Machine = RegistrationMachine

    private let failed = BlueZError(name: "org.bluez.Error.Failed", message: "Failed to register advertisement")
    private let tooMany = BlueZError(name: "org.bluez.Error.NotPermitted", message: "Maximum advertisements reached")
    private let tooLong = BlueZError(name: "org.bluez.Error.InvalidLength", message: "Advertising data too long")
    private let exists = BlueZError(name: "org.bluez.Error.AlreadyExists")

    private func requestedMachine() -> Machine {
        var machine = Machine(.advertisement)
        XCTAssertEqual(machine.changed(), [.report(.waiting(.adapter))])
        return machine
    }

    private func registeredMachine() -> Machine {
        var machine = requestedMachine()
        _ = machine.obstacleChanged(nil)
        _ = machine.replied(1, error: nil)
        XCTAssertEqual(machine.state, .registered)
        return machine
    }

    func testTriesEnd() {
        var machine = registeredMachine()
        for _ in 1..<Machine.mostAgain {
            _ = machine.released()
            _ = machine.timerFired()
        }
        let last = machine.released()
        XCTAssertEqual(machine.state, .refused)
        XCTAssertEqual(last.count, 1)
    }

    func testAnAdvertisementIsKeptRegistered() {
        let released = BlueZError(name: "org.bluez.Error.Failed", message: "Released.")
        check(
            "it waits for adapter and power", requestedMachine(),
            (.obstacleChanged(.power), [.report(.waiting(.power))]),
            (.obstacleChanged(nil), [.report(.registering), .register(1)]), (.replied(1), [.report(.registered)]))
        check(
            "an adapter that was off gets it anew", registeredMachine(),
            (.obstacleChanged(.power), [.unregister, .report(.waiting(.power))]),
            (.obstacleChanged(nil), [.report(.registering), .register(2)]))
        check(
            "a daemon that restarts gets it anew", registeredMachine(),
            (.obstacleChanged(.adapter), [.report(.waiting(.adapter))]),
            (.obstacleChanged(nil), [.report(.registering), .register(2)]), (.replied(1, failed), []),
            (.replied(2), [.report(.registered)]))
        for error in [tooMany, tooLong, BlueZError(name: "com.example.Error.Strange", message: "Words")] {
            check(
                "what is refused the first time is not tried again: \(error)", requestedMachine(),
                (.obstacleChanged(nil), nil),
                (.replied(1, error), [.report(.refused(error))]), (.changed, [.report(.registering), .register(2)]))
        }
        check(
            "a failure that may pass is tried twice more", requestedMachine(), (.obstacleChanged(nil), nil),
            (.replied(1, failed), [.report(.retrying(failed)), .startTimer(seconds: 0.5)]),
            (.timerFired, [.register(2)]),
            (.replied(2, failed), [.report(.retrying(failed)), .startTimer(seconds: 1)]),
            (.timerFired, [.register(3)]), (.replied(3, failed), [.report(.refused(failed))]))
        check(
            "what was taken once is tried again", registeredMachine(), (.obstacleChanged(.adapter), nil),
            (.obstacleChanged(nil), nil),
            (.replied(2, tooMany), [.report(.retrying(tooMany)), .startTimer(seconds: 0.5)]),
            (.timerFired, [.register(3)]), (.replied(3), [.report(.registered), .startTimer(seconds: 60)]),
            (.timerFired, []))
        check(
            "a release is the end only where a time out was asked for", registeredMachine(),
            (.released(isLimited: true), [.report(.timedOut), .ended]), (.obstacleChanged(.adapter), []))
        check(
            "a release is the end only where a time out was asked for", registeredMachine(),
            (.released(), [.report(.retrying(released)), .startTimer(seconds: 0.5)]), (.timerFired, [.register(2)]))
        check(
            "a new content takes the old ones place", registeredMachine(),
            (.changed, [.unregister, .report(.registering), .register(2)]),
            // BlueZ may have read the old one.
            (.changed, []), (.replied(2), [.unregister, .report(.registering), .register(3)]))
        check(
            "leftovers are unregistered first", requestedMachine(), (.obstacleChanged(nil), nil),
            (.replied(1, exists), [.unregister, .register(2)]), (.replied(2, exists), [.report(.refused(exists))]))
        check(
            "a registration that succeeds after its end is unregistered", requestedMachine(),
            (.obstacleChanged(nil), nil), (.end, [.report(.idle), .unregisterLast(2)]),
            (.replied(2, BlueZError(name: "org.bluez.Error.DoesNotExist")), [.withdrawn]), (.end, [.withdrawn]),
            (.replied(1), [.unregisterLast(3)]), (.replied(3, failed), [.ended]))
        check(
            "a registration without an answer is made again and later each time", registeredMachine(),
            (.obstacleChanged(.adapter), nil), (.obstacleChanged(nil), nil), (.holds { $0.patience == 20 }, nil),
            (.unanswered(2), [.unregister, .register(3)]), (.unanswered(2), []), (.holds { $0.patience == 40 }, nil),
            // The answer to the later call decides.
            (.replied(2), []), (.replied(3, exists), [.unregister, .register(4)]),
            (.replied(4), [.report(.registered), .startTimer(seconds: 60)]), (.holds { $0.patience == 20 }, nil))
        check(
            "a new content replaces one without an answer", registeredMachine(), (.changed, nil), (.changed, nil),
            (.unanswered(2), [.unregister, .report(.registering), .register(3)]),
            (.obstacleChanged(.power), [.unregister, .report(.waiting(.power))]),
            // It is off.
            (.replied(2), [.unregister]))
        check(
            "the end waits for every registration without an answer", requestedMachine(),
            (.obstacleChanged(nil), nil), (.unanswered(1), nil), (.end, [.report(.idle), .unregisterLast(3)]),
            (.replied(3, failed), [.withdrawn]), (.replied(1), [.unregisterLast(4)]),
            (.replied(4, failed), [.withdrawn]), (.replied(2, failed), [.ended]))
        check(
            "the end unregisters", registeredMachine(), (.end, [.report(.idle), .unregisterLast(2)]), (.released(), []),
            (.obstacleChanged(.power), []), (.replied(2), [.ended]))
        check(
            "the end unregisters", registeredMachine(), (.end, nil), (.obstacleChanged(.adapter), [.ended]))
    }
}
