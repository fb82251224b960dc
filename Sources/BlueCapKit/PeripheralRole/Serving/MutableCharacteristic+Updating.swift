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
    /// Values are sent in the order of the calls, none left out. While nobody is subscribed, or a link carries no more, they
    /// wait, as many as ``updateQueueLimit``. What was handed over when a link fell or `bluetoothd` ended, and not taken, is
    /// sent again to the next who subscribes.
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
    ///   ``MutableCharacteristicError/tooLong(count:maximum:)``,
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
    /// - Returns: Whether somebody is subscribed; otherwise the value waits.
    @discardableResult
    public func updateValue<T: CharacteristicCodable>(_ value: T) throws -> Bool { try submit(value.serialize()) }

    // MARK: What waits

    /// Whether updates are being sent: somebody is subscribed.
    public var isUpdating: Bool { core.withLock { $0.updates.isSubscribed } }

    /// The updates that were not taken yet, the oldest first.
    public var pendingUpdates: [Data] { core.withLock { $0.updates.pending } }

    /// How many updates may wait, 1 024 at first; at least 1. Those that wait already stay when it is lowered.
    public var updateQueueLimit: Int {
        get { core.withLock { $0.updates.limit } }
        set { core.withLock { $0.updates.limit(to: newValue) } }
    }

    /// What happens to an update when as many wait: it is refused, unless this is set.
    public var updateQueuePolicy: UpdateQueuePolicy {
        get { core.withLock { $0.updates.policy } }
        set { core.withLock { $0.updates.policy = newValue } }
    }

    /// How many updates were given up: by ``UpdateQueuePolicy/dropOldest``, or because nobody confirmed an indication that
    /// was sent twice, for thirty seconds each.
    public var droppedUpdates: Int { core.withLock { $0.updates.dropped } }

    /// Completes when no update waits any more: for programs that make values faster than a link carries them. It fails
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
        // Given up under the lock, and let go of behind it.
        var old: (Data?, Data?)
        let isUpdating = core.withLock { core -> Bool in
            guard let session = core.session else {
                error = .unconfigured
                return false
            }
            switch core.updates.add(value) {
            case .queued: break
            case .dropped(let victim): old.1 = victim
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
            guard core.updates.isEmpty else { return (core.updates.mustWake(), [], wasCurrent, released) }
            defer { core.whenSent = [] }
            return (false, core.whenSent, wasCurrent, released)
        }
        withExtendedLifetime(released) {}
        if !finished.isEmpty { session.complete { for promise in finished { promise.success(()) } } }
        if mustSend { send(through: session) }
        if failure == .nobodySubscribed, wasCurrent { resumeIfSubscribed(session) }
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

extension UpdateQueue {
    /// An attribute's longest value, in bytes (Core Specification, Vol 3, Part F, 3.2.9).
    static let longestValue = 512
}
