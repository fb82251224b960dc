import BlueCapReactor

/// A subscriber of a characteristic of this process, as far as BlueZ names it.
package struct ServerSubscriber: Hashable, Sendable {
    /// `nil` for all that BlueZ does not name.
    package let peer: ServerPeer?
    package let directWay: DirectWay

    /// Whether a value can be sent to it alone.
    package enum DirectWay: Hashable, Sendable {
        /// This BlueZ sends each value to all.
        case unsupported
        /// BlueZ has no socket open for it.
        case closed
        case open
    }
}

/// Which centrals are subscribed to a characteristic of ours.
///
/// BlueZ names a central once, when it fetches a socket for it (`AcquireNotify`), and from 5.69 on a socket ends for four
/// reasons that look the same (`src/gatt-database.c`, `ccc_write_cb` and `att_disconnected`):
///
/// | reason | what is known | afterwards the central is |
/// |---|---|---|
/// | it has unsubscribed | nothing else happens | not subscribed |
/// | its link has ended | `Connected` turns false soon | not subscribed |
/// | its link has ended, and it is bonded | the same | subscribed, without another `AcquireNotify` when it returns |
/// | another subscriber that is not bonded has lost its link (bluez#1452) | the other's `Connected` turns false soon | subscribed |
///
/// So where more than the first is possible, the end of a socket is settled after ``settlingTime``. Of the last kind there is
/// at most one for each lost link: the oldest socket, unless that was the lost link's own. Up to 5.68 one socket, named after the
/// first central, is open while any central is subscribed.
///
/// Pure: events go in, ``subscribers`` and ``deadline`` are read afterwards.
struct SubscriberTable {
    /// Of two sockets the older one has the lower number.
    typealias SocketNumber = UInt64

    /// How long the end of a link may take to follow the end of a socket, or to precede it, in seconds.
    static let settlingTime = 1.0
    /// How long after its `Connected` a bonded central that has returned receives values, in seconds: BlueZ opens ATT on the
    /// link a moment later, and loses what is sent before.
    static let returningTime = 0.5

    private enum State: Equatable {
        case socket(SocketNumber, hasLink: Bool)
        /// The socket has ended, and the reason is not known yet.
        case unsettled(SocketNumber, until: Instant)
        case withoutSocket
        /// Bonded, and its link has ended.
        case away
        case returning(at: Instant)
    }

    private var entries: [(peer: ServerPeer, state: State)] = []
    /// Between `StartNotify` and `StopNotify`.
    private(set) var hasUnnamed = false
    /// A subscriber that is not bonded has lost its link, and the socket that BlueZ closes for it is not known yet.
    private var loss: (at: Instant, ofSocket: SocketNumber?)?

    /// Those that values reach now: the named ones in the order in which they came.
    var subscribers: [ServerSubscriber] {
        let named = entries.compactMap { entry -> ServerSubscriber? in
            switch entry.state {
            case .socket: ServerSubscriber(peer: entry.peer, directWay: .open)
            case .unsettled, .withoutSocket: ServerSubscriber(peer: entry.peer, directWay: .closed)
            case .away, .returning: nil
            }
        }
        return hasUnnamed ? named + [ServerSubscriber(peer: nil, directWay: .closed)] : named
    }

    /// When ``timePassed(_:)`` is to be called.
    var deadline: Instant? {
        entries.compactMap { entry in
            switch entry.state {
            case .unsettled(_, let time), .returning(let time): time
            case .socket, .withoutSocket, .away: nil
            }
        }.min()
    }

    /// The central that this socket is for.
    func peer(of socket: SocketNumber) -> ServerPeer? { index(of: socket).map { entries[$0].peer } }

    /// The open socket of a central.
    func socket(of device: ObjectKey) -> SocketNumber? {
        for case (let peer, .socket(let number, _)) in entries where peer.device == device { return number }
        return nil
    }

    /// The open sockets of the centrals that have a link: each of these confirms an indication.
    var linkedSockets: Set<SocketNumber> {
        Set(
            entries.compactMap { entry in
                if case .socket(let number, hasLink: true) = entry.state { number } else { nil }
            })
    }

