/// The part of a ``Future`` that the operators on sequences of futures use.
public protocol Futurable {
    /// The type of the value.
    associatedtype T

    /// The outcome, or `nil` if the future is not complete.
    var result: Try<T>? { get }
    /// Whether the future is complete.
    var completed: Bool { get }

    /// Creates a future without an outcome.
    init()
    /// Creates a future that has already succeeded.
    init(value: T)
    /// Creates a future that has already failed.
    init(error: any Error)

    /// Completes the future. Returns false, and does nothing, if it was complete.
    ///
    /// - Parameter result: The outcome.
    @discardableResult
    func complete(_ result: Try<T>) -> Bool

    /// Calls `completion` with the outcome, once; also if the future is already complete.
    ///
    /// - Parameters:
    ///   - context: Runs `completion`.
    ///   - cancelToken: Identifies `completion` for `cancel(_:)`.
    ///   - completion: Receives the outcome.
    @preconcurrency
    func onComplete(
        context: any ExecutionContext, cancelToken: CancelToken, completion: @escaping @Sendable (Try<T>) -> Void)
}

/// A value that arrives later, or the error that arrives in its place. A future is completed once and never changes after
/// that.
///
/// Usually a ``Promise`` creates a future and completes it. Other code receives only the future, so that it cannot complete it.
///
/// ```swift
/// let promise = Promise<Int>()
/// promise.future.map { $0 * 2 }.onSuccess { print($0) }
/// promise.success(21)
/// ```
///
/// Each handler runs once, on its context, in the order in which the handlers were added, also if several threads add
/// handlers and complete the future. No lock is held while a handler runs. After completion the future holds its outcome
/// and no handler.
///
/// The closure of a handler or an operator runs on its `context`, where the future that an operator returns is completed too;
/// the default is ``QueueContext/futuresDefault``, a serial queue. A `cancelToken` that is passed to ``cancel(_:)`` of this
/// future cancels them: the closure is released, and no longer called, and the future that the operator has returned is never
/// completed. The work that completes this future continues.
///
/// The closure of an operator is called with the value; that of `recover`, `recoverWith` and `mapError` with the error. It is not
/// called for the other outcome, which the returned future then has too. If the closure throws, the returned future fails with
/// that error. If it returns a future, that one completes the returned future, on its own thread.
///
/// A future of a `Sendable` type is `Sendable`. `T` may be any type. If it is not `Sendable`, a future belongs to one
/// isolation domain, and code that adds a handler on another thread's context asserts that the value may go there.
// `@unchecked`: every property but `state` is accessed under the lock of `state` only, with the exception of `error` and
// `value`, which never change after the flags of `state` say that there is an outcome: code that has read those flags may
// read them. For the same reason the runtime need not check the accesses.
public final class Future<T>: Futurable {
    /// The states of a future; the flags of its `state`.
    ///
    /// A future only moves forward, except that it goes back from `settled` if handlers had to be postponed.
    @usableFromInline
    enum Phase {
        /// No outcome and no handler.
        @inlinable static var pending: UInt32 { 0 }
        /// No outcome; there are handlers.
        @inlinable static var awaited: UInt32 { StateWord.firstFlag }
        /// There is an outcome, and one thread is running the handlers.
        @inlinable static var delivering: UInt32 { StateWord.firstFlag * 2 }
        /// As `delivering`, and further handlers were added. They are kept, so that they run after the others.
        @inlinable static var deliveringMore: UInt32 { StateWord.firstFlag * 3 }
        /// All kept handlers have run; further ones run at once.
        @inlinable static var settled: UInt32 { StateWord.firstFlag * 4 }
    }

    @usableFromInline let state: StateWord
    @exclusivity(unchecked) @usableFromInline var handlers = Handlers<T>.none
    // The outcome: the error if there is one, else the value.
    @exclusivity(unchecked) @usableFromInline var error: (any Error)?
    @exclusivity(unchecked) @usableFromInline var value = OutcomeSlot()
    /// The handlers that can still be cancelled: those that are kept, and those that wait for their context. `nil` if
    /// there never was one.
    @exclusivity(unchecked) @usableFromInline var cancellables: [CancellableHandler<T>]?

    /// Creates a future without an outcome. ``complete(_:)`` completes it, if no ``Promise`` does.
    @inlinable
    public init() {
        state = StateWord(Phase.pending)
    }

    // Disfavoured, so that a trailing closure is a task or a resolver and not a value.
    @inlinable @_disfavoredOverload
    public init(value: T) {
        state = StateWord(Phase.settled)
        self.value.store(value)
    }

    @inlinable
    public init(error: any Error) {
        state = StateWord(Phase.settled)
        self.error = error
    }

    /// Creates a future that is complete with that outcome.
    @inlinable
    public init(result: Try<T>) {
        state = StateWord(Phase.settled)
        keep(result)
    }

    deinit {
        let phase = state.flags
        if phase == Phase.awaited { ThreadWork.current.discard(takeHandlers()) }
        if phase > Phase.awaited, error == nil { value.destroy(T.self) }
    }

    @inlinable
    public var result: Try<T>? {
        state.flags > Phase.awaited ? outcome : nil
    }

    @inlinable
    public var completed: Bool {
        state.flags > Phase.awaited
    }

    @inlinable @inline(__always)
    func keep(_ outcome: Try<T>) {
        switch outcome {
        case .success(let value): self.value.store(value)
        case .failure(let error): self.error = error
        }
    }

