import BlueCapReactor
import Foundation

/// What the controllers and the virtual devices do over the radio: advertisements, and the links between adapters, virtual
/// peripherals and virtual centrals. A pure value: commands and the time go in; events and questions come out.
struct LinkLayer: Sendable {
    private enum Due: Hashable {
        case connection(CentralEnd)
        case timeout(CentralEnd)
        case drop(CentralEnd)
        case discovery(CentralEnd)
        case response(CentralEnd)
        /// The next value of a subscription, by the handle of the descriptor that it is written to.
        case notification(CentralEnd, UInt16)
    }

    var radio = Radio()
    var security = SecurityManager()
    private(set) var peripherals: [VirtualAddress: ScriptedPeripheral] = [:]
    /// Those that are up, and the attempts to connect.
    private(set) var links: [CentralEnd: Link] = [:]
    /// The adapters by their addresses.
    private var hosts: [VirtualAddress: HostAnnouncement] = [:]
    private var deadlines = DeadlineQueue<Due>()
    private var events: [LinkLayerEvent] = []
    private var questions: [Question] = []
    /// The time of what is being done.
    var now: TimeInterval = 0 { didSet { security.now = now } }

    /// How links to adapters behave: BlueZ asks for the largest packets.
    private static let adapterLink = VirtualLink(mtu: 517)

    // MARK: Peripherals

    /// Adds a peripheral, or changes the one with its address; a link stays as it is.
    mutating func add(_ peripheral: VirtualPeripheral, behavior: (any PeripheralBehavior)?) {
        radio.add(peripheral, behavior: behavior, now: now)
        let address = peripheral.address
        if peripherals[address] == nil {
            peripherals[address] = ScriptedPeripheral(peripheral)
        } else {
            change(peripheral)
        }
        meetNext(at: address, again: true)
    }

    /// Removes a peripheral; its link ends. Attempts to connect to it go on: it may return.
    mutating func remove(_ address: VirtualAddress) {
        setAway(address, true)
        radio.remove(address)
        peripherals[address] = nil
    }

    mutating func setAway(_ address: VirtualAddress, _ isAway: Bool) {
        peripherals[address]?.isAway = isAway
        settleAdvertising(of: address)
        settleReach(of: address)
    }

    /// Weakens a peripheral at one adapter.
    mutating func setAttenuation(_ loss: Int, of address: VirtualAddress, at adapter: Int) {
        radio.setAttenuation(loss, of: address, at: adapter)
        settleReach(of: address)
    }

    /// Ends the links of a peripheral that are out of reach. Attempts to connect wait until they are within it.
    private mutating func settleReach(of address: VirtualAddress) {
        for end in peripherals[address]?.centrals ?? [] where !reaches(address, end) {
            if links[end]?.isUp == true { drop(end, .timeout) }
            deadlines.remove(.connection(end))
            peripherals[address]?.centrals.removeAll { $0 == end }
        }
        meetNext(at: address)
    }

    private func reaches(_ address: VirtualAddress, _ end: CentralEnd) -> Bool {
        guard case .adapter(let key) = end else { return true }
        return peripherals[address]?.isAway != true && radio.reaches(address, key.adapter, now: now)
    }

    mutating func setServices(_ services: [VirtualService], of address: VirtualAddress) {
        guard var peripheral = peripherals[address]?.peripheral else { return }
        peripheral.services = services
        change(peripheral)
    }

    /// Changes a peripheral. If its services change, connected centrals discover them again and their subscriptions end.
    private mutating func change(_ peripheral: VirtualPeripheral) {
        let address = peripheral.address
        let isChanged = peripherals[address]?.change(to: peripheral) == true
        settleAdvertising(of: address)
        for end in isChanged ? linksUp(to: address) : [] {
            for handle in links[end]?.subscriptions.keys.sorted() ?? [] { deadlines.remove(.notification(end, handle)) }
            links[end]?.subscriptions = [:]
            if case .adapter(let key) = end { take(.discover(key)) }
        }
    }

    /// A peripheral does not advertise out of range, and while it has a link, unless it is one that does.
    private mutating func settleAdvertising(of address: VirtualAddress) {
        guard let peripheral = peripherals[address] else { return }
        let isBusy = !peripheral.peripheral.advertisesWhileConnected && !linksUp(to: address).isEmpty
        radio.setSilent(address, isBusy || peripheral.isAway, now: now)
    }

