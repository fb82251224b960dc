import BlueZ
import Futures
import Reactor

/// Operations on peripherals.
extension CentralSession {
    /// Settles an operation with its outcome; called where promises are completed.
    typealias Completion = @Sendable (Order.Outcome) -> Void

    /// Decides about a peripheral, on any thread. Returns false if the manager has ended.
    @discardableResult
    func decide(_ key: PeripheralKey, _ decision: (inout PeripheralState, inout Orders) -> Void) -> Bool {
        decideIfOpen { $0.state.peripheral(key, into: &$0.orders, decision) }
    }

    /// Begins an operation of a peripheral, on any thread. The future is completed exactly once: when the operation is
    /// settled, or at once if the manager has ended.
    /// - Parameter value: The result of the operation when it has succeeded.
    func operation<T: Sendable>(
        on key: PeripheralKey, yielding value: T,
        _ decision: (inout PeripheralState, OperationID, inout Orders) -> Void
    ) -> Future<T> {
        let future = Future<T>()
        begin(on: key, decision) { outcome in
            if case .failed(let failure) = outcome {
                future.complete(.failure(failure.error))
            } else {
                future.complete(.success(value))
            }
        }
        return future
    }

    /// The same for an operation whose outcome has a value.
    func operation<T: Sendable>(
        on key: PeripheralKey, value: @escaping @Sendable (Order.Outcome) -> T?,
        _ decision: (inout PeripheralState, OperationID, inout Orders) -> Void
    ) -> Future<T> {
        let future = Future<T>()
        begin(on: key, decision) { outcome in
            if case .failed(let failure) = outcome {
                future.complete(.failure(failure.error))
            } else if let value = value(outcome) {
                future.complete(.success(value))
            } else {
                future.complete(.failure(PeripheralError.disconnected))
            }
        }
        return future
    }

    private func begin(
        on key: PeripheralKey, _ decision: (inout PeripheralState, OperationID, inout Orders) -> Void,
        _ completion: @escaping Completion
    ) {
        let isAccepted = decideIfOpen { core in
            let id = core.makeOperation()
            core.completions[id] = completion
            core.state.peripheral(key, into: &core.orders) { decision(&$0, id, &$1) }
        }
        if !isAccepted { complete { completion(.failed(.peripheral(.disconnected))) } }
    }

    /// Decides about a peripheral on the loop, outside any report, and executes the orders at once.
    func decideHere(_ key: PeripheralKey, _ decision: (inout PeripheralState, inout Orders) -> Void) {
        let mustDrain = core.withLock { core in
            guard core.state.hasState(of: key) else { return false }
            core.state.peripheral(key, into: &core.orders, decision)
            return core.orders.mustWake()
        }
        if mustDrain { drain() }
    }

    /// Reads the state of a peripheral; `nil` if there is none.
    func readState<R>(of key: PeripheralKey, _ body: (borrowing PeripheralState) -> R?) -> R? {
        core.withLock { $0.state.readState(of: key, body) }
    }

    /// A future that has failed, completed where the manager's promises are.
    func failed<T: Sendable>(_ error: any Error) -> Future<T> {
        let promise = Promise<T>()
        complete { promise.failure(error) }
        return promise.future
    }

    /// A future that has succeeded, completed where the manager's promises are.
    func succeeded() -> Future<Void> {
        let promise = Promise<Void>()
        complete { promise.success(()) }
        return promise.future
    }
}
