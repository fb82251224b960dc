import Foundation

/// A link between two adapters, at the central's end.
struct HostedLink: Sendable {
    /// Whose connection the other end is.
    let server: DeviceKey
    var isUp = false
    /// Requests in their order; the first is under way.
    var queue: [AttributeRequest] = []
    /// What the first one comes to, once that is known.
    var outcome: AttributeResult?
    /// Values that were sent after that response, and must not overtake it.
    var following: [Following] = []

    struct Following: Sendable {
        var characteristic: UInt16
        var bytes: [UInt8]
    }

    /// How many requests have come.
    var requestCount = 0
    /// What was written to the configuration of each characteristic, by the handle of its declaration.
    var subscriptions: [UInt16: UInt8] = [:]
}

/// A central of the simulator's own, with the adapter that it connects to.
struct Visitor: Sendable {
    let central: VirtualCentral
    /// That of its link.
    let number: UInt64
    var isUp = false
    /// It is out of range, and the server has not noticed yet.
    var hasVanished = false
}

/// Adapters that serve: who connects to them, and what goes over these links.
extension Air {
    /// Links between two BlueZ have the packets that both ask for.
    static let hostLink = VirtualLink(mtu: 517)

    /// Takes what concerns adapters; false for everything else.
    mutating func takeForHost(_ order: AirOrder) -> Bool {
        switch order {
        case .announce(let announcement):
            hosts[announcement.address] = announcement
            meetHost(announcement.address)
        case .withdraw(let address):
            hosts[address] = nil
        case .connect(let key):
            guard hosts[key.address] != nil else { return false }
            connectHost(key)
        case .cancelConnection(let key), .disconnect(let key):
            guard hostLinks[key] != nil else { return false }
            dropHost(key, .local, server: .remote)
        case .discover(let key):
            guard hostLinks[key]?.isUp == true else { return hostLinks[key] != nil }
            schedule(.hostDiscovery(key), after: Self.hostLink.resolveLatency)
        case .request(let key, let request):
            guard hostLinks[key] != nil else { return false }
            receiveForHost(request, key)
        case .respond(let key, let id, let result, let packets): respond(key, id, result, packets)
        case .deliver(let key, let characteristic, let bytes):
            guard let link = hostLinks[key], link.isUp else { return true }
            guard link.outcome == nil else {
                hostLinks[key]?.following.append(
                    HostedLink.Following(characteristic: characteristic, bytes: bytes))
                return true
            }
            events.append(.value(key, characteristic: characteristic, bytes))
        case .tellServicesChanged(let key):
            if hostLinks[key]?.isUp == true { events.append(.servicesChanged(key)) }
        case .hangUp(.adapter(let key), _): dropHost(key, .remote, server: .local)
        case .hangUp(.virtual, let key): dismiss(key)
        }
        return true
    }

    // MARK: Between adapters

    private mutating func connectHost(_ key: DeviceKey) {
        guard let host = hosts[key.address],
            let central = hosts.values.first(where: { $0.adapter == key.adapter })?.address
        else { return }
        hostLinks[key] = HostedLink(server: DeviceKey(adapter: host.adapter, address: central))
        deadlines.set(.hostTimeout(key), to: now + Self.hostLink.connectTimeout)
        meetHost(key.address)
    }

    /// Somebody may be heard now whom others wait for.
    private mutating func meetHost(_ address: VirtualAddress) {
        guard let host = hosts[address], host.isConnectable else { return }
        for key in hostLinks.keys.sorted() where key.address == address && hostLinks[key]?.isUp == false {
            deadlines.set(.hostConnection(key), to: now + Self.hostLink.connectLatency)
        }
        for key in visitors.keys.sorted() where key.adapter == host.adapter && visitors[key]?.isUp == false {
            deadlines.set(.arrival(key), to: now + Self.hostLink.connectLatency)
        }
    }

    mutating func hostConnectionDue(_ key: DeviceKey) {
        guard let link = hostLinks[key], !link.isUp, hosts[key.address]?.isConnectable == true else { return }
        deadlines.remove(.hostTimeout(key))
        hostLinks[key]?.isUp = true
        let identity = CentralIdentity(
            end: .adapter(key), addressType: .public, name: hosts[link.server.address]?.name, mtu: Self.hostLink.mtu)
        events.append(.centralCame(link.server, identity))
        events.append(.linkUp(key, Self.hostLink))
    }

    mutating func giveUpHost(_ key: DeviceKey) {
        guard let link = hostLinks[key], !link.isUp else { return }
        forgetHostLink(key)
        events.append(.linkFailed(key))
    }

    private mutating func forgetHostLink(_ key: DeviceKey) {
        hostLinks[key] = nil
        for due in [Due.hostConnection(key), .hostTimeout(key), .hostDiscovery(key), .hostResponse(key)] {
            deadlines.remove(due)
        }
    }

    mutating func dropHost(_ key: DeviceKey, _ reason: LinkEndCause, server: LinkEndCause) {
        guard let link = hostLinks[key] else { return }
        forgetHostLink(key)
        guard link.isUp else { return }
        events.append(.linkDown(key, reason))
        events.append(.centralLeft(link.server, server))
    }

