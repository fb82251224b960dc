import DBus
import Foundation
import GATT
import Reactor

/// An application's inside: the machine, what it orders, and the objects that BlueZ sees.
///
/// On the client's loop, and unchecked because of that. The client keeps it until its observation ends, which is when the
/// application was ended and BlueZ has heard of it.
final class ApplicationCore: BlueZObserver, @unchecked Sendable {
    typealias Completion = @Sendable (Result<Void, BlueZError>) -> Void

    /// The objects of one set of services on one connection.
    private struct Exported {
        let generation: ApplicationMachine.Generation
        let link: UInt64
        var paths: [ObjectPath] = []
        var characteristics: [ServerAttributeID: CharacteristicRecord] = [:]
        var descriptors: [DescriptorRecord] = []
    }

    let client: BlueZClient
    private let adapter: ObjectKey
    private(set) var delegate: (any ServerDelegate)?
    private var stateChanged: @Sendable (RegistrationState) -> Void
    private let root: ObjectPath
    private var machine = ApplicationMachine()
    private var state = RegistrationState.idle
    private let timer: LoopTimer
    /// For the answer to a registration.
    private let patience: LoopTimer
    private let registrar: Registrar
    private var sets: [ApplicationMachine.Generation: [ServerService]] = [:]
    private var lastGeneration: ApplicationMachine.Generation = 0
    private var exported: Exported?
    /// What BlueZ has given, or 0.
    var handles: [ServerAttributeID: UInt16] = [:]
    /// What they were before they were forgotten for a try.
    private var forgotten: [ServerAttributeID: UInt16]?
    private var waiting: [(generation: ApplicationMachine.Generation, completion: Completion)] = []
    private var whenEnded: [@Sendable () -> Void] = []
    var observation: Observation?

    init(
        client: BlueZClient, adapter: ObjectKey, delegate: any ServerDelegate,
        stateChanged: @escaping @Sendable (RegistrationState) -> Void
    ) {
        self.client = client
        self.adapter = adapter
        self.delegate = delegate
        self.stateChanged = stateChanged
        timer = LoopTimer(on: client.loop)
        patience = LoopTimer(on: client.loop)
        registrar = Registrar(
            client: client, adapter: adapter, manager: "org.bluez.GattManager1", noun: "Application")
        root = ObjectPath.root.appending("org").appending("bluecap").appending("application\(client.makeID())")
    }

    var connection: Connection? { client.daemon.connection }

    /// What the daemon can do with the adapter.
    var capabilities: DaemonCapabilities {
        client.withTree { $0[adapter: adapter]?.capabilities } ?? DaemonCapabilities()
    }

    /// Whether the daemon calls that has our objects. Anybody on the bus could.
    func isFromDaemon(_ invocation: Invocation) -> Bool { client.isFromDaemon(invocation) }

    // MARK: Wishes

    func update(_ services: [ServerService], completion: @escaping Completion) {
        guard machine.state != .ended else { return client.loop.post { completion(.failure(.closedApplication)) } }
        if services == sets[lastGeneration] ?? [], case .registered(lastGeneration) = machine.state {
            return client.loop.post { completion(.success(())) }
        }
        lastGeneration += 1
        sets[lastGeneration] = services
        waiting.append((lastGeneration, completion))
        perform(machine.wished(lastGeneration, isEmpty: services.isEmpty))
    }

    func end(completion: @escaping @Sendable () -> Void) {
        guard machine.state != .ended else { return client.loop.post(completion) }
        whenEnded.append(completion)
        perform(machine.end())
    }

