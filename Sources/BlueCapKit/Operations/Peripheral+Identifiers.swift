public import Foundation
public import Futures
public import GATT
import Reactor

/// Services and characteristics by their identifiers: what is not known yet is discovered on the way.
///
/// ```swift
/// let heartRate = ServiceIdentifier(uuid: "180D")
/// let bodySensorLocation = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
///
/// peripheral.read(bodySensorLocation).onSuccess { data in print("location", data.first ?? 0) }
/// ```
///
/// A connection's services are discovered once, however many ask for them, and at the same time. What is found counts
/// as asked for: ``Peripheral/services`` shows it. Operations by identifier keep the order in which they were asked for, as far
/// as they are about one characteristic.
///
/// Without a link everything fails at once with ``PeripheralError/disconnected``, and what is under way when the link
/// is lost fails with it, or with ``PeripheralError/forcedDisconnect``. The other errors of finding are
/// ``PeripheralError/serviceNotFound(_:available:)`` and
/// ``ServiceError/characteristicNotFound(_:service:available:)``, which name what the peripheral has instead;
/// ``PeripheralError/serviceDiscoveryTimeout``; ``PeripheralError/noServices``; and
/// ``PeripheralError/invalidArgument(_:)`` for an identifier whose text is no UUID.
extension Peripheral {
    // MARK: Finding

    /// The service, discovered where it is not known yet.
    /// - Parameters:
    ///   - identifier: The service, by its UUID.
    ///   - timeout: For the discovery, in seconds. When it is exceeded the future fails with
    ///     ``PeripheralError/serviceDiscoveryTimeout``.
    public func service(
        _ identifier: ServiceIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<Service> {
        let name: AttributeName
        do {
            name = AttributeName(service: try identifier.checked())
        } catch {
            return session.failed(error)
        }
        return find(name, timeout).flatMap(context: ImmediateContext()) { [self] id in
            session.services(of: self) { table in table[id]?.isPresent == true ? [id] : [] }.first
                .map { Future(value: $0) } ?? Future(error: ServiceError.invalidated)
        }
    }

    /// The characteristic, discovered where it is not known yet.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: For the discovery, in seconds. When it is exceeded the future fails with
    ///     ``PeripheralError/serviceDiscoveryTimeout``.
    public func characteristic(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<Characteristic> {
        let name: AttributeName
        do {
            let (service, characteristic) = try identifier.checked()
            name = AttributeName(service: service, characteristic: characteristic)
        } catch {
            return session.failed(error)
        }
        return find(name, timeout).flatMap(context: ImmediateContext()) { [self] id in
            session.characteristics(of: self) { table in table[id]?.isPresent == true ? [id] : [] }.first
                .map { Future(value: $0) } ?? Future(error: CharacteristicError.invalidated)
        }
    }

    private func find(_ name: AttributeName, _ timeout: TimeInterval) -> Future<AttributeID> {
        session.operation(on: key) { attributes, operation in
            attributes.lookUp(name, operation, timeout: timeout)
        } take: {
            $0.takeFound($1)
        }
    }

    /// Does something with the characteristic, within what is left of the time.
    private func with<T>(
        _ identifier: CharacteristicIdentifier, _ timeout: TimeInterval,
        _ operation: @escaping @Sendable (Characteristic, TimeInterval) throws -> Future<T>
    ) -> Future<T> {
        let start = session.loop.now
        return characteristic(identifier, timeout: timeout).flatMap(context: ImmediateContext()) { [session] in
            try operation($0, timeout - session.loop.now.seconds(since: start))
        }
    }

    // MARK: Reading

    /// Reads the value, however long it is.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: For the discovery and the read together, in seconds.
    /// - Returns: What this read has brought; or a failure as of
    ///   ``Characteristic/read(timeout:)->Future<Characteristic>``.
    public func read(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<Data> {
        with(identifier, timeout) { $0.read(from: 0, timeout: $1) }
    }

    /// Reads the value as one of a type.
    ///
    /// ```swift
    /// let level: Future<UInt8> = peripheral.read(batteryLevel)
    /// ```
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: For the discovery and the read together, in seconds.
    /// - Returns: The value; or a failure as of the form that yields data, or
    ///   ``CharacteristicError/notDeserializable(_:)`` where the bytes spell none of that type.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<T> {
        let data: Future<Data> = read(identifier, timeout: timeout)
        return data.map(context: ImmediateContext()) { data in
            guard let value = T.deserialize(data) else { throw CharacteristicError.notDeserializable(data) }
            return value
        }
    }

    // MARK: Writing

    /// Writes bytes.
    /// - Parameters:
    ///   - data: At most as many bytes as ``maximumWriteValueLength(for:)`` says.
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: For the discovery and the write together, in seconds.
    ///   - type: Whether the peripheral is to answer.
    /// - Returns: Success, or a failure, as of ``Characteristic/write(data:timeout:type:)->Future<Characteristic>``.
    @discardableResult
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        with(identifier, timeout) { $0.write(data: data, timeout: $1, type: type) }
    }

    /// Writes a value of a type that has a form on the air.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        write(value.serialize(), to: identifier, timeout: timeout, type: type)
    }

