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
        /// Discovered services whose objects are not due yet.
        fileprivate var late: Set<UInt16> = []
        /// Whether objects are put on the bus at the moment, one by one.
        fileprivate var isExporting = false
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
        /// Whether it has been sent again.
        var isRetried = false
        let conclude: Conclusion
    }

    /// Takes the response to a request, or the error of a link that has ended.
    typealias Conclusion = @Sendable (inout GattClient, AttributeResult, inout Core) -> Void

    private(set) var links: [DeviceKey: Link] = [:]
    private(set) var tables: [DeviceKey: RemoteTable] = [:]
    /// Whether devices get their objects at the moment; until that is done no call is carried out.
    var isExporting: Bool { links.values.contains(where: \.isExporting) }
    /// A fault: devices that do not reply to calls of their attributes.
    var unanswering: Set<VirtualAddress> = []
    private var requestCount: UInt64 = 0

    /// The clients that have a session of notifications.
    var owners: Set<String> {
        Set(tables.values.lazy.flatMap { $0.attributes.values.lazy.flatMap(\.clients) })
    }

    mutating func reset() {
        links = [:]
        tables = [:]
    }

    private func attribute(_ key: AttributeKey) -> RemoteAttribute? { tables[key.device]?[key.handle] }

    private mutating func change(_ key: AttributeKey, _ body: (inout RemoteAttribute) -> Void) {
        guard tables[key.device]?[key.handle] != nil else { return }
        body(&tables[key.device]![key.handle]!)
    }

    /// The attributes of a device in the order of their handles.
    private func attributes(of key: DeviceKey) -> [(key: AttributeKey, value: RemoteAttribute)] {
        (tables[key]?.attributes ?? [:]).sorted { $0.key < $1.key }.map {
            (AttributeKey(device: key, handle: $0.key), $0.value)
        }
    }

    // MARK: Reading

    mutating func readValue(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        let offset = Int(call.options(0)["offset"]?.number ?? 0)
        guard links[key.device] != nil else { throw .notConnected }
        guard let attribute = attribute(key) else { throw .failed("Failed to send read request") }
        if let reading = attribute.reading {
            guard reading.offset == offset, !reading.isLost else { throw .underWay }
            return change(key) { $0.reading?.calls.append(call.id) }
        }
        change(key) { $0.reading = ReadOperation(offset: offset, calls: [call.id]) }
        send(.read(offset: offset), key, &core) { $0.concludeRead(key, $1, &$2) }
    }

    private mutating func concludeRead(_ key: AttributeKey, _ result: AttributeResult, _ core: inout Core) {
        guard let operation = attribute(key)?.reading else { return }
        change(key) { $0.reading = nil }
        var known: [UInt8] = []
        if case .bytes(let bytes)? = core.tree.attribute(key)?.properties["Value"] { known = bytes }
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
        guard case .bytes(let bytes) = call.arguments[0], let attribute = attribute(key) else { throw .doesNotExist }
        guard !attribute.isClaimed else { throw .notAuthorized }
        guard links[key.device] != nil else { throw .notConnected }
        guard attribute.writeSocket == nil else { throw .notPermitted("Write acquired") }
        guard !attribute.isWriting else { throw .underWay }
        // Subscriptions are made by StartNotify only.
        guard attribute.uuid != AttributeDatabase.configuration else { throw .notPermitted("Write not permitted") }
        let type =
            attribute.isDescriptor
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
        change(key) { $0.isWriting = true }
        send(request, key, &core) { client, result, core in
            client.change(key) { $0.isWriting = false }
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
        case "reliable": return .reliable
        case "request": return .request
        case "command":
            guard offset == 0 else { throw .notSupported }
            return .command
        case nil:
            if flags.contains(.reliableWrite) { return .reliable }
            if flags.contains(.write) { return .request }
            guard flags.contains(.writeWithoutResponse), offset == 0 else { throw .notSupported }
            return .command
        default: throw .notSupported
        }
    }

    // MARK: Subscriptions

    mutating func startNotify(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        guard let attribute = attribute(key) else { throw .doesNotExist }
        guard attribute.canNotify else { throw .notSupported }
        guard attribute.notifySocket == nil else { throw .notPermitted("Notify acquired") }
        if attribute.clients.contains(call.client) {
            guard attribute.armed.contains(call.client) else { throw .underWay }
            return core.reply(call.id)
        }
        change(key) { $0.clients.append(call.client) }
        // Without a link the subscription waits for the next one.
        guard links[key.device] != nil else { return core.reply(call.id) }
        arm(call.client, at: key, call: call.id, &core)
    }

    mutating func stopNotify(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        guard attribute(call.attribute)?.clients.contains(call.client) == true else {
            throw .failed("No notify session started")
        }
        endSession(of: call.client, call.attribute, &core)
        core.reply(call.id)
    }

    private mutating func endSession(of client: String, _ key: AttributeKey, _ core: inout Core) {
        change(key) { $0.removeClient(client) }
        closeNotifySocket(key, &core)
        guard let attribute = attribute(key), attribute.armed.isEmpty else { return }
        if attribute.isConfigured, links[key.device] != nil {
            change(key) { $0.isConfigured = false }
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
        guard let attribute = attribute(key) else { return }
        let isBeingConfigured = links[key.device]?.requests.values.contains {
            $0.isSubscription && $0.handle == key.handle
        }
        if attribute.isConfigured, isBeingConfigured != true {
            return concludeSubscription(key, owner: client, call: call, .bytes([]), &core)
        }
        change(key) { $0.isConfigured = true }
        // A second client at the same time writes the same again, so that the replies keep their order.
        send(.configure(attribute.configurationBits), key, isSubscription: true, &core) {
            $0.concludeSubscription(key, owner: client, call: call, $1, &$2)
        }
    }

    private mutating func concludeSubscription(
        _ key: AttributeKey, owner: String, call: CallID?, _ result: AttributeResult, _ core: inout Core
    ) {
        guard attribute(key)?.clients.contains(owner) == true else {
            // The client has stopped in the meantime.
            if let call { core.reply(call) }
            return
        }
        switch result {
        case .bytes:
            change(key) { $0.armed.insert(owner) }
            setNotifying(true, key, &core)
            if let call { core.reply(call) }
        case .error(let code):
            change(key) { attribute in
                attribute.removeClient(owner)
                if attribute.armed.isEmpty { attribute.isConfigured = false }
            }
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
        let key = AttributeKey(device: device, handle: value.handle - 1)
        guard let attribute = attribute(key) else { return }
        if let level = value.bytes.first, attribute.uuid == Self.batteryLevel,
            core.tree.devices[device]?.batteryLevel != nil
        {
            setBatteryLevel(level, of: device, &core)
        }
        switch attribute.notifySocket {
        case .open(let socket): core.perform(.transmit(socket, value.bytes))
        case .pending, .lost: break
        case nil: for _ in attribute.armed { core.setValue(value.bytes, of: key) }
        }
    }

    // MARK: Sockets

    mutating func acquireNotify(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        guard let attribute = attribute(key) else { throw .doesNotExist }
        guard links[key.device] != nil else { throw .notConnected }
        guard attribute.notifySocket == nil else { throw .notPermitted("Notify acquired") }
        guard attribute.clients.isEmpty else { throw .underWay }
        guard attribute.flags.contains(.notify) || core.traits.acquiresIndications && attribute.canNotify else {
            throw .notSupported
        }
        change(key) { attribute in
            attribute.clients.append(call.client)
            attribute.notifySocket = .pending
            attribute.isConfigured = true
        }
        send(.configure(attribute.configurationBits), key, isSubscription: true, &core) {
            $0.concludeAcquisition(key, owner: call.client, call: call.id, $1, &$2)
        }
    }

    /// The subscription is in effect, or was refused. Values that came before this moment are lost, as with BlueZ.
    private mutating func concludeAcquisition(
        _ key: AttributeKey, owner: String, call: CallID, _ result: AttributeResult, _ core: inout Core
    ) {
        switch attribute(key)?.notifySocket {
        case .pending: break
        case .lost: return
        case .open, nil: return core.fail(call, .failed("Operation failed"))
        }
        switch result {
        case .bytes:
            let socket = core.nextSocket()
            change(key) { attribute in
                attribute.notifySocket = .open(socket)
                attribute.armed = Set(attribute.clients)
            }
            open(socket, "NotifyAcquired", of: key, call: call, &core)
        case .error(let code):
            guard core.traits.answersRefusedAcquisitions || links[key.device] == nil else { return lose(key) }
            change(key) { attribute in
                attribute.removeClient(owner)
                attribute.notifySocket = nil
                attribute.isConfigured = false
            }
            core.fail(call, .attribute(code))
        }
    }

    /// Without a reply the characteristic stays acquired until the link ends (`register_notify_io_cb`).
    private mutating func lose(_ key: AttributeKey) { change(key) { $0.notifySocket = .lost } }

    /// Whether a client waits for a socket of a device that it will never get.
    func hasLostAcquisition(_ device: DeviceKey) -> Bool {
        tables[device]?.attributes.values.contains { $0.notifySocket == .lost } ?? false
    }

    mutating func acquireWrite(_ call: MethodCall, _ core: inout Core) throws(DaemonError) {
        let key = call.attribute
        guard let attribute = attribute(key) else { throw .doesNotExist }
        guard !attribute.isClaimed else { throw .notAuthorized }
        guard links[key.device] != nil else { throw .notConnected }
        guard attribute.writeSocket == nil else { throw .notPermitted("Write acquired") }
        guard attribute.flags.contains(.writeWithoutResponse) else { throw .notSupported }
        let socket = core.nextSocket()
        change(key) { $0.writeSocket = socket }
        open(socket, "WriteAcquired", of: key, call: call.id, &core)
    }

    private func open(
        _ socket: SocketID, _ property: String, of key: AttributeKey, call: CallID,
        _ core: inout Core
    ) {
        core.set(property, to: .bool(true), of: key)
        core.flush()
        core.perform(.openSocket(socket, call, mtu: core.tree.devices[key.device]?.mtu ?? 23))
    }

    private mutating func closeNotifySocket(_ key: AttributeKey, _ core: inout Core) {
        guard let socket = attribute(key)?.notifySocket else { return }
        change(key) { $0.notifySocket = nil }
        guard let id = socket.id else { return }
        core.perform(.closeSocket(id))
        core.set("NotifyAcquired", to: .bool(false), of: key)
    }

    private mutating func closeWriteSocket(_ key: AttributeKey, _ core: inout Core) {
        guard let socket = attribute(key)?.writeSocket else { return }
        change(key) { $0.writeSocket = nil }
        core.perform(.closeSocket(socket))
        core.set("WriteAcquired", to: .bool(false), of: key)
    }

    /// Takes packets of a client, each a write command; one that is longer than the link allows is dropped.
    mutating func packetsCame(_ packets: [[UInt8]], from socket: SocketID, _ core: inout Core) {
        guard let key = owner(of: socket), let handle = attribute(key)?.requestHandle, links[key.device] != nil,
            let mtu = core.tree.devices[key.device]?.mtu
        else { return }
        for bytes in packets where !bytes.isEmpty && bytes.count <= mtu - 3 {
            sendUntimed(.write(offset: 0, bytes: bytes, type: .command), to: handle, key.device, &core)
        }
    }

    mutating func socketClosed(_ socket: SocketID, _ core: inout Core) {
        guard let key = owner(of: socket), let attribute = attribute(key) else { return }
        if attribute.writeSocket == socket {
            closeWriteSocket(key, &core)
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
            closeWriteSocket(key, &core)
            guard attribute.notifySocket != nil else { continue }
            change(key) { attribute in
                attribute.clients = []
                attribute.armed = []
            }
            closeNotifySocket(key, &core)
        }
    }

    private func owner(of socket: SocketID) -> AttributeKey? {
        for (device, table) in tables {
            let found = table.attributes.first { $0.value.notifySocket?.id == socket || $0.value.writeSocket == socket }
            if let found { return AttributeKey(device: device, handle: found.key) }
        }
        return nil
    }

    // MARK: Requests

    private mutating func send(
        _ kind: AttributeRequest.Kind, _ key: AttributeKey, isSubscription: Bool = false, _ core: inout Core,
        _ conclude: @escaping Conclusion
    ) {
        guard let link = links[key.device], let attribute = attribute(key) else { return }
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
            let attribute = AttributeKey(device: key, handle: request.handle)
            if request.isSubscription, self.attribute(attribute)?.notifySocket == .pending,
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

    /// A pairing was cancelled and the link stays up: requests that waited for it fail.
    mutating func securityCancelled(_ key: DeviceKey, _ core: inout Core) {
        guard let link = links[key] else { return }
        if link.isSecured { open(key, &core) }
        for (id, request) in link.requests.sorted(by: { $0.key < $1.key }) {
            guard let code = request.refusal else { continue }
            links[key]?.requests[id] = nil
            request.conclude(&self, .error(code), &core)
        }
    }

    /// A pairing has failed. If the link stays up, the requests that wait for it block all others.
    mutating func securityRefused(_ key: DeviceKey, _ core: inout Core) {
        guard core.traits.stallsAfterRefusal, links[key] != nil else { return }
        links[key]?.isStalled = true
        core.alarms.remove(.requestTimeout(key))
    }

    /// The requests of a link fail with it, in their order. Those that wait for a pairing are forgotten, and their
    /// attributes stay occupied.
    private mutating func failRequests(of link: Link, on device: DeviceKey, _ core: inout Core) {
        for (_, request) in link.requests.sorted(by: { $0.key < $1.key }) {
            guard request.refusal != nil, core.traits.losesRetriedRequests else {
                request.conclude(&self, .error(ATTError.unlikely), &core)
                continue
            }
            change(AttributeKey(device: device, handle: request.handle)) { $0.reading?.isLost = true }
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
        core.alarms.remove(.requestTimeout(key))
        core.alarms.remove(.export(key))
        for service in tables[key]?.services ?? [] {
            core.alarms.remove(.exportService(AttributeKey(device: key, handle: service.handle)))
        }
        // Sessions stay, without effect. So does `Notifying`, which BlueZ does not read then.
        for (attribute, _) in attributes(of: key) {
            change(attribute) { attribute in
                attribute.isConfigured = false
                attribute.armed = []
            }
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
            links[key] = nil
            for alarm in [Alarm.dropLink(key), .requestTimeout(key)] { core.alarms.remove(alarm) }
            core.order(.disconnect(key))
        }
        for service in tables[key]?.services ?? [] { hide(service, of: key, &core) }
        tables[key] = nil
        core.alarms.remove(.export(key))
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
        guard links[key] != nil, let device = core.tree.devices[key] else { return }
        let isStored = tables[key] == nil && !services.isEmpty && device.storedServices == services
        let areLate = links[key].map { $0.exportDelay > 0 } == true && !isStored
        let isAddition = take(services, of: device, &core)
        if !areLate {
            core.flush()
            exportAll(of: key, &core)
        }
        if !services.isEmpty {
            core.change(key) { $0.storedServices = services }
            let known = services.filter { service in
                service.isPrimary
                    && (service.isAnnounced
                        || core.tree.attribute(AttributeKey(device: key, handle: service.handle)) != nil)
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
            guard RemoteTable.handles(of: service).contains(where: { isUnshown($0, of: key, core) }) else { continue }
            isAddition = true
            guard service.appearsAfter > 0 else { continue }
            links[key]?.late.insert(service.handle)
            core.alarms.set(
                .exportService(AttributeKey(device: key, handle: service.handle)), to: core.now + service.appearsAfter)
        }
        return isAddition
    }

    private func isUnshown(_ handle: UInt16, of key: DeviceKey, _ core: Core) -> Bool {
        tables[key]?[handle] != nil && core.tree.attribute(AttributeKey(device: key, handle: handle)) == nil
    }

    /// The attributes that are due and have no objects, parents first: all of a new service; of a known one those that were
    /// not reached before a link ended.
    private func unshown(of key: DeviceKey, _ core: Core) -> [UInt16] {
        let due = tables[key]?.services.filter { links[key]?.late.contains($0.handle) == false } ?? []
        return due.flatMap(RemoteTable.handles).filter { isUnshown($0, of: key, core) }
    }

    /// Adds the next object, or all of them if that takes no time.
    private mutating func exportNext(of key: DeviceKey, _ core: inout Core) {
        guard let link = links[key] else { return }
        let isExporting = link.exportDelay > 0 && !unshown(of: key, core).isEmpty
        links[key]?.isExporting = isExporting
        guard isExporting else {
            exportAll(of: key, &core)
            core.flush()
            return readBattery(of: key, &core)
        }
        core.alarms.set(.export(key), to: core.now + link.exportDelay)
    }

    mutating func exportDue(of key: DeviceKey, _ core: inout Core) {
        if let handle = unshown(of: key, core).first { export(handle, of: key, &core) }
        exportNext(of: key, &core)
    }

    private func exportAll(of key: DeviceKey, _ core: inout Core) {
        for handle in unshown(of: key, core) { export(handle, of: key, &core) }
    }

    private func export(_ handle: UInt16, of key: DeviceKey, _ core: inout Core) {
        guard let attribute = tables[key]?[handle] else { return }
        core.add(attribute.object, as: AttributeKey(device: key, handle: handle))
    }

    /// A service that appears later than the others is due.
    mutating func exportService(_ key: AttributeKey, _ core: inout Core) {
        guard let link = links[key.device], let device = core.tree.devices[key.device],
            let service = tables[key.device]?.service(key.handle)
        else { return }
        if !service.isAnnounced, service.isPrimary, !device.gattUUIDs.contains(service.uuid) {
            core.set(\.gattUUIDs, to: (device.gattUUIDs + [service.uuid]).sorted(), of: key.device, announcing: .uuids)
            // Announced again, although it is the same.
            core.announce(.servicesResolved, of: key.device)
            core.flush()
        }
        links[key.device]?.late.remove(key.handle)
        // Otherwise the alarm for the next of the earlier objects is set.
        if !link.isExporting { exportNext(of: key.device, &core) }
    }

    /// Removes the objects of a service, children first.
    private mutating func hide(_ service: AttributeDatabase.Service, of device: DeviceKey, _ core: inout Core) {
        core.alarms.remove(.exportService(AttributeKey(device: device, handle: service.handle)))
        links[device]?.late.remove(service.handle)
        for characteristic in service.characteristics {
            for descriptor in characteristic.descriptors { hide(descriptor.handle, of: device, &core) }
            hide(characteristic.handle, of: device, &core)
        }
        hide(service.handle, of: device, &core)
    }

    private mutating func hide(_ handle: UInt16, of device: DeviceKey, _ core: inout Core) {
        let key = AttributeKey(device: device, handle: handle)
        core.removeAttribute(key)
        for socket in [attribute(key)?.notifySocket?.id, attribute(key)?.writeSocket] {
            if let socket { core.perform(.closeSocket(socket)) }
        }
        // Requests are forgotten, and their calls get no reply (`bt_gatt_client_cancel`).
        if let requests = links[device]?.requests.filter({ $0.value.handle != handle }) {
            links[device]?.requests = requests
        }
        tables[device]?[handle] = nil
    }

    // MARK: Battery

    /// BlueZ reads the battery level itself when the services are resolved.
    private mutating func readBattery(of key: DeviceKey, _ core: inout Core) {
        guard let device = core.tree.devices[key], device.batteryLevel == nil, !device.isDisconnecting,
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
