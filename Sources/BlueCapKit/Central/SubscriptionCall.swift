import BlueZ
import Reactor

/// One call of a subscription to BlueZ. On the loop only.
struct SubscriptionCall: Sendable {
    private let reference: CentralSession.Reference
    private let client: BlueZClient
    private let channels: NotificationChannels
    private let call: SubscriptionMachine.Call
    private let characteristic: CharacteristicKey
    private let attribute: AttributeKey

    /// Creates the call; `nil` if BlueZ has no object path for the characteristic.
    init?(_ call: SubscriptionMachine.Call, _ subject: Order.Subject, _ session: CentralSession) {
        guard let attribute = subject.attribute else { return nil }
        reference = session.reference
        client = session.client
        channels = session.channels
        self.call = call
        self.attribute = attribute
        characteristic = CharacteristicKey(subject)
    }

    /// Starts a session over signals.
    func start() {
        // BlueZ reads this battery itself, and keeps the level current without a call.
        if attribute.isVirtual { return reply(.startReplied(call, isNotifying: true)) }
        // A socket of another manager is shared: BlueZ refuses a session while there is a socket.
        guard client.subscriptions.transport(of: attribute) != .socket else {
            channels.reopen(attribute, .socket)
            return share()
        }
        guard let session = reference.session else { return }
        client.subscriptions.startNotify(attribute, for: session) { [self] result in
            switch result {
            case .success:
                let isNotifying = client.withTree { $0.characteristic(attribute)?.isNotifying } ?? false
                send(.startReplied(call, isNotifying: isNotifying))
            case .failure(let error):
                send(.startFailed(call, PeripheralFailure(subscribing: error)))
            }
        }
    }

    /// Acquires a socket.
    func acquire() {
        if attribute.isVirtual { return reply(.startFailed(call, .characteristic(.notifyNotSupported))) }
        guard client.subscriptions.transport(of: attribute) != .signals else {
            channels.reopen(attribute, .signals)
            return start()
        }
        guard isReplyUncertain, let session = reference.session else { return share() }
        client.subscriptions.startNotify(attribute, for: session) { [self] result in
            if case .failure(let error) = result {
                return send(.startFailed(call, PeripheralFailure(subscribing: error)))
            }
            // A subscription that was withdrawn has made its own `StopNotify`, which may precede this request.
            client.subscriptions.stopNotify(attribute, for: session) { _ in if isAwaited { share() } }
        }
    }

    /// Whether the peripheral may refuse the subscription for lack of security, and BlueZ would not reply then: up to 5.83,
    /// if it is not paired. Such a subscription is tried over signals first.
    private var isReplyUncertain: Bool {
        guard client.subscriptions.transport(of: attribute) == nil, let session = reference.session,
            session.readState(of: characteristic.peripheral, { $0.attributes.pairsOnDemand }) == true
        else { return false }
        return client.withTree { tree in
            attribute.device.adapter.flatMap { tree[adapter: $0]?.capabilities.answersRefusedAcquireNotify } != true
        }
    }

    /// Whether the subscription still waits for this call.
    private var isAwaited: Bool {
        let (key, id) = (characteristic.peripheral, characteristic.characteristic)
        return reference.session?.readState(of: key) { $0.awaits(call, of: id) } ?? false
    }

    /// Ends the session or the socket.
    func stop() {
        if attribute.isVirtual { return reply(.stopReplied(call, nil)) }
        guard let session = reference.session else { return }
        client.subscriptions.stopNotify(attribute, for: session) { [self] result in
            var failure: PeripheralFailure?
            if case .failure(let error) = result, !error.meansNothingToStop { failure = .init(subscribing: error) }
            // Includes a socket that was used instead of signals, of which the subscription has no record. If there is
            // another socket, the reply may be late.
            channels.closeSockets(of: attribute, before: call)
            send(.stopReplied(call, failure))
        }
    }

    private func share() {
        guard let session = reference.session else { return }
        client.subscriptions.shareNotify(attribute, for: session) { [reference, channels, attribute] values in
            channels.received(values, from: attribute)
            reference.session?.deliverNotifications()
        } onClosed: { [reference, call, characteristic] in
            reference.session?.send(.socketClosed(call), to: characteristic)
            // Reports the change if signals were requested.
            reference.session?.send(.notifyingChanged(false), to: characteristic)
        } completion: { [self] result in
            switch result {
            case .success(let share):
                channels.keep(share, of: attribute, call)
                send(.startReplied(call, isNotifying: true))
            case .failure(let error):
                send(.startFailed(call, PeripheralFailure(subscribing: error)))
            }
        }
    }

    private func reply(_ event: SubscriptionMachine.Event) { client.loop.post { self.send(event) } }

    private func send(_ event: SubscriptionMachine.Event) {
        reference.session?.send(event, to: characteristic)
    }
}

extension BlueZError {
    /// Whether a refused `StopNotify` means that there is no session, or no object that could have one.
    fileprivate var meansNothingToStop: Bool {
        switch cause {
        case .unknownObject, .unknownMethod, .notConnected, .serviceGone, .disconnected, .doesNotExist: true
        // The error name is not specific; only this message is (src/gatt-client.c, unchanged since 5.55).
        case .failed: message == "No notify session started"
        default: false
        }
    }
}
