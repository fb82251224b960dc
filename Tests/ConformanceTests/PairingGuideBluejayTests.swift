import Bluejay
import BlueZSimulator
import XCTest

final class PairingDialog: PairingObserver {
    func didReceivePairingRequest(_ request: PairingRequest, from peripheral: PeripheralIdentifier) {
        guard case .confirm(let passkey) = request.kind else { return _ = request.reject() }
        show("Does \(peripheral.name) show \(passkey.digits)?") { isEqual in
            if isEqual { request.confirm() } else { request.reject() }
        }
    }

    func didChangePairing(of peripheral: PeripheralIdentifier, to change: PairingChange) {
        print(peripheral.name, change.isBonded ? "is bonded" : "is not bonded")
    }
}

extension PairingDialog {
    func show(_ question: String, answer: (Bool) -> Void) { answer(question.hasPrefix("Does Front Door show ")) }
}

/// The code of Documentation/Pairing.md that uses Bluejay; `PairingGuideTests` finds it here.
final class PairingGuideBluejayTests: DocumentedBluejayCase, @unchecked Swift.Sendable {
    func testAnObserverAsksTheUser() {
        let door = VirtualPeripheral(
            Self.address, addressType: .random, advertisement: Advertisement(localName: "Front Door"), interval: 0.1,
            services: [VirtualService("AA10", characteristics: [VirtualCharacteristic("AA12")])],
            security: VirtualSecurity(.displayYesNo))
        let dialog = PairingDialog()
        bluejay.register(pairingObserver: dialog)  // held weakly
        bluejay.start(pairing: .ask(.displayYesNo))
        eventually("Bluetooth") { bluejay.isBluetoothAvailable }
        let identifier = discoveredSensor(door)
        bluejay.connect(identifier) { _ in }
        eventually("the connection") { bluejay.isConnected }
        bluejay.pair { result in
            if case .failure(let error) = result { print(error.localizedDescription) }
        }
        eventually("the bond") { simulator.links.first?.security == .secure }
    }
}
