import BlueZ
import DBus
import Foundation
import Futures
import GATT
import Reactor

/// What a connection holds of BlueZ's client while it needs it; on the loop alone.
struct ConnectionHands {
    var attempt: ConnectID?
    var search: ScanID?
    var pause: DiscoveryPause?

    var isEmpty: Bool { attempt == nil && isIdle }
    /// What is left is the number of an attempt that may be over.
    var isIdle: Bool { search == nil && pause == nil }
}

/// Connections: what users ask for, and what the machines want done.
extension CentralSession {
    // MARK: Asking; any thread

    func connect(
        _ peripheral: Peripheral, timeoutRetries: UInt, disconnectRetries: UInt, timeout: TimeInterval,
        _ stream: ConnectionStream
    ) {
        guard timeout > 0 else {
            return end(stream, .invalidArgument("A connection's timeout is more than zero seconds, not \(timeout)."))
        }
        let policy = ConnectionPolicy(
            timeoutRetries: timeoutRetries, disconnectRetries: disconnectRetries,
            timeout: timeout < Self.endlessTimeout ? timeout : nil)
        let key = peripheral.key
        let isOpen = decideIfOpen { core in
            let effects = keep(peripheral, in: &core)
            return effects
                + core.state.peripheral(key) { state in
                    let effects = state.connect(.connectAsked(policy))
                    core.connections[ConnectionName(key: key, number: state.connection.number)] = stream
                    return effects
                }
        }
        if !isOpen { end(stream, .disconnected) }
    }

    /// Longer than anybody waits, and than a timer of the loop is sure to count.
    private static let endlessTimeout: TimeInterval = 1e9

    private func end(_ stream: ConnectionStream, _ error: PeripheralError) {
        complete {
            stream.fail(error)
            stream.finish()
        }
    }

    /// Who is to be connected is on the list, also when it had expired.
    func keep(_ peripheral: Peripheral, in core: inout Core) -> [CentralState.Effect] {
        _ = core.handles.hold(peripheral.key) { peripheral }
        return core.state.relist(peripheral.key)
    }

    func reconnect(_ peripheral: Peripheral, delay: TimeInterval) {
        let key = peripheral.key
        guard delay >= 0, delay < Self.endlessTimeout else {
            let error = PeripheralError.invalidArgument(
                "A delay before reconnecting is zero or more seconds, not \(delay).")
            let stream = core.withLock { core -> ConnectionStream? in
                let number = core.state.readDealing(with: key) { $0.connection.number } ?? 0
                return core.connections[ConnectionName(key: key, number: number)]
            }
            if let stream { complete { stream.fail(error) } }
            return
        }
        _ = decideIfOpen { core in
            let effects = keep(peripheral, in: &core)
            return effects + core.state.peripheral(key) { $0.connect(.reconnectAsked(delay: delay)) }
        }
    }

    func disconnect(_ key: PeripheralKey) { decide(key) { $0.disconnectAsked() } }

    func terminate(_ key: PeripheralKey) {
        decide(key) { $0.connect(.terminateAsked) }
        stopPollingRSSI(key)
    }

    func disconnectAllPeripherals() {
        _ = decideIfOpen { core in
            core.state.dealingKeys.flatMap { key in
                core.state.peripheral(key) { state in
                    state.isConnectionInUse || state.isRefreshing
                        ? state.disconnectAsked() : state.cancelRuns(.peripheral(.forcedDisconnect))
                }
            }
        }
    }

    /// Reads from what was decided about a peripheral; `nil` where nothing was.
    func readDealing<R>(with key: PeripheralKey, _ body: (borrowing PeripheralState) -> R?) -> R? {
        core.withLock { $0.state.readDealing(with: key, body) }
    }

    // MARK: Doing; on the loop

