/// A condition that did not hold within its limit.
public struct LimitExceeded: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
}

/// Waits until a condition holds.
///
/// - Parameters:
///   - limit: How long to wait at most.
///   - what: What is waited for, for the error.
///   - condition: Called every ten milliseconds.
/// - Throws: ``LimitExceeded`` after the limit, or the error of the condition.
public func eventually(
    limit: Duration = .seconds(10), _ what: String = "the condition", isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < end else { throw LimitExceeded("\(what): not within \(limit)") }
        try await Task.sleep(for: .milliseconds(10))
    }
}
