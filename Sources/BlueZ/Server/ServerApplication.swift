import DBus
import Foundation
import GATT
import Reactor

/// Services of this process as BlueZ offers them to centrals, from ``BlueZClient/serve(on:delegate:stateChanged:)`` on.
/// They are registered again whenever daemon, bus or adapter return.
///
/// Every method may be called on any thread; completions run on the client's loop, once, never inside the call. Releasing
/// this ends it.
package final class ServerApplication: Sendable {
    private let registration: Registration<ApplicationContent>

    fileprivate init(_ registration: Registration<ApplicationContent>) { self.registration = registration }

    deinit { end() }

    /// Replaces the services by these, in one step. Attributes that keep their identifier keep their handle. All
    /// subscriptions end: to BlueZ all of it is new.
    ///
    /// After an error that is known to pass BlueZ is asked again for 7.5 seconds, and for half a minute if it had taken the
    /// same before; after any other one `completion` is called at once.
    ///
    /// - Parameter completion: Success when BlueZ has taken these or newer ones, which may be long: it waits for daemon and
    ///   adapter, and for the answer of a daemon that hangs. When BlueZ refuses them it fails with the reason, and the
    ///   services that it had before come back.
    package func update(_ services: [ServerService], completion: @escaping BlueZCompletion<Void> = { _ in }) {
        registration.client.loop.perform { [registration] in
            registration.update(services, completion: completion)
        }
    }

    /// Sends values to the subscribers of a characteristic, or to some of them: see ``UpdateSender``. Each value is sent, also
    /// one that equals the last. Each subscriber receives its values in the order of the calls.
    ///
    /// - Parameter completion: Called for each value, in the order of the values. A notification succeeds when the bus or the
    ///   sockets have taken it. If the characteristic only indicates, one value follows the other, and a value succeeds when
    ///   as many confirmations have arrived as subscribers have a socket and a link. The first confirmation suffices if no
    ///   subscriber has a socket, up to 5.68, and after 30 s. From 5.76 to 5.79 BlueZ does not report confirmations of what
    ///   was written to a socket: the value succeeds when the socket has taken it. The errors:
    ///   - `notConnected`: no central is subscribed, or all have left.
    ///   - ``BlueZError/centralUnreachable``: no receiver has an open socket, or BlueZ cannot send to one central.
    ///   - `noReply`: no confirmation in 30 s; the values queued behind it fail too.
    ///   - `invalidArguments`: more than 512 bytes, or an empty value for chosen centrals.
    package func notify(
        _ characteristic: ServerAttributeID, _ updates: [ServerUpdate],
        completion: @escaping BlueZCompletion<Void>
    ) {
        registration.client.loop.perform { [content = registration.content] in
            for update in updates { content.notify(characteristic, update, completion: completion) }
        }
    }

    /// Unregisters everything. What waits fails; the delegate is released. A second call does nothing.
    ///
    /// - Parameter completion: When BlueZ has confirmed it, or after 5 seconds; later only if BlueZ has not answered the
    ///   registration yet.
    package func end(completion: @escaping @Sendable () -> Void = {}) {
        registration.client.loop.perform { [registration] in registration.end(completion: completion) }
    }
}

extension BlueZClient {
    /// Begins to offer services on an adapter, none at first. Any thread.
    ///
    /// The adapter need not be there. While it is off the services stay registered.
    /// - Parameters:
    ///   - delegate: Is held until the application was ended.
    ///   - stateChanged: Called on the loop at each change, never inside a call.
    package func serve(
        on adapter: ObjectKey, delegate: any ServerDelegate,
        stateChanged: @escaping @Sendable (RegistrationState) -> Void = { _ in }
    ) -> ServerApplication {
        let content = ApplicationContent(client: self, adapter: adapter, delegate: delegate)
        let registration = Registration(content, on: adapter, client: self, stateChanged: stateChanged)
        registration.begin()
        return ServerApplication(registration)
    }
}

/// The services of an application as the objects that BlueZ reads.
///
/// On the client's loop, and unchecked because of that.
final class ApplicationContent: RegisteredContent, @unchecked Sendable {
    typealias Generation = RegistrationMachine.Generation

    static let rules = RegistrationMachine.Rules.application
    static let manager = "org.bluez.GattManager1"
    static let noun = "Application"
    static let lastTimeout = 5.0

    /// The objects of one set of services on one connection.
    private struct Exported {
        let generation: Generation
        let link: UInt64
        var paths: [ObjectPath] = []
        var characteristics: [ServerAttributeID: CharacteristicRecord] = [:]
        var descriptors: [DescriptorRecord] = []

        /// The characteristics in one order, in which changes are reported.
        var records: [CharacteristicRecord] { characteristics.values.sorted { $0.id.rawValue < $1.id.rawValue } }
    }

    let client: BlueZClient
    private let adapter: ObjectKey
    private(set) var delegate: (any ServerDelegate)?
    private let root: ObjectPath
    private var exported: Exported?
    /// What BlueZ has given, or 0.
    var handles: [ServerAttributeID: UInt16] = [:]
    /// What they were before they were forgotten for a try.
    private var forgotten: [ServerAttributeID: UInt16]?

    init(client: BlueZClient, adapter: ObjectKey, delegate: any ServerDelegate) {
        self.client = client
        self.adapter = adapter
        self.delegate = delegate
        root = ObjectPath.root.appending("org").appending("bluecap").appending("application\(client.makeID())")
    }

