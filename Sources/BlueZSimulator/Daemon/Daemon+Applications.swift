import Foundation

/// Programs that serve attributes: `GattManager1` (`src/gatt-database.c`).
extension Daemon {
    mutating func registerApplication(
        at path: String, on index: Int, by client: String, call: CallID
    ) throws(DaemonError) {
        guard application(at: path, on: index, of: client) == nil else { throw .alreadyExists }
        if !registrationFailures.isEmpty { throw registrationFailures.removeFirst() }
        applicationNumber += 1
        let id = ApplicationID(number: applicationNumber)
        applications[id] = LocalApplication(
            id: id, owner: client, path: path, adapter: index, registration: call)
        callClient(
            client, path, InterfaceName.objectManager, "GetManagedObjects", form: .objects,
            for: .applicationObjects(id))
    }

    mutating func unregisterApplication(
        at path: String, on index: Int, by client: String, call: CallID
    ) throws(DaemonError) {
        guard let id = application(at: path, on: index, of: client) else { throw .doesNotExist }
        // One that is still being registered is never answered.
        removeApplication(id)
        reply(call)
    }

    private func application(at path: String, on index: Int, of client: String) -> ApplicationID? {
        applications.values.first { $0.path == path && $0.adapter == index && $0.owner == client }?.id
    }

    /// The program has listed its objects, or could not.
    mutating func applicationAnswered(_ id: ApplicationID, _ answer: ClientReply) {
        guard let application = applications[id], let call = application.registration,
            let database = databases[application.adapter]
        else { return }
        var objects: [ObjectState] = []
        if case .objects(let listed) = answer { objects = listed }
        var builder = ApplicationBuilder(application, in: database, traits: traits)
        do throws(ApplicationBuilder.Failure) {
            try builder.build(objects)
            databases[application.adapter] = builder.database
            applications[id] = builder.application
            applications[id]?.registration = nil
            tellHandles(builder)
            servicesChanged(builder.added, on: application.adapter)
            reply(call)
        } catch {
            // Those that were begun are gone, and their handles are not given again.
            tellHandles(builder)
            _ = builder.database.remove(id)
            databases[application.adapter] = builder.database
            applications[id] = nil
            fail(call, .failed(error.message))
        }
    }

    /// BlueZ writes the handles that it gave, and does not wait for an answer.
    private mutating func tellHandles(_ builder: ApplicationBuilder) {
        for given in builder.handles {
            callClient(
                builder.application.owner, given.path, InterfaceName.properties, "Set",
                [.string(given.interface), .string("Handle"), .variant(.uint16(given.handle))], form: .ignored,
                for: nil)
        }
    }

    /// An application goes, by its program's wish or with it: who waits for it is refused, its services go.
    mutating func removeApplication(_ id: ApplicationID) {
        guard let application = applications.removeValue(forKey: id) else { return }
        clientCalls = clientCalls.filter { $0.value != .applicationObjects(id) }
        for (packet, pending) in packets.sorted(by: { $0.key.number < $1.key.number })
        where pending.object.application == id {
            packetAnswered(packet, .error(ATTError.requestNotSupported))
        }
        for (_, characteristic) in application.characteristics.sorted(by: { $0.key < $1.key }) {
            for socket in characteristic.notifySockets + characteristic.writeSockets {
                effects.append(.closeSocket(socket.id))
            }
        }
        servicesWent(databases[application.adapter]?.remove(id) ?? [], on: application.adapter)
    }

    mutating func removeApplications(of client: String) {
        for application in applications.values.sorted(by: { $0.id.number < $1.id.number })
        where application.owner == client {
            removeApplication(application.id)
        }
    }

    // MARK: Services

    private mutating func servicesWent(_ services: [AttributeDatabase.Service], on index: Int) {
        guard !services.isEmpty else { return }
        servicesChanged(services, on: index)
        func isKept(_ entry: (key: UInt16, value: UInt16)) -> Bool {
            !services.contains { $0.range.contains(Int(entry.key)) }
        }
        for key in serverLinks.keys where key.adapter == index {
            let kept = serverLinks[key]?.configurations.filter(isKept)
            serverLinks[key]?.configurations = kept ?? [:]
        }
        for key in bondedConfigurations.keys where key.adapter == index {
            let kept = bondedConfigurations[key]?.filter(isKept)
            bondedConfigurations[key] = kept
        }
    }

