extension Optional {
    /// Itself if `predicate` accepts the value, else `nil`.
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
