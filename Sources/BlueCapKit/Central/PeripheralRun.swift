import Futures
import Reactor

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
