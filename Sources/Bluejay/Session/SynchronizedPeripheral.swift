public import BlueCapKit
public import Foundation

/// The peripheral of a background task: each call blocks until the operation is complete, or throws.
///
/// It can be used in the task of ``Bluejay/run(backgroundTask:completionOnMainThread:)``, on its thread, until the task
/// returns; elsewhere every call throws ``BluejayError/notInBackgroundTask``. If the connection is lost, Bluetooth or
/// `bluetoothd` is no longer available, or the application cancels or stops, the call throws the reason, and so does every
/// later call of the task. Closures are called on the task's thread.
// Unchecked: the variables are accessed under `condition` alone.
public final class SynchronizedPeripheral: @unchecked Swift.Sendable {
    /// Identifies a request, a listen or a time limit, whose outcomes the task receives.
    private final class Source: Swift.Sendable {}

    private let session: BluejaySession
    private let condition = NSCondition()
    /// Why the task has failed.
    private var failure: (any Error)?
    /// What the task has received and not taken yet, in its order.
    private var received: [(source: Source, outcome: BluejaySession.Outcome)] = []
    /// The sources that the task waits for.
    private var awaited: [Source] = []
    private var hasEnded = false

    init(session: BluejaySession) { self.session = session }

    // MARK: Reading and writing

    /// Reads a value.
    public func read<R: Receivable>(from characteristicIdentifier: CharacteristicIdentifier) throws -> R {
        try R(bluetoothData: perform(.read(characteristicIdentifier)))
    }

    /// Writes a value.
    public func write<S: Sendable>(
        to characteristicIdentifier: CharacteristicIdentifier, value: S, type: CBCharacteristicWriteType = .withResponse
    ) throws {
        try perform(.write(value.toBluetoothData(), to: characteristicIdentifier, type))
    }

    /// Writes to one characteristic, then reads from another.
    public func writeAndRead<R: Receivable, S: Sendable>(
        writeTo charToWriteTo: CharacteristicIdentifier, value: S, type: CBCharacteristicWriteType = .withResponse,
        readFrom charToReadFrom: CharacteristicIdentifier
    ) throws -> R {
        try write(to: charToWriteTo, value: value, type: type)
        return try read(from: charToReadFrom)
    }

