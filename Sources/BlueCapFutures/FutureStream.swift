/// Values that keep arriving: a sequence of completed futures.
///
/// Successes and failures are both elements; a failure does not end the stream. Usually a ``StreamPromise`` creates a
/// stream and adds its elements. Other code receives only the stream, so that it cannot add any.
///
/// ## Order
/// Every handler receives every element once, in the order in which the elements were added, on its context, also if
/// several threads add elements and handlers at the same time. A handler that is added late first receives the kept
/// elements and then the new ones, without a gap and without a repetition. No lock is held while a handler runs. What a
/// handler adds to its own stream is delivered after the handler returns.
///
/// A handler on a queue is scheduled once for all elements that have arrived since it last ran, not once for each.
///
/// The closure of a handler or an operator runs on its `context`, where the results of an operator are added to the stream
/// that it returns too; the default is ``QueueContext/futuresDefault``, a serial queue. A `cancelToken` that is passed to
/// ``cancel(_:)`` of this stream cancels them: the closure is released, and no longer called, and the stream that the operator
/// has returned receives no further element. The source of this stream continues.
///
/// ## Operators
/// The closure of an operator is called with each value; that of `recover`, `recoverWith` and `mapError` with each error. The
/// other elements pass. An error that the closure throws takes the place of the element.
///
/// If the closure returns a stream or a future, the returned stream has its elements, as they arrive. It ends when this
/// stream and all others have ended. After it is cancelled it receives nothing more, not even from the others.
///
/// ## What is kept
/// A stream keeps its latest `capacity` elements for handlers that are added late; the oldest is removed first.
/// - `capacity: 0` keeps nothing: elements reach only the handlers that exist when they are added.
/// - `capacity: Int.max`, the default, keeps everything until the first handler is added. After that the stream keeps the
///   latest ``watchedCapacity`` elements, so that a stream that runs for months does not fill the memory. Pass a number to
///   keep more.
///
/// The stream that `map` and the other operators return has the capacity of the one on which they are called. While it has
/// no handler and is not referenced elsewhere, it keeps nothing.
///
/// A stream of a `Sendable` type is `Sendable`; for other types see ``Future``.
// `@unchecked`: `backlog`, `inbox` and `hasCancelled` are accessed under the lock of `state` only. `handlers` is changed under
// the lock, and only by the thread that is delivering, so that thread may read it without the lock. `hasEnded` is accessed
// only by the thread that is delivering. For the same reason the runtime need not check the accesses.
public final class FutureStream<T> {
    /// What is going on in a stream; the flags of its `state`.
    @usableFromInline
    enum Flag {
        /// The stream has handlers.
        @inlinable static var watched: UInt32 { StateWord.firstFlag }
        /// One thread is calling the handlers.
        @inlinable static var delivering: UInt32 { StateWord.firstFlag << 1 }
        /// The thread that is delivering finds more to do in the inbox.
        @inlinable static var more: UInt32 { StateWord.firstFlag << 2 }
        /// The stream accepts no more elements.
        @inlinable static var finished: UInt32 { StateWord.firstFlag << 3 }
    }

    /// What happened while a thread was delivering. That thread processes the events in order.
    @usableFromInline
    enum Event {
        case element(Try<T>)
        case batch([Try<T>])
        /// A new handler, and the elements that were kept when it was added.
        case handler(StreamHandler<T>, kept: [Try<T>])
        case finish
    }

    /// How many elements a stream of capacity `Int.max` keeps once it has had a handler.
    public static var watchedCapacity: Int { 4096 }

    @usableFromInline let state = StateWord()
    @exclusivity(unchecked) @usableFromInline var backlog: Backlog<Try<T>>
    @exclusivity(unchecked) @usableFromInline var inbox = Ring<Event>()
    @exclusivity(unchecked) @usableFromInline var handlers = StreamHandlers<T>()
    @exclusivity(unchecked) private var hasCancelled = false
    /// Whether the handlers have been informed that the stream is finished.
    @exclusivity(unchecked) private var hasEnded = false

