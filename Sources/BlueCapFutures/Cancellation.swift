import Synchronization

/// Identifies a group of handlers and operators that can be cancelled together.
///
/// Pass one token to all handlers and operators of the group, then pass it to `cancel(_:)` of the future or stream on
/// which they were called. A token is a value: copies identify the same group, two tokens created separately never do.
///
/// ```swift
/// let token = CancelToken()
/// stream.onSuccess(cancelToken: token) { value in print(value) }
/// stream.cancel(token)
/// ```
public struct CancelToken: Hashable, Sendable {
    @usableFromInline let number: UInt64

    @inlinable
    init(number: UInt64) {
        self.number = number
    }

    /// Creates a token that is different from every other.
    public init() {
        number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// The token that cancels nothing, which is the default of every `cancelToken` parameter.
    @inlinable
    public static var uncancellable: CancelToken { CancelToken(number: 0) }

    private static let last = Atomic<UInt64>(0)
}

extension Future {
    /// Cancels the handlers and operators that were added to this future with `cancelToken`.
    ///
    /// They no longer run, not even if they are waiting for their context; one that is already running continues. The
    /// future that a cancelled operator returned is never completed. Returns whether there were any.
    @discardableResult
    public func cancel(_ cancelToken: CancelToken) -> Bool {
        guard cancelToken != .uncancellable else { return false }
        let (named, before) = state.withLock {
            let before = cancellables ?? []
            let named = before.filter { $0.token == cancelToken }
            cancellables = before.filter { $0.token != cancelToken && !$0.isSpent }
            return (named, before)
        }
        // Outside the lock, since releasing a closure runs the `deinit` of what it captures.
        let cancelled = named.filter { $0.cancel() }
        let kept = state.withLock {
            let kept = handlers
            handlers = kept.withoutSpent()
            return kept
        }
        withExtendedLifetime((before, kept)) {}
        return !cancelled.isEmpty
    }

    /// Adds a handler that can be cancelled, and keeps a reference to it until it has run.
    func addCancellable(_ handler: CancellableHandler<T>) {
        let before = state.withLock {
            let before = cancellables ?? []
            cancellables = before.filter { !$0.isSpent } + [handler]
            return before
        }
        withExtendedLifetime(before) {}
        add(.cancellable(handler))
    }

    /// Calls `action` if `cancelToken` is passed to ``cancel(_:)`` before the future is complete.
    package func whenCancelled(_ cancelToken: CancelToken, _ action: @escaping @Sendable () -> Void) {
        guard cancelToken != .uncancellable else { return }
        addCancellable(
            CancellableHandler(.completion { _ in }, token: cancelToken, context: nil, cancelled: action))
    }
}

/// A handler that either runs once or is cancelled. In both cases it releases its closure.
// `@unchecked`: only the thread that set `claimed` accesses the handler.
@usableFromInline
final class CancellableHandler<T>: @unchecked Sendable {
    let token: CancelToken
    /// `nil` for the thread that completes the future.
    private let context: (any ExecutionContext)?
    private let claimed = Atomic<Bool>(false)
    private var handler: Handler<T>?
    /// Called instead of the handler if it is cancelled.
    private var cancelled: (() -> Void)?

    init(
        _ handler: Handler<T>, token: CancelToken, context: (any ExecutionContext)?, cancelled: (() -> Void)? = nil
    ) {
        self.handler = handler
        self.token = token
        self.context = context
        self.cancelled = cancelled
    }

    /// Whether the handler has run or was cancelled.
    var isSpent: Bool { claimed.load(ordering: .acquiring) }

    /// Runs the handler on its context, unless it is cancelled before the context runs it.
    @usableFromInline
    func dispatch(_ outcome: Try<T>) {
        guard let context else { return run(outcome) }
        // Passed on once, as in ``Handler/dispatched(on:)``.
        nonisolated(unsafe) let outcome = outcome
        context.execute { self.run(outcome) }
    }

    private func run(_ outcome: Try<T>) {
        guard let (handler, _) = claim() else { return }
        handler(outcome)
    }

    /// Releases the handler. Returns false if it has run, is running, or was already cancelled.
    func cancel() -> Bool {
        guard let (_, cancelled) = claim() else { return false }
        cancelled?()
        return true
    }

    private func claim() -> (Handler<T>, cancelled: (() -> Void)?)? {
        guard !claimed.exchange(true, ordering: .acquiringAndReleasing), let handler else { return nil }
        let claim = (handler, cancelled)
        (self.handler, cancelled) = (nil, nil)
        return claim
    }
}