    // MARK: Events

    mutating func acquired(_ socket: SocketNumber, by peer: ServerPeer) {
        let state = State.socket(socket, hasLink: true)
        if let device = peer.device, let index = index(of: device) {
            entries[index] = (peer, state)
        } else {
            entries.append((peer, state))
        }
    }

    /// - Parameter isBonded: Whether the socket's central is.
    mutating func socketEnded(_ socket: SocketNumber, isBonded: Bool, at now: Instant) {
        guard let index = index(of: socket), case .socket(_, let hasLink) = entries[index].state else { return }
        guard hasLink else { return isBonded ? entries[index].state = .away : remove(index) }
        entries[index].state = .unsettled(socket, until: now.advanced(by: Self.settlingTime))
        settleLoss(at: now)
        let isAlone = entries.count == 1 && !hasUnnamed
        if isAlone, !isBonded, case .unsettled = entries[index].state { remove(index) }
    }

    /// `bluetoothd` does not read the socket: it has another one, or none, for the central.
    mutating func socketIsDead(_ socket: SocketNumber) {
        if let index = index(of: socket) { entries[index].state = .withoutSocket }
    }

    /// The one socket of all subscribers has ended.
    mutating func sharedSocketEnded() { entries = [] }

    mutating func linkEnded(_ device: ObjectKey, isBonded: Bool, at now: Instant) {
        guard let index = index(of: device) else { return }
        var own: SocketNumber?
        switch entries[index].state {
        case .socket(let socket, _):
            own = socket
            entries[index].state = .socket(socket, hasLink: false)
        case .unsettled(let socket, _):
            own = socket
            fallthrough
        case .withoutSocket, .away, .returning:
            if isBonded { entries[index].state = .away } else { remove(index) }
        }
        guard !isBonded else { return }
        loss = (now, own)
        settleLoss(at: now)
    }

    /// Finds the central that has lost its socket because another one has lost its link.
    private mutating func settleLoss(at now: Instant) {
        guard let (time, own) = loss, now.seconds(since: time) < Self.settlingTime else { return }
        let ended = entries.indices.compactMap { index -> (index: Int, socket: SocketNumber, until: Instant)? in
            guard case .unsettled(let socket, let until) = entries[index].state else { return nil }
            return (index, socket, until)
        }
        let oldestOpen = linkedSockets.min()
        let possible = ended.filter { $0.socket < own ?? .max && $0.socket < oldestOpen ?? .max }
        // Of several the last one: the others had unsubscribed before.
        guard let victim = possible.max(by: { $0.until < $1.until }) else { return }
        entries[victim.index].state = .withoutSocket
        loss = nil
    }

    mutating func linkBegan(_ device: ObjectKey, at now: Instant) {
        guard let index = index(of: device) else { return }
        switch entries[index].state {
        case .socket(let socket, _): entries[index].state = .socket(socket, hasLink: true)
        case .away: entries[index].state = .returning(at: now.advanced(by: Self.returningTime))
        case .unsettled, .withoutSocket, .returning: break
        }
    }

    mutating func startNotify() { hasUnnamed = true }

    /// No central without a socket is subscribed any more.
    mutating func stopNotify() {
        hasUnnamed = false
        entries.removeAll { entry in
            if case .socket = entry.state { false } else { true }
        }
    }

    mutating func timePassed(_ now: Instant) {
        for index in entries.indices.reversed() {
            switch entries[index].state {
            case .unsettled(_, let time) where time <= now: remove(index)
            case .returning(let time) where time <= now: entries[index].state = .withoutSocket
            case .socket, .unsettled, .withoutSocket, .away, .returning: break
            }
        }
    }

    // MARK: Looking

    private func index(of socket: SocketNumber) -> Int? {
        entries.firstIndex { entry in
            if case .socket(socket, _) = entry.state { true } else { false }
        }
    }

    private func index(of device: ObjectKey) -> Int? { entries.firstIndex { $0.peer.device == device } }

    private mutating func remove(_ index: Int) { entries.remove(at: index) }
}
