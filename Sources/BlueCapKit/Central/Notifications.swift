import BlueZ
import Foundation
import Futures
import Reactor

/// Identifies a characteristic of a manager.
struct CharacteristicKey: Hashable, Sendable {
    let peripheral: PeripheralKey
    let characteristic: AttributeID
}

/// A stream that receives the notifications of a characteristic, in one of the forms of the documents.
///
/// It references the stream, not the subscriber: a stream without other references and handlers is abandoned.
struct NotificationSink: Sendable {
    /// Delivers values together, in their order.
    let deliver: @Sendable ([Data]) -> Void
    let deliverGap: @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void
    let finish: @Sendable () -> Void
    /// Whether the stream has no reader and cannot get one. Called only on the context that delivers values.
    let isForgotten: @Sendable () -> Bool

    /// - Parameters:
    ///   - element: Converts a value to an element of the stream.
    ///   - gap: The element for a gap.
    init<T: Sendable>(
        _ stream: FutureStream<T>, gap: Try<T>, element: @escaping @Sendable (Data) -> T
    ) {
        // Unchecked: only `isForgotten` must not be called on two threads at once. It is called on the context that
        // delivers values, which is one thread at a time.
        nonisolated(unsafe) let link = StreamLink(stream)
        deliver = { values in link.send(contentsOf: values.map { .success(element($0)) }) }
        deliverGap = { link.send(contentsOf: [gap]) }
        fail = { link.send(contentsOf: [.failure($0)]) }
        finish = { link.finish() }
        isForgotten = { link.isAbandoned() }
    }
}

/// Passes the notifications of a characteristic to its streams, from one request to subscribe to the next. On the loop only,
/// and unchecked because of that.
private final class NotificationChannel: @unchecked Sendable {
    private let reference: CentralSession.Reference
    private let subject: CharacteristicKey
    private let call: SubscriptionMachine.Call
    /// Whether a gap mark precedes the next value.
    private var isGapDue: Bool
    /// Whether a value was delivered, or the subscription has begun.
    private var hasBegun = false

    init(
        _ session: CentralSession, _ subject: CharacteristicKey, _ call: SubscriptionMachine.Call, isGapDue: Bool
    ) {
        (reference, self.subject, self.call, self.isGapDue) = (session.reference, subject, call, isGapDue)
    }

    func receive(_ event: SharedNotifications.Event) {
        guard let session = reference.session else { return }
        switch event {
        case .values(let values):
            deliverGap(session)
            if !hasBegun { session.send(.valuesCame(call), to: subject) }
            hasBegun = true
            session.deliver(values, of: subject)
        case .began:
            deliverGap(session)
            hasBegun = true
            session.send(.began(call), to: subject)
        case .interrupted:
            isGapDue = true
            session.send(.interrupted(call), to: subject)
        case .asked: session.send(.asked(call), to: subject)
        case .failed(let error):
            session.send(.failed(call, PeripheralFailure(subscribing: error)), to: subject)
        }
    }

    private func deliverGap(_ session: CentralSession) {
        if isGapDue { session.deliver(nil, of: subject) }
        isGapDue = false
    }
}

/// Notifications: their streams, and the orders of subscriptions.
extension CentralSession {
    // MARK: Streams; any thread

    /// Delivers the values of the characteristic to a stream from now on.
    func feed(_ sink: NotificationSink, with subject: CharacteristicKey) {
        let isOpen = core.withLock { core in
            if !core.shell.isClosed {
                core.objects.withEntry(of: subject.peripheral) { $0.add(sink, to: subject.characteristic) }
            }
            return !core.shell.isClosed
        }
        if !isOpen { complete { sink.finish() } }
    }

    /// Ends the streams of a characteristic.
    func endNotifications(of subject: CharacteristicKey, failure: (any Error)? = nil) {
        finish(withEntry(of: subject.peripheral) { $0.removeSinks(of: subject.characteristic) } ?? [], failure: failure)
    }

    /// Ends streams of notified values.
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
    fileprivate func deliver(_ values: [Data]?, of subject: CharacteristicKey) {
        let sinks = core.withLock { core -> [NotificationSink]? in
            core.counter.notified(values?.count, by: subject.peripheral, in: &core.state.peripherals)
            return core.objects.withEntry(of: subject.peripheral) { $0.sinks[subject.characteristic] }
        }
        guard let sinks else { return }
        complete { [self] in
            for sink in sinks { if let values { sink.deliver(values) } else { sink.deliverGap() } }
            guard sinks.contains(where: { $0.isForgotten() }) else { return }
            let all = withEntry(of: subject.peripheral) { $0.removeForgottenSinks(of: subject.characteristic) }
            withExtendedLifetime(all) {}
        }
    }

    func deliver(_ failure: PeripheralFailure, _ subject: Order.Subject) {
        guard let sinks = withEntry(of: subject.peripheral, { $0.sinks[subject.characteristic] }) else { return }
        complete { for sink in sinks { sink.fail(failure.error) } }
    }

    func subscribe(
        _ call: SubscriptionMachine.Call, over transport: NotificationTransport, afterGap: Bool,
        isRepeated: Bool, _ subject: Order.Subject
    ) {
        guard let key = subject.attribute else { return }
        let mayPair = readState(of: subject.peripheral) { $0.attributes.pairsOnDemand } ?? false
        let channel = NotificationChannel(self, CharacteristicKey(subject), call, isGapDue: afterGap)
        client.notifications.subscribe(
            key, overSocket: transport == .socket, mayPair: mayPair, isRepeated: isRepeated, for: self
        ) { channel.receive($0) }
    }

    func unsubscribe(_ call: SubscriptionMachine.Call, _ subject: Order.Subject) {
        guard let key = subject.attribute else { return }
        client.notifications.unsubscribe(key, for: self) { [reference] result in
            var failure: PeripheralFailure?
            if case .failure(let error) = result { failure = PeripheralFailure(subscribing: error) }
            reference.session?.send(.stopped(call, failure), to: CharacteristicKey(subject))
        }
    }

    fileprivate func send(_ event: SubscriptionMachine.Event, to characteristic: CharacteristicKey) {
        decideHere(characteristic.peripheral) {
            $0.subscriptionChanged(characteristic.characteristic, event, into: &$1)
        }
    }
}

extension CharacteristicKey {
    init(_ subject: Order.Subject) {
        self.init(peripheral: subject.peripheral, characteristic: subject.characteristic)
    }
}