    mutating func setFaults(of address: VirtualAddress, _ body: (inout PeripheralFaults) -> Void) {
        guard peripherals[address] != nil else { return }
        body(&peripherals[address]!.faults)
    }

    func characteristic(
        _ selector: AttributeSelector, at address: VirtualAddress
    ) -> AttributeDatabase.Characteristic? {
        peripherals[address]?.database.characteristic(selector)
    }

    /// Changes a value without a notification.
    mutating func setValue(_ bytes: [UInt8], of handle: UInt16, at address: VirtualAddress) {
        peripherals[address]?.database.setValue(bytes, of: handle)
    }

    /// Changes the value of a characteristic, and sends it to the subscribers. Returns whether there is one.
    @discardableResult
    mutating func notify(
        _ characteristic: AttributeDatabase.Characteristic, _ bytes: [UInt8], at address: VirtualAddress
    ) -> Bool {
        setValue(bytes, of: characteristic.valueHandle, at: address)
        guard let handle = characteristic.configurationHandle else { return false }
        var isSent = false
        for end in linksUp(to: address) {
            guard let subscription = links[end]?.subscriptions[handle] else { continue }
            let value = CentralValue(
                characteristic: characteristic.uuid, handle: characteristic.valueHandle,
                bytes: Array(bytes.prefix(parameters(of: end).mtu - 3)), isIndication: subscription.bits == 2,
                seconds: now)
            events.append(.central(end, .value(value)))
            isSent = true
        }
        return isSent
    }

    private func linksUp(to address: VirtualAddress) -> [CentralEnd] {
        peripherals[address]?.centrals.filter { links[$0]?.isUp == true } ?? []
    }

    // MARK: In and out

    mutating func take(_ order: LinkLayerCommand) {
        switch order {
        case .connect(let key): connect(key)
        case .disconnect(let key): drop(.adapter(key), .local, server: .remote)
        case .discover(let key):
            guard links[.adapter(key)]?.isUp == true else { return }
            schedule(.discovery(.adapter(key)), after: parameters(of: .adapter(key)).resolveLatency)
        case .request(let key, let request): receive(request, over: .adapter(key))
        case .announce(let announcements):
            let before = hosts
            security.adapters = Dictionary(announcements.map { ($0.adapter, $0.security) }) { _, last in last }
            hosts = Dictionary(announcements.map { ($0.address, $0) }) { _, last in last }
            for (address, announcement) in before where hosts[address] == nil { radio.withdraw(announcement.adapter) }
            for announcement in announcements {
                var same = before[announcement.address]
                same?.security = announcement.security
                if same == announcement { continue }
                radio.announce(announcement, now: now)
                for (end, link) in links.sorted(by: { $0.key < $1.key }) where !link.isUp {
                    if case .adapter(let server, _) = link.server, server.adapter == announcement.adapter { meet(end) }
                }
            }
        case .hangUp(let end): drop(end, .remote, server: .local)
        case .respond(let end, let result):
            guard case .adapter(let server, _)? = links[end]?.server else { return }
            if let result = links[end]?.exchange?.answered(result) {
                settle(end, result)
            } else if let packet = links[end]?.exchange?.first {
                events.append(.asked(server, packet, isCommand: false))
            }
        case .deliver(let end, let value):
            guard links[end]?.isUp == true, links[end]?.holdBack(value) == false else { return }
            events.append(.central(end, .value(value)))
        case .secure(let key, let goal, let capability):
            security.secure(key, to: goal, capability: capability)
        case .answer(let key, let answer, let keepsLink):
            security.answer(answer, of: key, keepsLink: keepsLink)
        case .cancelPairing(let key): security.cancel(key)
        case .forget(let key, let isStored):
            security.forget(identity(of: key.address), by: key.adapter, isStored: isStored)
        case .loadKeys(let address): security.keys.load(of: address)
        }
        takeSecurityNews()
    }

    /// A virtual central encrypts its link, with the keys that it has or with a pairing.
    mutating func pair(_ end: CentralEnd) {
        security.raise(end, to: .encrypted)
        takeSecurityNews()
    }

    /// The address by which a device is known to those that have paired with it.
    func identity(of address: VirtualAddress) -> VirtualAddress { peripherals[address]?.peripheral.identity ?? address }

    /// Passes on what the Security Managers report, and ends the links that are not secure enough.
    private mutating func takeSecurityNews() {
        let news = exchange(&security.news, with: ([], []))
        events += news.events
        for end in news.ends { drop(end, .authentication) }
    }

    mutating func takeEvents() -> [LinkLayerEvent] { exchange(&events, with: []) }

