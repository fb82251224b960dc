/// The part of a ``Try`` that the operators on sequences of tries use.
public protocol Tryable {
    /// The type of the value.
    associatedtype T

    /// The value, if there is one.
    var value: T? { get }
    /// The error, if there is one.
    var error: (any Error)? { get }

    /// Creates a success.
    init(_ value: T)
    /// Creates a failure.
    init(_ error: any Error)
}

/// The outcome of something that may fail: a value or an error.
///
/// If the closure of an operator throws, the returned outcome is the failure with that error.
public enum Try<T>: Tryable {
    /// There is a value.
    case success(T)
    /// There is an error in place of the value.
    case failure(any Error)

    @inlinable
    public init(_ value: T) {
        self = .success(value)
    }

    @inlinable
    public init(_ error: any Error) {
        self = .failure(error)
    }

    /// Creates the outcome of `task`: the value that it returns or the error that it throws.
    @inlinable
    public init(_ task: () throws -> T) {
        do { self = .success(try task()) } catch { self = .failure(error) }
    }

    @inlinable
    public var value: T? {
        if case .success(let value) = self { value } else { nil }
    }

    @inlinable
    public var error: (any Error)? {
        if case .failure(let error) = self { error } else { nil }
    }

    /// Whether there is a value.
    @inlinable
    public func isSuccess() -> Bool {
        if case .success = self { true } else { false }
    }

    /// Whether there is an error.
    @inlinable
    public func isFailure() -> Bool {
        !isSuccess()
    }

    /// Returns the value, or throws the error.
    @inlinable
    public func get() throws -> T {
        switch self {
        case .success(let value): return value
        case .failure(let error): throw error
        }
    }
}

/// The error of filters, created once: a new error for each rejected element would be an allocation.
@usableFromInline let noSuchElement: any Error = FuturesError.noSuchElement

extension Try: Sendable where T: Sendable {}

extension Try {
    /// Returns a success with the mapped value, or the same failure.
    @inlinable
    public func map<M>(_ mapping: (T) throws -> M) -> Try<M> {
        flatMap { .success(try mapping($0)) }
    }

    /// Returns the result of `mapping` for the value, or the same failure.
    @inlinable
    public func flatMap<M>(_ mapping: (T) throws -> Try<M>) -> Try<M> {
        switch self {
        case .success(let value):
            do { return try mapping(value) } catch { return .failure(error) }
        case .failure(let error):
            return .failure(error)
        }
    }

    /// Returns a failure with the mapped error, or the same success.
    @inlinable
    public func mapError(_ mapping: (any Error) throws -> any Error) -> Try<T> {
        recoverWith { .failure(try mapping($0)) }
    }

    /// Returns a success with the value of `recovery` for the error, or the same success.
    @inlinable
    public func recover(_ recovery: (any Error) throws -> T) -> Try<T> {
        recoverWith { .success(try recovery($0)) }
    }

    /// Returns the result of `recovery` for the error, or the same success.
    @inlinable
    public func recoverWith(_ recovery: (any Error) throws -> Try<T>) -> Try<T> {
        switch self {
        case .success:
            return self
        case .failure(let error):
            do { return try recovery(error) } catch { return .failure(error) }
        }
    }

    /// Returns the same outcome if `predicate` accepts the value, else the failure ``FuturesError/noSuchElement``.
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

    /// Returns this outcome if it is a success, else `failed`.
    @inlinable
    public func orElse(_ failed: @autoclosure () throws -> Try<T>) rethrows -> Try<T> {
        isSuccess() ? self : try failed()
    }

    /// Returns the value, or `nil`.
    @inlinable
    public func toOptional() -> T? {
        value
    }

    /// Returns the value, or `failed` if there is none.
    @inlinable
    public func getOrElse(_ failed: @autoclosure () throws -> T) rethrows -> T {
        try value ?? failed()
    }

    /// Returns the value on the left, or the right side if there is none.
    @inlinable
    public static func ?? (left: Try<T>, right: @autoclosure () throws -> T) rethrows -> T {
        try left.getOrElse(try right())
    }

    /// Returns the left side if it is a success, else the right side.
    @inlinable
    public static func ?? (left: Try<T>, right: @autoclosure () throws -> Try<T>) rethrows -> Try<T> {
        try left.orElse(try right())
    }
}

extension Sequence where Element: Tryable {
    /// Returns all values in their order, or the first failure.
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

extension Optional {
    /// Returns the same value if `predicate` accepts it, else `nil`.
    @inlinable
    public func filter(_ predicate: (Wrapped) throws -> Bool) rethrows -> Wrapped? {
        guard let value = self, try predicate(value) else { return nil }
        return value
    }

    /// Calls `apply` with the value, if there is one.
    @inlinable
    public func forEach(_ apply: (Wrapped) throws -> Void) rethrows {
        if let value = self { try apply(value) }
    }
}

/// The errors of the operators themselves.
public enum FuturesError: Int, Error, Sendable {
    /// The filter rejected the value, or an operator needs an element of an empty collection.
    case noSuchElement
    /// A completion block was called with neither a value nor an error.
    case invalidValue
}
