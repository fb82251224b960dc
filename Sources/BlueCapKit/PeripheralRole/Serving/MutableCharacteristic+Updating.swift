package import BlueCapBlueZ
public import Foundation
public import BlueCapFutures
public import BlueCapGATT
import BlueCapReactor

// Updates: new values that are sent to the subscribed centrals. `update` may be called often: it takes one lock, and
// several calls wake the loop once.

extension MutableCharacteristic {
    // MARK: Updating

    /// Sets the value and sends it to all subscribed centrals.
    ///
    /// Values are sent in the order of the calls, and each subscribed central receives each value once. Values that
    /// cannot be sent yet wait, at most ``updateQueueLimit`` of them; ``updateQueuePolicy`` determines what happens to
    /// one more. While no central is subscribed, ``unsubscribedUpdatePolicy`` determines which values wait, and no call
    /// fails because the queue is full. A value whose sending was not confirmed when the subscription ended waits as
    /// the oldest.
    ///
    /// The sending of a notification is confirmed when the bus has accepted it. Bluetooth does not confirm
    /// notifications: those under way on a link that ends are lost. For an indication, one confirmation is expected
    /// from each central with an open socket. BlueZ does not report which central has confirmed. So the first
    /// confirmation is enough if no socket shows how many to expect: up to BlueZ 5.68, and if
    /// ``sendsUpdatesOverSocket`` is `false`. Centrals without a socket need not confirm. After thirty seconds one
    /// confirmation is enough.
    ///
    /// BlueZ cuts a value that is longer than a central's packets without an error: to the MTU less 3, or to the MTU
    /// less 5 if the central accepts several values in a packet, as BlueZ does in the central role.
    /// - Parameter value: At most 512 bytes.
    /// - Throws: ``MutableCharacteristicError/unconfigured``, ``MutableCharacteristicError/notifyNotSupported``,
    ///   ``MutableCharacteristicError/tooLong(count:maximum:)``, and, only while a central is subscribed,
    ///   ``MutableCharacteristicError/updateQueueFull(limit:)``. After an error the value is unchanged.
    public func update(withData value: Data) throws(MutableCharacteristicError) { try submit(value) }

    /// Sets a value that is given as text, converted by the characteristic's profile, and sends it.
    /// - Throws: As ``update(withData:)``, and ``MutableCharacteristicError/notSerializable`` if the texts are not a
    ///   valid value of the profile.
    public func update(withString value: [String: String]) throws(MutableCharacteristicError) {
        try submit(profile.data(fromString: value))
    }

    /// Sets a value, converted to bytes, and sends it.
    /// - Throws: As ``update(withData:)``.
    public func update<T: CharacteristicCodable>(_ value: T) throws(MutableCharacteristicError) {
        try submit(value.serialize())
    }

    /// Does the same as ``update(_:)``; an example of BlueCap's documentation uses this name.
    /// - Returns: Whether a central is subscribed; otherwise ``unsubscribedUpdatePolicy`` applies to the value.
    @discardableResult
    public func updateValue<T: CharacteristicCodable>(_ value: T) throws(MutableCharacteristicError) -> Bool {
        try submit(value.serialize())
    }

    // MARK: Updating one central

    /// Sends a value to some of the subscribed centrals, and to no other.
    ///
    /// ```swift
    /// for try await subscribers in characteristic.whenSubscribersChange() {
    ///     guard let newest = subscribers.last else { continue }
    ///     try characteristic.update(withData: Data("hello".utf8), for: newest)
    /// }
    /// ```
    ///
    /// This needs BlueZ 5.76 or later. With earlier versions nothing is sent, and the call throws.
    ///
    /// ``value`` does not change: a central that reads receives the value for all. The update waits in the same queue
    /// as the others (``updateQueueLimit``, ``pendingUpdates``, ``whenUpdatesSent()``), and each central receives its
    /// updates, those for all and those for it, in the order of the calls. Each change between the two kinds costs a
    /// round trip to `bluetoothd`.
    ///
    /// If the central leaves before the update is sent, the update is dropped, and ``droppedUpdates`` counts it. An
    /// update for several centrals is sent to the remaining ones. ``unsubscribedUpdatePolicy`` does not keep it.
    ///
    /// The sending of an indication is confirmed when each of the centrals has confirmed it. BlueZ 5.76 to 5.79 does
    /// not report that; there it is confirmed when BlueZ has accepted it.
    /// - Parameters:
    ///   - value: 1 to 512 bytes. BlueZ cannot send an update without bytes to one central.
    ///   - centrals: At least one of ``subscribers``. They are compared by `identifier`.
    /// - Throws: As ``update(withData:)``, and ``MutableCharacteristicError/directedUpdateRefused(_:)``.
    public func update(withData value: Data, for centrals: [Central]) throws(MutableCharacteristicError) {
        try submit(value, for: centrals)
    }

