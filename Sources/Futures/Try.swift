/// What ``Try`` can tell about itself; the seam by which sequences of tries are recognised.
public protocol Tryable {
    associatedtype T

    /// The value, if there is one.
    var value: T? { get }
    /// The error, if there is one.
    var error: (any Error)? { get }

    init(_ value: T)
    init(_ error: any Error)
}

/// The outcome of something that may fail: a value or an error.
public enum Try<T>: Tryable {
    case success(T)
    case failure(any Error)

    /// A success.
    @inlinable
    public init(_ value: T) {
        self = .success(value)
    }

    /// A failure.
    @inlinable
    public init(_ error: any Error) {
        self = .failure(error)
    }

    /// What `task` returns or throws.
    @inlinable
    public init(_ task: () throws -> T) {
        do { self = .success(try task()) } catch { self = .failure(error) }
    }

    /// The value, or `nil` for a failure.
    @inlinable
    public var value: T? {
        switch self {
        case .success(let value): value
        case .failure: nil
        }
    }

    /// The error, or `nil` for a success.
    @inlinable
    public var error: (any Error)? {
        switch self {
        case .success: nil
        case .failure(let error): error
        }
    }

    /// Whether there is a value.
    @inlinable
    public func isSuccess() -> Bool {
        switch self {
        case .success: true
        case .failure: false
        }
    }

    /// Whether there is an error.
    @inlinable
    public func isFailure() -> Bool {
        !isSuccess()
    }

    /// The value, or the error thrown.
    @inlinable
    public func get() throws -> T {
        switch self {
        case .success(let value): return value
        case .failure(let error): throw error
        }
    }
}

/// The error of filters, made once: an error in a box of its own for each element turned down would be an allocation.
@usableFromInline let noSuchElement: any Error = FuturesError.noSuchElement

extension Try: Sendable where T: Sendable {}

extension Try {
    /// The value mapped; a failure stays as it is. What `mapping` throws is the new failure.
    @inlinable
    public func map<M>(_ mapping: (T) throws -> M) -> Try<M> {
        switch self {
        case .success(let value):
            do { return .success(try mapping(value)) } catch { return .failure(error) }
        case .failure(let error):
            return .failure(error)
        }
    }

    /// What `mapping` makes of the value; a failure stays as it is. What `mapping` throws is the new failure.
    @inlinable
    public func flatMap<M>(_ mapping: (T) throws -> Try<M>) -> Try<M> {
        switch self {
        case .success(let value):
            do { return try mapping(value) } catch { return .failure(error) }
        case .failure(let error):
            return .failure(error)
        }
    }

    /// The error mapped; a success stays as it is. What `mapping` throws is the new failure.
    @inlinable
    public func mapError(_ mapping: (any Error) throws -> any Error) -> Try<T> {
        switch self {
        case .success:
            return self
        case .failure(let error):
            do { return .failure(try mapping(error)) } catch { return .failure(error) }
        }
    }

    /// A success made of the error; a success stays as it is. What `recovery` throws is the new failure.
    @inlinable
    public func recover(_ recovery: (any Error) throws -> T) -> Try<T> {
        switch self {
        case .success:
            return self
        case .failure(let error):
            do { return .success(try recovery(error)) } catch { return .failure(error) }
        }
    }

    /// What `recovery` makes of the error; a success stays as it is. What `recovery` throws is the new failure.
    @inlinable
    public func recoverWith(_ recovery: (any Error) throws -> Try<T>) -> Try<T> {
        switch self {
        case .success:
            return self
        case .failure(let error):
            do { return try recovery(error) } catch { return .failure(error) }
        }
    }

    /// Itself if `predicate` accepts the value, else the failure ``FuturesError/noSuchElement``. What it throws is the
    /// new failure.
    @inlinable
    public func filter(_ predicate: (T) throws -> Bool) -> Try<T> {
        flatMap { value in try predicate(value) ? self : .failure(noSuchElement) }
    }

    /// Calls `apply` with the value, if there is one.
    @inlinable
    public func forEach(_ apply: (T) throws -> Void) rethrows {
        if case .success(let value) = self { try apply(value) }
    }

    /// Calls `completion` with the value, if there is one, and returns the same outcome.
    @inlinable
    func after(_ completion: (T) -> Void) -> Try<T> {
        forEach(completion)
        return self
    }

    /// Itself if it is a success, else `failed`.
    @inlinable
    public func orElse(_ failed: @autoclosure () throws -> Try<T>) rethrows -> Try<T> {
        isSuccess() ? self : try failed()
    }

    /// The value, or `nil`.
    @inlinable
    public func toOptional() -> T? {
        value
    }

    /// The value, or `failed` if there is none.
    @inlinable
    public func getOrElse(_ failed: @autoclosure () throws -> T) rethrows -> T {
        switch self {
        case .success(let value): value
        case .failure: try failed()
        }
    }

    /// The value, or what stands on the right if there is none.
    @inlinable
    public static func ?? (left: Try<T>, right: @autoclosure () throws -> T) rethrows -> T {
        try left.getOrElse(try right())
    }

    /// The left side if it is a success, else the right.
    @inlinable
    public static func ?? (left: Try<T>, right: @autoclosure () throws -> Try<T>) rethrows -> Try<T> {
        try left.orElse(try right())
    }
}

extension Sequence where Element: Tryable {
    /// All values in their order, or the first failure.
    @inlinable
    public func sequence() -> Try<[Element.T]> {
        var values: [Element.T] = []
        values.reserveCapacity(underestimatedCount)
        for element in self {
            if let error = element.error { return .failure(error) }
            if let value = element.value { values.append(value) }
        }
        return .success(values)
    }
}
