public import Foundation
public import BlueCapGATT

// The operations in an `async` function. Outside of one, the functions with the same names return futures. See the extension of
// `Peripheral` with the same operations by identifier.

extension Service {
    /// Discovers the characteristics with these UUIDs, or all characteristics if the list is empty or `nil`, and returns those that
    /// exist.
    /// - Throws: ``ServiceError/characteristicDiscoveryTimeout``, ``ServiceError/invalidated``, and ``PeripheralError/disconnected`` if
    ///   there is no link.
    @discardableResult
    public func discoverCharacteristics(
        _ uuids: [CBUUID]? = nil, timeout: Duration? = nil
    ) async throws -> [Characteristic] {
        let _: Service = try await awaiting { discoverCharacteristics(uuids, timeout: timeout.seconds) }
        return characteristics.filtered(by: uuids)
    }

    /// Discovers all characteristics, and returns them.
    @discardableResult
    public func discoverAllCharacteristics(timeout: Duration? = nil) async throws -> [Characteristic] {
        try await discoverCharacteristics(nil, timeout: timeout)
    }
}

extension Characteristic {
    /// Reads the whole value from the peripheral, and returns it.
    /// - Parameter timeout: The time limit. When it is exceeded, throws ``CharacteristicError/readTimeout``.
    /// - Throws: ``CharacteristicError/readNotSupported`` at once if the properties do not contain `read`;
    ///   ``CharacteristicError/readFailed(_:)``, which contains the ATT error, if the peripheral refuses;
    ///   ``CharacteristicError/invalidated``; and ``PeripheralError/disconnected``.
    @discardableResult
    public func read(timeout: Duration? = nil) async throws -> Data { try await read(from: 0, timeout: timeout) }

    /// Reads the value as a value of a type. Otherwise the same as the variant that returns data.
    /// - Throws: Also ``CharacteristicError/notDeserializable(_:)`` if the bytes are not a valid value of that type.
    public func read<T: CharacteristicCodable>(timeout: Duration? = nil) async throws -> T {
        try await T(reading: read(timeout: timeout) as Data)
    }

    /// Reads the part of the value that begins at an offset of 1 to 512 bytes. ``dataValue`` does not change.
    ///
    /// Long values do not need this method: ``read(timeout:)->Data`` reads them to their end. This method saves time if the beginning
    /// of a value is already known. Otherwise it is the same as that one.
    public func read(from offset: Int, timeout: Duration? = nil) async throws -> Data {
        try await awaiting { read(from: offset, timeout: timeout.seconds) }
    }

