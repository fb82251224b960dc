public import Foundation
public import BlueCapFutures
public import BlueCapGATT
import BlueCapReactor

/// The peripheral of a run: connected, and used by that run exclusively.
///
/// Each function throws the errors of the ``Peripheral`` function of the same name. It throws `CancellationError` if
/// the run has been cancelled, its time limit has been exceeded or its link has ended; and ``PeripheralError/runEnded``
/// after the run.
public struct ConnectedPeripheral: Sendable {
    /// The peripheral, for all other functions. Operations that are called on it directly are not part of the run.
    public let peripheral: Peripheral
    private let run: PeripheralRun

    init(_ peripheral: Peripheral, _ run: PeripheralRun) {
        self.peripheral = peripheral
        self.run = run
    }

    private func outcome<T: Sendable>(of operation: () -> Future<T>) async throws -> T {
        try run.check()
        let value = try await operation().value
        // A reply may arrive at the moment when the run ends.
        try run.check()
        return value
    }

    /// Returns the service, and discovers it if it is not known yet.
    public func service(_ identifier: ServiceIdentifier, timeout: TimeInterval = .infinity) async throws -> Service {
        try await outcome { peripheral.service(identifier, timeout: timeout) }
    }

    /// Returns the characteristic, and discovers it if it is not known yet.
    public func characteristic(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) async throws -> Characteristic {
        try await outcome { peripheral.characteristic(identifier, timeout: timeout) }
    }

    /// Reads the whole value.
    public func read(_ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity) async throws -> Data {
        try await outcome { peripheral.read(identifier, timeout: timeout) }
    }

    /// Reads the value as a value of a type.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) async throws -> T {
        try await outcome { peripheral.read(identifier, timeout: timeout) }
    }

    /// Writes bytes.
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await outcome { peripheral.write(data, to: identifier, timeout: timeout, type: type) }
    }

    /// Writes a value of a type that can be serialized.
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await outcome { peripheral.write(value, to: identifier, timeout: timeout, type: type) }
    }

    /// Subscribes to the value, and returns when the peripheral has confirmed the subscription. The returned sequence
    /// contains every value that the peripheral notifies from then on.
    ///
    /// ```swift
    /// let packets = try await connected.notifications(rx)
    /// try await connected.write(request, to: tx)
    /// for try await packet in packets where assembly.takes(packet) { break }
    /// ```
    ///
    /// The loop over the values ends when the run is cancelled. The subscription stays until
    /// ``stopNotifications(_:timeout:)``.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - transport: How values are delivered; see ``NotificationTransport``.
    ///   - timeout: For the discovery and the subscription together, in seconds.
    public func notifications(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals,
        timeout: TimeInterval = .infinity
    ) async throws -> FutureStreamValues<Data> {
        let start = peripheral.session.loop.now
        let characteristic = try await outcome {
            peripheral.characteristic(identifier, for: [.notify, .indicate], timeout: timeout)
        }
        let values: FutureStream<Data> = characteristic.receiveNotificationUpdates()
        try await outcome { () -> Future<Void> in
            characteristic.startNotifying(
                over: transport, timeout: timeout - peripheral.session.loop.now.seconds(since: start))
        }
        return values.values
    }

    /// Pairs, and stores the keys in BlueZ.
    /// - Parameter timeout: The time limit in seconds, which includes the answers of the user.
    public func pair(timeout: TimeInterval = 60) async throws {
        _ = try await outcome { peripheral.pair(timeout: timeout) }
    }

    /// Ends the subscription to a characteristic and all streams of its values.
    public func stopNotifications(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) async throws {
        try await outcome { peripheral.stopNotifications(identifier, timeout: timeout) }
    }
}
