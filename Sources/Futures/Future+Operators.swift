extension Future {
    /// Returns a future of the left future's value, or of the value on the right if the left fails.
    ///
    /// The right side is evaluated at once, on the calling thread, before the operator returns, so that it may read state
    /// of the caller's actor (`reading ?? self.cached`). It is not evaluated if the left future has already succeeded.
    /// What it throws is the error if the left fails. For a value that is to be computed only after a failure use
    /// ``recover(context:cancelToken:recovery:)``.
    public static func ?? (left: Future<T>, right: @autoclosure () throws -> T) -> Future<T> {
        if left.result?.isSuccess() == true { return left }
        let fallback: Try<T> = Try(right)
        let recovered = Future<T>()
        left.add(.completion { recovered.complete($0.isSuccess() ? $0 : fallback) })
        return recovered
    }

    /// Returns a future of the left future's value, or of the right future's outcome if the left fails.
    ///
    /// The right side, usually another request, is evaluated only if the left fails: on the thread that completes the
    /// left, or at once if it has failed already. What it throws is the error then. It is a `@Sendable` closure,
    /// therefore; for one that needs the main actor use ``recoverWith(on:cancelToken:recovery:)``.
    @preconcurrency
    public static func ?? (
        left: Future<T>, right: @autoclosure @escaping @Sendable () throws -> Future<T>
    ) -> Future<T> {
        left.recoverWith(context: ImmediateContext()) { _ in try right() }
    }

    /// A future of both values. It fails as soon as one of the two does.
    public func zip<U>(_ other: Future<U>) -> Future<(T, U)> {
        let zipped = Future<(T, U)>()
        add(
            .completion { mine in
                switch mine {
                case .success(let value): other.add(.completion { zipped.complete($0.map { (value, $0) }) })
                case .failure(let error): zipped.failure(error)
                }
            })
        other.add(.failure { zipped.failure($0) })
        return zipped
    }
}

/// A future of both values. It fails as soon as one of the two does.
public func zip<A, B>(_ first: Future<A>, _ second: Future<B>) -> Future<(A, B)> {
    first.zip(second)
}

/// A future of all three values. It fails as soon as one of the three does.
public func zip<A, B, C>(_ first: Future<A>, _ second: Future<B>, _ third: Future<C>) -> Future<(A, B, C)> {
    let zipped = Future<(A, B, C)>()
    first.zip(second.zip(third)).add(.completion { zipped.complete($0.map { ($0.0, $0.1.0, $0.1.1) }) })
    return zipped
}
