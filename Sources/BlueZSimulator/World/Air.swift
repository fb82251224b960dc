import Foundation

/// Links between adapters and the peripherals of the room, and what goes over them. A pure value: orders, answers and
/// the time go in; events and questions come out.
struct Air: Sendable {
    private enum Due: Hashable {
        case connection(VirtualAddress)
        case timeout(VirtualAddress)
        case drop(VirtualAddress)
        case discovery(VirtualAddress)
        case response(VirtualAddress)
        case notification(VirtualAddress, characteristic: UInt16)
    }

    private(set) var peers: [VirtualAddress: Peer] = [:]
    /// Who tries to connect to an address at which nobody is.
    private var strangers: [VirtualAddress: DeviceKey] = [:]
    private var deadlines = DeadlineQueue<Due>()
    private var events: [AirEvent] = []
    private var questions: [Question] = []
    private var now: TimeInterval = 0

    // MARK: The room

    /// Takes a peripheral in, or changes the one with its address; a link stays as it is.
    mutating func add(_ peripheral: VirtualPeripheral, behavior: (any PeripheralBehavior)?, now: TimeInterval) {
        self.now = now
        let address = peripheral.address
        if peers[address] != nil {
            peers[address]?.behavior = behavior
            change(peripheral)
        } else {
            peers[address] = Peer(peripheral, behavior: behavior)
            if let key = strangers.removeValue(forKey: address) { peers[address]?.state = .wanted(by: key, since: now) }
        }
        if case .wanted? = peers[address]?.state { meet(address) }
    }

    /// Takes a peripheral out; its link falls.
    mutating func remove(_ address: VirtualAddress, now: TimeInterval) {
        self.now = now
        guard let peer = peers[address] else { return }
        switch peer.state {
        case .free: break
        case .wanted(let key, _): strangers[address] = key
        case .linked: drop(address, byUs: false)
        }
        deadlines.remove(.connection(address))
        peers[address] = nil
    }

    /// Another table; who is connected is told.
    private mutating func change(_ peripheral: VirtualPeripheral) {
        let before = peers[peripheral.address]?.table
        peers[peripheral.address]?.change(to: peripheral)
        guard let peer = peers[peripheral.address], peer.table != before, case .linked(let link) = peer.state else {
            return
        }
        for characteristic in link.subscriptions.keys {
            deadlines.remove(.notification(peripheral.address, characteristic: characteristic))
        }
        update(peripheral.address) { $0.subscriptions = [:] }
        events.append(.servicesChanged(link.key))
    }

    mutating func setServices(_ services: [VirtualService], of address: VirtualAddress, now: TimeInterval) {
        self.now = now
        guard var peripheral = peers[address]?.peripheral else { return }
        peripheral.services = services
        change(peripheral)
    }

    mutating func setFaults(of address: VirtualAddress, _ body: (inout PeerFaults) -> Void) {
        guard var faults = peers[address]?.faults else { return }
        body(&faults)
        peers[address]?.faults = faults
    }

    /// Faults for each attempt to connect; those that were set before are over.
    mutating func setRandomFaults(_ faults: RandomFaults?, of address: VirtualAddress) {
        peers[address]?.randomFaults = faults
        peers[address]?.faults = PeerFaults()
    }

    // MARK: In and out

    mutating func take(_ order: AirOrder, now: TimeInterval) {
        self.now = now
        switch order {
        case .connect(let key): connect(key)
        case .cancelConnection(let key): cancel(key)
        case .disconnect(let key):
            if link(of: key) != nil { drop(key.address, byUs: true) }
        case .discover(let key):
            guard let peer = peers[key.address], link(of: key) != nil else { return }
            schedule(.discovery(key.address), after: peer.peripheral.link.resolveLatency)
        case .request(let key, let request): receive(request, over: key)
        }
    }

    mutating func takeEvents() -> [AirEvent] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    mutating func takeQuestions() -> [Question] {
        defer { questions.removeAll(keepingCapacity: true) }
        return questions
    }

    mutating func nextDeadline() -> TimeInterval? { deadlines.next() }

    /// Does the first thing that is due; false when nothing is.
    mutating func timePassed(to limit: TimeInterval) -> Bool {
        guard let due = deadlines.popDue(at: limit) else { return false }
        now = due.deadline
        perform(due.key)
        return true
    }

