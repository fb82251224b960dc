import BlueCapBlueZ
public import Foundation
public import BlueCapFutures
public import BlueCapGATT

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
        services.filtered(by: [uuid]).nonEmpty
    }

    // MARK: Discovering

    /// Variant of ``discoverAllServices(timeout:)->[Service]`` that returns a future of this peripheral, with the time limit in
    /// seconds.
    @discardableResult
    public func discoverAllServices(timeout: TimeInterval = .infinity) -> Future<Peripheral> {
        discoverServices(nil, timeout: timeout)
    }

    /// Variant of ``discoverServices(_:timeout:)->[Service]`` that returns a future of this peripheral, with the time limit in
    /// seconds.
    @discardableResult
    public func discoverServices(_ services: [CBUUID]?, timeout: TimeInterval = .infinity) -> Future<Peripheral> {
        session.operation(on: key, timeout: timeout, yielding: self) {
            $0.attributes.request(.services(services?.nonEmpty.map { Set($0) }), $1, into: &$2)
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

    /// Variant of ``refreshServices(forgettingBond:timeout:)->[Service]`` that returns a future of this peripheral, with the time limit in
    /// seconds.
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
        AttributeTable.maximumWriteLength(for: type, mtu: mtu)
    }
}