    /// The adapter's UUIDs are told, and centrals that want to know are told the handles.
    private mutating func servicesChanged(_ services: [AttributeDatabase.Service], on index: Int) {
        guard let database = databases[index] else { return }
        let serviceChanged =
            database.services.first { $0.uuid == AttributeDatabase.genericAttribute }?
            .characteristics.first?.valueHandle ?? 0
        let uuids = database.services.filter { $0.application != nil }.map(\.uuid)
        if adapters[index]?.servedUUIDs != uuids {
            adapters[index]?.servedUUIDs = uuids
            outbox.changed(.adapter(.uuids), of: .adapter(index))
        }
        for service in services {
            let first = service.handle
            let last = UInt16(service.range.upperBound)
            send(
                [UInt8(first & 0xFF), UInt8(first >> 8), UInt8(last & 0xFF), UInt8(last >> 8)],
                fromHandle: serviceChanged, on: index, confirmation: .none)
        }
        for (_, link) in serverLinks.sorted(by: { $0.key < $1.key }).filter({ $0.key.adapter == index }) {
            order(.announceServices(link.end))
        }
    }

    // MARK: Calls to programs

    /// Calls an object of a client.
    mutating func callClient(
        _ client: String, _ path: String, _ interface: String, _ member: String,
        _ arguments: [BusValue] = [], form: ClientCall.Form, timeout: Double = 25, for purpose: CallPurpose?
    ) {
        clientCallNumber += 1
        if let purpose { clientCalls[clientCallNumber] = purpose }
        effects.append(
            .call(
                ClientCall(
                    id: clientCallNumber, client: client, path: path, interface: interface, member: member,
                    arguments: arguments, form: form, timeout: timeout)))
    }

    /// A client has answered, or will not.
    mutating func clientAnswered(_ id: UInt64, _ answer: ClientReply, now: TimeInterval) {
        self.now = now
        guard let purpose = clientCalls.removeValue(forKey: id) else {
            if case .socket(let socket, _) = answer { effects.append(.closeSocket(socket)) }
            return
        }
        switch purpose {
        case .applicationObjects(let id): applicationAnswered(id, answer)
        case .advertisementObjects(let key): advertisementObjectsCame(key, answer)
        case .advertisementProperties(let key): advertisementPropertiesCame(key, answer)
        case .read(let packet): readAnswered(packet, answer)
        case .write(let packet): writeAnswered(packet, answer)
        case .acquireWrite(let object, let packet, let key): writeSocketAnswered(object, packet, key, answer)
        case .acquireNotify(let object, let key): notifySocketAnswered(object, key, answer)
        }
        refreshWatches()
    }

    /// A client's object has said something.
    mutating func clientSaid(_ signal: ClientSignal, _ client: String, now: TimeInterval) {
        self.now = now
        switch signal {
        case .propertiesChanged(let path, let interface, let changed, let invalidated):
            switch interface {
            case InterfaceName.characteristic: valueChanged(at: path, of: client, changed, invalidated)
            case InterfaceName.advertisement: advertisementChanged(at: path, of: client, changed, invalidated)
            default: break
            }
        case .interfacesRemoved(let path, let interfaces):
            guard interfaces.contains(InterfaceName.service) else { return }
            removeService(at: path, of: client)
        }
        refreshWatches()
    }

    /// A service's object has gone while its application stays: its attributes go with it.
    private mutating func removeService(at path: String, of client: String) {
        for application in applications.values.sorted(by: { $0.id.number < $1.id.number })
        where application.owner == client {
            guard let handle = application.services[path],
                let gone = databases[application.adapter]?.remove(service: handle)
            else { continue }
            applications[application.id]?.services[path] = nil
            servicesWent([gone], on: application.adapter)
        }
    }
}

/// What a call to a client is for.
enum CallPurpose: Hashable, Sendable {
    case applicationObjects(ApplicationID)
    case advertisementObjects(AdvertisementKey)
    case advertisementProperties(AdvertisementKey)
    case read(PacketID)
    case write(PacketID)
    case acquireWrite(ObjectID, PacketID, DeviceKey)
    case acquireNotify(ObjectID, DeviceKey)
}
