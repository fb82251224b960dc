public import BlueCapKit
public import Foundation

/// The peripheral as a background task sees it: each call returns when it is done, or throws.
///
/// It is of use in the task it was given to by ``Bluejay/run(backgroundTask:completionOnMainThread:)``, on its thread, and
/// until that returns; elsewhere everything throws ``BluejayError/notInBackgroundTask``. No call waits for ever: when the
/// connection is lost, Bluetooth goes away, `bluetoothd` dies, or the application cancels or stops, it throws why, and so
/// does every later call of the task. Closures are called on the task's thread.
public final class SynchronizedPeripheral: Swift.Sendable {
    private let session: BluejaySession
    /// The number of the task.
    private let task: Int

    init(session: BluejaySession, task: Int) { (self.session, self.task) = (session, task) }

    // MARK: Reading and writing

    /// Reads a value.
    public func read<R: Receivable>(from characteristicIdentifier: CharacteristicIdentifier) throws -> R {
        let data = try wait { session.read(from: characteristicIdentifier, by: .task, settle: $0) }
        return try R(bluetoothData: data)
    }

    /// Writes a value.
    public func write<S: Sendable>(
        to characteristicIdentifier: CharacteristicIdentifier, value: S, type: CBCharacteristicWriteType = .withResponse
    ) throws {
        let data = value.toBluetoothData()
        _ = try wait { session.write(data, to: characteristicIdentifier, type: type, by: .task, settle: $0) }
    }

    /// Writes to one characteristic, then reads from another.
    public func writeAndRead<R: Receivable, S: Sendable>(
        writeTo charToWriteTo: CharacteristicIdentifier, value: S, type: CBCharacteristicWriteType = .withResponse,
        readFrom charToReadFrom: CharacteristicIdentifier
    ) throws -> R {
        try write(to: charToWriteTo, value: value, type: type)
        return try read(from: charToReadFrom)
    }

