public import Foundation
public import BlueCapGATT

// With a number of seconds, `try await` would choose the function that returns a future, and lose its error. `.zero` is a duration.

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension Peripheral {
    /// Reads the whole value.
    @_disfavoredOverload
    public func read(_ identifier: CharacteristicIdentifier, timeout: TimeInterval) async throws -> Data {
        try await read(identifier, timeout: Duration(seconds: timeout))
    }

    /// Reads the value as a value of a type.
    @_disfavoredOverload
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval
    ) async throws -> T {
        try await read(identifier, timeout: Duration(seconds: timeout))
    }

    /// Writes bytes.
    @_disfavoredOverload
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: TimeInterval,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(data, to: identifier, timeout: Duration(seconds: timeout), type: type)
    }

    /// Writes a value of a type that can be serialized.
    @_disfavoredOverload
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: TimeInterval,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(value, to: identifier, timeout: Duration(seconds: timeout), type: type)
    }

    /// Pairs, and stores the keys in BlueZ.
    @_disfavoredOverload
    public func pair(trusting isTrusting: Bool = false, timeout: TimeInterval) async throws {
        try await pair(trusting: isTrusting, timeout: Duration(seconds: timeout))
    }

    /// Executes `work` when it is first in the peripheral's queue and there is a link.
    @_disfavoredOverload
    public func run<T: Sendable>(
        timeout: TimeInterval, _ work: @escaping @Sendable @concurrent (ConnectedPeripheral) async throws -> T
    ) async throws -> T {
        try await run(timeout: Duration(seconds: timeout), work)
    }
}

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension Characteristic {
    /// Reads the whole value.
    @discardableResult @_disfavoredOverload
    public func read(timeout: TimeInterval) async throws -> Data { try await read(timeout: Duration(seconds: timeout)) }

    /// Writes a value of a type that can be serialized.
    @_disfavoredOverload
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: TimeInterval, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(value, timeout: Duration(seconds: timeout), type: type)
    }

    /// Writes bytes.
    @_disfavoredOverload
    public func write(
        data value: Data, timeout: TimeInterval, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(data: value, timeout: Duration(seconds: timeout), type: type)
    }
}

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension PeripheralManager {
    /// Offers a service to centrals.
    @_disfavoredOverload
    public func add(_ service: MutableService, timeout: TimeInterval) async throws {
        try await add(service, timeout: Duration(seconds: timeout))
    }

    /// Advertises a name and services.
    @_disfavoredOverload
    public func startAdvertising(_ name: String, uuids: [CBUUID]? = nil, timeout: TimeInterval) async throws {
        try await startAdvertising(name, uuids: uuids, timeout: Duration(seconds: timeout))
    }

    /// Advertises this data.
    @discardableResult @_disfavoredOverload
    public func startAdvertising(_ data: AdvertisingData, timeout: TimeInterval) async throws -> RunningAdvertisement {
        try await startAdvertising(data, timeout: Duration(seconds: timeout))
    }
}