    func notify(_ id: ServerAttributeID, _ update: ServerUpdate, completion: @escaping Completion) {
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

    // MARK: What happens

    func availabilityChanged(_ availability: Availability, in client: BlueZClient) {}
    func batchEnded() {}

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterAdded(adapter), .adapterChanged(adapter, _):
            guard let values = tree[adapter: adapter] else { return }
            if case .adapterChanged(_, let fields) = change, fields.contains(.capabilities) {
                for record in exported?.characteristics.values ?? [:].values { record.report() }
            }
            // Services stay registered while an adapter is off.
            perform(machine.obstacleChanged(values.interfaces.contains(.gattManager) ? nil : .support))
        case .adapterRemoved(adapter):
            perform(machine.obstacleChanged(.adapter))
        case .deviceChanged(let handle, let fields, _):
            guard fields.contains(.isConnected) else { return }
            let device = tree[handle]
            linkChanged(of: handle, isConnected: device.isConnected, isBonded: device.keepsSubscriptions, in: tree)
        case .deviceRemoved(let handle):
            linkChanged(of: handle, isConnected: false, isBonded: false, in: tree)
        case .adapterAdded, .adapterChanged, .adapterRemoved, .deviceAdded, .attributeAdded, .attributeChanged,
            .attributeRemoved:
            return
        }
    }

    private func linkChanged(
        of handle: DeviceHandle, isConnected: Bool, isBonded: Bool, in tree: borrowing ObjectTree
    ) {
        guard let exported, let device = tree.key(of: handle) else { return }
        for record in exported.characteristics.values {
            record.linkChanged(of: device, isConnected: isConnected, isBonded: isBonded)
        }
    }

    // MARK: Effects

    private func perform(_ effects: [ApplicationMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .register(let generation, let request): register(generation, request)
            case .unregister(let generation): unregister(generation)
            case .unregisterLast(let generation, let request):
                unregister(generation, completion: reply(to: request))
            case .forgetHandles:
                forgotten = handles
                handles = [:]
                withdraw()
            case .restoreHandles:
                if let forgotten { handles = forgotten }
                forgotten = nil
            case .startTimer(let seconds):
                timer.start(after: seconds) { [weak self] in
                    guard let self else { return }
                    perform(machine.timerFired())
                }
            case .cancelTimer: timer.cancel()
            case .report(let state): report(state)
            case .settled(let generation, let error): settle(generation, error)
            case .withdrawn: confirmEnd()
            case .ended: ended()
            }
        }
    }

    private func register(_ generation: ApplicationMachine.Generation, _ request: ApplicationMachine.RequestID) {
        export(generation)
        registrar.register(path(of: generation), completion: reply(to: request))
        awaitReply(to: request)
    }

    private func unregister(
        _ generation: ApplicationMachine.Generation, completion: @escaping @Sendable (BlueZError?) -> Void = { _ in }
    ) {
        if exported?.generation == generation { withdraw() }
        registrar.unregister(path(of: generation), completion: completion)
    }

    private func reply(to request: ApplicationMachine.RequestID) -> @Sendable (BlueZError?) -> Void {
        { [weak self] error in
            guard let self else { return }
            perform(machine.replied(request, error: error))
        }
    }

    private func report(_ new: RegistrationState) {
        if case .waiting = new { withdraw() }
        guard new != state else { return }
        state = new
        let stateChanged = stateChanged
        client.loop.post { stateChanged(new) }
    }

    private func settle(_ generation: ApplicationMachine.Generation, _ error: BlueZError?) {
        if error == nil {
            sets = sets.filter { $0.key >= generation }
            forgotten = nil
        }
        let settled = waiting.filter { $0.generation <= generation }
        waiting.removeAll { $0.generation <= generation }
        guard !settled.isEmpty else { return }
        client.loop.post { for (_, completion) in settled { completion(error.map { .failure($0) } ?? .success(())) } }
    }

    private func awaitReply(to request: ApplicationMachine.RequestID) {
        patience.start(after: machine.patience) { [weak self] in
            guard let self else { return }
            perform(machine.unanswered(request))
        }
    }

    private func confirmEnd() {
        let whenEnded = whenEnded
        self.whenEnded = []
        client.loop.post { for work in whenEnded { work() } }
    }

    private func ended() {
        withdraw()
        timer.cancel()
        patience.cancel()
        confirmEnd()
        delegate = nil
        stateChanged = { _ in }
        sets = [:]
        observation = nil
    }

    // MARK: Objects

    private func path(of generation: ApplicationMachine.Generation) -> ObjectPath {
        root.appending("set\(generation)")
    }

    /// In the order of the services, characteristics and descriptors, which becomes that of the handles.
    private func export(_ generation: ApplicationMachine.Generation) {
        guard let connection = client.daemon.connection, let number = client.daemon.connectionNumber else { return }
        if let exported, exported.generation == generation, exported.link == number { return }
        withdraw()
        var exported = Exported(generation: generation, link: number)
        let services = sets[generation] ?? []
        if capabilities.needsExplicitHandles { chooseHandles(services) }
        let root = path(of: generation)
        let places = services.enumerated().map { ($1.id, root.appending("service\($0)")) }
        let paths = Dictionary(places, uniquingKeysWith: { first, _ in first })
        var objects = [ExportedObject(root, isObjectManager: true)]
        for (index, service) in services.enumerated() {
            let servicePath = root.appending("service\(index)")
            let record = ServiceRecord(service, includes: service.includes.compactMap { paths[$0] }, core: self)
            objects.append(ExportedObject(servicePath, [ServerTables.service.bound(to: record)]))
            for (index, characteristic) in service.characteristics.enumerated() {
                let path = servicePath.appending("char\(index)")
                let record = CharacteristicRecord(characteristic, path: path, parent: servicePath, core: self)
                exported.characteristics[characteristic.id] = record
                objects.append(ExportedObject(path, [ServerTables.characteristic.bound(to: record)]))
                for (index, descriptor) in characteristic.descriptors.enumerated() {
                    let record = DescriptorRecord(
                        descriptor, path: path.appending("desc\(index)"), parent: path, core: self)
                    exported.descriptors.append(record)
                    objects.append(ExportedObject(record.path, [ServerTables.descriptor.bound(to: record)]))
                }
            }
        }
        for object in objects { connection.export(object) }
        exported.paths = objects.map(\.path)
        self.exported = exported
    }

    /// For services whose attributes do not all have a handle.
    private func chooseHandles(_ services: [ServerService]) {
        for service in services where !service.attributes.allSatisfy({ handles[$0] != nil }) {
            let includes = service.includes.count { id in services.contains { $0.id == id } }
            handles.merge(client.handleLayout.place(service, includes: includes)) { $1 }
            machine.handlesChosen()
        }
    }

    private func withdraw() {
        guard let exported else { return }
        self.exported = nil
        if client.daemon.connectionNumber == exported.link {
            for path in exported.paths { client.daemon.connection?.unexport(path) }
        }
        for descriptor in exported.descriptors { descriptor.forget() }
        for record in exported.characteristics.values.sorted(by: { $0.id.rawValue < $1.id.rawValue }) { record.close() }
    }
}

extension Device1 {
    /// Whether BlueZ keeps what a central has subscribed to when its link ends (`device_is_bonded`).
    fileprivate var keepsSubscriptions: Bool { fields.contains(.isBonded) ? isBonded : isPaired }
}

extension BlueZClient {
    func keepsSubscriptions(of device: ObjectKey) -> Bool {
        daemon.objects.handle(of: device).map { daemon.objects[$0].keepsSubscriptions } ?? false
    }

    /// Whether a call comes from the daemon whose objects are in the tree.
    func isFromDaemon(_ invocation: Invocation) -> Bool { invocation.sender == daemon.owner }
}