    /// The stored outcome. Only for code that has seen a phase in which there is one.
    @inlinable @inline(__always)
    var outcome: Try<T> {
        if let error { return .failure(error) }
        return .success(value.load(T.self))
    }

    @inlinable @inline(__always)
    func takeHandlers() -> Handlers<T> {
        // Swapped: this compiler's optimiser rejects the code it makes of `let taken = handlers; handlers = .none`.
        var taken = Handlers<T>.none
        swap(&taken, &handlers)
        return taken
    }

    // MARK: Completing

    /// Completes the future, and runs or dispatches its handlers. Returns false, and does nothing, if it was complete.
    @inlinable @discardableResult
    public func complete(_ result: Try<T>) -> Bool {
        let phase = state.lock()
        guard phase <= Phase.awaited else {
            state.unlock(phase)
            return false
        }
        keep(result)
        if phase == Phase.pending {
            state.unlock(Phase.settled)
        } else {
            let first = takeHandlers()
            state.unlock(Phase.delivering)
            deliver(first, result)
        }
        return true
    }

    /// The same for a future that follows another one. Not inlined, since a handler would else contain the handlers of
    /// the handlers of its follower, in each module and for each type.
    @inlinable @inline(never)
    func completeFollower(_ result: Try<T>) { complete(result) }

    /// Runs `first` and the handlers that are added until those have run. Only the thread that set `delivering` calls
    /// this.
    @inlinable
    func deliver(_ first: Handlers<T>, _ outcome: Try<T>) {
        let thread = ThreadWork.current
        guard thread.mayNest else { return postpone(first, on: thread) }
        thread.enter()
        first(outcome)
        if !state.change(from: Phase.delivering, to: Phase.settled) { deliverWaiting() }
        thread.leave()
    }

    /// Runs the handlers that were added during delivery, until none is left.
    @usableFromInline @inline(never)
    func deliverWaiting() {
        while true {
            _ = state.lock()
            let next = takeHandlers()
            if next.isEmpty { return state.unlock(Phase.settled) }
            state.unlock(Phase.delivering)
            next(outcome)
        }
    }

    @usableFromInline @inline(never)
    func postpone(_ first: Handlers<T>, on thread: UnsafeMutablePointer<ThreadWork>) {
        state.withLock { handlers = first.followed(by: handlers) }
        thread.postpone(self)
    }

    // MARK: Adding handlers

    /// Adds `handler`, which runs on `context` and can be cancelled with `token`. Every handler and operator is added
    /// here.
    @inlinable @inline(__always)
    func add(_ handler: Handler<T>, context: any ExecutionContext, token: CancelToken) {
        if context.isImmediate, token == .uncancellable {
            add(handler)
        } else {
            addSlowly(handler, context: context, token: token)
        }
    }

    @usableFromInline @inline(never)
    func addSlowly(_ handler: Handler<T>, context: any ExecutionContext, token: CancelToken) {
        guard token != .uncancellable else { return add(handler.dispatched(on: context)) }
        addCancellable(CancellableHandler(handler, token: token, context: context.isImmediate ? nil : context))
    }

    /// Adds `handler`, which runs on the thread that completes the future.
    @inlinable
    func add(_ handler: Handler<T>) {
        if state.flags == Phase.settled { return runSettled(handler) }
        let phase = state.lock()
        if phase == Phase.pending {
            handlers = .one(handler)
            state.unlock(Phase.awaited)
        } else {
            addFurther(handler, phase)
        }
    }

    /// Adds a handler that is not the first. Called under the lock, which it releases.
    @usableFromInline @inline(never)
    func addFurther(_ handler: Handler<T>, _ phase: UInt32) {
        if phase == Phase.settled {
            state.unlock(phase)
            return runSettled(handler)
        }
        handlers.append(handler)
        state.unlock(phase == Phase.awaited ? phase : Phase.deliveringMore)
    }

    @inlinable
    func runSettled(_ handler: Handler<T>) {
        let thread = ThreadWork.current
        guard thread.mayNest else { return postponeSettled(handler, on: thread) }
        thread.enter()
        handler(outcome)
        thread.leave()
    }

    /// Goes back to delivering, so that handlers added before the stack has unwound run after this one.
    @usableFromInline @inline(never)
    func postponeSettled(_ handler: Handler<T>, on thread: UnsafeMutablePointer<ThreadWork>) {
        let phase = state.lock()
        handlers.append(handler)
        state.unlock(Phase.deliveringMore)
        if phase == Phase.settled { thread.postpone(self) }
    }

    // MARK: Deriving futures

    /// Returns a future that `complete` completes with the outcome of this one. Every operator is one call of this function.
    @inlinable @inline(__always)
    func derive<M>(
        _ context: any ExecutionContext, _ token: CancelToken,
        _ complete: @escaping (_ derived: Future<M>, _ outcome: Try<T>) -> Void
    ) -> Future<M> {
        let derived = Future<M>()
        add(.completion { complete(derived, $0) }, context: context, token: token)
        return derived
    }

    /// Completes with the outcome of `source`, on the thread that completes that.
    @inlinable
    func follow(_ source: Future<T>) {
        if let outcome = source.result {
            complete(outcome)
        } else {
            source.add(.follower(self))
        }
    }

    /// Completes with the outcome of the future that `next` returns, or with the error that it throws.
    @inlinable @inline(__always)
    func follow(_ next: () throws -> Future<T>) {
        do { follow(try next()) } catch { failure(error) }
    }
}

extension Future: @unchecked Sendable where T: Sendable {}

extension Future: Delivering {}
