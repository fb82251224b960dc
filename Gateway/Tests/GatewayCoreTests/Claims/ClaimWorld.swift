import Foundation
import GatewayCore
import GatewayTestSupport

/// Gateways, their broker, and one device that walks, in virtual time.
///
/// Messages of one topic keep their order. Topics overtake each other by up to 1.2 s, and each connection can stall for
/// seconds. What a gateway has received is delivered again after it has connected again.
final class ClaimWorld {
    /// A gateway with its radio and its connection.
    final class Node {
        let name: String
        var machine: ClaimMachine
        var position = 0.0
        var isAlive = true
        /// What the broker sees, and what the gateway has noticed.
        var isAttached = false
        var isConnected = false
        /// Distinguishes connections, so that nothing of an earlier one arrives.
        var connection = 0
        var process = 0
        var link = Link.none
        var attempt = 0
        var wakeAt = Double.infinity
        var uplinkFree = 0.0
        var downlinkFree = 0.0
        var topicFree: [String: Double] = [:]
        var delivered: [Message] = []
        var missed: [Message] = []

        init(_ name: String, _ machine: ClaimMachine) { (self.name, self.machine) = (name, machine) }
    }

    /// A message as the broker carries it, and what it means to a gateway.
    struct Message {
        let topic: String
        let isRetained: Bool
        let event: ClaimMachine.Event
    }

    enum Link { case none, connecting, up, ending }

    static let device = DeviceName("c0ffee00180d")!

    var numbers: SeededNumbers
    let options: ClaimOptions
    private(set) var now = 0.0
    private(set) var nodes: [Node] = []
    /// Whether the device goes on advertising while it has a link, and takes more than one.
    var advertisesWhileLinked = true
    var reportsLinkStrength = true
    var noise = 2.0
    /// The device's place at a time.
    var path: (Double) -> Double = { _ in 0 }
    /// Replaces the strengths that follow from the places, in dBm.
    var strengths: ((Int, Double) -> Double)?
    var isBrokerUp = true
    var hasLeader = true
    var retained: [String: Message] = [:]
    private var withoutLeader: [() -> Void] = []
    /// Called at each step of half a second.
    var observe: () -> Void = {}

    private(set) var failures: [String] = []
    /// The links that began: when, and of which gateway.
    private(set) var links: [(time: Double, node: Int)] = []
    /// The latest time at which something was not in order.
    private(set) var disturbed = 0.0
    var trace: [String]?

    private var queue: [(time: Double, number: Int, action: () -> Void)] = []
    private var scheduled = 0
    private var hasBegun = false
    private(set) var events = 0

    init(gateways: Int, seed: UInt64, linkLimit: Int = 3, options: ClaimOptions = ClaimOptions()) {
        numbers = SeededNumbers(seed)
        self.options = options
        for index in 0..<gateways {
            let name = "g\(index)"
            let machine = ClaimMachine(
                gateway: name, session: UInt32.random(in: 1 ... .max, using: &numbers), linkLimit: linkLimit,
                options: options)
            nodes.append(Node(name, machine))
        }
    }

    // MARK: Time