    mutating func hostDiscoveryDue(_ key: DeviceKey) {
        guard let link = hostLinks[key], link.isUp else { return }
        events.append(.hostDiscovered(key, host: link.server.adapter))
    }

    // MARK: Requests

    private mutating func receiveForHost(_ request: AttributeRequest, _ key: DeviceKey) {
        guard let link = hostLinks[key], link.isUp else { return }
        if case .write(_, _, _, .command) = request.kind {
            events.append(.asked(link.server, request))
            return
        }
        hostLinks[key]?.queue.append(request)
        hostLinks[key]?.requestCount += 1
        if link.queue.isEmpty { events.append(.asked(link.server, request)) }
    }

    private mutating func respond(_ key: DeviceKey, _ id: UInt64, _ result: AttributeResult, _ packets: Int) {
        guard let link = hostLinks[key], link.queue.first?.id == id else { return }
        hostLinks[key]?.outcome = result
        schedule(.hostResponse(key), after: Self.hostLink.callLatency * Double(max(1, packets)))
    }

    mutating func hostResponseDue(_ key: DeviceKey) {
        guard let link = hostLinks[key], let request = link.queue.first, let outcome = link.outcome else { return }
        hostLinks[key]?.queue.removeFirst()
        hostLinks[key]?.outcome = nil
        hostLinks[key]?.following = []
        if case .configure(let characteristic, let bits) = request.kind, case .bytes = outcome {
            hostLinks[key]?.subscriptions[characteristic] = bits == 0 ? nil : bits
        }
        events.append(.response(key, id: request.id, outcome))
        for value in link.following {
            events.append(.value(key, characteristic: value.characteristic, value.bytes))
        }
        if link.queue.count > 1 { events.append(.asked(link.server, link.queue[1])) }
    }

    // MARK: Centrals of the simulator's own

    /// A central wants to connect; one with the same address goes before.
    mutating func visit(_ central: VirtualCentral, number: UInt64, _ key: DeviceKey, now: TimeInterval) {
        self.now = now
        leave(key)
        visitors[key] = Visitor(central: central, number: number)
        deadlines.set(.arrivalTimeout(key), to: now + central.connectTimeout)
        guard let host = hosts.values.first(where: { $0.adapter == key.adapter }) else { return }
        meetHost(host.address)
    }

    mutating func arrivalDue(_ key: DeviceKey) {
        guard let visitor = visitors[key], !visitor.isUp,
            hosts.values.contains(where: { $0.adapter == key.adapter && $0.isConnectable })
        else { return }
        deadlines.remove(.arrivalTimeout(key))
        visitors[key]?.isUp = true
        let central = visitor.central
        events.append(
            .centralCame(
                key,
                CentralIdentity(
                    end: .virtual(visitor.number), addressType: central.addressType, name: central.name,
                    isBonded: central.isBonded, mtu: central.mtu)
            ))
    }

    mutating func visitorGivesUp(_ key: DeviceKey) {
        guard let visitor = visitors[key], !visitor.isUp else { return }
        dismiss(key)
        events.append(.centralNotReached(visitor.number))
    }

    /// The central of a link goes, with the link or without one; the server notices.
    mutating func leave(_ key: DeviceKey, number: UInt64, now: TimeInterval) {
        self.now = now
        if visitors[key]?.number == number { leave(key) }
    }

    mutating func leave(_ key: DeviceKey, _ reason: LinkEndCause = .remote) {
        guard let visitor = visitors[key] else { return }
        dismiss(key)
        events.append(visitor.isUp ? .centralLeft(key, reason) : .centralNotReached(visitor.number))
    }

    /// The central is out of range; the server notices after a while.
    mutating func vanish(_ key: DeviceKey, number: UInt64, noticedAfter delay: TimeInterval, now: TimeInterval) {
        self.now = now
        guard visitors[key]?.number == number else { return }
        guard visitors[key]?.isUp == true else { return leave(key) }
        visitors[key]?.hasVanished = true
        schedule(.departure(key), after: delay)
    }

    mutating func departureDue(_ key: DeviceKey) {
        guard visitors[key]?.hasVanished == true else { return }
        leave(key, .timeout)
    }

    private mutating func dismiss(_ key: DeviceKey) {
        visitors[key] = nil
        deadlines.remove(.arrival(key))
        deadlines.remove(.arrivalTimeout(key))
        deadlines.remove(.departure(key))
    }

    /// A request of such a central.
    mutating func ask(_ request: AttributeRequest, by key: DeviceKey, number: UInt64, now: TimeInterval) {
        self.now = now
        guard let visitor = visitors[key], visitor.isUp, visitor.number == number else { return }
        events.append(.asked(key, request))
    }

    // MARK: Ending

    /// The daemon is gone: adapters are silent, and their links with them.
    mutating func silenceHosts() {
        for key in hostLinks.keys.sorted() { forgetHostLink(key) }
        for key in visitors.keys.sorted() where visitors[key]?.isUp == true { dismiss(key) }
        hosts = [:]
    }
}
