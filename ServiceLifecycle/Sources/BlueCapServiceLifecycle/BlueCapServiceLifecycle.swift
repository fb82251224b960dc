public import BlueCapKit
public import ServiceLifecycle

/// A central manager as a service of swift-service-lifecycle.
///
/// ```swift
/// let group = ServiceGroup(services: [CentralManagerService(manager), gateway], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
///
/// Place it before the services that use the manager: a group shuts its services down in the reverse order. If graceful shutdown
/// begins, or the task is cancelled, the service ends the scan, the ranging and all links and connection attempts of the manager.
public struct CentralManagerService: ServiceLifecycle.Service {
    /// The manager, which the service keeps alive.
    public let manager: CentralManager
    /// How long the service waits for BlueZ to confirm the ends.
    public let timeout: Duration

    /// - Parameters:
    ///   - manager: The manager.
    ///   - timeout: How long the service waits for BlueZ to confirm the ends. A link usually takes two seconds.
    public init(_ manager: CentralManager, timeout: Duration = .seconds(5)) {
        (self.manager, self.timeout) = (manager, timeout)
    }

    /// Waits for graceful shutdown, and returns when BlueZ has confirmed that no scan and no link is left, or when the time limit has
    /// passed.
    /// - Throws: `CancellationError` if the task is cancelled, after the same.
    public func run() async throws {
        try await waitForShutdown(thenWithin: timeout) { [manager] in
            manager.stopScanning()
            manager.stopRangingBeacons()
            let peripherals = manager.retrievePeripherals()
            manager.disconnectAllPeripherals()
            try await manager.whenScanningStopped().value
            while peripherals.contains(where: { $0.state != .disconnected }) {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }
}

/// A peripheral manager as a service of swift-service-lifecycle.
///
/// Place it before the services that use the manager: a group shuts its services down in the reverse order. If graceful shutdown
/// begins, or the task is cancelled, the service removes all services of the manager and ends its advertisements.
public struct PeripheralManagerService: ServiceLifecycle.Service {
    /// The manager, which the service keeps alive.
    public let manager: PeripheralManager
    /// How long the service waits for BlueZ to confirm the ends.
    public let timeout: Duration

    /// - Parameters:
    ///   - manager: The manager.
    ///   - timeout: How long the service waits for BlueZ to confirm the ends.
    public init(_ manager: PeripheralManager, timeout: Duration = .seconds(5)) {
        (self.manager, self.timeout) = (manager, timeout)
    }

    /// Waits for graceful shutdown, and returns when BlueZ has confirmed that nothing is registered, or when the time limit has passed.
    /// - Throws: `CancellationError` if the task is cancelled, after the same.
    public func run() async throws {
        try await waitForShutdown(thenWithin: timeout) { [manager] in
            manager.removeAllServices()
            try await manager.stopAdvertising(timeout: nil)
            // bluetoothd handles calls in their order: its reply to this one follows the removal of the services.
            _ = try await manager.advertisingLimits()
        }
    }
}

/// Waits for graceful shutdown or the cancellation of the task, and then runs `end`, for at most the time limit, also if the task is
/// cancelled.
private func waitForShutdown(
    thenWithin limit: Duration, _ end: @escaping @Sendable () async throws -> Void
) async throws {
    var cancellation: (any Error)?
    do { try await gracefulShutdown() } catch { cancellation = error }
    // A task of its own is not cancelled with this one.
    await Task {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await end() }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }.value
    if let cancellation { throw cancellation }
}
