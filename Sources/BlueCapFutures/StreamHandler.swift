public import Synchronization

/// Receives the elements of a stream, each once and in order.
///
/// Only the thread that is delivering for the stream calls `receive` and `finish`, so a handler needs no lock of its own
/// unless it passes elements to another thread.
///
/// This is one class with closures, not a family of classes: the methods of a generic class that are called through its
/// method table are not specialised for the element, but closures created in specialised code are.
@usableFromInline
final class StreamHandler<T> {
    @usableFromInline let token: CancelToken
    @usableFromInline let cancelled = Atomic<Bool>(false)
    /// Called with each element.
    @usableFromInline let handler: Handler<T>
    /// Called with elements that arrive together. It is a closure even if it only calls `receive` for each of them,
    /// because it is created where the element's type is known. A loop over elements of an unknown type looks the type up
    /// for each.
    @usableFromInline let batchHandler: (StreamHandler<T>, [Try<T>]) -> Void
    /// Whether it takes elements that arrive together one by one, so that it needs no array of them.
    @usableFromInline let takesOneByOne: Bool
    @usableFromInline let finished: (() -> Void)?
    @usableFromInline let stopped: (() -> Void)?
    /// The handler to which this one passes elements on a context; it is cancelled with this one.
    @usableFromInline let target: StreamHandler<T>?

    @inlinable
    init(
        _ handler: Handler<T>, token: CancelToken = .uncancellable, batch: (([Try<T>]) -> Void)? = nil,
        finished: (() -> Void)? = nil, stopped: (() -> Void)? = nil, target: StreamHandler<T>? = nil
    ) {
        self.handler = handler
        self.token = token
        batchHandler =
            if let batch {
                { receiver, elements in if !receiver.isCancelled { batch(elements) } }
            } else {
                { receiver, elements in for element in elements { receiver.receive(element) } }
            }
        takesOneByOne = batch == nil
        self.finished = finished
        self.stopped = stopped
        self.target = target
    }

    /// Whether nothing is received any more. It may change on any thread.
    @inlinable
    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    @inlinable @inline(__always)
    func receive(_ element: Try<T>) {
        if !isCancelled { handler(element) }
    }

    @inlinable
    func receive(contentsOf batch: [Try<T>]) { batchHandler(self, batch) }

    /// Receives values one by one. The caller's closure is looked up once.
    @inlinable
    func receive(values: [T]) {
        switch handler {
        case .success(let handle):
            for value in values {
                if isCancelled { return }
                handle(value)
            }
        case .failure: return
        default:
            for value in values { receive(.success(value)) }
        }
    }

    /// Called after the last element.
    @inlinable
    func finish() {
        if !isCancelled { finished?() }
    }

    /// Ends receiving. Returns false if it had already ended.
    func cancel() -> Bool {
        guard !cancelled.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        _ = target?.cancel()
        stopped?()
        return true
    }

    /// Returns a handler that passes elements to this one on `context`, where at most the latest `limit` wait.
    @inlinable @inline(__always)
    func dispatched(on context: any ExecutionContext, waiting limit: Int = .max) -> StreamHandler<T> {
        let mailbox = StreamMailbox(self, context: context, limit: limit)
        return StreamHandler(
            .completion { mailbox.put($0) }, token: token, batch: { mailbox.put(contentsOf: $0) },
            finished: { mailbox.finish() }, target: self)
    }

    /// Returns a handler that adds the result of `transform` for each element to another stream, and finishes that stream.
    @inlinable
    static func transforming<M>(
        into stream: FutureStream<M>, token: CancelToken = .uncancellable,
        transform: @escaping (Try<T>) -> Try<M>
    ) -> StreamHandler<T> {
        let link = StreamLink(stream)
        return StreamHandler(
            .completion { link.send(transform($0)) }, token: token, batch: { link.send(contentsOf: $0.map(transform)) },
            finished: { link.finish() })
    }
}

/// The handlers of a stream.
@usableFromInline
struct StreamHandlers<T> {
    @usableFromInline let all: [StreamHandler<T>]
    /// The handler, if there is only one. It is unmanaged, so that delivering to it costs no reference counting.
    @usableFromInline let sole: Unmanaged<StreamHandler<T>>?

    init(_ all: [StreamHandler<T>] = []) {
        self.all = all
        sole = all.count == 1 ? .passUnretained(all[0]) : nil
    }

    var isEmpty: Bool { all.isEmpty }

    @inlinable @inline(never)
    func receive(_ element: Try<T>) {
        for handler in all { handler.receive(element) }
    }
}

