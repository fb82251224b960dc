import BlueCapBlueZ
public import Foundation
public import BlueCapFutures
import BlueCapReactor

/// Writes values without response to a characteristic over a socket from BlueZ (`AcquireWrite`).
///
/// This is many times faster than one call for each value, and provides back-pressure.
///
/// ```swift
/// let writer = try await characteristic.acquireWriter()
/// for part in parts { try await writer.write(part).value }
/// ```
///
/// Values are sent in the order in which they were written, from any thread. While the writer is open, BlueZ refuses
/// all other writes to the characteristic, including those of
/// ``Characteristic/write(data:timeout:type:)`` in this process.
///
/// The writer ends with ``close()``; when it is released and the socket has accepted all values; when the link ends;
/// when `bluetoothd` closes the socket; and with the manager. It is not reopened on the next link.
public final class CharacteristicWriter: Sendable {
    private struct State {
        /// Used on the loop only. It is stored here so that the writer can be released on any thread.
        var socket: AcquiredSocket?
        var waiting: [(value: Data, accepted: Future<Void>)] = []
        /// Whether the waiting values are about to be sent.
        var isSending = false
        /// Writes that failed on a closed socket, until it is known whether the link has ended.
        var unexplained: [Future<Void>] = []
        /// Why the writer has ended; `nil` while it is open.
        var end: PeripheralFailure?
    }

    /// The characteristic that the writer writes to.
    public let characteristic: Characteristic
    /// The size of an ATT packet on the link in bytes, including its header of three bytes, as BlueZ reported it with
    /// the socket.
    public let mtu: Int
    private let state: Locked<State>
    private let closed = Future<Void>()

    init(_ socket: AcquiredSocket, to characteristic: Characteristic) {
        self.characteristic = characteristic
        mtu = socket.mtu
        state = Locked(State(socket: socket))
    }

    deinit {
        guard !closed.completed else { return }
        characteristic.session.complete { [closed] in closed.success(()) }
    }

    private var session: CentralSession { characteristic.session }

    /// The maximum length of a value in bytes: what fits into a packet, and at most 512.
    public var maximumLength: Int { AttributeProtocol.longestValue(inPacketOf: mtu) }

    /// Whether the writer has ended, so that no more values can be written.
    public var isClosed: Bool { state.withLock { $0.end != nil } }

    /// Writes a value of 1 to ``maximumLength`` bytes, and returns when the socket has accepted it. `bluetoothd` then receives it, and
    /// sends it when the link is ready; whether the peripheral receives it is not known. The socket accepts values only as fast as
    /// the link sends them, so a program that waits for each does not fill the memory. If the task is cancelled, only the wait ends.
    /// - Throws: ``CharacteristicError/valueTooLong(count:maximum:)`` at once, also for an empty value, which BlueZ does not send;
    ///   ``PeripheralError/disconnected`` or ``PeripheralError/forcedDisconnect`` if the link ends; and
    ///   ``CharacteristicError/writerClosed`` or ``CharacteristicError/writeFailed(_:)`` if the socket is closed or refuses the value.
    public func write(_ data: Data) async throws { try await awaiting { write(data) } }

    /// Variant of ``write(_:)->()`` that returns a future.
    @discardableResult
    public func write(_ data: Data) -> Future<Void> {
        guard 1...maximumLength ~= data.count else {
            return session.failed(CharacteristicError.valueTooLong(count: data.count, maximum: maximumLength))
        }
        let accepted = Future<Void>()
        let (end, mustSend) = state.withLock { state -> (PeripheralFailure?, Bool) in
            if let end = state.end { return (end, false) }
            state.waiting.append((data, accepted))
            defer { state.isSending = true }
            return (nil, !state.isSending)
        }
        if let end { return session.failed(end.error) }
        if mustSend { session.loop.post { self.send() } }
        return accepted
    }

    /// Closes the socket. Values that it has not accepted yet fail with ``CharacteristicError/writerClosed``. A second
    /// call does nothing.
    public func close() { end(.characteristic(.writerClosed)) }

    /// Returns a future that completes when the writer has ended, for any reason. Each call returns the same future.
    public func whenClosed() -> Future<Void> { closed }

    // MARK: On the loop

    private func send() {
        let (socket, end, values) = state.withLock { state in
            defer { (state.waiting, state.isSending) = ([], false) }
            return (state.socket, state.end, state.waiting)
        }
        for (value, accepted) in values {
            guard let socket else {
                session.complete(accepted, .failure(end?.error ?? PeripheralError.disconnected))
                continue
            }
            // The closure references this writer until the socket has accepted the value.
            socket.send(value) { [self] result in
                switch result {
                case .success: session.complete(accepted, .success(()))
                case .failure(.socketClosed): socketWasClosed(before: accepted)
                case .failure(let error):
                    session.complete(accepted, .failure(CharacteristicError.writeFailed(BusError(error))))
                }
            }
        }
    }

