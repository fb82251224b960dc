public import BlueCapFutures
public import Foundation

extension Characteristic {
    // MARK: Values as a sequence

    /// Subscribes to the value, and returns a stream of the values that the peripheral notifies or indicates, and of the
    /// gaps between them.
    ///
    /// ```swift
    /// for try await event in characteristic.notificationEvents() {
    ///     switch event {
    ///     case .value(let data): print(data)
    ///     case .gap: print("values may have been missed")
    ///     }
    /// }
    /// ```
    ///
    /// Use this form in a program that continues after lost links. The subscription is resumed on each following link, and
    /// the next element is a gap. ``notifications(over:capacity:timeout:)`` throws at a gap.
    ///
    /// When the last loop or handler of the stream or of an operator on it has ended or was cancelled, the stream is finished,
    /// and the subscription ends, unless ``startNotifying(over:timeout:)`` or another stream of the characteristic needs it.
    ///
    /// - Parameters:
    ///   - transport: How values are delivered. An existing subscription keeps its transport.
    ///   - capacity: How many elements are kept for a loop that begins later.
    ///   - timeout: The time limit for the start of the subscription, including all waiting for links; `nil` for none.
    /// - Returns: The stream. It receives the failures of ``startNotifying(over:timeout:)`` if the
    ///   subscription is refused or cannot be resumed, and ends if it has never begun.
    public func notificationEvents(
        over transport: NotificationTransport = .signals, capacity: Int = .max, timeout: Duration? = nil
    ) -> FutureStream<NotificationEvent> {
        NotificationStream(eventsOf: peripheral, capacity).subscribed(to: self, over: transport, timeout.seconds)
    }

    /// As ``notificationEvents(over:capacity:timeout:)``, but with the values alone; the failure
    /// ``CharacteristicError/notificationsInterrupted``, at which a loop throws, marks a gap.
    ///
    /// Use this form in a program that needs all values, or gives up when the link is lost.
    public func notifications(
        over transport: NotificationTransport = .signals, capacity: Int = .max, timeout: Duration? = nil
    ) -> FutureStream<Data> {
        NotificationStream(valuesOf: peripheral, capacity, endsSubscription: true)
            .subscribed(to: self, over: transport, timeout.seconds)
    }

    // MARK: Subscribing without a stream

    /// Subscribes to the value until ``stopNotifying(timeout:)``, whatever reads the values. Returns when the peripheral has
    /// confirmed the subscription to BlueZ.
    ///
    /// From now on the streams of ``receiveNotificationUpdates(capacity:)->FutureStream<(Characteristic,Data?)>`` receive the
    /// values that the peripheral notifies or indicates, also those that arrive before the confirmation.
    ///
    /// All subscribers of a characteristic share one subscription; a second call returns when the first does. The subscription
    /// also ends with ``Peripheral/terminate()`` and with the manager. After a lost link, when the peripheral is connected again for any
    /// reason, and after a restart of `bluetoothd`, it is resumed with one write to the peripheral. The streams then receive
    /// a gap mark, since values may have been missed.
    ///
    /// A value that a read of this process returned is not reported as a notification. If *another* program reads the
    /// characteristic, BlueZ does not distinguish its reads from notifications. If another program is subscribed over
    /// signals, BlueZ reports each value twice. Both happen because BlueZ sends one D-Bus signal to all programs;
    /// neither happens over a socket.
    ///
    /// Cancelling the task cancels a subscription that has not begun and that nothing else waits for, and otherwise ends
    /// the wait.
    /// - Parameters:
    ///   - transport: How values are delivered; see ``NotificationTransport``. An existing subscription keeps its transport.
    ///   - timeout: The time limit; `nil` for none. When it is exceeded, the subscription is cancelled unless another
    ///     operation waits for it.
    /// - Throws: ``CharacteristicError/notifyNotSupported`` at once if the properties contain neither `notify` nor `indicate`,
    ///   and if BlueZ has no socket for it; ``CharacteristicError/acquiredByOther(_:)`` if another program has acquired the
    ///   characteristic; ``CharacteristicError/notifyFailed(_:)``, which contains the ATT error, if the peripheral refuses;
    ///   ``CharacteristicError/notifyTimeout`` after the time limit, or if the peripheral does not reply for 30 seconds;
    ///   ``CharacteristicError/invalidated``; ``PeripheralError/disconnected``; and `CancellationError`.
    public func startNotifying(
        over transport: NotificationTransport = .signals, timeout: Duration? = nil
    ) async throws {
        try await awaiting { subscribe(over: transport, timeout: timeout.seconds, yielding: ()) }
    }

