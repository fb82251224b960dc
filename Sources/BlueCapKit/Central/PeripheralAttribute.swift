public import GATT

/// What services, characteristics and descriptors have in common: each is an attribute in the table of a peripheral.
public protocol PeripheralAttribute: AnyObject, Hashable, Sendable, CustomStringConvertible {
    /// The peripheral that has it.
    var peripheral: Peripheral { get }
    /// What kind of attribute it is. Several may have the same.
    var uuid: CBUUID { get }
    /// The name of its kind, or "Unknown".
    var name: String { get }
    /// Which of the peripheral's attributes it is, wherever in the table it stands now.
    var id: AttributeID { get }
}

extension PeripheralAttribute {
    var session: CentralSession { peripheral.session }

    /// Reads from what is known of it; `nil` where nothing is.
    func record<R>(_ body: (borrowing AttributeTable.Record) -> R?) -> R? {
        session.attribute(peripheral.key, id, body)
    }

    /// The ATT handle of its declaration, which tells it from others with the same UUID; `nil` where BlueZ keeps it to
    /// itself. It may change when the peripheral changes its services.
    public var handle: UInt16? { record { $0.handle.attHandle } }

    /// The same for all: numbers above 0xFFFF are those that BlueZ keeps to itself.
    package var number: UInt32 { record { $0.handle.rawValue } ?? 0 }

    /// Whether the peripheral still has it, as far as is known.
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
