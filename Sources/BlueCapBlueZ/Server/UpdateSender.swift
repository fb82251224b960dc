import BlueCapDBus
package import Foundation
import BlueCapReactor

/// A value of a characteristic of ours on its way to subscribers.
package struct ServerUpdate: Hashable, Sendable {
    package let value: Data
    /// The centrals that it is for; `nil` for all subscribers.
    package let centrals: [ObjectKey]?

    package init(_ value: Data, for centrals: [ObjectKey]? = nil) {
        self.value = value
        self.centrals = centrals
    }
}

/// The updates of a characteristic that wait to be sent. On the loop.
package protocol UpdateSource: AnyObject, Sendable {
    /// The next update, of at most 512 bytes, and at least one if it is for some centrals; `nil` if none waits. Called only
    /// while a central is subscribed.
    func nextUpdate() -> ServerUpdate?
    /// The outcome of an update; called for each, in their order. If the last central leaves before, it is not called.
    func updateEnded(_ outcome: UpdateOutcome)
}

package enum UpdateOutcome: Hashable, Sendable {
    /// The bus or the sockets have taken it. If the characteristic only indicates, as many confirmations have arrived as
    /// subscribers have a socket and a link. The first confirmation suffices if no subscriber has a socket, up to 5.68, and
    /// after 30 s. From 5.76 to 5.79 BlueZ does not report confirmations of what was written to a socket.
    case sent
    /// No central has confirmed it in 30 s.
    case unconfirmed
    /// No receiver has an open socket, or BlueZ cannot send to one central.
    case unreachable
}

/// Sends the updates of one characteristic in their order.
///
/// A value for all subscribers is one `PropertiesChanged` of `Value`: with each version of BlueZ it reaches each subscriber
/// once, whether a socket is open for it or not. A value for some centrals is written to their sockets, which only BlueZ
/// from 5.76 on sends to that central alone.
///
/// **Order.** `bluetoothd` reads bus and sockets independently. Before the first value that goes the other way, those
/// before it have to be read, so a call to `bluetoothd` (`Peer.Ping`) is made and its reply awaited: it reads the
/// messages of one connection in their order. A call without a reply is repeated. The reply does not cover the sockets:
/// after it, `SIOCOUTQ` shows whether they are empty, which is read after growing pauses since the kernel reports no
/// change. One that `bluetoothd` leaves unread although it replies is closed. What `bluetoothd` has read it has also
/// put into the link's queue, within the same callback (`sock_io_read`, `property_changed_cb`).
///
/// Values for all of a characteristic that notifies are handed over without waiting. All others go one after the other.
///
/// On the loop; unchecked because of that.
final class UpdateSender: @unchecked Sendable {
    /// How long centrals may take to confirm an indication, in seconds (Core Specification, Vol 3, Part F, 3.3.3).
    private static let confirmTimeout = 30.0

    /// How long to wait before looking again whether `bluetoothd` has read the sockets, in seconds: each time twice as long.
    private static let readingPauses = 0.001...0.1

    /// How long `bluetoothd` may leave a socket unread after each of two replies, in seconds.
    private static let readingTime = 0.5

    /// How long to wait before `bluetoothd` is called again after a call without a reply, in seconds.
    private static let callingPause = 1.0

    private enum Way {
        case bus
        case sockets
    }

    /// What must end before the next value goes.
    private enum Step {
        case none
        case changingWay
        /// An indication to all: the sockets of the centrals that have to confirm it, and how many confirmations have
        /// arrived. A confirmation does not name its central. One without a socket need not confirm it: whether it is
        /// still subscribed is not known.
        case confirming(by: Set<SubscriberTable.SocketNumber>, received: Int)
        case writing(Writing)
    }

    /// A value on its way over sockets.
    private struct Writing {
        var untaken: Set<ObjectIdentifier>
        /// Those over which no confirmation has come yet; none where none will come.
        var unconfirmed: Set<ObjectIdentifier>
        var isTaken = false
    }

    private unowned let record: CharacteristicRecord
    private let confirmTimer: LoopTimer
    private var source: (any UpdateSource)?
    private var step = Step.none
    /// The way of what was sent that `bluetoothd` may not have read; `nil` if it has read everything.
    private var way: Way?
    /// Counts the calls of ``reset()``, so that outcomes of earlier values are ignored.
    private var turn = 0

    init(_ record: CharacteristicRecord) {
        self.record = record
        confirmTimer = LoopTimer(on: record.application.client.loop)
    }

    private var loop: any EventLoop { record.application.client.loop }

    /// The source has updates.
    func send(from source: any UpdateSource) {
        self.source = source
        proceed()
    }

    private func proceed() {
        while case .none = step, record.isSubscribed, let update = source?.nextUpdate() { send(update) }
    }

