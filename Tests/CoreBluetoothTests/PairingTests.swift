import BlueCapKit
import BlueZSimulator
import CoreBluetooth
import TestSupport
import XCTest

/// Values that need a pairing, with the policies of BlueCapKit.
final class PairingTests: CoreBluetoothCase, @unchecked Sendable {
    static let locked = virtual(protection: .encrypted)

    func testAReadOfAProtectedValuePairsAsOniOS() {
        let peripheral = discover(Self.locked)
        let location = characteristic(Self.location, of: peripheral)
        peripheral.readValue(for: location)
        expect("value 2A38 [1] nil")
        XCTAssertTrue(peripheral.blueCap.isPaired)
        XCTAssertEqual(seen.texts, ["value 2A38 [1] nil"])
    }

    func testThePolicyOfAllManagersCanBeChosenOnce() {
        CBCentralManager.defaultConfiguration.pairingPolicy = .reject
        start()
        XCTAssertEqual(central.blueCap.pairingPolicy, .reject)
    }

    func testAPeripheralThatHasLostItsKeysIsReported() {
        let peripheral = discover(Self.locked)
        peripheral.readValue(for: characteristic(Self.location, of: peripheral))
        expect("value 2A38 [1] nil")
        simulator.simulateKeyLoss(of: Self.address)
        recorder.onDisconnection = { central, peripheral in central.connect(peripheral) }
        simulator.simulateLinkLoss(of: Self.address)
        eventually("the missing key", limit: 300) {
            self.seen.texts.contains {
                $0.hasSuffix("CBError.peerRemovedPairingInformation")
            }
        }
    }

    func testWithoutAPolicyThatPairsAProtectedReadFails() {
        start(options: ["CentralManagerOptionPairingPolicyKey": PairingPolicy.reject])
        let peripheral = discover(Self.locked)
        peripheral.readValue(for: characteristic(Self.location, of: peripheral))
        expect("value 2A38 [] CBATTError.\(CBATTError.insufficientEncryption.rawValue)")
        XCTAssertFalse(peripheral.blueCap.isPaired)
    }

    func testARefusalForLackOfSecurityIsItsATTError() {
        start(options: ["CentralManagerOptionPairingPolicyKey": PairingPolicy.reject])
        let peripheral = discover()
        simulator.simulateRefusedCalls(
            of: "ReadValue", error: DaemonError(name: "org.bluez.Error.NotPermitted", message: "Not paired"))
        peripheral.readValue(for: characteristic(Self.location, of: peripheral))
        expect("value 2A38 [] CBATTError.\(CBATTError.insufficientEncryption.rawValue)")
    }
}
