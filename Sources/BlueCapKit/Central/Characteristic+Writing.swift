public import Foundation
public import BlueCapFutures
public import BlueCapGATT

// Each way of writing has two variants, which differ in the value of their future: the API supports several revisions
// of the documents. All call `submit`.

extension Characteristic {
    /// Writes bytes to the peripheral.
    ///
    /// With response, the future succeeds when the peripheral has accepted the value. Without response, it succeeds
    /// when `bluetoothd` has queued the value; whether the peripheral receives it is not known.
    /// - Parameters:
    ///   - value: The bytes, at most ``maximumWriteValueLength(for:)``.
    ///   - timeout: The time limit in seconds. When it is exceeded, the future fails with
    ///     ``CharacteristicError/writeTimeout``; the value may have been written.
    ///   - type: Whether the peripheral sends a response.
    /// - Returns: This characteristic. The future fails at once with ``CharacteristicError/writeNotSupported`` or
    ///   ``CharacteristicError/valueTooLong(count:maximum:)``; with ``CharacteristicError/writeFailed(_:)``, which
    ///   contains the ATT error, if the peripheral refuses; with ``CharacteristicError/invalidated``; or with
    ///   ``PeripheralError/disconnected``.
    @discardableResult
    public func write(
        data value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        submit(.write(value, type, offset: 0), timeout, yielding: self)
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func write(
        data value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        submit(.write(value, type, offset: 0), timeout, yielding: ())
    }

    /// Writes the value that the characteristic's profile makes of texts. Fails at once with
    /// ``CharacteristicError/notSerializable`` if the texts are not a valid value.
    @discardableResult
    public func write(
        string stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(spelled: stringValue, timeout, type, yielding: self)
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func write(
        string stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        write(spelled: stringValue, timeout, type, yielding: ())
    }

    /// Writes a value of a type that can be serialized.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        submit(.write(value.serialize(), type, offset: 0), timeout, yielding: self)
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        submit(.write(value.serialize(), type, offset: 0), timeout, yielding: ())
    }

    private func write<T: Sendable>(
        spelled texts: [String: String], _ timeout: TimeInterval, _ type: CBCharacteristicWriteType, yielding value: T
    ) -> Future<T> {
        guard let data = profile.data(fromString: texts) else {
            return session.failed(CharacteristicError.notSerializable)
        }
        return submit(.write(data, type, offset: 0), timeout, yielding: value)
    }
}

// MARK: - The earliest names

extension Characteristic {
    /// The earliest name of ``write(_:timeout:type:)->Future<Characteristic>``.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        value: T, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(value, timeout: timeout, type: type)
    }

    /// The earliest name of ``write(data:timeout:type:)->Future<Characteristic>``.
    @discardableResult
    public func writeData(
        value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(data: value, timeout: timeout, type: type)
    }

    /// Variant without a label, as in Swift 2.
    @discardableResult
    public func writeData(
        _ value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(data: value, timeout: timeout, type: type)
    }

    /// The earliest name of ``write(string:timeout:type:)->Future<Characteristic>``.
    @discardableResult
    public func writeString(
        stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(string: stringValue, timeout: timeout, type: type)
    }

    /// Variant without a label, as in Swift 2.
    @discardableResult
    public func writeString(
        _ stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(string: stringValue, timeout: timeout, type: type)
    }
}
