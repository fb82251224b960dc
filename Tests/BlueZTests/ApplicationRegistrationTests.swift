import TestSupport
import XCTest

@testable import BlueCapBlueZ

/// How an application is kept registered.
final class ApplicationRegistrationTests: XCTestCase {
    private typealias Machine = RegistrationMachine

    private let failed = BlueZError(name: "org.bluez.Error.Failed", message: "Failed to create entry in database")
    private let noReply = BlueZError(name: "org.freedesktop.DBus.Error.NoReply")
    private let exists = BlueZError(name: "org.bluez.Error.AlreadyExists", message: "Already Exists")
    private let busy = BlueZError(name: "org.bluez.Error.InProgress")

    private var registering: Machine {
        var machine = Machine(.application)
        _ = machine.obstacleChanged(nil)
        _ = machine.changed()
        return machine
    }

    private var registeringAgain: Machine {
        var machine = registeredMachine()
        _ = machine.obstacleChanged(.adapter)
        _ = machine.obstacleChanged(nil)
        return machine
    }

    private func registeredMachine() -> Machine {
        var machine = registering
        _ = machine.replied(1, error: nil)
        XCTAssertEqual(machine.state, .registered)
        return machine
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
            var machine = registering
            let effects = machine.replied(1, error: error)
            XCTAssertEqual(
                effects,
                passing.contains(name)
                    ? [.report(.retrying(error)), .startTimer(seconds: 0.5)]
                    : [.report(.refused(error))], name)
        }
    }

    func testTriesBecomeRarerAndEnd() {
        var machine = registering
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
        var machine = registeringAgain
        var pauses: [Double] = []
        for request in 2...UInt32(Machine.mostAgain + 1) {
            guard case .startTimer(let seconds)? = machine.replied(request, error: busy).last else { break }
            pauses.append(seconds)
            XCTAssertEqual(machine.timerFired(), [.register(request + 1)])
        }
        XCTAssertEqual(pauses, [0.5, 1, 2, 4, 8, 8, 8])
        XCTAssertEqual(machine.state, .refused)
    }

    func testAnApplicationIsKeptRegistered() {
        let strange = BlueZError(name: "com.example.Error.Strange")
        check(
            "a request waits for the adapter", Machine(.application), (.changed, [.report(.waiting(.adapter))]),
            (.obstacleChanged(.support), [.report(.waiting(.support))]),
            (.obstacleChanged(nil), [.report(.registering), .register(1)]), (.replied(1), [.report(.registered)]),
            (.obstacleChanged(nil), []))
        check(
            "it is registered again when the daemon comes back", registeredMachine(),
            (.obstacleChanged(.adapter), [.report(.waiting(.adapter))]),
            (.obstacleChanged(nil), [.report(.registering), .register(2)]),
            // an answer of the daemon that has gone.
            (.replied(1), []), (.replied(2), [.report(.registered)]))
        check(
            "a refused first set is reported at once", registering, (.replied(1, failed), [.report(.refused(failed))]),
            (.changed, [.report(.registering), .register(2)]))
        check(
            "handles that may be taken are forgotten before it fails", registeredMachine(),
            (.obstacleChanged(.adapter), nil), (.obstacleChanged(nil), nil),
            (.replied(2, failed), [.forgetHandles, .register(3)]),
            (.replied(3, failed), [.report(.retrying(failed)), .startTimer(seconds: 0.5)]))
        for error in [noReply, exists] {
            check(
                "leftovers of a lost answer are unregistered first: \(error)", Machine(.application),
                (.obstacleChanged(nil), nil), (.changed, nil), (.replied(1, error), [.unregister, .register(2)]),
                (.replied(2, error), [.report(.refused(error))]))
        }
        check(
            "what was taken is tried again after an unknown error", registeredMachine(),
            (.obstacleChanged(.adapter), nil), (.obstacleChanged(nil), nil),
            (.replied(2, strange), [.report(.retrying(strange)), .startTimer(seconds: 0.5)]),
            (.timerFired, [.register(3)]), (.replied(3), [.report(.registered)]))
    }

    // MARK: Lost replies

    func testALostReplyIsFollowedByAnotherCall() {
        check(
            "a registration without an answer is made again and later each time", registeredMachine(),
            (.obstacleChanged(.adapter), nil), (.obstacleChanged(nil), nil), (.holds { $0.patience == 20 }, nil),
            // It has its answer.
            (.unanswered(1), []), (.unanswered(2), [.unregister, .register(3)]), (.holds { $0.patience == 40 }, nil),
            // The answer to the later call decides.
            (.replied(2), []), (.replied(3, exists), [.unregister, .register(4)]),
            (.replied(4), [.report(.registered)]), (.holds { $0.patience == 20 }, nil), (.unanswered(4), []))
        check(
            "the end waits for every registration without an answer", Machine(.application),
            (.obstacleChanged(nil), nil), (.changed, nil), (.unanswered(1), nil),
            (.end, [.report(.idle), .unregisterLast(3)]), (.replied(3, noReply), [.withdrawn]),
            (.replied(1), [.unregisterLast(4)]), (.replied(4, noReply), [.withdrawn]),
            (.replied(2, failed), [.ended]))
    }

    // MARK: Ending

    /// The machine at the end of a registration, call 1, that has no answer yet; call 2 unregisters it.
    private func endedWhileRegistering() -> Machine {
        var machine = registering
        XCTAssertEqual(
            machine.end(), [.report(.idle), .unregisterLast(2)])
        return machine
    }

    func testTheEndLeavesNothingRegistered() {
        check(
            "the end unregisters and waits for the answer", registeredMachine(),
            (.end, [.report(.idle), .unregisterLast(2)]), (.changed, []), (.replied(2), [.ended]), (.end, []))
        check(
            "the end does not wait for a daemon that goes", registeredMachine(), (.end, nil),
            (.obstacleChanged(.adapter), [.ended]), (.replied(2), []))
        check(
            "the end of a registration without an answer is that of its unregistration", endedWhileRegistering(),
            (.replied(2), [.ended]), (.replied(1), []))
        for error in [noReply, BlueZError(name: "org.bluez.Error.DoesNotExist")] {
            check(
                "a registration that succeeds after its end is unregistered: \(error)", endedWhileRegistering(),
                // It may be registered yet.
                (.replied(2, error), [.withdrawn]), (.end, [.withdrawn]), (.replied(1), [.unregisterLast(3)]),
                (.replied(3), [.ended]))
        }
        check(
            "a registration that fails after its end leaves nothing", endedWhileRegistering(),
            (.replied(2, noReply), [.withdrawn]), (.replied(1, failed), [.ended]))
        check(
            "a registration that fails after its end leaves nothing", endedWhileRegistering(),
            (.replied(1, failed), []), (.replied(2, noReply), [.ended]))
        check(
            "the end while waiting is immediate", Machine(.application), (.changed, nil),
            (.end, [.report(.idle), .ended]))
    }
}
