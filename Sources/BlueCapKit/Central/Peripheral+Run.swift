public import Foundation
public import BlueCapFutures
import BlueCapReactor

/// Executes several operations as one unit, with exclusive use of the peripheral's queue.
///
/// ```swift
/// let location = try await peripheral.run(timeout: .seconds(30)) { connected in
///     try await connected.write(UInt8(1), to: controlPoint)
///     return try await connected.read(bodySensorLocation)
/// }
/// ```
extension Peripheral {
    /// Variant of ``run(timeout:_:)`` that returns a future, with the time limit in seconds. The future fails as soon as the
    /// failure is known, without waiting for the end of `work`.
    ///
    /// The compiler chooses it outside of `async` code, and if the type of a future is written explicitly. When `cancelToken`
    /// is passed to `cancel(_:)` of the future, the run is cancelled at once, whether it waits or is being executed.
    @discardableResult
    public func run<T: Sendable>(
        timeout: TimeInterval = .infinity, cancelToken: CancelToken = .uncancellable,
        _ work: @escaping @Sendable @concurrent (ConnectedPeripheral) async throws -> T
    ) -> Future<T> {
        let (run, future) = PeripheralRun.begin(self, timeout, work)
        future.whenCancelled(cancelToken) { run.cancel() }
        return future
    }

    /// Executes `work` when it is first in the peripheral's queue and there is a link, and returns when `work` has ended.
    ///
    /// The run takes its position in the queue when this method is called. No other operation of the queue is executed at the
    /// same time. Runs of one peripheral wait for each other, in the order of the calls; runs of different peripherals are
    /// executed concurrently. Operations outside the queue, such as ``Characteristic/read(timeout:)->Data``, do not wait.
    ///
    /// If there is no link when the turn of the run comes, the run connects, with the arguments of the last `connect`,
    /// or waits for the attempt that is active. While the adapter is off, the run waits for it. The next run uses a
    /// link that was made only for runs; that link ends with the last run, unless the application has called `connect`
    /// or `reconnect`. The stream of the last `connect` reports it as any other link.
    ///
    /// `work` receives a ``ConnectedPeripheral``, and is executed in a task that inherits the caller's priority and task-local
    /// values, on ``CentralManager/executor`` if the caller is, else on threads of the library or workers of a dispatch queue.
    ///
    /// Cancelling the task that waits withdraws a run that waits, and cancels the task of `work`: an operation of the
    /// ``ConnectedPeripheral`` that `work` waits for throws `CancellationError`. This method and the next run wait for the end
    /// of `work`, also if the run has failed. If `work` waits for anything else, it must respond to cancellation itself, as in a
    /// task group.
    ///
    /// A `run` of the same peripheral inside `work`, directly or in a task that `work` has started, would wait for
    /// itself. It fails at once with ``PeripheralError/runInsideRun``; in a detached task or on a queue it does not.
    /// - Parameters:
    ///   - timeout: The time limit, more than zero; `nil` for none. It begins when the turn of the run comes, and includes
    ///     connecting.
    ///   - work: The operations to execute.
    /// - Returns: The value that `work` returns.
    /// - Throws: The error that `work` throws; ``PeripheralError/disconnected`` if the link is lost during the run;
    ///   ``PeripheralError/pairing(_:)`` if the peripheral no longer has the keys of its bond;
    ///   ``PeripheralError/forcedDisconnect`` if the application ends the link (all runs that wait fail too);
    ///   ``PeripheralError/connectionTimeout`` and ``PeripheralError/connectionFailed(_:)`` if there was no link and none could
    ///   be made; ``PeripheralError/runTimeout`` if the time limit is exceeded later; and `CancellationError`.
    public func run<T: Sendable>(
        timeout: Duration? = nil, _ work: @escaping @Sendable @concurrent (ConnectedPeripheral) async throws -> T
    ) async throws -> T {
        try Task.checkCancellation()
        let (run, future) = PeripheralRun.begin(self, timeout.seconds, work)
        let outcome = await withTaskCancellationHandler {
            await future.outcome
        } onCancel: {
            run.cancel()
        }
        await run.end()
        return try outcome.get()
    }
}

/// One call of `run`: the task with the application's work, which waits for its turn.
final class PeripheralRun: Sendable {
    private enum Phase { case active, stopped, over }

