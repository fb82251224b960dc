public import Foundation
public import BlueCapGATT

/// The operations in an `async` function. Outside of one, the functions with the same names return futures.
///
/// ```swift
/// try await peripheral.connect(timeout: .seconds(10))
/// let location = try await peripheral.read(bodySensorLocation)
/// try await peripheral.write(Data([1]), to: control, timeout: .seconds(5))
/// ```
///
/// A time limit of `nil` means none. Operations that need a link throw ``PeripheralError/disconnected`` at once if there is none.
///
/// If the task is cancelled, the function throws `CancellationError` at once. An operation that waits, for its turn, for a link or
/// for the discovery of the services, is withdrawn. One that BlueZ is executing continues, and only the wait for it ends: a write
/// may still reach the peripheral.
extension Peripheral {
    // MARK: Connecting

    /// Connects, and returns when there is a link; at once if this manager is connected to the peripheral.
    ///
    /// An existing link of another program is taken over. While the adapter is off, the attempt waits for it. A lost link is not
    /// made again. If an earlier call is connecting, this call waits for the same attempt, which also ends with the time limit of a
    /// stream of ``connect(timeoutRetries:disconnectRetries:connectionTimeout:capacity:)->FutureStream<(Peripheral,ConnectionEvent)>``.
    /// If such a stream waits for its next attempt after a failure, it finishes.
    ///
    /// If the task is cancelled, the attempt ends as with ``disconnect()``, unless another call or a run waits for the link.
    /// - Parameter timeout: The time limit, more than zero. It begins when the adapter starts the attempt: time spent waiting for
    ///   attempts to other peripherals does not count.
    /// - Throws: ``PeripheralError/connectionTimeout``; ``PeripheralError/connectionFailed(_:)`` if `bluetoothd` refuses and no retry
    ///   can succeed; ``PeripheralError/pairing(_:)`` if the peripheral no longer has the keys of its bond;
    ///   ``PeripheralError/forcedDisconnect`` after ``disconnect()``; ``PeripheralError/disconnected`` if the adapter or the manager
    ///   ends; and ``PeripheralError/invalidArgument(_:)``.
    public func connect(timeout: Duration? = nil) async throws {
        let limit = timeout.seconds
        if let refusal = PeripheralError.refusal(ofConnectionTimeout: limit) { throw refusal }
        try await awaiting {
            session.operation(on: key, timeout: limit, limitsItself: true, yielding: ()) {
                $0.linkAsked($1, timeout: limit, into: &$2)
            }
        }
    }

    /// Returns the newest signal strength in dBm, at once.
    /// - Throws: ``PeripheralError/disconnected`` if there is no connection, and ``PeripheralError/rssiUnavailable`` if BlueZ has no
    ///   value.
    public func readRSSI() async throws -> Int { try await awaiting { readRSSI() } }

    // MARK: Discovering

    /// Discovers the services with these UUIDs, or all services if the list is empty or `nil`, and returns those that exist.
    ///
    /// BlueZ discovers all attributes when the link is established, and this returns when it has finished. A service then has its
    /// characteristics after ``Service/discoverCharacteristics(_:timeout:)->[Characteristic]``, which needs no time.
    /// - Throws: ``PeripheralError/noServices`` if BlueZ found none; ``PeripheralError/serviceDiscoveryTimeout``; and
    ///   ``PeripheralError/disconnected`` if there is no link or the link is lost.
    @discardableResult
    public func discoverServices(_ uuids: [CBUUID]? = nil, timeout: Duration? = nil) async throws -> [Service] {
        let _: Peripheral = try await awaiting { discoverServices(uuids, timeout: timeout.seconds) }
        return services.filtered(by: uuids)
    }

    /// Discovers all services, and returns them, as ``discoverServices(_:timeout:)->[Service]`` without UUIDs does.
    @discardableResult
    public func discoverAllServices(timeout: Duration? = nil) async throws -> [Service] {
        try await discoverServices(nil, timeout: timeout)
    }

    /// Removes the peripheral from BlueZ, connects it again, discovers all services and returns them.
    ///
    /// BlueZ keeps a peripheral's services from one connection to the next. If a peripheral has new firmware and does not report that
    /// its services have changed, BlueZ exports the old services until it removes the peripheral.
    ///
    /// The stream of the last `connect` reports `.forceDisconnect` and then `.connect`. The peripheral must advertise in between to be
    /// found. ``disconnect()`` and ``terminate()`` cancel the operation with ``PeripheralError/forcedDisconnect``.
    /// - Parameters:
    ///   - forgettingBond: Whether a bonded peripheral may be removed; it must then be paired again.
    ///   - timeout: The time limit for the whole operation.
    /// - Throws: ``PeripheralError/invalidArgument(_:)`` for a bonded peripheral if `forgettingBond` is false; the ``BusError`` of
    ///   `bluetoothd` if it does not end the link or remove the peripheral, which is then connected again; and the errors of
    ///   ``discoverServices(_:timeout:)->[Service]``.
    @discardableResult
    public func refreshServices(
        forgettingBond: Bool = false, timeout: Duration? = .seconds(60)
    ) async throws -> [Service] {
        let _: Peripheral = try await awaiting {
            refreshServices(forgettingBond: forgettingBond, timeout: timeout.seconds)
        }
        return services
    }

