import BlueCapBlueZ
import Foundation
import BlueCapFutures

/// A stream that receives the notifications of a characteristic, in one of the forms of the documents.
///
/// It references the stream, not the subscriber: a stream without other references and handlers is abandoned.
// A class, so that a copy costs one reference instead of four.
final class NotificationSink: Sendable {
    /// Identifies the stream while the sink exists.
    let stream: ObjectIdentifier
    /// Delivers values together, in their order, or a gap mark (`nil`).
    let deliver: @Sendable ([Data]?) -> Void
    let fail: @Sendable (any Error) -> Void
    let finish: @Sendable () -> Void
    /// Whether the stream has no reader and cannot get one. Called only on the context that delivers values.
    let isForgotten: @Sendable () -> Bool

    /// - Parameters:
    ///   - element: Converts a value to an element of the stream.
    ///   - gap: The element for a gap.
    convenience init<T: Sendable>(
        _ stream: FutureStream<T>, gap: Try<T>, element: @escaping @Sendable (Data) -> T
    ) {
        self.init(stream) { link, values in
            guard let values else { return link.send(gap) }
            // Usually one value; together, several need only one task of a handler's context.
            guard values.count != 1 else { return link.send(.success(element(values[0]))) }
            link.send(contentsOf: values.map { .success(element($0)) })
        }
    }

    /// A sink for a stream of the values themselves, which are not copied to another array.
    convenience init(_ stream: FutureStream<Data>, gap: Try<Data>) {
        self.init(stream) { link, values in
            guard let values else { return link.send(gap) }
            if values.count == 1 { link.send(.success(values[0])) } else { link.send(values: values) }
        }
    }

    private init<T: Sendable>(
        _ stream: FutureStream<T>, deliver: @escaping @Sendable (StreamLink<T>, [Data]?) -> Void
    ) {
        // Unchecked: only `isForgotten` must not be called on two threads at once. It is called on the context that
        // delivers values, which is one thread at a time.
        nonisolated(unsafe) let link = StreamLink(stream)
        self.stream = ObjectIdentifier(stream)
        self.deliver = { deliver(link, $0) }
        fail = { link.send(.failure($0)) }
        finish = { link.finish() }
        isForgotten = { link.isAbandoned() }
    }
}

/// How far a subscription is. Unchecked, because it is used on the loop only; for the same reason the runtime need not check the
/// accesses.
private final class SubscriptionProgress: @unchecked Sendable {
    /// Whether a gap mark precedes the next value.
    @exclusivity(unchecked) var isGapDue: Bool
    /// Whether a value has come or the subscription has begun.
    @exclusivity(unchecked) var hasBegun = false

    init(isGapDue: Bool) { self.isGapDue = isGapDue }
}

/// Notifications: their streams, and the orders of subscriptions.
extension CentralSession {
    // MARK: Streams; any thread

    /// Delivers the values of the characteristic to a stream from now on.
    func feed(_ sink: NotificationSink, _ id: AttributeID, of key: PeripheralKey) {
        let isOpen = core.withLock { core in
            if !core.shell.isClosed {
                core.state.peripherals.use(of: key)?.add(sink, of: id)
            }
            return !core.shell.isClosed
        }
        if !isOpen { complete { sink.finish() } }
    }

    func endNotifications(_ id: AttributeID, of key: PeripheralKey, failure: (any Error)? = nil) {
        finish(use(of: key) { $0.sinks.remove(id) } ?? [], failure: failure)
    }

    /// Ends a stream that nothing reads any more, or that has failed.
    func endNotifications(to stream: ObjectIdentifier, of key: PeripheralKey) {
        let id = use(of: key) { $0.characteristic(of: stream) } ?? nil
        if let id { finish(removeSinks(of: id, of: key) { $0.stream == stream }) }
    }

    /// Removes streams of a characteristic, and returns them. The last one ends a subscription that is only for streams.
    private func removeSinks(
        of id: AttributeID, of key: PeripheralKey, where isMeant: (NotificationSink) -> Bool
    ) -> [NotificationSink] {
        var removed: [NotificationSink] = []
        decide { core in
            guard let use = core.state.peripherals.use(of: key) else { return }
            removed = use.removeSinks(of: id, where: isMeant)
            guard !removed.isEmpty, use.sinks[id] == nil else { return }
            core.decide(key) { $0.subscriptionChanged(id, .readersEnded, into: &$1) }
        }
        return removed
    }

