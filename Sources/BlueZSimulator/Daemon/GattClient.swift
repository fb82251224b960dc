import Foundation

/// The attributes of connected devices: discovery of services, and what clients read, write and subscribe to
/// (`src/gatt-client.c`).
struct GattClient: Sendable {
    struct Link: Sendable {
        /// Whether it is to be encrypted before anything else.
        fileprivate var isSecured = false
        fileprivate var security = LinkSecurity.none
        /// Whether no request is sent any more, because the security was refused.
        fileprivate var isStalled = false
        /// Seconds between two objects that are put on the bus; 0 for all of them at once.
        fileprivate var exportDelay: Double
        /// The requests that have no response yet, by their numbers.
        fileprivate(set) var requests: [UInt64: Request] = [:]
        /// The numbers of BlueZ's own reads of the battery level that have no response yet.
        fileprivate var batteryReads: Set<UInt64> = []
    }

    struct Request: Sendable {
        /// The handle of the declaration.
        let handle: UInt16
        let isSubscription: Bool
        let request: AttributeRequest
        /// The error of a request that is sent again when the link is more secure.
        var refusal: UInt8?
        var isRetried = false
        let conclude: Conclusion
    }

    /// Takes the response to a request, or the error of a link that has ended.
    typealias Conclusion = @Sendable (inout GattClient, AttributeResult, inout Core) -> Void

    private(set) var links: [DeviceKey: Link] = [:]
    private(set) var tables: [DeviceKey: RemoteTable] = [:]
    private var requestCount: UInt64 = 0

    /// The clients that have a session of notifications.
    var owners: Set<String> { Set(tables.values.lazy.flatMap { $0.attributes.values.lazy.flatMap(\.clients) }) }

    /// Whether devices get their objects at the moment, one by one; until that is done no call is carried out.
    func isExporting(_ core: Core) -> Bool { links.keys.contains { core.alarms.contains(.export($0)) } }

    private subscript(key: AttributeKey) -> RemoteAttribute? {
        get { tables[key.device]?.attributes[key.handle] }
        set { tables[key.device]?.attributes[key.handle] = newValue }
    }

    /// The attributes of a device in the order of their handles.
    private func attributes(of key: DeviceKey) -> [(key: AttributeKey, value: RemoteAttribute)] {
        (tables[key]?.attributes ?? [:]).sorted { $0.key < $1.key }.map { (key.attribute($0.key), $0.value) }
    }

    // MARK: Reading

    mutating func readValue(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        let offset = Int(call.options(0)["offset"]?.number ?? 0)
        guard links[key.device] != nil else { throw .notConnected }
        if let reading = self[key]?.reading {
            guard reading.offset == offset, !reading.isLost else { throw .underWay }
            self[key]?.reading?.calls.append(call.id)
        } else {
            self[key]?.reading = ReadOperation(offset: offset, calls: [call.id])
            send(.read(offset: offset), key, &core) { $0.concludeRead(key, $1, &$2) }
        }
    }

    private mutating func concludeRead(_ key: AttributeKey, _ result: AttributeResult, _ core: inout Core) {
        guard let operation = self[key]?.reading else { return }
        self[key]?.reading = nil
        let known = core.tree.attribute(key)?.properties["Value"]?.bytes ?? []
        switch result {
        case .bytes(let bytes):
            // What was known before the offset is kept, and the value is announced as a whole.
            var value = Array(known.prefix(operation.offset))
            value += Array(repeating: 0, count: operation.offset - value.count) + bytes
            core.setValue(value, of: key)
            for call in operation.calls { core.reply(call, .bytes(bytes)) }
        case .error(let code):
            // BlueZ stores what precedes the end that it did not find.
            if code == ATTError.invalidOffset { core.setValue(known, of: key) }
            for call in operation.calls { core.fail(call, .attribute(code)) }
        }
    }

    // MARK: Writing

