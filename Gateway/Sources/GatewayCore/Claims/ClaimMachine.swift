public import Foundation

/// Decides for one gateway which devices it connects, among several gateways on one broker.
///
/// A pure value: events and the time go in, orders come out. Times are seconds of any clock that only runs forwards.
/// The caller performs the orders in their sequence, and calls ``handle(_:at:)`` with ``Event/time`` at ``nextWake``.
///
/// A device has at most one link because a gateway asks for one only if all of this is true:
///
/// - It has published ``Claim/State/takes``, and the broker has sent that claim back.
/// - Since then ``ClaimOptions/settlingTime`` has passed. Of two gateways that claim at once, the later one has
///   received the claim of the earlier one by then.
/// - It has received no other exclusive claim that still counts. Of two claims, both sides let the same one precede
///   (``Claim/precedes(_:of:_:of:)``); the other is removed.
///
/// A hand-over has two steps. A gateway that has received the device better by ``ClaimOptions/hysteresis`` for
/// ``ClaimOptions/leadTime`` publishes ``Claim/State/wants``. The holder ends its link (``Claim/State/yields``, with
/// the successor's name), and removes its claim when the link has ended. The successor publishes
/// ``Claim/State/takes`` meanwhile.
///
/// While there is no broker, links stay, and a gateway connects only the devices that it held last.
///
/// A gateway that alone loses its connection to the broker keeps its links, although its will removes its claims. A
/// device that accepts one link, and does not advertise meanwhile, has one link then too. Any other device may have
/// two, until the gateway is connected again; one of the two gives way then.
public struct ClaimMachine: Sendable {
    /// What has happened.
    public enum Event: Hashable, Sendable {
        /// The gateway's own radio has received an advertisement of a device that it may connect, with a strength in
        /// dBm.
        case sighting(DeviceName, strength: Double)
        /// The strength of the gateway's link to a device was measured, in dBm.
        case linkStrength(DeviceName, Double)
        /// The gateway's link to a device is up.
        case linkUp(DeviceName)
        /// The gateway's link to a device has ended, or the attempt to connect it has ended without a link. It is
        /// certain that none follows without a new order.
        case linkDown(DeviceName)
        /// A gateway's claim to a device arrived; `nil` for an empty payload. The gateway's own claims are passed too.
        case claim(DeviceName, gateway: String, Claim?)
        /// The state of a gateway arrived, or its will. The gateway's own state is passed too.
        case gateway(String, isOnline: Bool)
        /// The broker has accepted the connection, and claims and states are subscribed.
        case brokerConnected
        /// The connection to the broker has ended, or the broker acknowledges nothing: it has no leader.
        case brokerDisconnected
        /// Whether the gateway may connect a device, by its configuration and by commands. Initially it may.
        case permitted(DeviceName, Bool)
        /// The number of links that the gateway can have.
        case linkLimit(Int)
        /// Time has passed.
        case time
    }

    /// What the caller is to do.
    public enum Order: Hashable, Sendable {
        /// Publish a claim of this gateway, retained, with quality 1. A claim that the transport refuses is ordered
        /// again.
        case publish(DeviceName, Claim)
        /// Publish an empty claim of this gateway, retained, with quality 1.
        case remove(DeviceName)
        /// Connect a device, once. ``Event/linkUp(_:)`` or ``Event/linkDown(_:)`` follows.
        case connect(DeviceName)
        /// End the link to a device, or the attempt. ``Event/linkDown(_:)`` follows, also if there is neither.
        case disconnect(DeviceName)
        /// Publish the gateway's state again: a late will has replaced it.
        case announce
    }

    /// What the gateway does about a device.
    public enum Activity: String, Hashable, Sendable, Codable {
        case none, wants, takes, connecting, linked, yielding
        /// The link was lost while there is no broker; the device is connected again when it is received.
        case waiting
    }

