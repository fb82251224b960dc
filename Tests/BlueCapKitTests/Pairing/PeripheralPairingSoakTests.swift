import BlueCapBlueZ
import BlueZSimulator
import BlueCapFutures
import BlueCapReactor
import TestBasics
import XCTest

@testable import BlueCapKit

/// Centrals pair in every way while links, keys, the policy and the daemon change.
final class PeripheralPairingSoakTests: PeripheralStage {
    private static let capabilities: [(PairingCapability, InputOutputCapability)] = [
        (.displayOnly, .displayOnly), (.displayYesNo, .displayYesNo), (.keyboardOnly, .keyboardOnly),
        (.noInputNoOutput, .noInputNoOutput), (.keyboardDisplay, .keyboardDisplay),
    ]

    func testABondIsOnlyWhereOneWasAllowedAndNothingIsLeftOpen() throws {
        var random = TestRandom(self)
        for round in 0..<60 {
            let versions: [BlueZVersion] = [.v5_66, .v5_72, .v5_82, .v5_87]
            simulator = .inProcess(room: .empty, bluez: versions[random.below(versions.count)])
            try play(&random, "round \(round)")
        }
    }

    private func play(_ random: inout TestRandom, _ round: String) throws {
        let isAsking = random.below(4) > 0
        var policy = isAsking ? PairingPolicy.ask(Self.capabilities[random.below(5)].1) : .justWorks
        policy.answerTimeout = .seconds(5)
        let manager = makeManager(.init(pairingPolicy: policy))
        let service = Self.heart()
        service.characteristics.append(
            MutableCharacteristic(
                uuid: "B001", properties: .read, permissions: .readEncryptionRequired, value: Data([1])))
        try serve(service, with: manager)

        // What the user of the server does, by the number of the request.
        let answers = Locked<[Int]>((0..<50).map { _ in random.below(5) })
        let allowed = Locked(0)
        manager.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { request in
            switch (answers.withLock { $0.popLast() ?? 0 }, request.kind) {
            case (0, _): request.reject()
            case (_, .displayPasskey): allowed.withLock { $0 += 1 }
            case (1, _): break
            case (_, let kind):
                allowed.withLock { $0 += 1 }
                if kind == .enterPasskey { request.enter(4711) } else { request.confirm() }
            }
        }
        var pairings: [CentralRequest] = []
        var hasDied = false
        for _ in 0..<6 {
            let user = VirtualUser(
                confirms: random.below(4) == 0 ? .reject : .accept(after: Double(random.below(4))),
                passkey: random.below(4) == 0 ? .wrong : .displayed(after: Double(random.below(4))), displays: 4711)
            let security = VirtualSecurity(
                Self.capabilities[random.below(5)].0, hasSecureConnections: random.below(3) > 0, user: user)
            let address: VirtualAddress = random.below(2) == 0 ? "C0:FF:EE:00:CE:01" : "C0:FF:EE:00:CE:02"
            let link = simulator.connect(VirtualCentral(address, name: "Phone", security: security))
            _ = simulator.advance(until: { link.state != .connecting }, limit: 10)
            pairings.append(link.pair())
            simulator.advance(by: Double(random.below(40)) / 10)
            switch random.below(8) {
            case 0: link.disconnect()
            case 1: simulator.simulateLinkLoss(of: address)
            case 2: simulator.simulateKeyLoss(of: address)
            case 3:
                hasDied = true
                simulator.simulateDaemonDeath()
                simulator.advance(by: 1)
                simulator.simulateDaemonReturn()
            case 4: manager.forgetBonds()
            default: break
            }
            simulator.advance(by: Double(random.below(100)) / 10)
            link.disconnect()
            simulator.advance(by: 1)
        }
        simulator.advance(by: 60)
        XCTAssertTrue(pairings.allSatisfy { $0.result != nil }, round)
        if isAsking, allowed.withLock({ $0 }) == 0 { XCTAssertEqual(manager.bonds(), [], round) }
        // A bond that was made while the daemon died was not reported.
        if !hasDied { XCTAssertTrue(manager.bonds().allSatisfy(\.isOurs), round) }
        let isSettled = Locked(false)
        let client = manager.session.client
        client.loop.post { isSettled.withLock { $0 = client.pairings.isSettled {} } }
        simulator.advance(by: 0.1)
        XCTAssertTrue(isSettled.withLock { $0 }, round)
        manager.session.core.withLock { core in
            XCTAssertEqual(core.pairing, [], round)
            XCTAssertEqual(core.removing, [], round)
        }
        XCTAssertTrue(manager.isPairable, round)
        XCTAssertTrue(service.isAdded, round)
    }
}