    mutating func writeValue(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        let options = call.options(1)
        let offset = Int(options["offset"]?.number ?? 0)
        guard let bytes = call.arguments[0].bytes, let attribute = self[key] else { throw .doesNotExist }
        guard !attribute.isClaimed else { throw .notAuthorized }
        guard links[key.device] != nil else { throw .notConnected }
        guard attribute.sockets[.write] == nil else { throw .notPermitted("Write acquired") }
        guard !attribute.isWriting else { throw .underWay }
        // Subscriptions are made by StartNotify only.
        guard attribute.uuid != AttributeDatabase.configuration else { throw .notPermitted("Write not permitted") }
        let type =
            attribute.object.interface == InterfaceName.descriptor
            ? .request : try Self.writeType(options["type"]?.text, offset: offset, flags: attribute.flags)
        let request = AttributeRequest.Kind.write(offset: offset, bytes: bytes, type: type)
        guard type != .command else {
            guard let mtu = core.tree.devices[key.device]?.mtu, bytes.count <= mtu - 3 else {
                throw .failed("Failed to initiate write")
            }
            sendUntimed(request, to: attribute.requestHandle, key.device, &core)
            // It is queued, which is the last that BlueZ reports about it.
            return core.reply(call.id)
        }
        self[key]?.isWriting = true
        send(request, key, &core) { client, result, core in
            client[key]?.isWriting = false
            switch result {
            case .bytes: core.reply(call.id)
            case .error(let code): core.fail(call.id, .attribute(code))
            }
        }
    }

    /// Returns the kind of a write. A kind that the caller asks for is not compared with the flags.
    private static func writeType(
        _ type: String?, offset: Int, flags: Set<CharacteristicFlag>
    ) throws(DaemonError) -> VirtualWriteType {
        switch type?.lowercased() {
        case nil where flags.contains(.reliableWrite), "reliable": return .reliable
        case nil where flags.contains(.write), "request": return .request
        case nil where flags.contains(.writeWithoutResponse) && offset == 0: return .command
        case "command" where offset == 0: return .command
        default: throw .notSupported
        }
    }

    // MARK: Subscriptions

    mutating func startNotify(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        guard let attribute = self[key] else { throw .doesNotExist }
        guard attribute.canNotify else { throw .notSupported }
        guard attribute.sockets[.notify] == nil else { throw .notPermitted("Notify acquired") }
        if attribute.clients.contains(call.client) {
            guard attribute.armed.contains(call.client) else { throw .underWay }
            return core.reply(call.id)
        }
        self[key]?.clients.append(call.client)
        // Without a link the subscription waits for the next one.
        guard links[key.device] != nil else { return core.reply(call.id) }
        arm(call.client, at: key, call: call.id, &core)
    }

    mutating func stopNotify(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard self[call.attribute]?.clients.contains(call.client) == true else {
            throw .failed("No notify session started")
        }
        endSession(of: call.client, call.attribute, &core)
        core.reply(call.id)
    }

    private mutating func endSession(of client: String, _ key: AttributeKey, _ core: inout Core) {
        self[key]?.removeClient(client)
        close(.notify, of: key, &core)
        guard let attribute = self[key], attribute.armed.isEmpty else { return }
        if attribute.isConfigured, links[key.device] != nil {
            self[key]?.isConfigured = false
            send(.configure(0), key, isSubscription: true, &core) { _, _, _ in }
        }
        setNotifying(false, key, &core)
    }

    mutating func clientLeft(_ client: String, _ core: inout Core) {
        for device in tables.keys.sorted() {
            for (key, attribute) in attributes(of: device) where attribute.clients.contains(client) {
                endSession(of: client, key, &core)
            }
        }
    }

    /// The subscription of the first client is written to the peer; later ones need no request.
    ///
    /// - Parameter call: Nil for a subscription that is renewed on a new link.
    private mutating func arm(_ client: String, at key: AttributeKey, call: CallID?, _ core: inout Core) {
        guard let attribute = self[key] else { return }
        let isBeingConfigured = links[key.device]?.requests.values.contains {
            $0.isSubscription && $0.handle == key.handle
        }
        if attribute.isConfigured, isBeingConfigured != true {
            return concludeSubscription(key, owner: client, call: call, .bytes([]), &core)
        }
        self[key]?.isConfigured = true
        // A second client at the same time writes the same again, so that the replies keep their order.
        send(.configure(attribute.configurationBits), key, isSubscription: true, &core) {
            $0.concludeSubscription(key, owner: client, call: call, $1, &$2)
        }
    }

