import BlueZ
import Futures
import Reactor

/// Sockets to write with.
extension CentralSession {
    func acquireWriter(of characteristic: Characteristic) -> Future<CharacteristicWriter> {
        let promise = Promise<CharacteristicWriter>()
        // As every operation it waits until the services are known.
        let known: Future<Void> = operation(on: characteristic.peripheral.key, value: {}) { state, operation in
            state.attributes.discoverServices([], operation, timeout: .infinity)
        }
        known.onSuccess(context: ImmediateContext()) { [self] in
            loop.perform { self.acquireWriter(of: characteristic, promise) }
        }
        known.onFailure(context: ImmediateContext()) { promise.failure($0) }
        return promise.future
    }

    /// On the loop.
    private func acquireWriter(of characteristic: Characteristic, _ promise: Promise<CharacteristicWriter>) {
        let peripheral = characteristic.peripheral.key
        guard let key = writableKey(of: characteristic) else {
            let hasLink = readDealing(with: peripheral) { $0.attributes.hasLink } ?? false
            let error: any Error = hasLink ? CharacteristicError.invalidated : PeripheralError.disconnected
            return complete { promise.failure(error) }
        }
        client.acquireWrite(key) { [self] result in
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

    private func writableKey(of characteristic: Characteristic) -> AttributeKey? {
        readDealing(with: characteristic.peripheral.key) { $0.attributes.key(of: characteristic.id) }
    }

    /// The link of a peripheral is gone.
    func endWriters(of peripheral: PeripheralKey, _ error: PeripheralError) {
        let writers = core.withLock { $0.writers.removeValue(forKey: peripheral) }
        for entry in writers ?? [] { entry.writer?.end(.peripheral(error)) }
    }

    /// The manager ends.
    func endAllWriters() {
        let peripherals = core.withLock { $0.writers.keys.sorted() }
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