    /// Sends a value to one subscribed central, and to no other.
    ///
    /// See ``update(withData:for:)-(_,[Central])`` for versions of BlueZ, order and errors.
    public func update(withData value: Data, for central: Central) throws(MutableCharacteristicError) {
        try update(withData: value, for: [central])
    }

    /// Sends a value, converted to bytes, to one subscribed central, and to no other.
    ///
    /// See ``update(withData:for:)-(_,[Central])`` for versions of BlueZ, order and errors.
    public func update<T: CharacteristicCodable>(_ value: T, for central: Central)
        throws(MutableCharacteristicError)
    {
        try update(withData: value.serialize(), for: [central])
    }

    // MARK: The queue

    /// Whether updates are being sent, which is the case while a central is subscribed.
    public var isUpdating: Bool { core.withLock { $0.updates.isSubscribed } }

    /// The updates whose sending is not confirmed yet, the oldest first.
    public var pendingUpdates: [Data] { core.withLock { $0.updates.pending } }

    /// The largest number of updates that may wait: initially 1,024, and at least 1.
    ///
    /// Setting a lower limit drops no update at once, and none while a central is subscribed. Without a subscription
    /// the oldest updates above the limit are dropped: at the next update, when the last subscriber leaves, or when
    /// ``unsubscribedUpdatePolicy`` is set.
    public var updateQueueLimit: Int {
        get { core.withLock { $0.updates.limit } }
        set { core.withLock { $0.updates.limit(to: newValue) } }
    }

    /// What happens to an update if the queue is full while a central is subscribed; initially
    /// ``UpdateQueuePolicy/refuse``.
    public var updateQueuePolicy: UpdateQueuePolicy {
        get { core.withLock { $0.updates.policy } }
        set { core.withLock { $0.updates.policy = newValue } }
    }

    /// What happens to updates while no central is subscribed; initially ``UnsubscribedUpdatePolicy/queue``.
    ///
    /// ```swift
    /// let temperature = MutableCharacteristic(uuid: "2A6E", properties: [.read, .notify], permissions: .readable)
    /// temperature.unsubscribedUpdatePolicy = .latest
    /// ```
    ///
    /// The policy applies at these times:
    /// - To each update while no central is subscribed.
    /// - To the updates that wait, when the last subscriber leaves, its link ends, or `bluetoothd` ends. While one of
    ///   several subscribers stays, nothing is dropped.
    /// - To the updates that wait, when the policy is set while no central is subscribed.
    ///
    /// The first central that subscribes receives the updates that wait, the oldest first. A central that subscribes
    /// while another one is subscribed receives the updates that are sent after that. A value whose sending was
    /// confirmed is not sent again to the next subscriber, which can read it. The updates that wait, and the policy,
    /// are not restored: a restored characteristic begins with ``UnsubscribedUpdatePolicy/queue`` and no updates.
    public var unsubscribedUpdatePolicy: UnsubscribedUpdatePolicy {
        get { core.withLock { $0.updates.unsubscribedPolicy } }
        set { _ = change { $0.updates.keepUnsubscribed(newValue) } }
    }

    /// The number of updates that were accepted and dropped without being sent.
    ///
    /// It counts the updates that ``UpdateQueuePolicy/dropOldest`` and ``unsubscribedUpdatePolicy`` drop, and
    /// indications that no central confirmed although they were sent twice, for thirty seconds each. It does not count
    /// the updates that wait when the service is removed.
    public var droppedUpdates: Int { core.withLock { $0.updates.dropped } }

    /// Variant of ``whenUpdatesSent()->()`` that returns a future.
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

    // MARK: Sending

    /// - Parameter value: `nil` for texts that are not a valid value of the profile.
    @discardableResult
    private func submit(_ value: Data?, for centrals: [Central]? = nil)
        throws(MutableCharacteristicError)
        -> Bool
    {
        // What is replaced or dropped under the lock is released after it.
        var old: (Data?, [ServerUpdate]) = (nil, [])
        let (awaited, isUpdating) = try core.withLock {
            core throws(MutableCharacteristicError) -> (ServerApplication?, Bool) in
            guard core.session != nil else { throw MutableCharacteristicError.unconfigured }
            guard flags.canBeSubscribedTo else { throw MutableCharacteristicError.notifyNotSupported }
            guard let value else { throw MutableCharacteristicError.notSerializable }
            guard value.count <= AttributeProtocol.longestValue else {
                throw MutableCharacteristicError.tooLong(count: value.count, maximum: AttributeProtocol.longestValue)
            }
            let devices: [ObjectKey]? =
                if let centrals { try core.subscribers.devices(of: centrals, for: value) } else { nil }
            guard let dropped = core.updates.add(ServerUpdate(value, for: devices)) else {
                throw MutableCharacteristicError.updateQueueFull(limit: core.updates.limit)
            }
            old.1 = dropped
            if devices == nil { (old.0, core.value) = (core.value, value) }
            return (core.updates.mustWake() ? core.application : nil, core.updates.isSubscribed)
        }
        awaited?.sendUpdates(of: id, from: self)
        withExtendedLifetime(old) {}
        return isUpdating
    }