    private func send(_ update: ServerUpdate) {
        let sockets = update.centrals.map { $0.compactMap { record.socket(of: $0) } }
        if let sockets, sockets.isEmpty { return endWhenDrained(.unreachable) }
        let needed: Way = sockets == nil ? .bus : .sockets
        guard needed == way ?? needed else { return changeWay(for: update) }
        way = needed
        if let sockets {
            write(update.value, to: sockets)
        } else if record.isConfirmed {
            step = .confirming(by: record.table.linkedSockets, received: 0)
            record.emit(update.value)
            awaitConfirmation()
        } else {
            record.emit(update.value)
            endWhenDrained(.sent)
        }
    }

    /// Reports the outcome when the bus has taken what was sent before.
    private func endWhenDrained(_ outcome: UpdateOutcome) {
        let turn = turn
        record.application.connection?.whenDrained { [weak self] in
            guard let self, turn == self.turn else { return }
            source?.updateEnded(outcome)
            proceed()
        }
    }

    private func end(_ outcome: UpdateOutcome) {
        confirmTimer.cancel()
        step = .none
        source?.updateEnded(outcome)
        proceed()
    }

    // MARK: Order

    private func changeWay(for update: ServerUpdate, isRepeated: Bool = false) {
        step = .changingWay
        let turn = turn
        record.application.pingDaemon { [weak self] isAnswered in
            guard let self, turn == self.turn else { return }
            if isAnswered {
                let limit = loop.now.advanced(by: Self.readingTime)
                return awaitReading(
                    for: update, until: limit, isLast: isRepeated, pause: Self.readingPauses.lowerBound, turn)
            }
            loop.schedule(after: Self.callingPause) { [weak self] in
                guard let self, turn == self.turn else { return }
                changeWay(for: update, isRepeated: isRepeated)
            }
        }
    }

    private func awaitReading(
        for update: ServerUpdate, until limit: Instant, isLast: Bool, pause: Double, _ turn: Int
    ) {
        guard turn == self.turn else { return }
        if way == .sockets, record.hasUnreadPackets {
            guard loop.now >= limit else {
                let next = min(pause * 2, Self.readingPauses.upperBound)
                loop.schedule(after: pause) { [weak self] in
                    self?.awaitReading(for: update, until: limit, isLast: isLast, pause: next, turn)
                }
                return
            }
            // It may be `bluetoothd` that hangs.
            guard isLast else { return changeWay(for: update, isRepeated: true) }
            record.closeUnreadSockets()
            guard turn == self.turn else { return }
        }
        (step, way) = (.none, nil)
        send(update)
        proceed()
    }

    // MARK: Confirmations

    private func awaitConfirmation() {
        confirmTimer.start(after: Self.confirmTimeout) { [weak self] in
            guard let self else { return }
            if case .confirming(_, let received) = step, received > 0 { return end(.sent) }
            end(.unconfirmed)
        }
    }

    /// A central has confirmed a value that was sent to all.
    func confirmed() {
        guard case .confirming(let sockets, let received) = step else { return }
        confirm(by: sockets, received + 1)
    }

    /// Of those that have left no confirmation is expected.
    func subscribersChanged() {
        guard case .confirming(let sockets, let received) = step else { return }
        confirm(by: sockets.intersection(record.table.linkedSockets), received)
    }

    private func confirm(by sockets: Set<SubscriberTable.SocketNumber>, _ received: Int) {
        if received >= max(sockets.count, 1) { return end(.sent) }
        step = .confirming(by: sockets, received: received)
    }

    // MARK: Over sockets

    private func write(_ value: Data, to sockets: [AcquiredSocket]) {
        let isConfirmed = record.isConfirmed && record.application.capabilities.confirmsOverSocket
        let all = Set(sockets.map { ObjectIdentifier($0) })
        step = .writing(Writing(untaken: all, unconfirmed: isConfirmed ? all : []))
        let turn = turn
        for socket in sockets {
            let id = ObjectIdentifier(socket)
            socket.send(value) { [weak self] result in
                guard let self, turn == self.turn, case .writing(var writing) = step else { return }
                writing.untaken.remove(id)
                if case .success = result { writing.isTaken = true } else { writing.unconfirmed.remove(id) }
                proceed(with: writing)
            }
        }
    }

    /// The central of a socket has confirmed what was written to it, or the socket has ended.
    func confirmed(over socket: AcquiredSocket) {
        guard case .writing(var writing) = step else { return }
        writing.unconfirmed.remove(ObjectIdentifier(socket))
        proceed(with: writing)
    }

    private func proceed(with writing: Writing) {
        step = .writing(writing)
        guard writing.untaken.isEmpty else { return }
        if !writing.isTaken { return end(.unreachable) }
        if writing.unconfirmed.isEmpty { return end(.sent) }
        if !confirmTimer.isRunning { awaitConfirmation() }
    }

    // MARK: Ending

    /// No central is subscribed any more: what is under way has no outcome.
    func reset() {
        turn += 1
        confirmTimer.cancel()
        (step, way) = (.none, nil)
    }
}
