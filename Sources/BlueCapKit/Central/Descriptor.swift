public import Foundation
public import BlueCapFutures
public import BlueCapGATT

/// A descriptor of a characteristic: additional information, such as a readable description.
///
/// The object behaves as a ``Characteristic`` does. Its operations are executed in one sequence with those of its
/// characteristic.
public final class Descriptor: PeripheralAttribute {
    /// The peripheral that has the descriptor.
    public let peripheral: Peripheral
    /// The type of the descriptor.
    public let uuid: CBUUID
    public let id: AttributeID

    init(peripheral: Peripheral, id: AttributeID, uuid: CBUUID) {
        self.peripheral = peripheral
        self.id = id
        self.uuid = uuid
    }

    /// The characteristic that it describes.
    public var characteristic: Characteristic? { session.use(of: peripheral.key) { $0.parent(of: id, in: peripheral) } }

    /// The name that the Core Specification gives to its UUID (Vol 3, Part G, 3.3.3), or "Unknown".
    public var name: String { AssignedNumbers.descriptorName(uuid) ?? "Unknown" }

    /// The value that was read last; `nil` if there was none yet.
    public var dataValue: Data? { session.value(of: id, peripheral.key) }

    /// Variant of ``read(timeout:)->Data`` that returns a future of this descriptor, with the time limit in
    /// seconds.
    @discardableResult
    public func read(timeout: TimeInterval = .infinity) -> Future<Descriptor> {
        submit(.read(offset: 0), timeout, yielding: self)
    }

    /// Variant of ``write(data:timeout:)->()`` that returns a future of this descriptor, with the time limit in
    /// seconds.
    @discardableResult
    public func write(data value: Data, timeout: TimeInterval = .infinity) -> Future<Descriptor> {
        submit(.write(value, .withResponse, offset: 0), timeout, yielding: self)
    }
}
