import Foundation
import BlueCapFutures
public import BlueCapGATT

/// An attribute in the table of a peripheral: a service, a characteristic or a descriptor.
public protocol PeripheralAttribute: AnyObject, Hashable, Sendable, CustomStringConvertible {
    /// The peripheral that has the attribute.
    var peripheral: Peripheral { get }
    /// The type of the attribute. Several attributes may have the same UUID.
    var uuid: CBUUID { get }
    /// The name of the attribute's type, or "Unknown".
    var name: String { get }
    /// The identity of the attribute, which does not depend on its current position in the table.
    var id: AttributeID { get }
}

extension PeripheralAttribute {
    var session: CentralSession { peripheral.session }

    /// Reads the record of the attribute; `nil` if there is none.
    func record<R>(_ body: (borrowing AttributeTable.Record) -> R?) -> R? {
        session.attributes(peripheral.key) { $0[id].flatMap { body($0) } }
    }

    /// Starts an operation on the attribute.
    func submit<T: Sendable>(
        _ request: AttributeState.Request, _ timeout: TimeInterval, yielding value: T? = nil,
        converting convert: (@Sendable (Order.Outcome) -> T?)? = nil
    ) -> Future<T> {
        session.operation(
            on: peripheral.key, timeout: timeout, isOperation: true, yielding: value, converting: convert
        ) {
            $0.attributes.submit(request, on: id, $1, timeout: timeout, into: &$2)
        }
    }

    /// The ATT handle of the attribute's declaration, which distinguishes it from others with the same UUID; `nil` if
    /// BlueZ does not export the attribute. It may change when the peripheral changes its services.
    public var handle: UInt16? { record { $0.handle.attHandle } }

    /// The handle as a number that exists for every attribute: numbers above 0xFFFF are attributes that BlueZ does not
    /// export.
    package var number: UInt32 { record { $0.handle.rawValue } ?? 0 }

    /// Whether the peripheral still has the attribute, as far as the manager knows.
    public var isValid: Bool { record { $0.isPresent } ?? false }

    public static func == (left: Self, right: Self) -> Bool {
        left.id == right.id && left.peripheral == right.peripheral
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(peripheral)
    }

    /// `Characteristic(Battery Level, 2A19)`
    public var description: String { "\(Self.self)(\(name), \(uuid))" }
}