    /// The name of the gateway.
    public var gateway: String { shared.gateway }
    /// When to pass ``Event/time`` at the latest; `nil` if only events are awaited.
    public var nextWake: TimeInterval? { earliest == .infinity ? nil : earliest }
    /// The number of claims and sightings that were ignored because the table of devices or of gateways was full.
    public private(set) var ignored = 0

    private var shared: Shared
    private var records: [DeviceName: Record] = [:]
    private var earliest = TimeInterval.infinity

    /// Creates the machine of a gateway that has no links, and no connection to the broker.
    ///
    /// - Parameters:
    ///   - gateway: The gateway's name, unique on the broker.
    ///   - session: A number that differs from that of the gateway's earlier process.
    ///   - linkLimit: The number of links that the gateway can have.
    ///   - options: The same for all gateways.
    public init(
        gateway: String, session: UInt32 = .random(in: 1 ... .max), linkLimit: Int = 3, options: ClaimOptions = .init()
    ) {
        shared = Shared(gateway: gateway, session: session, options: options, linkLimit: linkLimit)
    }

    /// Returns what the gateway does about a device.
    public func activity(of device: DeviceName) -> Activity { records[device]?.own.activity ?? .none }

    /// Returns the other gateway that has the link to a device, or is about to have it, by the claims that have
    /// arrived.
    public func holder(of device: DeviceName) -> String? {
        records[device]?.claims.filter { $0.value.claim.isExclusive }.keys.min()
    }

    /// Takes an event, and returns what the caller is to do, in this sequence.
    ///
    /// - Parameters:
    ///   - event: What has happened.
    ///   - now: The time in seconds; never less than in the call before.
    public mutating func handle(_ event: Event, at now: TimeInterval) -> [Order] {
        var orders: [Order] = []
        switch event {
        case .sighting(let device, let strength):
            change(device, now, &orders) { record, shared in record.adverts.add(strength, at: now, shared.options) }
        case .linkStrength(let device, let strength):
            change(device, now, &orders) { record, shared in record.link.add(strength, at: now, shared.options) }
        case .linkUp(let device): change(device, now, &orders) { $0.linkWentUp(&$1, now) }
        case .linkDown(let device): change(device, now, &orders) { $0.linkEnded(&$1, now) }
        case .permitted(let device, let isPermitted):
            change(device, now, &orders) { record, _ in record.isPermitted = isPermitted }
        case .claim(let device, gateway, let claim):
            if claim == nil, records[device] == nil { break }
            change(device, now, &orders) { record, shared in record.receivedOwn(claim, shared, now) }
        case .claim(let device, let name, let claim): received(claim, of: name, to: device, now, &orders)
        case .gateway(gateway, let isOnline):
            guard !isOnline, shared.connectedAt != nil else { break }
            orders.append(.announce)
            shared.repeatAt = now + shared.options.settlingTime
            changeAll(now, &orders) { record, _ in record.publishAgain() }
        case .gateway(let name, let isOnline): received(isOnline: isOnline, of: name, now, &orders)
        case .brokerConnected:
            guard shared.connectedAt == nil else { break }
            shared.connectedAt = now
            shared.repeatAt = now + shared.options.settlingTime
            changeAll(now, &orders) { $0.brokerConnected(&$1, now) }
        case .brokerDisconnected:
            guard shared.connectedAt != nil else { break }
            shared.connectedAt = nil
            changeAll(now, &orders) { $0.brokerDisconnected(&$1) }
        case .linkLimit(let limit): shared.linkLimit = max(0, limit)
        case .time: break
        }
        if now >= earliest { wake(now, &orders) }
        return orders
    }

    // MARK: Devices

    /// Changes the record of one device, and lets it decide.
    private mutating func change(
        _ device: DeviceName, _ now: TimeInterval, _ orders: inout [Order],
        _ body: (inout Record, inout Shared) -> Void
    ) {
        if records[device] == nil {
            guard records.count < shared.options.deviceLimit else { return refuse(now) }
            records[device] = Record(device: device, now: now, quietUntil: shared.quietUntil)
        }
        records[device]!.change(&shared, now, &orders, body)
        earliest = min(earliest, records[device]!.due)
    }

