/// Hands elements to a handler on a context: a mailbox with at most one task under way.
///
/// However many elements arrive before that task runs, or arrive together, the context is woken once for all of them.
final class StreamMailbox<T> {
    /// After so many elements a task makes room for others that the context has to run.
    private static var elementsPerTask: Int { 1024 }

    private let handler: StreamHandler<T>
    private let context: any ExecutionContext
    /// How many elements may wait; the oldest goes first.
    private let limit: Int
    private let state = StateWord()
    // Touched under the lock of `state`.
    private var waiting: [Try<T>] = []
    private var isScheduled = false
    private var isFinished = false

    init(_ handler: StreamHandler<T>, context: any ExecutionContext, limit: Int) {
        self.handler = handler
        self.context = context
        self.limit = limit
    }

    func put(_ element: Try<T>) {
        var displaced: [Try<T>] = []
        let mustSchedule = state.withLock { _ in
            if waiting.count >= limit { swap(&displaced, &waiting) }
            waiting.append(contentsOf: displaced.suffix(limit - 1))
            waiting.append(element)
            return claimTask()
        }
        if mustSchedule { schedule() }
        withExtendedLifetime(displaced) {}
    }

    func put(contentsOf batch: [Try<T>]) {
        if batch.isEmpty { return }
        var displaced: [Try<T>] = []
        let mustSchedule = state.withLock { _ in
            if waiting.isEmpty, batch.count <= limit {
                waiting = batch
            } else if waiting.count <= limit - batch.count {
                waiting.append(contentsOf: batch)
            } else {
                swap(&displaced, &waiting)
                waiting.append(contentsOf: (displaced + batch).suffix(limit))
            }
            return claimTask()
        }
        if mustSchedule { schedule() }
        withExtendedLifetime(displaced) {}
    }

    func finish() {
        let mustSchedule = state.withLock { _ in
            isFinished = true
            return claimTask()
        }
        if mustSchedule { schedule() }
    }

    /// Called under the lock: whether a task is needed, and none is under way.
    private func claimTask() -> Bool {
        defer { isScheduled = true }
        return !isScheduled
    }

    private func schedule() {
        // Captures this object, which locks its state. At most one task drains it, and `handler` is called there only.
        context.execute(assumeSendable { self.drain() })
    }

    private func drain() {
        var handled = 0
        while handled < Self.elementsPerTask {
            let (batch, mustFinish) = state.withLock { _ in
                let batch = waiting
                waiting = []
                // After the end `isScheduled` stays set, so that nothing is ever scheduled again.
                if batch.isEmpty { isScheduled = isFinished }
                return (batch, batch.isEmpty && isFinished)
            }
            if mustFinish { handler.finish() }
            if batch.isEmpty { return }
            handler.receive(contentsOf: batch)
            handled += batch.count
        }
        schedule()
    }
}
