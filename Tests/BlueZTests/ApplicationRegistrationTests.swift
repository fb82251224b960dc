import XCTest

@testable import BlueZ

/// How an application is kept registered.
final class ApplicationRegistrationTests: XCTestCase {
    private typealias Machine = RegistrationMachine

    private let failed = BlueZError(name: "org.bluez.Error.Failed", message: "Failed to create entry in database")
    private let noReply = BlueZError(name: "org.freedesktop.DBus.Error.NoReply")
    private let exists = BlueZError(name: "org.bluez.Error.AlreadyExists", message: "Already Exists")
    private let busy = BlueZError(name: "org.bluez.Error.InProgress")

    private func registeredMachine() -> Machine {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.requested(1)
        _ = machine.replied(1, error: nil)
        XCTAssertEqual(machine.state, .registered(1))
        return machine
    }

    func testARequestWaitsForTheAdapter() {
        var machine = Machine(.application)
        XCTAssertEqual(machine.requested(1), [.report(.waiting(.adapter))])
        XCTAssertEqual(machine.obstacleChanged(.support), [.report(.waiting(.support))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(1, 1)])
        XCTAssertEqual(machine.replied(1, error: nil), [.report(.registered), .settled(1, nil)])
        XCTAssertEqual(machine.obstacleChanged(nil), [])
    }

    func testANewSetTakesTheOldOnesPlaceInOneSwap() {
        var machine = registeredMachine()
        XCTAssertEqual(
            machine.requested(2), [.unregister(1), .report(.registering), .register(2, 2)])
        XCTAssertEqual(machine.replied(2, error: nil), [.report(.registered), .settled(2, nil)])
    }

    func testRequestsDuringARegistrationBecomeOneSwapBehindIt() {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.requested(1)
        XCTAssertEqual(machine.requested(2), [])
        XCTAssertEqual(machine.requested(3), [])
        XCTAssertEqual(
            machine.replied(1, error: nil), [.unregister(1), .report(.registering), .register(3, 2)])
        XCTAssertEqual(machine.replied(2, error: nil), [.report(.registered), .settled(3, nil)])
    }

    func testAnEmptySetIsOnlyUnregistered() {
        var machine = registeredMachine()
        XCTAssertEqual(machine.requested(2, isEmpty: true), [.unregister(1), .report(.idle), .settled(2, nil)])
        XCTAssertEqual(machine.obstacleChanged(.adapter), [])
        XCTAssertEqual(machine.obstacleChanged(nil), [])
        XCTAssertEqual(machine.state, .idle)
    }

    func testItIsRegisteredAgainWhenTheDaemonComesBack() {
        var machine = registeredMachine()
        XCTAssertEqual(machine.obstacleChanged(.adapter), [.report(.waiting(.adapter))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(1, 2)])
        XCTAssertEqual(machine.replied(1, error: nil), [], "an answer of the daemon that has gone")
        XCTAssertEqual(machine.replied(2, error: nil), [.report(.registered), .settled(1, nil)])
    }

    func testARefusedFirstSetIsReportedAtOnce() {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.requested(1)
        XCTAssertEqual(machine.replied(1, error: failed), [.report(.refused(failed)), .settled(1, failed)])
        XCTAssertEqual(machine.requested(2), [.report(.registering), .register(2, 2)])
    }

    func testARefusedSetGivesWayToTheLastThatWasTaken() {
        var machine = registeredMachine()
        _ = machine.requested(2)
        XCTAssertEqual(machine.replied(2, error: failed), [.forgetHandles, .register(2, 3)], "handles may be taken")
        XCTAssertEqual(machine.replied(3, error: failed), [.settled(2, failed), .restoreHandles, .register(1, 4)])
        XCTAssertEqual(machine.replied(4, error: nil), [.report(.registered), .settled(1, nil)])
    }