    private mutating func changeAll(
        _ now: TimeInterval, _ orders: inout [Order], _ body: (inout Record, inout Shared) -> Void
    ) {
        for device in records.keys.sorted() { change(device, now, &orders, body) }
    }

    private mutating func wake(_ now: TimeInterval, _ orders: inout [Order]) {
        for device in records.filter({ $0.value.due <= now }).keys.sorted() {
            if records[device]!.isForgettable(shared, now) {
                records[device] = nil
            } else {
                records[device]!.change(&shared, now, &orders) { _, _ in }
            }
        }
        earliest = records.values.reduce(.infinity) { min($0, $1.due) }
    }

    // MARK: Other gateways

    /// Something about a device was lost: new devices are left alone until each holder has published its claim again.
    private mutating func refuse(_ now: TimeInterval) {
        ignored += 1
        shared.quietUntil = now + shared.options.claimLifetime
    }

    private mutating func received(
        _ claim: Claim?, of name: String, to device: DeviceName, _ now: TimeInterval, _ orders: inout [Order]
    ) {
        guard let claim else {
            guard records[device]?.claims[name] != nil else { return }
            return change(device, now, &orders) { record, _ in record.claims[name] = nil }
        }
        guard shared.peers[name] != nil || shared.peers.count < Shared.peerLimit else { return refuse(now) }
        guard shared.peers[name, default: Peer()].accepts(claim) else { return }
        if let claims = records[device]?.claims, claims[name] == nil, claims.count >= shared.options.gatewayLimit {
            ignored += 1
            records[device]!.retryAfter = now + shared.options.claimLifetime
            return
        }
        change(device, now, &orders) { $0.received(claim, of: name, $1, now) }
    }

    private mutating func received(isOnline: Bool, of name: String, _ now: TimeInterval, _ orders: inout [Order]) {
        guard shared.peers[name] != nil || shared.peers.count < Shared.peerLimit else { return refuse(now) }
        shared.peers[name, default: Peer()].isOnline = isOnline
        guard !isOnline else { return }
        shared.peers[name]!.void()
        for device in records.filter({ $0.value.claims[name] != nil }).keys.sorted() {
            change(device, now, &orders) { record, shared in
                if record.claims.removeValue(forKey: name)?.claim.isExclusive == true {
                    record.retryAfter = max(record.retryAfter, now + shared.options.willDelay)
                }
            }
        }
    }
}

/// What the machine knows of another gateway.
private struct Peer: Sendable {
    var isOnline = true
    private var session: UInt32 = 0
    private var newest: UInt64 = 0
    /// Claims of the session up to this number fell with the gateway's will.
    private var voided: UInt64 = 0

    /// Returns whether a claim was published after the gateway's last will.
    mutating func accepts(_ claim: Claim) -> Bool {
        if claim.session != session { (session, newest, voided) = (claim.session, 0, 0) }
        newest = max(newest, claim.number)
        return claim.number > voided
    }

    mutating func void() { voided = newest }
}

/// What the records of all devices have in common.
private struct Shared: Sendable {
    let gateway: String
    let session: UInt32
    let options: ClaimOptions
    var linkLimit: Int
    /// Links, attempts, and claims to one.
    var links = 0
    var connectedAt: TimeInterval?
    var peers: [String: Peer] = [:]
    var quietUntil = -TimeInterval.infinity
    /// When all claims are published once more. A will of the earlier connection may reach other gateways after
    /// claims that were published before this time, and remove them.
    var repeatAt = -TimeInterval.infinity
    private var number: UInt64 = 0

    static let peerLimit = 1_024

