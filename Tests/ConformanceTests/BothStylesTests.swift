import BlueCapKit
import BlueZSimulator
import XCTest

/// The futures of the documents and the `async` functions of the same names in one program, without a type where none is needed:
/// this file is compiled in the language modes of Swift 5 and Swift 6.
final class BothStylesTests: DocumentedCase, @unchecked Sendable {
    private let enabled = CharacteristicIdentifier(
        uuid: TISensorTag.AccelerometerService.Enabled.uuid,
        service: ServiceIdentifier(uuid: TISensorTag.AccelerometerService.uuid))
    private let battery = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))

    // MARK: Futures

    /// Futures in a synchronous function, as the documents have them.
    private func enableWithFutures(_ peripheral: Peripheral) -> Future<Data> {
        let uuid = Sensor.enabledUUID
        let discovered = peripheral.discoverServices([Sensor.serviceUUID], timeout: 10)
            .flatMap { peripheral -> Future<Service> in
                guard let service = peripheral.services.first(where: { $0.characteristics.isEmpty }) else {
                    throw PeripheralError.noServices
                }
                return service.discoverCharacteristics([uuid])
            }
        let written = discovered.flatMap { service -> Future<Characteristic> in
            guard let characteristic = service.characteristic(uuid) else { throw ServiceError.invalidated }
            return characteristic.write(data: Data([1]), timeout: 10)
        }
        let read = written.flatMap { $0.read(timeout: 10) }
        return read.map { $0.dataValue ?? Data() }
    }

    func testFuturesInSynchronousCode() throws {
        let peripheral = try connectedSensor()
        let value = enableWithFutures(peripheral)
        eventually("read") { value.completed }
        guard case .success(Data([1]))? = value.result else { return XCTFail("\(String(describing: value.result))") }
        let level: Future<UInt8> = peripheral.read(battery, timeout: 5)
        let data: Future<Data> = peripheral.read(battery)
        let nothing: Future<Void> = peripheral.write(Data([0]), to: enabled)
        eventually("read") { level.completed && data.completed && nothing.completed }
        guard case .success(87)? = level.result else { return XCTFail("\(String(describing: level.result))") }
    }

    // MARK: Async verbs

    /// The operations of a program of today.
    private func enableWithAsyncVerbs(_ peripheral: Peripheral) async throws -> [String] {
        try await peripheral.connect(timeout: .seconds(10))
        let services = try await peripheral.discoverServices([Sensor.serviceUUID])
        var lines = ["\(services.count) service"]
        for service in try await peripheral.discoverAllServices(timeout: .seconds(5)) {
            try await service.discoverAllCharacteristics()
        }
        guard let service = services.first else { return lines }
        let characteristics = try await service.discoverCharacteristics(
            [Sensor.enabledUUID], timeout: .seconds(5))
        guard let characteristic = characteristics.first else { return lines }
        try await characteristic.write(Data([1]))
        try await characteristic.write(data: Data([2]), timeout: .seconds(5))
        try await characteristic.write(UInt8(3), type: .withResponse)
        try await characteristic.write(string: [characteristic.name: "04"])
        let data = try await characteristic.read()
        let number: UInt8 = try await characteristic.read(timeout: .milliseconds(500))
        lines.append("\(Array(data)) \(number)")
        try await characteristic.read()
        let level: UInt8 = try await peripheral.read(battery, timeout: .seconds(5))
        let bytes = try await peripheral.read(battery)
        try await peripheral.write(Data([0]), to: enabled)
        try await peripheral.write(UInt8(1), to: enabled, timeout: .seconds(5))
        let found = try await peripheral.characteristic(enabled)
        lines.append("\(level) \(Array(bytes)) \(found === characteristic)")
        return lines
    }

    /// Futures that an `async` function names by their types, or uses at once.
    private func mixed(_ peripheral: Peripheral) async throws -> UInt8 {
        let future: Future<UInt8> = peripheral.read(battery, timeout: 5)
        let services: Future<Peripheral> = peripheral.discoverAllServices()
        _ = try await services.value.services
        try await peripheral.write(Data([1]), to: enabled, timeout: .seconds(5))
        peripheral.discoverAllServices().onSuccess { _ in }
        let data = try await peripheral.read(battery).first
        return try await future.value + (data ?? 0)
    }

    func testAsyncVerbsInAsyncFunctionsAndTasks() async throws {
        let peripheral = try discoveredSensor()
        let task = Task(executorPreference: simulator.taskExecutor) { try await self.enableWithAsyncVerbs(peripheral) }
        await simulator.advance(by: 60)
        let lines = try await task.value
        XCTAssertEqual(lines, ["1 service", "[4] 4", "87 [87] true"])
        let sum = Task(executorPreference: simulator.taskExecutor) { try await self.mixed(peripheral) }
        await simulator.advance(by: 60)
        let value = try await sum.value
        XCTAssertEqual(value, 174)
        let (battery, enabled) = (battery, enabled)
        let read = Task(executorPreference: simulator.taskExecutor) { try await peripheral.read(battery) }
        let write = Task(executorPreference: simulator.taskExecutor) {
            try await peripheral.write(Data([1]), to: enabled)
        }
        await simulator.advance(by: 10)
        let bytes = try await read.value
        XCTAssertEqual(bytes, Data([87]))
        try await write.value
        let refused = Task(executorPreference: simulator.taskExecutor) {
            do {
                try await peripheral.read(
                    CharacteristicIdentifier(uuid: "2A00", service: ServiceIdentifier(uuid: "180F"))
                )
                .forEach { _ in }
                return "read"
            } catch ServiceError.characteristicNotFound {
                return "not found"
            }
        }
        await simulator.advance(by: 10)
        let word = try await refused.value
        XCTAssertEqual(word, "not found")
    }
}
