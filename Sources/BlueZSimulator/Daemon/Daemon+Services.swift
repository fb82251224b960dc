import Foundation

/// The table of a connected device: from discovery to objects on the bus.
extension Daemon {
    /// Discovery has ended, well or not: BlueZ calls the services resolved in both cases.
    ///
    /// What is not there any more goes first. Then the UUIDs of all services are told, and that they are resolved; the new
    /// objects come after that, one by one, deeper ones after their parents. Of a device whose table BlueZ has kept on
    /// disk, from before it was started, the objects come first.
    mutating func discovered(_ services: [AttributeDatabase.Service], _ identity: AirIdentity, of key: DeviceKey) {
        guard links[key] != nil, let device = devices[key] else { return }
        let isStored = tables[key] == nil && !services.isEmpty && device.storedServices == services
        let isAddition = take(services, of: key)
        if !services.isEmpty {
            devices[key]?.storedServices = services
            let shown = tables[key]?.order ?? []
            let known = services.filter { $0.isPrimary && ($0.isAnnounced || shown.contains($0.handle)) }
            let uuids = Set(known.map(\.uuid)).sorted()
            if device.gattUUIDs != uuids {
                devices[key]?.gattUUIDs = uuids
                outbox.changed(.device(.uuids), of: .device(key))
            }
        }
        links[key]?.resolvesAfterExport = isStored
        if !isStored { resolve(key, repeating: isAddition) }
        if let name = identity.name, name != device.name, !services.isEmpty {
            devices[key]?.name = name
            outbox.changed(.device(.name), of: .device(key))
            if device.alias == nil { outbox.changed(.device(.alias), of: .device(key)) }
        }
        flush()
        exportNext(of: key)
    }

    private mutating func resolve(_ key: DeviceKey, repeating: Bool) {
        guard let device = devices[key], !device.areServicesResolved || repeating else { return }
        devices[key]?.areServicesResolved = true
        outbox.changed(.device(.servicesResolved), of: .device(key))
    }

    /// Objects of services that are as before stay; what has changed goes, and will come again. Gives whether anything
    /// will.
    private mutating func take(_ services: [AttributeDatabase.Service], of key: DeviceKey) -> Bool {
        let before = tables[key]?.services ?? []
        for service in before where !services.contains(service) { hide(service, of: key) }
        if tables[key] == nil { tables[key] = RemoteTable() }
        tables[key]?.services = services
        var isAddition = false
        let hidden: Set<String> = traits.claimedServices == .hidden ? Self.claimedServices : []
        for service in services where !hidden.contains(service.uuid) {
            adopt(service, of: key)
            let handles = unshown(of: service, key)
            guard !handles.isEmpty else { continue }
            isAddition = true
            if service.appearsAfter > 0 {
                alarms.set(
                    .exportService(AttributeKey(device: key, handle: service.handle)), to: now + service.appearsAfter)
            } else {
                links[key]?.unseen += handles
            }
        }
        return isAddition
    }

    /// The objects of a service that are not on the bus, parents first: all of a new one, and of one that was known those
    /// that a link did not live long enough for.
    private func unshown(of service: AttributeDatabase.Service, _ key: DeviceKey) -> [UInt16] {
        let handles = [service.handle] + service.characteristics.flatMap { [$0.handle] + $0.descriptors.map(\.handle) }
        let shown = Set(tables[key]?.order ?? [])
        return handles.filter { !shown.contains($0) }
    }

    /// Services that BlueZ keeps for itself: generic access, and input devices, which it makes the kernel's.
    static let claimedServices: Set<String> = [
        AttributeDatabase.genericAccess, "00001812-0000-1000-8000-00805f9b34fb",
    ]

    /// Whether an attribute belongs to such a service.
    func isClaimed(_ key: AttributeKey) -> Bool {
        guard let table = tables[key.device] else { return false }
        let service =
            table.characteristics[key.handle]?.serviceHandle ?? table.descriptors[key.handle]?.serviceHandle
        return service.flatMap(table.service).map { Self.claimedServices.contains($0.uuid) } ?? false
    }

