import BlueCapKit
import BlueZSimulator
import XCTest

/// The documents' futures and the `async` functions with the same names, in one program.
///
/// Compiled in both language modes: `ConformanceTests` has a link to this file.
final class PeripheralStylesTests: PeripheralCase, @unchecked Sendable {
    func testBothStylesCompileAndRunSideBySide() async throws {
        let manager = poweredPeripheralManager()
        let (service, _) = accelerometer()
        let characteristic = MutableCharacteristic(
            profile: RawCharacteristicProfile<TISensorTag.AccelerometerService.Enabled>())
        service.characteristics.append(characteristic)
        let uuids = [service.uuid]
        let task = Task(executorPreference: simulator.taskExecutor) { () -> [Central] in
            try await manager.add(service)
            try await manager.add(service).value
            let added: Future<Void> = manager.add(service)
            // On the default context this races with the virtual time.
            let started = added.flatMap(context: ImmediateContext()) {
                manager.startAdvertising("Sensor", uuids: uuids)
            }
            _ = try await started.value
            try await manager.stopAdvertising()
            _ = try await manager.stopAdvertising(timeout: 10.0).value
            try await manager.startAdvertising("Sensor", uuids: uuids, timeout: .seconds(5))
            for try await (request, central) in characteristic.startRespondingToWriteRequests().values {
                characteristic.respondToRequest(request, withResult: CBATTError.success)
                return [central]
            }
            return []
        }
        await simulator.advance(by: 5)
        let link = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone"))
        await simulator.advance(until: { link.state == .connected }, limit: 10)
        let written = link.write([1], to: "F000AA12-0451-4000-B000-000000000000")
        await simulator.advance(by: 5)
        let centrals = try await task.value
        XCTAssertEqual(centrals.map(\.maximumUpdateValueLength), [244])
        XCTAssertEqual(try written.result?.get(), [])
        withExtendedLifetime(manager) {}
    }
}
