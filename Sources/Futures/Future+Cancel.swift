extension Future {
    /// Takes back the handlers and combinators that were registered here with `cancelToken`.
    ///
    /// They no longer run, not even if they are on their way to their context; one that is running already goes on.
    /// The future that a cancelled combinator returned is never completed. Returns whether there were any.
    @discardableResult
    public func cancel(_ cancelToken: CancelToken) -> Bool {
        guard cancelToken != .uncancellable else { return false }
        let (named, shells) = state.withLock { _ in
            let before = cancellables ?? []
            let named = before.filter { $0.token == cancelToken }
            cancellables = before.filter { $0.token != cancelToken && !$0.isSpent }
            return (named, before)
        }
        // Outside the lock, since letting go of a closure runs whatever its captures do when they go.
        var wereAny = false
        for handler in named where handler.cancel() { wereAny = true }
        let kept = state.withLock { _ in
            let before = handlers
            handlers = before.withoutSpent()
            return before
        }
        withExtendedLifetime((shells, kept)) {}
        return wereAny
    }

    /// Adds a handler that can be taken back, and remembers it until it has run.
    func addCancellable(_ handler: CancellableHandler<T>) {
        let spent = state.withLock { _ in
            let before = cancellables ?? []
            cancellables = before.filter { !$0.isSpent } + [handler]
            return before
        }
        withExtendedLifetime(spent) {}
        add(.cancellable(handler))
    }
}
