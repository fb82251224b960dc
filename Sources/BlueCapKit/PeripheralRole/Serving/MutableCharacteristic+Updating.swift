import BlueZ
public import Foundation
public import Futures
public import GATT
import Reactor

// Updates: new values that are sent to whoever has subscribed. `update` may be called fast: it takes one lock, and the loop
// is woken once for all that come together.

extension MutableCharacteristic {
    /// Whether it can be subscribed to.
    var canNotify: Bool {
        propertyEnabled([.notify, .indicate, .notifyEncryptionRequired, .indicateEncryptionRequired])
    }

    // MARK: Updating

    /// Sets the value and sends it to all who have subscribed.
    ///
    /// Values are sent in the order of the calls, to every central that is subscribed. Values that a link does not yet
    /// carry wait, at most ``updateQueueLimit`` of them; ``updateQueuePolicy`` says what happens to one more. While no
    /// central is subscribed, ``unsubscribedUpdatePolicy`` says which values wait, and no call fails because many do. A
    /// value that was handed over and not taken when the subscription ended counts as one that waits, and as the oldest.
    ///
    /// A value of no bytes may overtake others: it does not go over a socket, of which BlueZ would take it for the end.
    ///
    /// A notification is taken when BlueZ has it, and nobody tells what becomes of it then: what is on its way over a link
    /// that falls is lost. An indication is taken when a central has confirmed it.
    ///
    /// BlueZ cuts what is longer than a central's packets, without a word: to the MTU less 3, and to the MTU less 5 where the
    /// central knows several values in a packet, as another BlueZ does. An update of no bytes cannot go over a socket
    /// (``sendsUpdatesOverSocket``): it arrives, but may change places with its neighbours.
    /// - Parameter value: At most 512 bytes.
    /// - Throws: ``MutableCharacteristicError/unconfigured``, ``MutableCharacteristicError/notifyNotSupported``,
    ///   ``MutableCharacteristicError/tooLong(count:maximum:)``, and, only while a central is subscribed,
    ///   ``MutableCharacteristicError/updateQueueFull(limit:)``: then the value is not set either.
    public func update(withData value: Data) throws { try submit(value) }

    /// Sets the value that texts spell, by the profile, and sends it.
    /// - Throws: As ``update(withData:)``, and ``MutableCharacteristicError/notSerializable`` where they spell none.
    public func update(withString value: [String: String]) throws {
        try checkUpdating()
        guard let data = profile.data(fromString: value) else { throw MutableCharacteristicError.notSerializable }
        try submit(data)
    }

    /// Sets a value of a type that has a form on the air, and sends it.
    /// - Throws: As ``update(withData:)``.
    public func update<T: CharacteristicCodable>(_ value: T) throws { try submit(value.serialize()) }

    /// The same, as an example of the documents has it.
    /// - Returns: Whether a central is subscribed; otherwise ``unsubscribedUpdatePolicy`` applies to the value.
    @discardableResult
    public func updateValue<T: CharacteristicCodable>(_ value: T) throws -> Bool { try submit(value.serialize()) }

    // MARK: What waits

    /// Whether updates are being sent: a central is subscribed.
    public var isUpdating: Bool { core.withLock { $0.updates.isSubscribed } }

    /// The updates that were not taken yet, the oldest first.
    public var pendingUpdates: [Data] { core.withLock { $0.updates.pending } }

    /// How many updates may wait, 1,024 at first; at least 1.
    ///
    /// Lowering it drops no update at once, and none while a central is subscribed. Without a subscription the oldest updates
    /// above the limit are dropped: at the next update, when the last subscriber leaves, or when
    /// ``unsubscribedUpdatePolicy`` is set.
    public var updateQueueLimit: Int {
        get { core.withLock { $0.updates.limit } }
        set { core.withLock { $0.updates.limit(to: newValue) } }
    }

    /// What happens to an update when as many wait and a central is subscribed; ``UpdateQueuePolicy/refuse`` at first.
    public var updateQueuePolicy: UpdateQueuePolicy {
        get { core.withLock { $0.updates.policy } }
        set { core.withLock { $0.updates.policy = newValue } }
    }

    /// What happens to updates while no central is subscribed; ``UnsubscribedUpdatePolicy/queue`` at first.
    ///
    /// ```swift
    /// let temperature = MutableCharacteristic(uuid: "2A6E", properties: [.read, .notify], permissions: .readable)
    /// temperature.unsubscribedUpdatePolicy = .latest
    /// ```
    ///
    /// The policy applies at these times:
    /// - To each update while no central is subscribed.
    /// - To what waits, when the last subscriber leaves, its link falls, or `bluetoothd` ends. While one of several
    ///   subscribers stays, nothing is dropped.
    /// - To what waits, when the policy is set while no central is subscribed.
    ///
    /// The first central that subscribes receives what waits, the oldest first. A central that subscribes while another one
    /// is subscribed receives what is sent from then on. A value that was sent and taken is not sent again to the next
    /// subscriber, who reads it. Updates that wait, and the policy, do not outlive the process: a restored characteristic
    /// begins with ``UnsubscribedUpdatePolicy/queue`` and no updates.
    public var unsubscribedUpdatePolicy: UnsubscribedUpdatePolicy {
        get { core.withLock { $0.updates.unsubscribedPolicy } }
        set {
            let (dropped, finished, session) = core.withLock { core in
                let dropped = core.updates.keepUnsubscribed(newValue)
                return (dropped, core.takeFinished(), core.session)
            }
            withExtendedLifetime(dropped) {}
            if let session { finish(finished, session) }
        }
    }

