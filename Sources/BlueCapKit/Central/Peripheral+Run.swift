public import Foundation
public import Futures
import Reactor

/// Several operations as one: a script that has the peripheral to itself.
///
/// ```swift
/// let location = try await peripheral.run(timeout: 30) { connected in
///     try await connected.write(UInt8(1), to: controlPoint)
///     return try await connected.read(bodySensorLocation)
/// }
/// ```
extension Peripheral {
    /// Executes `work` when it is first in the queue and there is a link. Nothing else of the queue is executed at that time.
    ///
    /// Runs of one peripheral wait for each other, in the order in which they were asked for; those of several
    /// peripherals go on side by side. What is asked for besides, such as ``Characteristic/read(timeout:)->Future<Characteristic>``, does not
    /// wait for them.
    ///
    /// If there is no link when its turn has come, the run connects, with the arguments of the last `connect`, or
    /// waits for the try that is under way; while the adapter is off it waits for that. A link that was made for runs
    /// alone is used by the next one, and ends with the last, unless the application has called `connect` or
    /// `reconnect`. The stream of the last `connect` reports it as any other link.
    ///
    /// `work` is given a ``ConnectedPeripheral``, and is cancelled, as tasks are, when the run is: what it is waiting for
    /// there throws `CancellationError`. The next run waits for its end. It runs in a task that inherits the caller's
    /// priority and task-local values. A `run` of the same peripheral inside it, directly or in a task that it has
    /// begun, would wait for itself and fails at once with ``PeripheralError/runInsideRun``; in a detached task, or on
    /// a queue, that is not seen.
    ///
    /// - Parameters:
    ///   - timeout: In seconds, more than zero, from the moment at which its turn comes; connecting counts.
    ///   - cancelToken: Cancels the run when it is handed to `cancel(_:)` of the future: at once, whether it waits or is
    ///     at work.
    ///   - work: What is to be done.
    /// - Returns: What `work` has returned or thrown; or, as soon as it is known, without waiting for the end of `work`:
    ///   ``PeripheralError/disconnected`` when the link is lost in the midst, ``PeripheralError/forcedDisconnect`` when the
    ///   application ends it (all runs that wait fail then, too), ``PeripheralError/connectionTimeout`` and
    ///   ``PeripheralError/connectionFailed(_:)`` where there was none, ``PeripheralError/runTimeout`` where the time is up
    ///   later, `CancellationError`.
    @discardableResult
    public func run<T: Sendable>(
        timeout: TimeInterval = .infinity, cancelToken: CancelToken = .uncancellable,
        _ work: @escaping @Sendable (ConnectedPeripheral) async throws -> T
    ) -> Future<T> {
        let (run, future) = begin(timeout, work)
        future.whenCancelled(cancelToken) { run.cancel() }
        return future
    }