    func testLeftoversOfALostAnswerAreUnregisteredFirst() {
        for error in [noReply, exists] {
            var machine = Machine(.application)
            _ = machine.obstacleChanged(nil)
            _ = machine.requested(1)
            XCTAssertEqual(machine.replied(1, error: error), [.unregister(1), .register(1, 2)])
            XCTAssertEqual(machine.replied(2, error: error), [.report(.refused(error)), .settled(1, error)])
        }
    }

    func testOnlyErrorsThatPassAreTriedAgainAtFirst() {
        let passing = [
            "org.bluez.Error.InProgress", "org.bluez.Error.NotReady", "org.bluez.Error.Blocked",
            "org.freedesktop.DBus.Error.UnknownObject", "org.freedesktop.DBus.Error.UnknownMethod",
            "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.Disconnected",
        ]
        let lasting = [
            "org.bluez.Error.Failed", "org.bluez.Error.InvalidArguments", "org.bluez.Error.NotSupported",
            "org.bluez.Error.NotAuthorized", "org.bluez.Error.NotPermitted", "org.bluez.Error.DoesNotExist",
            "org.bluez.Error.NotAvailable", "org.freedesktop.DBus.Error.AccessDenied", "com.example.Error.Strange", "",
        ]
        for name in passing + lasting {
            let error = BlueZError(name: name, message: "Words")
            var machine = Machine(.application)
            _ = machine.obstacleChanged(nil)
            _ = machine.requested(1)
            let effects = machine.replied(1, error: error)
            XCTAssertEqual(
                effects,
                passing.contains(name)
                    ? [.report(.retrying(error)), .startTimer(seconds: 0.5)]
                    : [.report(.refused(error)), .settled(1, error)], name)
        }
    }

