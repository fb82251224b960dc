public import Foundation
public import Futures
import GATT

extension Characteristic {
    // MARK: Subscribing

    /// Whether the peripheral sends its values by itself: `notify` or `indicate` is among the properties.
    public var canNotify: Bool { propertyEnabled([.notify, .indicate]) }

    /// Whether this manager is subscribed and values come. False while the link is down, also if the
    /// subscription will be resumed.
    public var isNotifying: Bool { session.isNotifying(subject) }

    /// Subscribes to the value: from now on what the peripheral notifies or indicates goes to the streams of
    /// ``receiveNotificationUpdates(capacity:)->FutureStream<(Characteristic,Data?)>``.
    ///
    /// All subscribers of a characteristic share one subscription; a second call succeeds when the first has. It stays
    /// until ``stopNotifying()->Future<Characteristic>``: after a lost link, when there is another one for any reason, and after a
    /// restart of `bluetoothd`, the subscription is resumed with one write to the peripheral. Then the
    /// streams get a mark, since values may have been missed. It ends with ``Peripheral/terminate()`` and with the
    /// manager.
    ///
    /// A value that a read of this process brought is no notification. Where *another* program reads the characteristic
    /// BlueZ does not distinguish the two, and if another program is subscribed over signals, BlueZ reports each value
    /// twice: both by the D-Bus signal that it has for all. Over a socket neither happens.
    ///
    /// - Parameter transport: How values come; see ``NotificationTransport``. Where there is a subscription already it
    ///   stays as it is.
    /// - Returns: This characteristic, when the peripheral has confirmed it to BlueZ; values that come before
    ///   that are delivered. Or a failure: ``CharacteristicError/notifyNotSupported`` at once where the properties have
    ///   neither `notify` nor `indicate`, or BlueZ has no socket for it; ``CharacteristicError/acquiredByOther(_:)``
    ///   where another program has it; ``CharacteristicError/notifyFailed(_:)`` where the peripheral refuses, with its
    ///   ATT error; ``CharacteristicError/notifyTimeout`` where it does not answer for 30 seconds;
    ///   ``CharacteristicError/invalidated``; ``PeripheralError/disconnected``.
    @discardableResult
    public func startNotifying(over transport: NotificationTransport) -> Future<Characteristic> {
        subscribe(over: transport, yielding: self)
    }

    /// The later form, which yields no characteristic.
    @_disfavoredOverload
    @discardableResult
    public func startNotifying(over transport: NotificationTransport) -> Future<Void> {
        subscribe(over: transport, yielding: ())
    }

    /// Subscribes to the value, as ``startNotifying(over:)->Future<Characteristic>`` does, within a time limit.
    ///
    /// - Parameters:
    ///   - transport: How values come; see ``NotificationTransport``.
    ///   - timeout: In seconds. When it is exceeded the future fails with ``CharacteristicError/notifyTimeout``. A
    ///     subscription that no other operation waits for is cancelled then.
    /// - Returns: As without a time limit.
    @discardableResult
    public func startNotifying(
        over transport: NotificationTransport = .signals, timeout: TimeInterval
    ) -> Future<Characteristic> {
        subscribe(over: transport, timeout: timeout, yielding: self)
    }

    /// The later form, which yields no characteristic.
    @_disfavoredOverload
    @discardableResult
    public func startNotifying(
        over transport: NotificationTransport = .signals, timeout: TimeInterval
    ) -> Future<Void> {
        subscribe(over: transport, timeout: timeout, yielding: ())
    }

    /// Subscribes to the value over signals, as ``startNotifying(over:)->Future<Characteristic>`` with `.signals` does.
    @discardableResult
    public func startNotifying() -> Future<Characteristic> { subscribe(over: .signals, yielding: self) }

    /// The later form, which yields no characteristic.
    @_disfavoredOverload
    @discardableResult
    public func startNotifying() -> Future<Void> { subscribe(over: .signals, yielding: ()) }

    /// Ends the subscription. The streams of ``receiveNotificationUpdates(capacity:)->FutureStream<(Characteristic,Data?)>`` stay, and receive again
    /// after another ``startNotifying(over:)->Future<Characteristic>``; ``stopNotificationUpdates()`` ends them. The two
    /// may be called in either order.
    ///
    /// - Returns: This characteristic, when BlueZ has confirmed it; at once where there is no subscription. While there
    ///   is no link, it cancels the automatic resubscription. It fails as
    ///   ``startNotifying(over:)->Future<Characteristic>`` does.
    @discardableResult
    public func stopNotifying() -> Future<Characteristic> { unsubscribe(yielding: self) }

    /// The later form, which yields no characteristic.
    @_disfavoredOverload
    @discardableResult
    public func stopNotifying() -> Future<Void> { unsubscribe(yielding: ()) }

    /// Ends the subscription, as ``stopNotifying()->Future<Characteristic>`` does, within a time limit.
    ///
    /// - Parameter timeout: In seconds. When it is exceeded the future fails with ``CharacteristicError/notifyTimeout``;
    ///   the subscription ends all the same.
    /// - Returns: As without a time limit.
    @_disfavoredOverload  // `characteristic.stopNotifying` without a call is the method without a time limit
    @discardableResult
    public func stopNotifying(timeout: TimeInterval) -> Future<Characteristic> {
        unsubscribe(timeout: timeout, yielding: self)
    }