    init(gateway: String, session: UInt32, options: ClaimOptions, linkLimit: Int) {
        (self.gateway, self.session, self.options, self.linkLimit) = (gateway, session, options, linkLimit)
    }

    mutating func nextNumber() -> UInt64 {
        number += 1
        return number
    }
}

/// The machine of one device: what all gateways claim, what this one receives, and what it does.
private struct Record: Sendable {
    /// What this gateway does; each case that lasts has the time of its beginning.
    enum Own: Hashable {
        case none
        case wants
        case takes(since: TimeInterval, confirmed: TimeInterval?)
        case connecting(since: TimeInterval)
        case linked(since: TimeInterval)
        case waiting(since: TimeInterval)
        case yielding(to: String?, ordered: TimeInterval)

        var activity: ClaimMachine.Activity {
            switch self {
            case .none: .none
            case .wants: .wants
            case .takes: .takes
            case .connecting: .connecting
            case .linked: .linked
            case .waiting: .waiting
            case .yielding: .yielding
            }
        }

        /// What is published of it.
        var claim: Claim.State? {
            switch self {
            case .none: nil
            case .wants: .wants
            case .takes: .takes
            case .connecting, .linked, .waiting: .holds
            case .yielding: .yields
            }
        }

        var successor: String? {
            if case .yielding(let successor, _) = self { successor } else { nil }
        }

        var usesLink: Bool { claim.map { $0 != .wants } ?? false }
    }

    struct Other {
        var claim: Claim
        var refreshed: TimeInterval
    }

    /// The claims of others that count now, by what they mean for this gateway.
    struct Rivals {
        var holder: (name: String, claim: Claim)?
        var yielder: (name: String, claim: Claim)?
        var taker: (name: String, claim: Claim)?
        var wanting: (name: String, claim: Claim)?
        /// Whether a claim counts no longer, although its gateway has not removed it.
        var hasExpired = false

        var isFree: Bool { holder == nil && yielder == nil }
    }

    let device: DeviceName
    private(set) var own = Own.none
    var adverts = SmoothedStrength()
    var link = SmoothedStrength()
    var isPermitted = true
    var claims: [String: Other] = [:]
    var retryAfter: TimeInterval
    /// When to decide again at the latest.
    private(set) var due = TimeInterval.infinity

    private var hasLink = false
    private var endedStrayLink = -TimeInterval.infinity
    private var failures = 0
    /// Since when no other gateway has a link.
    private var freeSince: TimeInterval?
    private var leadSince: TimeInterval?
    private var conflictSince: TimeInterval?
    private var weakSince: TimeInterval?
    private var weakEnds = 0
    private var bid = (strength: -127.0, freeLinks: 0)

    /// The latest claim that was ordered over this connection.
    private var sent: Claim?
    private var sentAt = -TimeInterval.infinity
    /// The first number of the present state; confirmed when the broker has sent it, or a later one, back.
    private var firstNumber = UInt64.max
    private var isConfirmed = false
    /// Whether the broker has, or may have, a claim of this gateway.
    private var isPublished = false
    private var removedAt = -TimeInterval.infinity

    init(device: DeviceName, now: TimeInterval, quietUntil: TimeInterval) {
        self.device = device
        retryAfter = quietUntil
    }

    func isForgettable(_ shared: Shared, _ now: TimeInterval) -> Bool {
        own == .none && !isPublished && !hasLink && isPermitted && claims.isEmpty
            && adverts.strength(at: now, shared.options) == nil && now >= retryAfter
    }

    mutating func change(
        _ shared: inout Shared, _ now: TimeInterval, _ orders: inout [ClaimMachine.Order],
        _ body: (inout Record, inout Shared) -> Void
    ) {
        body(&self, &shared)
        due = .infinity
        if shared.connectedAt != nil, claims.values.contains(where: { now - $0.refreshed > 600 }) {
            claims = claims.filter { now - $0.value.refreshed <= 600 }
        }
        while decide(&shared, now, &orders) {}
        publish(&shared, now, &orders)
        if own == .none { wake(at: max(adverts.last + shared.options.strengthLifetime, retryAfter, now) + 60, now) }
    }