    func testWhatWasTakenIsTriedAgainAfterAnUnknownError() {
        let strange = BlueZError(name: "com.example.Error.Strange")
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.replied(2, error: strange), [.report(.retrying(strange)), .startTimer(seconds: 0.5)])
        XCTAssertEqual(machine.timerFired(), [.register(1, 3)])
        XCTAssertEqual(machine.replied(3, error: nil), [.report(.registered), .settled(1, nil)])
    }

    func testTriesBecomeRarerAndEnd() {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.requested(1)
        var pauses: [Double] = []
        for request in 1...UInt32(Machine.mostAtFirst) {
            guard case .startTimer(let seconds)? = machine.replied(request, error: busy).last else { break }
            pauses.append(seconds)
            XCTAssertEqual(machine.timerFired(), [.register(1, request + 1)])
        }
        XCTAssertEqual(pauses, [0.5, 1, 2, 4])
        XCTAssertEqual(machine.state, .refused)
        XCTAssertEqual(machine.obstacleChanged(.adapter), [.report(.waiting(.adapter))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(1, 6)])
    }

    func testWhatWasTakenIsTriedForHalfAMinute() {
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        var pauses: [Double] = []
        for request in 2...UInt32(Machine.mostAgain + 1) {
            guard case .startTimer(let seconds)? = machine.replied(request, error: busy).last else { break }
            pauses.append(seconds)
            XCTAssertEqual(machine.timerFired(), [.register(1, request + 1)])
        }
        XCTAssertEqual(pauses, [0.5, 1, 2, 4, 8, 8, 8])
        XCTAssertEqual(machine.state, .refused)
    }

    // MARK: Lost replies

    func testARegistrationWithoutAnAnswerIsMadeAgainAndLaterEachTime() {
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.patience, 20)
        XCTAssertEqual(machine.unanswered(1), [], "It has its answer.")
        XCTAssertEqual(machine.unanswered(2), [.unregister(1), .register(1, 3)])
        XCTAssertEqual(machine.patience, 40)
        XCTAssertEqual(machine.replied(2, error: nil), [], "The answer to the later call decides.")
        XCTAssertEqual(machine.replied(3, error: exists), [.unregister(1), .register(1, 4)])
        XCTAssertEqual(machine.replied(4, error: nil), [.report(.registered), .settled(1, nil)])
        XCTAssertEqual(machine.patience, 20)
        XCTAssertEqual(machine.unanswered(4), [])
    }

    func testAWantedSetReplacesOneWithoutAnAnswerAndALateSuccessIsUnregistered() {
        var machine = registeredMachine()
        _ = machine.requested(2)
        XCTAssertEqual(machine.requested(3), [])
        XCTAssertEqual(machine.unanswered(2), [.unregister(2), .report(.registering), .register(3, 3)])
        XCTAssertEqual(machine.replied(3, error: nil), [.report(.registered), .settled(3, nil)])
        XCTAssertEqual(machine.replied(2, error: nil), [.unregister(2)])
        XCTAssertEqual(machine.replied(2, error: nil), [])
        XCTAssertEqual(machine.state, .registered(3))
    }

    func testTheEndWaitsForEveryRegistrationWithoutAnAnswer() {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.requested(1)
        _ = machine.unanswered(1)
        XCTAssertEqual(machine.end(), [.settled(1, .closedApplication), .report(.idle), .unregisterLast(1, 3)])
        XCTAssertEqual(machine.replied(3, error: noReply), [.withdrawn])
        XCTAssertEqual(machine.replied(1, error: nil), [.unregisterLast(1, 4)])
        XCTAssertEqual(machine.replied(4, error: noReply), [.withdrawn])
        XCTAssertEqual(machine.replied(2, error: failed), [.ended])
    }

    // MARK: Ending

    func testTheEndUnregistersAndWaitsForTheAnswer() {
        var machine = registeredMachine()
        XCTAssertEqual(
            machine.end(), [.settled(1, .closedApplication), .report(.idle), .unregisterLast(1, 2)])
        XCTAssertEqual(machine.requested(2), [.settled(2, .closedApplication)])
        XCTAssertEqual(machine.replied(2, error: nil), [.ended])
        XCTAssertEqual(machine.end(), [])
    }

    func testTheEndDoesNotWaitForADaemonThatGoes() {
        var machine = registeredMachine()
        _ = machine.end()
        XCTAssertEqual(machine.obstacleChanged(.adapter), [.ended])
        XCTAssertEqual(machine.replied(2, error: nil), [])
    }

    /// The machine at the end of a registration, call 1, that has no answer yet; call 2 unregisters it.
    private func endedWhileRegistering() -> Machine {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.requested(1)
        XCTAssertEqual(
            machine.end(), [.settled(1, .closedApplication), .report(.idle), .unregisterLast(1, 2)])
        return machine
    }

    func testTheEndOfARegistrationWithoutAnAnswerIsThatOfItsUnregistration() {
        var machine = endedWhileRegistering()
        XCTAssertEqual(machine.replied(2, error: nil), [.ended])
        XCTAssertEqual(machine.replied(1, error: nil), [])
    }

    func testARegistrationThatSucceedsAfterItsEndIsUnregistered() {
        for error in [noReply, BlueZError(name: "org.bluez.Error.DoesNotExist")] {
            var machine = endedWhileRegistering()
            XCTAssertEqual(machine.replied(2, error: error), [.withdrawn], "It may be registered yet.")
            XCTAssertEqual(machine.end(), [.withdrawn])
            XCTAssertEqual(machine.replied(1, error: nil), [.unregisterLast(1, 3)])
            XCTAssertEqual(machine.replied(3, error: nil), [.ended])
        }
    }

    func testARegistrationThatFailsAfterItsEndLeavesNothing() {
        var machine = endedWhileRegistering()
        XCTAssertEqual(machine.replied(2, error: noReply), [.withdrawn])
        XCTAssertEqual(machine.replied(1, error: failed), [.ended])
        machine = endedWhileRegistering()
        XCTAssertEqual(machine.replied(1, error: failed), [])
        XCTAssertEqual(machine.replied(2, error: noReply), [.ended])
    }

    func testTheEndWhileWaitingIsImmediate() {
        var machine = Machine(.application)
        _ = machine.requested(1)
        XCTAssertEqual(machine.end(), [.settled(1, .closedApplication), .report(.idle), .ended])
    }
}