    private mutating func perform(_ due: Due) {
        switch due {
        case .connection(let address): connectionDue(address)
        case .timeout(let address): giveUp(address)
        case .drop(let address): drop(address, byUs: false)
        case .discovery(let address): discoveryDue(address)
        case .response(let address): responseDue(address)
        case .notification(let address, let characteristic): notificationDue(address, characteristic)
        }
    }

    /// What takes no time happens at once.
    private mutating func schedule(_ due: Due, after delay: TimeInterval) {
        if delay <= 0 { perform(due) } else { deadlines.set(due, to: now + delay) }
    }

    private func link(of key: DeviceKey) -> PeerLink? {
        guard case .linked(let link)? = peers[key.address]?.state, link.key == key else { return nil }
        return link
    }

    private mutating func update(_ address: VirtualAddress, _ body: (inout PeerLink) -> Void) {
        guard case .linked(var link)? = peers[address]?.state else { return }
        peers[address]?.state = .free
        body(&link)
        peers[address]?.state = .linked(link)
    }

    private mutating func ask(_ matter: Question.Matter, _ peer: Peer) -> Bool {
        guard let behavior = peer.behavior else { return false }
        questions.append(Question(matter: matter, peripheral: peer.peripheral, behavior: behavior, seconds: now))
        return true
    }

    // MARK: Connecting

    private mutating func connect(_ key: DeviceKey) {
        let timeout = peers[key.address]?.peripheral.link.connectTimeout ?? VirtualLink().connectTimeout
        deadlines.set(.timeout(key.address), to: now + timeout)
        guard let peer = peers[key.address] else {
            strangers[key.address] = key
            return
        }
        // Linked to another adapter it does not advertise, and cannot be reached.
        guard case .free = peer.state else { return }
        peers[key.address]?.state = .wanted(by: key, since: now)
        if let faults = peers[key.address]?.randomFaults?.next() { peers[key.address]?.faults = faults }
        meet(key.address)
    }

    /// Whoever is wanted may be there now, or come in time.
    private mutating func meet(_ address: VirtualAddress) {
        guard let peer = peers[address], case .wanted(let key, _) = peer.state,
            let start = peer.reachable(atOrAfter: now)
        else { return }
        if peer.faults.refusals == 0, start <= now, ask(.connection(key), peer) { return }
        schedule(.connection(address), after: start - now + peer.peripheral.link.connectLatency)
    }

    private mutating func connectionDue(_ address: VirtualAddress) {
        guard let peer = peers[address], case .wanted(let key, _) = peer.state else { return }
        guard peer.faults.refusals == 0 else {
            peers[address]?.faults.refusals -= 1
            return giveUp(address)
        }
        deadlines.remove(.timeout(address))
        peers[address]?.state = .linked(PeerLink(key: key))
        events.append(.linkUp(key, peer.peripheral.link))
        _ = ask(.linkChanged(isUp: true), peer)
        guard peer.faults.drops > 0 else { return }
        peers[address]?.faults.drops -= 1
        // Not in this turn, even with no delay: the host must have seen the link.
        deadlines.set(.drop(address), to: now + peer.faults.dropDelay)
    }

    private mutating func giveUp(_ address: VirtualAddress) {
        deadlines.remove(.timeout(address))
        deadlines.remove(.connection(address))
        if case .wanted(let key, _)? = peers[address]?.state {
            peers[address]?.state = .free
            events.append(.linkFailed(key))
        } else if let key = strangers.removeValue(forKey: address) {
            events.append(.linkFailed(key))
        }
    }

    private mutating func cancel(_ key: DeviceKey) {
        if strangers[key.address] == key { strangers[key.address] = nil }
        if case .wanted(let by, _)? = peers[key.address]?.state, by == key { peers[key.address]?.state = .free }
        guard link(of: key) == nil else { return drop(key.address, byUs: true) }
        deadlines.remove(.timeout(key.address))
        deadlines.remove(.connection(key.address))
    }