    /// Called when the last reader (a handler or a loop) has been cancelled, on any thread and under no lock; not if the
    /// stream is finished before. Set it before the stream is passed on.
    package var lastReaderEnded: (@Sendable () -> Void)?

    /// How many elements are kept at most.
    public let capacity: Int

    /// Creates an empty stream that keeps the latest `capacity` elements. ``complete(_:)`` adds elements, if no
    /// ``StreamPromise`` does.
    public init(capacity: Int = Int.max) {
        precondition(
            capacity >= 0, "The capacity of a FutureStream is at least 0, and 0 keeps nothing; it was \(capacity).")
        self.capacity = capacity
        backlog = Backlog(limit: capacity)
    }

    deinit {
        if handlers.isEmpty { return }
        let discarded = handlers.all
        handlers = StreamHandlers()
        ThreadWork.current.discard(discarded)
    }

    /// The kept elements, oldest first, each as a completed future.
    public var futures: [Future<T>] {
        state.withLock { backlog.elements }.map { Future(result: $0) }
    }

    /// How many elements are kept.
    public var count: Int {
        state.withLock { backlog.count }
    }

    /// How many elements were lost because there was no handler yet and the stream was full: those that newer ones
    /// displaced, or all, if `capacity` is 0.
    ///
    /// While there is a handler nothing is lost, however slow it is.
    public var droppedCount: Int {
        state.withLock { backlog.dropped }
    }

    /// Whether there is a handler.
    @inlinable @inline(__always)
    package var isWatched: Bool { state.flags & Flag.watched != 0 }

    /// Whether the stream accepts no more elements.
    package var isFinished: Bool { state.flags & Flag.finished != 0 }

    /// Whether there is a handler that was not added with this token. Can be called in a handler.
    package func isWatched(besides cancelToken: CancelToken) -> Bool {
        presentHandlers().contains { $0.token != cancelToken }
    }

    /// The handlers that are not cancelled, and those that are about to be added.
    private func presentHandlers() -> [StreamHandler<T>] {
        state.withLock {
            handlers.all
                + inbox.elements.compactMap { event in if case .handler(let handler, _) = event { handler } else { nil }
                }
        }.filter { !$0.isCancelled }
    }

    // MARK: Adding elements

    /// Adds an element. Returns false, and does nothing, if the stream is finished.
    @inlinable @discardableResult
    public func complete(_ element: Try<T>) -> Bool {
        guard capacity == 0, state.change(from: Flag.watched, to: Flag.watched | Flag.delivering) else {
            return keepAndDeliver(element)
        }
        deliver(element)
        return true
    }

    /// As `complete`, if the stream keeps elements, has no handler, or another thread is delivering.
    @inlinable
    func keepAndDeliver(_ element: Try<T>) -> Bool {
        let flags = state.lock()
        if flags & Flag.finished != 0 {
            state.unlock(flags)
            return false
        }
        let evicted = backlog.append(element, isReceived: flags & (Flag.watched | Flag.delivering) != 0)
        if flags & Flag.delivering != 0 {
            push(.element(element), flags)
        } else if flags & Flag.watched != 0 {
            state.unlock(flags | Flag.delivering)
            deliver(element)
        } else {
            state.unlock(flags)
        }
        withExtendedLifetime(evicted) {}
        return true
    }

    /// Adds elements together: one lock, and at most one task for each handler's context.
    @inlinable @discardableResult
    func complete(contentsOf batch: [Try<T>]) -> Bool {
        guard capacity == 0, !batch.isEmpty, state.change(from: Flag.watched, to: Flag.watched | Flag.delivering) else {
            return keepAndDeliver(contentsOf: batch)
        }
        deliver(contentsOf: batch)
        return true
    }

