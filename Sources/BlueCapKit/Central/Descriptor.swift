public import Foundation
public import Futures
public import GATT

/// A descriptor of a characteristic: what the peripheral says about it, such as a description for people.
///
/// It is a handle, as ``Characteristic`` is. Its operations wait for their turn with those of its characteristic.
public final class Descriptor: PeripheralAttribute {
    /// The peripheral that has it.
    public let peripheral: Peripheral
    /// What kind of descriptor it is.
    public let uuid: CBUUID
    public let id: AttributeID

    init(peripheral: Peripheral, id: AttributeID, uuid: CBUUID) {
        self.peripheral = peripheral
        self.id = id
        self.uuid = uuid
    }

    /// The characteristic that it describes.
    public var characteristic: Characteristic? { peripheral.parent(of: id, \.characteristics) }

    /// The name that the Core Specification gives to its UUID (Vol 3, Part G, 3.3.3), or "Unknown".
    public var name: String { AssignedNumbers.descriptorName(uuid) ?? "Unknown" }

    /// The newest value: the one that was read last. `nil` before there was one.
    public var dataValue: Data? { record { $0.value } }

    /// Reads the value from the peripheral; ``dataValue`` has it when the future succeeds.
    ///
    /// - Parameter timeout: In seconds. When it is exceeded the future fails with ``CharacteristicError/readTimeout``.
    /// - Returns: This descriptor, or a failure as of ``Characteristic/read(timeout:)->Future<Characteristic>``.
    @discardableResult
    public func read(timeout: TimeInterval = .infinity) -> Future<Descriptor> {
        submit(.read(offset: 0), timeout, yielding: self)
    }

    /// The same, for those who ask for no descriptor back.
    @_disfavoredOverload
    @discardableResult
    public func read(timeout: TimeInterval = .infinity) -> Future<Void> {
        submit(.read(offset: 0), timeout, yielding: ())
    }

    /// Writes bytes to the peripheral, and waits for its answer.
    ///
    /// BlueZ keeps the descriptor 2902, which turns notifications on, to itself and refuses to write it: use
    /// `startNotifying()`.
    /// - Parameters:
    ///   - value: The bytes to write, at most 512.
    ///   - timeout: In seconds. When it is exceeded the future fails with ``CharacteristicError/writeTimeout``.
    /// - Returns: This descriptor, or a failure as of ``Characteristic/write(data:timeout:type:)->Future<Characteristic>``.
    @discardableResult
    public func write(data value: Data, timeout: TimeInterval = .infinity) -> Future<Descriptor> {
        submit(.write(value, .withResponse, offset: 0), timeout, yielding: self)
    }

    /// The same, for those who ask for no descriptor back.
    @_disfavoredOverload
    @discardableResult
    public func write(data value: Data, timeout: TimeInterval = .infinity) -> Future<Void> {
        submit(.write(value, .withResponse, offset: 0), timeout, yielding: ())
    }

    private func submit<T: Sendable>(
        _ request: AttributeState.Request, _ timeout: TimeInterval, yielding value: T
    ) -> Future<T> {
        session.operation(on: peripheral.key, yielding: value) {
            $0.attributes.submit(request, on: id, $1, timeout: timeout, into: &$2)
        }
    }
}