    private mutating func concludeSubscription(
        _ key: AttributeKey, owner: String, call: CallID?, _ result: AttributeResult, _ core: inout Core
    ) {
        guard self[key]?.clients.contains(owner) == true else {
            // The client has stopped in the meantime.
            if let call { core.reply(call) }
            return
        }
        switch result {
        case .bytes:
            self[key]?.armed.insert(owner)
            setNotifying(true, key, &core)
            if let call { core.reply(call) }
        case .error(let code):
            self[key]?.removeClient(owner)
            if self[key]?.armed.isEmpty == true { self[key]?.isConfigured = false }
            if let call { core.fail(call, .attribute(code)) }
        }
    }

    private func setNotifying(_ isNotifying: Bool, _ key: AttributeKey, _ core: inout Core) {
        guard core.tree.attribute(key)?.properties["Notifying"] == .bool(!isNotifying) else { return }
        core.set("Notifying", to: .bool(isNotifying), of: key)
    }

    /// Takes a notification or an indication. BlueZ announces it once for each session, so that with two sessions each
    /// client on the bus receives it twice.
    mutating func valueCame(_ value: CentralValue, of device: DeviceKey, _ core: inout Core) {
        let key = device.attribute(value.handle - 1)
        guard let attribute = self[key] else { return }
        if let level = value.bytes.first, attribute.uuid == Self.batteryLevel,
            core.tree.devices[device]?.batteryLevel != nil
        {
            setBatteryLevel(level, of: device, &core)
        }
        switch attribute.sockets[.notify] {
        case .open(let socket): core.perform(.transmit(socket, value.bytes))
        case .pending, .lost: break
        case nil: for _ in attribute.armed { core.setValue(value.bytes, of: key) }
        }
    }

    // MARK: Sockets

    mutating func acquireNotify(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        guard let attribute = self[key] else { throw .doesNotExist }
        guard links[key.device] != nil else { throw .notConnected }
        guard attribute.sockets[.notify] == nil else { throw .notPermitted("Notify acquired") }
        guard attribute.clients.isEmpty else { throw .underWay }
        guard attribute.flags.contains(.notify) || core.traits.acquiresIndications && attribute.canNotify else {
            throw .notSupported
        }
        self[key]?.clients.append(call.client)
        self[key]?.sockets[.notify] = .pending
        self[key]?.isConfigured = true
        send(.configure(attribute.configurationBits), key, isSubscription: true, &core) {
            $0.concludeAcquisition(key, owner: call.client, call: call.id, $1, &$2)
        }
    }

    /// The subscription is in effect, or was refused. Values that came before this moment are lost, as with BlueZ.
    private mutating func concludeAcquisition(
        _ key: AttributeKey, owner: String, call: CallID, _ result: AttributeResult, _ core: inout Core
    ) {
        switch self[key]?.sockets[.notify] {
        case .pending: break
        case .lost: return
        case .open, nil: return core.fail(call, .failed("Operation failed"))
        }
        switch result {
        case .bytes:
            self[key]?.armed = [owner]
            open(.notify, of: key, call: call, &core)
        case .error(let code):
            guard core.traits.answersRefusedAcquisitions || links[key.device] == nil else { return lose(key) }
            self[key]?.removeClient(owner)
            self[key]?.sockets[.notify] = nil
            self[key]?.isConfigured = false
            core.fail(call, .attribute(code))
        }
    }

    /// Without a reply the characteristic stays acquired until the link ends (`register_notify_io_cb`).
    private mutating func lose(_ key: AttributeKey) { self[key]?.sockets[.notify] = .lost }

    /// Whether a client waits for a socket of a device that it will never get.
    func hasLostAcquisition(_ device: DeviceKey) -> Bool {
        tables[device]?.attributes.values.contains { $0.sockets[.notify] == .lost } ?? false
    }

    mutating func acquireWrite(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        guard let attribute = self[key] else { throw .doesNotExist }
        guard !attribute.isClaimed else { throw .notAuthorized }
        guard links[key.device] != nil else { throw .notConnected }
        guard attribute.sockets[.write] == nil else { throw .notPermitted("Write acquired") }
        guard attribute.flags.contains(.writeWithoutResponse) else { throw .notSupported }
        open(.write, of: key, call: call.id, &core)
    }

    private mutating func open(_ kind: AcquiredSocket.Kind, of key: AttributeKey, call: CallID, _ core: inout Core) {
        let socket = SocketID(number: core.nextNumber())
        self[key]?.sockets[kind] = .open(socket)
        core.set(kind.rawValue, to: .bool(true), of: key)
        core.flush()
        core.perform(.openSocket(socket, call, mtu: core.tree.devices[key.device]?.mtu ?? 23))
    }

