import BlueZ
import Futures
import Reactor

/// What users ask of single peripherals, and what follows from it.
extension CentralSession {
    /// What waits for an operation: called with its failure, or with `nil`, where promises are completed.
    typealias Completion = @Sendable ((any Error)?) -> Void

    /// Has something decided about a peripheral, on any thread; answers false where the manager has ended.
    @discardableResult
    func decide(
        _ key: PeripheralKey, _ decision: (inout PeripheralState) -> [PeripheralState.Effect]
    ) -> Bool {
        decideIfOpen { core in core.state.peripheral(key, decision) }
    }

    /// Has an operation of a peripheral decided, on any thread. The future is settled exactly once: when the operation
    /// is, or at once where the manager has ended.
    /// - Parameter value: what the operation yields, taken when it has succeeded.
    func operation<T: Sendable>(
        on key: PeripheralKey, value: @escaping @Sendable () -> T,
        _ decision: (inout PeripheralState, OperationID) -> [PeripheralState.Effect]
    ) -> Future<T> {
        let promise = Promise<T>()
        let completion: Completion = { error in
            if let error { promise.failure(error) } else { promise.success(value()) }
        }
        let isAccepted = decideIfOpen { core in
            let id = core.makeOperation(completion)
            return core.state.peripheral(key) { decision(&$0, id) }
        }
        if !isAccepted { complete { completion(PeripheralError.disconnected) } }
        return promise.future
    }

    // MARK: Doing; on the loop

    func perform(_ effect: PeripheralState.Effect, of key: PeripheralKey) {
        switch effect {
        case .startTimer(let timer, let seconds): start(.peripheral(key, timer), after: seconds)
        case .cancelTimer(let timer): cancel(.peripheral(key, timer))
        case .settle(let id, let failure):
            guard let completion = core.withLock({ $0.completions.removeValue(forKey: id) }) else { return }
            complete { completion(failure?.error) }
        case .attributes(let effect): perform(effect, of: key)
        case .subscription(let id, let attribute, let effect):
            perform(effect, of: NotificationChannels.Subject(peripheral: key, characteristic: id), attribute)
        case .connection(let effect, let device): perform(effect, of: key, device)
        case .beginRun(let id): core.withLock { $0.runs[id] }?.begin()
        case .stopRun(let id): core.withLock { $0.runs.removeValue(forKey: id) }?.stop()
        }
    }

    // MARK: What BlueZ tells; on the loop

    /// A device of our adapter has come or changed in what matters to its link.
    func linkChanged(_ key: PeripheralKey, _ facts: PeripheralState.Facts) {
        decide { core in core.state.factsChanged(facts, of: key) }
    }
}
