import BlueCapBlueZ
import BlueCapFutures
import BlueCapReactor

/// Executes the orders of connections, on the loop.
extension CentralSession {
    func disconnect(_ key: PeripheralKey, _ device: ObjectKey?) {
        guard let device else { return send(.disconnectReplied, to: key) }
        client.connector.disconnect(device) { [weak self] _ in self?.send(.disconnectReplied, to: key) }
    }

    func linkWentDown(_ key: PeripheralKey, _ loss: DisconnectReason) {
        if let ended = use(of: key, { $0.removeWriters() }) {
            end(ended, loss == .application ? .forcedDisconnect : .disconnected)
        }
        // The end of a link shows that the peripheral is near, too.
        _ = core.withLock { $0.state.peripherals.update(key) { $0.lastReceived = loop.now } }
    }

    func forget(_ key: PeripheralKey) {
        finish(use(of: key) { $0.removeSinks() } ?? [])
        decide { core in
            // The application may have connected the peripheral again.
            guard core.state.peripherals.use(of: key)?.state.isWanted != true else { return }
            core.state.forget(key, into: &core.shell.orders)
        }
    }

    /// Ends the writers of a peripheral, and the requests for writers.
    func end(
        _ ended: (writers: [CharacteristicWriter], requests: [Promise<CharacteristicWriter>]), _ error: PeripheralError
    ) {
        for writer in ended.writers { writer.end(.peripheral(error)) }
        // BlueZ may never reply: 5.82 does not if pairing fails.
        for promise in ended.requests { complete { promise.failure(error) } }
    }

    /// A reply that comes after the peripheral's state was removed is ignored.
    private func send(_ event: ConnectionMachine.Event, to key: PeripheralKey) {
        decideHere(key) { $0.connect(event, into: &$1) }
    }

    func connect(
        _ key: PeripheralKey, _ attempt: ConnectionMachine.Attempt, _ device: ObjectKey?, pausesScans: Bool
    ) {
        guard let device else { return send(.connectReplied(attempt, .noSuchObject), to: key) }
        let id = client.connector.connect(device, pausesScans: pausesScans) { [weak self] in
            // `Connect` has not been sent yet: the orders are executed later.
            self?.decideIfUsed(key) { $0.connect(.connectStarted(attempt), into: &$1) }
        } completion: { [weak self] result in
            if case .failure = result {
                self?.core.withLock { $0.counter.attemptFailed($0.state.peripherals.use(of: key)) }
            }
            self?.use(of: key) { if $0.attempt?.number == attempt { $0.attempt = nil } }
            self?.send(.connectReplied(attempt, result.failure), to: key)
        }
        use(of: key) { $0.attempt = (attempt, id) }
    }

    /// Cancels the newest attempt, if it is active.
    func cancelConnect(_ key: PeripheralKey) {
        if let attempt = use(of: key, { $0.attempt.take() }) { client.connector.cancel(attempt.id) }
    }

    func seek(_ key: PeripheralKey) {
        let (adapter, address) = core.withLock { ($0.shell.adapter, $0.state.presentAddress(of: key).address) }
        guard let adapter else { return }
        // If the search fails, its time limit ends it.
        let id = client.discovery.start(
            on: adapter, filter: DiscoveryFilter(pattern: address.description), watchdogSeconds: nil
        ) { _ in }
        use(of: key) { $0.searches.append(id) }
    }
}
