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
try await manager.waitUntilPoweredOn(timeout: .seconds(10))
let stream = manager.startScanning(forServiceUUIDs: [CBUUID(string: "AA10")], timeout: .seconds(30))
let door = try await stream.first().value
manager.stopScanning()
do {
    try await door.pair(timeout: .seconds(60))
    let value: String = try await door.read(keys, timeout: .seconds(5))
    print(door.name, "has", value)
} catch let error as PairingError {
    print(error)
}
