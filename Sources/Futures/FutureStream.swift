/// Values that keep arriving: a sequence of completed futures.
///
/// Successes and failures are both elements; a failure does not end the stream. Usually a ``StreamPromise`` makes a
/// stream and fills it, and the stream is what is handed out.
///
/// ## Order
/// Every handler receives every element once and in the order in which they were added, on its context, also when
/// several threads add elements and handlers at the same time. A handler added late first receives what is kept and then
/// what comes, with no gap and no repeat. No lock is held while a handler runs; what a handler adds to its own stream is
/// delivered after it returns.
///
/// A handler on a queue is woken once for all elements that have arrived since it last ran, not once for each.
///
/// ## What is kept
/// A stream keeps its latest `capacity` elements for handlers that come late; the oldest goes first.
/// - `capacity: 0` keeps nothing: only those who listen hear.
/// - `capacity: Int.max`, the default, keeps everything until the first handler is added. From then on the stream is
///   being watched, and it keeps the latest ``watchedCapacity`` elements, so that a stream that runs for months does not
///   fill the memory. A stream that must keep more says how many.
///
/// The stream that `map` and its like return has the capacity of the one they are called on. As long as it has no
/// handler and nobody holds it, it keeps nothing.
///
/// A stream of a `Sendable` type is `Sendable`; of other types see ``Future``.
// `@unchecked`: `kept`, `limit`, `inbox`, `dropped` and `hasCancelled` are touched under the lock of `state` only. `handlers` and
// `soleHandler` are changed under the lock, and only by the thread that is delivering; so that thread may read them without.
public final class FutureStream<T> {
    /// What is going on in a stream; the flags of its `state`.
    @usableFromInline
    enum Flag {
        /// It has handlers.
        @inlinable static var watched: UInt32 { StateWord.firstFlag }
        /// One thread is calling the handlers.
        @inlinable static var delivering: UInt32 { StateWord.firstFlag << 1 }
        /// And when it has done so there is more for it to do.
        @inlinable static var more: UInt32 { StateWord.firstFlag << 2 }
        /// No element is taken any more.
        @inlinable static var finished: UInt32 { StateWord.firstFlag << 3 }
    }

    /// What happened while a thread was delivering, in order; that thread takes it up.
    @usableFromInline
    enum Event {
        case element(Try<T>)
        case batch([Try<T>])
        /// A new handler, and what was kept when it came.
        case handler(StreamHandler<T>, kept: [Try<T>])
        case finish
    }

    /// How many elements a stream of capacity `Int.max` keeps once it has had a handler.
    public static var watchedCapacity: Int { 4096 }

    @usableFromInline let state = StateWord()
    @usableFromInline var kept = Ring<Try<T>>()
    /// `capacity`, until there is a reason to keep less.
    @usableFromInline var limit: Int
    @usableFromInline var inbox = Ring<Event>()
    @usableFromInline var handlers = StreamHandlers<T>.none
    /// The one in `handlers` if it is alone, changed with it; so that delivering to it costs no look and no counting.
    @exclusivity(unchecked) @usableFromInline var soleHandler: Unmanaged<StreamHandler<T>>?
    @usableFromInline var hasCancelled = false
    /// What `droppedCount` tells; touched under the lock.
    @usableFromInline var dropped = 0

    /// How many elements are kept at most.
    public let capacity: Int

    /// An empty stream that keeps the latest `capacity` elements. Without a ``StreamPromise`` it is filled by
    /// ``complete(_:)`` and its like.
    public init(capacity: Int = Int.max) {
        precondition(
            capacity >= 0, "The capacity of a FutureStream is at least 0, and 0 keeps nothing; it was \(capacity).")
        self.capacity = capacity
        limit = capacity
    }

    deinit {
        if handlers.isEmpty { return }
        let discarded = handlers
        handlers = .none
        ThreadWork.current.discard(discarded)
    }

    /// What is kept, oldest first, each as a completed future.
    public var futures: [Future<T>] {
        state.withLock { _ in kept.elements }.map { Future(result: $0) }
    }

    /// How many elements are kept.
    public var count: Int {
        state.withLock { _ in kept.count }
    }

    /// How many elements were lost because there was no handler yet and no room: displaced by newer ones, or, where
    /// `capacity` is 0, not kept at all.
    ///
    /// While there is a handler nothing is lost, however slow it is.
    public var droppedCount: Int {
        state.withLock { _ in dropped }
    }

