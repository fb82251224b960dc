import BlueCapKit
import Dispatch
import Foundation

// Prints what the sensors in range measure, as JSON lines. Most sensors advertise their measurements. Those with the service
// Environmental Sensing are connected, and stay connected.

/// A line of the output.
struct Line: Encodable {
    var time = Date()
    let address, name, quantity: String
    let value: Double
    let unit: String

    func write() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        print(String(decoding: try encoder.encode(self), as: UTF8.self))
        fflush(nil)
    }
}

/// Writes a line about the program itself, which is none of its output.
func note(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }

func gateway(_ manager: CentralManager) async throws {
    let environment = CBUUID(string: "181A")
    try await manager.waitUntilPoweredOn(timeout: .seconds(10))
    try await withThrowingDiscardingTaskGroup { group in
        var followed: Set<UUID> = []
        var latest: [UUID: [SensorReading]] = [:]
        for try await report in manager.startScanningForReports(options: ScanOptions(allowsDuplicates: true)) {
            let (sensor, readings) = (report.peripheral, report.sensorReadings)
            if readings.isEmpty, report.advertisements.serviceUUIDs?.contains(environment) == true {
                guard followed.insert(sensor.identifier).inserted else { continue }
                group.addTask {
                    do { try await follow(sensor) } catch { note("\(sensor.name): \(error)") }
                }
            } else if latest.updateValue(readings, forKey: sensor.identifier) != readings {
                for value in readings.flatMap(\.values) {
                    guard case .number(let number) = value.value else { continue }
                    try Line(
                        address: sensor.address, name: sensor.name, quantity: value.name, value: number,
                        unit: value.unit
                    ).write()
                }
            }
        }
        group.cancelAll()
    }
}

/// Keeps a sensor connected, and writes each temperature that it notifies.
func follow(_ sensor: Peripheral) async throws {
    let temperature = CharacteristicIdentifier(uuid: "2A6E", service: ServiceIdentifier(uuid: "181A"))
    let changes = sensor.stayConnected()
    try await withThrowingDiscardingTaskGroup { group in
        group.addTask {
            for try await change in changes { note("\(sensor.name): \(change)") }
        }
        group.addTask {
            for try await event in sensor.notificationEvents(temperature) {
                guard case .value(let data) = event, let hundredths = Int16.deserialize(data) else { continue }
                try Line(
                    address: sensor.address, name: sensor.name, quantity: "temperature",
                    value: Double(hundredths) / 100, unit: "°C"
                ).write()
            }
        }
    }
}

let manager = CentralManager()
let work = Task { try await gateway(manager) }
let signals = [SIGINT, SIGTERM].map { number in
    signal(number, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
    source.setEventHandler { work.cancel() }
    source.resume()
    return source
}
var status: Int32 = 0
do {
    try await work.value
} catch is CancellationError {
} catch {
    note("\(error)")
    status = 1
}
// BlueZ keeps the links of a program that has ended, so the program waits until they have ended.
let deadline = ContinuousClock.now + .seconds(5)
while manager.retrievePeripherals().contains(where: { $0.state != .disconnected }), .now < deadline {
    try await Task.sleep(for: .milliseconds(50))
}
exit(status)
