import BlueCapKit
import Foundation

// Serves a thermostat. Centrals write its target, and each write is checked before it takes effect.

/// Returns the target that a central writes, in hundredths of a degree.
/// - Throws: The error that the central receives. The codes 0x80 to 0x9F are the application's own.
func checkedTarget(_ request: ATTRequest) throws(CBATTError) -> Int16 {
    guard request.offset == 0 else { throw CBATTError(.invalidOffset) }
    guard let target = request.value.flatMap({ Int16.deserialize($0) }) else {
        throw CBATTError(.invalidAttributeValueLength)
    }
    guard (500...3000).contains(target) else { throw CBATTError(.application(0x80)) }
    return target
}

func serveThermostat(_ manager: PeripheralManager) async throws {
    let target = MutableCharacteristic(
        uuid: "7B1C0011-5A0E-4E2B-9C5F-3D1E8A6F0B21", properties: [.read, .write, .notify],
        permissions: [.readable, .writeable], value: Int16(2000).serialize())
    target.descriptors = [.userDescription("Target, 5 to 30 degrees")]
    target.updateQueuePolicy = .dropOldest  // update never fails because a central is slow
    target.unsubscribedUpdatePolicy = .discard  // a central that connects later reads the target
    let thermostat = MutableService(uuid: "7B1C0010-5A0E-4E2B-9C5F-3D1E8A6F0B21")
    thermostat.characteristics = [target]
    try await manager.add(thermostat)
    let writes = target.startRespondingToWriteRequests()
    try await manager.startAdvertising("Thermostat", uuids: [thermostat.uuid])

    for try await (request, central) in writes {
        do {
            let hundredths = try checkedTarget(request)
            try target.update(hundredths)  // sets the value, and sends it to all subscribers
            target.respondToRequest(request, withResult: .success)
            print("\(central) has set \(Double(hundredths) / 100) °C")
        } catch let error as CBATTError {
            target.respondToRequest(request, withResult: error.code)
            print("\(central) was refused: \(error)")
        }
    }
}

try await serveThermostat(PeripheralManager(configuration: .init()))
