import BlueCapDBus
package import Foundation
import BlueCapReactor

/// The notifications of peers' characteristics to this process. BlueZ counts its subscribers by connections to the bus, so this
/// process is one subscriber, however many of its managers subscribe, and BlueZ gives it one socket for each characteristic.
/// A ``NotifyMachine`` for each characteristic decides; this class executes its effects, and passes the values on.
///
/// On the loop only, and unchecked because of that; for the same reason the runtime need not check the accesses. Receivers and
/// completions are never called before a method returns, except with the values that precede the end of a subscription.
package final class SharedNotifications: @unchecked Sendable {
    package enum Event: Equatable, Sendable {
        /// Values in their order. They may precede `began` and follow `interrupted`.
        case values([Data])
        /// BlueZ notifies, for the first time or again.
        case began
        /// There are no values, although the link seems to be up. BlueZ is asked again after a second, unless it notifies
        /// again by itself before; `began` or `failed` follows.
        case interrupted
        /// BlueZ is asked again.
        case asked
        /// BlueZ has refused, and the subscription has ended.
        case failed(BlueZError)
    }

    /// The seconds after which BlueZ is asked again. Usually the link is lost in the meantime.
    package static let interruptionLimit = 1.0

    package typealias Receiver = @Sendable (Event) -> Void

    private final class Entry: @unchecked Sendable {
        let key: AttributeKey
        @exclusivity(unchecked) var machine: NotifyMachine
        @exclusivity(unchecked) var gate = ValueGate()
        @exclusivity(unchecked) var receivers: [(subscriber: ObjectIdentifier, receive: Receiver)] = []
        /// Those that have unsubscribed. They receive what BlueZ notifies until its reply to `StopNotify`, and the values
        /// that wait for the reply to a read.
        @exclusivity(unchecked) var leaving: [Receiver] = []
        var stops: [BlueZCompletion<Void>] = []
        var socket: AcquiredSocket?
        let timer: LoopTimer

        init(_ key: AttributeKey, _ timer: LoopTimer) {
            (self.key, self.timer) = (key, timer)
            machine = NotifyMachine(isVirtual: key.isVirtual)
        }

        func deliver(_ values: [Data]) {
            guard !values.isEmpty else { return }
            for receive in leaving { receive(.values(values)) }
            if machine.state == .stopping { return }
            for (_, receive) in receivers { receive(.values(values)) }
        }

        func dismissLeaving() { if !gate.isHolding, machine.state != .stopping { leaving = [] } }
    }

    private let daemon: DaemonLink
    private let connector: Connector
    @exclusivity(unchecked) private var entries: [AttributeKey: Entry] = [:]
    /// The characteristics of the reads that are under way, of all managers of this process, in the order in which they began.
    @exclusivity(unchecked) private var reads: [AttributeKey] = []
    /// Those with values that are not delivered.
    @exclusivity(unchecked) private var full: [Entry] = []
    /// The reports that follow these values.
    @exclusivity(unchecked) private var reports: [() -> Void] = []

    init(_ daemon: DaemonLink, _ connector: Connector) { (self.daemon, self.connector) = (daemon, connector) }

    /// Subscribes a manager. `began` or `failed` follows, unless it unsubscribes.
    ///
    /// - Parameters:
    ///   - overSocket: Whether values come over a socket. An existing subscription of this process keeps its transport.
    ///   - mayPair: Whether BlueZ may be pairing for a refused request. Up to 5.83 BlueZ does not reply to a refused
    ///     `AcquireNotify`.
    ///   - isRepeated: Whether BlueZ has just refused the same, so that it is asked after a second.
    package func subscribe(
        _ key: AttributeKey, overSocket: Bool, mayPair: Bool, isRepeated: Bool = false, for subscriber: AnyObject,
        receiver: @escaping Receiver
    ) {
        daemon.requireLoop()
        let entry = entries[key] ?? Entry(key, LoopTimer(on: daemon.loop))
        entries[key] = entry
        let id = ObjectIdentifier(subscriber)
        entry.receivers.removeAll { $0.subscriber == id }
        entry.receivers.append((id, receiver))
        let adapter = daemon.objects[adapter: key.device.adapter]
        let isUncertain = mayPair && adapter?.capabilities.answersRefusedAcquireNotify != true
        change(entry) {
            $0.subscribe(
                id, overSocket: overSocket, isReplyUncertain: isUncertain, isRepeated: isRepeated, into: &$1)
        }
        flushLater()
    }

    /// Unsubscribes a manager; the last one turns notifications off. Possible without a link too.
    ///
    /// - Parameter completion: Success also means that there was nothing to turn off.
    package func unsubscribe(
        _ key: AttributeKey, for subscriber: AnyObject, completion: @escaping BlueZCompletion<Void>
    ) {
        daemon.requireLoop()
        guard let entry = entries[key] else { return daemon.loop.post { completion(.success(())) } }
        entry.deliver(entry.gate.takeBatch())
        let id = ObjectIdentifier(subscriber)
        entry.leaving += entry.receivers.filter { $0.subscriber == id }.map(\.receive)
        entry.receivers.removeAll { $0.subscriber == id }
        entry.stops.append(completion)
        change(entry) { $0.unsubscribe(id, into: &$1) }
        flushLater()
    }

    private func change(_ entry: Entry, _ event: (inout NotifyMachine, inout NotifyMachine.Effects) -> Void) {
        var effects: NotifyMachine.Effects = []
        event(&entry.machine, &effects)
        for effect in effects { perform(effect, entry) }
        removeIfUnused(entry)
    }

    private func removeIfUnused(_ entry: Entry) {
        if entry.machine.isIdle, !entry.gate.isHolding, entries[entry.key] === entry { entries[entry.key] = nil }
    }

    /// The same for a reply of BlueZ.
    private func replied(_ entry: Entry, _ event: (inout NotifyMachine, inout NotifyMachine.Effects) -> Void) {
        change(entry, event)
        flush()
    }

    private func perform(_ effect: NotifyMachine.Effect, _ entry: Entry) {
        let key = entry.key
        switch effect {
        case .start(let number):
            daemon.call(key, .startNotify, timeout: DaemonLink.attributeTimeout) { [self] result in
                let isNotifying = daemon.objects.attribute(key)?.isNotifying ?? false
                replied(entry) { $0.started(number, result.done.failure, isNotifying: isNotifying, into: &$1) }
            }
        case .acquire(let number): acquire(number, entry)
        case .stop(let number):
            // The peer may notify until its link has ended.
            connector.afterDisconnection(of: key.device) { [self] in
                guard entry.machine.isStopping(number) else { return }
                daemon.call(key, .stopNotify, timeout: DaemonLink.attributeTimeout) { [self] result in
                    replied(entry) { $0.stopped(number, result.done.failure, into: &$1) }
                }
            }
        case .closeSocket:
            entry.socket?.catchUp()
            entry.socket?.close()
            entry.socket = nil
        case .startTimer(let seconds):
            entry.timer.start(after: seconds) { [self] in replied(entry) { $0.timerFired(into: &$1) } }
        case .cancelTimer: entry.timer.cancel()
        case .report(let subscriber, let event):
            guard let index = entry.receivers.firstIndex(where: { $0.subscriber == subscriber }) else { return }
            let receive = entry.receivers[index].receive
            if case .failed = event { entry.receivers.remove(at: index) }
            reports.append { receive(event) }
        case .stopped(let error):
            let stops = entry.stops
            entry.stops = []
            reports.append {
                entry.dismissLeaving()
                for completion in stops { completion(error.map { .failure($0) } ?? .success(())) }
            }
        }
    }

    private func acquire(_ number: UInt32, _ entry: Entry) {
        daemon.acquireNotify(entry.key) { [self] result in
            if case .success(let socket) = result {
                guard entry.machine.isAcquiring(number) else { return socket.close() }
                entry.socket = socket
                socket.start { [weak self, weak entry] packets in
                    guard let self, let entry, let newest = packets.last else { return }
                    daemon.keepValue(newest, of: entry.key)
                    entry.deliver(packets)
                } onClosed: { [weak self, weak entry] in
                    guard let self, let entry else { return }
                    replied(entry) { $0.socketClosed(into: &$1) }
                }
            }
            replied(entry) { $0.acquired(number, result.failure, into: &$1) }
        }
    }

    // MARK: Values

    /// Delivers the values since the last call, and then the reports.
    func flush() {
        while let entry = full.popLast() {
            var values = entry.gate.takeBatch()
            entry.deliver(values)
            entry.gate.recycle(&values)
        }
        while !reports.isEmpty { reports.removeFirst()() }
    }

    private func flushLater() {
        if !reports.isEmpty { daemon.loop.post { self.flush() } }
    }

    /// Handles a change of the tree. Returns whether it was a value for subscribers and nothing else.
    func attributeChanged(_ key: AttributeKey, _ fields: AttributeFields) -> Bool {
        guard let entry = entries[key] else { return false }
        if fields.contains(.isNotifying), let isNotifying = daemon.objects.attribute(key)?.isNotifying {
            change(entry) { $0.notifyingChanged(isNotifying, into: &$1) }
        }
        return fields.contains(.value) && signalled(daemon.objects.value(of: key), entry) && fields == .value
    }

    func attributeRemoved(_ key: AttributeKey) {
        if let entry = entries[key] { change(entry) { $0.removed(into: &$1) } }
    }

    func batteryChanged(of device: ObjectKey) {
        guard let entry = entries[.battery(of: device)] else { return }
        _ = signalled(daemon.objects.batteryLevel(of: device).map { Data([$0]) }, entry)
    }

    private func signalled(_ value: consuming Data?, _ entry: Entry) -> Bool {
        guard let value, entry.machine.passesSignals else { return false }
        let wasEmpty = entry.gate.batch.isEmpty
        entry.gate.signalled(value, isReading: reads.contains(entry.key))
        if wasEmpty, !entry.gate.batch.isEmpty { full.append(entry) }
        return true
    }

    /// A read of this process begins.
    func readBegan(_ key: AttributeKey) { reads.append(key) }

    /// It has ended. Called after the change with its value, and before the reader's completion.
    func readEnded(_ key: AttributeKey, offset: Int, reply: Data?) {
        if let index = reads.firstIndex(of: key) { reads.remove(at: index) }
        guard let entry = entries[key], entry.gate.isHolding else { return }
        entry.gate.readEnded(reply, offset: offset, isLast: !reads.contains(key))
        full.append(entry)
        flush()
        entry.dismissLeaving()
        removeIfUnused(entry)
    }
}

