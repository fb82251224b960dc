import Foundation

/// Links between adapters and the peripherals of the room, and what goes over them. A pure value: orders, answers and
/// the time go in; events and questions come out.
struct Air: Sendable {
    enum Due: Hashable {
        case connection(VirtualAddress)
        case timeout(VirtualAddress)
        case drop(VirtualAddress)
        case discovery(VirtualAddress)
        case response(VirtualAddress)
        case notification(VirtualAddress, characteristic: UInt16)
        /// Of links between adapters, by the central's end.
        case hostConnection(DeviceKey)
        case hostTimeout(DeviceKey)
        case hostDiscovery(DeviceKey)
        case hostResponse(DeviceKey)
        /// Of links of the simulator's own centrals, by the server's end.
        case arrival(DeviceKey)
        case arrivalTimeout(DeviceKey)
        case departure(DeviceKey)
    }

    var peers: [VirtualAddress: Peer] = [:]
    /// Who tries to connect to an address at which nobody is.
    var strangers: [VirtualAddress: DeviceKey] = [:]
    /// The adapters, by their addresses, with what they send.
    var hosts: [VirtualAddress: HostAnnouncement] = [:]
    /// Links between adapters, by the central's end; those too that are not up yet.
    var hostLinks: [DeviceKey: HostedLink] = [:]
    /// The simulator's own centrals, by the server's end.
    var visitors: [DeviceKey: Visitor] = [:]
    var deadlines = DeadlineQueue<Due>()
    var events: [AirEvent] = []
    var questions: [Question] = []
    var now: TimeInterval = 0

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
        guard peers[address] != nil else { return }
        drop(address, .timeout)
        // Whoever tries goes on trying: it may come back.
        if case .wanted(let key, _)? = peers[address]?.state { strangers[address] = key }
        deadlines.remove(.connection(address))
        peers[address] = nil
    }

    /// A peripheral goes out of range, or comes back.
    mutating func setAway(_ address: VirtualAddress, _ isAway: Bool, now: TimeInterval) {
        self.now = now
        guard let peer = peers[address], peer.isAway != isAway else { return }
        peers[address]?.isAway = isAway
        guard isAway else { return meet(address) }
        drop(address, .timeout)
        deadlines.remove(.connection(address))
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
        if takeForHost(order) { return }
        switch order {
        case .connect(let key): connect(key)
        case .cancelConnection(let key): cancel(key)
        case .disconnect(let key):
            if link(of: key) != nil { drop(key.address, .local) }
        case .discover(let key):
            guard let peer = peers[key.address], link(of: key) != nil else { return }
            schedule(.discovery(key.address), after: peer.peripheral.link.resolveLatency)
        case .request(let key, let request): receive(request, over: key)
        case .announce, .withdraw, .hangUp, .respond, .deliver, .tellServicesChanged: break
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
        case .drop(let address): drop(address, .timeout)
        case .discovery(let address): discoveryDue(address)
        case .response(let address): responseDue(address)
        case .notification(let address, let characteristic): notificationDue(address, characteristic)
        case .hostConnection(let key): hostConnectionDue(key)
        case .hostTimeout(let key): giveUpHost(key)
        case .hostDiscovery(let key): hostDiscoveryDue(key)
        case .hostResponse(let key): hostResponseDue(key)
        case .arrival(let key): arrivalDue(key)
        case .arrivalTimeout(let key): visitorGivesUp(key)
        case .departure(let key): departureDue(key)
        }
    }

    /// What takes no time happens at once.
    mutating func schedule(_ due: Due, after delay: TimeInterval) {
        if delay <= 0 { perform(due) } else { deadlines.set(due, to: now + delay) }
    }

    func link(of key: DeviceKey) -> PeerLink? {
        guard case .linked(let link)? = peers[key.address]?.state, link.key == key else { return nil }
        return link
    }

    mutating func update(_ address: VirtualAddress, _ body: (inout PeerLink) -> Void) {
        guard case .linked(var link)? = peers[address]?.state else { return }
        peers[address]?.state = .free
        body(&link)
        peers[address]?.state = .linked(link)
    }

    mutating func ask(_ matter: Question.Matter, _ peer: Peer) -> Bool {
        guard let behavior = peer.behavior else { return false }
        questions.append(Question(matter: matter, peripheral: peer.peripheral, behavior: behavior, seconds: now))
        return true
    }
}
