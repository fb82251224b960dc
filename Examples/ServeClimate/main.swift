import BlueCapKit
import Foundation

// Serves a service of its own, with UUIDs that `uuidgen` has made: the climate of a room, and how long the program has run.

/// The value of the climate: degrees Celsius and per cent, both in hundredths.
struct Climate: CharacteristicCodable {
    var temperature: Int16
    var humidity: UInt16

    static func deserialize(_ data: Data) -> Climate? {
        guard let temperature = Int16.deserialize(data, start: 0), let humidity = UInt16.deserialize(data, start: 2)
        else { return nil }
        return Climate(temperature: temperature, humidity: humidity)
    }

    func serialize() -> Data { temperature.serialize() + humidity.serialize() }
}

func serveClimate(_ manager: PeripheralManager) async throws {
    var now = Climate(temperature: 2150, humidity: 4800)
    let climate = MutableCharacteristic(
        uuid: "7B1C0001-5A0E-4E2B-9C5F-3D1E8A6F0B21", properties: [.read, .notify], permissions: .readable,
        value: now.serialize())
    climate.descriptors = [.userDescription("Temperature and humidity")]
    climate.unsubscribedUpdatePolicy = .latest  // a central that subscribes receives the present climate at once
    let uptime = MutableCharacteristic(
        uuid: "7B1C0002-5A0E-4E2B-9C5F-3D1E8A6F0B21", properties: .read, permissions: .readable)
    uptime.descriptors = [.userDescription("Uptime in seconds")]
    let service = MutableService(uuid: "7B1C0000-5A0E-4E2B-9C5F-3D1E8A6F0B21")
    service.characteristics = [climate, uptime]
    try await manager.add(service)
    let reads = uptime.startRespondingToReadRequests()  // before a central can discover the service
    try await manager.startAdvertising("Climate", uuids: [service.uuid])

    try await withThrowingDiscardingTaskGroup { group in
        group.addTask {
            let start = ContinuousClock.now
            for try await (request, central) in reads {
                let seconds = UInt32((ContinuousClock.now - start).components.seconds)
                uptime.respondToRequest(request, withValue: seconds.serialize())
                print("\(central) has read the uptime")
            }
        }
        group.addTask {
            for try await subscribers in climate.whenSubscribersChange() {
                print("subscribers: \(subscribers)")
            }
        }
        while true {
            try await Task.sleep(for: .seconds(1))
            now.temperature = now.temperature == 2150 ? 2160 : 2150
            try climate.update(now)
        }
    }
}

try await serveClimate(PeripheralManager(configuration: .init()))