    mutating func takeQuestions() -> [Question] { exchange(&questions, with: []) }

    var nextDeadline: TimeInterval? { [deadlines.next, security.nextDeadline].compactMap { $0 }.min() }

    /// Does the first thing that is due.
    mutating func timePassed(to limit: TimeInterval) {
        if let next = security.nextDeadline, next <= limit, next < deadlines.next ?? .infinity {
            now = next
            security.timePassed()
            return takeSecurityNews()
        }
        guard let due = deadlines.popDue(at: limit) else { return }
        now = due.deadline
        perform(due.key)
    }

    private mutating func perform(_ due: Due) {
        switch due {
        case .connection(let end): connectionDue(end)
        case .timeout(let end): giveUp(end)
        case .drop(let end): drop(end, .timeout)
        case .discovery(let end): discoveryDue(end)
        case .response(let end): responseDue(end)
        case .notification(let end, let handle): notificationDue(end, handle)
        }
    }

    /// What takes no time happens at once.
    private mutating func schedule(_ due: Due, after delay: TimeInterval) {
        if delay <= 0 { perform(due) } else { deadlines.set(due, to: now + delay) }
    }

    /// Has a method of a peripheral's behaviour called, with the peripheral and the time. Without a behaviour, what the
    /// defaults return holds at once.
    private mutating func ask<Answer: Sendable>(
        _ peripheral: ScriptedPeripheral,
        _ method: @escaping @Sendable (any PeripheralBehavior, VirtualPeripheral, TimeInterval) -> Answer,
        then conclude: (@Sendable (inout LinkLayer, Answer) -> Void)? = nil
    ) {
        guard let behavior = radio.residents[peripheral.address]?.behavior else {
            conclude?(&self, method(PlainBehavior.shared, peripheral.peripheral, now))
            return
        }
        questions.append { [peripheral = peripheral.peripheral, now] in
            let answer = method(behavior, peripheral, now)
            guard let conclude else { return nil }
            return { conclude(&$0, answer) }
        }
    }

    /// - Parameter handle: That of the descriptor that the subscription is written to.
    private mutating func notify(_ peripheral: ScriptedPeripheral, of handle: UInt16, isOn: Bool) {
        guard let characteristic = peripheral.database.place(of: handle)?.characteristic,
            let attribute = peripheral.attribute(characteristic.valueHandle)
        else { return }
        ask(peripheral) { $0.subscriptionChanged(to: attribute, of: $1, isOn: isOn, at: $2) }
    }

    // MARK: Connecting

    /// Starts a virtual central's attempt to connect to an adapter. A link that a central with its address has there ends.
    mutating func connect(_ central: VirtualCentral, to adapter: Int, _ end: CentralEnd) {
        let server = DeviceKey(adapter: adapter, address: central.address)
        for (earlier, link) in links {
            if case .virtual = earlier, case .adapter(server, _) = link.server { disconnect(earlier) }
        }
        begin(end, to: .adapter(server, central))
    }

    private mutating func connect(_ key: DeviceKey) {
        let end = CentralEnd.adapter(key)
        guard let host = hosts[key.address] else {
            let peripheral =
                peripherals[key.address] ?? peripherals.values.first { $0.peripheral.identity == key.address }
            let address = peripheral?.address ?? key.address
            if let peripheral, peripheral.freeLinks > 0 { peripherals[address]?.faults.draw() }
            return begin(end, to: .peripheral(address))
        }
        guard let central = hosts.values.first(where: { $0.adapter == key.adapter }) else { return }
        let server = DeviceKey(adapter: host.adapter, address: central.address)
        let identity = VirtualCentral(central.address, name: central.name, mtu: Self.adapterLink.mtu)
        begin(end, to: .adapter(server, identity))
    }

    private mutating func begin(_ end: CentralEnd, to server: Link.Server) {
        links[end] = Link(to: server)
        deadlines.set(.timeout(end), to: now + parameters(of: end).connectTimeout)
        if case .peripheral(let address) = server { meetNext(at: address) } else { meet(end) }
    }

    /// Lets a peripheral consider the next attempts to connect to it, if it accepts another link; with `again`, also
    /// those that it has considered.
    private mutating func meetNext(at address: VirtualAddress, again: Bool = false) {
        guard let peripheral = peripherals[address] else { return }
        let waiting = links.filter { end, link in
            link.server == .peripheral(address) && !link.isUp && !peripheral.centrals.contains(end)
                && reaches(address, end)
        }
        let next = waiting.keys.sorted().prefix(peripheral.freeLinks)
        peripherals[address]?.centrals += next
        for end in (again ? peripheral.centrals : []) + next where links[end]?.isUp == false { meet(end) }
    }

