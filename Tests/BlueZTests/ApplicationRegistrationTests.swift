import XCTest

@testable import BlueCapBlueZ

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
        _ = machine.changed()
        _ = machine.replied(1, error: nil)
        XCTAssertEqual(machine.state, .registered)
        return machine
    }

    func testARequestWaitsForTheAdapter() {
        var machine = Machine(.application)
        XCTAssertEqual(machine.changed(), [.report(.waiting(.adapter))])
        XCTAssertEqual(machine.obstacleChanged(.support), [.report(.waiting(.support))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(1)])
        XCTAssertEqual(machine.replied(1, error: nil), [.report(.registered)])
        XCTAssertEqual(machine.obstacleChanged(nil), [])
    }

    func testItIsRegisteredAgainWhenTheDaemonComesBack() {
        var machine = registeredMachine()
        XCTAssertEqual(machine.obstacleChanged(.adapter), [.report(.waiting(.adapter))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(2)])
        XCTAssertEqual(machine.replied(1, error: nil), [], "an answer of the daemon that has gone")
        XCTAssertEqual(machine.replied(2, error: nil), [.report(.registered)])
    }

    func testARefusedFirstSetIsReportedAtOnce() {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.changed()
        XCTAssertEqual(machine.replied(1, error: failed), [.report(.refused(failed))])
        XCTAssertEqual(machine.changed(), [.report(.registering), .register(2)])
    }

    func testHandlesThatMayBeTakenAreForgottenBeforeItFails() {
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.replied(2, error: failed), [.forgetHandles, .register(3)])
        XCTAssertEqual(machine.replied(3, error: failed), [.report(.retrying(failed)), .startTimer(seconds: 0.5)])
    }

    func testLeftoversOfALostAnswerAreUnregisteredFirst() {
        for error in [noReply, exists] {
            var machine = Machine(.application)
            _ = machine.obstacleChanged(nil)
            _ = machine.changed()
            XCTAssertEqual(machine.replied(1, error: error), [.unregister, .register(2)])
            XCTAssertEqual(machine.replied(2, error: error), [.report(.refused(error))])
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
            _ = machine.changed()
            let effects = machine.replied(1, error: error)
            XCTAssertEqual(
                effects,
                passing.contains(name)
                    ? [.report(.retrying(error)), .startTimer(seconds: 0.5)]
                    : [.report(.refused(error))], name)
        }
    }

    func testWhatWasTakenIsTriedAgainAfterAnUnknownError() {
        let strange = BlueZError(name: "com.example.Error.Strange")
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        XCTAssertEqual(machine.replied(2, error: strange), [.report(.retrying(strange)), .startTimer(seconds: 0.5)])
        XCTAssertEqual(machine.timerFired(), [.register(3)])
        XCTAssertEqual(machine.replied(3, error: nil), [.report(.registered)])
    }

    func testTriesBecomeRarerAndEnd() {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.changed()
        var pauses: [Double] = []
        for request in 1...UInt32(Machine.mostAtFirst) {
            guard case .startTimer(let seconds)? = machine.replied(request, error: busy).last else { break }
            pauses.append(seconds)
            XCTAssertEqual(machine.timerFired(), [.register(request + 1)])
        }
        XCTAssertEqual(pauses, [0.5, 1, 2, 4])
        XCTAssertEqual(machine.state, .refused)
        XCTAssertEqual(machine.obstacleChanged(.adapter), [.report(.waiting(.adapter))])
        XCTAssertEqual(machine.obstacleChanged(nil), [.report(.registering), .register(6)])
    }

    func testWhatWasTakenIsTriedForHalfAMinute() {
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        var pauses: [Double] = []
        for request in 2...UInt32(Machine.mostAgain + 1) {
            guard case .startTimer(let seconds)? = machine.replied(request, error: busy).last else { break }
            pauses.append(seconds)
            XCTAssertEqual(machine.timerFired(), [.register(request + 1)])
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
        XCTAssertEqual(machine.unanswered(2), [.unregister, .register(3)])
        XCTAssertEqual(machine.patience, 40)
        XCTAssertEqual(machine.replied(2, error: nil), [], "The answer to the later call decides.")
        XCTAssertEqual(machine.replied(3, error: exists), [.unregister, .register(4)])
        XCTAssertEqual(machine.replied(4, error: nil), [.report(.registered)])
        XCTAssertEqual(machine.patience, 20)
        XCTAssertEqual(machine.unanswered(4), [])
    }

    func testTheEndWaitsForEveryRegistrationWithoutAnAnswer() {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.changed()
        _ = machine.unanswered(1)
        XCTAssertEqual(machine.end(), [.report(.idle), .unregisterLast(3)])
        XCTAssertEqual(machine.replied(3, error: noReply), [.withdrawn])
        XCTAssertEqual(machine.replied(1, error: nil), [.unregisterLast(4)])
        XCTAssertEqual(machine.replied(4, error: noReply), [.withdrawn])
        XCTAssertEqual(machine.replied(2, error: failed), [.ended])
    }

    // MARK: Ending

    func testTheEndUnregistersAndWaitsForTheAnswer() {
        var machine = registeredMachine()
        XCTAssertEqual(
            machine.end(), [.report(.idle), .unregisterLast(2)])
        XCTAssertEqual(machine.changed(), [])
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
        _ = machine.changed()
        XCTAssertEqual(
            machine.end(), [.report(.idle), .unregisterLast(2)])
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
            XCTAssertEqual(machine.replied(1, error: nil), [.unregisterLast(3)])
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
        _ = machine.changed()
        XCTAssertEqual(machine.end(), [.report(.idle), .ended])
    }
}