/// Passes elements to a handler on a context, with at most one task of the context scheduled at a time.
///
/// However many elements arrive before that task runs, or arrive together, one task receives them all.
// Inlinable, so that it is specialised for the element: code for any element looks up the types that it uses at each call.
// `@unchecked`: the state is accessed under its lock, and `handler` only in the one task that drains. For the same reason the
// runtime need not check the accesses.
@usableFromInline
final class StreamMailbox<T>: @unchecked Sendable {
    /// After this many elements a task ends, so that the context can run other tasks.
    @inlinable static var elementsPerTask: Int { 1024 }

    @usableFromInline let handler: StreamHandler<T>
    @usableFromInline let context: any ExecutionContext
    /// How many elements may wait; the oldest is removed first.
    @usableFromInline let limit: Int
    @usableFromInline let state = StateWord()
    // Accessed under the lock of `state`.
    @exclusivity(unchecked) @usableFromInline var waiting: [Try<T>] = []
    @exclusivity(unchecked) @usableFromInline var isScheduled = false
    @exclusivity(unchecked) @usableFromInline var isFinished = false

    @inlinable
    init(_ handler: StreamHandler<T>, context: any ExecutionContext, limit: Int) {
        self.handler = handler
        self.context = context
        self.limit = limit
    }

    @inlinable
    func put(_ element: Try<T>) {
        put { waiting.append(element) }
    }

    @inlinable
    func put(contentsOf batch: [Try<T>]) {
        if batch.isEmpty { return }
        put { if waiting.isEmpty { waiting = batch } else { waiting += batch } }
    }

    @inlinable
    func finish() {
        put { isFinished = true }
    }

    /// Runs `change` under the lock, and schedules a task if none is scheduled.
    @inlinable
    func put(_ change: () -> Void) {
        var displaced: ArraySlice<Try<T>> = []
        let mustSchedule = state.withLock {
            change()
            if waiting.count > limit { displaced = removeOldest() }
            defer { isScheduled = true }
            return !isScheduled
        }
        if mustSchedule { schedule() }
        withExtendedLifetime(displaced) {}
    }

    /// Removes what is more than ``limit``, which is released after the lock.
    @usableFromInline @inline(never)
    func removeOldest() -> ArraySlice<Try<T>> {
        let displaced = waiting.prefix(waiting.count - limit)
        waiting.removeFirst(displaced.count)
        return displaced
    }

    @inlinable
    func schedule() {
        context.execute { self.drain() }
    }

    @inlinable
    func drain() {
        var handled = 0
        while handled < Self.elementsPerTask {
            let (batch, mustFinish) = state.withLock {
                let batch = waiting
                waiting = []
                // After the end `isScheduled` stays set, so that no further task is scheduled.
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

/// A reference to a stream from its source, which is another stream or an object that would otherwise keep the stream for
/// the rest of the process.
@usableFromInline
package final class StreamLink<T> {
    /// A variable only because `isKnownUniquelyReferenced` requires one; it does not change, so the runtime need not check accesses.
    @exclusivity(unchecked) private var holder: FutureStream<T>
    /// The same stream, as a constant, so that adding elements costs no access check and no reference counting.
    @usableFromInline let unmanaged: Unmanaged<FutureStream<T>>

    @usableFromInline
    package init(_ stream: FutureStream<T>) {
        holder = stream
        unmanaged = .passUnretained(stream)
    }

    /// Whether no other code has a reference to the stream. A stream that has no handler either will never be read, so it
    /// need not keep anything. Call this only for a stream without a handler.
    @usableFromInline
    func isForgotten() -> Bool {
        isKnownUniquelyReferenced(&holder)
    }

    /// Whether the stream has no handler and no other code has a reference to it. Call this on one thread at a time.
    package func isAbandoned() -> Bool { !holder.isWatched && isForgotten() }

    // Inlinable, so that they are specialised for the element.
    @inlinable @inline(__always)
    package func send(_ element: Try<T>) {
        unmanaged._withUnsafeGuaranteedRef { stream in
            if stream.isWatched || !isForgotten() { stream.complete(element) }
        }
    }

    @inlinable
    package func send(contentsOf batch: [Try<T>]) {
        unmanaged._withUnsafeGuaranteedRef { stream in
            if stream.isWatched || !isForgotten() { stream.complete(contentsOf: batch) }
        }
    }

    @inlinable
    package func send(values: [T]) {
        unmanaged._withUnsafeGuaranteedRef { stream in
            if stream.isWatched || !isForgotten() { stream.complete(values: values) }
        }
    }

    @usableFromInline
    package func finish() {
        holder.finish()
    }
}
