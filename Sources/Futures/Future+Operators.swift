extension Future {
    /// The value of the left future, or the one on the right if it fails.
    ///
    /// The right side is evaluated only then, on the thread that completes the left.
    public static func ?? (left: Future<T>, right: @autoclosure @escaping () -> T) -> Future<T> {
        let recovered = Future<T>()
        left.add(.completion { recovered.complete($0.recover { _ in right() }) })
        return recovered
    }

    /// The left future, or what the right one completes with if the left fails.
    ///
    /// The right side is evaluated only then, on the thread that completes the left.
    public static func ?? (left: Future<T>, right: @autoclosure @escaping () -> Future<T>) -> Future<T> {
        let recovered = Future<T>()
        left.add(
            .completion { outcome in
                if outcome.isSuccess() { recovered.complete(outcome) } else { recovered.follow(right()) }
            })
        return recovered
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
