package import DBus
import GATT
import Reactor

/// The names that calls to `bluetoothd` begin with.
enum BlueZName {
    static let service = "org.bluez"
    static let owner: StaticString = "org.bluez"
    static let adapter = "org.bluez.Adapter1"
    static let device = "org.bluez.Device1"
    static let properties = "org.freedesktop.DBus.Properties"
}

extension BlueZClient {
    /// How long most calls may take: they change something in the daemon or the controller, not on the air.
    package static let defaultTimeout = 10.0

    /// Turns an adapter on or off. Any thread; `completion` runs on the loop.
    ///
    /// Success means that BlueZ has accepted it; the tree shows when it is done.
    package func setPowered(
        _ isPowered: Bool, adapter: ObjectKey, completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        loop.perform { [self] in
            call(
                adapter, interface: BlueZName.properties, member: "Set",
                body: {
                    $0.string(BlueZName.adapter)
                    $0.string("Powered")
                    $0.variant("b") { $0.bool(isPowered) }
                }, completion: { completion($0.map { _ in }) })
        }
    }

    /// Ends a device's link and makes `bluetoothd` forget the device, with its bond. Any thread; `completion` runs on the
    /// loop.
    ///
    /// The link is ended first, and always: 5.87 dies of `RemoveDevice` on a connected device (its commit 5d836f1c6), and that a
    /// device is connected is not always signalled. If it cannot be ended, the device is removed only by a daemon that is known
    /// not to be 5.87.
    package func removeDevice(
        _ device: ObjectKey, completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        loop.perform { [self] in
            disconnect(device) { [self] result in
                if case .failure(let error) = result, error.cause != .notConnected, !removesConnected(device) {
                    return completion(.failure(error))
                }
                remove(device, completion: completion)
            }
        }
    }

    private func removesConnected(_ device: ObjectKey) -> Bool {
        guard let handle = objects.handle(of: device) else { return false }
        return objects[adapter: objects[handle].adapter]?.capabilities.removesConnectedDevices ?? false
    }

    private func remove(
        _ device: ObjectKey, completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        guard let handle = objects.handle(of: device), let path = path(of: device) else {
            return completion(.failure(.noSuchObject))
        }
        call(
            objects[handle].adapter, interface: BlueZName.adapter, member: "RemoveDevice",
            body: { $0.objectPath(path) }, completion: { completion($0.map { _ in }) })
    }

    /// Calls a method of one of the daemon's objects. On the loop only, as `completion` is, which comes exactly once.
    package func call(
        _ object: ObjectKey, interface: String, member: String, timeout: Double = BlueZClient.defaultTimeout,
        body: (inout MessageWriter) -> Void = { _ in },
        completion: @escaping @Sendable (Result<Message, BlueZError>) -> Void
    ) {
        requireLoop()
        guard let link else { return loop.post { completion(.failure(BlueZError(.closed))) } }
        guard let path = path(of: object) else { return loop.post { completion(.failure(.noSuchObject)) } }
        let message = Message.call(
            destination: BlueZName.service, path: path, interface: interface, member: member, body: body)
        link.connection.call(message, timeout: timeout) { completion($0.mapError(BlueZError.init)) }
    }

    private func path(of object: ObjectKey) -> ObjectPath? {
        objects.path(of: object).flatMap { ObjectPath(validating: $0) }
    }
}

extension BlueZError {
    static let noSuchObject = BlueZError(
        name: DBusError.Name.unknownObject, message: "bluetoothd does not have this object any more.")
}

extension DiscoveryFilter {
    /// The dictionary for `SetDiscoveryFilter`: what was asked for, with `Transport` and ``hasPathloss`` for the sake of the
    /// reports.
    ///
    /// `Transport` is always given, since a filter with nothing in it counts as none, and then the daemon reports only
    /// devices that are discoverable. `DuplicateData` is left out when false and `Discoverable` always: up to 5.70 the
    /// daemon stores each of them, four bytes, into a field of one (its commit ad089d299).
    ///
    /// - Parameter withServices: Whether the daemon takes `UUIDs` (``DaemonCapabilities/acceptsServiceFilter``). Without them
    ///   it reports devices that no scan asked for, which each scan passes over.
    func write(to writer: inout MessageWriter, withServices: Bool) {
        writer.dictionary(key: "s", value: "v") { dictionary in
            dictionary.entry("Transport", variant: "s") { $0.string("le") }
            if withServices, !uuids.isEmpty {
                dictionary.entry("UUIDs", variant: "as") { $0.strings(uuids.map { $0.fullUUIDString.lowercased() }) }
            }
            if let rssi {
                dictionary.entry("RSSI", variant: "n") { $0.int16(rssi) }
            } else if hasPathloss {
                dictionary.entry("Pathloss", variant: "q") { $0.uint16(137) }
            }
            if let pattern { dictionary.entry("Pattern", variant: "s") { $0.string(pattern) } }
            if reportsDuplicateData { dictionary.entry("DuplicateData", variant: "b") { $0.bool(true) } }
        }
    }
}