    private mutating func close(_ kind: AcquiredSocket.Kind, of key: AttributeKey, _ core: inout Core) {
        guard case .open(let socket)? = self[key]?.sockets.removeValue(forKey: kind) else { return }
        core.perform(.closeSocket(socket))
        core.set(kind.rawValue, to: .bool(false), of: key)
    }

    /// Takes packets of a client, each a write command; one that is longer than the link allows is dropped.
    mutating func packetsCame(_ packets: [[UInt8]], from socket: SocketID, _ core: inout Core) {
        guard let key = owner(of: socket), let handle = self[key]?.requestHandle, links[key.device] != nil,
            let mtu = core.tree.devices[key.device]?.mtu
        else { return }
        for bytes in packets where !bytes.isEmpty && bytes.count <= mtu - 3 {
            sendUntimed(.write(offset: 0, bytes: bytes, type: .command), to: handle, key.device, &core)
        }
    }

    mutating func socketClosed(_ socket: SocketID, _ core: inout Core) {
        guard let key = owner(of: socket), let attribute = self[key] else { return }
        if attribute.sockets[.write] == .open(socket) {
            close(.write, of: key, &core)
        } else if let client = attribute.clients.first {
            endSession(of: client, key, &core)
        }
    }

    /// A fault: closes the sockets of a device. Its links stay.
    mutating func loseSockets(of address: VirtualAddress, _ core: inout Core) {
        for key in tables.keys.filter({ $0.address == address }).sorted() { closeSockets(of: key, &core) }
        core.flush()
    }

    /// Sockets end with their link, and are not renewed with the next one.
    private mutating func closeSockets(of device: DeviceKey, _ core: inout Core) {
        for (key, attribute) in attributes(of: device) {
            close(.write, of: key, &core)
            guard attribute.sockets[.notify] != nil else { continue }
            self[key]?.clients = []
            self[key]?.armed = []
            close(.notify, of: key, &core)
        }
    }

    private func owner(of socket: SocketID) -> AttributeKey? {
        for (device, table) in tables {
            let found = table.attributes.first { $0.value.sockets.values.contains(.open(socket)) }
            if let found { return device.attribute(found.key) }
        }
        return nil
    }

    // MARK: Requests

    private mutating func send(
        _ kind: AttributeRequest.Kind, _ key: AttributeKey, isSubscription: Bool = false, _ core: inout Core,
        _ conclude: @escaping Conclusion
    ) {
        guard let link = links[key.device], let attribute = self[key] else { return }
        if link.requests.isEmpty, !link.isStalled {
            core.alarms.set(.requestTimeout(key.device), to: core.now + Self.requestTimeout)
        }
        requestCount += 1
        let handle = isSubscription ? attribute.configurationHandle : attribute.requestHandle
        let request = AttributeRequest(id: requestCount, handle: handle, kind: kind)
        links[key.device]?.requests[requestCount] = Request(
            handle: key.handle, isSubscription: isSubscription, request: request, conclude: conclude)
        if !link.isStalled { core.order(.request(key.device, request)) }
    }

    /// Sends a command, or a request of BlueZ's own, whose response is not waited for.
    private mutating func sendUntimed(
        _ kind: AttributeRequest.Kind, to handle: UInt16, _ key: DeviceKey, _ core: inout Core
    ) {
        requestCount += 1
        guard links[key]?.isStalled == false else { return }
        core.order(.request(key, AttributeRequest(id: requestCount, handle: handle, kind: kind)))
    }

    /// In seconds; then the link is given up (core specification 5.3, volume 3, part F, 3.3.3).
    static let requestTimeout: TimeInterval = 30

