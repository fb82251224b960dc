import BlueCapKit
import Dispatch

let keys = CharacteristicIdentifier(uuid: "AA12", service: ServiceIdentifier(uuid: "AA10"))
let manager = try CentralManager(configuration: .init(pairingPolicy: .ask))
let terminal = QueueContext(queue: DispatchQueue(label: "terminal"))  // its handler waits for the user
manager.whenPairingIsRequested().onSuccess(context: terminal) { request in
    switch request.kind {
    case .displayPasskey(let passkey, _):
        print("Enter \(passkey.digits) at the other device.")
    case .confirm(let passkey):
        print("Does the other device show \(passkey.digits)? [y/n]")
        if readLine() == "y" { request.confirm() } else { request.reject() }
    case .enterPasskey:
        print("Which passkey does the other device show?")
        if let passkey = Passkey(digits: readLine() ?? "") { request.enter(passkey) } else { request.reject() }
    case .authorize:
        print("Pair with this device? [y/n]")
        if readLine() == "y" { request.confirm() } else { request.reject() }
    }
}
try await manager.waitUntilPoweredOn()
let found = try await manager.startScanning(forServiceUUIDs: [CBUUID(string: "AA10")], timeout: 30).first().value
manager.stopScanning()
do {
    let door = try await found.pair().value
    let value = try await door.read(keys).value
    print(door.name, "has", String(decoding: value, as: UTF8.self))
} catch let error as PairingError {
    print(error)
}