    func finish(_ sinks: [NotificationSink], failure: (any Error)? = nil) {
        guard !sinks.isEmpty else { return }
        complete {
            for sink in sinks {
                if let failure { sink.fail(failure) }
                sink.finish()
            }
        }
    }

    // MARK: On the loop

    /// Delivers values, or a gap mark (`nil`). Takes one lock, and calls each handler once.
    private func deliver(_ values: [Data]?, _ id: AttributeID, of key: PeripheralKey) {
        let sinks = core.withLock { core -> [NotificationSink]? in
            let use = core.state.peripherals.use(of: key)
            core.counter.notified(values?.count, by: use)
            return use?.sinks[id]
        }
        guard let sinks else { return }
        // Without a queue it needs no closure, which would be allocated for each value.
        guard queue == nil else { return complete { self.deliver(values, id, of: key, to: sinks) } }
        deliver(values, id, of: key, to: sinks)
    }

    private func deliver(_ values: [Data]?, _ id: AttributeID, of key: PeripheralKey, to sinks: [NotificationSink]) {
        for sink in sinks { sink.deliver(values) }
        guard sinks.contains(where: { $0.isForgotten() }) else { return }
        let removed = removeSinks(of: id, of: key) { $0.isForgotten() }
        withExtendedLifetime(removed) {}
    }

    func deliver(_ failure: PeripheralFailure, _ subject: Order.Subject) {
        guard let sinks = use(of: subject.peripheral, { $0.sinks[subject.characteristic] }) else { return }
        complete { for sink in sinks { sink.fail(failure.error) } }
    }

    func subscribe(
        _ call: SubscriptionMachine.Call, over transport: NotificationTransport, afterGap: Bool,
        isRepeated: Bool, _ subject: Order.Subject
    ) {
        guard let key = subject.attribute else { return }
        let (peripheral, id) = (subject.peripheral, subject.characteristic)
        let mayPair = use(of: peripheral) { $0.state.pairsOnDemand } ?? false
        let progress = SubscriptionProgress(isGapDue: afterGap)
        client.notifications.subscribe(
            key, overSocket: transport == .socket, mayPair: mayPair, isRepeated: isRepeated, for: self
        ) { [reference] event in
            guard let session = reference.session else { return }
            // Nearly all events.
            if case .values(let values) = event, progress.hasBegun, !progress.isGapDue {
                return session.deliver(values, id, of: peripheral)
            }
            var change: SubscriptionMachine.Event?
            switch event {
            case .values: change = progress.hasBegun ? nil : .valuesCame(call)
            case .began: change = .began(call)
            case .interrupted: change = .interrupted(call)
            case .asked: change = .asked(call)
            case .failed(let error): change = .failed(call, PeripheralFailure(subscribing: error))
            }
            switch event {
            case .values, .began:
                if progress.isGapDue { session.deliver(nil, id, of: peripheral) }
                (progress.isGapDue, progress.hasBegun) = (false, true)
            case .interrupted: progress.isGapDue = true
            case .asked, .failed: break
            }
            if let change { session.send(change, id, of: peripheral) }
            if case .values(let values) = event { session.deliver(values, id, of: peripheral) }
        }
    }

    func unsubscribe(_ call: SubscriptionMachine.Call, _ subject: Order.Subject) {
        guard let key = subject.attribute else { return }
        client.notifications.unsubscribe(key, for: self) { [reference] result in
            var failure: PeripheralFailure?
            if case .failure(let error) = result { failure = PeripheralFailure(subscribing: error) }
            reference.session?.send(.stopped(call, failure), subject.characteristic, of: subject.peripheral)
        }
    }

    private func send(_ event: SubscriptionMachine.Event, _ id: AttributeID, of key: PeripheralKey) {
        decideHere(key) { $0.subscriptionChanged(id, event, into: &$1) }
    }
}
