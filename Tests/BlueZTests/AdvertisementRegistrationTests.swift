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

    func testItWaitsForAdapterAndPower() {
        var machine = requestedMachine()
        XCTAssertEqual(machine.obstacleChanged(.power), [.report(.waiting(.power))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(1)])
        XCTAssertEqual(machine.replied(1, error: nil), [.report(.registered)])
    }

    func testAnAdapterThatWasOffGetsItAnew() {
        var machine = registeredMachine()
        XCTAssertEqual(machine.obstacleChanged(.power), [.unregister, .report(.waiting(.power))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(2)])
    }

    func testADaemonThatRestartsGetsItAnew() {
        var machine = registeredMachine()
        XCTAssertEqual(machine.obstacleChanged(.adapter), [.report(.waiting(.adapter))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(2)])
        XCTAssertEqual(machine.replied(1, error: failed), [])
        XCTAssertEqual(machine.replied(2, error: nil), [.report(.registered)])
    }

    func testWhatIsRefusedTheFirstTimeIsNotTriedAgain() {
        for error in [tooMany, tooLong, BlueZError(name: "com.example.Error.Strange", message: "Words")] {
            var machine = requestedMachine()
            _ = machine.obstacleChanged(nil)
            XCTAssertEqual(machine.replied(1, error: error), [.report(.refused(error))])
            XCTAssertEqual(machine.changed(), [.report(.registering), .register(2)])
        }
    }

    func testAFailureThatMayPassIsTriedTwiceMore() {
        var machine = requestedMachine()
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.replied(1, error: failed), [.report(.retrying(failed)), .startTimer(seconds: 0.5)])
        XCTAssertEqual(machine.timerFired(), [.register(2)])
        XCTAssertEqual(machine.replied(2, error: failed), [.report(.retrying(failed)), .startTimer(seconds: 1)])
        XCTAssertEqual(machine.timerFired(), [.register(3)])
        XCTAssertEqual(machine.replied(3, error: failed), [.report(.refused(failed))])
    }

    func testWhatWasTakenOnceIsTriedAgain() {
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.replied(2, error: tooMany), [.report(.retrying(tooMany)), .startTimer(seconds: 0.5)])
        XCTAssertEqual(machine.timerFired(), [.register(3)])
        XCTAssertEqual(machine.replied(3, error: nil), [.report(.registered), .startTimer(seconds: 60)])
        XCTAssertEqual(machine.timerFired(), [])
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

    func testAReleaseIsTheEndOnlyWhereATimeOutWasAskedFor() {
        var machine = registeredMachine()
        XCTAssertEqual(machine.released(isLimited: true), [.report(.timedOut), .ended])
        XCTAssertEqual(machine.obstacleChanged(.adapter), [])

        machine = registeredMachine()
        let released = BlueZError(name: "org.bluez.Error.Failed", message: "Released.")
        XCTAssertEqual(machine.released(), [.report(.retrying(released)), .startTimer(seconds: 0.5)])
        XCTAssertEqual(machine.timerFired(), [.register(2)])
    }

    func testANewContentTakesTheOldOnesPlace() {
        var machine = registeredMachine()
        XCTAssertEqual(
            machine.changed(), [.unregister, .report(.registering), .register(2)])
        XCTAssertEqual(machine.changed(), [], "BlueZ may have read the old one")
        XCTAssertEqual(machine.replied(2, error: nil), [.unregister, .report(.registering), .register(3)])
    }

    func testLeftoversAreUnregisteredFirst() {
        var machine = requestedMachine()
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.replied(1, error: exists), [.unregister, .register(2)])
        XCTAssertEqual(machine.replied(2, error: exists), [.report(.refused(exists))])
    }

    func testARegistrationThatSucceedsAfterItsEndIsUnregistered() {
        var machine = requestedMachine()
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.end(), [.report(.idle), .unregisterLast(2)])
        XCTAssertEqual(machine.replied(2, error: BlueZError(name: "org.bluez.Error.DoesNotExist")), [.withdrawn])
        XCTAssertEqual(machine.end(), [.withdrawn])
        XCTAssertEqual(machine.replied(1, error: nil), [.unregisterLast(3)])
        XCTAssertEqual(machine.replied(3, error: failed), [.ended])
    }

    func testARegistrationWithoutAnAnswerIsMadeAgainAndLaterEachTime() {
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.patience, 20)
        XCTAssertEqual(machine.unanswered(2), [.unregister, .register(3)])
        XCTAssertEqual(machine.unanswered(2), [])
        XCTAssertEqual(machine.patience, 40)
        XCTAssertEqual(machine.replied(2, error: nil), [], "The answer to the later call decides.")
        XCTAssertEqual(machine.replied(3, error: exists), [.unregister, .register(4)])
        XCTAssertEqual(machine.replied(4, error: nil), [.report(.registered), .startTimer(seconds: 60)])
        XCTAssertEqual(machine.patience, 20)
    }

    func testANewContentReplacesOneWithoutAnAnswer() {
        var machine = registeredMachine()
        _ = machine.changed()
        _ = machine.changed()
        XCTAssertEqual(machine.unanswered(2), [.unregister, .report(.registering), .register(3)])
        XCTAssertEqual(machine.obstacleChanged(.power), [.unregister, .report(.waiting(.power))])
        XCTAssertEqual(machine.replied(2, error: nil), [.unregister], "It is off.")
    }

    func testTheEndWaitsForEveryRegistrationWithoutAnAnswer() {
        var machine = requestedMachine()
        _ = machine.obstacleChanged(nil)
        _ = machine.unanswered(1)
        XCTAssertEqual(machine.end(), [.report(.idle), .unregisterLast(3)])
        XCTAssertEqual(machine.replied(3, error: failed), [.withdrawn])
        XCTAssertEqual(machine.replied(1, error: nil), [.unregisterLast(4)])
        XCTAssertEqual(machine.replied(4, error: failed), [.withdrawn])
        XCTAssertEqual(machine.replied(2, error: failed), [.ended])
    }

    func testTheEndUnregisters() {
        var machine = registeredMachine()
        XCTAssertEqual(machine.end(), [.report(.idle), .unregisterLast(2)])
        XCTAssertEqual(machine.released(), [])
        XCTAssertEqual(machine.obstacleChanged(.power), [])
        XCTAssertEqual(machine.replied(2, error: nil), [.ended])

        machine = registeredMachine()
        _ = machine.end()
        XCTAssertEqual(machine.obstacleChanged(.adapter), [.ended])
    }
}