    private mutating func set(_ new: Own, _ shared: inout Shared) {
        shared.links += (new.usesLink ? 1 : 0) - (own.usesLink ? 1 : 0)
        if new == .none { removedAt = -.infinity }
        // All gateways listen from now on, and this one has no start.
        if own.usesLink, !new.usesLink { freeSince = nil }
        own = new
        (conflictSince, weakSince) = (nil, nil)
        // A lead goes on while another gateway is the successor.
        if new.usesLink { leadSince = nil }
    }

    /// Has the device decide again at a time in the future.
    private mutating func wake(at time: TimeInterval, _ now: TimeInterval) {
        if time > now { due = min(due, time) }
    }

    // MARK: Events

    mutating func linkWentUp(_ shared: inout Shared, _ now: TimeInterval) {
        hasLink = true
        link = SmoothedStrength()
        if case .connecting = own {
            failures = 0
            set(.linked(since: now), &shared)
        }
    }

    mutating func linkEnded(_ shared: inout Shared, _ now: TimeInterval) {
        hasLink = false
        switch own {
        case .none, .wants, .takes, .waiting: return
        case .connecting: failures += 1
        case .yielding(.some, _): retryAfter = max(retryAfter, now + 3)
        case .linked, .yielding: break
        }
        if failures > 0 { retryAfter = max(retryAfter, now + pow(2, Double(min(failures, 6)))) }
        let isTaken = claims.values.contains { $0.claim.isExclusive }
        set(shared.connectedAt == nil && isPermitted && !isTaken ? .waiting(since: now) : .none, &shared)
    }

    mutating func brokerConnected(_ shared: inout Shared, _ now: TimeInterval) {
        let patience = now + shared.options.reconnectionPatience - shared.options.claimLifetime
        for name in claims.keys { claims[name]!.refreshed = max(claims[name]!.refreshed, patience) }
        if case .waiting = own { set(.none, &shared) }
        (sent, isConfirmed, removedAt) = (nil, false, -.infinity)
    }

    mutating func brokerDisconnected(_ shared: inout Shared) {
        switch own {
        case .wants, .takes: set(.none, &shared)
        default: (leadSince, conflictSince) = (nil, nil)
        }
    }

    mutating func publishAgain() { sentAt = -.infinity }

    mutating func received(_ claim: Claim, of name: String, _ shared: Shared, _ now: TimeInterval) {
        // What is delivered again, after a new connection, is older than what has arrived.
        if let known = claims[name]?.claim, known.session == claim.session, known.number >= claim.number { return }
        let options = shared.options
        var refreshed = now
        if claims[name] == nil {
            // The broker may have kept it for long: a gateway that is offline has little time to publish it again,
            // and one that may be connecting again has more.
            refreshed =
                shared.peers[name]?.isOnline == false
                ? now - options.claimLifetime + options.refreshInterval + 1
                : max(now, (shared.connectedAt ?? now) + options.reconnectionPatience - options.claimLifetime)
        }
        claims[name] = Other(claim: claim, refreshed: refreshed)
    }

    /// The broker has sent a claim of this gateway, or of its earlier process.
    mutating func receivedOwn(_ claim: Claim?, _ shared: Shared, _ now: TimeInterval) {
        guard let claim else {
            if own == .none { isPublished = false } else if isConfirmed { sentAt = -.infinity }
            return
        }
        isPublished = true
        guard claim.session == shared.session else {
            (sentAt, removedAt) = (-.infinity, -.infinity)
            return
        }
        guard claim.number >= firstNumber, !isConfirmed else { return }
        isConfirmed = true
        if case .takes(let since, nil) = own { own = .takes(since: since, confirmed: now) }
    }

