public import Foundation
public import BlueCapFutures
public import BlueCapGATT

// Each way of writing has two variants, which differ in the value of their future: the API supports several revisions
// of the documents. All call `submit`.

extension Characteristic {
    /// Variant of ``write(data:timeout:type:)->()`` that returns a future of this characteristic, with the time limit in seconds.
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

    /// Variant of ``write(string:timeout:type:)->()`` that returns a future of this characteristic, with the time limit in
    /// seconds.
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

    /// Variant of ``write(_:timeout:type:)->()`` that returns a future of this characteristic, with the time limit in seconds.
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
