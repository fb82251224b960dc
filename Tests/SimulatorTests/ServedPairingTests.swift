import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// Programs that serve protected attributes, and the centrals that pair with them.
final class ServedPairingTests: XCTestCase {
    private static let versions: [BlueZVersion] = [.v5_66, .v5_72, .v5_82, BlueZVersion(5, 87)]
    private let path: ObjectPath = "/org/bluez/hci0/dev_C0_FF_EE_00_CE_01"
    private let address: VirtualAddress = "C0:FF:EE:00:CE:01"

    /// One characteristic for each operation and level, `b101` to `b109`.
    private static let levels = ["encrypt", "encrypt-authenticated", "secure"]
    private static let protected =
        [ServingProgram.service("s0", "b001", handle: 0)]
        + levels.enumerated().flatMap { index, level in
            [("read", [level + "-read"]), ("write", [level + "-write"]), ("notify", ["read", level + "-notify"])]
                .enumerated().map { place, entry in
                    ServingProgram.characteristic(
                        "s0/c\(index * 3 + place)", "b10\(index * 3 + place + 1)", entry.1, handle: 0)
                }
        }

    private struct Scene {
        let simulator: Simulator
        let server: ServingProgram
        let agent: PairingProgram
        let phone: CentralLink
    }

    private func scene(
        _ bluez: BlueZVersion = .v5_82, _ capability: String? = "NoInputNoOutput",
        phone: VirtualSecurity = VirtualSecurity(), isBonded: Bool = false, reply: PairingProgram.Reply = .accept
    ) -> Scene {
        let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        let agent = PairingProgram(simulator, capability, reply: reply)
        let server = ServingProgram(simulator, Self.protected + [ServingProgram.connectable])
        server.serve()
        let link = simulator.connect(VirtualCentral(address, name: "Phone", isBonded: isBonded, security: phone))
        simulator.advance(by: 1)
        XCTAssertEqual(link.state, .connected)
        _ = agent.client.takeLog()
        return Scene(simulator: simulator, server: server, agent: agent, phone: link)
    }

    private func outcomes(_ scene: Scene) -> [UInt8?] {
        (1...9).map { number in
            let uuid = AttributeSelector.uuid("b10\(number)")
            let request =
                switch number % 3 {
                case 1: scene.phone.read(uuid)
                case 2: scene.phone.write([1], to: uuid)
                default: scene.phone.subscribe(to: uuid)
                }
            scene.simulator.advance(by: 0.1)
            guard case .attribute(let code)? = request.failure else { return request.result == nil ? 0xFF : nil }
            return code
        }
    }

    func testEachFlagDemandsTheSecurityOfItsLevel() {
        let table: [(String, VirtualSecurity, LinkSecurity, [UInt8?])] = [
            ("NoInputNoOutput", VirtualSecurity(), .encrypted, [nil, nil, nil, 5, 5, 5, 5, 5, 5]),
            (
                "DisplayYesNo", VirtualSecurity(.keyboardOnly, hasSecureConnections: false), .authenticated,
                [nil, nil, nil, nil, nil, nil, 5, 5, 5]
            ),
            (
                "DisplayYesNo", VirtualSecurity(.displayYesNo), .secure,
                [nil, nil, nil, nil, nil, nil, nil, nil, nil]
            ),
        ]
        for bluez in Self.versions {
            for (capability, security, level, codes) in table {
                let scene = scene(bluez, capability, phone: security)
                XCTAssertEqual(outcomes(scene), [15, 15, 15, 5, 5, 5, 5, 5, 5], "\(bluez)")
                let pairing = scene.phone.pair()
                scene.simulator.advance(by: 2)
                XCTAssertEqual(pairing.bytes, [])
                XCTAssertEqual(scene.phone.security, level)
                XCTAssertEqual(outcomes(scene), codes, "\(bluez) \(level)")
            }
        }
    }

    func testTheServersAgentIsAskedAndTheCentralIsBonded() {
        let scene = scene()
        scene.phone.pair()
        scene.simulator.advance(by: 1)
        scene.agent.expectCalls("RequestAuthorization 01")
        XCTAssertEqual(
            scene.agent.client.takeLog().filter { $0.contains("ed=true") },
            ["dev_C0_FF_EE_00_CE_01 Bonded=true", "dev_C0_FF_EE_00_CE_01 Paired=true"])
    }

    func testARejectionLeavesNoBond() {
        let scene = scene(reply: .reject)
        let pairing = scene.phone.pair()
        scene.simulator.advance(by: 1)
        XCTAssertEqual(pairing.failure, .pairing(.numericComparisonFailed))
        XCTAssertEqual(scene.agent.state(path), ["false", "false"])
        XCTAssertEqual(scene.phone.state, .disconnected)
    }

    func testWithoutAnAgentNoCentralPairs() {
        let scene = scene(.v5_82, nil)
        let pairing = scene.phone.pair()
        scene.simulator.advance(by: 1)
        XCTAssertEqual(pairing.failure, .pairing(.pairingNotSupported), "and no adapter is pairable")
    }