    // MARK: Decisions

    private func rivals(_ shared: Shared, _ now: TimeInterval) -> Rivals {
        var rivals = Rivals()
        func first(_ left: (name: String, claim: Claim)?, _ right: (String, Claim)) -> (String, Claim) {
            guard let left else { return right }
            return Claim.precedes(left.claim, of: left.name, right.1, of: right.0) ? left : right
        }
        for (name, other) in claims {
            if shared.connectedAt != nil, now - other.refreshed > shared.options.claimLifetime {
                rivals.hasExpired = true
                continue
            }
            switch other.claim.state {
            case .holds: rivals.holder = first(rivals.holder, (name, other.claim))
            case .yields: rivals.yielder = first(rivals.yielder, (name, other.claim))
            case .takes: rivals.taker = first(rivals.taker, (name, other.claim))
            case .wants: rivals.wanting = first(rivals.wanting, (name, other.claim))
            }
        }
        return rivals
    }

    /// Returns by how many decibels this gateway receives the device better than its holder.
    private func lead(_ strength: Double, over claim: Claim) -> Double { strength - (claim.strength ?? -100) }

    /// The strength that is published.
    private func strength(_ shared: Shared, _ now: TimeInterval) -> Double? {
        let received = adverts.strength(at: now, shared.options)
        guard case .linked(let since) = own, adverts.last < since + 1 else { return received }
        return link.strength(at: now, shared.options) ?? received
    }

    /// Makes one step; returns whether another may follow.
    private mutating func decide(
        _ shared: inout Shared, _ now: TimeInterval, _ orders: inout [ClaimMachine.Order]
    ) -> Bool {
        let rivals = rivals(shared, now)
        if rivals.isFree { freeSince = freeSince ?? now } else { freeSince = nil }
        if shared.connectedAt != nil {
            for other in claims.values { wake(at: other.refreshed + shared.options.claimLifetime + 0.001, now) }
        }
        switch own {
        case .none: return decideUnclaimed(rivals, &shared, now, &orders)
        case .wants: return decideWanting(rivals, &shared, now)
        case .takes(let since, let confirmed):
            return decideTaking(rivals, since, confirmed, &shared, now, &orders)
        case .connecting(let since):
            let isLate = now - since >= shared.options.connectLimit
            if isLate || !isPermitted || losesConflict(rivals, shared, now) {
                failures += isLate ? 1 : 0
                return yield(to: nil, &shared, now, &orders)
            }
            wake(at: since + shared.options.connectLimit, now)
        case .linked(let since):
            if rivals.holder != nil { weakEnds = 0 }
            if !isPermitted || losesConflict(rivals, shared, now) || isWeak(since, shared, now) {
                return yield(to: nil, &shared, now, &orders)
            }
            if shared.connectedAt != nil, let (name, claim) = rivals.wanting,
                (claim.strength ?? -127) - (strength(shared, now) ?? -100) >= shared.options.hysteresis / 2
            {
                return yield(to: name, &shared, now, &orders)
            }
        case .waiting(let since):
            guard isPermitted else {
                set(.none, &shared)
                return true
            }
            wake(at: retryAfter, now)
            guard shared.connectedAt == nil, adverts.last > since, now >= retryAfter, !hasLink, rivals.isFree,
                rivals.taker == nil
            else { return false }
            set(.connecting(since: now), &shared)
            orders.append(.connect(device))
        case .yielding(let successor, let ordered):
            if now - ordered >= 10 { return yield(to: successor, &shared, now, &orders) }
            wake(at: ordered + 10, now)
        }
        return false
    }