    /// Whether there is a handler.
    @inlinable @inline(__always)
    var isWatched: Bool { state.flags & Flag.watched != 0 }

    /// Whether there is a handler, for those who produce only while somebody listens.
    package var isWatchedByAnyone: Bool { isWatched }

    // MARK: Adding elements

    /// Adds an element. Returns false, and does nothing, if the stream is finished.
    ///
    /// Prefer to keep a ``StreamPromise`` and to hand out its stream: then only you can fill it.
    @inlinable @discardableResult
    public func complete(_ result: Try<T>) -> Bool {
        send(result)
    }

    @inlinable @discardableResult
    func send(_ element: Try<T>) -> Bool {
        guard capacity == 0, state.change(from: Flag.watched, to: Flag.watched | Flag.delivering) else {
            return keepAndSend(element)
        }
        deliver(element)
        return true
    }

    /// As `send`, where there is something to keep, nobody to deliver to, or somebody who is delivering already.
    @inlinable
    func keepAndSend(_ element: Try<T>) -> Bool {
        let flags = state.lock()
        if flags & Flag.finished != 0 {
            state.unlock(flags)
            return false
        }
        let evicted = limit > 0 ? kept.append(element, limit: limit) : nil
        if flags & (Flag.watched | Flag.delivering) == 0, evicted != nil || limit == 0 { dropped += 1 }
        if flags & Flag.delivering != 0 {
            inbox.append(.element(element))
            state.unlock(flags | Flag.more)
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
    func send(contentsOf batch: [Try<T>]) -> Bool {
        guard capacity == 0, !batch.isEmpty, state.change(from: Flag.watched, to: Flag.watched | Flag.delivering) else {
            return keepAndSend(contentsOf: batch)
        }
        deliver(contentsOf: batch)
        return true
    }

    @usableFromInline
    func keepAndSend(contentsOf batch: [Try<T>]) -> Bool {
        let flags = state.lock()
        if flags & Flag.finished != 0 || batch.isEmpty {
            state.unlock(flags)
            return flags & Flag.finished == 0
        }
        var evicted: [Try<T>] = []
        if limit > 0 {
            for element in batch {
                if let oldest = kept.append(element, limit: limit) { evicted.append(oldest) }
            }
        }
        if flags & (Flag.watched | Flag.delivering) == 0 { dropped += limit > 0 ? evicted.count : batch.count }
        push(.batch(batch), flags)
        withExtendedLifetime(evicted) {}
        return true
    }

    /// Says that no element comes any more: `for try await` over the stream ends, and handlers are let go.
    ///
    /// Elements added afterwards are ignored. What is kept stays, and handlers that come late still receive it.
    /// Returns false if the stream was finished already.
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

    @inlinable @inline(__always)
    func add(_ handler: Handler<T>, context: any ExecutionContext, token: CancelToken) {
        add(StreamHandler(handler, token: token), context: context)
    }

    @usableFromInline
    func add(_ handler: StreamHandler<T>, context: any ExecutionContext = ImmediateContext()) {
        let handler = context.isImmediate ? handler : handler.dispatched(on: context)
        let flags = state.lock()
        let before = kept.elements
        var evicted: [Try<T>] = []
        if limit == Int.max {
            limit = Self.watchedCapacity
            evicted = kept.trim(to: limit)
        }
        push(.handler(handler, kept: before), flags)
        withExtendedLifetime(evicted) {}
    }

    /// Takes back the handlers and combinators that were registered here with `cancelToken`.
    ///
    /// They no longer run, not even for elements that are on their way to their context; one that is running already
    /// goes on. The stream that a cancelled combinator returned gets no further element. Returns whether there were any.
    @discardableResult
    public func cancel(_ cancelToken: CancelToken) -> Bool {
        guard cancelToken != .uncancellable else { return false }
        let named = state.withLock { _ in
            handlers.named(cancelToken)
                + inbox.elements.compactMap { event in
                    guard case .handler(let handler, _) = event, handler.token == cancelToken else { return nil }
                    return handler
                }
        }
        var wereAny = false
        for handler in named where handler.cancel() { wereAny = true }
        if wereAny { removeCancelled() }
        return wereAny
    }
}

extension FutureStream: @unchecked Sendable where T: Sendable {}