    /// The link ends.
    mutating func drop(_ address: VirtualAddress, byUs: Bool) {
        guard let peer = peers[address], case .linked(let link) = peer.state else { return }
        peers[address]?.state = .free
        for due in [Due.drop(address), .discovery(address), .response(address)] { deadlines.remove(due) }
        for characteristic in link.subscriptions.keys.sorted() {
            deadlines.remove(.notification(address, characteristic: characteristic))
            if let attribute = peer.attribute(characteristic + 1) {
                _ = ask(.subscription(attribute, isOn: false), peer)
            }
        }
        events.append(.linkDown(link.key, byUs: byUs))
        _ = ask(.linkChanged(isUp: false), peer)
    }

    mutating func drop(_ address: VirtualAddress, now: TimeInterval) {
        self.now = now
        drop(address, byUs: false)
    }

    /// Every link of an adapter, or of all, ends without anybody there to see it.
    mutating func silence(adapter: Int? = nil) {
        for (address, key) in strangers where adapter == nil || key.adapter == adapter { giveUp(address) }
        for address in peers.keys.sorted() {
            switch peers[address]?.state {
            case .linked(let link) where adapter == nil || link.key.adapter == adapter: drop(address, byUs: true)
            case .wanted(let key, _) where adapter == nil || key.adapter == adapter: giveUp(address)
            default: break
            }
        }
        events.removeAll { event in
            switch event {
            case .linkDown(let key, _), .linkFailed(let key): adapter == nil || key.adapter == adapter
            default: false
            }
        }
    }

    private mutating func discoveryDue(_ address: VirtualAddress) {
        guard let peer = peers[address], case .linked(let link) = peer.state else { return }
        let name = peer.table.characteristic(.uuid(AttributeTable.deviceName)).flatMap { peer.values[$0.valueHandle] }
        let identity = AirIdentity(name: name.flatMap { $0.isEmpty ? nil : String(decoding: $0, as: UTF8.self) })
        events.append(.discovered(link.key, peer.faults.isUnresolved ? [] : peer.table.services, identity))
    }

    // MARK: Requests

    private mutating func receive(_ request: AttributeRequest, over key: DeviceKey) {
        guard link(of: key) != nil else { return }
        if case .write(_, _, _, .command) = request.kind { return begin(request, key) }
        var isFirst = false
        update(key.address) { link in
            isFirst = link.queue.isEmpty
            link.queue.append(request)
        }
        if isFirst { begin(request, key) }
    }

    /// A request is taken up: the behaviour is asked, or the value itself.
    private mutating func begin(_ request: AttributeRequest, _ key: DeviceKey) {
        guard let peer = peers[key.address] else { return }
        if let refusal = peer.refusal(of: request) { return conclude(request, key, refusal) }
        switch request.kind {
        case .read(let handle, _):
            guard let attribute = peer.attribute(handle) else { break }
            let value = peer.values[handle] ?? []
            if ask(.read(key, request, attribute, value: value), peer) { return }
            return conclude(request, key, .value(value))
        case .write(let handle, _, let bytes, let type):
            guard let attribute = peer.attribute(handle) else { break }
            if ask(.write(key, request, attribute, bytes, type), peer) { return }
        case .configure:
            break
        }
        conclude(request, key, .done)
    }

    mutating func take(_ verdict: Verdict, now: TimeInterval) {
        self.now = now
        switch verdict {
        case .attribute(let key, let request, let answer):
            conclude(request, key, answer)
        case .connection(let key, let answer):
            guard let peer = peers[key.address], case .wanted(let by, _) = peer.state, by == key else { return }
            switch answer {
            case .accept(let delay):
                schedule(.connection(key.address), after: peer.peripheral.link.connectLatency + max(0, delay))
            case .refuse:
                peers[key.address]?.faults.refusals += 1
                schedule(.connection(key.address), after: peer.peripheral.link.connectLatency)
            case .ignore:
                break
            }
        }
    }

