import Foundation
import BlueCapReactor

/// Keys by deadline, the earliest first, and among equals the one that was set first. Deadlines are in seconds, and are
/// kept in whole nanoseconds, as on an event loop.
struct DeadlineQueue<Key: Hashable & Sendable>: Sendable {
    private var queue = TimerQueue<Key>()
    private var entries: [Key: UInt64] = [:]

    var isEmpty: Bool { queue.isEmpty }

    var next: TimeInterval? { queue.nextDeadline?.seconds(since: .origin) }

    func contains(_ key: Key) -> Bool { entries[key] != nil }

    /// Sets or moves the deadline of `key`.
    mutating func set(_ key: Key, to deadline: TimeInterval) {
        remove(key)
        entries[key] = queue.add(key, deadline: .origin.advanced(by: deadline))
    }

    mutating func remove(_ key: Key) { if let entry = entries.removeValue(forKey: key) { queue.cancel(entry) } }

    mutating func remove(_ keys: Key...) { for key in keys { remove(key) } }

    mutating func removeAll(where isRemoved: (Key) -> Bool) {
        for key in entries.keys.filter(isRemoved) { remove(key) }
    }

    /// Removes and returns the earliest key with a deadline at or before `now`.
    mutating func popDue(at now: TimeInterval) -> (key: Key, deadline: TimeInterval)? {
        guard let deadline = next, deadline <= now, let key = queue.popDue(at: .distantFuture) else { return nil }
        entries[key] = nil
        return (key, deadline)
    }
}