    var connection: Connection? { client.daemon.connection }

    /// What the daemon can do with the adapter.
    var capabilities: DaemonCapabilities {
        client.withTree { $0[adapter: adapter]?.capabilities } ?? DaemonCapabilities()
    }

    /// Whether the daemon that has our objects makes the call. Any program on the bus could.
    func isFromDaemon(_ invocation: Invocation) -> Bool { client.daemon.isFromDaemon(invocation) }

    func notify(_ id: ServerAttributeID, _ update: ServerUpdate, completion: @escaping BlueZCompletion<Void>) {
        guard let record = exported?.characteristics[id] else {
            return client.loop.post { completion(.failure(.nobodySubscribed)) }
        }
        record.notify(update, completion: completion)
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

    var first: [ServerService]? { nil }
    func isEmpty(_ services: [ServerService]) -> Bool { services.isEmpty }
    func path(of generation: Generation) -> ObjectPath { root.appending("set\(generation)") }

    /// Services stay registered while an adapter is off.
    func obstacle(on adapter: Adapter1) -> RegistrationState.Obstacle? {
        adapter.interfaces.contains(.gattManager) ? nil : .support
    }

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterChanged(adapter, let fields) where fields.contains(.capabilities):
            for record in exported?.records ?? [] { record.report() }
        case .deviceChanged(let device, let fields, _):
            guard fields.contains(.isConnected), let values = tree[device] else { return }
            linkChanged(of: device, isConnected: values.isConnected, isBonded: values.keepsKeys)
        case .deviceRemoved(let device): linkChanged(of: device, isConnected: false, isBonded: false)
        case .adapterAdded, .adapterChanged, .adapterRemoved, .deviceAdded, .attributeAdded, .attributeChanged,
            .attributeRemoved:
            return
        }
    }

    private func linkChanged(of device: ObjectKey, isConnected: Bool, isBonded: Bool) {
        for record in exported?.records ?? [] {
            record.linkChanged(of: device, isConnected: isConnected, isBonded: isBonded)
        }
    }

    func forgetHandles() {
        forgotten = handles
        handles = [:]
        withdraw(nil)
    }

    func restoreHandles() {
        if let forgotten { handles = forgotten }
        forgotten = nil
    }

    func keepHandles() { forgotten = nil }

    func ended() { delegate = nil }

    // MARK: Objects

    /// In the order of the services, characteristics and descriptors, which becomes that of the handles.
    func export(_ services: [ServerService], _ generation: Generation) -> Bool {
        guard let connection = client.daemon.connection, let number = client.daemon.connectionNumber else {
            return false
        }
        if let exported, exported.generation == generation, exported.link == number { return false }
        withdraw(nil)
        var exported = Exported(generation: generation, link: number)
        let hasChosenHandles = capabilities.needsExplicitHandles && chooseHandles(services)
        let root = path(of: generation)
        let places = services.enumerated().map { ($1.id, root.appending("service\($0)")) }
        let paths = Dictionary(places, uniquingKeysWith: { first, _ in first })
        var objects = [ExportedObject(root, isObjectManager: true)]
        for (index, service) in services.enumerated() {
            let servicePath = root.appending("service\(index)")
            let record = ServiceRecord(service, includes: service.includes.compactMap { paths[$0] }, content: self)
            objects.append(ExportedObject(servicePath, [ServerTables.service.bound(to: record)]))
            for (index, characteristic) in service.characteristics.enumerated() {
                let path = servicePath.appending("char\(index)")
                let record = CharacteristicRecord(characteristic, path: path, parent: servicePath, content: self)
                exported.characteristics[characteristic.id] = record
                objects.append(ExportedObject(path, [ServerTables.characteristic.bound(to: record)]))
                for (index, descriptor) in characteristic.descriptors.enumerated() {
                    let record = DescriptorRecord(
                        descriptor, path: path.appending("desc\(index)"), parent: path, content: self)
                    exported.descriptors.append(record)
                    objects.append(ExportedObject(record.path, [ServerTables.descriptor.bound(to: record)]))
                }
            }
        }
        for object in objects { connection.export(object) }
        exported.paths = objects.map(\.path)
        self.exported = exported
        return hasChosenHandles
    }

    /// Chooses handles for services that lack some.
    /// - Returns: Whether there are any.
    private func chooseHandles(_ services: [ServerService]) -> Bool {
        let incomplete = services.filter { !$0.attributes.allSatisfy { handles[$0] != nil } }
        for service in incomplete {
            let includes = service.includes.count { id in services.contains { $0.id == id } }
            handles.merge(client.handleLayout.place(service, includes: includes)) { $1 }
        }
        return !incomplete.isEmpty
    }

    func withdraw(_ generation: Generation?) {
        guard let exported, generation == nil || generation == exported.generation else { return }
        self.exported = nil
        if client.daemon.connectionNumber == exported.link {
            for path in exported.paths { client.daemon.connection?.unexport(path) }
        }
        for descriptor in exported.descriptors { descriptor.forget() }
        for record in exported.records { record.close() }
    }
}

extension BlueZClient {
    /// Whether BlueZ keeps what a central has subscribed to when its link ends (`device_is_bonded`).
    func keepsSubscriptions(of device: ObjectKey) -> Bool {
        daemon.objects[device]?.keepsKeys ?? false
    }
}
