public import Foundation
public import Futures
public import GATT

/// A service of a peripheral: a group of characteristics that belong together.
///
/// It is a handle: what it tells is what the manager knows at that moment, from any thread. It works on the next
/// connection too, where the peripheral has the same service again; otherwise its operations fail with
/// ``ServiceError/invalidated``. The manager holds it while the peripheral has it.
public final class Service: PeripheralAttribute {
    /// The peripheral that has it.
    public let peripheral: Peripheral
    /// What kind of service it is.
    public let uuid: CBUUID
    public let id: AttributeID

    init(peripheral: Peripheral, id: AttributeID, uuid: CBUUID) {
        self.peripheral = peripheral
        self.id = id
        self.uuid = uuid
    }

    /// What is known of services of this kind: the profile that the manager was given, if any.
    var profile: ServiceProfile? { session.profileManager?.service(uuid) }

    /// The name of its profile, else the one that the Bluetooth SIG gave to its UUID, else "Unknown".
    public var name: String { profile?.name ?? AssignedNumbers.serviceName(uuid) ?? "Unknown" }

    /// Whether it stands for itself, and not only to be included by others.
    public var isPrimary: Bool {
        record { record in
            if case .service(let isPrimary, _) = record.declaration.role { isPrimary } else { nil }
        } ?? true
    }

    /// Whether BlueZ keeps the service to itself and this library shows what BlueZ tells of it otherwise.
    public var isVirtual: Bool { record { $0.handle.isVirtual } ?? false }

    /// The services that it includes, in the order in which it names them.
    public var includedServices: [Service] {
        peripheral.handles(\.services) { $0.includedServices(of: id) }
    }

    // MARK: Characteristics

    /// The characteristics that were discovered on this connection, in the order of the peripheral's table.
    ///
    /// A UUID can be there several times; each of them is a characteristic of its own.
    public var characteristics: [Characteristic] {
        peripheral.handles(\.characteristics) { $0.characteristics(of: id) }
    }

    /// The first discovered characteristic with this UUID.
    public func characteristic(_ uuid: CBUUID) -> Characteristic? { characteristics(withUUID: uuid)?.first }

    /// The discovered characteristics with this UUID; `nil` where there is none.
    public func characteristics(withUUID uuid: CBUUID) -> [Characteristic]? {
        let found = peripheral.handles(\.characteristics) { table in
            table.characteristics(of: id).filter { table[$0]?.uuid == uuid }
        }
        return found.isEmpty ? nil : found
    }

    /// Discovers all characteristics.
    /// - Parameter timeout: In seconds. When it is exceeded the future fails with
    ///   ``ServiceError/characteristicDiscoveryTimeout``.
    /// - Returns: This service; or ``PeripheralError/disconnected`` without a link.
    @discardableResult
    public func discoverAllCharacteristics(timeout: TimeInterval = .infinity) -> Future<Service> {
        discover(nil, timeout, yielding: self)
    }

    /// The later form of ``discoverAllCharacteristics(timeout:)-(TimeInterval)``, for those who ask for no service back.
    @_disfavoredOverload
    @discardableResult
    public func discoverAllCharacteristics(timeout: TimeInterval = .infinity) -> Future<Void> {
        discover(nil, timeout, yielding: ())
    }

    /// Discovers the characteristics with these UUIDs; all, where the list is empty or `nil`.
    ///
    /// One that the service does not have is no failure: look for it in ``characteristics``.
    /// - Parameters:
    ///   - characteristics: The UUIDs.
    ///   - timeout: In seconds. When it is exceeded the future fails with
    ///     ``ServiceError/characteristicDiscoveryTimeout``.
    @discardableResult
    public func discoverCharacteristics(
        _ characteristics: [CBUUID]?, timeout: TimeInterval = .infinity
    ) -> Future<Service> {
        discover(characteristics, timeout, yielding: self)
    }

    /// The later form, which yields no service.
    @_disfavoredOverload
    @discardableResult
    public func discoverCharacteristics(
        _ characteristics: [CBUUID]?, timeout: TimeInterval = .infinity
    ) -> Future<Void> {
        discover(characteristics, timeout, yielding: ())
    }

    private func discover<T: Sendable>(
        _ uuids: [CBUUID]?, _ timeout: TimeInterval, yielding value: T
    ) -> Future<T> {
        let uuids = Set(uuids ?? [])
        return session.operation(on: peripheral.key, yielding: value) {
            $0.attributes.discoverCharacteristics(
                uuids.isEmpty ? nil : uuids, of: id, $1, timeout: timeout, into: &$2)
        }
    }
}
