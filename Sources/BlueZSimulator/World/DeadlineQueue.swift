/// Keys by deadline, the earliest first, and among equals the one that was set first.
///
/// Moving a deadline later is cheap: the entry is put back when its old deadline comes. That is the
/// common case here, a device that is discovered again, thousands of times a second.
struct DeadlineQueue<Key: Hashable & Sendable>: Sendable {
    private struct Entry {
        var deadline: Double
        var order: UInt64
        var key: Key

        static func before(_ left: Entry, _ right: Entry) -> Bool {
            left.deadline != right.deadline ? left.deadline < right.deadline : left.order < right.order
        }
    }

    private struct Standing {
        var deadline: Double
        var queued: Double
    }

    private var heap: [Entry] = []
    private var standing: [Key: Standing] = [:]
    private var order: UInt64 = 0

    var isEmpty: Bool { standing.isEmpty }

    /// Sets or moves the deadline of `key`.
    mutating func set(_ key: Key, to deadline: Double) {
        if var present = standing[key], present.queued <= deadline {
            present.deadline = deadline
            standing[key] = present
            return
        }
        standing[key] = Standing(deadline: deadline, queued: deadline)
        push(key, deadline)
    }

    /// Removes `key`.
    mutating func remove(_ key: Key) {
        standing[key] = nil
        if standing.isEmpty { heap.removeAll() }
    }

    mutating func removeAll() {
        heap.removeAll()
        standing.removeAll()
    }

    /// Returns the earliest deadline.
    mutating func next() -> Double? {
        settle()
        return heap.first?.deadline
    }

    /// Removes and returns the earliest key with a deadline at or before `now`.
    mutating func popDue(at now: Double) -> (key: Key, deadline: Double)? {
        settle()
        guard let first = heap.first, first.deadline <= now else { return nil }
        removeFirst()
        standing[first.key] = nil
        return (first.key, first.deadline)
    }

    /// Brings a valid entry to the top: drops those that were removed, puts back those that were moved later.
    private mutating func settle() {
        while let first = heap.first {
            guard var present = standing[first.key], present.queued == first.deadline else {
                removeFirst()
                continue
            }
            guard present.deadline > first.deadline else { return }
            removeFirst()
            present.queued = present.deadline
            standing[first.key] = present
            push(first.key, present.deadline)
        }
    }

    private mutating func push(_ key: Key, _ deadline: Double) {
        order += 1
        heap.append(Entry(deadline: deadline, order: order, key: key))
        var index = heap.count - 1
        while index > 0 {
            let parent = (index - 1) / 2
            guard Entry.before(heap[index], heap[parent]) else { break }
            heap.swapAt(index, parent)
            index = parent
        }
    }

    private mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count {
                if Entry.before(heap[child], heap[least]) { least = child }
            }
            guard least != index else { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
