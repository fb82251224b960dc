public import Foundation
public import BlueCapFutures

extension Characteristic {
    // MARK: Subscribing

    /// Whether the peripheral can send values of the characteristic: the properties contain `notify` or `indicate`.
    public var canNotify: Bool { propertyEnabled([.notify, .indicate]) }

    /// Whether this manager is subscribed and receives values. False while there is no link, even if the subscription
    /// will be resumed.
    public var isNotifying: Bool { session.use(of: peripheral.key) { $0.state.subscriptions.isNotifying(id) } ?? false }

    /// Whether there is a subscription of this manager, or of an earlier process, that delivers values or will do so on this
    /// link or the next.
    package var isSubscribed: Bool { session.use(of: peripheral.key) { $0.state.isSubscribed(id) } ?? false }

    /// Variant of ``startNotifying(over:timeout:)`` that returns a future of this characteristic, without a time limit.
    @discardableResult
    public func startNotifying(over transport: NotificationTransport) -> Future<Characteristic> {
        subscribe(over: transport, yielding: self)
    }

    /// Variant of ``startNotifying(over:timeout:)`` that returns a future, with a time limit in seconds.
    @discardableResult
    public func startNotifying(
        over transport: NotificationTransport = .signals, timeout: TimeInterval
    ) -> Future<Characteristic> {
        subscribe(over: transport, timeout: timeout, yielding: self)
    }

    /// Variant of ``startNotifying(over:timeout:)`` that returns a future, over signals and without a time limit.
    @discardableResult
    public func startNotifying() -> Future<Characteristic> { subscribe(over: .signals, yielding: self) }

    /// Variant of ``stopNotifying(timeout:)`` that returns a future of this characteristic, without a time limit.
    @discardableResult
    public func stopNotifying() -> Future<Characteristic> { unsubscribe(yielding: self) }

    /// Variant of ``stopNotifying(timeout:)`` that returns a future, with a time limit in seconds.
    @_disfavoredOverload  // `characteristic.stopNotifying` without a call is the method without a time limit
    @discardableResult
    public func stopNotifying(timeout: TimeInterval) -> Future<Characteristic> {
        unsubscribe(timeout: timeout, yielding: self)
    }

    // MARK: Receiving

    /// Returns a stream of the values that are notified or indicated from now on, in the order of their arrival. The stream
    /// of ``notificationEvents(over:capacity:timeout:)`` also subscribes.
    ///
    /// Each value is one element, with this characteristic. An element whose data is `nil` marks a gap: the
    /// subscription was interrupted and has been resumed, and values may have been missed.
    ///
    /// The stream needs no subscription, and receives no values without one. Each call returns a new stream, and each
    /// stream receives all values. The streams end with ``stopNotificationUpdates()``; with
    /// ``CharacteristicError/invalidated`` when the peripheral no longer has the characteristic; with
    /// ``Peripheral/terminate()``; and with the manager. If a subscription cannot be resumed, the stream receives a
    /// failure and continues. If the characteristic cannot notify, the stream has the failure
    /// ``CharacteristicError/notifyNotSupported``.
    ///
    /// Values that arrive together are delivered together: a handler on a queue is called once for all of them.
    ///
    /// - Parameter capacity: How many values are kept for handlers that are added later. `Int.max`, the default, keeps
    ///   all values until there is a handler, and from then on the latest 4 096; 0 keeps none. If more than `capacity`
    ///   values arrive before there is a handler, the oldest are discarded, and `droppedCount` of the stream is their
    ///   number. While there is a handler no value is discarded, however slow the handler is: values that wait for it
    ///   stay in memory.
    public func receiveNotificationUpdates(
        capacity: Int = .max
    ) -> FutureStream<(characteristic: Characteristic, data: Data?)> {
        let characteristic = self
        return receive(capacity) { NotificationSink($0, gap: .success((characteristic, nil))) { (characteristic, $0) } }
    }

    /// Ends all streams of ``receiveNotificationUpdates(capacity:)->FutureStream<(Characteristic,Data?)>`` of this
    /// characteristic.
    ///
    /// The subscription does not change; ``stopNotifying(timeout:)`` ends it.
    public func stopNotificationUpdates() { session.endNotifications(id, of: peripheral.key) }

    // MARK: How

    func subscribe<T: Sendable>(
        over transport: NotificationTransport, timeout: TimeInterval = .infinity, yielding value: T
    ) -> Future<T> {
        guard canNotify else { return session.failed(CharacteristicError.notifyNotSupported) }
        return session.operation(on: peripheral.key, timeout: timeout, yielding: value) {
            $0.subscription(id, .startAsked($1, transport), into: &$2)
        }
    }

    func unsubscribe<T: Sendable>(timeout: TimeInterval = .infinity, yielding value: T) -> Future<T> {
        guard canNotify else { return session.failed(CharacteristicError.notifyNotSupported) }
        return session.operation(on: peripheral.key, timeout: timeout, yielding: value) {
            $0.subscription(id, .stopAsked($1), into: &$2)
        }
    }

    func receive<T: Sendable>(
        _ capacity: Int, _ sink: (FutureStream<T>) -> NotificationSink
    ) -> FutureStream<T> {
        guard canNotify else { return .failed(CharacteristicError.notifyNotSupported) }
        let stream = FutureStream<T>(capacity: max(0, capacity))
        session.feed(sink(stream), id, of: peripheral.key)
        return stream
    }
}