    func perform(_ effect: ConnectionMachine.Effect, of key: PeripheralKey, _ device: ObjectKey?) {
        switch effect {
        case .startTimer, .cancelTimer: break
        case .callConnect(let attempt): connect(key, attempt, device)
        case .cancelConnect: takeBack(key)
        case .callDisconnect:
            guard let device else { return tell(key, .disconnectReplied) }
            client.connector.disconnect(device) { [weak self] _ in self?.tell(key, .disconnectReplied) }
        case .seek: seek(key)
        case .stopSeeking:
            if let id = take(key, \.search) { client.discovery.stop(id) {} }
        case .pauseScan:
            guard let adapter = core.withLock({ $0.link.adapter }) else { return }
            let pause = client.discovery.pause(on: adapter)
            core.withLock { $0.connectionHands[key, default: ConnectionHands()].pause = pause }
        case .resumeScan:
            take(key, \.pause)?.resume()
        case .linkWentUp:
            core.withLock { core in
                _ = core.state.updateDealing(with: key) { $0.statistics.connected(at: loop.date) }
            }
        case .linkWentDown(let loss):
            endWriters(of: key, loss == .forced ? .forcedDisconnect : .disconnected)
            core.withLock { core in
                _ = core.state.updateDealing(with: key) { $0.statistics.disconnected(at: loop.date) }
                core.state.linkEnded(key, at: loop.now)
            }
        case .report(let number, let report):
            let stream = core.withLock { core in
                if report.isTimeout { _ = core.state.updateDealing(with: key) { $0.statistics.timedOut() } }
                return core.connections[ConnectionName(key: key, number: number)]
            }
            if let stream { complete { stream.report(report) } }
        case .reportFailure(let number, let refusal):
            let stream = core.withLock { $0.connections[ConnectionName(key: key, number: number)] }
            if let stream { complete { stream.fail(PeripheralError(refusal)) } }
        case .finishStream(let number):
            let stream = core.withLock {
                $0.connections.removeValue(forKey: ConnectionName(key: key, number: number))
            }
            if let stream { complete { stream.finish() } }
        case .forget:
            endNotifications(of: key)
            // Somebody may want it again by now.
            decide { core in
                let isWanted = core.state.readDealing(with: key) { $0.connection.isWanted || !$0.runs.queue.isIdle }
                return isWanted == true ? [] : core.state.forget(key)
            }
        }
    }

    private func tell(_ key: PeripheralKey, _ event: ConnectionMachine.Event) { decide(key) { $0.connect(event) } }

    private func connect(_ key: PeripheralKey, _ attempt: ConnectionMachine.Attempt, _ device: ObjectKey?) {
        guard let device else {
            return tell(key, .connectReplied(attempt, .notHeard))
        }
        let id = client.connector.connect(device, timeout: Connector.attemptLimit) { [weak self] in
            self?.tell(key, .connectStarted(attempt))
        } completion: { [weak self] result in
            self?.tell(key, .connectReplied(attempt, ConnectionFailure(result)))
        }
        core.withLock { $0.connectionHands[key, default: ConnectionHands()].attempt = id }
    }

    /// Takes the newest attempt back, as far as it is under way.
    func takeBack(_ key: PeripheralKey) {
        if let id = take(key, \.attempt) { client.connector.cancel(id) }
    }

    /// Discovers for one device, which BlueZ finds by its address.
    private func seek(_ key: PeripheralKey) {
        guard let adapter = core.withLock({ $0.link.adapter }) else { return }
        // Who cannot be sought is not found: the search's own time ends it.
        let id = client.discovery.start(
            on: adapter, filter: DiscoveryFilter(pattern: key.address.description), watchdogSeconds: nil
        ) { _ in }
        core.withLock { $0.connectionHands[key, default: ConnectionHands()].search = id }
    }

    private func take<Hand>(_ key: PeripheralKey, _ hand: WritableKeyPath<ConnectionHands, Hand?>) -> Hand? {
        core.withLock { core in
            guard var hands = core.connectionHands[key] else { return nil }
            let taken = hands[keyPath: hand]
            hands[keyPath: hand] = nil
            core.connectionHands[key] = hands.isEmpty ? nil : hands
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

extension PeripheralError {
    init(_ refusal: ConnectionMachine.Refusal) {
        switch refusal {
        case .notConnected: self = .disconnected
        case .refused(let failure): self = .connectionFailed(failure)
        }
    }
}
