import BlueCapDBus
import TestBasics
import XCTest

@testable import BlueZSimulator

/// Random pairings with random faults: each call has one reply, and a bond only if both users agreed.
final class PairingSoakTests: RandomTestCase {
    private let path: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_0A"
    private let address: VirtualAddress = "C0:00:00:00:00:0A"

    func testEachPairEndsAndBondsOnlyWithTheConsentOfBothUsers() {
        var random = TestRandom(self)
        for round in 0..<150 {
            let bluez = [BlueZVersion.v5_66, .v5_72, .v5_82, BlueZVersion(5, 87)].randomElement(using: &random)!
            let accepts = Bool.random(using: &random)
            let ours = PairingCapability.allCases.randomElement(using: &random)!
            let theirs = PairingCapability.allCases.randomElement(using: &random)!
            let delay = Double.random(in: 0...5, using: &random)
            let user = VirtualUser(
                confirms: accepts ? .accept(after: delay) : .reject(after: delay),
                passkey: accepts ? .displayed(after: delay) : .wrong, displays: 4711)
            let lock = VirtualPeripheral(
                address, addressType: .random, advertisement: Advertisement(localName: "Lock"),
                services: [VirtualService("B001", characteristics: [VirtualCharacteristic("B002")])],
                security: VirtualSecurity(theirs, user: user))
            let simulator = Simulator.inProcess(room: Room(peripherals: [lock]), bluez: bluez)
            let enters = ours == .keyboardOnly || ours == .keyboardDisplay && theirs != .keyboardDisplay
            let isSilent = Int.random(in: 0..<5, using: &random) == 0
            let reply: PairingProgram.Reply = enters ? .passkey(accepts ? 4711 : 4712) : .accept
            let program = PairingProgram(simulator, ours.rawValue, reply: isSilent ? .later : reply)
            program.scan()
            let pair = program.begin("Pair", path)
            simulator.advance(by: Double.random(in: 0...6, using: &random))
            switch Int.random(in: 0..<6, using: &random) {
            case 0: simulator.simulateLinkLoss(of: address)
            case 1: _ = program.begin("CancelPairing", path)
            case 2: simulator.simulatePowerOff()
            case 3: simulator.simulateOutOfRange(of: address)
            case 4:
                simulator.simulateDaemonDeath()
                simulator.simulateDaemonReturn()
            default: break
            }
            simulator.advance(by: 80)
            let place = "round \(round) \(bluez) \(ours) \(theirs) accepts \(accepts)"
            XCTAssertNotNil(pair.succeeded, place)
            let isBonded = program.client.property("Bonded", at: path) == "true"
            if !accepts { XCTAssertFalse(isBonded, place) }
            if pair.succeeded == true { XCTAssertTrue(isBonded || simulator.devices.isEmpty, place) }
        }
    }
}
