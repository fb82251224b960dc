import DBus
package import Foundation
import Reactor

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

/// Sends the values of one characteristic in the order of the calls.
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
    private var waiting: [(update: ServerUpdate, completion: BlueZCompletion<Void>)] = []
    /// The completion of what `step` is about.
    private var current: BlueZCompletion<Void>?
    private var step = Step.none
    private var way = Way.bus
    /// Whether something was sent this way that `bluetoothd` may not have read.
    private var isWayUsed = false
    /// Values on their way to the bus.
    private var unsent: [UInt64: BlueZCompletion<Void>] = [:]
    /// Counts the calls of ``fail(_:)``, so that outcomes of earlier values are ignored.
    private var turn = 0

    init(_ record: CharacteristicRecord) {
        self.record = record
        confirmTimer = LoopTimer(on: record.content.client.loop)
    }

    private var loop: any EventLoop { record.content.client.loop }

    func send(_ update: ServerUpdate, completion: @escaping BlueZCompletion<Void>) {
        waiting.append((update, completion))
        proceed()
    }

    private func proceed() {
        while case .none = step, let next = waiting.first {
            let sockets = next.update.centrals.map { $0.compactMap { record.socket(of: $0) } }
            if let sockets, sockets.isEmpty {
                waiting.removeFirst()
                complete(next.completion, with: .failure(.centralUnreachable))
                continue
            }
            let needed: Way = sockets == nil ? .bus : .sockets
            guard needed == way || !isWayUsed else { return changeWay() }
            way = needed
            isWayUsed = true
            waiting.removeFirst()
            if let sockets {
                write(next.update.value, to: sockets, next.completion)
            } else if record.isConfirmed {
                indicate(next.update.value, next.completion)
            } else {
                signal(next.update.value, next.completion)
            }
        }
    }

    private func end(_ result: Result<Void, BlueZError>) {
        confirmTimer.cancel()
        step = .none
        let completion = current
        current = nil
        guard case .failure(let error) = result, error.cause == .noReply else {
            proceed()
            completion?(result)
            return
        }
        // Those behind it, too: a caller that sends it again wants them after it.
        let failed = waiting
        waiting = []
        completion?(result)
        for (_, completion) in failed { completion(result) }
    }

    // MARK: Order

    private func changeWay(isRepeated: Bool = false) {
        step = .changingWay
        let turn = turn
        record.content.pingDaemon { [weak self] isAnswered in
            guard let self, turn == self.turn else { return }
            if isAnswered {
                let limit = loop.now.advanced(by: Self.readingTime)
                return awaitReading(until: limit, isLast: isRepeated, pause: Self.readingPauses.lowerBound, turn)
            }
            loop.schedule(after: Self.callingPause) { [weak self] in
                guard let self, turn == self.turn else { return }
                changeWay(isRepeated: isRepeated)
            }
        }
    }

    private func awaitReading(until limit: Instant, isLast: Bool, pause: Double, _ turn: Int) {
        guard turn == self.turn else { return }
        if way == .sockets, record.hasUnreadPackets {
            guard loop.now >= limit else {
                let next = min(pause * 2, Self.readingPauses.upperBound)
                loop.schedule(after: pause) { [weak self] in
                    self?.awaitReading(until: limit, isLast: isLast, pause: next, turn)
                }
                return
            }
            // It may be `bluetoothd` that hangs.
            guard isLast else { return changeWay(isRepeated: true) }
            record.closeUnreadSockets()
            guard turn == self.turn else { return }
        }
        isWayUsed = false
        step = .none
        proceed()
    }

    // MARK: By signal

    private func signal(_ value: Data, _ completion: @escaping BlueZCompletion<Void>) {
        record.emit(value)
        complete(completion, with: .success(()))
    }

    /// When the bus has taken what was sent: one that takes values slower than they are made must be waited for.
    private func complete(_ completion: @escaping BlueZCompletion<Void>, with result: Result<Void, BlueZError>) {
        let number = record.content.client.makeID()
        unsent[number] = completion
        record.content.connection?.whenDrained { [weak self] in
            self?.unsent.removeValue(forKey: number)?(result)
        }
    }

    private func indicate(_ value: Data, _ completion: @escaping BlueZCompletion<Void>) {
        current = completion
        step = .confirming(by: record.table.linkedSockets, received: 0)
        record.emit(value)
        awaitConfirmation()
    }

    private func awaitConfirmation() {
        confirmTimer.start(after: Self.confirmTimeout) { [weak self] in
            guard let self else { return }
            if case .confirming(_, let received) = step, received > 0 { return end(.success(())) }
            end(.failure(.notConfirmed))
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
        if received >= max(sockets.count, 1) { return end(.success(())) }
        step = .confirming(by: sockets, received: received)
    }

    // MARK: Over sockets

    private func write(_ value: Data, to sockets: [AcquiredSocket], _ completion: @escaping BlueZCompletion<Void>) {
        current = completion
        let isConfirmed = record.isConfirmed && record.content.capabilities.confirmsOverSocket
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
        if !writing.isTaken { return end(.failure(.centralUnreachable)) }
        if writing.unconfirmed.isEmpty { return end(.success(())) }
        if !confirmTimer.isRunning { awaitConfirmation() }
    }

    // MARK: Ending

    /// Fails all that was not taken.
    func fail(_ error: BlueZError) {
        turn += 1
        confirmTimer.cancel()
        let failed =
            unsent.sorted { $0.key < $1.key }.map(\.value) + [current].compactMap { $0 } + waiting.map(\.completion)
        (unsent, waiting, current, step) = ([:], [], nil, .none)
        (way, isWayUsed) = (.bus, false)
        for completion in failed { loop.post { completion(.failure(error)) } }
    }
}

extension BlueZError {
    /// Of the centrals that a value was for none has an open socket.
    package static let centralUnreachable = BlueZError(
        name: DBusError.Name.inputOutput, message: "BlueZ has no socket open for the central.")
    fileprivate static let notConfirmed = BlueZError(
        name: "org.freedesktop.DBus.Error.NoReply", message: "No central has confirmed the indication in time.")
}
