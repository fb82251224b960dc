import BlueCapFutures
public import Foundation
public import BlueCapGATT

// The operations in an `async` function. Outside of one, the functions with the same names return futures. See the extension of
// `Peripheral` with the same operations by identifier.

extension Service {
    /// Discovers the characteristics with these UUIDs, or all characteristics if the list is empty or `nil`, and returns those that
    /// exist.
    ///
    /// If the task is cancelled, the discovery is withdrawn.
    @discardableResult
    public func discoverCharacteristics(
        _ uuids: [CBUUID]? = nil, timeout: Duration? = nil
    ) async throws -> [Characteristic] {
        let _: Service = try await session.awaiting { discoverCharacteristics(uuids, timeout: timeout.seconds) }
        return characteristics.filtered(by: uuids)
    }

    /// Discovers all characteristics, and returns them.
    ///
    /// If the task is cancelled, the discovery is withdrawn.
    @discardableResult
    public func discoverAllCharacteristics(timeout: Duration? = nil) async throws -> [Characteristic] {
        try await discoverCharacteristics(nil, timeout: timeout)
    }
}

extension Characteristic {
    /// Reads the whole value from the peripheral, and returns it.
    ///
    /// If the task is cancelled, a read that BlueZ is not executing yet is withdrawn; otherwise only the wait ends.
    /// - Parameter timeout: The time limit. When it is exceeded, throws ``CharacteristicError/readTimeout``.
    /// - Throws: The errors of the future of ``read(timeout:)->Future<Characteristic>``.
    @discardableResult
    public func read(timeout: Duration? = nil) async throws -> Data { try await read(from: 0, timeout: timeout) }

    /// Reads the value as a value of a type. Otherwise the same as the variant that returns data, also if the task is cancelled.
    /// - Throws: Also ``CharacteristicError/notDeserializable(_:)`` if the bytes are not a valid value of that type.
    public func read<T: CharacteristicCodable>(timeout: Duration? = nil) async throws -> T {
        let data: Data = try await read(timeout: timeout)
        guard let value = T.deserialize(data) else { throw CharacteristicError.notDeserializable(data) }
        return value
    }

    /// Reads the part of the value that begins at an offset. ``dataValue`` does not change, unless the offset is zero.
    ///
    /// If the task is cancelled, a read that BlueZ is not executing yet is withdrawn; otherwise only the wait ends.
    public func read(from offset: Int, timeout: Duration? = nil) async throws -> Data {
        try await session.awaiting { read(from: offset, timeout: timeout.seconds) }
    }

    /// Writes a value of a type that can be serialized. With a response, returns when the peripheral has confirmed it; without, when
    /// BlueZ has queued it.
    ///
    /// If the task is cancelled, a write that BlueZ is not executing yet is withdrawn; otherwise only the wait ends.
    /// - Parameters:
    ///   - value: At most ``maximumWriteValueLength(for:)`` bytes.
    ///   - timeout: The time limit. When it is exceeded, throws ``CharacteristicError/writeTimeout``; the value may have been written.
    ///   - type: Whether the peripheral sends a response.
    /// - Throws: The errors of the future of ``write(data:timeout:type:)->Future<Characteristic>``.
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: Duration? = nil, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(data: value.serialize(), timeout: timeout, type: type)
    }

    /// Writes bytes, as the variant with a value does, also if the task is cancelled.
    public func write(
        _ data: Data, timeout: Duration? = nil, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        try await write(data: data, timeout: timeout, type: type)
    }

    /// Writes bytes, as the variant with a value does, also if the task is cancelled.
    public func write(
        data value: Data, timeout: Duration? = nil, type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        let _: Characteristic = try await session.awaiting {
            write(data: value, timeout: timeout.seconds, type: type)
        }
    }

    /// Writes the value that the characteristic's profile makes of texts, as the variant with a value does, also if the task is
    /// cancelled.
    /// - Throws: Also ``CharacteristicError/notSerializable`` if the texts are not a valid value.
    public func write(
        string stringValue: [String: String], timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) async throws {
        let _: Characteristic = try await session.awaiting {
            write(string: stringValue, timeout: timeout.seconds, type: type)
        }
    }

    /// Writes any number of bytes without response, in parts that fit into packets, as fast as the link can send them.
    ///
    /// If the task is cancelled, no more parts are written.
    /// - Throws: The errors of the future of ``transfer(_:fence:timeout:)-(_,_,TimeInterval)``, which explains the parameters.
    @discardableResult
    public func transfer(
        _ data: Data, fence: Fence = .automatic, timeout: Duration? = nil
    ) async throws -> TransferReport {
        try await session.awaiting { transfer(data, fence: fence, timeout: timeout.seconds) }
    }

    /// Acquires a socket to write values without response.
    ///
    /// If the task is cancelled, only the wait ends: the writer closes when BlueZ has opened it.
    /// - Throws: The errors of the future of ``acquireWriter()->Future<CharacteristicWriter>``.
    public func acquireWriter(timeout: Duration? = nil) async throws -> CharacteristicWriter {
        try await session.awaiting { acquireWriter(timeout: timeout.seconds) }
    }
}

extension Descriptor {
    /// Reads the value from the peripheral, and returns it.
    ///
    /// If the task is cancelled, a read that BlueZ is not executing yet is withdrawn; otherwise only the wait ends.
    /// - Parameter timeout: The time limit. When it is exceeded, throws ``CharacteristicError/readTimeout``.
    /// - Throws: The errors of the future of ``Characteristic/read(timeout:)->Future<Characteristic>``.
    @discardableResult
    public func read(timeout: Duration? = nil) async throws -> Data {
        try await session.awaiting { submit(.read(offset: 0), timeout.seconds, converting: \.value) }
    }

    /// Writes bytes to the peripheral with response.
    ///
    /// If the task is cancelled, a write that BlueZ is not executing yet is withdrawn; otherwise only the wait ends.
    /// - Parameters:
    ///   - value: The bytes to write, at most 512.
    ///   - timeout: The time limit. When it is exceeded, throws ``CharacteristicError/writeTimeout``.
    /// - Throws: The errors of the future of ``Characteristic/write(data:timeout:type:)->Future<Characteristic>``.
    public func write(data value: Data, timeout: Duration? = nil) async throws {
        let _: Descriptor = try await session.awaiting { write(data: value, timeout: timeout.seconds) }
    }
}

extension Array where Element: PeripheralAttribute {
    /// Returns the attributes with these UUIDs, or all if the list is empty or `nil`.
    func filtered(by uuids: [CBUUID]?) -> [Element] {
        guard let uuids, !uuids.isEmpty else { return self }
        return filter { uuids.contains($0.uuid) }
    }
}
