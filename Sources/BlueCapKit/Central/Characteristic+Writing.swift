public import Foundation
public import BlueCapFutures
public import BlueCapGATT

extension Characteristic {
    /// Variant of ``write(data:timeout:type:)->()`` that returns a future of this characteristic, with the time limit in seconds.
    @discardableResult
    public func write(
        data value: Data, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        submit(.write(value, type, offset: 0), timeout, yielding: self)
    }

    /// Variant of ``write(string:timeout:type:)->()`` that returns a future of this characteristic, with the time limit in
    /// seconds.
    @discardableResult
    public func write(
        string stringValue: [String: String], timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        guard let data = profile.data(fromString: stringValue) else {
            return session.failed(CharacteristicError.notSerializable)
        }
        return write(data: data, timeout: timeout, type: type)
    }

    /// Variant of ``write(_:timeout:type:)->()`` that returns a future of this characteristic, with the time limit in seconds.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, timeout: TimeInterval = .infinity, type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Characteristic> {
        submit(.write(value.serialize(), type, offset: 0), timeout, yielding: self)
    }
}
