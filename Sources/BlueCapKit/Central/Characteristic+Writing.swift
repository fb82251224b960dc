public import Foundation
public import Futures
public import GATT

// Each way of writing has two forms, which differ in what they yield: the documents' revisions are one API at three
// times. All end in `submit`.

extension Characteristic {
    /// Writes bytes to the peripheral.
    ///
    /// Success means with response that the peripheral has taken the value, without response that `bluetoothd` has
    /// queued it: what the peripheral does with it is not heard of.
    /// - Parameters:
    ///   - value: At most as many bytes as ``maximumWriteValueLength(for:)`` says.
    ///   - timeout: In seconds. When it is exceeded the future fails with ``CharacteristicError/writeTimeout``; the
    ///     value may have been written all the same.
    ///   - type: Whether the peripheral is to answer.
    /// - Returns: This characteristic; or a failure: ``CharacteristicError/writeNotSupported`` and
    ///   ``CharacteristicError/valueTooLong(count:maximum:)`` at once, ``CharacteristicError/writeFailed(_:)`` where the
    ///   peripheral refuses, with its ATT error, ``CharacteristicError/invalidated``,
    ///   ``PeripheralError/disconnected``.
    @discardableResult
    public func write(
        data value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        submit(.write(value, type, offset: 0), timeout: timeout, yielding: self)
    }

    /// The later form, which yields no characteristic.
    @_disfavoredOverload
    @discardableResult
    public func write(
        data value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        submit(.write(value, type, offset: 0), timeout: timeout, yielding: ())
    }

    /// Writes the value that texts spell, by the characteristic's profile. Fails with
    /// ``CharacteristicError/notSerializable`` at once where they spell none.
    @discardableResult
    public func write(
        string stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(spelled: stringValue, timeout, type, yielding: self)
    }

    /// The later form, which yields no characteristic.
    @_disfavoredOverload
    @discardableResult
    public func write(
        string stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        write(spelled: stringValue, timeout, type, yielding: ())
    }

    /// Writes a value of a type that has a form on the air.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        submit(.write(value.serialize(), type, offset: 0), timeout: timeout, yielding: self)
    }

    /// The later form, which yields no characteristic.
    @_disfavoredOverload
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        submit(.write(value.serialize(), type, offset: 0), timeout: timeout, yielding: ())
    }

    private func write<T: Sendable>(
        spelled texts: [String: String], _ timeout: TimeInterval, _ type: CBCharacteristicWriteType, yielding value: T
    ) -> Future<T> {
        guard let data = profile.data(fromString: texts) else {
            return session.failed(CharacteristicError.notSerializable)
        }
        return submit(.write(data, type, offset: 0), timeout: timeout, yielding: value)
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

    /// The same without a label, as Swift 2 had it.
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

    /// The same without a label, as Swift 2 had it.
    @discardableResult
    public func writeString(
        _ stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        write(string: stringValue, timeout: timeout, type: type)
    }
}