    /// Schedules the end of an attempt to connect, if its server accepts or refuses it.
    private mutating func meet(_ end: CentralEnd) {
        guard let link = links[end] else { return }
        let latency = parameters(of: end).connectLatency
        switch link.server {
        case .adapter(let server, _):
            if accepts(server.adapter) { schedule(.connection(end), after: latency) }
        case .peripheral(let address):
            guard let peripheral = peripherals[address], let start = peripheral.reachable(atOrAfter: now) else {
                return
            }
            guard peripheral.faults.refusals == 0, start <= now else {
                return schedule(.connection(end), after: start - now + latency)
            }
            ask(peripheral, { $0.connectRequested(to: $1, at: $2) }, then: { $0.take($1, end) })
        }
    }

    /// Whether an adapter sends an advertisement that takes connections.
    private func accepts(_ adapter: Int) -> Bool { hosts.values.contains { $0.adapter == adapter && $0.isConnectable } }

    private mutating func connectionDue(_ end: CentralEnd) {
        guard let link = links[end], !link.isUp else { return }
        switch link.server {
        case .adapter(let server, let central):
            guard accepts(server.adapter) else { return }
            events += [.centralCame(server, central, end), .central(end, .connected(Self.adapterLink))]
            var initiator = SecurityManager.Party.device(central.identity, central.security)
            if case .adapter(let key) = end { initiator = .adapter(key) }
            comeUp(end, from: initiator, to: .adapter(server), isBonded: central.isBonded)
        case .peripheral(let address):
            guard let peripheral = peripherals[address], peripheral.centrals.contains(end), case .adapter(let key) = end
            else { return }
            guard peripheral.faults.refusals == 0 else {
                peripherals[address]?.faults.refusals -= 1
                return giveUp(end)
            }
            var parameters = peripheral.peripheral.link
            parameters.exportDelay = peripheral.faults.exportDelay ?? parameters.exportDelay
            events.append(.central(end, .connected(parameters)))
            ask(peripheral) { $0.linkChanged(of: $1, isUp: true, at: $2) }
            comeUp(
                end, from: .adapter(key), to: .device(peripheral.peripheral.identity, peripheral.peripheral.security))
            settleAdvertising(of: address)
            if let end = peripheral.peripheral.disappearsAfter { deadlines.set(.drop(.adapter(key)), to: end) }
            guard peripheral.faults.drops > 0 else { return }
            peripherals[address]?.faults.drops -= 1
            // Not in this turn, even with no delay: bluetoothd must have seen the link.
            deadlines.set(.drop(end), to: now + peripheral.faults.dropDelay)
        }
    }

    /// A link comes up: registers it with the Security Manager of both ends.
    private mutating func comeUp(
        _ end: CentralEnd, from initiator: SecurityManager.Party, to responder: SecurityManager.Party,
        isBonded: Bool = false
    ) {
        deadlines.remove(.timeout(end))
        links[end]?.isUp = true
        security.linkWentUp(
            end, from: initiator, to: responder, latency: parameters(of: end).callLatency, isBonded: isBonded)
        takeSecurityNews()
    }

    // MARK: Ending

    private mutating func giveUp(_ end: CentralEnd) {
        guard links[end]?.isUp == false else { return }
        events.append(.central(end, .failed))
        drop(end, .local)
    }

    /// Ends a link, or an attempt to connect. The cause is that which the central sees, and the server if it sees no other.
    private mutating func drop(_ end: CentralEnd, _ cause: LinkEndCause, server serverCause: LinkEndCause? = nil) {
        guard let link = links.removeValue(forKey: end) else { return }
        security.linkWentDown(end)
        takeSecurityNews()
        deadlines.remove(.connection(end), .timeout(end), .drop(end), .discovery(end), .response(end))
        switch link.server {
        case .adapter(let server, _):
            guard link.isUp else { return }
            events += [.central(end, .disconnected(cause)), .centralLeft(server, serverCause ?? cause)]
        case .peripheral(let address):
            peripherals[address]?.centrals.removeAll { $0 == end }
            if link.isUp, let peripheral = peripherals[address] {
                for handle in link.subscriptions.keys.sorted() {
                    deadlines.remove(.notification(end, handle))
                    notify(peripheral, of: handle, isOn: false)
                }
                events.append(.central(end, .disconnected(cause)))
                settleAdvertising(of: address)
                ask(peripheral) { $0.linkChanged(of: $1, isUp: false, at: $2) }
            }
            meetNext(at: address)
        }
    }

