import BlueCapBlueZ
public import Foundation
public import BlueCapFutures
public import BlueCapGATT
import BlueCapReactor

extension Peripheral {
    // MARK: Discovered

    /// The services that were discovered on this connection, in the order of the peripheral's attribute table.
    ///
    /// Several services may have the same UUID; each of them is an element.
    public var services: [Service] { objects { $0.services } }

    /// Returns the first discovered service with this UUID.
    public func service(_ uuid: CBUUID) -> Service? { services(withUUID: uuid)?.first }

    /// Returns the discovered services with this UUID; `nil` if there is none.
    public func services(withUUID uuid: CBUUID) -> [Service]? {
        let found: [Service] = objects { table in table.services.filter { table[$0]?.uuid == uuid } }
        return found.isEmpty ? nil : found
    }

    // MARK: Discovering

    /// Discovers all services.
    ///
    /// BlueZ discovers the services when the link is established, and reports them one after another. The future
    /// succeeds when BlueZ has finished; all services and their characteristics are then available. Any number of
    /// discoveries may be active at once.
    /// - Parameter timeout: The time limit in seconds. When it is exceeded, the future fails with
    ///   ``PeripheralError/serviceDiscoveryTimeout``.
    /// - Returns: This peripheral. The future fails with ``PeripheralError/noServices`` if BlueZ found none, and with
    ///   ``PeripheralError/disconnected`` if there is no link or the link is lost.
    @discardableResult
    public func discoverAllServices(timeout: TimeInterval = .infinity) -> Future<Peripheral> {
        discover(nil, timeout, yielding: self)
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func discoverAllServices(timeout: TimeInterval = .infinity) -> Future<Void> {
        discover(nil, timeout, yielding: ())
    }

    /// Discovers the services with these UUIDs, or all services if the list is empty or `nil`.
    ///
    /// A service that the peripheral does not have is not a failure: check ``services``.
    /// - Parameters:
    ///   - services: The UUIDs.
    ///   - timeout: The time limit in seconds. When it is exceeded, the future fails with
    ///     ``PeripheralError/serviceDiscoveryTimeout``.
    @discardableResult
    public func discoverServices(_ services: [CBUUID]?, timeout: TimeInterval = .infinity) -> Future<Peripheral> {
        discover(services, timeout, yielding: self)
    }

    /// Variant from the later revisions of the documents: succeeds without a value.
    @_disfavoredOverload
    @discardableResult
    public func discoverServices(_ services: [CBUUID]?, timeout: TimeInterval = .infinity) -> Future<Void> {
        discover(services, timeout, yielding: ())
    }

    /// Discovers the services with these UUIDs, or all services if the list is empty or `nil`, and all of their
    /// characteristics.
    ///
    /// The text of the earliest document names this function.
    ///
    /// - Returns: This peripheral. The future fails with the first failure of `discoverServices` and
    ///   `Service.discoverAllCharacteristics`.
    @discardableResult
    public func discoverPeripheralServices(services: [CBUUID]?) -> Future<Peripheral> {
        let uuids = Set(services ?? [])
        return discoverServices(services).flatMap(context: ImmediateContext()) { peripheral -> Future<Peripheral> in
            let found = peripheral.services.filter { uuids.isEmpty || uuids.contains($0.uuid) }
            return found.reduce(Future(value: peripheral)) { discovered, service in
                discovered.flatMap(context: ImmediateContext()) { _ -> Future<Service> in
                    service.discoverAllCharacteristics()
                }.map(context: ImmediateContext()) { _ in peripheral }
            }
        }
    }

    private func discover<T: Sendable>(
        _ uuids: [CBUUID]?, _ timeout: TimeInterval, yielding value: T
    ) -> Future<T> {
        let uuids = Set(uuids ?? [])
        return session.operation(on: key, timeout: timeout, yielding: value) {
            $0.attributes.request(.services(uuids.isEmpty ? nil : uuids), $1, into: &$2)
        }
    }

    /// Returns a stream that reports each change of the peripheral's services during a connection. Discover the
    /// services again after each change.
    ///
    /// Attributes that still exist remain valid; all others become invalid. Every call returns the same stream. It
    /// keeps no elements for handlers that are added later, and ends with the manager.
    public func whenServicesChange() -> FutureStream<Peripheral> {
        session.stream(\.changes.ofServices, of: key, capacity: 0)
    }

    /// Removes the peripheral from BlueZ, connects it again and discovers all services.
    ///
    /// BlueZ keeps a peripheral's services from one connection to the next. If a peripheral has new firmware and does
    /// not report that its services have changed, BlueZ exports the old services until it removes the peripheral.
    ///
    /// The stream of the last `connect` reports `.forceDisconnect` and then `.connect`. The peripheral must advertise
    /// in between to be found. `disconnect()` and `terminate()` cancel the operation: the future fails with
    /// ``PeripheralError/forcedDisconnect``, and the peripheral is not connected again. If `bluetoothd` does not end
    /// the link or does not remove the peripheral, the future fails with its ``BusError``, and the peripheral is
    /// connected again.
    /// - Parameters:
    ///   - forgettingBond: Whether a bonded peripheral may be removed; it must then be paired again. If false, the
    ///     future of a bonded peripheral fails with ``PeripheralError/invalidArgument(_:)``.
    ///   - timeout: The time limit for the whole operation, in seconds. When it is exceeded, the future fails with
    ///     ``PeripheralError/serviceDiscoveryTimeout``.
    /// - Returns: This peripheral. The future also fails as that of
    ///   ``discoverAllServices(timeout:)->Future<Peripheral>`` does.
    @discardableResult
    public func refreshServices(forgettingBond: Bool = false, timeout: TimeInterval = 60) -> Future<Peripheral> {
        guard forgettingBond || session.read(key, { $0.isPaired }) != true else {
            return session.failed(
                PeripheralError.invalidArgument(
                    "The peripheral is bonded and would have to be paired again: "
                        + "ask for refreshServices(forgettingBond: true) if that is meant."))
        }
        return session.operation(on: key, timeout: timeout, yielding: self) { $0.refreshAsked($1, into: &$2) }
    }

    // MARK: Packets

    /// The size of an ATT packet on the link in bytes, including its header of three bytes; `nil` until it is known,
    /// and if BlueZ does not export it (before 5.62).
    public var mtu: Int? { session.attributes(key) { $0.mtu } }

    /// Returns how many bytes can be written to a characteristic at once.
    ///
    /// With response the limit is 512. Without response it is what fits into one packet, or 20 if the size of packets
    /// is not known.
    public func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        session.attributes(key) { $0.maximumWriteLength(for: type) }
            ?? AttributeTable.maximumWriteLength(for: type, mtu: nil)
    }
}
