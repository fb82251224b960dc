import Foundation

/// The Security Managers of all devices: the keys, the security of each link, and the pairings. For an adapter it does what
/// the kernel does.
struct SecurityManager: Sendable {
    typealias Side = PairingProcedure.Side

    /// The state of an adapter in the kernel.
    struct Adapter: Hashable, Sendable {
        var address: VirtualAddress
        /// That of the default agent, or of the last one that there was.
        var capability = PairingCapability.noInputNoOutput
        /// The adapter is pairable.
        var isBondable = false
    }

    enum Party: Hashable, Sendable {
        /// An adapter, with the address of the other end.
        case adapter(DeviceKey)
        /// A virtual device, with its identity.
        case device(VirtualAddress, VirtualSecurity)
    }

    private struct Link: Sendable {
        let initiator: Party
        let responder: Party
        /// Seconds for a packet and its response.
        let latency: TimeInterval
        /// Those of adapters, at the time when the link came up.
        var capabilities: [DeviceKey: PairingCapability] = [:]
        var security = LinkSecurity.none
        /// The security that is under way, with keys that there are or with a pairing.
        var goal: LinkSecurity?
        var pairing: PairingProcedure?
        /// Whether it stays up if the pairing fails.
        var outlivesFailure = false

        subscript(side: Side) -> Party { side == .initiator ? initiator : responder }
    }