    /// Ends the links of a peripheral, of a virtual central, or of an adapter with other adapters.
    mutating func drop(_ address: VirtualAddress, _ cause: LinkEndCause) {
        for (end, link) in links.sorted(by: { $0.key < $1.key }) where link.isUp {
            switch (end, link.server) {
            case (.adapter(let key), _) where key.address == address: drop(end, cause)
            case (_, .adapter(let key, _)) where key.address == address: drop(end, cause)
            case (_, .peripheral(address)): drop(end, cause)
            default: break
            }
        }
    }

    /// Ends the link or the attempt of a virtual central, which it does itself.
    mutating func disconnect(_ end: CentralEnd) {
        if links[end]?.isUp == true { drop(end, .local, server: .remote) } else { giveUp(end) }
    }

    /// Takes a virtual central out of range; its server notices after a while.
    mutating func vanish(_ end: CentralEnd, noticedAfter delay: TimeInterval) {
        if links[end]?.isUp == true { schedule(.drop(end), after: delay) } else { giveUp(end) }
    }

    /// Ends every link and every attempt of the adapters, after bluetoothd has died. Virtual centrals go on trying.
    mutating func silence() {
        radio.withdraw()
        for end in links.keys.sorted() {
            if links[end]?.isUp == true { drop(end, .local) } else if case .adapter = end { giveUp(end) }
        }
        hosts = [:]
    }

    // MARK: Requests

    mutating func receive(_ request: AttributeRequest, over end: CentralEnd) {
        guard links[end]?.isUp == true else { return }
        if request.isCommand || links[end]?.append(request) == true { begin(request, end) }
    }

    /// Passes a request to the server: to bluetoothd, or to the behaviour or the stored value of a peripheral.
    private mutating func begin(_ request: AttributeRequest, _ end: CentralEnd) {
        switch links[end]?.server {
        case .adapter(let server, let central)?:
            if case .write(_, let bytes, .command) = request.kind {
                return events.append(.asked(server, .write(handle: request.handle, bytes), isCommand: true))
            }
            let exchange = ServerExchange(request, mtu: central.mtu)
            links[end]?.exchange = exchange
            events.append(.asked(server, exchange.first, isCommand: false))
        case .peripheral(let address)?:
            guard let peripheral = peripherals[address] else { return }
            if let refusal = peripheral.refusal(of: request, over: security.security(of: end)) {
                return conclude(request, end, .error(refusal))
            }
            guard let attribute = peripheral.attribute(request.handle) else { return }
            let conclude: @Sendable (inout LinkLayer, AttributeAnswer) -> Void = { $0.conclude(request, end, $1) }
            switch request.kind {
            case .read:
                let bits = links[end]?.subscriptions[request.handle]?.bits ?? 0
                let value = peripheral.database.value(of: request.handle) ?? [bits, 0]
                ask(peripheral, { $0.read(attribute, of: $1, value: value, at: $2) }, then: conclude)
            case .write where peripheral.isConfiguration(request.handle): self.conclude(request, end, .done)
            case .write(_, let bytes, let type):
                ask(peripheral, { $0.write(bytes, to: attribute, of: $1, type: type, at: $2) }, then: conclude)
            }
        case nil: break
        }
    }

    /// Takes the answer of a behaviour to an attempt to connect.
    private mutating func take(_ answer: ConnectionAnswer, _ end: CentralEnd) {
        guard links[end]?.isUp == false, let peripheral = peripheral(of: end), peripheral.centrals.contains(end) else {
            return
        }
        let latency = parameters(of: end).connectLatency
        switch answer {
        case .accept(let delay): schedule(.connection(end), after: latency + max(0, delay))
        case .refuse:
            peripherals[peripheral.address]?.faults.refusals += 1
            schedule(.connection(end), after: latency)
        case .ignore: break
        }
    }

