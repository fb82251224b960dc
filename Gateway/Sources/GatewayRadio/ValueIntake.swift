import Synchronization

/// Elements that wait to be stored: added by threads that must not wait, taken in groups by one task. Bounded.
///
/// If it is full, an element is not taken, and its key is noted: the next group names the keys of which elements are missing.
public final class ValueIntake<Element: Sendable, Key: Hashable & Sendable>: Sendable {
    /// What was added since the last group.
    public struct Group: Sendable {
        public var elements: [Element] = []
        /// The keys of elements that were not taken after those, with their number.
        public var missing: [Key: Int] = [:]

        var isEmpty: Bool { elements.isEmpty && missing.isEmpty }
    }

    private let limit: Int
    private let hasFinished = Atomic(false)
    private let waiting = Mutex(Group())
    private let signal: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    /// - Parameter limit: How many elements wait at most, from 1.
    public init(limit: Int) {
        self.limit = limit
        (signal, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds an element; does not wait.
    ///
    /// - Returns: Whether it is the first element since the last group that was not taken.
    @discardableResult
    public func add(_ element: Element, key: Key) -> Bool {
        let isFirstMissing = waiting.withLock { group in
            guard group.elements.count >= limit else {
                group.elements.append(element)
                return false
            }
            defer { group.missing[key, default: 0] += 1 }
            return group.missing.isEmpty
        }
        continuation.yield()
        return isFirstMissing
    }

    /// How many elements wait.
    public var count: Int { waiting.withLock { $0.elements.count } }

    /// Returns what was added since the last call, as soon as there is something; `nil` when the task is cancelled or the intake
    /// has ended and nothing waits. For one task.
    public func next() async -> Group? {
        while true {
            let group = waiting.withLock { group in
                defer { group = Group() }
                return group
            }
            if !group.isEmpty { return group }
            var iterator = signal.makeAsyncIterator()
            guard await iterator.next() != nil else {
                let last = waiting.withLock { group in
                    defer { group = Group() }
                    return group
                }
                return last.isEmpty ? nil : last
            }
        }
    }

    /// Ends the intake: what waits is still returned.
    public func finish() {
        hasFinished.store(true, ordering: .relaxed)
        continuation.finish()
    }

    /// Whether ``finish()`` was called.
    public var isFinished: Bool { hasFinished.load(ordering: .relaxed) }
}
