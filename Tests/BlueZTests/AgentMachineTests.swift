import TestSupport
import XCTest

@testable import BlueCapBlueZ

final class AgentMachineTests: XCTestCase {
    private typealias Machine = AgentMachine
    private typealias Requirement = AgentMachine.Requirement

    private let ask = Requirement(.keyboardDisplay)
    private let exists = BlueZError(name: "org.bluez.Error.AlreadyExists", message: "Already Exists")
    private let failed = BlueZError(name: "org.bluez.Error.Failed")

    private func registering(_ requirement: AgentMachine.Requirement = .init(.keyboardDisplay)) -> AgentMachine {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(requirement)
        return machine
    }

    private func registered(_ requirement: AgentMachine.Requirement) -> AgentMachine {
        var machine = registering(requirement)
        _ = machine.replied(1, error: nil)
        if requirement.isDefault { _ = machine.replied(2, error: nil) }
        XCTAssertEqual(machine.state, .registered(requirement.capability, isDefault: requirement.isDefault))
        return machine
    }

    // MARK: Registration

    func testTheAgentBecomesTheDefaultOneOnRequestOnly() {
        check(
            "the agent becomes the default one on request only", Machine(), (.daemonReady, nil),
            (.wanted(Requirement(.displayYesNo, isDefault: true)), nil), (.replied(1), [.requestDefault(2)]),
            (.holds { $0.state == .registering }, nil), (.replied(2), []),
            (.holds { $0.state == .registered(.displayYesNo, isDefault: true) }, nil))
    }

    func testFailuresAreTriedAgainForHalfAMinute() {
        var machine = registering()
        for (index, seconds) in [0.5, 1, 2, 4, 8, 8, 8].enumerated() {
            let call = AgentMachine.CallID(index + 1)
            XCTAssertEqual(machine.replied(call, error: failed), [.startTimer(seconds: seconds)])
            XCTAssertEqual(machine.timerFired(), [.register(.keyboardDisplay, call + 1)])
        }
        XCTAssertEqual(machine.replied(8, error: failed), [])
        XCTAssertEqual(machine.state, .refused(failed))
    }

    func testTheAgentIsRegisteredWhileItIsWanted() {
        let denied = BlueZError(name: "org.freedesktop.DBus.Error.AccessDenied")
        check(
            "nothing is registered unless it is wanted", Machine(), (.daemonReady, []), (.wanted(nil), []),
            (.busyChanged(true), []), (.holds { $0.state == .absent }, nil))
        check(
            "the agent is registered when daemon and manager are there", Machine(), (.wanted(ask), []),
            (.daemonReady, [.register(.keyboardDisplay, 1)]), (.holds { $0.state == .registering }, nil),
            (.replied(1), []), (.holds { $0.state == .registered(.keyboardDisplay, isDefault: false) }, nil))
        check(
            "a registered agent becomes the default one without being replaced", registered(ask),
            (.wanted(Requirement(.keyboardDisplay, isDefault: true)), [.requestDefault(2)]), (.replied(2), []),
            (.holds { $0.state == .registered(.keyboardDisplay, isDefault: true) }, nil),
            // BlueZ has no call that ends it.
            (.wanted(ask), [.unregister(3), .register(.keyboardDisplay, 4)]),
            (.holds { $0.state == .registering }, nil))
        check(
            "an agent of an earlier life of the connection is replaced", registering(),
            (.replied(1, exists), [.unregister(2), .register(.keyboardDisplay, 3)]),
            (.replied(2, failed), []), (.replied(3), []),
            (.holds { $0.state == .registered(.keyboardDisplay, isDefault: false) }, nil))
        check(
            "an agent that the bus forbids is not tried again with this daemon", registering(),
            (.replied(1, denied), []), (.holds { $0.state == .refused(denied) }, nil),
            (.timerFired, []), (.wanted(ask), []), (.daemonLeft, []), (.holds { $0.state == .absent }, nil),
            (.daemonReady, [.register(.keyboardDisplay, 2)]), (.holds { $0.state == .registering }, nil))
        check(
            "the problem is the last error until BlueZ has the agent", registering(),
            (.holds { $0.problem == .agentUnanswered }, nil), (.replied(1, failed), nil),
            (.holds { [self] in $0.problem == failed }, nil), (.timerFired, nil),
            (.holds { [self] in $0.problem == failed }, nil), (.replied(2), nil), (.holds { $0.problem == nil }, nil))
        check(
            "a refused agent is forgotten when no manager wants it", registering(), (.replied(1, denied), nil),
            (.wanted(nil), []),
            (.holds { $0.state == .absent }, nil))
        check(
            "a failed request to be the default starts over", Machine(), (.daemonReady, nil),
            (.wanted(Requirement(.displayOnly, isDefault: true)), nil), (.replied(1), nil),
            (.replied(2, failed), [.startTimer(seconds: 0.5)]), (.timerFired, [.register(.displayOnly, 3)]))
    }