    /// No claim of this gateway.
    private mutating func decideUnclaimed(
        _ rivals: Rivals, _ shared: inout Shared, _ now: TimeInterval, _ orders: inout [ClaimMachine.Order]
    ) -> Bool {
        if hasLink {
            // A link of an earlier process, or one that a program beside the gateway has made.
            if now - endedStrayLink >= 10 {
                endedStrayLink = now
                orders.append(.disconnect(device))
            }
            wake(at: endedStrayLink + 10, now)
            return false
        }
        guard let strength = mayTake(shared, now) else {
            leadSince = nil
            return false
        }
        bid = (Claim.rounded(strength), shared.linkLimit - shared.links)
        // The lead goes on while one gateway gives the device to another, if it is a lead over both.
        if let (_, claim) = rivals.holder ?? rivals.yielder ?? rivals.taker,
            lead(strength, over: claim) >= shared.options.hysteresis
        {
            leadSince = leadSince ?? now
        } else {
            leadSince = nil
        }
        if rivals.holder != nil {
            guard let leadSince else { return false }
            if now - leadSince >= shared.options.leadTime {
                set(.wants, &shared)
                return true
            }
            wake(at: leadSince + shared.options.leadTime, now)
            return false
        }
        if let (_, claim) = rivals.yielder {
            guard claim.successor == shared.gateway else { return false }
            set(.takes(since: now, confirmed: nil), &shared)
            return true
        }
        guard let freeSince, adverts.last >= freeSince, !isPreceded(by: rivals.taker, shared) else { return false }
        let weakness = max(0, min(1, (-40 - strength) / 60))
        let ready = max(freeSince, adverts.since) + shared.options.listeningTime + weakness * 1.5
        guard now >= ready else {
            wake(at: ready, now)
            return false
        }
        set(.takes(since: now, confirmed: nil), &shared)
        return true
    }

    /// Another gateway has the link, and was asked for it.
    private mutating func decideWanting(_ rivals: Rivals, _ shared: inout Shared, _ now: TimeInterval) -> Bool {
        let next: Own
        if let strength = mayTake(shared, now) {
            if let (_, claim) = rivals.holder {
                guard lead(strength, over: claim) < shared.options.hysteresis / 2 else { return false }
                next = .none
            } else if let (_, claim) = rivals.yielder {
                next = claim.successor == shared.gateway ? .takes(since: now, confirmed: nil) : .none
            } else {
                next = isPreceded(by: rivals.taker, shared) ? .none : .takes(since: now, confirmed: nil)
            }
        } else {
            next = .none
        }
        set(next, &shared)
        return true
    }

    private mutating func decideTaking(
        _ rivals: Rivals, _ since: TimeInterval, _ confirmed: TimeInterval?, _ shared: inout Shared,
        _ now: TimeInterval, _ orders: inout [ClaimMachine.Order]
    ) -> Bool {
        let isRefused = rivals.yielder.map { $0.claim.successor != shared.gateway } ?? false
        if !isPermitted || adverts.strength(at: now, shared.options) == nil || rivals.holder != nil || isRefused
            || isPreceded(by: rivals.taker, shared) || now - since >= 30 || hasLink
        {
            retryAfter = max(retryAfter, now + 1)
            set(.none, &shared)
            return true
        }
        wake(at: min(since + 30, adverts.last + shared.options.strengthLifetime + 0.001), now)
        guard let confirmed, rivals.isFree, rivals.taker == nil else { return false }
        // The gateway of a claim that counts no longer may only have been late: it has time to publish it again.
        let settled = confirmed + (rivals.hasExpired ? shared.options.claimLifetime : shared.options.settlingTime)
        guard now >= settled, now >= retryAfter else {
            wake(at: max(settled, retryAfter), now)
            return false
        }
        set(.connecting(since: now), &shared)
        orders.append(.connect(device))
        return true
    }

    /// Returns the strength in dBm if this gateway could take the device, apart from the claims of others.
    private mutating func mayTake(_ shared: Shared, _ now: TimeInterval) -> Double? {
        guard isPermitted, !hasLink, let connectedAt = shared.connectedAt, shared.links < shared.linkLimit,
            let strength = adverts.strength(at: now, shared.options)
        else { return nil }
        let start = max(retryAfter, connectedAt + shared.options.connectionDelay)
        wake(at: start, now)
        return now >= start ? strength : nil
    }