    /// Adds values together; without an array of elements if each handler takes them one by one.
    @inlinable @discardableResult
    func complete(values: [T]) -> Bool {
        let isDelivering =
            capacity == 0 && !values.isEmpty && state.change(from: Flag.watched, to: Flag.watched | Flag.delivering)
        if isDelivering, handlers.all.allSatisfy(\.takesOneByOne) {
            guard let thread = beginDelivering(.batch(values.map { .success($0) })) else { return true }
            for handler in handlers.all { handler.receive(values: values) }
            endDelivering(on: thread)
            return true
        }
        let batch = values.map { Try.success($0) }
        guard isDelivering else { return keepAndDeliver(contentsOf: batch) }
        deliver(contentsOf: batch)
        return true
    }

    @usableFromInline
    func keepAndDeliver(contentsOf batch: [Try<T>]) -> Bool {
        let flags = state.lock()
        if flags & Flag.finished != 0 || batch.isEmpty {
            state.unlock(flags)
            return flags & Flag.finished == 0
        }
        let isReceived = flags & (Flag.watched | Flag.delivering) != 0
        let evicted = batch.compactMap { backlog.append($0, isReceived: isReceived) }
        push(.batch(batch), flags)
        withExtendedLifetime(evicted) {}
        return true
    }

    /// Finishes the stream: `for try await` over it ends, and its handlers are released.
    ///
    /// Elements added afterwards are ignored. The kept elements stay, and handlers that are added late still receive them.
    /// Returns false if the stream was already finished.
    @discardableResult
    public func finish() -> Bool {
        let flags = state.lock()
        if flags & Flag.finished != 0 {
            state.unlock(flags)
            return false
        }
        push(.finish, flags | Flag.finished)
        return true
    }

    // MARK: Adding handlers

    /// Adds `handler`, which runs on `context` and can be cancelled with `token`. Every handler and operator is added
    /// here.
    @inlinable @inline(__always)
    func add(_ handler: Handler<T>, context: any ExecutionContext, token: CancelToken) {
        add(StreamHandler(handler, token: token), context: context)
    }

    @inlinable @inline(__always)
    func add(_ handler: StreamHandler<T>, context: any ExecutionContext = ImmediateContext()) {
        add(immediate: context.isImmediate ? handler : handler.dispatched(on: context))
    }

    @usableFromInline
    func add(immediate handler: StreamHandler<T>) {
        let flags = state.lock()
        let kept = backlog.elements
        let evicted = backlog.limit == Int.max ? backlog.trim(to: Self.watchedCapacity) : []
        push(.handler(handler, kept: kept), flags)
        withExtendedLifetime(evicted) {}
    }

    /// Adds the handler of an operator. If this stream ends with its last reader, that of the operator's result is one.
    @usableFromInline
    func add<M>(
        _ handler: StreamHandler<T>, for result: FutureStream<M>?, context: any ExecutionContext = ImmediateContext()
    ) {
        add(handler, context: context)
        guard lastReaderEnded != nil else { return }
        // They lock themselves.
        nonisolated(unsafe) weak let (source, result, handler) = (self, result, handler)
        result?.lastReaderEnded = {
            result?.finish()
            _ = source?.cancelHandlers { $0 === handler || $0.target === handler }
        }
    }

    /// Cancels the handlers and operators that were added to this stream with `cancelToken`.
    ///
    /// They no longer run, not even for elements that are waiting for their context; one that is already running
    /// continues. The stream that a cancelled operator returned receives no further element. Returns whether there were
    /// any.
    @discardableResult
    public func cancel(_ cancelToken: CancelToken) -> Bool {
        cancelToken != .uncancellable && cancelHandlers { $0.token == cancelToken }
    }

    private func cancelHandlers(_ isMeant: (StreamHandler<T>) -> Bool) -> Bool {
        let cancelled = presentHandlers().filter { isMeant($0) && $0.cancel() }
        if cancelled.isEmpty { return false }
        let flags = state.lock()
        hasCancelled = true
        push(nil, flags)
        return true
    }

    // MARK: Delivering

    // At any time at most one thread delivers. It is the only one that calls handlers and, while it delivers, the only one
    // that changes `handlers`. Other threads put their events into the inbox and return; the delivering thread processes
    // them in order.

