public import Foundation
public import BlueCapFutures
public import BlueCapGATT
import BlueCapReactor

/// Finds services and characteristics by their identifiers, and discovers them if they are not known yet.
///
/// ```swift
/// let heartRate = ServiceIdentifier(uuid: "180D")
/// let bodySensorLocation = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
///
/// let location: UInt8 = try await peripheral.read(bodySensorLocation)
/// ```
///
/// A connection's services are discovered once, for all operations that need them. Discovered services and characteristics are in
/// ``Peripheral/services``, as those of an explicit discovery are. Operations by identifier on one characteristic are executed in
/// the order of the calls.
///
/// If there is no link, every operation fails at once with ``PeripheralError/disconnected``. If the link is lost, active
/// operations fail with that error or with ``PeripheralError/forcedDisconnect``. An attribute that is not found causes
/// ``PeripheralError/serviceNotFound(_:available:)`` or ``ServiceError/characteristicNotFound(_:service:available:)``, which list
/// the attributes that the peripheral has instead. If several attributes have the UUID, the operation uses the one with the
/// property that it needs, or fails with ``PeripheralError/ambiguous(_:candidates:)``, which lists all of them. The other errors
/// of the discovery are ``PeripheralError/serviceDiscoveryTimeout``, ``PeripheralError/noServices``, and
/// ``PeripheralError/invalidArgument(_:)`` for an identifier whose text is not a UUID.
extension Peripheral {
    // MARK: Finding

    /// Variant of ``service(_:timeout:)->Service`` that returns a future, with the time limit in seconds.
    public func service(_ identifier: ServiceIdentifier, timeout: TimeInterval = .infinity) -> Future<Service> {
        AttributeSearch(self, timeout) { try AttributeName(identifier) }
            .apply(missing: ServiceError.invalidated) { service, _ in Future(value: service) }
    }

    /// Variant of ``characteristic(_:timeout:)->Characteristic`` that returns a future, with the time limit in seconds.
    public func characteristic(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<Characteristic> {
        characteristic(identifier, for: [], timeout: timeout)
    }

    /// Returns the characteristic.
    /// - Parameter use: The properties of which the caller needs one.
    package func characteristic(
        _ identifier: CharacteristicIdentifier, for use: CBCharacteristicProperties, timeout: TimeInterval = .infinity
    ) -> Future<Characteristic> {
        with(identifier, for: use, timeout) { characteristic, _ in Future(value: characteristic) }
    }

    /// Finds the characteristic and applies `operation` to it, within the remaining time.
    private func with<T: Sendable>(
        _ identifier: CharacteristicIdentifier, for use: CBCharacteristicProperties, _ timeout: TimeInterval,
        _ operation: @escaping @Sendable (Characteristic, TimeInterval) throws -> Future<T>
    ) -> Future<T> {
        AttributeSearch(self, timeout) { try AttributeName(identifier, for: use) }
            .apply(missing: CharacteristicError.invalidated, operation)
    }

    // MARK: Reading

    /// Variant of ``read(_:timeout:)->Data`` that returns a future, with the time limit in seconds.
    public func read(_ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity) -> Future<Data> {
        with(identifier, for: .read, timeout) { $0.read(from: 0, timeout: $1) }
    }

    /// Variant of ``read(_:timeout:)->T`` that returns a future, with the time limit in seconds.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<T> {
        let data: Future<Data> = read(identifier, timeout: timeout)
        return data.map(context: ImmediateContext()) { try T(reading: $0) }
    }

    // MARK: Writing

    /// Variant of ``write(_:to:timeout:type:)->()`` that returns a future, with the time limit in seconds.
    @discardableResult
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        with(identifier, for: type == .withResponse ? .write : .writeWithoutResponse, timeout) {
            $0.write(data: data, timeout: $1, type: type)
        }
    }

    /// Writes a value of a type that can be serialized.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        write(value.serialize(), to: identifier, timeout: timeout, type: type)
    }

    // MARK: Notifications

    /// Variant of ``stopNotifications(_:timeout:)->()`` that returns a future, with the time limit in seconds.
    @discardableResult
    public func stopNotifications(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<Void> {
        let stop: @Sendable (Characteristic, TimeInterval) -> Future<Void> = { characteristic, timeout in
            // What handlers of the streams start is no part of this call.
            Withdrawal.$current.withValue(nil) { characteristic.stopNotificationUpdates() }
            return characteristic.stopNotifying(timeout: timeout)
        }
        var wasLookedFor = false
        if let name = try? AttributeName(identifier, for: [.notify, .indicate]) {
            session.decideIfUsed(key) { wasLookedFor = $0.attributes.cancelLookUps(of: name, into: &$1) }
            let known: [Characteristic] = objects { table in (try? table.find(name).get()).map { [$0] } ?? [] }
            if let known = known.first { return stop(known, timeout) }
        }
        // Then there was no subscription yet.
        if wasLookedFor { return session.settled(.success(())) }
        return with(identifier, for: [.notify, .indicate], timeout, stop)
    }
}

