import BlueCapKit
import BlueCapMetrics
import BlueZSimulator
import BlueCapFutures
import Metrics
import MetricsTestKit
import XCTest

/// What the reporters pass on to swift-metrics, in virtual time.
final class MetricsReporterTests: XCTestCase {
    private let strap: VirtualAddress = "C0:00:00:00:00:01"

    private func simulator() -> Simulator {
        let simulator = Simulator.inProcess(room: .empty)
        simulator.add(
            VirtualPeripheral(
                strap, advertisement: Advertisement(localName: "Strap"), interval: 0.1,
                services: [
                    VirtualService("180F", characteristics: [VirtualCharacteristic("2A19", [.read], value: [80])])
                ]))
        return simulator
    }

    func testTheGrowthIsAddedToCountersAndThePresentIsAGauge() async throws {
        let (simulator, metrics) = (simulator(), TestMetrics())
        var configuration = CentralManager.Configuration()
        configuration.busAddress = simulator.address
        let manager = try CentralManager(configuration: configuration)
        let reporter = MetricsReporter(manager, dimensions: [("site", "home")], factory: metrics)
        let work = Task(executorPreference: simulator.taskExecutor) {
            try await manager.poweredOn(timeout: 10)
            let peripheral = try await manager.startScanning(timeout: 30).first().value
            manager.stopScanning()
            _ = try await peripheral.connect().first().value
            let level = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
            for _ in 1...3 { let _: Data = try await peripheral.read(level).value }
            return peripheral
        }
        await simulator.advance(by: 30)
        let peripheral = try await work.value
        XCTAssertTrue(reporter.report())
        let dimensions = [("site", "home")]
        let connections = try metrics.expectCounter("bluecap_central_connections", dimensions)
        let reads = try metrics.expectCounter("bluecap_central_reading_count", dimensions)
        let connected = try metrics.expectGauge("bluecap_central_connected", dimensions)
        XCTAssertEqual(connections.totalValue, 1)
        XCTAssertEqual(reads.totalValue, 3)
        XCTAssertEqual(connected.lastValue, 1)

        // A report without growth adds nothing.
        XCTAssertTrue(reporter.report())
        XCTAssertEqual(reads.totalValue, 3)
        peripheral.disconnect()
        await simulator.advance(by: 2)
        XCTAssertTrue(reporter.report())
        XCTAssertEqual(connections.totalValue, 1)
        XCTAssertEqual(connected.lastValue, 0)

        let own = MetricsReporter(peripheral, dimensions: [("device", "strap")], factory: metrics)
        XCTAssertTrue(own.report())
        XCTAssertEqual(try metrics.expectCounter("bluecap_device_reading_count", [("device", "strap")]).totalValue, 3)
    }

    func testTheReporterDoesNotKeepItsManagerAndEndsWithIt() async throws {
        let (simulator, metrics) = (simulator(), TestMetrics())
        var configuration = PeripheralManager.Configuration()
        configuration.busAddress = simulator.address
        var manager: PeripheralManager? = try PeripheralManager(configuration: configuration)
        let reporter = try MetricsReporter(XCTUnwrap(manager), factory: metrics)
        await simulator.advance(by: 1)
        XCTAssertTrue(reporter.report())
        XCTAssertEqual(try metrics.expectGauge("bluecap_peripheral_centrals_connected").lastValue, 0)
        manager = nil
        await simulator.advance(by: 1)
        XCTAssertFalse(reporter.report())
        await reporter.run(every: .seconds(3600))
    }
}