    /// Ends the subscription, and returns when BlueZ has confirmed that; at once if there is none. If the peripheral is
    /// disconnected, cancels the automatic resubscription.
    ///
    /// The streams of ``receiveNotificationUpdates(capacity:)->FutureStream<(Characteristic,Data?)>`` stay, and receive values
    /// again after another ``startNotifying(over:timeout:)``. ``stopNotificationUpdates()`` ends the streams. The two
    /// functions may be called in either order.
    ///
    /// Cancelling the task or exceeding the time limit ends the wait; the subscription still ends.
    /// - Parameter timeout: The time limit; `nil` for none.
    /// - Throws: As ``startNotifying(over:timeout:)``.
    public func stopNotifying(timeout: Duration? = nil) async throws {
        try await awaiting { unsubscribe(timeout: timeout.seconds, yielding: ()) }
    }
}

extension Peripheral {
    // MARK: Notifications

    /// Finds the characteristic, subscribes to its value, and returns a stream of the values and of the gaps between them, as
    /// ``Characteristic/notificationEvents(over:capacity:timeout:)`` does.
    ///
    /// ```swift
    /// for try await event in peripheral.notificationEvents(heartRateMeasurement) { print(event) }
    /// ```
    ///
    /// If there is no link and no connection was requested, the stream fails with ``PeripheralError/disconnected``. If the
    /// peripheral is being connected or is to be reconnected, or if the link is lost before the subscription has begun, it is
    /// retried on each following link. If links end one after the other while it is requested, the peripheral may refuse it,
    /// for example because it needs a pairing: from the third on, each is the failure ``PeripheralError/disconnected`` in the
    /// stream, which continues, while a loop throws. If the characteristic is not found or the subscription is refused, that
    /// failure is the last element.
    ///
    /// The time limit includes the discovery and all waiting for links. When it is exceeded, the stream fails with
    /// ``PeripheralError/serviceDiscoveryTimeout`` or ``CharacteristicError/notifyTimeout``, and ends.
    public func notificationEvents(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals,
        capacity: Int = .max, timeout: Duration? = nil
    ) -> FutureStream<NotificationEvent> {
        NotificationStream(eventsOf: self, capacity).subscribed(to: identifier, over: transport, timeout.seconds)
    }

    /// As ``notificationEvents(_:over:capacity:timeout:)``, but with the values alone; the failure
    /// ``CharacteristicError/notificationsInterrupted``, at which a loop throws, marks a gap.
    ///
    /// The subscription stays when a loop or a handler has ended: ``stopNotifications(_:timeout:)`` ends it and the streams.
    public func notifications(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals,
        capacity: Int = .max, timeout: Duration? = nil
    ) -> FutureStream<Data> {
        NotificationStream(valuesOf: self, capacity).subscribed(to: identifier, over: transport, timeout.seconds)
    }

    /// Ends the subscription to a characteristic and all streams of its values, including those of subscriptions that have not begun,
    /// and returns when BlueZ has confirmed that; at once if there is no subscription. If the peripheral is disconnected, and the
    /// characteristic was found before or is being searched for, cancels the automatic resubscription.
    ///
    /// The time limit includes the discovery. If the task is cancelled, the discovery is withdrawn, and otherwise only the wait ends.
    /// - Throws: As ``Characteristic/stopNotifying(timeout:)->()``.
    public func stopNotifications(_ identifier: CharacteristicIdentifier, timeout: Duration? = nil) async throws {
        try await awaiting { stopNotifications(identifier, timeout: timeout.seconds) }
    }

    /// Variant of ``notifications(_:over:capacity:timeout:)`` with a time limit in seconds.
    public func notifications(
        _ identifier: CharacteristicIdentifier, over transport: NotificationTransport = .signals,
        capacity: Int = .max, timeout: TimeInterval
    ) -> FutureStream<Data> {
        NotificationStream(valuesOf: self, capacity).subscribed(to: identifier, over: transport, timeout)
    }
}

/// A stream of notified values that begins its subscription itself.
struct NotificationStream<T: Sendable>: Sendable {
    let stream: FutureStream<T>
    private let peripheral: Peripheral
    private let sink: @Sendable (FutureStream<T>) -> NotificationSink
    /// Whether the subscription ends with the last reader of the stream.
    private let endsSubscription: Bool
    private let withdrawal = Withdrawal()