    private func isPreceded(by rival: (name: String, claim: Claim)?, _ shared: Shared) -> Bool {
        guard let rival else { return false }
        let mine = Claim(
            .takes, strength: nil, bid: bid.strength, freeLinks: bid.freeLinks, session: 0, number: 0)
        return Claim.precedes(rival.claim, of: rival.name, mine, of: shared.gateway)
    }

    /// Returns whether another gateway claims to have a link too, for more than two seconds, and precedes this one.
    private mutating func losesConflict(_ rivals: Rivals, _ shared: Shared, _ now: TimeInterval) -> Bool {
        guard shared.connectedAt != nil, isPreceded(by: rivals.holder, shared) else {
            conflictSince = nil
            return false
        }
        let since = conflictSince ?? now
        conflictSince = since
        wake(at: since + 2, now)
        return now - since >= 2
    }

    /// Returns whether the link of a device that no other gateway can receive meanwhile has become weak.
    private mutating func isWeak(_ linked: TimeInterval, _ shared: Shared, _ now: TimeInterval) -> Bool {
        let options = shared.options
        guard shared.connectedAt != nil, adverts.last < linked + 3, let strength = link.strength(at: now, options),
            shared.peers.values.contains(where: \.isOnline)
        else {
            weakSince = nil
            return false
        }
        guard strength < options.weakLink else {
            weakSince = nil
            if strength >= options.weakLink + options.hysteresis { weakEnds = 0 }
            return false
        }
        let since = weakSince ?? now
        weakSince = since
        let pause = weakEnds == 0 ? 0 : min(600, options.weakLinkInterval * pow(2, Double(min(weakEnds, 6) - 1)))
        let end = max(since + options.leadTime, linked + pause)
        wake(at: end, now)
        if now >= end { weakEnds += 1 }
        return now >= end
    }

    private mutating func yield(
        to successor: String?, _ shared: inout Shared, _ now: TimeInterval, _ orders: inout [ClaimMachine.Order]
    ) -> Bool {
        set(.yielding(to: successor, ordered: now), &shared)
        // The claim first: the successor prepares while the link ends.
        publish(&shared, now, &orders)
        orders.append(.disconnect(device))
        wake(at: now + 10, now)
        return false
    }

    // MARK: Publishing

    private mutating func publish(
        _ shared: inout Shared, _ now: TimeInterval, _ orders: inout [ClaimMachine.Order]
    ) {
        guard shared.connectedAt != nil else { return }
        guard let state = own.claim else {
            sent = nil
            guard isPublished else { return }
            if now - removedAt >= 2 {
                removedAt = now
                orders.append(.remove(device))
            }
            return wake(at: removedAt + 2, now)
        }
        let strength = strength(shared, now).map(Claim.rounded)
        let isNew = sent?.state != state || sent?.successor != own.successor
        let isDifferent = abs((strength ?? -127) - (sent?.strength ?? -127)) >= 1
        let age = now - sentAt
        let isRepeated = sentAt < shared.repeatAt && now >= shared.repeatAt
        if isNew || isRepeated || age >= shared.options.refreshInterval || (isDifferent && age >= 1)
            || (!isConfirmed && age >= 2)
        {
            let claim = Claim(
                state, strength: strength, bid: bid.strength, freeLinks: max(0, bid.freeLinks),
                successor: own.successor, session: shared.session, number: shared.nextNumber())
            if isNew { (firstNumber, isConfirmed) = (claim.number, false) }
            (sent, sentAt, isPublished) = (claim, now, true)
            orders.append(.publish(device, claim))
        }
        wake(at: sentAt + (isConfirmed ? shared.options.refreshInterval : 2), now)
        wake(at: shared.repeatAt, now)
    }
}
