import XCTest

@testable import BlueCapBlueZ

final class AgentMachineTests: XCTestCase {
    private typealias Machine = AgentMachine
    private typealias Requirement = AgentMachine.Requirement

    private let ask = Requirement(.keyboardDisplay)
    private let exists = BlueZError(name: "org.bluez.Error.AlreadyExists", message: "Already Exists")
    private let failed = BlueZError(name: "org.bluez.Error.Failed")

    private func registered(_ requirement: AgentMachine.Requirement) -> AgentMachine {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(requirement)
        _ = machine.replied(1, error: nil)
        if requirement.isDefault { _ = machine.replied(2, error: nil) }
        XCTAssertEqual(machine.state, .registered(requirement.capability, isDefault: requirement.isDefault))
        return machine
    }

    // MARK: Registration

    func testNothingIsRegisteredUnlessItIsWanted() {
        var machine = Machine()
        XCTAssertEqual(machine.daemonReady(), [])
        XCTAssertEqual(machine.wanted(nil), [])
        XCTAssertEqual(machine.busyChanged(true), [])
        XCTAssertEqual(machine.state, .absent)
    }

    func testTheAgentIsRegisteredWhenDaemonAndManagerAreThere() {
        var machine = Machine()
        XCTAssertEqual(machine.wanted(ask), [])
        XCTAssertEqual(machine.daemonReady(), [.register(.keyboardDisplay, 1)])
        XCTAssertEqual(machine.state, .registering)
        XCTAssertEqual(machine.replied(1, error: nil), [])
        XCTAssertEqual(machine.state, .registered(.keyboardDisplay, isDefault: false))
    }

    func testTheAgentBecomesTheDefaultOneOnRequestOnly() {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(Requirement(.displayYesNo, isDefault: true))
        XCTAssertEqual(machine.replied(1, error: nil), [.requestDefault(2)])
        XCTAssertEqual(machine.state, .registering)
        XCTAssertEqual(machine.replied(2, error: nil), [])
        XCTAssertEqual(machine.state, .registered(.displayYesNo, isDefault: true))
    }

    func testARegisteredAgentBecomesTheDefaultOneWithoutBeingReplaced() {
        var machine = registered(ask)
        XCTAssertEqual(machine.wanted(Requirement(.keyboardDisplay, isDefault: true)), [.requestDefault(2)])
        XCTAssertEqual(machine.replied(2, error: nil), [])
        XCTAssertEqual(machine.state, .registered(.keyboardDisplay, isDefault: true))
        // BlueZ has no call that ends it.
        XCTAssertEqual(
            machine.wanted(ask), [.unregister(3), .register(.keyboardDisplay, 4)])
        XCTAssertEqual(machine.state, .registering)
    }

    func testAnAgentOfAnEarlierLifeOfTheConnectionIsReplaced() {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(ask)
        XCTAssertEqual(machine.replied(1, error: exists), [.unregister(2), .register(.keyboardDisplay, 3)])
        XCTAssertEqual(machine.replied(2, error: failed), [])
        XCTAssertEqual(machine.replied(3, error: nil), [])
        XCTAssertEqual(machine.state, .registered(.keyboardDisplay, isDefault: false))
    }

    func testAnAgentThatTheBusForbidsIsNotTriedAgainWithThisDaemon() {
        let denied = BlueZError(name: "org.freedesktop.DBus.Error.AccessDenied")
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(ask)
        XCTAssertEqual(machine.replied(1, error: denied), [])
        XCTAssertEqual(machine.state, .refused(denied))
        XCTAssertEqual(machine.timerFired(), [])
        XCTAssertEqual(machine.wanted(ask), [])
        XCTAssertEqual(machine.daemonLeft(), [])
        XCTAssertEqual(machine.state, .absent)
        XCTAssertEqual(machine.daemonReady(), [.register(.keyboardDisplay, 2)])
        XCTAssertEqual(machine.state, .registering)
    }

    func testTheProblemIsTheLastErrorUntilBlueZHasTheAgent() {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(ask)
        XCTAssertEqual(machine.problem, .agentUnanswered)
        _ = machine.replied(1, error: failed)
        XCTAssertEqual(machine.problem, failed)
        _ = machine.timerFired()
        XCTAssertEqual(machine.problem, failed)
        _ = machine.replied(2, error: nil)
        XCTAssertNil(machine.problem)
    }

    func testARefusedAgentIsForgottenWhenNoManagerWantsIt() {
        let denied = BlueZError(name: "org.freedesktop.DBus.Error.AccessDenied")
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(ask)
        _ = machine.replied(1, error: denied)
        XCTAssertEqual(machine.wanted(nil), [])
        XCTAssertEqual(machine.state, .absent)
    }