    private var session: CentralSession { peripheral.session }

    private init(
        _ peripheral: Peripheral, _ capacity: Int, endsSubscription: Bool,
        sink: @escaping @Sendable (FutureStream<T>) -> NotificationSink
    ) {
        (self.peripheral, self.endsSubscription, self.sink) = (peripheral, endsSubscription, sink)
        stream = FutureStream<T>(capacity: max(0, capacity))
        guard endsSubscription else { return }
        stream.lastReaderEnded = { [withdrawal, weak stream, weak session = peripheral.session, key = peripheral.key] in
            guard let stream else { return }
            // First the stream, for a subscription that is about to be requested.
            stream.finish()
            _ = withdrawal.request()
            session?.endNotifications(to: ObjectIdentifier(stream), of: key)
        }
    }

    /// Subscribes to the characteristic that has the identifier, when that is found.
    func subscribed(
        to identifier: CharacteristicIdentifier, over transport: NotificationTransport, _ timeout: TimeInterval
    ) -> FutureStream<T> {
        let (search, found) = Withdrawal.$current.withValue(withdrawal) {
            let search = AttributeSearch(peripheral, timeout) {
                try AttributeName(identifier, for: [.notify, .indicate])
            }
            return (search, search.found(outlivesLinks: isLinkExpected))
        }
        found.onFailure(context: ImmediateContext()) { end($0) }
        found.onSuccess(context: ImmediateContext()) { id in
            // This also applies if the link has been lost since: the subscription waits for the next link.
            let found: [Characteristic] = peripheral.objects { _ in [id] }
            guard let characteristic = found.first else { return end(CharacteristicError.invalidated) }
            subscribe(to: characteristic, over: transport, timeout: search.remaining, outlivesLinks: true)
        }
        return stream
    }

    func subscribed(
        to characteristic: Characteristic, over transport: NotificationTransport, _ timeout: TimeInterval
    ) -> FutureStream<T> {
        subscribe(to: characteristic, over: transport, timeout: timeout, outlivesLinks: isLinkExpected)
        return stream
    }

    /// - Parameter outlivesLinks: Whether the request waits for the next link if one is lost, instead of failing.
    /// - Returns: A future that succeeds when the subscription has begun, and fails as the stream does.
    @discardableResult
    func subscribe(
        to characteristic: Characteristic, over transport: NotificationTransport, timeout: TimeInterval,
        outlivesLinks: Bool
    ) -> Future<Void> {
        let (key, id, canNotify) = (peripheral.key, characteristic.id, characteristic.canNotify)
        session.feed(sink(stream), id, of: key)
        let begun: Future<Void> = session.operation(on: key, timeout: timeout, yielding: ()) {
            guard canNotify else { return $2.append(.settle($1, .failed(.characteristic(.notifyNotSupported)))) }
            // The last reader may have ended before.
            if stream.isFinished { return $2.append(.settle($1, .failed(.cancelled))) }
            let event = SubscriptionMachine.Event.startAsked(
                $1, transport, outlivesLinks: outlivesLinks, isForStream: endsSubscription)
            $0.subscription(id, event, into: &$2)
        }
        begun.onFailure(context: ImmediateContext()) { error in
            end(error)
            session.endNotifications(to: ObjectIdentifier(stream), of: key)
        }
        return begun
    }

    private var isLinkExpected: Bool { session.use(of: peripheral.key) { $0.state.isLinkExpected } ?? false }

    private func end(_ error: any Error) {
        // An end that the application requested is not a failure.
        if !(error is CancellationError) { stream.failure(error) }
        stream.finish()
    }
}

extension NotificationStream where T == Data {
    init(valuesOf peripheral: Peripheral, _ capacity: Int, endsSubscription: Bool = false) {
        self.init(peripheral, capacity, endsSubscription: endsSubscription) {
            NotificationSink($0, gap: .failure(CharacteristicError.notificationsInterrupted))
        }
    }
}

extension NotificationStream where T == NotificationEvent {
    init(eventsOf peripheral: Peripheral, _ capacity: Int) {
        self.init(peripheral, capacity, endsSubscription: true) {
            NotificationSink($0, gap: .success(.gap)) { .value($0) }
        }
    }
}