    /// Makes the entries of a service's objects, where they are not there.
    private mutating func adopt(_ service: AttributeDatabase.Service, of key: DeviceKey) {
        guard let device = devices[key], let first = service.characteristics.first,
            tables[key]?.characteristics[first.handle] == nil
        else { return }
        let servicePath = device.path + "/service" + Self.digits(service.handle)
        for characteristic in service.characteristics {
            let path = servicePath + "/char" + Self.digits(characteristic.handle)
            tables[key]?.characteristics[characteristic.handle] = RemoteCharacteristic(
                laid: characteristic, path: path, servicePath: servicePath, serviceHandle: service.handle)
            for descriptor in characteristic.descriptors {
                tables[key]?.descriptors[descriptor.handle] = RemoteDescriptor(
                    laid: descriptor, path: path + "/desc" + Self.digits(descriptor.handle), characteristicPath: path,
                    serviceHandle: service.handle)
            }
        }
    }

    static func digits(_ handle: UInt16) -> String {
        let text = String(handle, radix: 16)
        return String(repeating: "0", count: 4 - text.utf8.count) + text
    }

    /// Shows the next object, or all of them when that takes no time.
    mutating func exportNext(of key: DeviceKey) {
        guard let link = links[key] else { return }
        guard link.exportDelay > 0, !link.unseen.isEmpty else {
            for handle in link.unseen { export(handle, of: key) }
            return exportEnded(of: key)
        }
        exporting.insert(key)
        alarms.set(.export(key), to: now + link.exportDelay)
    }

    private mutating func exportEnded(of key: DeviceKey) {
        links[key]?.unseen = []
        flush()
        if links[key]?.resolvesAfterExport == true {
            links[key]?.resolvesAfterExport = false
            resolve(key, repeating: false)
        }
        showBattery(of: key)
        exported(key)
    }

    mutating func exportDue(of key: DeviceKey) {
        guard let handle = links[key]?.unseen.first else { return }
        links[key]?.unseen.removeFirst()
        export(handle, of: key)
        exportNext(of: key)
    }

    private mutating func export(_ handle: UInt16, of key: DeviceKey) {
        tables[key]?.order.append(handle)
        outbox.added(.attribute(AttributeKey(device: key, handle: handle)))
    }

    /// A service that comes late, with all that it has.
    mutating func exportService(_ key: AttributeKey) {
        guard let link = links[key.device], let service = tables[key.device]?.service(key.handle) else { return }
        if !service.isAnnounced, service.isPrimary, devices[key.device]?.gattUUIDs.contains(service.uuid) == false {
            devices[key.device]?.gattUUIDs.append(service.uuid)
            devices[key.device]?.gattUUIDs.sort()
            outbox.changed(.device(.uuids), of: .device(key.device))
            // Told again, although nothing about it has changed.
            outbox.changed(.device(.servicesResolved), of: .device(key.device))
            flush()
        }
        let handles = unshown(of: service, key.device)
        links[key.device]?.unseen += handles
        // Otherwise the next of those before it is due anyhow.
        if link.unseen.isEmpty { exportNext(of: key.device) }
    }

    private mutating func showBattery(of key: DeviceKey) {
        guard devices[key]?.batteryLevel == nil, !disconnecting.contains(key),
            let level = batteryCharacteristic(of: key), level.flags.contains(.read)
        else { return }
        batteryReads += 1
        order(
            .request(
                key,
                AttributeRequest(
                    id: Self.batteryRequest | batteryReads, kind: .read(handle: level.valueHandle, offset: 0))))
    }

    private func batteryCharacteristic(of key: DeviceKey) -> AttributeDatabase.Characteristic? {
        tables[key]?.services.first { $0.uuid == Self.batteryService }?.characteristics
            .first { $0.uuid == Self.batteryLevel }
    }

    /// A level that was read, or that came by itself.
    mutating func setBatteryLevel(_ level: UInt8, of key: DeviceKey) {
        guard let device = devices[key], device.batteryLevel != level else { return }
        devices[key]?.batteryLevel = level
        guard device.batteryLevel != nil else { return }
        flush()
        emit(
            .propertiesChanged(
                path: device.path, interface: InterfaceName.battery,
                changed: [NamedValue(name: "Percentage", value: .byte(level))], invalidated: []))
    }