    /// How many bytes can be written at once; 0 where the task is over.
    public func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        guard (try? checkTask()) != nil else { return 0 }
        return session.core.withLock { $0.peripheral }?.maximumWriteValueLength(for: type) ?? 0
    }

    // MARK: Listening

    /// Listens until `completion` says ``ListenAction/done``.
    ///
    /// - Parameters:
    ///   - characteristicIdentifier: The characteristic to listen to.
    ///   - timeout: From the beginning of the listen; ``BluejayError/listenTimedOut`` when it has passed.
    ///   - completion: Called with each value; returns whether to go on.
    /// - Throws: What ends a listen, and what `R` throws.
    public func listen<R: Receivable>(
        to characteristicIdentifier: CharacteristicIdentifier, timeout: Timeout = .none,
        completion: @escaping (R) -> ListenAction
    ) throws {
        try listening(to: characteristicIdentifier) { values in
            try receive(values, timeout) { completion(try R(bluetoothData: $0)) }
        }
    }

    /// Ends a listen, also one that was begun outside of the task.
    public func endListen(to characteristicIdentifier: CharacteristicIdentifier, error: (any Error)? = nil) throws {
        _ = try wait { session.endListen(to: characteristicIdentifier, error: error, by: .task, settle: $0) }
    }

    /// Writes to one characteristic, and listens to another until `completion` says ``ListenAction/done``. The listen is
    /// set up before the write goes out, so that no answer is missed.
    /// - Parameters:
    ///   - charToWriteTo: The characteristic to write to.
    ///   - value: The value to write.
    ///   - type: Whether the peripheral is to confirm the write.
    ///   - charToListenTo: The characteristic to listen to.
    ///   - timeout: From the write on; ``BluejayError/listenTimedOut`` when it has passed.
    ///   - completion: Called with each value; returns whether to go on.
    public func writeAndListen<S: Sendable, R: Receivable>(
        writeTo charToWriteTo: CharacteristicIdentifier, value: S, type: CBCharacteristicWriteType = .withResponse,
        listenTo charToListenTo: CharacteristicIdentifier, timeout: Timeout = .none,
        completion: @escaping (R) -> ListenAction
    ) throws {
        try listening(to: charToListenTo) { values in
            try write(to: charToWriteTo, value: value, type: type)
            try receive(values, timeout) { completion(try R(bluetoothData: $0)) }
        }
    }

    /// Writes to one characteristic, and listens to another whose peripheral sends a value in any number of packets.
    ///
    /// - Parameters:
    ///   - charToWriteTo: The characteristic to write to.
    ///   - value: The value to write.
    ///   - type: Whether the peripheral is to confirm the write.
    ///   - charToListenTo: The characteristic to listen to.
    ///   - expectedLength: How many bytes make a value.
    ///   - timeout: From the write on; ``BluejayError/listenTimedOut`` when it has passed.
    ///   - completion: Called with each value that is complete.
    /// - Throws: ``BluejayError/dataOutOfBounds(start:length:count:)`` where a packet reaches beyond the end of its value,
    ///   or the length is negative; and what ``writeAndListen(writeTo:value:type:listenTo:timeout:completion:)`` throws.
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
            try receive(values, timeout) { packet in
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

    /// Listens, and throws away what comes, until nothing has come for a while.
    /// - Parameters:
    ///   - characteristicIdentifier: The characteristic to listen to.
    ///   - idleWindow: How long that is, in seconds; more than zero.
    ///   - completion: Called when nothing has come for so long.
    /// - Throws: ``BluejayError/indefiniteFlush`` where the window would never end.
    public func flushListen(
        to characteristicIdentifier: CharacteristicIdentifier, idleWindow: TimeInterval = 3,
        completion: @escaping () -> Void
    ) throws {
        guard idleWindow > 0, idleWindow < .infinity else { throw BluejayError.indefiniteFlush }
        try listening(to: characteristicIdentifier) { values in
            for number in 0... {
                let timer = session.timer(after: idleWindow) { values.put(.failure(Silence(number: number))) }
                defer { timer?.cancel() }
                do {
                    _ = try values.take().get()
                } catch let silence as Silence {
                    // One of an earlier window was put behind the value that ended that window.
                    if silence.number == number { return }
                } catch CharacteristicError.notificationsInterrupted {
                    // What was missed would have been thrown away.
                }
            }
        }
        completion()
    }

    // MARK: Waiting

    /// Nothing has come for this window of a flush.
    private struct Silence: Error {
        let number: Int
    }

    private typealias Values = Mailbox<Result<Data, any Error>>

    /// Waits for what becomes of a request.
    private func wait(for request: (@escaping BluejaySession.Settling) -> Void) throws -> Data {
        try checkTask()
        let answer = Values(session.gate)
        request { _, outcome in answer.put(outcome) }
        return try answer.take().get()
    }

    private func checkTask() throws {
        guard session.isInsideTask, session.core.withLock({ $0.task == task && $0.machine.isTaskRunning }) else {
            throw BluejayError.notInBackgroundTask
        }
    }

    /// Sets a listen up, does something with its values, and ends it whatever comes.
    private func listening(to identifier: CharacteristicIdentifier, _ body: (Values) throws -> Void) throws {
        try checkTask()
        let values = Values(session.gate)
        let listen = Listen(identifier, .trap) { values.put($0) }
        let isSet = Values(session.gate)
        session.begin(listen, by: .task) { isSet.put($0) }
        do {
            _ = try isSet.take().get()
        } catch {
            session.abandon(listen)
            throw error
        }
        do {
            try body(values)
        } catch {
            // Where nothing can be asked for any more it is ended without a turn.
            do { try endListen(to: identifier) } catch { session.abandon(listen) }
            throw error
        }
        try endListen(to: identifier)
    }

    private func receive(_ values: Values, _ timeout: Timeout, _ take: (Data) throws -> ListenAction) throws {
        let timer: ManagerTimer? =
            switch timeout {
            case .seconds(let seconds):
                session.timer(after: seconds) { values.put(.failure(BluejayError.listenTimedOut)) }
            case .none: nil
            }
        defer { timer?.cancel() }
        while try take(values.take().get()) == .keepListening {}
    }
}

extension BluejaySession {
    func timer(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> ManagerTimer? {
        core.withLock { $0.manager }?.timer(after: seconds, work)
    }
}