    // MARK: Notifications

    /// Subscribes to the value, and answers a stream of what the peripheral notifies or indicates.
    ///
    /// ```swift
    /// for try await data in peripheral.notifications(heartRateMeasurement).values { print(data) }
    /// ```
    ///
    /// All who subscribe to a characteristic share one subscription. It outlives links, as
    /// ``Characteristic/startNotifying(over:)->Future<Characteristic>`` tells, and ends with
    /// ``stopNotifications(_:timeout:)``; so do the streams. Where values may have been missed there is the failure
    /// ``CharacteristicError/notificationsInterrupted`` in the stream, which goes on. Where the characteristic is not
    /// found or the subscription is refused, that failure is the last element.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - transport: How values come; see ``NotificationTransport``.
    ///   - capacity: How many values are kept for handlers that are added later, as with
    ///     ``Characteristic/receiveNotificationUpdates(capacity:)->FutureStream<(Characteristic,Data?)>``.
    ///   - timeout: For the discovery, in seconds.
    public func notifications(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals,
        capacity: Int = .max, timeout: TimeInterval = .infinity
    ) -> FutureStream<Data> {
        let stream = FutureStream<Data>(capacity: max(0, capacity))
        let end: @Sendable (any Error) -> Void = { error in
            stream.failure(error)
            stream.finish()
        }
        characteristic(identifier, timeout: timeout).onComplete(context: ImmediateContext()) { [session] outcome in
            switch outcome {
            case .success(let characteristic):
                let sink = NotificationSink(
                    stream, gap: .failure(CharacteristicError.notificationsInterrupted)
                ) { $0 }
                session.feed(sink, with: characteristic.subject)
                let subscription: Future<Void> = characteristic.startNotifying(over: transport)
                subscription.onFailure(context: ImmediateContext(), completion: end)
            case .failure(let error):
                end(error)
            }
        }
        return stream
    }

    /// Ends the subscription to a characteristic and all streams of its values.
    ///
    /// Without a link it makes that the subscription is not taken up again, where the characteristic was found before.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: For the discovery, in seconds.
    /// - Returns: Success when BlueZ has confirmed it, at once where there is no subscription; or a failure as of
    ///   ``Characteristic/stopNotifying()->Future<Characteristic>``.
    @discardableResult
    public func stopNotifications(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<Void> {
        let stop: @Sendable (Characteristic, TimeInterval) -> Future<Void> = { characteristic, _ in
            characteristic.stopNotificationUpdates()
            return characteristic.stopNotifying()
        }
        if let known = known(identifier) { return stop(known, timeout) }
        return with(identifier, timeout, stop)
    }

    /// The characteristic, where it was found before.
    private func known(_ identifier: CharacteristicIdentifier) -> Characteristic? {
        guard let (service, characteristic) = try? identifier.checked() else { return nil }
        let name = AttributeName(service: service, characteristic: characteristic)
        return session.characteristics(of: self) { table in (try? table.find(name).get()).map { [$0] } ?? [] }.first
    }
}
