// Serves a battery level until SIGTERM, with logs and metrics.

import BlueCapKit
import BlueCapMetrics
import BlueCapServiceLifecycle
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

/// Updates the level each second.
struct Battery: ServiceLifecycle.Service {
    let manager: PeripheralManager
    let logger: Logger

    func run() async throws {
        let level = MutableCharacteristic(profile: RawCharacteristicProfile<BluetoothSIG.BatteryService.Level>())
        level.unsubscribedUpdatePolicy = .latest
        let battery = MutableService(uuid: "180F")
        battery.characteristics = [level]
        try await manager.add(battery)
        try await manager.startAdvertising("Battery", uuids: [battery.uuid])
        logger.info("serving")
        try await cancelWhenGracefulShutdown {
            for percent in (0...100).reversed() {
                try level.update(withData: Data([UInt8(percent)]))
                try? await Task.sleep(for: .seconds(1))
                if Task.isCancelled { return }
            }
        }
    }
}

/// Passes the manager's numbers on to the backend of `MetricsSystem`, which a program bootstraps, for example with swift-prometheus.
struct Metrics: ServiceLifecycle.Service {
    let reporter: MetricsReporter

    func run() async { await cancelWhenGracefulShutdown { await reporter.run(every: .seconds(10)) } }
}

let logger = Logger(label: "battery")
let manager = try PeripheralManager(configuration: .init(logger: logger))
let group = ServiceGroup(
    services: [
        PeripheralManagerService(manager), Metrics(reporter: MetricsReporter(manager)),
        Battery(manager: manager, logger: logger),
    ],
    gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
try await group.run()
logger.info("nothing is registered any more")