    /// How many updates were accepted and dropped without being sent.
    ///
    /// It counts what ``UpdateQueuePolicy/dropOldest`` and ``unsubscribedUpdatePolicy`` drop, and indications that no central
    /// confirmed although they were sent twice, for thirty seconds each. It does not count what waits when the service is
    /// removed.
    public var droppedUpdates: Int { core.withLock { $0.updates.dropped } }

    /// Completes when no update waits any more, because each was sent or dropped: for programs that make values faster than a
    /// link carries them. It fails
    /// with ``MutableCharacteristicError/unconfigured`` where the characteristic is offered no more, or not yet.
    public func whenUpdatesSent() -> Future<Void> {
        let promise = Promise<Void>()
        let outcome = core.withLock { core -> Try<Void>? in
            guard core.session != nil else { return .failure(MutableCharacteristicError.unconfigured) }
            if core.updates.isEmpty { return .success(()) }
            core.whenSent.append(promise)
            return nil
        }
        if let outcome { promise.complete(outcome) }
        return promise.future
    }

    // MARK: Doing

    private func checkUpdating() throws {
        guard core.withLock({ $0.session != nil }) else { throw MutableCharacteristicError.unconfigured }
        guard canNotify else { throw MutableCharacteristicError.notifyNotSupported }
    }

    @discardableResult
    private func submit(_ value: Data) throws -> Bool {
        guard canNotify else {
            try checkUpdating()
            throw MutableCharacteristicError.notifyNotSupported
        }
        guard value.count <= UpdateQueue.longestValue else {
            try checkUpdating()
            throw MutableCharacteristicError.tooLong(count: value.count, maximum: UpdateQueue.longestValue)
        }
        var awaited: PeripheralManagerSession?
        var error: MutableCharacteristicError?
        // Dropped under the lock, and released after it.
        var old: (Data?, [Data]) = (nil, [])
        let isUpdating = core.withLock { core -> Bool in
            guard let session = core.session else {
                error = .unconfigured
                return false
            }
            switch core.updates.add(value) {
            case .queued: break
            case .dropped(let victims): old.1 = victims
            case .refused:
                error = .updateQueueFull(limit: core.updates.limit)
                return false
            }
            old.0 = core.value
            core.value = value
            if core.updates.mustWake() { awaited = session }
            return core.updates.isSubscribed
        }
        if let error { throw error }
        if let awaited { awaited.loop.post { self.send(through: awaited) } }
        withExtendedLifetime(old) {}
        return isUpdating
    }

    /// Hands over what waits, as much as may be under way. On the loop.
    func send(through session: PeripheralManagerSession) {
        let (values, epoch, application) = core.withLock { ($0.updates.take(), $0.updates.epoch, $0.application) }
        guard !values.isEmpty else { return }
        guard let application else { return subscriptionEnded(session) }
        let taken: @Sendable (Result<Void, BlueZError>) -> Void = { [weak session] result in
            if let session { self.handedOver(result, epoch, session) }
        }
        application.notify(number.attribute, values, completion: taken)
    }

    /// On the loop, for each value, in their order.
    private func handedOver(
        _ result: Result<Void, BlueZError>, _ epoch: UpdateQueue.Epoch, _ session: PeripheralManagerSession
    ) {
        let failure: UpdateQueue.Failure? =
            switch result {
            case .success: nil
            case .failure(let error): error.cause == .noReply ? .unconfirmed : .nobodySubscribed
            }
        let (mustSend, finished, wasCurrent, released) = core.withLock { core -> (Bool, [Promise<Void>], Bool, Data?) in
            let wasCurrent = epoch == core.updates.epoch
            let released =
                if let failure { core.updates.failed(epoch, failure) } else { core.updates.confirmed(epoch) }
            return (core.updates.mustWake(), core.takeFinished(), wasCurrent, released)
        }
        withExtendedLifetime(released) {}
        finish(finished, session)
        if mustSend { send(through: session) }
        if failure == .nobodySubscribed, wasCurrent { resumeIfSubscribed(session) }
    }

    func finish(_ promises: [Promise<Void>], _ session: PeripheralManagerSession) {
        guard !promises.isEmpty else { return }
        session.complete { for promise in promises { promise.success(()) } }
    }

    /// A socket of several may have gone while the others listen on. Not at once: what fails again at once must not be tried
    /// without end and pause.
    private func resumeIfSubscribed(_ session: PeripheralManagerSession) {
        session.loop.schedule(after: 0.1) { [weak session] in
            guard let session, let application = self.core.withLock({ $0.application }),
                application.isSubscribed(self.number.attribute)
            else { return }
            let mustSend = self.core.withLock { core in
                core.updates.subscribed()
                return core.updates.mustWake()
            }
            if mustSend { self.send(through: session) }
        }
    }
}

extension MutableCharacteristic.Core {
    /// The promises of ``MutableCharacteristic/whenUpdatesSent()``, once no update waits any more.
    mutating func takeFinished() -> [Promise<Void>] {
        guard updates.isEmpty else { return [] }
        defer { whenSent = [] }
        return whenSent
    }
}

extension UpdateQueue {
    /// An attribute's longest value, in bytes (Core Specification, Vol 3, Part F, 3.2.9).
    static let longestValue = 512
}
