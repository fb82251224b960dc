public import BlueCapGATT

/// A characteristic of a peripheral: a value that can be read, written or subscribed to.
///
/// The properties return what the manager knows at the time of the call, and can be read from any thread. The object
/// remains usable on the next connection if the peripheral still has the same characteristic; otherwise its operations
/// fail with ``CharacteristicError/invalidated``. The manager holds the object while the peripheral has the
/// characteristic.
///
/// Operations on one characteristic and its descriptors are executed one after the other, in the order of the calls;
/// operations on different characteristics are executed concurrently. Operations that are requested while the services
/// are being discovered wait for the discovery. When the link is lost, all operations fail: with
/// ``PeripheralError/forcedDisconnect`` if the application ended the link, otherwise with
/// ``PeripheralError/disconnected``. If the task that waits for an operation is cancelled, the function throws `CancellationError` at
/// once: an operation that BlueZ is not executing yet is withdrawn, and otherwise only the wait ends.
public final class Characteristic: PeripheralAttribute {
    /// The peripheral that has the characteristic.
    public let peripheral: Peripheral
    /// The type of the characteristic. A service may have several characteristics with the same UUID.
    public let uuid: CBUUID
    public let id: AttributeID

    init(peripheral: Peripheral, id: AttributeID, uuid: CBUUID) {
        self.peripheral = peripheral
        self.id = id
        self.uuid = uuid
    }

    /// The service that the characteristic belongs to.
    public var service: Service? { session.use(of: peripheral.key) { $0.parent(of: id, in: peripheral) } }

    /// The profile of characteristics with this UUID: the one in the manager's profile manager, or one that contains
    /// only the UUID.
    public var profile: CharacteristicProfile {
        service?.profile?.characteristic(uuid) ?? CharacteristicProfile(uuid: uuid.uuidString)
    }

    /// The name of its profile, or "Unknown".
    public var name: String { profile.name }

    /// The operations that the characteristic supports.
    public var properties: CBCharacteristicProperties { record { $0.declaration.properties } ?? [] }

    /// Returns whether the property is among ``properties``; if several are given, whether any of them is.
    public func propertyEnabled(_ property: CBCharacteristicProperties) -> Bool {
        !properties.isDisjoint(with: property)
    }

    /// Whether BlueZ does not export the characteristic, and this library provides it from other data of BlueZ.
    public var isVirtual: Bool { record { $0.handle.isVirtual } ?? false }

    // MARK: Descriptors

    /// The descriptors of the characteristic, in the order of the peripheral's attribute table.
    public var descriptors: [Descriptor] { peripheral.objects { $0.descriptors(of: id) } }

    /// Returns the first descriptor with this UUID.
    public func descriptor(_ uuid: CBUUID) -> Descriptor? { descriptors.first { $0.uuid == uuid } }

    // MARK: Packets

    /// The size of an ATT packet on the link in bytes, including its header of three bytes; `nil` if BlueZ does not
    /// report it.
    public var mtu: Int? { record { $0.mtu } }

    /// Returns how many bytes can be written at once.
    ///
    /// With response the limit is 512. Without response it is what fits into one packet, or 20 if the size of packets
    /// is not known.
    public func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        AttributeTable.maximumWriteLength(for: type, mtu: mtu)
    }
}

extension CharacteristicIdentifier {
    /// Creates the identifier of this characteristic; `nil` if its service is no longer known.
    public init?(_ characteristic: Characteristic) {
        guard let service = characteristic.service else { return nil }
        self.init(uuid: characteristic.uuid, service: ServiceIdentifier(uuid: service.uuid))
    }
}
