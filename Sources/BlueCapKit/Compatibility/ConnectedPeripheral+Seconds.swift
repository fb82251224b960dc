public import BlueCapFutures
public import BlueCapGATT
public import Foundation

// Without these forms, `try await` with a number would choose the function of the same name that returns a future, and lose its
// error.

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension Peripheral {
    /// Variant of `run` with a time limit in seconds.
    public func run<T: Sendable>(
        timeout: TimeInterval, _ work: @escaping @Sendable (ConnectedPeripheral) async throws -> T
    ) async throws -> T { try await run(timeout: Duration(limit: timeout), work) }
}

@available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(5).")
extension ConnectedPeripheral {
    /// Variant of `service` with a time limit in seconds.
    public func service(_ identifier: ServiceIdentifier, timeout: TimeInterval) async throws -> Service {
        try await service(identifier, timeout: Duration(limit: timeout))
    }
    /// Variant of `characteristic` with a time limit in seconds.
    public func characteristic(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval
    ) async throws -> Characteristic { try await characteristic(identifier, timeout: Duration(limit: timeout)) }
    /// Variant of `read` with a time limit in seconds.
    public func read(_ identifier: CharacteristicIdentifier, timeout: TimeInterval) async throws -> Data {
        try await read(identifier, timeout: Duration(limit: timeout))
    }
    /// Variant of `read` with a time limit in seconds.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval
    ) async throws -> T { try await read(identifier, timeout: Duration(limit: timeout)) }
    /// Variant of `write` with a time limit in seconds.
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: TimeInterval,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws { try await write(data, to: identifier, timeout: Duration(limit: timeout), type: type) }
    /// Variant of `write` with a time limit in seconds.
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: TimeInterval,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws { try await write(value, to: identifier, timeout: Duration(limit: timeout), type: type) }
    /// Variant of `notifications` with a time limit in seconds.
    public func notifications(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals, timeout: TimeInterval
    ) async throws -> FutureStreamValues<Data> {
        try await notifications(identifier, over: transport, timeout: Duration(limit: timeout))
    }
    /// Variant of `pair` with a time limit in seconds.
    public func pair(timeout: TimeInterval) async throws { try await pair(timeout: Duration(limit: timeout)) }
    /// Variant of `stopNotifications` with a time limit in seconds.
    public func stopNotifications(_ identifier: CharacteristicIdentifier, timeout: TimeInterval) async throws {
        try await stopNotifications(identifier, timeout: Duration(limit: timeout))
    }
}

extension Duration {
    /// A time limit of seconds; `nil` for an infinite one.
    fileprivate init?(limit seconds: TimeInterval) {
        guard seconds < 1e9 else { return nil }
        self = .seconds(seconds)
    }
}
