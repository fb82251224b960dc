import Synchronization

/// What a future does with its outcome: the closure as the user gave it, so that keeping it costs no box around it.
@usableFromInline
enum Handler<T> {
    case completion((Try<T>) -> Void)
    case success((T) -> Void)
    case failure((any Error) -> Void)
    /// Completes another future alike.
    case follower(Future<T>)
    /// Can be taken back.
    case cancellable(CancellableHandler<T>)

    @inlinable
    func callAsFunction(_ outcome: Try<T>) {
        switch self {
        case .completion(let handle):
            handle(outcome)
        case .success(let handle):
            if case .success(let value) = outcome { handle(value) }
        case .failure(let handle):
            if case .failure(let error) = outcome { handle(error) }
        case .follower(let future):
            future.complete(outcome)
        case .cancellable(let handler):
            handler.dispatch(outcome)
        }
    }

    /// The same, run by `context`.
    func dispatched(on context: any ExecutionContext) -> Handler<T> {
        .completion { outcome in
            // Captures a handler, whose closures are the caller's `@Sendable` ones or this module's, and an outcome,
            // which the handler receives.
            context.execute(assumeSendable { self(outcome) })
        }
    }
}

/// The handlers a future has: nearly always none or one, and then there is no array.
@usableFromInline
enum Handlers<T> {
    case none
    case one(Handler<T>)
    case many([Handler<T>])

    @inlinable
    var isEmpty: Bool {
        if case .none = self { true } else { false }
    }

    mutating func append(_ handler: Handler<T>) {
        if case .many(var handlers) = self {
            self = .none  // so that the array is appended to in place
            handlers.append(handler)
            self = .many(handlers)
        } else if case .one(let first) = self {
            self = .many([first, handler])
        } else {
            self = .one(handler)
        }
    }

    @inlinable
    func callAsFunction(_ outcome: Try<T>) {
        switch self {
        case .none:
            break
        case .one(let handler):
            handler(outcome)
        case .many(let handlers):
            for handler in handlers { handler(outcome) }
        }
    }

    /// These, then `others`.
    @usableFromInline
    func followed(by others: Handlers<T>) -> Handlers<T> {
        var all = self
        switch others {
        case .none: break
        case .one(let handler): all.append(handler)
        case .many(let handlers): for handler in handlers { all.append(handler) }
        }
        return all
    }

    /// These, but for those that were cancelled.
    func withoutSpent() -> Handlers<T> {
        guard case .many(let handlers) = self else { return self }
        var rest = Handlers<T>.none
        for handler in handlers {
            if case .cancellable(let cancellable) = handler, cancellable.isSpent { continue }
            rest.append(handler)
        }
        return rest
    }
}

/// A handler that runs once or is cancelled, whichever comes first; either way its closure is gone afterwards.
@usableFromInline
final class CancellableHandler<T> {
    let token: CancelToken
    private let context: (any ExecutionContext)?
    private let claimed = Atomic<Bool>(false)
    /// Touched by whoever set `claimed`, and by nobody else.
    private var handler: Handler<T>?
    private var cancelled: (() -> Void)?

    /// - Parameters:
    ///   - context: Where the handler runs; `nil` is at once.
    ///   - cancelled: Called if the handler is cancelled, in its stead.
    init(
        _ handler: Handler<T>, token: CancelToken, context: (any ExecutionContext)?, cancelled: (() -> Void)? = nil
    ) {
        self.handler = handler
        self.token = token
        self.context = context
        self.cancelled = cancelled
    }

    /// Whether it ran or was cancelled.
    var isSpent: Bool { claimed.load(ordering: .acquiring) }

    /// Has it run on its context, where it looks again whether it was cancelled on the way.
    @usableFromInline
    func dispatch(_ outcome: Try<T>) {
        guard let context else { return run(outcome) }
        // Captures this object, whose handler is touched only by the thread that set `claimed`, and an outcome, which the
        // handler receives.
        context.execute(assumeSendable { self.run(outcome) })
    }

    private func run(_ outcome: Try<T>) {
        guard claim() else { return }
        let handler = self.handler
        self.handler = nil
        cancelled = nil
        handler?(outcome)
    }

    /// Lets go of the handler. Returns false if it has run, is running, or was cancelled before.
    func cancel() -> Bool {
        guard claim() else { return false }
        handler = nil
        let cancelled = self.cancelled
        self.cancelled = nil
        cancelled?()
        return true
    }

    private func claim() -> Bool {
        !claimed.exchange(true, ordering: .acquiringAndReleasing)
    }
}