    /// Changes the updates or the subscribers, and then completes the futures of ``whenUpdatesSent()`` if no update waits.
    /// - Returns: What `body` returns, which is released after the lock.
    @inline(__always)
    private func change<R>(_ body: (inout Core) -> R) -> R {
        let (result, finished, session) = core.withLock { core in
            let result = body(&core)
            guard core.updates.isEmpty else { return (result, [Promise<Void>](), core.session) }
            defer { core.whenSent = [] }
            return (result, core.whenSent, core.session)
        }
        if let session, !finished.isEmpty {
            session.complete { for promise in finished { promise.success(()) } }
        }
        return result
    }
}

extension MutableCharacteristic: UpdateSource {
    package func nextUpdate() -> ServerUpdate? { core.withLock { $0.updates.next() } }

    package func updateEnded(_ outcome: UpdateOutcome) { _ = change { $0.updates.ended(outcome) } }
}

extension MutableCharacteristic {
    /// The centrals that have subscribed, as far as BlueZ reports them.
    ///
    /// BlueZ up to 5.68 reports the first of them, and only if updates are sent over a socket; later versions report
    /// each one. If BlueZ reports subscribers without naming them, the list has one ``Central`` that is
    /// ``Central/isAnonymous``. So the list is empty if and only if no central has subscribed.
    public var subscribers: [Central] { core.withLock { $0.subscribers.map(\.central) } }

    /// Whether a central has subscribed.
    public var hasSubscribers: Bool { core.withLock { !$0.subscribers.isEmpty } }

    /// Returns a stream of the ``subscribers`` at each change that BlueZ reports: when the first one subscribes, when
    /// the last one leaves, when `bluetoothd` ends, and for each one that BlueZ names.
    ///
    /// It begins with the present subscribers. Every call returns the same stream, which keeps only the newest list. It
    /// ends when the service is removed.
    public func whenSubscribersChange() -> FutureStream<[Central]> {
        let made = StreamPromise<[Central]>(capacity: 1)
        let (promise, session) = core.withLock { core in
            let promise = core.subscriberPromise ?? made
            core.subscriberPromise = promise
            return (promise, core.session)
        }
        guard promise === made, let session else { return promise.stream }
        session.loop.post { [self] in
            let subscribers = subscribers
            guard !subscribers.isEmpty else { return }
            // A change that the loop handled before this is there already.
            session.complete { if promise.stream.count == 0 { promise.success(subscribers) } }
        }
        return promise.stream
    }

    // MARK: Events; on the loop

    func subscribersChanged(to subscribers: [Subscriber], _ session: PeripheralManagerSession) {
        let centrals = subscribers.map(\.central)
        let (promise, awaited, _) = change { core in
            let released = (core.subscribers, subscribers.isEmpty ? core.updates.unsubscribed() : [])
            core.subscribers = subscribers
            if !subscribers.isEmpty { core.updates.subscribed() }
            return (
                released.0.map(\.central) == centrals ? nil : core.subscriberPromise,
                core.updates.mustWake() ? core.application : nil, released
            )
        }
        if let promise { session.complete { promise.success(centrals) } }
        awaited?.sendUpdates(of: id, from: self)
    }
}

extension [MutableCharacteristic.Subscriber] {
    /// Returns BlueZ's devices of the centrals that a value is for.
    fileprivate func devices(of centrals: [Central], for value: Data) throws(MutableCharacteristicError) -> [ObjectKey]
    {
        func refused(_ refusal: DirectedUpdateError) -> MutableCharacteristicError { .directedUpdateRefused(refusal) }
        if contains(where: { $0.source.directWay == .unsupported }) { throw refused(.notSupported) }
        guard !value.isEmpty else { throw refused(.emptyValue) }
        guard !centrals.isEmpty else { throw refused(.notSubscribed) }
        var devices: [ObjectKey] = []
        for central in centrals {
            guard let subscriber = first(where: { $0.central == central }) else {
                throw refused(.notSubscribed)
            }
            guard subscriber.source.directWay == .open, let device = subscriber.source.peer?.device else {
                throw refused(.noSocket)
            }
            if !devices.contains(device) { devices.append(device) }
        }
        return devices
    }
}
