import BlueZ
import Foundation
import Futures
import Reactor

/// Sockets to write with.
extension CentralSession {
    func acquireWriter(of characteristic: Characteristic, timeout: TimeInterval) -> Future<CharacteristicWriter> {
        let promise = Promise<CharacteristicWriter>()
        let start = loop.now
        // Like every operation it waits until the services are known.
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
        let request = core.withLock { $0.writers.begin(promise, of: peripheral) }
        let limit = min(DaemonLink.attributeTimeout, max(0, timeout))
        client.daemon.acquireWrite(key, timeout: limit) { [self] result in
            guard core.withLock({ $0.writers.end(request, of: peripheral) }) else {
                // The link that it was for is gone.
                if case .success(let socket) = result { socket.close() }
                return
            }
            switch result {
            case .failure(let error):
                let failure = PeripheralFailure(acquiring: error)
                complete { promise.failure(failure.error) }
            case .success(let socket):
                // The link may have been lost, and replaced by another one.
                guard writableKey(of: characteristic) == key, !core.withLock({ $0.shell.isClosed }) else {
                    socket.close()
                    return complete { promise.failure(PeripheralError.disconnected) }
                }
                let writer = CharacteristicWriter(socket, to: characteristic)
                let others = core.withLock { $0.writers.add(writer, of: peripheral) }
                withExtendedLifetime(others) {}
                writer.begin()
                complete { promise.success(writer) }
            }
        }
    }

    private func writableKey(of characteristic: Characteristic) -> AttributeKey? {
        readState(of: characteristic.peripheral.key) { $0.attributes.key(of: characteristic.id) }
    }

    /// The link of a peripheral is gone.
    func endWriters(of peripheral: PeripheralKey, _ error: PeripheralError) {
        let (writers, requests) = core.withLock { $0.writers.remove(peripheral) }
        for writer in writers { writer.end(.peripheral(error)) }
        // BlueZ may never reply: 5.82 does not if pairing fails.
        for promise in requests { complete { promise.failure(error) } }
    }
}

/// The writers of a manager's characteristics, and the requests for them.
struct Writers {
    private struct Entry {
        weak var writer: CharacteristicWriter?
    }

    private var entries: [PeripheralKey: [Entry]] = [:]
    private var requests: [PeripheralKey: [UInt64: Promise<CharacteristicWriter>]] = [:]
    private var lastRequest: UInt64 = 0

    var peripherals: [PeripheralKey] { Set(entries.keys).union(requests.keys).sorted() }

    mutating func begin(_ promise: Promise<CharacteristicWriter>, of peripheral: PeripheralKey) -> UInt64 {
        lastRequest += 1
        requests[peripheral, default: [:]][lastRequest] = promise
        return lastRequest
    }

    /// BlueZ has replied to a request. Returns false if the request has ended with its link.
    mutating func end(_ request: UInt64, of peripheral: PeripheralKey) -> Bool {
        guard requests[peripheral]?.removeValue(forKey: request) != nil else { return false }
        if requests[peripheral]?.isEmpty == true { requests[peripheral] = nil }
        return true
    }

    /// Adds a writer. Returns the others: they must not be released under the lock, which their end takes.
    mutating func add(_ writer: CharacteristicWriter, of peripheral: PeripheralKey) -> [CharacteristicWriter] {
        let others = (entries[peripheral] ?? []).compactMap(\.writer)
        entries[peripheral] = (others + [writer]).map { Entry(writer: $0) }
        return others
    }

    /// Removes the writers and requests of a peripheral, and returns them.
    mutating func remove(
        _ peripheral: PeripheralKey
    ) -> (writers: [CharacteristicWriter], requests: [Promise<CharacteristicWriter>]) {
        let requests = requests.removeValue(forKey: peripheral) ?? [:]
        return (
            (entries.removeValue(forKey: peripheral) ?? []).compactMap(\.writer),
            requests.sorted { $0.key < $1.key }.map(\.value)
        )
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
