/// What the combinators themselves fail with.
public enum FuturesError: Int, Error, Sendable {
    /// A value was there, and the filter turned it down; or something was asked of an empty collection.
    case noSuchElement
    /// A completion block was called with neither a value nor an error.
    case invalidValue
}
