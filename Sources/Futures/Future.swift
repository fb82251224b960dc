/// What can be completed with a ``Try`` and tell about it; the seam by which sequences of futures are recognised.
public protocol Futurable {
    associatedtype T

    /// The outcome, or `nil` as long as there is none.
    var result: Try<T>? { get }
    /// Whether there is an outcome.
    var completed: Bool { get }

    init()
    init(value: T)
    init(error: any Error)

    @discardableResult
    func complete(_ result: Try<T>) -> Bool

    @preconcurrency
    func onComplete(
        context: any ExecutionContext, cancelToken: CancelToken, completion: @escaping @Sendable (Try<T>) -> Void)
}

/// A value that arrives later, or the error that arrives in its place; it is completed once and then stays as it is.
///
/// Usually a ``Promise`` makes a future and completes it, and the future is what is handed out.
///
/// ```swift
/// let promise = Promise<Int>()
/// promise.future.map { $0 * 2 }.onSuccess { print($0) }
/// promise.success(21)
/// ```
///
/// Handlers run once each, on their context, in the order they were added, also when several threads add and complete.
/// No lock is held while they run. After completion the future holds its outcome and no handler.
///
/// A future of a `Sendable` type is `Sendable`. `T` may be any type: then a future belongs to one isolation domain, and
/// whoever registers a handler on another thread's context promises that the value may go there.
// `@unchecked`: all but `state` is touched under the lock of `state` only; but for `value` and `error`, which never change
// again once the flags of `state` say that they are there, and which those who saw that may read.
public final class Future<T>: Futurable {
    /// Where a future is in its life; the flags of its `state`.
    ///
    /// It moves forward, but for going back from `settled` when handlers had to be postponed.
    @usableFromInline
    enum Phase {
        /// No outcome yet, and no handler.
        @inlinable static var pending: UInt32 { 0 }
        /// No outcome yet; there are handlers.
        @inlinable static var awaited: UInt32 { StateWord.firstFlag }
        /// There is an outcome, and one thread is running the handlers that were kept.
        @inlinable static var delivering: UInt32 { StateWord.firstFlag * 2 }
        /// The same, and further handlers were added meanwhile: they are kept, so that they run after the others.
        @inlinable static var deliveringMore: UInt32 { StateWord.firstFlag * 3 }
        /// Every kept handler was run; further ones run at once.
        @inlinable static var settled: UInt32 { StateWord.firstFlag * 4 }
    }

    @usableFromInline let state: StateWord
    @usableFromInline var handlers = Handlers<T>.none
    // The outcome: the error if there is one, else the value. (No run-time check of exclusive access to the latter: the
    // lock and the phases see to it.)
    @usableFromInline var error: (any Error)?
    @exclusivity(unchecked) @usableFromInline var value = OutcomeSlot()
    /// Those that may yet be cancelled: kept, or on their way to their context. `nil` as long as there never was one.
    @usableFromInline var cancellables: [CancellableHandler<T>]?

    /// A future without an outcome. Without a ``Promise`` it is completed by ``complete(_:)`` and its like.
    @inlinable
    public init() {
        state = StateWord(Phase.pending)
    }

    /// A future that is a success already.
    // Disfavoured, so that a trailing closure is a task or a resolver and not a value.
    @inlinable @_disfavoredOverload
    public init(value: T) {
        state = StateWord(Phase.settled)
        self.value.store(value)
    }

    /// A future that is a failure already.
    @inlinable
    public init(error: any Error) {
        state = StateWord(Phase.settled)
        self.error = error
    }

    /// A future that has that outcome already.
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

    /// The outcome, or `nil` as long as there is none.
    @inlinable
    public var result: Try<T>? {
        state.flags > Phase.awaited ? outcome : nil
    }

    /// Whether there is an outcome.
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

    /// What was kept. Only for those who saw that something was.
    @inlinable @inline(__always)
    var outcome: Try<T> {
        if let error { return .failure(error) }
        return .success(value.load(T.self))
    }

    @inlinable @inline(__always)
    func takeHandlers() -> Handlers<T> {
        // Swapped: optimised, `let taken = handlers; handlers = .none` makes this compiler find fault with its own code.
        var taken = Handlers<T>.none
        swap(&taken, &handlers)
        return taken
    }

    // MARK: Completing

    /// Completes the future, and runs or dispatches its handlers. Returns false, and does nothing, if it was complete.
    ///
    /// Prefer to keep a ``Promise`` and to hand out its future: then only you can complete it.
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

    /// Runs `first` and whatever is added meanwhile. Only the thread that set `delivering` calls this.
    @inlinable
    func deliver(_ first: Handlers<T>, _ outcome: Try<T>) {
        let thread = ThreadWork.current
        guard thread.mayNest else { return postpone(first, on: thread) }
        thread.enter()
        first(outcome)
        if !state.change(from: Phase.delivering, to: Phase.settled) { deliverMore() }
        thread.leave()
    }

    /// Runs what was added meanwhile, until there is nothing more.
    @usableFromInline @inline(never)
    func deliverMore() {
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
        state.withLock { _ in handlers = first.followed(by: handlers) }
        thread.postpone(self)
    }

    // MARK: Adding handlers

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

    /// Called under the lock, which it gives back: adds a handler that is not the first.
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

    /// Goes back to delivering, so that handlers added before the stack has unwound keep their place behind this one.
    @usableFromInline @inline(never)
    func postponeSettled(_ handler: Handler<T>, on thread: UnsafeMutablePointer<ThreadWork>) {
        let phase = state.lock()
        handlers.append(handler)
        state.unlock(Phase.deliveringMore)
        if phase == Phase.settled { thread.postpone(self) }
    }

    /// Adds `handler` to run on `context`, under `token` if that can be cancelled.
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
}

extension Future: @unchecked Sendable where T: Sendable {}

extension Future: Delivering {
    @usableFromInline
    func deliverPostponed() {
        let thread = ThreadWork.current
        thread.enter()
        deliverMore()
        thread.leave()
    }
}
