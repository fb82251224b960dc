import XCTest

@testable import BlueZSimulator

/// Which agent is the default one, and its effect on adapters.
final class AgentsTests: XCTestCase {
    private let lock = DeviceKey(adapter: 0, address: "C0:00:00:00:00:0A")

    private func bench(_ capabilities: String...) -> DaemonBench {
        var bench = DaemonBench(adapters: [VirtualAdapter(), VirtualAdapter(index: 1)])
        for (number, capability) in capabilities.enumerated() {
            _ = bench.ask(.registerAgent("/agent", capability: capability), as: ":1.\(number)")
        }
        return bench
    }

    private func capabilities(_ bench: DaemonBench) -> [PairingCapability] {
        bench.daemon.core.tree.adapters.sorted { $0.key < $1.key }.map(\.value.capability)
    }

    /// Returns the agents that BlueZ calls, by their clients, with the method.
    private func calls(_ bench: inout DaemonBench, _ body: (inout Daemon) -> Void) -> [String] {
        body(&bench.daemon)
        return bench.daemon.core.takeEffects().calls.map { "\($0.client) \($0.member)" }
    }

    /// Returns the call of an agent that a question leads to.
    private func call(_ bench: inout DaemonBench, _ question: PairingProcedure.Question) -> ClientCall? {
        bench.daemon.core.addDevice(lock, .random)
        bench.daemon.take(.security(lock, .asked(question)))
        return bench.daemon.core.takeEffects().calls.first
    }

    private func ask(_ bench: inout DaemonBench, _ question: PairingProcedure.Question) -> String? {
        call(&bench, question).map { "\($0.client) \($0.member)" }
    }

    func testTheFirstAgentIsTheDefaultOneAndMakesAdaptersPairable() {
        var bench = bench()
        XCTAssertEqual(capabilities(bench), [.noInputNoOutput, .noInputNoOutput])
        XCTAssertEqual(
            bench.ask(.registerAgent("/agent", capability: "DisplayOnly")).outline,
            ["reply", "/hci0 Pairable", "/hci1 Pairable"])
        XCTAssertEqual(capabilities(bench), [.displayOnly, .displayOnly])
        XCTAssertEqual(
            bench.ask(.registerAgent("/agent", capability: ""), as: ":1.8").outline, ["reply"],
            "a second one changes nothing")
        XCTAssertEqual(capabilities(bench), [.displayOnly, .displayOnly])
    }

    func testTheNextAgentInTheQueueTakesThePlaceOfOneThatLeaves() {
        var bench = bench("DisplayOnly", "KeyboardOnly", "DisplayYesNo")
        _ = bench.ask(.requestDefaultAgent("/agent"), as: ":1.2")
        XCTAssertEqual(capabilities(bench)[0], .displayYesNo)
        XCTAssertEqual(ask(&bench, .authorize), ":1.2 RequestAuthorization")
        _ = bench.signals { $0.clientLeft(":1.2") }
        XCTAssertEqual(capabilities(bench)[0], .displayOnly)
        _ = bench.signals { $0.clientLeft(":1.0") }
        XCTAssertEqual(capabilities(bench)[0], .keyboardOnly)
        XCTAssertEqual(
            bench.signals { $0.clientLeft(":1.1") }.map(\.outline), ["/hci0 Pairable", "/hci1 Pairable"])
        XCTAssertEqual(capabilities(bench)[0], .keyboardOnly, "the kernel keeps it")
    }

    func testAnAdapterThatIsPluggedInIsPairableIfThereIsAnAgent() {
        var bench = bench("DisplayOnly")
        bench.daemon.addAdapter(VirtualAdapter(index: 2), remembering: [])
        XCTAssertEqual(bench.daemon.core.tree.adapters[2]?.capability, .displayOnly)
        XCTAssertEqual(bench.daemon.core.tree.adapters[2]?.isPairable, true)
    }

    func testASecondQuestionOfAnAgentIsRefused() {
        var bench = bench("DisplayYesNo")
        XCTAssertEqual(ask(&bench, .confirm(1)), ":1.0 RequestConfirmation")
        let other = DeviceKey(adapter: 0, address: "C0:00:00:00:00:0B")
        bench.daemon.core.addDevice(other, .random)
        bench.daemon.take(.security(other, .asked(.confirm(2))))
        let effects = bench.daemon.core.takeEffects()
        XCTAssertTrue(effects.contains(.order(.answer(other, .reject))))
        XCTAssertTrue(effects.calls.isEmpty)
    }

    func testAnAgentThatLeavesOrIsUnregisteredRejects() {
        for isUnregistered in [true, false] {
            var bench = bench("DisplayYesNo")
            _ = ask(&bench, .confirm(1))
            if isUnregistered {
                let request = Request(
                    path: "/org/bluez", interface: InterfaceName.agentManager, member: "UnregisterAgent",
                    arguments: [.objectPath("/agent")])
                bench.daemon.receive(request.call(by: ":1.0", CallID(number: 99)))
            } else {
                bench.daemon.clientLeft(":1.0")
            }
            let effects = bench.daemon.core.takeEffects()
            XCTAssertTrue(effects.contains(.order(.answer(lock, .reject))))
            XCTAssertEqual(effects.calls.map(\.member), isUnregistered ? ["Cancel"] : [])
        }
    }

    func testAnAgentThatDoesNotAnswerInAMinuteIsCancelled() {
        for (question, member) in [
            (PairingProcedure.Question.confirm(1), ["Cancel"]), (.authorize, ["Cancel"]), (.enter(1), []),
        ] {
            var bench = bench("KeyboardDisplay")
            let call = call(&bench, question)
            XCTAssertEqual(call?.timeout, 60)
            let noReply = ClientReply.error(name: "org.freedesktop.DBus.Error.NoReply", message: "")
            XCTAssertEqual(calls(&bench) { $0.clientReplied(call?.id ?? 0, noReply) }, member.map { ":1.0 " + $0 })
        }
    }

    func testARepliedPasskeyOutsideItsRangeIsARejection() {
        for (reply, answer) in [
            (ClientReply.values([.uint32(999_999)]), PairingProcedure.Answer.passkey(999_999)),
            (.values([.uint32(1_000_000)]), .reject), (.values([.string("1234")]), .reject),
            (.error(name: "org.bluez.Error.Canceled", message: ""), .reject),
        ] {
            var bench = bench("KeyboardOnly")
            bench.daemon.clientReplied(call(&bench, .enter(1))?.id ?? 0, reply)
            XCTAssertTrue(bench.daemon.core.takeEffects().contains(.order(.answer(lock, answer))))
        }
    }
}

extension [Effect] {
    /// The calls of agents.
    fileprivate var calls: [ClientCall] {
        compactMap { effect in
            if case .call(let call) = effect { call } else { nil }
        }
    }
}
