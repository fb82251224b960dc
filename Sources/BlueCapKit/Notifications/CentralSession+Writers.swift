import BlueZ
import Foundation
import Futures
import Reactor

/// Sockets to write with.
extension CentralSession {
    func acquireWriter(of characteristic: Characteristic, timeout: TimeInterval) -> Future<CharacteristicWriter> {
        let promise = Promise<CharacteristicWriter>()
        let start = loop.now
        // As every operation it waits until the services are known.
        let known: Future<Void> = operation(on: characteristic.peripheral.key, yielding: ()) {
            $0.attributes.discoverServices([], $1, timeout: timeout, into: &$2)
        }
        known.onSuccess(context: ImmediateContext()) { [self] in
            loop.perform {
                self.acquireWriter(
                    of: characteristic, timeout: timeout - self.loop.now.seconds(since: start), promise)
            }
        }
        known.onFailure(context: ImmediateContext()) { promise.failure($0) }
        return promise.future
    }

    /// On the loop.
    private func acquireWriter(
        of characteristic: Characteristic, timeout: TimeInterval, _ promise: Promise<CharacteristicWriter>
    ) {
        let peripheral = characteristic.peripheral.key
        guard let key = writableKey(of: characteristic) else {
            let hasLink = readState(of: peripheral) { $0.attributes.hasLink } ?? false
            let error: any Error = hasLink ? CharacteristicError.invalidated : PeripheralError.disconnected
            return complete { promise.failure(error) }
        }
        let request = core.withLock { core in
            let request = core.makeOperation()
            core.writerRequests[peripheral, default: [:]][request] = promise
            return request
        }
        let limit = min(DaemonLink.attributeTimeout, max(0, timeout))
        client.daemon.acquireWrite(key, timeout: limit) { [self] result in
            guard takeRequest(request, of: peripheral) else {
                // The link that it was for is gone.
                if case .success(let socket) = result { socket.close() }
                return
            }
            switch result {
            case .failure(let error):
                let failure = PeripheralFailure(acquiring: error)
                complete { promise.failure(failure.error) }
            case .success(let socket):
                // The link may have gone meanwhile, and another one come.
                guard writableKey(of: characteristic) == key, !core.withLock({ $0.isClosed }) else {
                    socket.close()
                    return complete { promise.failure(PeripheralError.disconnected) }
                }
                let writer = CharacteristicWriter(socket, to: characteristic)
                let others = core.withLock { core in
                    // To look at one is to hold it: it must not die here, under the lock that its end takes.
                    let others = (core.writers[peripheral] ?? []).compactMap(\.writer)
                    core.writers[peripheral] = (others + [writer]).map { WeakWriter(writer: $0) }
                    return others
                }
                withExtendedLifetime(others) {}
                writer.begin()
                complete { promise.success(writer) }
            }
        }
    }

    /// False if the request has ended with its link.
    private func takeRequest(_ request: OperationID, of peripheral: PeripheralKey) -> Bool {
        core.withLock { core in
            guard core.writerRequests[peripheral]?.removeValue(forKey: request) != nil else { return false }
            if core.writerRequests[peripheral]?.isEmpty == true { core.writerRequests[peripheral] = nil }
            return true
        }
    }

    private func writableKey(of characteristic: Characteristic) -> AttributeKey? {
        readState(of: characteristic.peripheral.key) { $0.attributes.key(of: characteristic.id) }
    }

    /// The link of a peripheral is gone.
    func endWriters(of peripheral: PeripheralKey, _ error: PeripheralError) {
        let (writers, requests) = core.withLock {
            ($0.writers.removeValue(forKey: peripheral), $0.writerRequests.removeValue(forKey: peripheral))
        }
        for entry in writers ?? [] { entry.writer?.end(.peripheral(error)) }
        // BlueZ may never answer: 5.82 does not if pairing fails.
        for (_, promise) in (requests ?? [:]).sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            complete { promise.failure(error) }
        }
    }

    /// The manager ends.
    func endAllWriters() {
        let peripherals = core.withLock { Set($0.writers.keys).union($0.writerRequests.keys).sorted() }
        for peripheral in peripherals { endWriters(of: peripheral, .disconnected) }
    }
}

extension PeripheralFailure {
    /// What a refusal of `AcquireWrite` means.
    fileprivate init(acquiring error: BlueZError) {
        self =
            switch OperationFailure(error) {
            case .linkLost: .peripheral(.disconnected)
            case .linkEnded: .peripheral(.forcedDisconnect)
            case .invalidated: .characteristic(.invalidated)
            case .timedOut: .characteristic(.writeTimeout)
            case .refused where error.cause == .notSupported: .characteristic(.writeNotSupported)
            case .refused where error.cause == .notPermitted && error.message == "Write acquired":
                .characteristic(.acquiredByOther(BusFailure(error)))
            case .busy, .refused: .characteristic(.writeFailed(BusFailure(error)))
            }
    }
}
