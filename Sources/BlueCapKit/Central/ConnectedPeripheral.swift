public import Foundation
public import BlueCapFutures
public import BlueCapGATT
import BlueCapReactor

/// The peripheral of a run: connected, and used by that run exclusively.
///
/// Inside of a run this is the way to use the peripheral. Outside, use a ``Characteristic``, or the functions of
/// ``Peripheral`` that take its identifier.
///
/// Each function throws the errors of the ``Peripheral`` function of the same name. It throws `CancellationError` if
/// the run has been cancelled, its time limit has been exceeded or its link has ended; and ``PeripheralError/runEnded``
/// after the run. Cancelling the task or the run withdraws an operation that has not been sent, and otherwise ends the
/// wait. A time limit of `nil` is none: then only that of the run limits the operation.
public struct ConnectedPeripheral: Sendable {
    /// The peripheral, for all other functions. Operations that are called on it directly are not part of the run.
    public let peripheral: Peripheral
    private let run: PeripheralRun

    init(_ peripheral: Peripheral, _ run: PeripheralRun) {
        self.peripheral = peripheral
        self.run = run
    }

    private func outcome<T: Sendable>(of operation: () async throws -> T) async throws -> T {
        try run.check()
        let value = try await operation()
        // A reply may arrive at the moment when the run ends.
        try run.check()
        return value
    }

    /// Returns the service, and discovers it if it is not known yet.
    public func service(_ identifier: ServiceIdentifier, timeout: Duration? = nil) async throws -> Service {
        try await outcome { try await peripheral.service(identifier, timeout: timeout) }
    }

    /// Returns the characteristic, and discovers it if it is not known yet.
    public func characteristic(
        _ identifier: CharacteristicIdentifier, timeout: Duration? = nil
    ) async throws -> Characteristic {
        try await outcome { try await peripheral.characteristic(identifier, timeout: timeout) }
    }

    /// Reads the whole value.
    public func read(_ identifier: CharacteristicIdentifier, timeout: Duration? = nil) async throws -> Data {
        try await outcome { try await peripheral.read(identifier, timeout: timeout) }
    }

    /// Reads the value as a value of a type.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: Duration? = nil
    ) async throws -> T {
        try await outcome { try await peripheral.read(identifier, timeout: timeout) }
    }

    /// Writes bytes.
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await outcome { try await peripheral.write(data, to: identifier, timeout: timeout, type: type) }
    }

    /// Writes a value of a type that can be serialized.
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await outcome { try await peripheral.write(value, to: identifier, timeout: timeout, type: type) }
    }

    /// Subscribes to the value, and returns when the peripheral has confirmed the subscription. The returned sequence
    /// contains every value that the peripheral notifies from then on, and its gaps.
    ///
    /// ```swift
    /// let events = try await connected.notificationEvents(rx)
    /// try await connected.write(request, to: tx)
    /// for try await event in events {
    ///     if case .value(let packet) = event, assembly.takes(packet) { break }
    /// }
    /// ```
    ///
    /// The loop ends when the run is cancelled. The subscription ends with the last loop, as that of
    /// ``Characteristic/notificationEvents(over:capacity:timeout:)`` does. The time limit includes the discovery.
    public func notificationEvents(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals,
        timeout: Duration? = nil
    ) async throws -> FutureStream<NotificationEvent> {
        try await subscribed(NotificationStream(eventsOf: peripheral, .max), to: identifier, over: transport, timeout)
    }

    /// Variant of ``notificationEvents(_:over:timeout:)`` with the values alone: the loop throws
    /// ``CharacteristicError/notificationsInterrupted`` at a gap. The subscription stays until
    /// ``stopNotifications(_:timeout:)``.
    public func notifications(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals,
        timeout: Duration? = nil
    ) async throws -> FutureStreamValues<Data> {
        try await subscribed(NotificationStream(valuesOf: peripheral, .max), to: identifier, over: transport, timeout)
            .values
    }

    private func subscribed<T: Sendable>(
        _ notifications: NotificationStream<T>, to identifier: CharacteristicIdentifier,
        over transport: NotificationTransport, _ timeout: Duration?
    ) async throws -> FutureStream<T> {
        let start = peripheral.session.loop.now
        var isReturned = false
        // Its subscription may have begun when the run ended.
        defer { if !isReturned { notifications.stream.lastReaderEnded?() } }
        let characteristic = try await outcome {
            try await awaiting {
                peripheral.characteristic(identifier, for: [.notify, .indicate], timeout: timeout.seconds)
            }
        }
        try await outcome {
            let remaining = timeout.seconds - peripheral.session.loop.now.seconds(since: start)
            try await awaiting {
                notifications.subscribe(to: characteristic, over: transport, timeout: remaining, outlivesLinks: false)
            }
        }
        isReturned = true
        return notifications.stream
    }

    /// Pairs, and stores the keys in BlueZ.
    /// - Parameter timeout: The time limit, which includes the answers of the user; `nil` for none.
    public func pair(timeout: Duration? = .seconds(60)) async throws {
        try await outcome { try await peripheral.pair(timeout: timeout) }
    }

    /// Ends the subscription to a characteristic and all streams of its values.
    public func stopNotifications(_ identifier: CharacteristicIdentifier, timeout: Duration? = nil) async throws {
        try await outcome {
            try await awaiting { peripheral.stopNotifications(identifier, timeout: timeout.seconds) }
        }
    }
}