/// Separates the values that a characteristic notifies from those that this process has read.
///
/// BlueZ reports a notified value in the same way as a value that any program has read: `Value` has changed. The report that
/// our own read causes precedes the read's reply, and equals it. So values are held during a read. At the reply the last one
/// that equals the reply is dropped, and the others are delivered.
struct ValueGate {
    /// The number of values that may wait for a read's reply; beyond it the oldest is delivered. BlueZ 5.66 sends a read's
    /// value and its reply in immediate succession, so the read's own value is among the newest.
    static let patience = 16

    private var held: [Data] = []
    /// The values to deliver, in their order.
    private(set) var batch: [Data] = []

    /// Whether values wait for a read.
    var isHolding: Bool { !held.isEmpty }

    mutating func signalled(_ value: consuming Data, isReading: Bool) {
        guard isReading else { return batch.append(value) }
        if held.count == Self.patience { batch.append(held.removeFirst()) }
        held.append(value)
    }

    /// BlueZ has replied to a read: with the value from `offset` on, or with an error. `isLast`: no other one is under way.
    mutating func readEnded(_ reply: Data?, offset: Int = 0, isLast: Bool = true) {
        if let reply, let own = held.lastIndex(where: { $0.dropFirst(offset) == reply }) { held.remove(at: own) }
        guard isLast else { return }
        batch += held
        held.removeAll(keepingCapacity: true)
    }

    mutating func takeBatch() -> [Data] {
        defer { batch = [] }
        return batch
    }

    /// Takes back the memory of a batch that was delivered, unless it is large.
    mutating func recycle(_ delivered: inout [Data]) {
        guard batch.isEmpty else { return }
        delivered.removeAll(keepingCapacity: delivered.capacity <= 64)
        swap(&batch, &delivered)
    }
}
