import Synchronization

/// A name for a group of handlers and combinators, by which they can be taken back.
///
/// Pass one token to as many of them as belong together, then hand it to `cancel(_:)` of the future or stream they were
/// registered with. A token is a value: copies name the same group, two tokens made apart never do.
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

    /// A token like no other.
    public init() {
        number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// The token of those that were given none: it names nobody, so nobody is cancelled by it.
    ///
    /// It is what every `cancelToken` parameter defaults to, and means what a fresh token that nobody keeps would mean,
    /// without the cost of one.
    @inlinable
    public static var uncancellable: CancelToken { CancelToken(number: 0) }

    private static let last = Atomic<UInt64>(0)
}