    /// Writes a value of a type that can be serialized.
    ///
    /// With response, returns when the peripheral has accepted the value. Without response, returns when `bluetoothd` has queued it;
    /// whether the peripheral receives it is not known.
    /// - Parameters:
    ///   - value: At most ``maximumWriteValueLength(for:)`` bytes.
    ///   - timeout: The time limit. When it is exceeded, throws ``CharacteristicError/writeTimeout``; the value may have been written.
    ///   - type: Whether the peripheral sends a response.
    /// - Throws: ``CharacteristicError/writeNotSupported`` or ``CharacteristicError/valueTooLong(count:maximum:)`` at once;
    ///   ``CharacteristicError/writeFailed(_:)``, which contains the ATT error, if the peripheral refuses;
    ///   ``CharacteristicError/invalidated``; and ``PeripheralError/disconnected``.
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: Duration? = nil, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(data: value.serialize(), timeout: timeout, type: type)
    }

    /// Writes bytes, as the variant with a value does.
    public func write(
        _ data: Data, timeout: Duration? = nil, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(data: data, timeout: timeout, type: type)
    }

    /// Writes bytes, as the variant with a value does.
    public func write(
        data value: Data, timeout: Duration? = nil, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        let _: Characteristic = try await awaiting {
            write(data: value, timeout: timeout.seconds, type: type)
        }
    }

    /// Writes the value that the characteristic's profile makes of texts, as the variant with a value does.
    /// - Throws: Also ``CharacteristicError/notSerializable`` if the texts are not a valid value.
    public func write(
        string stringValue: [String: String], timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        let _: Characteristic = try await awaiting {
            write(string: stringValue, timeout: timeout.seconds, type: type)
        }
    }

    /// Writes any number of bytes without response, in parts that fit into packets, as fast as the link can send them.
    ///
    /// A write without response completes when `bluetoothd` has queued it. A program that makes many such writes fills the memory of
    /// `bluetoothd`, and does not know what has been sent. This method therefore makes a short request after each window of writes;
    /// the reply arrives when they have been sent. The size of the window adapts to the speed of the link. Operations on this
    /// characteristic that are requested during the transfer wait until it has ended.
    ///
    /// ```swift
    /// let report = try await characteristic.transfer(firmware)
    /// print(report.bytes, "bytes at", report.bytesPerSecond, "bytes per second")
    /// ```
    ///
    /// If the task is cancelled, no more parts are written. It is not known which parts of a failed transfer have arrived.
    /// - Parameters:
    ///   - data: The bytes. The size of packets determines the parts, see ``maximumWriteValueLength(for:)``.
    ///   - fence: The request after each window.
    ///   - timeout: The time limit for the whole transfer. When it is exceeded, throws ``CharacteristicError/writeTimeout``.
    /// - Returns: The number of bytes and the speed.
    /// - Throws: The errors of ``write(data:timeout:type:)->()``.
    @discardableResult
    public func transfer(
        _ data: Data, fence: Fence = .automatic, timeout: Duration? = nil
    ) async throws -> TransferReport {
        try await awaiting { transfer(data, fence: fence, timeout: timeout.seconds) }
    }

    /// Acquires a socket for writing values without response.
    ///
    /// If the task is cancelled, a writer that BlueZ opens later is closed.
    /// - Parameter timeout: The time limit for the discovery of the services and BlueZ's reply together. BlueZ's reply is not awaited
    ///   longer than 35 seconds.
    /// - Throws: ``CharacteristicError/writeNotSupported`` at once if the properties do not contain `writeWithoutResponse`;
    ///   ``CharacteristicError/acquiredByOther(_:)`` if there is already a writer, in this process or in another program;
    ///   ``CharacteristicError/writeFailed(_:)``, ``CharacteristicError/invalidated`` or ``PeripheralError/disconnected``; and
    ///   ``PeripheralError/serviceDiscoveryTimeout`` or ``CharacteristicError/writeTimeout``.
    public func acquireWriter(timeout: Duration? = nil) async throws -> CharacteristicWriter {
        try await awaiting { acquireWriter(timeout: timeout.seconds) }
    }
}

extension Descriptor {
    /// Reads the value from the peripheral, and returns it.
    /// - Throws: The errors of ``Characteristic/read(timeout:)->Data``.
    @discardableResult
    public func read(timeout: Duration? = nil) async throws -> Data {
        try await awaiting { submit(.read(offset: 0), timeout.seconds, converting: \.value) }
    }

    /// Writes bytes, at most 512, to the peripheral with response.
    ///
    /// BlueZ writes the descriptor 2902, which enables notifications, itself and refuses other writes to it: use `startNotifying()`.
    /// - Throws: The errors of ``Characteristic/write(data:timeout:type:)->()``.
    public func write(data value: Data, timeout: Duration? = nil) async throws {
        let _: Descriptor = try await awaiting { write(data: value, timeout: timeout.seconds) }
    }
}

extension CharacteristicCodable {
    /// Creates the value whose bytes were read, or throws ``CharacteristicError/notDeserializable(_:)``.
    init(reading data: Data) throws(CharacteristicError) {
        guard let value = Self.deserialize(data) else { throw .notDeserializable(data) }
        self = value
    }
}

extension Array {
    /// `nil` if there are no elements.
    var nonEmpty: Self? { isEmpty ? nil : self }
}

extension Array where Element: PeripheralAttribute {
    /// Returns the attributes with these UUIDs, or all if the list is empty or `nil`.
    func filtered(by uuids: [CBUUID]?) -> [Element] {
        guard let uuids, !uuids.isEmpty else { return self }
        return filter { uuids.contains($0.uuid) }
    }
}