    func testPairableEndsAfterItsTimeout() {
        let scene = scene()
        XCTAssertNil(scene.agent.client.set("PairableTimeout", .uint32(20)))
        scene.simulator.advance(by: 19)
        XCTAssertEqual(scene.agent.client.property("Pairable"), "true")
        scene.simulator.advance(by: 2)
        XCTAssertEqual(scene.agent.client.property("Pairable"), "false")
        let pairing = scene.phone.pair()
        scene.simulator.advance(by: 1)
        XCTAssertEqual(pairing.failure, .pairing(.pairingNotSupported))
    }

    func testABondedCentralReturnsEncryptedAndKeepsItsSubscription() {
        let scene = scene()
        scene.phone.pair()
        scene.simulator.advance(by: 1)
        scene.phone.subscribe(to: "b103")
        scene.simulator.advance(by: 0.1)
        scene.phone.disconnect()
        scene.simulator.advance(by: 1)
        _ = scene.server.takeCalls()
        let again = scene.simulator.connect(scene.phone.central)
        scene.simulator.advance(by: 1)
        XCTAssertEqual(again.security, .encrypted)
        scene.server.expectCalls()
        scene.server.notify("/app/s0/c2", [7])
        XCTAssertEqual(again.values.map(\.bytes), [[7]])
    }

    func testACentralThatIsBondedFromTheBeginningEncryptsItsLink() {
        let scene = scene(isBonded: true)
        XCTAssertEqual(scene.phone.security, .encrypted)
        XCTAssertEqual(scene.agent.state(path), ["true", "true"])
    }

    func testACentralThatHasForgottenIsRefusedWithoutAQuestionUnlessNumbersAreCompared() {
        for (capability, security) in [
            ("NoInputNoOutput", VirtualSecurity()), ("DisplayYesNo", VirtualSecurity(.displayYesNo)),
        ] {
            let scene = scene(.v5_82, capability, phone: security)
            scene.phone.pair()
            scene.simulator.advance(by: 1)
            scene.phone.disconnect()
            scene.simulator.simulateKeyLoss(of: address)
            scene.simulator.advance(by: 1)
            _ = scene.agent.takeCalls()
            let again = scene.simulator.connect(scene.phone.central)
            scene.simulator.advance(by: 1)
            let pairing = again.pair()
            scene.simulator.advance(by: 1)
            let isCompared = capability == "DisplayYesNo"
            XCTAssertEqual(pairing.failure == nil, isCompared)
            XCTAssertEqual(scene.agent.takeCalls(), isCompared ? ["RequestConfirmation 01"] : [])
        }
    }

    func testRemovingTheCentralsDeviceEndsItsNextLink() {
        let scene = scene()
        scene.phone.pair()
        scene.simulator.advance(by: 1)
        scene.phone.disconnect()
        scene.simulator.run()
        XCTAssertNil(scene.agent.client.error(of: "RemoveDevice") { $0.objectPath(self.path) })
        let again = scene.simulator.connect(scene.phone.central)
        scene.simulator.advance(by: 1)
        XCTAssertEqual(again.state, .disconnected, "the central has keys that the adapter lacks")
    }

    func testTheProgramPairsWithAConnectedCentral() {
        let scene = scene(.v5_82, "DisplayYesNo", phone: VirtualSecurity(.displayYesNo))
        XCTAssertNil(scene.agent.device("Pair", path))
        scene.agent.expectCalls("RequestConfirmation 01")
        XCTAssertEqual(scene.phone.security, .secure)
    }

    // MARK: Two adapters

    func testTwoAdaptersPairWithTwoAgents() {
        for bluez in Self.versions {
            let simulator = Simulator.inProcess(
                room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)], bluez: bluez)
            let responder = PairingProgram(simulator, "DisplayYesNo")
            let initiator = PairingProgram(simulator, "DisplayYesNo")
            let server = ServingProgram(simulator, Self.protected + [ServingProgram.connectable])
            server.serve(on: "/org/bluez/hci1")
            initiator.scan()
            let there: ObjectPath = "/org/bluez/hci0/dev_00_AA_01_01_00_01"
            let here: ObjectPath = "/org/bluez/hci1/dev_00_AA_01_01_00_00"
            XCTAssertNil(initiator.device("Pair", there), "\(bluez)")
            initiator.expectCalls("RequestConfirmation 01")
            responder.expectCalls("RequestConfirmation 00")
            XCTAssertEqual(initiator.number, responder.number)
            XCTAssertEqual(initiator.state(there), ["true", "true"])
            XCTAssertEqual(initiator.state(here), ["true", "true"])
            XCTAssertEqual(simulator.links.map(\.security), [.secure])
        }
    }

    func testOneAgentForBothEndsIsAskedOnce() {
        let simulator = Simulator.inProcess(room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)])
        let program = PairingProgram(simulator, "DisplayYesNo")
        let server = ServingProgram(simulator, Self.protected + [ServingProgram.connectable])
        server.serve(on: "/org/bluez/hci1")
        program.scan()
        XCTAssertNil(program.device("Pair", "/org/bluez/hci0/dev_00_AA_01_01_00_01"))
        program.expectCalls("RequestConfirmation 00")
    }
}