    func at(_ time: Double, _ action: @escaping () -> Void) {
        scheduled += 1
        queue.append((max(time, now), scheduled, action))
        var child = queue.count - 1
        while child > 0, precedes(child, (child - 1) / 2) {
            queue.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private func precedes(_ left: Int, _ right: Int) -> Bool {
        queue[left].time != queue[right].time
            ? queue[left].time < queue[right].time : queue[left].number < queue[right].number
    }

    private func next() -> () -> Void {
        let first = queue[0]
        let last = queue.removeLast()
        if !queue.isEmpty {
            queue[0] = last
            var parent = 0
            while true {
                var least = parent
                for child in [2 * parent + 1, 2 * parent + 2] where child < queue.count && precedes(child, least) {
                    least = child
                }
                if least == parent { break }
                queue.swapAt(parent, least)
                parent = least
            }
        }
        now = first.time
        return first.action
    }

    /// Connects all gateways, and plays until a time.
    func play(until end: Double) {
        if !hasBegun {
            hasBegun = true
            for node in nodes {
                attach(node, after: numbers.time(0...2))
                hear(node)
            }
            step()
        }
        while let first = queue.first, first.time <= end {
            events += 1
            next()()
        }
        now = end
    }

    private func step() {
        observe()
        at(now + 0.5) { [unowned self] in step() }
    }

    func disturb() { disturbed = now }

    func log(_ text: @autoclosure () -> String) {
        if trace != nil { trace!.append("\((now * 1000).rounded() / 1000) \(text())") }
    }

    func fail(_ text: String) {
        log("FAILURE \(text)")
        failures.append("at \(now): \(text)")
    }

    // MARK: Radio

    /// The strength without noise, in dBm.
    func strength(_ index: Int) -> Double {
        strengths?(index, now) ?? -45 - 25 * log10(max(1, abs(nodes[index].position - path(now))))
    }

    static let limit = -95.0

    private func index(_ node: Node) -> Int { nodes.firstIndex { $0 === node }! }

    private func hear(_ node: Node) {
        at(now + numbers.time(0.7...1.0)) { [unowned self] in hear(node) }
        guard node.isAlive else { return }
        let strength = strength(index(node)) + numbers.time(-noise...noise)
        if node.link == .up {
            if strength < Self.limit - 3 {
                let attempt = node.attempt
                at(now + 2) { [unowned self] in endLink(node, attempt) }
            } else if reportsLinkStrength {
                give(node, .linkStrength(Self.device, strength.rounded()))
            }
        }
        let isSilent = !advertisesWhileLinked && nodes.contains { $0.link == .up || $0.link == .ending }
        if !isSilent, strength >= Self.limit { give(node, .sighting(Self.device, strength: strength.rounded())) }
    }

    private func endLink(_ node: Node, _ attempt: Int) {
        guard node.attempt == attempt, node.link != .none else { return }
        node.link = .none
        log("\(node.name) link down")
        give(node, .linkDown(Self.device))
    }

    private func connect(_ node: Node) {
        for other in nodes where other.link != .none {
            fail("\(node.name) connects while \(other.name) is \(other.link)")
        }
        node.attempt += 1
        let attempt = node.attempt
        node.link = .connecting
        at(now + numbers.time(0.2...1.5)) { [unowned self] in
            guard node.attempt == attempt, node.link == .connecting else { return }
            guard strength(index(node)) >= Self.limit else {
                return at(now + 3) { [unowned self] in endLink(node, attempt) }
            }
            node.link = .up
            links.append((now, index(node)))
            log("\(node.name) link up")
            give(node, .linkUp(Self.device))
        }
    }

    private func disconnect(_ node: Node) {
        let attempt = node.attempt
        switch node.link {
        case .none: at(now + 0.01) { [unowned self] in if node.isAlive { give(node, .linkDown(Self.device)) } }
        case .ending: break
        case .up:
            node.link = .ending
            at(now + numbers.time(2.0...2.2)) { [unowned self] in endLink(node, attempt) }
        case .connecting: at(now + 0.1) { [unowned self] in endLink(node, attempt) }
        }
    }

    // MARK: Gateways

    func give(_ node: Node, _ event: ClaimMachine.Event) {
        guard node.isAlive else { return }
        let orders = node.machine.handle(event, at: now)
        for order in orders {
            log("\(node.name) \(order)")
            switch order {
            case .publish(_, let claim): publish(node, claim: claim.payload)
            case .remove: publish(node, claim: Data())
            case .announce: publish(node, state(of: node, isOnline: true))
            case .connect: connect(node)
            case .disconnect: disconnect(node)
            }
        }
        guard let wake = node.machine.nextWake, wake < node.wakeAt else { return }
        node.wakeAt = wake
        at(wake) { [unowned self] in
            guard node.wakeAt == wake else { return }
            node.wakeAt = .infinity
            give(node, .time)
        }
    }

    /// Ends a gateway and its link; the broker publishes its will after a time, and it starts again after another.
    func kill(_ node: Node, will: Double, restart: Double) {
        guard node.isAlive else { return }
        log("\(node.name) dies")
        node.isAlive = false
        node.process += 1
        node.attempt += 1
        node.link = .none
        node.wakeAt = .infinity
        detach(node, will: will)
        let process = node.process
        at(now + restart) { [unowned self] in
            guard node.process == process else { return }
            disturb()
            log("\(node.name) starts")
            node.isAlive = true
            node.machine = ClaimMachine(
                gateway: node.name, session: UInt32.random(in: 1 ... .max, using: &numbers), options: options)
            attach(node, after: numbers.time(0...1))
        }
    }

    // MARK: Broker

    /// The broker loses a gateway's connection; the will is sent after a time, or before the next connection, or never.
    func detach(_ node: Node, will: Double?) {
        disturb()
        node.isAttached = false
        node.isConnected = false
        node.connection += 1
        let connection = node.connection
        if let will {
            pendingWills.insert(node.name)
            at(now + will) { [unowned self] in if node.connection == connection { sendWill(node) } }
        }
    }

    private var pendingWills: Set<String> = []

    private func sendWill(_ node: Node) {
        if pendingWills.remove(node.name) != nil { accept(state(of: node, isOnline: false)) }
    }

    /// The gateway notices that it has no connection.
    func noticeLoss(_ node: Node) {
        disturb()
        give(node, .brokerDisconnected)
    }

    /// The gateway connects, as soon as there is a broker.
    func attach(_ node: Node, after delay: Double) {
        node.connection += 1
        let connection = node.connection
        at(now + delay) { [unowned self] in
            guard node.connection == connection, node.isAlive else { return }
            guard isBrokerUp, hasLeader else { return attach(node, after: 0.5 + numbers.time(0...1)) }
            disturb()
            sendWill(node)
            node.isAttached = true
            node.isConnected = true
            node.topicFree = [:]
            (node.uplinkFree, node.downlinkFree) = (now, now)
            log("\(node.name) connected")
            give(node, .brokerConnected)
            publish(node, state(of: node, isOnline: true))
            let repeated = node.delivered.suffix(Int(numbers.time(0...6))) + node.missed
            node.missed = []
            for message in repeated { deliver(message, to: node) }
            for (_, message) in retained.sorted(by: { $0.key < $1.key }) { deliver(message, to: node) }
        }
    }

    private func state(of node: Node, isOnline: Bool) -> Message {
        Message(topic: "\(node.name)/state", isRetained: true, event: .gateway(node.name, isOnline: isOnline))
    }

    private func publish(_ node: Node, claim payload: Data) {
        guard let claim = try? Claim.decode(payload) else {
            guard payload.isEmpty else { return fail("\(node.name) publishes what is not a claim") }
            return publish(
                node,
                Message(
                    topic: "claim/\(node.name)", isRetained: false,
                    event: .claim(Self.device, gateway: node.name, nil)))
        }
        publish(
            node,
            Message(
                topic: "claim/\(node.name)", isRetained: true, event: .claim(Self.device, gateway: node.name, claim)))
    }

    private func publish(_ node: Node, _ message: Message) {
        guard node.isAttached else { return }
        let connection = node.connection
        node.uplinkFree = max(node.uplinkFree, now + numbers.time(0.002...0.06))
        at(node.uplinkFree) { [unowned self] in
            guard node.connection == connection, isBrokerUp else { return }
            if hasLeader { return accept(message) }
            withoutLeader.append { [unowned self] in accept(message) }
        }
    }

    private func accept(_ message: Message) {
        guard isBrokerUp else { return }
        log("broker \(message.topic) \(message.event)")
        retained[message.topic] = message.isRetained ? message : nil
        for node in nodes {
            if node.isAttached {
                deliver(message, to: node)
            } else if node.missed.count < 100 {
                node.missed.append(message)
            }
        }
    }

    private func deliver(_ message: Message, to node: Node) {
        let connection = node.connection
        let skew = numbers.chance(0.1) ? numbers.time(0...1.2) : numbers.time(0...0.05)
        let time = max(max(node.downlinkFree, now) + skew, node.topicFree[message.topic] ?? 0)
        node.topicFree[message.topic] = time
        at(time) { [unowned self] in
            guard node.connection == connection, node.isAlive else { return }
            if node.delivered.count > 20 { node.delivered.removeFirst(10) }
            node.delivered.append(message)
            give(node, message.event)
        }
    }

    /// All that one connection carries is late by a time.
    func stall(_ node: Node, by delay: Double) {
        disturb()
        log("\(node.name) stalls by \(delay)")
        node.uplinkFree = max(node.uplinkFree, now + delay)
        node.downlinkFree = max(node.downlinkFree, now + delay)
        for (topic, time) in node.topicFree { node.topicFree[topic] = max(time, now + delay) }
    }

    /// The broker ends, without wills, and starts again.
    func crash(for duration: Double, keepsRetained: Bool) {
        guard isBrokerUp, hasLeader else { return }
        log("broker ends")
        isBrokerUp = false
        pendingWills = []
        if !keepsRetained {
            retained = [:]
            for node in nodes { node.missed = [] }
        }
        for node in nodes where node.isAlive && node.isAttached {
            detach(node, will: nil)
            let process = node.process
            let notice = numbers.chance(0.7) ? 0.05 : numbers.time(0...7.5)
            at(now + notice) { [unowned self] in
                guard node.process == process else { return }
                noticeLoss(node)
                let back = keepsRetained ? numbers.time(0...15) : numbers.time(0...2)
                attach(node, after: max(0, duration - notice) + back)
            }
        }
        at(now + duration) { [unowned self] in
            disturb()
            log("broker starts")
            isBrokerUp = true
        }
    }

    /// The broker acknowledges nothing for a time; what was sent is accepted at the end, or lost.
    func loseLeader(for duration: Double) {
        guard isBrokerUp, hasLeader else { return }
        log("no leader")
        disturb()
        hasLeader = false
        for node in nodes where node.isAlive && node.isAttached {
            let (process, connection) = (node.process, node.connection)
            at(now + numbers.time(4...7)) { [unowned self] in
                guard node.process == process, node.connection == connection else { return }
                noticeLoss(node)
                detach(node, will: nil)
                attach(node, after: 0.5)
            }
        }
        at(now + duration) { [unowned self] in
            disturb()
            log("leader")
            hasLeader = true
            let late = withoutLeader
            withoutLeader = []
            if numbers.chance(0.5) { for accept in late { accept() } }
        }
    }
}
