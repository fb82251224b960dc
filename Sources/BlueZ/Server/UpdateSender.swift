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
/// **Order.** `bluetoothd` reads bus and sockets independently. Before the first value that goes the other way, those before it
/// have to be read, so a call to `bluetoothd` (`Peer.Ping`) is made and its answer awaited: it reads the messages of one
/// connection in their order. The answer says nothing of the sockets: after it, the kernel is asked each millisecond whether they
/// are empty (`SIOCOUTQ`), of which it does not inform. What `bluetoothd` has read it has also put into
/// the link's queue, within the same callback (`sock_io_read`, `property_changed_cb`).
///
/// Values for all of a characteristic that notifies are handed over without waiting. All others go one after the other.
///
/// On the loop; unchecked because of that.
final class UpdateSender: @unchecked Sendable {
    typealias Completion = @Sendable (Result<Void, BlueZError>) -> Void

    /// How long centrals may take to confirm an indication, in seconds (Core Specification, Vol 3, Part F, 3.3.3).
    private static let confirmTimeout = 30.0

    /// How long to wait before looking again whether `bluetoothd` has read the sockets, in seconds.
    private static let readingPause = 0.001

    private enum Way {
        case bus
        case sockets
    }

    /// What must end before the next value goes.
    private enum Step {
        case none
        case changingWay
        /// An indication to all; how many have not confirmed it yet.
        case confirming(missing: Int)
        case writing
        /// The sockets over which no confirmation has come yet.
        case confirmingOverSockets(Set<ObjectIdentifier>)
    }

    private unowned let record: CharacteristicRecord
    private let confirmTimer: LoopTimer
    private var waiting: [(update: ServerUpdate, completion: Completion)] = []
    /// The completion of what `step` is about.
    private var current: Completion?
    private var step = Step.none
    private var way = Way.bus
    /// Whether something was sent this way that `bluetoothd` may not have read.
    private var isWayUsed = false
    /// Values on their way to the bus.
    private var unsent: [UInt64: Completion] = [:]
    /// Counts the calls of ``fail(_:)``: answers to what was sent before mean nothing.
    private var turn = 0

    init(_ record: CharacteristicRecord) {
        self.record = record
        confirmTimer = LoopTimer(on: record.core.client.loop)
    }

    private var loop: any EventLoop { record.core.client.loop }

    func send(_ update: ServerUpdate, completion: @escaping Completion) {
        waiting.append((update, completion))
        proceed()
    }

    private func proceed() {
        while case .none = step, let next = waiting.first {
            let needed: Way = next.update.centrals == nil ? .bus : .sockets
            guard needed == way || !isWayUsed else { return changeWay() }
            way = needed
            isWayUsed = true
            waiting.removeFirst()
            if let centrals = next.update.centrals {
                write(next.update.value, to: centrals, next.completion)
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

    private func changeWay() {
        step = .changingWay
        let turn = turn
        record.core.pingDaemon { [weak self] in
            guard let self, turn == self.turn else { return }
            awaitReading(turn)
        }
    }

    private func awaitReading(_ turn: Int) {
        guard turn == self.turn else { return }
        guard way == .bus || !record.hasUnreadPackets else {
            loop.schedule(after: Self.readingPause) { [weak self] in self?.awaitReading(turn) }
            return
        }
        isWayUsed = false
        step = .none
        proceed()
    }

    // MARK: By signal

    private func signal(_ value: Data, _ completion: @escaping Completion) {
        let number = record.core.client.makeID()
        unsent[number] = completion
        record.emit(value)
        // A bus that takes values slower than they are made must be waited for.
        record.core.connection?.whenDrained { [weak self] in
            self?.unsent.removeValue(forKey: number)?(.success(()))
        }
    }

    private func indicate(_ value: Data, _ completion: @escaping Completion) {
        current = completion
        step = .confirming(missing: record.expectedConfirmations)
        record.emit(value)
        awaitConfirmation()
    }

    private func awaitConfirmation() {
        confirmTimer.start(after: Self.confirmTimeout) { [weak self] in self?.end(.failure(.notConfirmed)) }
    }

    /// A central has confirmed a value that was sent to all.
    func confirmed() {
        guard case .confirming(let missing) = step else { return }
        if missing > 1 { step = .confirming(missing: missing - 1) } else { end(.success(())) }
    }

    /// Of those that have left no confirmation is expected.
    func subscribersChanged() {
        guard case .confirming(let missing) = step else { return }
        step = .confirming(missing: min(missing, record.expectedConfirmations))
    }

    // MARK: Over sockets

    private func write(_ value: Data, to centrals: [ObjectKey], _ completion: @escaping Completion) {
        let sockets = centrals.compactMap { record.socket(of: $0) }
        guard !sockets.isEmpty else { return loop.post { completion(.failure(.centralUnreachable)) } }
        current = completion
        step = .writing
        let turn = turn
        let tally = Tally()
        for socket in sockets {
            let id = ObjectIdentifier(socket)
            socket.send(value) { [weak self] result in
                guard let self, turn == self.turn else { return }
                if case .success = result { tally.taken.insert(id) }
                tally.open.remove(id)
                if tally.open.isEmpty { written(tally.taken) }
            }
            tally.open.insert(id)
        }
    }

    /// Of one value; on the loop.
    private final class Tally: @unchecked Sendable {
        var open: Set<ObjectIdentifier> = []
        var taken: Set<ObjectIdentifier> = []
    }

    private func written(_ sockets: Set<ObjectIdentifier>) {
        guard !sockets.isEmpty else { return end(.failure(.centralUnreachable)) }
        guard record.isConfirmed, record.core.capabilities.confirmsOverSocket else { return end(.success(())) }
        let open = sockets.filter { record.isOpen($0) }
        guard !open.isEmpty else { return end(.success(())) }
        step = .confirmingOverSockets(open)
        awaitConfirmation()
    }

    /// The central of a socket has confirmed what was written to it, or the socket has ended.
    func confirmed(over socket: AcquiredSocket) {
        guard case .confirmingOverSockets(var sockets) = step else { return }
        sockets.remove(ObjectIdentifier(socket))
        if sockets.isEmpty { end(.success(())) } else { step = .confirmingOverSockets(sockets) }
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
