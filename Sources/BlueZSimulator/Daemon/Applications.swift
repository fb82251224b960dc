/// The GATT applications that programs have registered, and the attributes that each adapter serves
/// (`src/gatt-database.c`).
struct Applications: Sendable {
    /// By adapter.
    var databases: [Int: AttributeDatabase] = [:]
    var byID: [ApplicationID: LocalApplication] = [:]

    /// In the order of their registration, also those that are being registered.
    var all: [LocalApplication] { byID.values.sorted { $0.id.number < $1.id.number } }

    var owners: [String] { byID.values.map(\.owner) }

    // MARK: Objects

    subscript(object: ObjectID) -> ServedObject? {
        get { byID[object.application]?.objects[object.path] }
        set { byID[object.application]?.objects[object.path] = newValue }
    }

    /// The application that a call of `GattManager1` names.
    subscript(call: MethodCall) -> LocalApplication? {
        byID.values.first { $0.path == call.path(0) && $0.adapter == call.adapter && $0.owner == call.client }
    }

    /// Returns the object that serves the value of an attribute.
    func object(of handle: UInt16, on index: Int) -> ObjectID? {
        if case .object(let object)? = databases[index]?.attributes[handle]?.content { object } else { nil }
    }

    /// Returns the object whose subscriptions are written to a descriptor.
    func object(notifiedBy handle: UInt16, on index: Int) -> ObjectID? {
        databases[index]?.place(of: handle).flatMap { object(of: $0.characteristic.valueHandle, on: index) }
    }

    /// All characteristics and descriptors, in the order of their applications and paths.
    private var objects: [(id: ObjectID, object: ServedObject)] {
        all.flatMap { application in
            application.objects.sorted { $0.key < $1.key }.map {
                (ObjectID(application: application.id, path: $0.key), $0.value)
            }
        }
    }

    // MARK: Calls

    func call(
        _ object: ObjectID, _ member: String, _ core: inout Core, _ arguments: [BusValue] = [],
        reply: ClientCall.Reply = .none, _ handler: ReplyHandler? = nil
    ) {
        guard let application = byID[object.application], let interface = self[object]?.interface else {
            return
        }
        core.call(
            application.owner, object.path, interface, member, arguments, reply: reply,
            timeout: reply == .none ? 25 : 300, handler)
    }

    // MARK: Subscriptions and sockets

    mutating func startNotify(_ object: ObjectID, _ core: inout Core) {
        call(object, "StartNotify", &core)
        self[object]?.subscriptions += 1
    }

    /// Returns the socket for a central's values; for no particular central the oldest (`match_client_att`).
    func notifySocket(of characteristic: ServedObject, for key: DeviceKey?, _ traits: DaemonTraits) -> ServedSocket? {
        characteristic.notifySockets.first { socket in
            traits.hasNotificationSocketPerCentral ? key == nil || socket.central == key : !socket.isReplaced
        }
    }

    mutating func closeSockets(
        of key: DeviceKey, _ sockets: WritableKeyPath<ServedObject, [ServedSocket]>, _ core: inout Core
    ) {
        for (object, characteristic) in objects {
            for socket in characteristic[keyPath: sockets] where socket.central == key {
                core.perform(.closeSocket(socket.id))
            }
            self[object]?[keyPath: sockets].removeAll { $0.central == key }
        }
    }

    /// Ends the subscription of a central; of any one if no central is given.
    mutating func unsubscribe(_ object: ObjectID, by key: DeviceKey?, _ core: inout Core) {
        guard let characteristic = self[object], characteristic.subscriptions > 0 else { return }
        self[object]?.subscriptions -= 1
        let isLast = characteristic.subscriptions == 1
        if isLast || core.traits.hasNotificationSocketPerCentral,
            let socket = notifySocket(of: characteristic, for: key, core.traits)
        {
            self[object]?.notifySockets.removeAll { $0.id == socket.id }
            core.perform(.closeSocket(socket.id))
        } else if isLast {
            call(object, "StopNotify", &core)
        }
    }

    /// Forgets a socket that a program has closed. Returns false if the socket is not a program's.
    mutating func socketClosed(_ id: SocketID) -> Bool {
        for sockets in [\ServedObject.notifySockets, \.writeSockets] {
            guard let object = object(with: id, sockets) else { continue }
            self[object]?[keyPath: sockets].removeAll { $0.id == id }
            return true
        }
        return false
    }

    func object(with id: SocketID, _ sockets: KeyPath<ServedObject, [ServedSocket]>) -> ObjectID? {
        objects.first { $0.object[keyPath: sockets].contains { $0.id == id } }?.id
    }

    // MARK: Registration

    mutating func register(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard self[call] == nil else { throw .alreadyExists }
        if !core.faults.registerApplication.isEmpty { throw core.faults.registerApplication.removeFirst() }
        let id = ApplicationID(number: core.nextNumber())
        byID[id] = LocalApplication(
            id: id, owner: call.client, path: call.path(0), adapter: call.adapter, registration: call.id)
        core.requestObjects(of: call) { $0.server.objectsCame(id, $1, &$0.core) }
    }

    /// Removes an application, closes its sockets, and returns the services that are removed with it.
    mutating func remove(_ application: LocalApplication, _ core: inout Core) -> [AttributeDatabase.Service] {
        byID[application.id] = nil
        for (_, characteristic) in application.objects.sorted(by: { $0.key < $1.key }) {
            for socket in characteristic.notifySockets + characteristic.writeSockets {
                core.perform(.closeSocket(socket.id))
            }
        }
        return databases[application.adapter]?.remove { $0.application == application.id } ?? []
    }

    /// Removes a service when its object is gone and its application stays.
    mutating func removeService(at path: String, of application: LocalApplication) -> [AttributeDatabase.Service] {
        guard let handle = byID[application.id]?.services.removeValue(forKey: path) else { return [] }
        return databases[application.adapter]?.remove { $0.handle == handle } ?? []
    }
}