    /// Takes the answer of a peripheral. The link and the faults decide when the central gets which response.
    private mutating func conclude(_ request: AttributeRequest, _ end: CentralEnd, _ answer: AttributeAnswer) {
        guard let link = links[end], link.isUp, var peripheral = peripheral(of: end) else { return }
        guard !request.isCommand else {
            if case .success = answer.outcome { complete(request, end) }
            return
        }
        // Not a request of an earlier link.
        guard link.request?.id == request.id else { return }
        let outcome = peripheral.outcome(of: request, answer.outcome)
        peripherals[peripheral.address] = peripheral
        let delay = answer.delay + peripheral.faults.extraDelay
        switch outcome {
        case .success(let bytes): settle(end, .bytes(bytes), after: delay)
        case .error(let code): settle(end, .error(code), after: delay)
        case .linkLoss: settle(end, nil, after: delay)
        case .never: break
        }
    }

    /// Schedules the response, or the end of the link if `result` is nil, later than the packets by `delay` seconds.
    private mutating func settle(_ end: CentralEnd, _ result: AttributeResult?, after delay: TimeInterval = 0) {
        let parameters = parameters(of: end)
        let packets = links[end]?.request?.packets(mtu: parameters.mtu, result: result) ?? 1
        links[end]?.result = result
        schedule(result == nil ? .drop(end) : .response(end), after: parameters.callLatency * Double(packets) + delay)
    }

    private mutating func responseDue(_ end: CentralEnd) {
        guard let (request, result, following) = links[end]?.takeResult() else { return }
        if case .bytes = result { complete(request, end) }
        events.append(.central(end, .response(id: request.id, result)))
        events += following.map { .central(end, .value($0)) }
        if let next = links[end]?.request { begin(next, end) }
    }

    /// Does what a write to a peripheral asks for, when it has succeeded: subscribes, or stores the value.
    private mutating func complete(_ request: AttributeRequest, _ end: CentralEnd) {
        let handle = request.handle
        guard case .write(let offset, let bytes, _) = request.kind, let peripheral = peripheral(of: end),
            let characteristic = peripheral.database.place(of: handle)?.characteristic
        else { return }
        guard peripheral.isConfiguration(handle) else {
            let value = Array((peripheral.database.value(of: handle) ?? []).prefix(offset) + bytes)
            setValue(value, of: handle, at: peripheral.address)
            if let target = characteristic.echo.flatMap(peripheral.database.target) {
                notify(target, value, at: peripheral.address)
            }
            return
        }
        let bits = bytes.first ?? 0
        links[end]?.subscriptions[handle] = bits == 0 ? nil : (bits, 0)
        notify(peripheral, of: handle, isOn: bits != 0)
        guard bits != 0, let source = characteristic.notifications else {
            return deadlines.remove(.notification(end, handle))
        }
        deadlines.set(.notification(end, handle), to: now + source.interval)
    }

    /// Sends the next of the values that a characteristic sends unasked.
    private mutating func notificationDue(_ end: CentralEnd, _ handle: UInt16) {
        guard let subscription = links[end]?.subscriptions[handle], let peripheral = peripheral(of: end),
            let characteristic = peripheral.database.place(of: handle)?.characteristic,
            let source = characteristic.notifications
        else { return }
        links[end]?.subscriptions[handle]?.sent += 1
        deadlines.set(.notification(end, handle), to: now + source.interval)
        notify(characteristic, source.value(at: subscription.sent), at: peripheral.address)
    }

    private mutating func discoveryDue(_ end: CentralEnd) {
        guard let link = links[end], case .adapter(let key) = end else { return }
        switch link.server {
        case .adapter(let server, _): events.append(.hostDiscovered(key, host: server.adapter))
        case .peripheral(let address):
            guard let peripheral = peripherals[address] else { return }
            let database = peripheral.database
            let name = database.handle(.uuid(AttributeDatabase.deviceName), descriptor: nil).flatMap(database.value)
            events.append(
                .discovered(
                    key, peripheral.faults.isUnresolved ? [] : database.services,
                    name: name.flatMap { $0.isEmpty ? nil : String(decoding: $0, as: UTF8.self) }))
        }
    }

    /// The peripheral that serves a link; nil if an adapter does.
    private func peripheral(of end: CentralEnd) -> ScriptedPeripheral? {
        if case .peripheral(let address)? = links[end]?.server { peripherals[address] } else { nil }
    }

    /// The times and the packet size of a link.
    private func parameters(of end: CentralEnd) -> VirtualLink {
        switch (end, links[end]?.server) {
        case (_, .peripheral(let address)?): peripherals[address]?.peripheral.link ?? VirtualLink()
        case (.virtual, .adapter(_, let central)?): VirtualLink(callLatency: 0, connectTimeout: central.connectTimeout)
        case (.adapter, .adapter), (_, nil): Self.adapterLink
        }
    }
}
