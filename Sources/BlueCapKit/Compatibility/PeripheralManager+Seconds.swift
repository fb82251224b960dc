public import Foundation
public import BlueCapGATT

// With a number of seconds, `try await` would choose the function that returns a future, and lose its error.
@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension PeripheralManager {
    /// Variant of ``add(_:timeout:)-(_,Duration?)``.
    @_disfavoredOverload
    public func add(_ service: MutableService, timeout: TimeInterval) async throws {
        try await add(service, timeout: Duration(limit: timeout))
    }

    /// Variant of ``startAdvertising(_:uuids:timeout:)-(_,_,Duration?)``.
    @_disfavoredOverload
    public func startAdvertising(_ name: String, uuids: [CBUUID]? = nil, timeout: TimeInterval) async throws {
        try await startAdvertising(name, uuids: uuids, timeout: Duration(limit: timeout))
    }

    /// Variant of ``startAdvertising(_:timeout:)-(BeaconRegion,Duration?)``.
    @_disfavoredOverload
    public func startAdvertising(_ region: BeaconRegion, timeout: TimeInterval) async throws {
        try await startAdvertising(region, timeout: Duration(limit: timeout))
    }

    /// Variant of ``startAdvertising(_:timeout:)-(AdvertisingData,Duration?)``.
    @_disfavoredOverload
    @discardableResult
    public func startAdvertising(_ data: AdvertisingData, timeout: TimeInterval) async throws -> RunningAdvertisement {
        try await startAdvertising(data, timeout: Duration(limit: timeout))
    }

    /// Variant of ``stopAdvertising(timeout:)-(Duration?)``.
    @_disfavoredOverload
    public func stopAdvertising(timeout: TimeInterval) async throws {
        try await stopAdvertising(timeout: Duration(limit: timeout))
    }

    /// Variant of ``setPairable(_:timeout:)-(_,Duration?)``.
    @_disfavoredOverload
    public func setPairable(_ isPairable: Bool, timeout: TimeInterval) async throws {
        try await setPairable(isPairable, timeout: Duration(limit: timeout))
    }
}

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension RunningAdvertisement {
    /// Variant of ``stop(timeout:)-(Duration?)``.
    @_disfavoredOverload
    public func stop(timeout: TimeInterval) async throws { try await stop(timeout: Duration(limit: timeout)) }
}

extension Duration {
    /// A time limit in seconds as a duration; `nil`, which is no limit, if no duration is that long.
    fileprivate init?(limit seconds: TimeInterval) {
        guard seconds < 1e9 else { return nil }
        self = .seconds(max(seconds, 0))
    }
}
