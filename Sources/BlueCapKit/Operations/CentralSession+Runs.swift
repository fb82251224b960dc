import Foundation
import Futures

/// Runs: what users ask for. What is decided about them is part of the peripheral's state.
extension CentralSession {
    /// Has the work done when its turn has come. The future is settled once; it may be before the work has ended.
    func run<T: Sendable>(
        on peripheral: Peripheral, timeout: TimeInterval,
        _ work: @escaping @Sendable (ConnectedPeripheral) async throws -> T
    ) -> (run: PeripheralRun, future: Future<T>) {
        let key = peripheral.key
        let run = PeripheralRun(core.withLock { $0.makeOperation() }, of: peripheral)
        if let refusal = refusal(of: run, timeout: timeout) { return (run, failed(refusal)) }
        let promise = Promise<T>()
        let outcome = Locked<Result<T, any Error>?>(nil)
        run.start {
            try await work(ConnectedPeripheral(peripheral, run))
        } ended: { [self] result in
            outcome.withLock { $0 = result }
            decide(key) { $0.runEnded(run.id, into: &$1) }
        }
        let completion: Completion = { [self] settled in
            var error: (any Error)?
            if case .failed(let failure) = settled { error = failure.error }
            _ = core.withLock { $0.runs.removeValue(forKey: run.id) }
            run.stop()
            switch outcome.withLock({ $0 }) {
            case .success(let value)? where error == nil: promise.success(value)
            case .failure(let own)? where error == nil: promise.failure(own)
            case .success?, .failure?, nil: promise.failure(error ?? PeripheralError.disconnected)
            }
        }
        let isAccepted = decideIfOpen { core in
            core.completions[run.id] = completion
            core.runs[run.id] = run
            hold(peripheral, in: &core)
            core.state.peripheral(key, into: &core.orders) { $0.runAsked(run.id, timeout: timeout, into: &$1) }
        }
        if !isAccepted { complete { completion(.failed(.peripheral(.disconnected))) } }
        return (run, promise.future)
    }

    private func refusal(of run: PeripheralRun, timeout: TimeInterval) -> PeripheralError? {
        guard timeout > 0 else {
            return .invalidArgument("A run's timeout is more than zero seconds, not \(timeout).")
        }
        return run.isInsideItsLike ? .runInsideRun : nil
    }

    func cancel(_ run: PeripheralRun) { decide(run.key) { $0.cancelRun(run.id, .cancelled, into: &$1) } }
}
