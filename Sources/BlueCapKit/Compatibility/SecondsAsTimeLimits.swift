public import Foundation
public import BlueCapGATT

// With a number of seconds, `try await` would choose the function that returns a future, and lose its error.

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension Peripheral {
    /// Reads the whole value.
    public func read(_ identifier: CharacteristicIdentifier, timeout: TimeInterval) async throws -> Data {
        try await read(identifier, timeout: .limit(timeout))
    }

    /// Reads the value as a value of a type.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval
    ) async throws -> T {
        try await read(identifier, timeout: .limit(timeout))
    }

    /// Writes bytes.
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: TimeInterval,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(data, to: identifier, timeout: .limit(timeout), type: type)
    }

    /// Writes a value of a type that can be serialized.
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: TimeInterval,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(value, to: identifier, timeout: .limit(timeout), type: type)
    }

    /// Discovers services, and returns those that exist.
    @discardableResult
    public func discoverServices(_ uuids: [CBUUID]?, timeout: TimeInterval) async throws -> [Service] {
        try await discoverServices(uuids, timeout: .limit(timeout))
    }

    /// Pairs, and stores the keys in BlueZ.
    public func pair(trusting isTrusting: Bool = false, timeout: TimeInterval) async throws {
        try await pair(trusting: isTrusting, timeout: .limit(timeout))
    }
}

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension Service {
    /// Discovers characteristics, and returns those that exist.
    @discardableResult
    public func discoverCharacteristics(_ uuids: [CBUUID]?, timeout: TimeInterval) async throws -> [Characteristic] {
        try await discoverCharacteristics(uuids, timeout: .limit(timeout))
    }
}

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension Characteristic {
    /// Reads the whole value.
    @discardableResult
    public func read(timeout: TimeInterval) async throws -> Data { try await read(timeout: .limit(timeout)) }

    /// Writes a value of a type that can be serialized.
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: TimeInterval, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(value, timeout: .limit(timeout), type: type)
    }

    /// Writes bytes.
    public func write(
        data value: Data, timeout: TimeInterval, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(data: value, timeout: .limit(timeout), type: type)
    }
}

extension Duration? {
    fileprivate static func limit(_ seconds: TimeInterval) -> Duration? {
        seconds < 1e9 ? .seconds(max(0, seconds)) : nil
    }
}
