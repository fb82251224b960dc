/// What a future does with its outcome. The caller's closure is kept as it is, so keeping it allocates nothing.
@usableFromInline
enum Handler<T> {
    case completion((Try<T>) -> Void)
    case success((T) -> Void)
    case failure((any Error) -> Void)
    /// Completes another future with the same outcome.
    case follower(Future<T>)
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
            future.completeFollower(outcome)
        case .cancellable(let handler):
            handler.dispatch(outcome)
        }
    }

    /// The same handler, run by `context`.
    func dispatched(on context: any ExecutionContext) -> Handler<T> {
        .completion { outcome in
            // The handler is the caller's `@Sendable` closure or one of this module. The outcome is passed on once: by choosing the
            // context the caller has decided that it may go there, as ``Future`` documents.
            nonisolated(unsafe) let (handler, outcome) = (self, outcome)
            context.execute { handler(outcome) }
        }
    }
}

/// The handlers of a future: nearly always none, one, or one for each outcome, and then there is no array.
@usableFromInline
enum Handlers<T> {
    case none
    case one(Handler<T>)
    case two(Handler<T>, Handler<T>)
    case many([Handler<T>])

    @inlinable
    var isEmpty: Bool {
        if case .none = self { true } else { false }
    }

    var all: [Handler<T>] {
        switch self {
        case .none: []
        case .one(let handler): [handler]
        case .two(let first, let second): [first, second]
        case .many(let handlers): handlers
        }
    }

    mutating func append(_ handler: Handler<T>) {
        if case .many(var handlers) = self {
            self = .none  // so that the array is appended to in place
            handlers.append(handler)
            self = .many(handlers)
        } else if case .one(let first) = self {
            self = .two(first, handler)
        } else if case .two(let first, let second) = self {
            self = .many([first, second, handler])
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
        case .two(let first, let second):
            first(outcome)
            second(outcome)
        case .many(let handlers):
            Self.call(handlers, outcome)
        }
    }

    /// A function of its own, so that it is not part of every completion.
    @inlinable @inline(never)
    static func call(_ handlers: [Handler<T>], _ outcome: Try<T>) {
        for handler in handlers { handler(outcome) }
    }

    /// These handlers, then `others`.
    @usableFromInline
    func followed(by others: Handlers<T>) -> Handlers<T> {
        var all = self
        for handler in others.all { all.append(handler) }
        return all
    }

    /// These handlers without those that were cancelled.
    func withoutSpent() -> Handlers<T> {
        var rest = Handlers<T>.none
        for handler in all {
            if case .cancellable(let cancellable) = handler, cancellable.isSpent { continue }
            rest.append(handler)
        }
        return rest
    }
}
