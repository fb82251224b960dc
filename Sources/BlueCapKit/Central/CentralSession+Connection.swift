import BlueZ
import DBus
import Foundation
import Futures
import GATT
import Reactor

/// The requests of a connection to BlueZ's client. On the loop only.
struct ConnectionCalls {
    var attempt: ConnectID?
    var search: ScanID?
    var pause: DiscoveryPause?

    var isEmpty: Bool { attempt == nil && isIdle }
    /// Whether no request is active, except an attempt that may have ended.
    var isIdle: Bool { search == nil && pause == nil }
}

/// Executes the orders of connections, on the loop.
extension CentralSession {
    func disconnect(_ key: PeripheralKey, _ device: ObjectKey?) {
        guard let device else { return send(.disconnectReplied, to: key) }
        client.connector.disconnect(device) { [weak self] _ in self?.send(.disconnectReplied, to: key) }
    }

    func pauseScan(_ key: PeripheralKey) {
        guard let adapter = core.withLock({ $0.shell.adapter }) else { return }
        let pause = client.discovery.pause(on: adapter)
        core.withLock { $0.connectionCalls[key, default: ConnectionCalls()].pause = pause }
    }

    func linkWentDown(_ key: PeripheralKey, _ loss: ConnectionMachine.LinkLoss) {
        endWriters(of: key, loss == .forced ? .forcedDisconnect : .disconnected)
        core.withLock { core in
            core.state.updateState(of: key) { $0.statistics.disconnected(at: loop.date) }
            core.state.linkEnded(key, at: loop.now)
        }
    }

    func report(_ report: ConnectionMachine.Report, to name: ConnectionName) {
        let stream = core.withLock { core in
            if report.isTimeout { core.state.updateState(of: name.key) { $0.statistics.timedOut() } }
            return core.connections[name]
        }
        if let stream { complete { stream.report(report) } }
    }

    func forget(_ key: PeripheralKey) {
        endNotifications(of: key)
        decide { core in
            // The application may have connected the peripheral again.
            guard core.state.readState(of: key, { $0.isWanted }) != true else { return }
            core.state.forget(key, into: &core.shell.orders)
        }
    }

    /// Ends the writers of a peripheral, and the requests for writers.
    func endWriters(of peripheral: PeripheralKey, _ error: PeripheralError) {
        let (writers, requests) = core.withLock { $0.writers.remove(peripheral) }
        for writer in writers { writer.end(.peripheral(error)) }
        // BlueZ may never reply: 5.82 does not if pairing fails.
        for promise in requests { complete { promise.failure(error) } }
    }

    /// A reply that comes after the peripheral's state was removed is ignored.
    private func send(_ event: ConnectionMachine.Event, to key: PeripheralKey) {
        _ = decideIfOpen { core in
            guard core.state.hasState(of: key) else { return }
            core.state.peripheral(key, into: &core.shell.orders) { $0.connect(event, into: &$1) }
        }
    }

    func connect(_ key: PeripheralKey, _ attempt: ConnectionMachine.Attempt, _ device: ObjectKey?) {
        guard let device else {
            return send(.connectReplied(attempt, .notFound), to: key)
        }
        let id = client.connector.connect(device, timeout: Connector.attemptLimit) { [weak self] in
            self?.send(.connectStarted(attempt), to: key)
        } completion: { [weak self] result in
            self?.send(.connectReplied(attempt, ConnectionFailure(result)), to: key)
        }
        core.withLock { $0.connectionCalls[key, default: ConnectionCalls()].attempt = id }
    }

    /// Cancels the newest attempt, if it is active.
    func cancelConnect(_ key: PeripheralKey) {
        if let id = take(key, \.attempt) { client.connector.cancel(id) }
    }

    /// Discovers one device, by its address.
    func seek(_ key: PeripheralKey) {
        guard let adapter = core.withLock({ $0.shell.adapter }) else { return }
        // If the search fails, its time limit ends it.
        let id = client.discovery.start(
            on: adapter, filter: DiscoveryFilter(pattern: key.address.description), watchdogSeconds: nil
        ) { _ in }
        core.withLock { $0.connectionCalls[key, default: ConnectionCalls()].search = id }
    }

    func take<Call>(_ key: PeripheralKey, _ call: WritableKeyPath<ConnectionCalls, Call?>) -> Call? {
        core.withLock { core in
            guard var calls = core.connectionCalls[key] else { return nil }
            let taken = calls[keyPath: call]
            calls[keyPath: call] = nil
            core.connectionCalls[key] = calls.isEmpty ? nil : calls
            return taken
        }
    }
}

extension ConnectionFailure {
    /// `nil` for success.
    init?(_ result: Result<Void, BlueZError>) {
        guard case .failure(let error) = result else { return nil }
        self.init(cause: error.connectCause, failure: BusFailure(error))
    }
}