/// A search for an attribute by its name, within a time limit.
struct AttributeSearch: Sendable {
    /// How long the descriptions for the error of an ambiguous identifier may take, in seconds.
    private static let descriptionTimeout = 5.0

    private let peripheral: Peripheral
    private let name: Result<AttributeName, any Error>
    private let timeout: TimeInterval
    private let start: Instant
    private let withdrawal = Withdrawal.current

    private var session: CentralSession { peripheral.session }
    /// The rest of the time limit, in seconds.
    var remaining: TimeInterval { timeout - session.loop.now.seconds(since: start) }

    /// - Parameter name: Fails if the identifier's text is not a UUID, as the search then does.
    init(_ peripheral: Peripheral, _ timeout: TimeInterval, _ name: () throws -> AttributeName) {
        (self.peripheral, self.timeout, self.name) = (peripheral, timeout, Result(catching: name))
        start = peripheral.session.loop.now
    }

    /// Finds the attribute and applies `operation` to its object, within the remaining time.
    func apply<Object: AttributeObject & Sendable, T: Sendable>(
        missing error: any Error, _ operation: @escaping @Sendable (Object, TimeInterval) throws -> Future<T>
    ) -> Future<T> {
        // The operation is called at once if its object is known: a search ends on the loop, which would have to be woken.
        if let name = try? name.get(), let object: Object = peripheral.known(name) {
            do { return try applied(operation, to: object) } catch { return session.failed(error) }
        }
        session.decide(peripheral.key) { state, _ in state.attributes.searches += 1 }
        let found = found()
        let result = found.flatMap(context: ImmediateContext()) { [self] id in
            let found: [Object] = peripheral.objects { $0[id]?.isPresent == true ? [id] : [] }
            guard let object = found.first else { throw error }
            return try applied(operation, to: object)
        }
        // After the operation has begun: later ones come after it.
        found.onComplete(context: ImmediateContext()) { [session, peripheral] _ in
            session.decideIfUsed(peripheral.key) { state, _ in state.attributes.searches -= 1 }
        }
        return result
    }

    private func applied<Object, T>(
        _ operation: (Object, TimeInterval) throws -> Future<T>, to object: Object
    ) throws -> Future<T> {
        try withdrawal?.proceed()
        return try Withdrawal.$current.withValue(withdrawal) { try operation(object, remaining) }
    }

    /// - Parameter outlivesLinks: Whether it waits for the next link, now or after a loss, and does not fail.
    func found(outlivesLinks: Bool = false) -> Future<AttributeID> {
        let name: AttributeName
        do { name = try self.name.get() } catch { return session.failed(error) }
        let found: Future<AttributeID> = session.operation(
            on: peripheral.key, timeout: timeout, converting: { if case .found(let id) = $0 { id } else { nil } }
        ) {
            $0.attributes.request(.attribute(name), $1, outlivesLinks: outlivesLinks, into: &$2)
        }
        return found.recoverWith(context: ImmediateContext()) { [self] error in
            guard case PeripheralError.ambiguous(_, let candidates) = error else { throw error }
            try withdrawal?.proceed()
            return describe(candidates, name)
        }
    }

    /// Reads the descriptors 2901 of the candidates, and fails with them.
    private func describe(_ candidates: [AttributeCandidate], _ name: AttributeName) -> Future<AttributeID> {
        let unread: [Descriptor] = peripheral.objects { table in
            let ids = candidates.compactMap { $0.handle.flatMap { table.id(at: AttributeHandle($0)) } }
            return ids.compactMap { table.userDescription(of: $0) }.filter { table[$0]?.value == nil }
        }
        let limit = min(remaining, Self.descriptionTimeout)
        let reads: [Future<Void>] = unread.map { $0.read(timeout: limit) }
        let ends = reads.map { $0.recover(context: ImmediateContext()) { _ in () } }
        return ends.sequence(context: ImmediateContext()).flatMap(context: ImmediateContext()) { [self] _ in
            let result = session.attributes(peripheral.key) { $0.find(name) }
            switch result {
            case .success(let id)?: return Future(value: id)
            case .failure(let failure)?: throw failure.error
            case nil: throw PeripheralError.disconnected
            }
        }
    }
}
