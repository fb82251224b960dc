public import Foundation
import BlueCapFutures
public import BlueCapGATT

/// The operations by identifier in an `async` function. Outside of one, the functions with the same names return futures.
///
/// ```swift
/// let bytes: Data = try await peripheral.read(bodySensorLocation)
/// try await peripheral.write(Data([1]), to: control, timeout: .seconds(5))
/// ```
///
/// Each function returns when the future of the function of the same name has succeeded, and throws the error with which that
/// fails. It needs a link, as that does: ``run(timeout:cancelToken:_:)`` makes one.
///
/// If the task is cancelled, the function throws `CancellationError` at once. An operation that BlueZ has begun cannot be taken
/// back: a write may still reach the peripheral, and a pairing continues until ``cancelPairing()``.
extension Peripheral {
    /// Reads the whole value.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: The time limit for the discovery and the read together; `nil` for none.
    public func read(_ identifier: CharacteristicIdentifier, timeout: Duration? = nil) async throws -> Data {
        let data: Future<Data> = read(identifier, timeout: timeout.seconds)
        return try await data.value
    }

    /// Reads the value as a value of a type.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: The time limit for the discovery and the read together; `nil` for none.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: Duration? = nil
    ) async throws -> T {
        let value: Future<T> = read(identifier, timeout: timeout.seconds)
        return try await value.value
    }

    /// Writes bytes. With a response, returns when the peripheral has confirmed them; without, when BlueZ has queued them.
    /// - Parameters:
    ///   - data: The bytes, at most ``maximumWriteValueLength(for:)``.
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: The time limit for the discovery and the write together; `nil` for none.
    ///   - type: Whether the peripheral sends a response.
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        let written: Future<Void> = write(data, to: identifier, timeout: timeout.seconds, type: type)
        try await written.value
    }

    /// Writes a value of a type that can be serialized.
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(value.serialize(), to: identifier, timeout: timeout, type: type)
    }

    /// Pairs, and stores the keys in BlueZ.
    /// - Parameters:
    ///   - isTrusting: Whether ``isTrusted`` is set after the pairing.
    ///   - timeout: The time limit, which includes the answers of the user.
    public func pair(trusting isTrusting: Bool = false, timeout: Duration = .seconds(60)) async throws {
        let paired: Future<Peripheral> = pair(trusting: isTrusting, timeout: timeout.seconds)
        _ = try await paired.value
    }
}

// With a number of seconds, `try await` would choose the function that returns a future, and lose its error.
extension Peripheral {
    /// Reads the whole value.
    @available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
    public func read(_ identifier: CharacteristicIdentifier, timeout: TimeInterval) async throws -> Data {
        let data: Future<Data> = read(identifier, timeout: timeout)
        return try await data.value
    }

    /// Reads the value as a value of a type.
    @available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval
    ) async throws -> T {
        let value: Future<T> = read(identifier, timeout: timeout)
        return try await value.value
    }

    /// Writes bytes.
    @available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: TimeInterval,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        let written: Future<Void> = write(data, to: identifier, timeout: timeout, type: type)
        try await written.value
    }

    /// Writes a value of a type that can be serialized.
    @available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: TimeInterval,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        let written: Future<Void> = write(value, to: identifier, timeout: timeout, type: type)
        try await written.value
    }

    /// Pairs, and stores the keys in BlueZ.
    @available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(60).")
    public func pair(trusting isTrusting: Bool = false, timeout: TimeInterval) async throws {
        let paired: Future<Peripheral> = pair(trusting: isTrusting, timeout: timeout)
        _ = try await paired.value
    }
}
