import Foundation
import Futures
public import GATT

/// A characteristic of a peripheral: a value that can be read, written or subscribed to.
///
/// It is a handle: what it tells is what the manager knows at that moment, from any thread. It works on the next
/// connection too, where the peripheral has the same characteristic again; otherwise its operations fail with
/// ``CharacteristicError/invalidated``. The manager holds it while the peripheral has it.
///
/// Operations on one characteristic and its descriptors are done one after the other, in the order in which they were
/// asked for; those on different characteristics side by side. What is asked for while the services are being
/// discovered waits for that. All fail when the link is lost: with ``PeripheralError/disconnected``, or with
/// ``PeripheralError/forcedDisconnect`` where the application ended it.
public final class Characteristic: PeripheralAttribute {
    /// The peripheral that has it.
    public let peripheral: Peripheral
    /// What kind of characteristic it is. Several of a service may have the same.
    public let uuid: CBUUID
    public let id: AttributeID

    init(peripheral: Peripheral, id: AttributeID, uuid: CBUUID) {
        self.peripheral = peripheral
        self.id = id
        self.uuid = uuid
    }

    /// The service that it belongs to.
    public var service: Service? { peripheral.parent(of: id, \.services) }

    /// What is known of characteristics of this kind: the profile that the manager was given, or one that knows the
    /// UUID alone.
    public var profile: CharacteristicProfile {
        service?.profile?.characteristic(uuid) ?? CharacteristicProfile(uuid: uuid.fullUUIDString)
    }

    /// The name of its profile, or "Unknown".
    public var name: String { profile.name }

    /// What can be done with it.
    public var properties: CBCharacteristicProperties { record { $0.declaration.properties } ?? [] }

    /// Whether the property is among ``properties``; of several, whether any is.
    public func propertyEnabled(_ property: CBCharacteristicProperties) -> Bool {
        !properties.isDisjoint(with: property)
    }

    /// Whether BlueZ keeps it to itself and this library shows what BlueZ tells of it otherwise.
    public var isVirtual: Bool { record { $0.handle.isVirtual } ?? false }

    // MARK: Descriptors

    /// Its descriptors, in the order of the peripheral's table.
    public var descriptors: [Descriptor] { peripheral.handles(\.descriptors) { $0.descriptors(of: id) } }

    /// The first descriptor with this UUID.
    public func descriptor(_ uuid: CBUUID) -> Descriptor? { descriptors.first { $0.uuid == uuid } }

    // MARK: Packets

    /// The size of an ATT packet on the link in bytes, three of them its head; `nil` where BlueZ does not tell.
    public var mtu: Int? { record { $0.mtu } }

    /// How many bytes can be written at once: 512 with response; without response what fits into one packet, 20 where
    /// its size is not known.
    public func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        record { $0.maximumWriteLength(for: type) } ?? (type == .withResponse ? 512 : 20)
    }

    // MARK: Operations

    /// Has something done with it, or with the descriptor that `target` names.
    func submit<T: Sendable>(
        _ request: AttributeState.Request, timeout: TimeInterval, yielding value: T
    ) -> Future<T> {
        session.operation(on: peripheral.key, yielding: value) {
            $0.attributes.submit(request, on: id, $1, timeout: timeout, into: &$2)
        }
    }
}

extension CharacteristicIdentifier {
    /// The identifier of this characteristic; `nil` if its service is not known any more.
    public init?(_ characteristic: Characteristic) {
        guard let service = characteristic.service else { return nil }
        self.init(uuid: characteristic.uuid, service: ServiceIdentifier(uuid: service.uuid))
    }
}