    mutating func responded(_ key: DeviceKey, _ id: UInt64, _ result: AttributeResult, _ core: inout Core) {
        if links[key]?.batteryReads.remove(id) != nil { return batteryCame(result, of: key, &core) }
        guard let link = links[key], !link.isStalled, let request = link.requests[id] else { return }
        let goal = security(for: request, result, of: key, core)
        if goal == nil { links[key]?.requests[id] = nil }
        if case .error(let code) = result, goal != nil {
            links[key]?.requests[id]?.refusal = code
            // There is no reply then, also if the link is encrypted and the request succeeds.
            let attribute = key.attribute(request.handle)
            if request.isSubscription, self[attribute]?.sockets[.notify] == .pending,
                !core.traits.answersRefusedAcquisitions
            {
                lose(attribute)
            }
        }
        core.alarms.remove(.requestTimeout(key))
        if links[key]?.requests.values.contains(where: { $0.refusal == nil }) == true {
            core.alarms.set(.requestTimeout(key), to: core.now + Self.requestTimeout)
        }
        if let goal { core.order(.secure(key, goal)) } else { request.conclude(&self, result, &core) }
    }

    // MARK: Security

    /// The security to which the link is raised for a request that was refused; nil if it is not (`change_security` of
    /// `src/shared/att.c`).
    private func security(
        for request: Request, _ result: AttributeResult, of key: DeviceKey, _ core: Core
    ) -> LinkSecurity? {
        guard case .error(let code) = result, let security = links[key]?.security,
            !request.isRetried || !core.traits.retriesSecurityOnce
        else { return nil }
        switch code {
        case ATTError.insufficientEncryption: return security < .encrypted ? .encrypted : nil
        case ATTError.insufficientAuthentication: return LinkSecurity(rawValue: security.rawValue + 1)
        default: return nil
        }
    }

    /// The security of a link was raised to this level: sends the requests again that were refused.
    mutating func secured(_ key: DeviceKey, _ security: LinkSecurity, _ core: inout Core) {
        guard let link = links[key] else { return }
        links[key]?.security = security
        if link.isSecured { open(key, &core) }
        for (id, request) in link.requests.sorted(by: { $0.key < $1.key }) where request.refusal != nil {
            links[key]?.requests[id]?.refusal = nil
            links[key]?.requests[id]?.isRetried = true
            core.order(.request(key, request.request))
        }
    }

    /// A pairing has failed. If the link stays up, the requests that wait for it fail if the pairing was cancelled, and else
    /// block all others.
    mutating func pairingFailed(_ failure: PairingFailure, _ key: DeviceKey, _ core: inout Core) {
        guard let link = links[key] else { return }
        guard failure == .cancelled else {
            guard core.traits.stallsAfterRefusal else { return }
            links[key]?.isStalled = true
            return core.alarms.remove(.requestTimeout(key))
        }
        if link.isSecured { open(key, &core) }
        for (id, request) in link.requests.sorted(by: { $0.key < $1.key }) {
            guard let code = request.refusal else { continue }
            links[key]?.requests[id] = nil
            request.conclude(&self, .error(code), &core)
        }
    }

    /// The requests of a link fail with it, in their order. Those that wait for a pairing are forgotten, and their
    /// attributes stay occupied.
    private mutating func failRequests(of link: Link, on device: DeviceKey, _ core: inout Core) {
        for (_, request) in link.requests.sorted(by: { $0.key < $1.key }) {
            guard request.refusal != nil, core.traits.losesRetriedRequests else {
                request.conclude(&self, .error(ATTError.unlikely), &core)
                continue
            }
            self[device.attribute(request.handle)]?.reading?.isLost = true
        }
    }

    // MARK: Links

    mutating func linkWentUp(_ key: DeviceKey, exportDelay: Double, isSecured: Bool, _ core: inout Core) {
        links[key] = Link(isSecured: isSecured, exportDelay: exportDelay)
        if !isSecured { open(key, &core) }
    }

    private mutating func open(_ key: DeviceKey, _ core: inout Core) {
        links[key]?.isSecured = false
        // Subscriptions are renewed, the earliest first.
        for (attribute, remote) in attributes(of: key) {
            for client in remote.clients where !remote.armed.contains(client) {
                arm(client, at: attribute, call: nil, &core)
            }
        }
        core.order(.discover(key))
    }

    /// A link has ended. Returns it for ``conclude(_:of:_:)``; nil if there was none.
    mutating func linkWentDown(_ key: DeviceKey, _ core: inout Core) -> Link? {
        guard let link = links.removeValue(forKey: key) else { return nil }
        core.alarms.remove(.requestTimeout(key), .export(key))
        for service in tables[key]?.services ?? [] { core.alarms.remove(.exportService(key.attribute(service.handle))) }
        // Sessions stay, without effect. So does `Notifying`, which BlueZ does not read then.
        for (attribute, _) in attributes(of: key) {
            self[attribute]?.isConfigured = false
            self[attribute]?.armed = []
        }
        return link
    }