    private struct Due: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case encryption, start, timeout, end
            /// The reply of a virtual user.
            case answer(Side, PairingProcedure.Answer)
            /// The keys of a successful pairing are distributed.
            case finish(PairingProcedure.Step)
        }

        let end: CentralEnd
        let kind: Kind
    }

    /// Seconds from the encryption of a link whose peripheral has lost its keys to the end of the link (radio lab: 0.02
    /// with 5.82, 0.07 with 5.66).
    private static let missingKeysLimit = 0.02

    var keys = KeyStore()
    var now: TimeInterval = 0
    /// By the number in `hciN`.
    var adapters: [Int: Adapter] = [:]
    /// A fault: why the next pairings with a device fail.
    var failures: [VirtualAddress: [PairingFailure]] = [:]
    private var links: [CentralEnd: Link] = [:]
    private var deadlines = DeadlineQueue<Due>()
    private var numbers = SeededGenerator(seed: 0)
    /// The events for adapters and virtual centrals, and the links that end because they are not secure enough.
    var news: (events: [LinkLayerEvent], ends: [CentralEnd]) = ([], [])

    // MARK: Out

    /// The security of a link; none for one that is not up.
    func security(of end: CentralEnd) -> LinkSecurity { links[end]?.security ?? .none }

    var nextDeadline: TimeInterval? { deadlines.next }

    private mutating func notify(_ party: Party, at end: CentralEnd, _ news: SecurityNews) {
        switch party {
        case .adapter(let key): self.news.events.append(.security(key, news))
        case .device: if case .virtual = end { self.news.events.append(.central(end, .security(news))) }
        }
    }

    // MARK: Keys

    private func address(of party: Party) -> VirtualAddress {
        switch party {
        case .adapter(let key): adapters[key.adapter]?.address ?? VirtualAddress(value: 0)
        case .device(let identity, _): identity
        }
    }

    /// Deletes the key that an adapter has for the device with an identity, also the stored one if `isStored` says so.
    mutating func forget(_ identity: VirtualAddress, by adapter: Int, isStored: Bool) {
        guard let owner = adapters[adapter]?.address else { return }
        if isStored { keys[owner, identity] = nil } else { keys[owner, identity]?.isLoaded = false }
    }

    /// A fault: the device with an identity forgets all its keys, or the adapters forget theirs of it.
    mutating func loseKeys(of identity: VirtualAddress, byDevice: Bool) {
        for adapter in adapters.values.map(\.address) {
            if byDevice { keys[identity, adapter] = nil } else { keys[adapter, identity] = nil }
        }
    }

    // MARK: Links

    /// A link has come up. A virtual central encrypts it if it has keys, and a virtual peripheral asks for that if it is one
    /// that does.
    mutating func linkWentUp(
        _ end: CentralEnd, from initiator: Party, to responder: Party, latency: TimeInterval, isBonded: Bool
    ) {
        var link = Link(initiator: initiator, responder: responder, latency: latency)
        for case .adapter(let key) in [initiator, responder] {
            link.capabilities[key] = adapters[key.adapter]?.capability
        }
        links[end] = link
        let (central, server) = (address(of: initiator), address(of: responder))
        if isBonded, keys.key(of: central, for: server) == nil, keys.key(of: server, for: central) == nil {
            keys.add(central, server, .encrypted, isBonded: true)
        }
        if case .device = initiator, keys.key(of: central, for: server) != nil {
            raise(end, to: .encrypted)
        }
        if case .device(_, let security) = responder, security.requestsSecurity {
            let demandsMITM =
                security.wantsMITM && features(of: .initiator, link).security.capability != .noInputNoOutput
            raise(end, to: demandsMITM ? .authenticated : .encrypted)
        }
    }

    /// A link has ended, and its pairing with it.
    mutating func linkWentDown(_ end: CentralEnd) {
        if links[end]?.pairing != nil { conclude(end, .fail(.linkLost)) }
        guard let link = links.removeValue(forKey: end) else { return }
        deadlines.removeAll { $0.end == end }
        keys.linkEnded(address(of: link.initiator), address(of: link.responder))
    }

    // MARK: Security

    /// Raises the security of an adapter's link to `goal`, with the existing keys or with a pairing. If the adapter is the
    /// peripheral of the link, it requests this from the central. Without a `capability` that of the link is used.
    mutating func secure(_ key: DeviceKey, to goal: LinkSecurity, capability: PairingCapability?) {
        guard let (end, _) = link(of: key) else { return }
        if let capability { links[end]?.capabilities[key] = capability }
        raise(end, to: goal)
    }

    mutating func raise(_ end: CentralEnd, to goal: LinkSecurity) {
        guard var link = links[end], link.goal == nil else { return }
        guard link.security < goal else { return notify(link.initiator, at: end, .secured(link.security)) }
        link.goal = goal
        links[end] = link
        let (central, server) = (address(of: link.initiator), address(of: link.responder))
        if let key = keys.key(of: central, for: server), key.security >= goal {
            return schedule(.encryption, of: end, after: 2 * link.latency)
        }
        let pairing = PairingProcedure(
            initiator: features(of: .initiator, link), responder: features(of: .responder, link),
            number: Int(numbers.next() % 1_000_000))
        links[end]?.pairing = pairing
        schedule(.start, of: end, after: 2 * link.latency)
    }

    private func features(of side: Side, _ link: Link) -> PairingProcedure.Party {
        switch link[side] {
        case .adapter(let key):
            let capability = link.capabilities[key] ?? .noInputNoOutput
            let goal = side == .initiator ? link.goal ?? .encrypted : .encrypted
            let security = VirtualSecurity(
                capability, isBondable: adapters[key.adapter]?.isBondable ?? false,
                wantsMITM: capability != .noInputNoOutput || goal > .encrypted)
            return PairingProcedure.Party(security: security, goal: goal)
        case .device(_, let security): return PairingProcedure.Party(security: security, isLinux: false)
        }
    }

    private mutating func encryptionDue(_ end: CentralEnd) {
        guard let link = links[end] else { return }
        links[end]?.goal = nil
        guard let security = keys.encryption(from: address(of: link.initiator), to: address(of: link.responder)) else {
            return schedule(.end, of: end, after: Self.missingKeysLimit)
        }
        links[end]?.security = security
        for side in Side.allCases { notify(link[side], at: end, .secured(security)) }
    }

    // MARK: Pairing

    /// Takes the reply of an adapter to the question of a pairing.
    mutating func answer(_ answer: PairingProcedure.Answer, of key: DeviceKey, keepsLink: Bool) {
        guard let (end, side) = link(of: key), links[end]?.pairing != nil else { return }
        links[end]?.outlivesFailure = keepsLink
        perform(links[end]?.pairing?.answered(answer, by: side, now: now) ?? [], at: end)
    }

    /// An adapter cancels a pairing. The link stays up.
    mutating func cancel(_ key: DeviceKey) {
        if let (end, _) = link(of: key), links[end]?.pairing != nil { conclude(end, .fail(.cancelled)) }
    }

    /// The link of an adapter to a device, and the adapter's side of it.
    private func link(of key: DeviceKey) -> (CentralEnd, Side)? {
        if links[.adapter(key)] != nil { return (.adapter(key), .initiator) }
        return links.first { $0.value.responder == .adapter(key) }.map { ($0.key, .responder) }
    }

    private mutating func startDue(_ end: CentralEnd) {
        guard let link = links[end] else { return }
        for side in Side.allCases {
            let device = address(of: link[side])
            guard let failure = failures[device]?.first else { continue }
            failures[device]?.removeFirst()
            return conclude(end, .fail(failure))
        }
        perform(links[end]?.pairing?.begin(now: now) ?? [], at: end)
    }

    private mutating func perform(_ steps: [PairingProcedure.Step], at end: CentralEnd) {
        let timeout = Due(end: end, kind: .timeout)
        if let deadline = links[end]?.pairing?.deadline { deadlines.set(timeout, to: deadline) }
        for step in steps {
            switch step {
            case .ask(let side, let question): ask(side, question, at: end)
            case .succeed:
                deadlines.remove(timeout)
                schedule(.finish(step), of: end, after: 4 * (links[end]?.latency ?? 0))
            case .fail: conclude(end, step)
            }
        }
    }

    private mutating func ask(_ side: Side, _ question: PairingProcedure.Question, at end: CentralEnd) {
        guard let link = links[end] else { return }
        switch link[side] {
        case .adapter: notify(link[side], at: end, .asked(question))
        case .device(let identity, let security):
            let isKnown = keys.key(of: identity, for: address(of: link[side.other])) != nil
            if question == .authorize, side == .responder, isKnown, !security.confirmsJustWorksRepairing {
                // The initiator decides as soon, and may refuse too.
                return deadlines.set(Due(end: end, kind: .answer(side, .reject)), to: now)
            }
            guard let (answer, delay) = security.user.answer(to: question) else { return }
            schedule(.answer(side, answer), of: end, after: delay)
        }
    }

    private mutating func conclude(_ end: CentralEnd, _ result: PairingProcedure.Step) {
        guard let link = links[end] else { return }
        links[end]?.pairing = nil
        links[end]?.goal = nil
        links[end]?.outlivesFailure = false
        deadlines.removeAll { $0.end == end && $0.kind != .end }
        switch result {
        case .ask: break
        case .succeed(let security, let isBonded):
            keys.add(address(of: link.initiator), address(of: link.responder), security, isBonded: isBonded)
            links[end]?.security = security
            for side in Side.allCases {
                var privacy: VirtualPrivacy?
                if case .device(_, let other) = link[side.other] { privacy = other.privacy }
                notify(link[side], at: end, .paired(isBonded: isBonded, privacy))
                notify(link[side], at: end, .secured(security))
            }
        case .fail(let failure):
            for side in Side.allCases { notify(link[side], at: end, .failed(failure)) }
            if failure != .cancelled, failure != .linkLost, !link.outlivesFailure { news.ends.append(end) }
        }
    }

    // MARK: Time

    /// What takes no time happens at once.
    private mutating func schedule(_ kind: Due.Kind, of end: CentralEnd, after delay: TimeInterval) {
        let due = Due(end: end, kind: kind)
        if delay <= 0 { perform(due) } else { deadlines.set(due, to: now + delay) }
    }

    /// Does the first thing that is due.
    mutating func timePassed() { if let due = deadlines.popDue(at: now) { perform(due.key) } }

    private mutating func perform(_ due: Due) {
        switch due.kind {
        case .encryption: encryptionDue(due.end)
        case .start: startDue(due.end)
        case .answer(let side, let answer):
            perform(links[due.end]?.pairing?.answered(answer, by: side, now: now) ?? [], at: due.end)
        case .finish(let result): conclude(due.end, result)
        case .end: news.ends.append(due.end)
        case .timeout: perform(links[due.end]?.pairing?.timePassed(to: now) ?? [], at: due.end)
        }
    }
}

extension VirtualUser {
    /// Returns the reply of the user, and after how many seconds it comes; nil if none comes.
    func answer(to question: PairingProcedure.Question) -> (PairingProcedure.Answer, TimeInterval)? {
        switch (question, confirms, passkey) {
        case (.display, _, _): nil
        case (.enter(let number), _, .displayed(let delay)): (.passkey(number), delay)
        case (.enter(let number), _, .wrong): (.passkey((number + 1) % 1_000_000), 0)
        case (.enter, _, .number(let number)): (.passkey(number), 0)
        case (.enter, _, .never): nil
        case (_, .accept(let delay), _): (.accept, delay)
        case (_, .reject(let delay), _): (.reject, delay)
        case (_, .never, _): nil
        }
    }
}

/// What happens to the security of a link, for each of its ends.
enum SecurityNews: Hashable, Sendable {
    /// The user has to answer a question.
    case asked(PairingProcedure.Question)
    /// The security of the link was raised to this level.
    case secured(LinkSecurity)
    /// The devices have keys of each other; with the identity of the other one, if its address is private.
    case paired(isBonded: Bool, VirtualPrivacy?)
    case failed(PairingFailure)
}