    /// Returns how many bytes can be written at once; 0 if the task has ended.
    public func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        guard session.isInside(self) else { return 0 }
        return session.peripheral?.maximumWriteValueLength(for: type) ?? 0
    }

    // MARK: Listening

    /// Listens until `completion` returns ``ListenAction/done``.
    ///
    /// - `timeout`: From the beginning of the listen; then ``BluejayError/listenTimedOut``.
    /// - `completion`: Called with each value.
    /// - Throws: The failure that ends the listen, and the errors of `R`.
    public func listen<R: Receivable>(
        to characteristicIdentifier: CharacteristicIdentifier, timeout: Timeout = .none,
        completion: @escaping (R) -> ListenAction
    ) throws {
        try listening(to: characteristicIdentifier) { values in
            try receive(values, timeout.interval) { completion(try R(bluetoothData: $0)) }
        }
    }

    /// Ends a listen, also one that was begun outside the task.
    public func endListen(to characteristicIdentifier: CharacteristicIdentifier, error: (any Error)? = nil) throws {
        try perform(.endListen(characteristicIdentifier, error))
    }

    /// Writes to one characteristic, and listens to another until `completion` returns ``ListenAction/done``. The listen
    /// begins before the write, so that no response is missed; its time limit begins with the write.
    public func writeAndListen<S: Sendable, R: Receivable>(
        writeTo charToWriteTo: CharacteristicIdentifier, value: S, type: CBCharacteristicWriteType = .withResponse,
        listenTo charToListenTo: CharacteristicIdentifier, timeout: Timeout = .none,
        completion: @escaping (R) -> ListenAction
    ) throws {
        try listening(to: charToListenTo) { values in
            try write(to: charToWriteTo, value: value, type: type)
            try receive(values, timeout.interval) { completion(try R(bluetoothData: $0)) }
        }
    }

    /// Writes to one characteristic, and listens to another whose peripheral sends a value of `expectedLength` bytes in any
    /// number of packets. `completion` is called with each complete value. The time limit begins with the write.
    ///
    /// - Throws: ``BluejayError/dataOutOfBounds(start:length:count:)`` if a packet extends beyond the end of its value, or
    ///   the length is negative; and the errors of ``writeAndListen(writeTo:value:type:listenTo:timeout:completion:)``.
    public func writeAndAssemble<S: Sendable, R: Receivable>(
        writeTo charToWriteTo: CharacteristicIdentifier, value: S, type: CBCharacteristicWriteType = .withResponse,
        listenTo charToListenTo: CharacteristicIdentifier, expectedLength: Int, timeout: Timeout = .none,
        completion: @escaping (R) -> ListenAction
    ) throws {
        guard expectedLength >= 0 else {
            throw BluejayError.dataOutOfBounds(start: 0, length: expectedLength, count: 0)
        }
        try listening(to: charToListenTo) { values in
            try write(to: charToWriteTo, value: value, type: type)
            var assembled = Data()
            try receive(values, timeout.interval) { packet in
                assembled.append(packet)
                guard assembled.count >= expectedLength else { return .keepListening }
                guard assembled.count == expectedLength else {
                    throw BluejayError.dataOutOfBounds(start: 0, length: expectedLength, count: assembled.count)
                }
                defer { assembled = Data() }
                return completion(try R(bluetoothData: assembled))
            }
        }
    }

    /// Listens, and discards all values, until none has arrived for `idleWindow` seconds, more than zero. Then it calls
    /// the completion.
    /// - Throws: ``BluejayError/indefiniteFlush`` if the window would never end.
    public func flushListen(
        to characteristicIdentifier: CharacteristicIdentifier, idleWindow: TimeInterval = 3,
        completion: @escaping () -> Void
    ) throws {
        guard idleWindow > 0, idleWindow < .infinity else { throw BluejayError.indefiniteFlush }
        try listening(to: characteristicIdentifier) { values in
            while true {
                do {
                    try receive(values, idleWindow) { _ in .done }
                } catch BluejayError.listenTimedOut {
                    return
                } catch CharacteristicError.notificationsInterrupted {
                    // The missed values would have been discarded.
                }
            }
        }
        completion()
    }

    // MARK: Pairing

    /// Pairs with the peripheral; see ``Bluejay/pair(timeout:completion:)``. The ``PairingObserver`` receives the
    /// requests while this call blocks the task's thread.
    public func pair(timeout: Timeout = .seconds(60)) throws { try perform(.pair(timeout)) }

    // MARK: Waiting; the task's thread

    /// Makes a request, and waits for its outcome.
    @discardableResult
    private func perform(_ work: Request.Work) throws -> Data {
        guard session.isInside(self) else { throw BluejayError.notInBackgroundTask }
        let source = Source()
        session.request(work, by: .task) { self.put($0, from: source) }
        return try take(from: source).get()
    }

    /// Begins a listen, runs `body` with its values, and ends the listen in any case.
    private func listening(to identifier: CharacteristicIdentifier, _ body: (Source) throws -> Void) throws {
        let values = Source()
        let listen = Listen(identifier, .trap) { self.put($0, from: values) }
        defer {
            // If no more requests are possible, the listen ends outside the queue.
            session.abandon(listen)
            condition.withLock { received.removeAll { $0.source === values } }
        }
        try perform(.listen(listen))
        let result = Result { try body(values) }
        let end = Result { try endListen(to: identifier) }
        try result.get()
        try end.get()
    }

    /// Takes values until `take` returns ``ListenAction/done``.
    private func receive(_ values: Source, _ limit: TimeInterval, _ take: (Data) throws -> ListenAction) throws {
        let end = Source()
        let timer = session.manager?.timer(after: limit) { self.put(.failure(BluejayError.listenTimedOut), from: end) }
        defer { timer?.cancel() }
        while try take(self.take(from: values, end).get()) == .keepListening {}
    }

    /// Waits for the next value. Throws if the task has failed.
    private func take(from sources: Source...) throws -> BluejaySession.Outcome {
        try condition.withLock {
            defer { awaited = [] }
            while true {
                if let place = received.firstIndex(where: { value in sources.contains { $0 === value.source } }) {
                    return received.remove(at: place).outcome
                }
                if let failure { throw failure }
                awaited = sources
                condition.broadcast()
                condition.wait()
            }
        }
    }

    // MARK: Any thread

    private func put(_ outcome: BluejaySession.Outcome, from source: Source) {
        condition.withLock {
            received.append((source, outcome))
            // The task does not wait any more, even if its thread has not woken yet.
            if awaited.contains(where: { $0 === source }) { awaited = [] }
            condition.broadcast()
        }
    }

    /// Fails what the task waits for, now and later.
    func fail(_ error: any Error) {
        condition.withLock {
            (failure, awaited) = (error, [])
            condition.broadcast()
        }
    }

    func end() {
        condition.withLock {
            hasEnded = true
            condition.broadcast()
        }
    }

    /// Waits until the task waits for a request, or has ended; for tests with virtual time. Returns whether that is so.
    func awaitStillness(limit: TimeInterval) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit)
        return condition.withLock {
            while !hasEnded, awaited.isEmpty, condition.wait(until: deadline) {}
            return hasEnded || !awaited.isEmpty
        }
    }
}
