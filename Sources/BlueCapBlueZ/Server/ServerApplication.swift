import BlueCapDBus
import Foundation
import BlueCapGATT
import BlueCapReactor

/// A service of this process as BlueZ offers it to centrals, with the objects that BlueZ reads. It stays registered while the
/// adapter is off.
///
/// After an error that is known to pass BlueZ is asked again for 7.5 seconds, and for half a minute if it had taken the
/// service before.
package final class ServerApplication: Registration, @unchecked Sendable {
    let service: ServerService
    /// Held until the registration has ended.
    private(set) var delegate: (any ServerDelegate)?
    /// The objects on one connection, and the number of that.
    private var exported: (link: UInt64, paths: [ObjectPath])?
    private var characteristics: [ServerAttributeID: CharacteristicRecord] = [:]
    private var descriptors: [ValueRecord] = []
    /// What BlueZ has given, or 0.
    var handles: [ServerAttributeID: UInt16] = [:]

    package init(
        _ service: ServerService, on adapter: ObjectKey, client: BlueZClient, delegate: any ServerDelegate,
        stateChanged: @escaping @Sendable (RegistrationState) -> Void
    ) {
        self.service = service
        self.delegate = delegate
        super.init(.application, on: adapter, client: client, stateChanged: stateChanged)
    }

    /// Sends the updates that a source has to the subscribers of a characteristic: see ``UpdateSender``. Any thread.
    package func sendUpdates(of characteristic: ServerAttributeID, from source: any UpdateSource) {
        client.loop.post { [self] in characteristics[characteristic]?.sender.send(from: source) }
    }

    var connection: Connection? { client.daemon.connection }

    /// What the daemon can do with the adapter.
    var capabilities: DaemonCapabilities {
        client.withTree { $0[adapter: adapter]?.capabilities } ?? DaemonCapabilities()
    }

    /// Calls `work` with `true` when `bluetoothd` has read what was sent to it before over the bus, with `false` if it does not
    /// answer within ten seconds. If the connection ends before, it is not called.
    func pingDaemon(_ work: @escaping @Sendable (Bool) -> Void) {
        let ping = Message.call(
            destination: BlueZName.service, path: .root, interface: "org.freedesktop.DBus.Peer", member: "Ping")
        connection?.call(ping, timeout: DaemonLink.defaultTimeout) { result in
            work(result.failure?.name != DBusError.Name.noReply)
        }
    }

    // MARK: Registration

    override func obstacle(on adapter: Adapter1) -> RegistrationState.Obstacle? {
        adapter.interfaces.contains(.gattManager) ? nil : .support
    }

    override package func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterChanged(adapter, let fields) where fields.contains(.capabilities):
            forEachCharacteristic { $0.report() }
        case .deviceChanged(let device, let fields, _):
            guard fields.contains(.isConnected), let values = tree[device] else { return }
            linkChanged(of: device, isConnected: values.isConnected, isBonded: values.keepsKeys)
        case .deviceRemoved(let device): linkChanged(of: device, isConnected: false, isBonded: false)
        case .adapterAdded, .adapterChanged, .adapterRemoved, .deviceAdded, .attributeAdded, .attributeChanged,
            .attributeRemoved:
            break
        }
        super.treeChanged(change, in: tree)
    }

    private func linkChanged(of device: ObjectKey, isConnected: Bool, isBonded: Bool) {
        guard exported != nil else { return }
        forEachCharacteristic { $0.linkChanged(of: device, isConnected: isConnected, isBonded: isBonded) }
    }

    /// Reports what centrals have written without response.
    func receiveWrites() {
        forEachCharacteristic { characteristic in
            for socket in characteristic.writeSockets { socket.catchUp() }
        }
    }

    private func forEachCharacteristic(_ body: (CharacteristicRecord) -> Void) {
        for characteristic in service.characteristics { characteristics[characteristic.id].map(body) }
    }

    override func forgetHandles() {
        handles = [:]
        withdraw()
    }

    override func ended() { delegate = nil }

    // MARK: Objects

    /// In the order of the characteristics and descriptors, which becomes that of the handles.
    override func export() -> Bool {
        guard let connection, let link = client.daemon.connectionNumber, exported?.link != link else { return false }
        withdraw()
        let hasChosenHandles = capabilities.needsExplicitHandles && chooseHandles()
        let servicePath = path.appending("service0")
        let record = AttributeRecord(service.id, service.uuid, of: self)
        var objects = [
            ExportedObject(path, isObjectManager: true),
            ExportedObject(servicePath, [ServerTables.service.bound(to: record)]),
        ]
        for (index, characteristic) in service.characteristics.enumerated() {
            let path = servicePath.appending("char\(index)")
            let record = CharacteristicRecord(characteristic, path: path, parent: servicePath, of: self)
            characteristics[characteristic.id] = record
            objects.append(ExportedObject(path, [ServerTables.characteristic.bound(to: record)]))
            for (index, descriptor) in characteristic.descriptors.enumerated() {
                let record = ValueRecord(
                    descriptor.id, descriptor.uuid, descriptor.flags, path: path.appending("desc\(index)"),
                    parent: path, of: self)
                descriptors.append(record)
                objects.append(ExportedObject(record.path, [ServerTables.descriptor.bound(to: record)]))
            }
        }
        for object in objects { connection.export(object) }
        exported = (link, objects.map(\.path))
        return hasChosenHandles
    }

    /// Chooses handles if an attribute lacks one.
    /// - Returns: Whether there are any.
    private func chooseHandles() -> Bool {
        guard !service.attributes.allSatisfy({ handles[$0] != nil }) else { return false }
        handles = client.handleLayout.place(service)
        return true
    }

    override func withdraw() {
        guard let old = exported else { return }
        exported = nil
        if client.daemon.connectionNumber == old.link { for path in old.paths { connection?.unexport(path) } }
        for descriptor in descriptors { descriptor.forget() }
        forEachCharacteristic { $0.close() }
        (characteristics, descriptors) = ([:], [])
    }
}
