import BlueCapKit
import Foundation

/// The one connection.
extension BluejaySession {
    func connect(
        _ identifier: PeripheralIdentifier, timeout: Timeout, completion: @escaping (ConnectionResult) -> Void
    ) {
        request(
            .connect,
            Request(target: identifier.uuid) { session, _ in
                guard let peripheral = session.peripheral(identifier) else {
                    session.decide { $0.machine.linkFailed(BluejayError.unexpectedPeripheral(identifier)) }
                    return
                }
                session.link(to: peripheral, timeout: timeout)
            } settle: { session, outcome in
                let peripheral = session.core.withLock { $0.peripheral }
                let result: ConnectionResult =
                    switch outcome {
                    case .success: peripheral.map { .success($0) } ?? .failure(BluejayError.stopped)
                    case .failure(let error): .failure(error)
                    }
                session.call { completion(result) }
            })
    }

    private func peripheral(_ identifier: PeripheralIdentifier) -> Peripheral? {
        let (manager, known) = core.withLock { ($0.manager, $0.discovered[identifier.uuid]) }
        return known ?? manager?.retrievePeripherals(withIdentifiers: [identifier.uuid]).first
    }

    /// Connects; what becomes of it are events of the machine.
    func link(to peripheral: Peripheral, timeout: Timeout) {
        let (attempt, last) = core.withLock { core in
            defer { core.peripheral = peripheral }
            return (core.machine.attempt, core.peripheral)
        }
        defer { withExtendedLifetime(last) {} }
        let events: FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)> = peripheral.connect(
            timeoutRetries: 0, connectionTimeout: timeout.interval)
        events.onComplete(context: ImmediateContext()) { [weak self] event in
            self?.decide { core in core.machine.attempt == attempt ? core.machine.linkEvent(event) : [] }
        }
    }

    func disconnect(isImmediate: Bool, completion: ((DisconnectionResult) -> Void)?) {
        request(
            .disconnect(isImmediate: isImmediate),
            Request { _, _ in
            } settle: { session, outcome in
                guard let completion else { return }
                let peripheral = session.core.withLock { $0.peripheral }
                let result: DisconnectionResult =
                    switch outcome {
                    case .success: peripheral.map { .success($0) } ?? .failure(BluejayError.notConnected)
                    case .failure(let error): .failure(error)
                    }
                session.call { completion(result) }
            })
    }
}

extension BluejayMachine {
    fileprivate mutating func linkEvent(
        _ event: Try<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>
    ) -> [Effect] {
        switch event {
        case .success((_, .connect)): linkWentUp()
        case .success((_, .disconnect)): linkWentDown(isWished: false)
        case .success((_, .forceDisconnect)): linkWentDown(isWished: true)
        case .success((_, .timeout)), .success((_, .giveUp)): linkFailed(BluejayError.connectionTimedOut)
        case .failure(let error): linkFailed(error)
        }
    }
}