    func testFailuresAreTriedAgainForHalfAMinute() {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(ask)
        for (index, seconds) in [0.5, 1, 2, 4, 8, 8, 8].enumerated() {
            let call = AgentMachine.CallID(index + 1)
            XCTAssertEqual(machine.replied(call, error: failed), [.startTimer(seconds: seconds)])
            XCTAssertEqual(machine.timerFired(), [.register(.keyboardDisplay, call + 1)])
        }
        XCTAssertEqual(machine.replied(8, error: failed), [])
        XCTAssertEqual(machine.state, .refused(failed))
    }

    func testAFailedRequestToBeTheDefaultStartsOver() {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(Requirement(.displayOnly, isDefault: true))
        _ = machine.replied(1, error: nil)
        XCTAssertEqual(machine.replied(2, error: failed), [.startTimer(seconds: 0.5)])
        XCTAssertEqual(machine.timerFired(), [.register(.displayOnly, 3)])
    }

    // MARK: The end

    func testTheLastManagerThatLeavesUnregistersIt() {
        var machine = registered(ask)
        XCTAssertEqual(machine.wanted(nil), [.unregister(2)])
        XCTAssertEqual(machine.state, .registering)
        XCTAssertEqual(machine.replied(2, error: failed), [])
        XCTAssertEqual(machine.state, .absent)
    }

    func testAManagerThatComesWhileItIsUnregisteredGetsANewOne() {
        var machine = registered(ask)
        _ = machine.wanted(nil)
        XCTAssertEqual(machine.wanted(Requirement(.displayOnly)), [])
        XCTAssertEqual(
            machine.replied(2, error: nil), [.register(.displayOnly, 3)])
        XCTAssertEqual(machine.state, .registering)
    }

    func testAManagerThatLeavesBeforeTheReplyLeavesNothing() {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(ask)
        XCTAssertEqual(machine.wanted(nil), [.unregister(2)])
        XCTAssertEqual(machine.replied(1, error: nil), [])
        XCTAssertEqual(machine.replied(2, error: nil), [])
        XCTAssertEqual(machine.state, .absent)
    }

    func testAManagerThatLeavesDuringAPauseLeavesNothing() {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(ask)
        _ = machine.replied(1, error: failed)
        XCTAssertEqual(machine.wanted(nil), [.cancelTimer, .unregister(2)])
        XCTAssertEqual(machine.timerFired(), [])
    }

    // MARK: Changes

    func testAnotherCapabilityReplacesTheAgent() {
        var machine = registered(Requirement(.displayOnly))
        XCTAssertEqual(
            machine.wanted(ask), [.unregister(2), .register(.keyboardDisplay, 3)])
        XCTAssertEqual(machine.state, .registering)
        XCTAssertEqual(machine.replied(2, error: nil), [])
        XCTAssertEqual(machine.replied(3, error: nil), [])
        XCTAssertEqual(machine.state, .registered(.keyboardDisplay, isDefault: false))
    }

    func testAnotherCapabilityWaitsForAnOpenRequest() {
        var machine = registered(Requirement(.displayOnly))
        XCTAssertEqual(machine.busyChanged(true), [])
        XCTAssertEqual(machine.wanted(ask), [])
        XCTAssertEqual(
            machine.busyChanged(false),
            [.unregister(2), .register(.keyboardDisplay, 3)])
        XCTAssertEqual(machine.state, .registering)
    }

    func testTheEndDoesNotWaitForAnOpenRequest() {
        var machine = registered(ask)
        _ = machine.busyChanged(true)
        XCTAssertEqual(machine.wanted(nil), [.unregister(2)])
    }

    func testAnotherCapabilityWaitsForTheReply() {
        var machine = Machine()
        _ = machine.daemonReady()
        _ = machine.wanted(Requirement(.displayOnly))
        XCTAssertEqual(machine.wanted(ask), [])
        XCTAssertEqual(machine.replied(1, error: nil), [.unregister(2), .register(.keyboardDisplay, 3)])
    }

    // MARK: The daemon

    func testANewDaemonIsAskedAgain() {
        var machine = registered(ask)
        XCTAssertEqual(machine.daemonLeft(), [])
        XCTAssertEqual(machine.state, .absent)
        XCTAssertEqual(machine.daemonLeft(), [])
        XCTAssertEqual(machine.daemonReady(), [.register(.keyboardDisplay, 2)])
        XCTAssertEqual(machine.state, .registering)
    }

    func testAReleasedAgentIsRegisteredAgainAfterAPause() {
        var machine = registered(ask)
        XCTAssertEqual(machine.released(), [.startTimer(seconds: 0.5)])
        XCTAssertEqual(machine.state, .registering)
        XCTAssertEqual(machine.timerFired(), [.register(.keyboardDisplay, 2)])
    }

    func testADaemonThatEndsAfterARelease() {
        var machine = registered(ask)
        _ = machine.released()
        XCTAssertEqual(machine.daemonLeft(), [.cancelTimer])
        XCTAssertEqual(machine.state, .absent)
        XCTAssertEqual(machine.timerFired(), [])
        XCTAssertEqual(machine.released(), [])
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