    /// Fails a write whose value was not accepted, with the reason for the writer's end, which may not be known yet.
    private func socketWasClosed(before accepted: Future<Void>) {
        let (end, isFirst) = state.withLock { state in
            if state.end == nil { state.unexplained.append(accepted) }
            return (state.end, state.unexplained.count == 1)
        }
        if let end { return session.complete(accepted, .failure(end.error)) }
        // If the application has released the writer, it no longer receives the socket's end.
        if isFirst { socketWasClosed() }
    }

    /// Starts to watch for the socket's end.
    func begin() {
        state.withLock { $0.socket }?.start(onClosed: { [weak self] in self?.socketWasClosed() })
    }

    /// Handles the end of the socket: `bluetoothd` has closed it.
    ///
    /// Usually the link has ended or is about to end, and `bluetoothd` signals that separately. If the link stays, only
    /// the socket has ended. The writer is kept until this is known, so that it can complete its writes.
    private func socketWasClosed() {
        session.loop.schedule(after: SharedNotifications.interruptionLimit) {
            self.end(.characteristic(.writerClosed))
        }
    }

    /// Ends the writer: no more values are written. Any thread.
    func end(_ failure: PeripheralFailure) {
        let (socket, unexplained) = state.withLock { state -> (AcquiredSocket?, [Future<Void>]) in
            guard state.end == nil else { return (nil, []) }
            state.end = failure
            defer { (state.socket, state.unexplained) = (nil, []) }
            return (state.socket, state.unexplained)
        }
        guard let socket else { return }
        session.loop.post { socket.close() }
        let closed = closed
        session.complete {
            for accepted in unexplained { accepted.failure(failure.error) }
            closed.success(())
        }
    }
}

extension Characteristic {
    /// Variant of ``acquireWriter(timeout:)->CharacteristicWriter`` that returns a future, without a time limit.
    public func acquireWriter() -> Future<CharacteristicWriter> { acquireWriter(timeout: .infinity) }

    /// Variant of ``acquireWriter(timeout:)->CharacteristicWriter`` that returns a future, with the time limit in seconds.
    @_disfavoredOverload  // `characteristic.acquireWriter` without a call is the method without a time limit
    public func acquireWriter(timeout: TimeInterval) -> Future<CharacteristicWriter> {
        guard propertyEnabled(.writeWithoutResponse) else {
            return session.failed(CharacteristicError.writeNotSupported)
        }
        let (start, withdrawal) = (session.loop.now, Withdrawal.current)
        // Waits until the services are known, as every operation does.
        let known: Future<Void> = session.operation(on: peripheral.key, timeout: timeout, yielding: ()) {
            $0.attributes.request(.services([]), $1, into: &$2)
        }
        return known.flatMap(context: ImmediateContext()) { [self] in
            try withdrawal?.proceed()
            let promise = Promise<CharacteristicWriter>()
            session.loop.perform {
                self.acquire(promise, timeout: timeout - self.session.loop.now.seconds(since: start))
            }
            return promise.future
        }
    }

    /// Requests the socket from BlueZ. On the loop.
    private func acquire(_ promise: Promise<CharacteristicWriter>, timeout: TimeInterval) {
        let peripheral = peripheral.key
        guard let key = writableKey else {
            let hasLink = session.use(of: peripheral) { $0.state.connection.state == .connected } ?? false
            let error: any Error = hasLink ? CharacteristicError.invalidated : PeripheralError.disconnected
            return session.complete { promise.failure(error) }
        }
        let request = session.core.withLock { core in
            let request = core.makeOperation()
            core.state.peripherals.use(of: peripheral)?.writerRequests[request] = promise
            return request
        }
        let limit = min(DaemonLink.attributeTimeout, max(0, timeout))
        session.client.daemon.acquireWrite(key, timeout: limit) { [self, session] result in
            guard session.use(of: peripheral, { $0.writerRequests.removeValue(forKey: request) }) != nil else {
                // The link of the request has ended.
                if case .success(let socket) = result { socket.close() }
                return
            }
            switch result {
            case .failure(let error):
                let failure = PeripheralFailure(acquiring: error)
                session.complete { promise.failure(failure.error) }
            case .success(let socket):
                // The link may have been lost, and replaced by another one.
                guard writableKey == key, !session.core.withLock({ $0.shell.isClosed }) else {
                    socket.close()
                    return session.complete { promise.failure(PeripheralError.disconnected) }
                }
                let writer = CharacteristicWriter(socket, to: self)
                let others = session.use(of: peripheral) { $0.add(writer) }
                withExtendedLifetime(others) {}
                writer.begin()
                session.complete { promise.success(writer) }
            }
        }
    }

    private var writableKey: AttributeKey? {
        session.use(of: peripheral.key) { $0.state.attributes.key(of: id, on: $0.state.status.device) }
    }
}