    // MARK: The end

    func testTheAgentIsUnregisteredWhenNoManagerWantsIt() {
        check(
            "the last manager that leaves unregisters it", registered(ask), (.wanted(nil), [.unregister(2)]),
            (.holds { $0.state == .registering }, nil), (.replied(2, failed), []),
            (.holds { $0.state == .absent }, nil))
        check(
            "a manager that comes while it is unregistered gets a new one", registered(ask), (.wanted(nil), nil),
            (.wanted(Requirement(.displayOnly)), []), (.replied(2), [.register(.displayOnly, 3)]),
            (.holds { $0.state == .registering }, nil))
        check(
            "a manager that leaves before the reply leaves nothing", registering(), (.wanted(nil), [.unregister(2)]),
            (.replied(1), []), (.replied(2), []),
            (.holds { $0.state == .absent }, nil))
        check(
            "a manager that leaves during a pause leaves nothing", registering(), (.replied(1, failed), nil),
            (.wanted(nil), [.cancelTimer, .unregister(2)]),
            (.timerFired, []))
    }

    // MARK: Changes

    func testAnotherCapabilityReplacesTheAgentBetweenRequests() {
        check(
            "another capability replaces the agent", registered(Requirement(.displayOnly)),
            (.wanted(ask), [.unregister(2), .register(.keyboardDisplay, 3)]),
            (.holds { $0.state == .registering }, nil), (.replied(2), []), (.replied(3), []),
            (.holds { $0.state == .registered(.keyboardDisplay, isDefault: false) }, nil))
        check(
            "another capability waits for an open request", registered(Requirement(.displayOnly)),
            (.busyChanged(true), []), (.wanted(ask), []),
            (.busyChanged(false), [.unregister(2), .register(.keyboardDisplay, 3)]),
            (.holds { $0.state == .registering }, nil))
        check(
            "the end does not wait for an open request", registered(ask), (.busyChanged(true), nil),
            (.wanted(nil), [.unregister(2)]))
        check(
            "another capability waits for the reply", Machine(), (.daemonReady, nil),
            (.wanted(Requirement(.displayOnly)), nil), (.wanted(ask), []),
            (.replied(1), [.unregister(2), .register(.keyboardDisplay, 3)]))
    }

    // MARK: The daemon

    func testEachDaemonGetsTheAgent() {
        check(
            "a new daemon is asked again", registered(ask), (.daemonLeft, []), (.holds { $0.state == .absent }, nil),
            (.daemonLeft, []), (.daemonReady, [.register(.keyboardDisplay, 2)]),
            (.holds { $0.state == .registering }, nil))
        check(
            "a released agent is registered again after a pause", registered(ask),
            (.released, [.startTimer(seconds: 0.5)]), (.holds { $0.state == .registering }, nil),
            (.timerFired, [.register(.keyboardDisplay, 2)]))
        check(
            "a daemon that ends after a release", registered(ask), (.released, nil), (.daemonLeft, [.cancelTimer]),
            (.holds { $0.state == .absent }, nil), (.timerFired, []), (.released, []))
    }

    // MARK: Capabilities

    func testAUnionCoversBothAndNoMore() {
        typealias Capability = IOCapability
        for one in Capability.allCases {
            XCTAssertEqual(one.union(one), one)
            XCTAssertEqual(one.union(.noInputNoOutput), one)
            XCTAssertEqual(one.union(.keyboardDisplay), .keyboardDisplay)
            for other in Capability.allCases { XCTAssertEqual(one.union(other), other.union(one)) }
        }
        XCTAssertEqual(Capability.displayOnly.union(.displayYesNo), .displayYesNo)
        XCTAssertEqual(Capability.displayOnly.union(.keyboardOnly), .keyboardDisplay)
        XCTAssertEqual(Capability.displayYesNo.union(.keyboardOnly), .keyboardDisplay)
    }

    func testNoDescriptionHasThePasskey() {
        let kinds: [AgentRequest.Kind] = [.confirm(471_147), .display(471_147, entered: 4711)]
        for kind in kinds {
            let request = AgentRequest(number: 1, device: ObjectKey(rawValue: 1), kind: kind) { _ in }
            var text = "\(request) \(String(reflecting: request)) \(kind) \(String(reflecting: Optional(kind)))"
            dump(request, to: &text)
            XCTAssertFalse(text.contains("4711"), text)
        }
        let answer = AgentAnswer.passkey(471_147)
        var text = "\(answer) \(String(reflecting: [answer]))"
        dump(answer, to: &text)
        XCTAssertFalse(text.contains("4711"), text)
    }
}