    /// Ends what was under way over a link, when its end has been announced.
    mutating func conclude(_ link: Link, of key: DeviceKey, _ core: inout Core) {
        failRequests(of: link, on: key, &core)
        closeSockets(of: key, &core)
    }

    /// Ends the link of a device that is removed, and removes its attributes.
    mutating func remove(_ key: DeviceKey, _ core: inout Core) {
        if let link = links[key] {
            failRequests(of: link, on: key, &core)
            _ = linkWentDown(key, &core)
            core.alarms.remove(.dropLink(key))
            core.order(.disconnect(key))
        }
        for service in tables[key]?.services ?? [] { hide(service, of: key, &core) }
        tables[key] = nil
    }

    // MARK: Services

    /// Discovery has ended, with or without success: BlueZ calls the services resolved in both cases.
    ///
    /// Objects that are not there any more are removed first. Then the new objects are announced, parents first, and then the
    /// UUIDs of all services with `ServicesResolved`. Late objects follow that one by one, unless BlueZ has stored the
    /// device's table before it was started.
    mutating func discovered(
        _ services: [AttributeDatabase.Service], name: String?, of key: DeviceKey, _ core: inout Core
    ) {
        guard let link = links[key], let device = core.tree.devices[key] else { return }
        let isStored = tables[key] == nil && !services.isEmpty && device.storedServices == services
        let isAddition = take(services, of: device, &core)
        if link.exportDelay <= 0 || isStored {
            core.flush()
            export(unshown(of: key, core), &core)
        }
        if !services.isEmpty {
            core.change(key) { $0.storedServices = services }
            let known = services.filter {
                $0.isPrimary && ($0.isAnnounced || core.tree.attribute(key.attribute($0.handle)) != nil)
            }
            core.set(\.gattUUIDs, to: Set(known.map(\.uuid)).sorted(), of: key, announcing: .uuids)
        }
        if isAddition || !device.areServicesResolved {
            // Announced again, although it is the same, if services were added to those of a link.
            core.change(key) { $0.areServicesResolved = true }
            core.announce(.servicesResolved, of: key)
        }
        if let name, !services.isEmpty { core.setName(name, of: key) }
        core.flush()
        exportNext(of: key, &core)
    }

    /// Takes a table: objects of unchanged services stay, and those of changed ones are removed and made again. Returns
    /// whether objects are to be added.
    private mutating func take(_ services: [AttributeDatabase.Service], of device: Device, _ core: inout Core) -> Bool {
        let key = device.key
        for service in tables[key]?.services ?? [] where !services.contains(service) { hide(service, of: key, &core) }
        tables[key, default: RemoteTable()].services = services
        var isAddition = false
        for service in services
        where core.traits.showsClaimedServices || !RemoteTable.claimedServices.contains(service.uuid) {
            tables[key]?.adopt(service, of: device, core.tree.properties)
            guard RemoteTable.keys(of: service, on: key).contains(where: { isUnshown($0, core) }) else { continue }
            isAddition = true
            guard service.appearsAfter > 0 else { continue }
            core.alarms.set(.exportService(key.attribute(service.handle)), to: core.now + service.appearsAfter)
        }
        return isAddition
    }

    private func isUnshown(_ key: AttributeKey, _ core: Core) -> Bool {
        self[key] != nil && core.tree.attribute(key) == nil
    }

    /// The attributes that are due and have no objects, parents first: all of a new service; of a known one those that were
    /// not reached before a link ended.
    private func unshown(of key: DeviceKey, _ core: Core) -> [AttributeKey] {
        (tables[key]?.services ?? []).filter { !core.alarms.contains(.exportService(key.attribute($0.handle))) }
            .flatMap { RemoteTable.keys(of: $0, on: key) }.filter { isUnshown($0, core) }
    }

    /// Adds the next object after a while, or all of them if that takes no time.
    private mutating func exportNext(of key: DeviceKey, _ core: inout Core) {
        guard let link = links[key] else { return }
        let unshown = unshown(of: key, core)
        if link.exportDelay > 0, !unshown.isEmpty {
            return core.alarms.set(.export(key), to: core.now + link.exportDelay)
        }
        export(unshown, &core)
        core.flush()
        readBattery(of: key, &core)
    }