    /// The run that the current task is a part of.
    @TaskLocal static var current: PeripheralRun?

    let session: CentralSession
    let key: PeripheralKey
    let id: OperationID
    /// The innermost run that had not ended and inside which this one was requested. References to ended runs would
    /// keep all previous runs in memory if each run's work requests the next one in a task of its own.
    private let outer: PeripheralRun?
    private let turn = Promise<Void>()
    private let phase = Locked(Phase.active)
    private let task = Locked<Task<Void, Never>?>(nil)

    init(_ id: OperationID, of peripheral: Peripheral) {
        self.id = id
        session = peripheral.session
        key = peripheral.key
        outer = sequence(first: PeripheralRun.current) { $0?.outer }.first { $0?.isOver == false } ?? nil
    }

    /// Whether the run was requested inside a run of the same peripheral that has not ended.
    private var isInsideItsLike: Bool {
        sequence(first: outer, next: { $0?.outer }).contains { outer in
            guard let outer else { return false }
            return outer.session === session && outer.key == key && !outer.isOver
        }
    }

    private var isOver: Bool { phase.withLock { $0 == .over } }

    /// Adds a run to the queue, whose work is executed in a task that inherits from the caller's. The future is completed
    /// once, possibly before the work has ended.
    static func begin<T: Sendable>(
        _ peripheral: Peripheral, _ timeout: TimeInterval,
        _ work: @escaping @Sendable @concurrent (ConnectedPeripheral) async throws -> T
    ) -> (run: PeripheralRun, future: Future<T>) {
        let (session, key) = (peripheral.session, peripheral.key)
        let run = PeripheralRun(session.core.withLock { $0.makeOperation() }, of: peripheral)
        guard timeout > 0 else {
            let text = "A run's timeout is more than zero seconds, not \(timeout)."
            return (run, session.failed(PeripheralError.invalidArgument(text)))
        }
        guard !run.isInsideItsLike else { return (run, session.failed(PeripheralError.runInsideRun)) }
        let future = Future<T>()
        let result = Locked<Result<T, any Error>?>(nil)
        let task = Task(executorPreference: session.executor.inherited ?? ResumingThreadExecutor.shared) {
            let ended: Result<T, any Error>
            do {
                try await run.turn.future.value
                try Task.checkCancellation()
                ended = .success(
                    try await $current.withValue(run) { try await work(ConnectedPeripheral(peripheral, run)) })
            } catch {
                ended = .failure(error)
            }
            run.phase.withLock { $0 = .over }
            result.withLock { $0 = ended }
            // Also if the work never began.
            session.decide(key) { $0.runEnded(run.id, into: &$1) }
        }
        run.task.withLock { $0 = task }
        let completion = CentralSession.Completion(peripheral: key, hasLimit: timeout.isFinite) { outcome in
            _ = session.use(of: key) { $0.runs.removeValue(forKey: run.id) }
            run.stop()
            switch (outcome, result.withLock { $0 }) {
            case (.failed(let failure), _): future.complete(.failure(failure.error))
            case (_, .success(let value)?): future.complete(.success(value))
            case (_, .failure(let error)?): future.complete(.failure(error))
            case (_, nil): future.complete(.failure(PeripheralError.disconnected))
            }
        }
        let isAccepted = session.decideIfOpen { core in
            core.completions[run.id] = completion
            core.decide(key) { $0.runAsked(run.id, timeout: timeout, into: &$1) }
            core.state.use(of: key).runs[run.id] = run
        }
        if !isAccepted { session.complete { completion.settle(.failed(.peripheral(.disconnected))) } }
        return (run, future)
    }

    /// Starts the work: the turn of the run has come.
    func begin() { turn.success(()) }

    func stop() {
        phase.withLock { if $0 != .over { $0 = .stopped } }
        task.withLock { $0 }?.cancel()
    }

    /// Cancels the run at the request of the application. Any thread.
    func cancel() { session.decide(key) { $0.cancelRun(id, .cancelled, into: &$1) } }

    /// Returns when the task has ended.
    func end() async { await task.withLock { $0 }?.value }

    /// Throws if the run must not execute any further operation.
    func check() throws {
        switch phase.withLock({ $0 }) {
        case .active: break
        case .stopped: throw CancellationError()
        case .over: throw PeripheralError.runEnded
        }
    }
}
