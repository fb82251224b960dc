import BlueZ
public import Foundation
public import Futures
import Reactor

/// Writes values without response to a characteristic over a socket that BlueZ has given (`AcquireWrite`): many times
/// faster than one call for each value, and with real back-pressure.
///
/// ```swift
/// characteristic.acquireWriter().onSuccess { writer in
///     for part in parts { writer.write(part) }
///     writer.whenClosed().onSuccess { print("no link any more") }
/// }
/// ```
///
/// Values leave in the order in which they were written, from any thread. While the writer is open BlueZ refuses other
/// writes to the characteristic, also those of ``Characteristic/write(data:timeout:type:)->Future<Characteristic>`` here.
///
/// It ends with ``close()``, when it is released and all that was written has been taken, with the link, when
/// `bluetoothd` closes the socket, and with the manager. It does not come back with the next link.
public final class CharacteristicWriter: Sendable {
    private struct State {
        /// On the loop only; here so that it can be let go anywhere.
        var socket: AcquiredSocket?
        var waiting: [(value: Data, promise: Promise<Void>)] = []
        /// Somebody is about to send what waits.
        var isSending = false
        /// Writes that met a closed socket while it is not known yet whether the link has fallen.
        var unexplained: [Promise<Void>] = []
        /// Why nothing is written any more.
        var end: PeripheralFailure?
    }

    /// The characteristic that it writes to.
    public let characteristic: Characteristic
    /// The size of an ATT packet on the link in bytes, three of them its head, as BlueZ has told with the socket.
    public let mtu: Int
    private let state: Locked<State>
    private let closed = Promise<Void>()

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

    /// How many bytes a value can have: what fits into a packet, and 512 at most.
    public var maximumLength: Int { min(max(mtu, 23) - 3, 512) }

    /// Whether nothing can be written any more.
    public var isClosed: Bool { state.withLock { $0.end != nil } }

    /// Writes a value.
    ///
    /// - Parameter data: 1 to ``maximumLength`` bytes.
    /// - Returns: Success when the socket has taken the value: then `bluetoothd` gets it next, and sends it when its turn
    ///   on the air comes; that is as fast as the link carries, so who waits for it never fills the memory. What the
    ///   peripheral does with it is not heard of. Or a failure: ``CharacteristicError/valueTooLong(count:maximum:)`` at
    ///   once, also for no bytes at all, of which BlueZ sends nothing; ``PeripheralError/disconnected`` or
    ///   ``PeripheralError/forcedDisconnect`` if the link ends before; ``CharacteristicError/writerClosed`` if the writer,
    ///   or `bluetoothd`, has closed the socket; ``CharacteristicError/writeFailed(_:)`` if the socket refuses the value.
    @discardableResult
    public func write(_ data: Data) -> Future<Void> {
        guard 1...maximumLength ~= data.count else {
            return session.failed(CharacteristicError.valueTooLong(count: data.count, maximum: maximumLength))
        }
        let promise = Promise<Void>()
        let (end, mustSend) = state.withLock { state -> (PeripheralFailure?, Bool) in
            if let end = state.end { return (end, false) }
            state.waiting.append((data, promise))
            defer { state.isSending = true }
            return (nil, !state.isSending)
        }
        if let end { return session.failed(end.error) }
        if mustSend { session.loop.post { self.send() } }
        return promise.future
    }

    /// Gives the socket back. What has not been taken yet fails with ``CharacteristicError/writerClosed``. A second call
    /// does nothing.
    public func close() { end(.characteristic(.writerClosed)) }

    /// Completes when the writer has ended, for whatever reason. Each call answers the same future.
    public func whenClosed() -> Future<Void> { closed.future }

    // MARK: On the loop

    /// Hands what waits to the socket, all at once.
    private func send() {
        let (socket, values) = state.withLock { state -> (AcquiredSocket?, [(value: Data, promise: Promise<Void>)]) in
            defer { (state.waiting, state.isSending) = ([], false) }
            return (state.socket, state.waiting)
        }
        for (value, promise) in values {
            guard let socket else {
                settle(promise, .failure(reason))
                continue
            }
            // It holds this writer until the value is taken.
            socket.send(value) { result in
                switch result {
                case .success: self.settle(promise, .success(()))
                case .failure(.socketClosed): self.socketWasClosed(before: promise)
                case .failure(let error):
                    self.settle(promise, .failure(CharacteristicError.writeFailed(BusFailure(error))))
                }
            }
        }
    }

    /// A value was not taken. It fails with the reason for the writer's end, which may still have to come.
    private func socketWasClosed(before promise: Promise<Void>) {
        let (end, isFirst) = state.withLock { state in
            if state.end == nil { state.unexplained.append(promise) }
            return (state.end, state.unexplained.count == 1)
        }
        if let end { return settle(promise, .failure(end.error)) }
        // If the application has released the writer, it does not receive the socket's end any more.
        if isFirst { socketWasClosed() }
    }