    /// Passes `element` to the handlers, then processes the events that arrived during that. Called by the thread that set
    /// `delivering`.
    @inlinable
    func deliver(_ element: Try<T>) {
        guard let thread = beginDelivering(.element(element)) else { return }
        if let handler = handlers.sole {
            handler._withUnsafeGuaranteedRef { $0.receive(element) }
        } else {
            handlers.receive(element)
        }
        endDelivering(on: thread)
    }

    @inlinable
    func deliver(contentsOf batch: [Try<T>]) {
        guard let thread = beginDelivering(.batch(batch)) else { return }
        for handler in handlers.all { handler.receive(contentsOf: batch) }
        endDelivering(on: thread)
    }

    /// Returns the state of the calling thread, or postpones `event` and returns `nil` if the stack is too deep.
    @inlinable @inline(__always)
    func beginDelivering(_ event: @autoclosure () -> Event) -> UnsafeMutablePointer<ThreadWork>? {
        let thread = ThreadWork.current
        guard thread.mayNest else {
            postpone(event(), on: thread)
            return nil
        }
        thread.enter()
        return thread
    }

    @inlinable @inline(__always)
    func endDelivering(on thread: UnsafeMutablePointer<ThreadWork>) {
        if !state.change(from: Flag.watched | Flag.delivering, to: Flag.watched) { deliverWaiting() }
        thread.leave()
    }

    /// Delivers `event`, or leaves it to the thread that is delivering. Called under the lock, which it releases.
    @usableFromInline
    func push(_ event: Event?, _ flags: UInt32) {
        if let event { inbox.append(event) }
        state.unlock(flags | Flag.delivering | Flag.more)
        guard flags & Flag.delivering == 0 else { return }
        let thread = ThreadWork.current
        guard thread.mayNest else { return thread.postpone(self) }
        thread.enter()
        deliverWaiting()
        thread.leave()
    }

    /// Puts an event back that is due before all others, until the stack has unwound.
    @usableFromInline @inline(never)
    func postpone(_ event: Event, on thread: UnsafeMutablePointer<ThreadWork>) {
        state.withLock { inbox.prepend(event) }
        thread.postpone(self)
    }

    /// Processes the events in the inbox until it is empty, and then ends delivering.
    @usableFromInline @inline(never)
    func deliverWaiting() {
        while true {
            let flags = state.lock()
            if hasCancelled {
                hasCancelled = false
                let before = handlers
                handlers = StreamHandlers(before.all.filter { !$0.isCancelled })
                state.unlock(flags)
                withExtendedLifetime(before) {}
                if !before.isEmpty, presentHandlers().isEmpty { lastReaderEnded?() }
                continue
            }
            guard let event = inbox.popFirst() else {
                let rest = flags & ~(Flag.delivering | Flag.more | Flag.watched)
                return state.unlock(handlers.isEmpty ? rest : rest | Flag.watched)
            }
            if case .handler(let handler, _) = event {
                // It may have been cancelled while another thread was delivering.
                if handler.isCancelled {
                    state.unlock(flags)
                    if presentHandlers().isEmpty { lastReaderEnded?() }
                    continue
                }
                handlers = StreamHandlers(handlers.all + [handler])
            }
            // Before anything is delivered, so that a stream that feeds this one need not check whether it is referenced.
            state.unlock(handlers.isEmpty ? flags : flags | Flag.watched)
            deliver(event)
        }
    }

    private func deliver(_ event: Event) {
        switch event {
        case .element(let element):
            handlers.receive(element)
        case .batch(let batch):
            for handler in handlers.all { handler.receive(contentsOf: batch) }
        case .handler(let handler, let kept):
            if !kept.isEmpty { handler.receive(contentsOf: kept) }
            if hasEnded { finishHandlers() }
        case .finish:
            hasEnded = true
            finishHandlers()
        }
    }

    private func finishHandlers() {
        let finished = handlers.all
        for handler in finished { handler.finish() }
        state.withLock { handlers = StreamHandlers() }
        withExtendedLifetime(finished) {}
    }
}

extension FutureStream: @unchecked Sendable where T: Sendable {}

extension FutureStream: Delivering {}