    /// It is known what a request comes to; when, the link and the faults decide.
    private mutating func conclude(_ request: AttributeRequest, _ key: DeviceKey, _ answer: AttributeAnswer) {
        guard let peer = peers[key.address], link(of: key) != nil else { return }
        if case .write(_, _, _, .command) = request.kind {
            if case .success = answer.outcome { store(request, at: key.address) }
            return
        }
        var outcome = answer.outcome
        update(key.address) { $0.requestCount += 1 }
        if peer.faults.vanishesInWrite, case .write = request.kind {
            peers[key.address]?.faults.vanishesInWrite = false
            outcome = .linkLoss
        }
        if let last = peer.faults.requestsUntilDrop {
            peers[key.address]?.faults.requestsUntilDrop = last > 1 ? last - 1 : nil
            if last <= 1 { outcome = .linkLoss }
        }
        guard !peer.faults.isSilent, outcome != .never else { return }
        update(key.address) { $0.outcome = outcome }
        let packets = Double(request.packets(mtu: peer.peripheral.link.mtu, answer: outcome))
        schedule(
            .response(key.address),
            after: peer.peripheral.link.callLatency * packets + answer.delay + peer.faults.extraDelay)
    }

    private mutating func responseDue(_ address: VirtualAddress) {
        guard let peer = peers[address], case .linked(let link) = peer.state, let request = link.queue.first,
            let outcome = link.outcome
        else { return }
        update(address) { link in
            link.queue.removeFirst()
            link.outcome = nil
        }
        switch outcome {
        case .success(let bytes):
            let result = peer.result(of: request, bytes: bytes)
            if case .bytes = result { store(request, at: address) }
            events.append(.response(link.key, id: request.id, result))
        case .error(let code):
            events.append(.response(link.key, id: request.id, .error(code)))
        case .linkLoss:
            return drop(address, byUs: false)
        case .never:
            return
        }
        if link.queue.count > 1 { begin(link.queue[1], link.key) }
    }

    /// What a request that succeeded leaves behind.
    private mutating func store(_ request: AttributeRequest, at address: VirtualAddress) {
        switch request.kind {
        case .read:
            break
        case .write(let handle, let offset, let bytes, _):
            var value = offset == 0 ? [] : Array((peers[address]?.values[handle] ?? []).prefix(offset))
            value += bytes
            peers[address]?.values[handle] = value
            if let echo = peers[address]?.table.targets[handle]?.characteristic.echo {
                notify(echo, value, at: address)
            }
        case .configure(let characteristic, let bits):
            configure(characteristic, bits, at: address)
        }
    }

    // MARK: Notifications

    private mutating func configure(_ characteristic: UInt16, _ bits: UInt8, at address: VirtualAddress) {
        guard let peer = peers[address], let target = peer.table.targets[characteristic + 1]?.characteristic else {
            return
        }
        update(address) { $0.subscriptions[characteristic] = bits == 0 ? nil : (bits: bits, sent: 0) }
        if let descriptor = target.configurationHandle { peers[address]?.values[descriptor] = [bits, 0] }
        if let attribute = peer.attribute(target.valueHandle) {
            _ = ask(.subscription(attribute, isOn: bits != 0), peer)
        }
        let due = Due.notification(address, characteristic: characteristic)
        guard bits != 0, let source = target.notifications else { return deadlines.remove(due) }
        deadlines.set(due, to: now + source.interval)
    }

    private mutating func notificationDue(_ address: VirtualAddress, _ characteristic: UInt16) {
        guard let peer = peers[address], case .linked(let link) = peer.state,
            let subscription = link.subscriptions[characteristic],
            let source = peer.table.targets[characteristic + 1]?.characteristic.notifications
        else { return }
        update(address) { $0.subscriptions[characteristic]?.sent += 1 }
        deadlines.set(.notification(address, characteristic: characteristic), to: now + source.interval)
        notify(characteristic, source.value(at: subscription.sent), at: address)
    }

    /// The value is this from now on; who subscribes is sent it. Gives whether somebody does.
    @discardableResult
    mutating func notify(_ characteristic: UInt16, _ bytes: [UInt8], at address: VirtualAddress) -> Bool {
        peers[address]?.values[characteristic + 1] = bytes
        guard case .linked(let link)? = peers[address]?.state, link.subscriptions[characteristic] != nil else {
            return false
        }
        let longest = (peers[address]?.peripheral.link.mtu ?? 23) - 3
        events.append(.value(link.key, characteristic: characteristic, Array(bytes.prefix(longest))))
        return true
    }

    mutating func setValue(_ bytes: [UInt8], ofHandle handle: UInt16, at address: VirtualAddress) {
        peers[address]?.values[handle] = bytes
    }
}