    private var reason: any Error { state.withLock { $0.end }?.error ?? PeripheralError.disconnected }

    private func settle(_ promise: Promise<Void>, _ result: Try<Void>) {
        session.complete { promise.complete(result) }
    }

    /// Begins to listen for the socket's end.
    func begin() {
        state.withLock { $0.socket }?.start(onClosed: { [weak self] in self?.socketWasClosed() })
    }

    /// `bluetoothd` has closed the socket: mostly since the link is about to fall, or has fallen, which it signals in its own
    /// time. If the link stays, only the socket is gone. The writer is kept until then, so that it completes what it has.
    private func socketWasClosed() {
        session.loop.schedule(after: SubscriptionMachine.Timer.interruption.seconds) {
            self.end(.characteristic(.writerClosed))
        }
    }

    /// Any thread: nothing is written any more.
    func end(_ failure: PeripheralFailure) {
        let (socket, unexplained) = state.withLock { state -> (AcquiredSocket?, [Promise<Void>]) in
            guard state.end == nil else { return (nil, []) }
            state.end = failure
            defer { (state.socket, state.unexplained) = (nil, []) }
            return (state.socket, state.unexplained)
        }
        guard let socket else { return }
        session.loop.post { socket.close() }
        let closed = closed
        session.complete {
            for promise in unexplained { promise.failure(failure.error) }
            closed.success(())
        }
    }
}

extension Characteristic {
    /// Gets a socket to write values without response with.
    ///
    /// - Returns: The writer; or a failure: ``CharacteristicError/writeNotSupported`` at once where the properties lack
    ///   `writeWithoutResponse`; ``CharacteristicError/acquiredByOther(_:)`` where there is a writer already, here or in
    ///   another program; ``CharacteristicError/writeFailed(_:)``, ``CharacteristicError/invalidated``,
    ///   ``PeripheralError/disconnected``.
    public func acquireWriter() -> Future<CharacteristicWriter> { acquireWriter(timeout: .infinity) }

    /// Gets a socket to write values without response with, as ``acquireWriter()`` does, within a time limit.
    ///
    /// - Parameter timeout: For the discovery of the services and BlueZ's answer together, in seconds. When it is exceeded
    ///   the future fails with ``PeripheralError/serviceDiscoveryTimeout`` or ``CharacteristicError/writeTimeout``. BlueZ is
    ///   never waited for longer than 35 seconds.
    /// - Returns: As without a time limit.
    @_disfavoredOverload  // `characteristic.acquireWriter` without a call is the method without a time limit
    public func acquireWriter(timeout: TimeInterval) -> Future<CharacteristicWriter> {
        guard propertyEnabled(.writeWithoutResponse) else {
            return session.failed(CharacteristicError.writeNotSupported)
        }
        let promise = Promise<CharacteristicWriter>()
        let start = session.loop.now
        // Like every operation it waits until the services are known.
        let known: Future<Void> = session.operation(on: peripheral.key, yielding: ()) {
            $0.attributes.discoverServices([], $1, timeout: timeout, into: &$2)
        }
        known.onSuccess(context: ImmediateContext()) { [self] in
            session.loop.perform {
                self.acquire(promise, timeout: timeout - self.session.loop.now.seconds(since: start))
            }
        }
        known.onFailure(context: ImmediateContext()) { promise.failure($0) }
        return promise.future
    }

    /// On the loop.
    private func acquire(_ promise: Promise<CharacteristicWriter>, timeout: TimeInterval) {
        let peripheral = peripheral.key
        guard let key = writableKey else {
            let hasLink = session.readState(of: peripheral) { $0.attributes.hasLink } ?? false
            let error: any Error = hasLink ? CharacteristicError.invalidated : PeripheralError.disconnected
            return session.complete { promise.failure(error) }
        }
        let request = session.core.withLock { $0.writers.begin(promise, of: peripheral) }
        let limit = min(DaemonLink.attributeTimeout, max(0, timeout))
        session.client.daemon.acquireWrite(key, timeout: limit) { [self, session] result in
            guard session.core.withLock({ $0.writers.end(request, of: peripheral) }) else {
                // The link of the request is gone.
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
                let others = session.core.withLock { $0.writers.add(writer, of: peripheral) }
                withExtendedLifetime(others) {}
                writer.begin()
                session.complete { promise.success(writer) }
            }
        }
    }

    private var writableKey: AttributeKey? { session.readState(of: peripheral.key) { $0.attributes.key(of: id) } }
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
