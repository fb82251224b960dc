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
/// ``PeripheralError/invalidArgument(_:)`` for an identifier with a text that is no UUID.
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
            handles(\.services) { table in table[id]?.isPresent == true ? [id] : [] }.first
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
            handles(\.characteristics) { table in table[id]?.isPresent == true ? [id] : [] }.first
                .map { Future(value: $0) } ?? Future(error: CharacteristicError.invalidated)
        }
    }

    private func find(
        _ name: AttributeName, _ timeout: TimeInterval, outlivesLinks: Bool = false
    ) -> Future<AttributeID> {
        session.operation(on: key) {
            if case .found(let id) = $0 { id } else { nil }
        } _: {
            $0.attributes.lookUp(name, $1, timeout: timeout, outlivesLinks: outlivesLinks, into: &$2)
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

    /// Subscribes to the value, and returns a stream of what the peripheral notifies or indicates.
    ///
    /// ```swift
    /// for try await data in peripheral.notifications(heartRateMeasurement).values { print(data) }
    /// ```
    ///
    /// All subscribers of a characteristic share one subscription. It outlives links, as
    /// ``Characteristic/startNotifying(over:)->Future<Characteristic>`` describes, and ends with
    /// ``stopNotifications(_:timeout:)``; so do the streams. If values may have been missed there is the failure
    /// ``CharacteristicError/notificationsInterrupted`` in the stream, which goes on. If the characteristic is not
    /// found or the subscription is refused, that failure is the last element.
    ///
    /// If the link is lost before the subscription has begun, it is begun on the next link, as often as it takes; also if
    /// this is called while the peripheral is being connected, or is to be reconnected. Without a link, and without a
    /// connection that was asked for, the stream fails with ``PeripheralError/disconnected``.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - transport: How values come; see ``NotificationTransport``.
    ///   - capacity: How many values are kept for handlers that are added later, as with
    ///     ``Characteristic/receiveNotificationUpdates(capacity:)->FutureStream<(Characteristic,Data?)>``.
    ///   - timeout: Until the subscription has begun, in seconds, with all waiting for links. When it is exceeded the stream
    ///     fails with ``PeripheralError/serviceDiscoveryTimeout`` or ``CharacteristicError/notifyTimeout``, and ends.
    public func notifications(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals,
        capacity: Int = .max, timeout: TimeInterval = .infinity
    ) -> FutureStream<Data> {
        let stream = FutureStream<Data>(capacity: max(0, capacity))
        let end: @Sendable (any Error) -> Void = { error in
            // What the application has ended is no failure.
            if !(error is CancellationError) { stream.failure(error) }
            stream.finish()
        }
        let name: AttributeName
        do {
            let (service, characteristic) = try identifier.checked()
            name = AttributeName(service: service, characteristic: characteristic)
        } catch {
            session.complete { end(error) }
            return stream
        }
        let start = session.loop.now
        let isLinkExpected = session.readState(of: key) { $0.isLinkExpected } ?? false
        let found = find(name, timeout, outlivesLinks: isLinkExpected)
        found.onFailure(context: ImmediateContext(), completion: end)
        found.onSuccess(context: ImmediateContext()) { [self] id in
            // Also if the link is lost by now: its subscription waits for the next one.
            guard let characteristic = handles(\.characteristics, { _ in [id] }).first else {
                return end(CharacteristicError.invalidated)
            }
            let sink = NotificationSink(
                stream, gap: .failure(CharacteristicError.notificationsInterrupted)
            ) { $0 }
            session.feed(sink, with: characteristic.subject)
            let subscription: Future<Void> = characteristic.subscribe(
                over: transport, timeout: timeout - session.loop.now.seconds(since: start), outlivesLinks: true,
                yielding: ())
            subscription.onFailure(context: ImmediateContext(), completion: end)
        }
        return stream
    }

    /// Ends the subscription to a characteristic and all streams of its values, also of subscriptions that have not begun.
    ///
    /// Without a link, and if the characteristic was found before or is being looked for, cancels the automatic resubscription.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: For the discovery and BlueZ's confirmation together, in seconds.
    /// - Returns: Success when BlueZ has confirmed it, at once where there is no subscription; or a failure as of
    ///   ``Characteristic/stopNotifying()->Future<Characteristic>``.
    @discardableResult
    public func stopNotifications(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<Void> {
        let stop: @Sendable (Characteristic, TimeInterval) -> Future<Void> = { characteristic, timeout in
            characteristic.stopNotificationUpdates()
            return characteristic.stopNotifying(timeout: timeout)
        }
        let wasLookedFor = abandonLookUps(of: identifier)
        if let known = known(identifier) { return stop(known, timeout) }
        // Then there was no subscription yet.
        if wasLookedFor { return session.settled(.success(())) }
        return with(identifier, timeout, stop)
    }

    /// Ends the streams of a characteristic that is still being searched for. Returns whether there were any.
    private func abandonLookUps(of identifier: CharacteristicIdentifier) -> Bool {
        guard let (service, characteristic) = try? identifier.checked() else { return false }
        let name = AttributeName(service: service, characteristic: characteristic)
        var wasLookedFor = false
        session.decide { core in
            guard core.state.hasState(of: key) else { return }
            core.state.peripheral(key, into: &core.shell.orders) {
                wasLookedFor = $0.attributes.cancelLookUps(of: name, into: &$1)
            }
        }
        return wasLookedFor
    }

    /// The characteristic, if it was found before.
    private func known(_ identifier: CharacteristicIdentifier) -> Characteristic? {
        guard let (service, characteristic) = try? identifier.checked() else { return nil }
        let name = AttributeName(service: service, characteristic: characteristic)
        return handles(\.characteristics) { table in (try? table.find(name).get()).map { [$0] } ?? []
        }.first
    }
}
