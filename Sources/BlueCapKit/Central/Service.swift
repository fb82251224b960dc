public import Foundation
public import BlueCapFutures
public import BlueCapGATT

/// A service of a peripheral: a group of characteristics that belong together.
///
/// The properties return what the manager knows at the time of the call, and can be read from any thread. The object
/// remains usable on the next connection if the peripheral still has the same service; otherwise its operations fail
/// with ``ServiceError/invalidated``. The manager holds the object while the peripheral has the service. A discovery whose task
/// is cancelled is withdrawn.
public final class Service: PeripheralAttribute {
    /// The peripheral that has the service.
    public let peripheral: Peripheral
    /// The type of the service. A peripheral may have several services with the same UUID.
    public let uuid: CBUUID
    public let id: AttributeID

    init(peripheral: Peripheral, id: AttributeID, uuid: CBUUID) {
        self.peripheral = peripheral
        self.id = id
        self.uuid = uuid
    }

    /// The profile of services with this UUID in the manager's profile manager, if any.
    var profile: ServiceProfile? { session.profileManager?.service(uuid) }

    /// The name of the service's profile, or else the Bluetooth SIG's name of its UUID, or else "Unknown".
    public var name: String { profile?.name ?? AssignedNumbers.serviceName(uuid) ?? "Unknown" }

    /// Whether the service is a primary service; a secondary service exists only to be included by other services.
    public var isPrimary: Bool { record { $0.declaration.isPrimary } ?? true }

    /// Whether BlueZ does not export the service, and this library provides it from other data of BlueZ.
    public var isVirtual: Bool { record { $0.handle.isVirtual } ?? false }

    /// The services that this service includes, in the order of their declarations.
    public var includedServices: [Service] {
        peripheral.objects { $0.includedServices(of: id) }
    }

    // MARK: Characteristics

    /// The characteristics that were discovered on this connection, in the order of the peripheral's attribute table.
    ///
    /// Several characteristics may have the same UUID; each of them is an element.
    public var characteristics: [Characteristic] {
        peripheral.objects { $0.characteristics(of: id) }
    }

    /// Returns the first discovered characteristic with this UUID.
    public func characteristic(_ uuid: CBUUID) -> Characteristic? { characteristics(withUUID: uuid)?.first }

    /// Returns the discovered characteristics with this UUID; `nil` if there is none.
    public func characteristics(withUUID uuid: CBUUID) -> [Characteristic]? {
        characteristics.filtered(by: [uuid]).nonEmpty
    }

    /// Variant of ``discoverAllCharacteristics(timeout:)->[Characteristic]`` that returns a future of this service, with the time limit in
    /// seconds.
    @discardableResult
    public func discoverAllCharacteristics(timeout: TimeInterval = .infinity) -> Future<Service> {
        discoverCharacteristics(nil, timeout: timeout)
    }

    /// Variant of ``discoverCharacteristics(_:timeout:)->[Characteristic]`` that returns a future of this service, with the time
    /// limit in seconds.
    @discardableResult
    public func discoverCharacteristics(
        _ characteristics: [CBUUID]?, timeout: TimeInterval = .infinity
    ) -> Future<Service> {
        session.operation(on: peripheral.key, timeout: timeout, yielding: self) {
            $0.attributes.request(.characteristics(characteristics?.nonEmpty.map { Set($0) }, of: id), $1, into: &$2)
        }
    }
}
