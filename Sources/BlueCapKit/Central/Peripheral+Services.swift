import BlueZ
public import Foundation
public import Futures
public import GATT
import Reactor

extension Peripheral {
    // MARK: Discovered

    /// The services that were discovered on this connection, in the order of the peripheral's table.
    ///
    /// A UUID can be there several times; each of them is a service of its own.
    public var services: [Service] { handles(\.services) { $0.services } }

    /// The first discovered service with this UUID.
    public func service(_ uuid: CBUUID) -> Service? { services(withUUID: uuid)?.first }

    /// The discovered services with this UUID; `nil` where there is none.
    public func services(withUUID uuid: CBUUID) -> [Service]? {
        let found = handles(\.services) { table in table.services.filter { table[$0]?.uuid == uuid } }
        return found.isEmpty ? nil : found
    }

    // MARK: Discovering

    /// Discovers all services.
    ///
    /// BlueZ looks for services by itself once the link is up, and tells of them one after another. The future waits
    /// for the end of that; when it succeeds the services and their characteristics are all there. Any number of
    /// discoveries may be under way at once.
    /// - Parameter timeout: In seconds. When it is exceeded the future fails with
    ///   ``PeripheralError/serviceDiscoveryTimeout``.
    /// - Returns: This peripheral; or a failure: ``PeripheralError/noServices`` where BlueZ found none,
    ///   ``PeripheralError/disconnected`` without a link or when it is lost.
    @discardableResult
    public func discoverAllServices(timeout: TimeInterval = .infinity) -> Future<Peripheral> {
        discover(nil, timeout, yielding: self)
    }

    /// The later form, which yields no peripheral.
    @_disfavoredOverload
    @discardableResult
    public func discoverAllServices(timeout: TimeInterval = .infinity) -> Future<Void> {
        discover(nil, timeout, yielding: ())
    }

    /// Discovers the services with these UUIDs; all, where the list is empty or `nil`.
    ///
    /// One that the peripheral does not have is no failure: look for it in ``services``.
    /// - Parameters:
    ///   - services: The UUIDs.
    ///   - timeout: In seconds. When it is exceeded the future fails with
    ///     ``PeripheralError/serviceDiscoveryTimeout``.
    @discardableResult
    public func discoverServices(_ services: [CBUUID]?, timeout: TimeInterval = .infinity) -> Future<Peripheral> {
        discover(services, timeout, yielding: self)
    }

    /// The later form, which yields no peripheral.
    @_disfavoredOverload
    @discardableResult
    public func discoverServices(_ services: [CBUUID]?, timeout: TimeInterval = .infinity) -> Future<Void> {
        discover(services, timeout, yielding: ())
    }

    /// Discovers the services with these UUIDs and all of their characteristics; all services, where the list is empty or
    /// `nil`. The earliest document names this function in its text.
    ///
    /// - Returns: This peripheral, or the first failure, as of `discoverServices` and `Service.discoverAllCharacteristics`.
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
        return session.operation(on: key, yielding: value) {
            $0.attributes.discoverServices(uuids.isEmpty ? nil : uuids, $1, timeout: timeout, into: &$2)
        }
    }

    /// Tells each time the peripheral has changed its services while it was connected: discover them again.
    ///
    /// Attributes that are there as before go on to work; those that are not are invalid. Every call answers the same
    /// stream, which keeps nothing: it is for observers. It ends with the manager.
    public func whenServicesChange() -> FutureStream<Peripheral> { session.serviceChanges(of: key) }

    /// Has BlueZ forget what it knows of the peripheral, connects anew and discovers all services.
    ///
    /// BlueZ keeps a peripheral's services from one connection to the next. A peripheral with new firmware that does not
    /// say that they have changed is shown with its old ones, until it is forgotten. The stream of the last `connect`
    /// tells `.forceDisconnect` and then `.connect`; the peripheral has to advertise in between to be found. `disconnect()` and
    /// `terminate()` end it: the future fails with ``PeripheralError/forcedDisconnect``, and the peripheral is not connected again.
    /// If `bluetoothd` does not end the link or does not forget the peripheral, the future fails with its ``BusFailure``, and the
    /// peripheral is connected again.
    /// - Parameters:
    ///   - forgettingBond: Whether that may be done to a bonded peripheral, which has to be paired again then. Without
    ///     it the future of a bonded one fails with ``PeripheralError/invalidArgument(_:)``.
    ///   - timeout: For the whole, in seconds. When it is exceeded the future fails with
    ///     ``PeripheralError/serviceDiscoveryTimeout``.
    /// - Returns: This peripheral; or a failure as of ``discoverAllServices(timeout:)->Future<Peripheral>``.
    @discardableResult
    public func refreshServices(forgettingBond: Bool = false, timeout: TimeInterval = 60) -> Future<Peripheral> {
        guard forgettingBond || session.read(key, { $0.isPaired }) != true else {
            return session.failed(
                PeripheralError.invalidArgument(
                    "The peripheral is bonded and would have to be paired again: "
                        + "ask for refreshServices(forgettingBond: true) if that is meant."))
        }
        var refresh: OperationID?
        let future: Future<Peripheral> = session.operation(on: key, yielding: self) { state, id, orders in
            refresh = id
            state.refreshAsked(id, timeout: timeout, into: &orders)
        }
        session.loop.post { [self, refresh] in
            // After the connection's own call.
            session.drain()
            guard let device = session.readState(of: key, { $0.facts.device }) else { return endRefresh() }
            session.client.removeDevice(device) { [self] result in
                // A device that does not exist any more counts as removed.
                if let refresh, case .failure(let error) = result, error.cause != .doesNotExist,
                    error.cause != .unknownObject
                {
                    session.decide(key) { $0.attributes.refuseNextLink(refresh, BusFailure(error), into: &$1) }
                }
                endRefresh()
            }
        }
        return future
    }

    /// Connects the device that BlueZ has removed, unless the application has ended the refresh.
    private func endRefresh() {
        let isWanted = session.core.withLock { core in core.state.updateState(of: key) { $0.refreshEnded() } }
        if isWanted == true { reconnect() }
    }

    // MARK: Packets

    /// The size of an ATT packet on the link in bytes, three of them its head; `nil` until it is known, and if BlueZ
    /// does not export it (before 5.62).
    public var mtu: Int? { session.attributes(key) { $0.mtu } }

    /// How many bytes can be written to a characteristic at once: 512 with response; without response what fits into
    /// one packet, 20 where its size is not known.
    public func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        session.attributes(key) { $0.maximumWriteLength(for: type) } ?? (type == .withResponse ? 512 : 20)
    }
}