    /// Returns the service, and discovers it if it is not known yet.
    public func service(_ identifier: ServiceIdentifier, timeout: Duration? = nil) async throws -> Service {
        try await awaiting { service(identifier, timeout: timeout.seconds) }
    }

    /// Returns the characteristic, and discovers it if it is not known yet.
    public func characteristic(
        _ identifier: CharacteristicIdentifier, timeout: Duration? = nil
    ) async throws -> Characteristic {
        try await awaiting { characteristic(identifier, timeout: timeout.seconds) }
    }

    // MARK: Reading and writing

    /// Reads the whole value.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: The time limit for the discovery and the read together.
    /// - Throws: The errors of the discovery, and those of ``Characteristic/read(timeout:)->Data``.
    public func read(_ identifier: CharacteristicIdentifier, timeout: Duration? = nil) async throws -> Data {
        try await awaiting { read(identifier, timeout: timeout.seconds) }
    }

    /// Reads the value as a value of a type. Otherwise the same as the variant that returns data.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: Duration? = nil
    ) async throws -> T {
        try await awaiting { read(identifier, timeout: timeout.seconds) }
    }

    /// Writes bytes. With a response, returns when the peripheral has confirmed them; without, when BlueZ has queued them.
    /// - Parameters:
    ///   - data: The bytes, at most ``maximumWriteValueLength(for:)``.
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: The time limit for the discovery and the write together.
    ///   - type: Whether the peripheral sends a response.
    /// - Throws: The errors of the discovery, and those of ``Characteristic/write(data:timeout:type:)->()``.
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await awaiting { write(data, to: identifier, timeout: timeout.seconds, type: type) }
    }

    /// Writes a value of a type that can be serialized, as the variant with bytes does.
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(value.serialize(), to: identifier, timeout: timeout, type: type)
    }

    // MARK: Pairing

    /// Pairs, and stores the keys in BlueZ (bonds), so that later links are encrypted without a pairing.
    ///
    /// Connects if there is no link, and joins a pairing that is under way, also one of another manager or program. Returns when the
    /// link is encrypted: at once if this link is encrypted with the keys of a bond. If there is a bond and no such link, makes one,
    /// and throws ``PairingError/keyMissing(isCertain:)`` if none can be encrypted. The link stays up until ``disconnect()``,
    /// ``terminate()`` or the end of the manager.
    ///
    /// BlueZ does not report which protection a pairing has. Without a passkey or a comparison of numbers there is none against a
    /// device in the middle.
    ///
    /// A pairing that has begun when the task is cancelled continues until ``cancelPairing()``.
    /// - Parameters:
    ///   - isTrusting: Whether ``isTrusted`` is set after the pairing.
    ///   - timeout: The time limit, which includes the answers of the user; `nil` means 60 s.
    /// - Throws: A ``PairingError``.
    public func pair(trusting isTrusting: Bool = false, timeout: Duration? = .seconds(60)) async throws {
        let _: Peripheral = try await awaiting { pair(trusting: isTrusting, timeout: timeout.seconds) }
    }

    /// Ends the link, and removes the bond and the device from BlueZ. Throws a ``PairingError``.
    ///
    /// The peripheral keeps its keys. It may refuse a new pairing until its user removes them too.
    public func unpair(timeout: Duration? = .seconds(30)) async throws {
        let _: Peripheral = try await awaiting { unpair(timeout: timeout.seconds) }
    }

    /// Removes the bond as ``unpair(timeout:)->()`` does, waits until the peripheral is received, and pairs again. Throws a
    /// ``PairingError``.
    ///
    /// Use this after ``PairingError/keyMissing(isCertain:)``, if the user agrees: the device may be another one with the same
    /// address.
    public func repair(timeout: Duration? = .seconds(60)) async throws {
        let _: Peripheral = try await awaiting { repair(timeout: timeout.seconds) }
    }

    /// Sets ``isTrusted``, or throws a ``PairingError``.
    public func setTrusted(_ isTrusted: Bool) async throws {
        let _: Peripheral = try await awaiting { setTrusted(isTrusted) }
    }
}
