import BlueZ
import Foundation
import Futures
import Reactor

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

    func isNotifying(_ subject: CharacteristicKey) -> Bool {
        readState(of: subject.peripheral) { $0.isNotifying(subject.characteristic) } ?? false
    }

    func isSubscribed(_ subject: CharacteristicKey) -> Bool {
        readState(of: subject.peripheral) { $0.isSubscribed(subject.characteristic) } ?? false
    }

    // MARK: Values; on the loop

    /// Delivers the values since the last call. Takes one lock, and calls each handler once.
    func deliverNotifications() {
        guard !channels.isEmpty else { return }
        channels.flush { subject, values in
            let sinks = core.withLock { core -> [NotificationSink]? in
                core.counter.notified(values, by: subject.peripheral, in: &core.state.peripherals)
                if case let newest?? = values.last(where: { $0 != nil }) {
                    core.state.notified(subject.peripheral, subject.characteristic, newest)
                }
                return core.objects.withEntry(of: subject.peripheral) { $0.sinks[subject.characteristic] }
            }
            guard let sinks else { return }
            complete { [self] in
                for sink in sinks { sink.deliver(values) }
                if sinks.contains(where: { $0.isForgotten() }) { dropForgotten(subject) }
            }
        }
    }

    private func dropForgotten(_ subject: CharacteristicKey) {
        let sinks = withEntry(of: subject.peripheral) { $0.removeForgottenSinks(of: subject.characteristic) }
        withExtendedLifetime(sinks) {}
    }

    // BlueZObserver: all reads of this process.

    func readBegan(_ key: AttributeKey) { channels.readBegan(key) }

    func readEnded(_ key: AttributeKey, offset: Int, reply: Data?) {
        channels.readEnded(key, offset: offset, reply: reply)
        deliverNotifications()
    }

    // MARK: Orders; on the loop

    func openGate(_ transport: NotificationTransport, afterGap: Bool, _ subject: Order.Subject) {
        guard let key = subject.attribute else { return }
        channels.open(key, of: CharacteristicKey(subject), transport, afterGap: afterGap)
    }

    func markGap(_ subject: Order.Subject) {
        guard let key = subject.attribute else { return }
        channels.markGap(key)
        deliverNotifications()
    }

    func deliver(_ failure: PeripheralFailure, _ subject: Order.Subject) {
        guard subject.attribute != nil,
            let sinks = withEntry(of: subject.peripheral, { $0.sinks[subject.characteristic] })
        else { return }
        complete { for sink in sinks { sink.fail(failure.error) } }
    }

    /// Finishes the streams of a characteristic that was present on some link.
    func finishNotifications(_ failure: PeripheralFailure?, _ subject: Order.Subject) {
        guard subject.attribute != nil else { return }
        endNotifications(of: CharacteristicKey(subject), failure: failure?.error)
    }

    func closeGate(_ subject: Order.Subject) {
        guard let key = subject.attribute else { return }
        let hasPassed = channels.close(key)
        deliverNotifications()
        channels.forget(key)
        if hasPassed { send(.valuesCame, to: CharacteristicKey(subject)) }
    }

    func send(_ event: SubscriptionMachine.Event, to characteristic: CharacteristicKey) {
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