    /// The same, waited for: it has its place in the queue when it is called, and returns when `work` has ended.
    ///
    /// The other form is chosen where the type of a future is spelled out, or outside of `async` code. Cancelling the
    /// task that waits cancels the run.
    ///
    /// Since it waits for the end of `work`, whatever becomes of the run, nothing of a batch goes on behind the caller's
    /// back; and `work` that waits for something else than its ``ConnectedPeripheral`` has to heed cancellation itself, as
    /// in a task group.
    /// - Parameters:
    ///   - timeout: In seconds, more than zero, from the moment at which its turn comes; connecting counts.
    ///   - work: What is to be done.
    /// - Returns: What `work` has returned.
    /// - Throws: What `work` has thrown, or what the other form fails with.
    public func run<T: Sendable>(
        timeout: TimeInterval = .infinity, _ work: @escaping @Sendable (ConnectedPeripheral) async throws -> T
    ) async throws -> T {
        try Task.checkCancellation()
        let (run, future) = begin(timeout, work)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                future.onComplete(context: ImmediateContext()) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            run.cancel()
        }
        await run.end()
        return try outcome.get()
    }

    /// Queues a run. The future is completed once; it may be before the work has ended.
    private func begin<T: Sendable>(
        _ timeout: TimeInterval, _ work: @escaping @Sendable (ConnectedPeripheral) async throws -> T
    ) -> (run: PeripheralRun, future: Future<T>) {
        let run = PeripheralRun(session.core.withLock { $0.makeOperation() }, of: self)
        if let refusal = refusal(of: run, timeout: timeout) { return (run, session.failed(refusal)) }
        let future = Future<T>()
        let result = Locked<Result<T, any Error>?>(nil)
        run.start {
            try await work(ConnectedPeripheral(self, run))
        } ended: { [session, key] ended in
            result.withLock { $0 = ended }
            session.decide(key) { $0.runEnded(run.id, into: &$1) }
        }
        let completion = CentralSession.Completion { [session] outcome in
            _ = session.core.withLock { $0.runs.removeValue(forKey: run.id) }
            run.stop()
            switch (outcome, result.withLock { $0 }) {
            case (.failed(let failure), _): future.complete(.failure(failure.error))
            case (_, .success(let value)?): future.complete(.success(value))
            case (_, .failure(let error)?): future.complete(.failure(error))
            case (_, nil): future.complete(.failure(PeripheralError.disconnected))
            }
        }
        let isAccepted = session.decideIfOpen { core in
            core.begin(run.id, completion)
            core.runs[run.id] = run
            core.hold(self)
            core.state.peripheral(key, into: &core.shell.orders) {
                $0.runAsked(run.id, timeout: timeout, into: &$1)
            }
        }
        if !isAccepted { session.complete { completion.settle(.failed(.peripheral(.disconnected))) } }
        return (run, future)
    }

    private func refusal(of run: PeripheralRun, timeout: TimeInterval) -> PeripheralError? {
        guard timeout > 0 else {
            return .invalidArgument("A run's timeout is more than zero seconds, not \(timeout).")
        }
        return run.isInsideItsLike ? .runInsideRun : nil
    }
}

/// One call of `run`: the task with the application's work, which waits for its turn.
final class PeripheralRun: Sendable {
    private enum Phase { case waiting, atWork, stopped, over }

    /// The run that the present task is a part of.
    @TaskLocal static var current: PeripheralRun?

    let session: CentralSession
    let key: PeripheralKey
    let id: OperationID
    /// The run inside which this one was requested, unless that has ended: otherwise work that always begins the next run in
    /// a task of its own would reference all runs before it.
    private let outer: PeripheralRun?
    private let turn = Promise<Void>()
    private let phase = Locked(Phase.waiting)
    private let task = Locked<Task<Void, Never>?>(nil)

    init(_ id: OperationID, of peripheral: Peripheral) {
        self.id = id
        session = peripheral.session
        key = peripheral.key
        outer = sequence(first: PeripheralRun.current) { $0?.outer }.first { $0?.isOver == false } ?? nil
    }

    /// Whether it was requested inside a run of the same peripheral that has not ended.
    var isInsideItsLike: Bool {
        sequence(first: outer, next: { $0?.outer }).contains { outer in
            guard let outer else { return false }
            return outer.session === session && outer.key == key && !outer.isOver
        }
    }

    private var isOver: Bool { phase.withLock { $0 == .over } }

    /// Executes the work in a task that inherits from the caller's. Calls `ended` with the outcome, also if the work never
    /// began.
    func start<T: Sendable>(
        _ work: @escaping @Sendable () async throws -> T,
        ended: @escaping @Sendable (Result<T, any Error>) -> Void
    ) {
        let task = Task(executorPreference: session.loop.taskExecutor) {
            let result: Result<T, any Error>
            do {
                try await self.turn.future.value
                try Task.checkCancellation()
                result = .success(try await Self.$current.withValue(self) { try await work() })
            } catch {
                result = .failure(error)
            }
            self.phase.withLock { $0 = .over }
            ended(result)
        }
        self.task.withLock { $0 = task }
    }

    /// Its turn has come.
    func begin() {
        phase.withLock { if $0 == .waiting { $0 = .atWork } }
        turn.success(())
    }

    /// Ends the work.
    func stop() {
        phase.withLock { if $0 != .over { $0 = .stopped } }
        task.withLock { $0 }?.cancel()
    }

    /// Ends the run at the request of the application. Any thread.
    func cancel() { session.decide(key) { $0.cancelRun(id, .cancelled, into: &$1) } }

    /// Returns when the task has ended.
    func end() async { await task.withLock { $0 }?.value }

    /// Throws if the run must not do anything any more.
    func check() throws {
        switch phase.withLock({ $0 }) {
        case .atWork: break
        case .waiting, .stopped: throw CancellationError()
        case .over: throw PeripheralError.runEnded
        }
    }
}