    /// BlueZ has read the battery for itself; it subscribes too.
    mutating func batteryAnswered(_ result: AttributeResult, of key: DeviceKey) {
        guard case .bytes(let bytes) = result, let level = bytes.first, let device = devices[key], links[key] != nil
        else { return }
        let isNew = device.batteryLevel == nil
        setBatteryLevel(level, of: key)
        guard isNew else { return }
        if let battery = batteryCharacteristic(of: key), battery.canNotify {
            batteryReads += 1
            let subscription = AttributeRequest.Kind.configure(characteristic: battery.handle, bits: 1)
            order(.request(key, AttributeRequest(id: Self.batterySubscription | batteryReads, kind: subscription)))
        }
        flush()
        emit(
            .interfacesAdded(
                path: device.path,
                interfaces: [
                    InterfaceState(
                        name: InterfaceName.battery,
                        properties: [NamedValue(name: "Percentage", value: .byte(level))])
                ]))
    }

    static let batteryService = "0000180f-0000-1000-8000-00805f9b34fb"
    static let batteryLevel = "00002a19-0000-1000-8000-00805f9b34fb"
    /// Marks the requests that BlueZ makes for itself, and among them those that bring no value.
    static let batteryRequest: UInt64 = 1 << 63
    static let batterySubscription: UInt64 = 3 << 62

    // MARK: Going

    /// The peer has said that its services have changed: they are looked for again.
    mutating func servicesChanged(of key: DeviceKey) {
        if links[key] != nil { order(.discover(key)) }
    }

    /// All objects below a device go.
    mutating func hideServices(of key: DeviceKey) {
        for service in tables[key]?.services ?? [] { hide(service, of: key) }
        tables[key] = nil
        links[key]?.unseen = []
        alarms.remove(.export(key))
        exported(key)
    }

    /// A service's objects go, the deepest first.
    private mutating func hide(_ service: AttributeDatabase.Service, of key: DeviceKey) {
        alarms.remove(.exportService(AttributeKey(device: key, handle: service.handle)))
        for characteristic in service.characteristics {
            for descriptor in characteristic.descriptors { hide(descriptor.handle, .descriptor, of: key) }
            hide(characteristic.handle, .characteristic, of: key)
        }
        hide(service.handle, .service, of: key)
    }

    private mutating func hide(_ handle: UInt16, _ kind: AttributeKind, of key: DeviceKey) {
        let attribute = AttributeKey(device: key, handle: handle)
        if tables[key]?.order.contains(handle) == true, let path = path(of: attribute) {
            sayRemoved(
                .attribute(attribute), path: path, interfaces: Self.standardInterfaces + [Self.interface(of: kind)])
        }
        tables[key]?.order.removeAll { $0 == handle }
        for client in tables[key]?.characteristics[handle]?.clients ?? [] { countSubscriber(client.owner, -1) }
        for socket in [
            tables[key]?.characteristics[handle]?.notifySocket?.id,
            tables[key]?.characteristics[handle]?.writeSocket?.id,
        ] {
            if let socket { effects.append(.closeSocket(socket)) }
        }
        // What is under way is forgotten, and its callers are never answered (`bt_gatt_client_cancel`).
        for (id, request) in links[key]?.requests ?? [:] where request.handle == handle {
            links[key]?.requests[id] = nil
        }
        tables[key]?.characteristics[handle] = nil
        tables[key]?.descriptors[handle] = nil
        links[key]?.unseen.removeAll { $0 == handle }
    }

    func path(of key: AttributeKey) -> String? {
        guard let table = tables[key.device] else { return nil }
        if let characteristic = table.characteristics[key.handle] { return characteristic.path }
        if let descriptor = table.descriptors[key.handle] { return descriptor.path }
        return devices[key.device].map { $0.path + "/service" + Self.digits(key.handle) }
    }

    static func interface(of kind: AttributeKind) -> String {
        switch kind {
        case .service: InterfaceName.service
        case .characteristic: InterfaceName.characteristic
        case .descriptor: InterfaceName.descriptor
        }
    }

    static let standardInterfaces = ["org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable"]
}
