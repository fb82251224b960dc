package import Foundation

extension Bluejay {
    /// Runs a series of operations on a thread of its own, one after the other as they are written.
    ///
    /// ```swift
    /// bluejay.run(backgroundTask: { peripheral -> UInt8 in
    ///     try peripheral.write(to: location, value: UInt8(0))
    ///     return try peripheral.read(from: location)
    /// }) { (result: RunResult<UInt8>) in
    ///     print(result)
    /// }
    /// ```
    ///
    /// One task runs at a time, and while it runs nothing else can be asked for: the outer Bluejay answers with
    /// ``BluejayError/backgroundTaskRunning``, and inside of the task with ``BluejayError/calledInsideBackgroundTask``. The
    /// exceptions are `cancelEverything` and `stopAndExtractBluetoothState`, which end what the task waits for. When the
    /// connection is lost, whatever the task waits for and asks for fails; observers and the ``DisconnectHandler`` hear of
    /// the loss when the task is over.
    ///
    /// - Parameters:
    ///   - backgroundTask: Called once, where there is a connection, on a thread that may be blocked.
    ///   - completionOnMainThread: Called once, on the callback queue: with what the task has returned or thrown, or
    ///     with why it was not run.
    @preconcurrency
    public func run<Result>(
        backgroundTask: @escaping @Sendable (SynchronizedPeripheral) throws -> Result,
        completionOnMainThread: @escaping (RunResult<Result>) -> Void
    ) {
        session.run(backgroundTask, completionOnMainThread)
    }

    /// The same with something for the task to work with, which nobody else touches until the task is over.
    @preconcurrency
    public func run<UserData, Result>(
        userData: UserData,
        backgroundTask: @escaping @Sendable (SynchronizedPeripheral, UserData) throws -> Result,
        completionOnMainThread: @escaping (RunResult<Result>) -> Void
    ) {
        let handed = Handed(userData)
        session.run({ try backgroundTask($0, handed.value) }, completionOnMainThread)
    }

    /// Waits until the background task waits for Bluetooth, or there is none: for tests, which drive the time.
    package func awaitBackgroundTask(limit: TimeInterval = 60) -> Bool { session.gate.awaitStillness(limit: limit) }
}

extension BluejaySession {
    func run<R>(
        _ task: @escaping @Sendable (SynchronizedPeripheral) throws -> R, _ completion: @escaping (RunResult<R>) -> Void
    ) {
        let caller = caller
        let (refusal, number) = core.withLock { core -> (BluejayError?, Int) in
            let refusal = core.machine.taskRequested(by: caller)
            if refusal == nil {
                core.task += 1
                gate.announce()
            }
            return (refusal, core.task)
        }
        if let refusal { return call { completion(.failure(refusal)) } }
        let handed = Handed(completion)
        taskQueue.async { [self] in
            gate.begin()
            let result: RunResult<R>
            do {
                result = .success(try task(SynchronizedPeripheral(session: self, task: number)))
            } catch {
                result = .failure(error)
            }
            let outcome = Handed(result)
            work { core in
                // The completion first: who hears of a disconnection next may rely on the task being over.
                let isPresent = core.task == number
                return [.call { self.call { handed.value(outcome.value) } }]
                    + (isPresent ? core.machine.taskEnded().map { .effect($0) } : [])
            }
            gate.end()
        }
    }
}