    /// The later form, which yields no characteristic.
    ///
    /// - Parameter timeout: In seconds; `nil` is without a time limit. That it is optional makes the form with a
    ///   characteristic the preferred one of the two.
    @_disfavoredOverload
    @discardableResult
    public func stopNotifying(timeout: TimeInterval?) -> Future<Void> {
        unsubscribe(timeout: timeout ?? .infinity, yielding: ())
    }

    // MARK: Receiving

    /// A stream of what is notified or indicated from now on, in the order in which it came: each value once, with this
    /// characteristic. Where values may have been missed, since the subscription was interrupted and is back, there is
    /// an element whose data is `nil`.
    ///
    /// It needs no subscription, and receives nothing without one. Each call returns a stream of its own, and each gets
    /// all values. They end with ``stopNotificationUpdates()``; with ``CharacteristicError/invalidated`` when the
    /// peripheral does not have the characteristic any more; with ``Peripheral/terminate()``; with the manager. A
    /// subscription that cannot be resumed is a failure in the stream, which continues. A characteristic that
    /// cannot notify returns a stream with the failure ``CharacteristicError/notifyNotSupported``.
    ///
    /// ```swift
    /// characteristic.startNotifying().flatMap { characteristic in
    ///     characteristic.receiveNotificationUpdates(capacity: 10)
    /// }.onSuccess { characteristic, data in
    ///     guard let data else { return print("values may have been missed") }
    ///     print(characteristic.name, data)
    /// }
    /// ```
    ///
    /// Values that arrive together are delivered together: a handler on a queue is called once for all of them.
    ///
    /// - Parameter capacity: How many values are kept for handlers that are added later. `Int.max`, the default, keeps all
    ///   until there is a handler, and from then on the latest 4 096; 0 keeps none. Of more than `capacity` values that
    ///   come before there is a handler the oldest are lost, and `droppedCount` of the stream is their number. While
    ///   there is a handler nothing is lost, however slow it is: what waits for it is in memory.
    public func receiveNotificationUpdates(
        capacity: Int = .max
    ) -> FutureStream<(characteristic: Characteristic, data: Data?)> {
        let characteristic = self
        return receive(capacity, gap: .success((characteristic, nil))) { (characteristic, $0) }
    }

    /// The values alone; `nil` where some may have been missed. The rest is as with the form of pairs.
    @_disfavoredOverload
    public func receiveNotificationUpdates(capacity: Int = .max) -> FutureStream<Data?> {
        receive(capacity, gap: .success(nil)) { $0 }
    }

    /// The values alone; where some may have been missed there is the failure
    /// ``CharacteristicError/notificationsInterrupted``. The rest is as with the form of pairs.
    @_disfavoredOverload
    public func receiveNotificationUpdates(capacity: Int = .max) -> FutureStream<Data> {
        receive(capacity, gap: .failure(CharacteristicError.notificationsInterrupted)) { $0 }
    }

    /// The earliest form: this characteristic for each value, whose ``dataValue`` is the newest one; where some may have
    /// been missed there is the failure ``CharacteristicError/notificationsInterrupted``. The rest is as with the form of
    /// pairs.
    /// - Parameter capacity: As there; `nil` is `Int.max`.
    @_disfavoredOverload
    public func receiveNotificationUpdates(capacity: Int? = nil) -> FutureStream<Characteristic> {
        let characteristic = self
        return receive(capacity ?? .max, gap: .failure(CharacteristicError.notificationsInterrupted)) { _ in
            characteristic
        }
    }

    /// Ends all streams of ``receiveNotificationUpdates(capacity:)->FutureStream<(Characteristic,Data?)>`` of this characteristic. The subscription stays
    /// as it is: ``stopNotifying()->Future<Characteristic>`` ends that.
    public func stopNotificationUpdates() { session.endNotifications(of: subject) }

    // MARK: How

    var subject: CharacteristicKey {
        CharacteristicKey(peripheral: peripheral.key, characteristic: id)
    }

    /// - Parameter outlivesLinks: Whether it waits for the next link if one is lost, and does not fail.
    func subscribe<T: Sendable>(
        over transport: NotificationTransport, timeout: TimeInterval = .infinity, outlivesLinks: Bool = false,
        yielding value: T
    ) -> Future<T> {
        guard canNotify else { return session.failed(CharacteristicError.notifyNotSupported) }
        return session.operation(on: peripheral.key, yielding: value) {
            $0.subscription(
                id, .startAsked($1, transport, outlivesLinks: outlivesLinks), by: $1, timeout: timeout, into: &$2)
        }
    }

    private func unsubscribe<T: Sendable>(timeout: TimeInterval = .infinity, yielding value: T) -> Future<T> {
        guard canNotify else { return session.failed(CharacteristicError.notifyNotSupported) }
        return session.operation(on: peripheral.key, yielding: value) {
            $0.subscription(id, .stopAsked($1), by: $1, timeout: timeout, into: &$2)
        }
    }

    private func receive<T: Sendable>(
        _ capacity: Int, gap: Try<T>, element: @escaping @Sendable (Data) -> T
    ) -> FutureStream<T> {
        guard canNotify else { return .failed(CharacteristicError.notifyNotSupported) }
        return session.notifications(of: subject, capacity: max(0, capacity), gap: gap, element: element)
    }
}