    mutating func exportDue(of key: DeviceKey, _ core: inout Core) {
        export(unshown(of: key, core).prefix(1), &core)
        exportNext(of: key, &core)
    }

    private func export(_ keys: some Sequence<AttributeKey>, _ core: inout Core) {
        for key in keys { if let attribute = self[key] { core.add(attribute.object, as: key) } }
    }

    /// A service that appears later than the others is due.
    mutating func exportService(_ key: AttributeKey, _ core: inout Core) {
        guard let device = core.tree.devices[key.device],
            let service = tables[key.device]?.services.first(where: { $0.handle == key.handle })
        else { return }
        if !service.isAnnounced, service.isPrimary, !device.gattUUIDs.contains(service.uuid) {
            core.set(\.gattUUIDs, to: (device.gattUUIDs + [service.uuid]).sorted(), of: key.device, announcing: .uuids)
            // Announced again, although it is the same.
            core.announce(.servicesResolved, of: key.device)
            core.flush()
        }
        // Otherwise the next of the earlier objects is to come first.
        if !core.alarms.contains(.export(key.device)) { exportNext(of: key.device, &core) }
    }

    /// Removes the objects of a service, children first.
    private mutating func hide(_ service: AttributeDatabase.Service, of device: DeviceKey, _ core: inout Core) {
        core.alarms.remove(.exportService(device.attribute(service.handle)))
        let below = service.characteristics.flatMap { $0.descriptors.map(\.handle) + [$0.handle] }
        for handle in below + [service.handle] {
            let key = device.attribute(handle)
            core.removeAttribute(key)
            for kind in [AcquiredSocket.Kind.notify, .write] {
                if case .open(let socket)? = self[key]?.sockets[kind] { core.perform(.closeSocket(socket)) }
            }
            // Requests are forgotten, and their calls get no reply (`bt_gatt_client_cancel`).
            for (id, request) in links[device]?.requests ?? [:] where request.handle == handle {
                links[device]?.requests[id] = nil
            }
            self[key] = nil
        }
    }

    // MARK: Battery

    /// BlueZ reads the battery level itself when the services are resolved.
    private mutating func readBattery(of key: DeviceKey, _ core: inout Core) {
        guard let device = core.tree.devices[key], device.batteryLevel == nil, !core.alarms.contains(.dropLink(key)),
            let level = batteryCharacteristic(of: key), level.flags.contains(.read)
        else { return }
        sendUntimed(.read(offset: 0), to: level.valueHandle, key, &core)
        links[key]?.batteryReads.insert(requestCount)
    }

    /// BlueZ has read the battery level; it subscribes too.
    private mutating func batteryCame(_ result: AttributeResult, of key: DeviceKey, _ core: inout Core) {
        guard case .bytes(let bytes) = result, let level = bytes.first, let device = core.tree.devices[key],
            links[key] != nil
        else { return }
        setBatteryLevel(level, of: key, &core)
        guard device.batteryLevel == nil else { return }
        if let handle = batteryCharacteristic(of: key)?.configurationHandle {
            sendUntimed(.configure(1), to: handle, key, &core)
        }
        core.flush()
        core.emit(.interfacesAdded(path: device.path, interfaces: [.battery(level)]))
    }

    private func batteryCharacteristic(of key: DeviceKey) -> AttributeDatabase.Characteristic? {
        tables[key]?.services.first { $0.uuid == Self.batteryService }?.characteristics
            .first { $0.uuid == Self.batteryLevel }
    }

    private func setBatteryLevel(_ level: UInt8, of key: DeviceKey, _ core: inout Core) {
        guard let device = core.tree.devices[key], device.batteryLevel != level else { return }
        core.change(key) { $0.batteryLevel = level }
        guard device.batteryLevel != nil else { return }
        core.flush()
        core.emit(
            .propertiesChanged(
                path: device.path, interface: InterfaceName.battery,
                changed: InterfaceState.battery(level).properties, invalidated: []))
    }

    private static let batteryService = "0000180f-0000-1000-8000-00805f9b34fb"
    private static let batteryLevel = "00002a19-0000-1000-8000-00805f9b34fb"
}
