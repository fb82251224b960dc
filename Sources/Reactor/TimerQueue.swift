import HeapModule

/// What falls due when: values with deadlines, in the order of the deadlines, equal ones in the order they were added.
///
/// A pure value, with no clock and no thread in it. Cancelled entries leave the heap when they come to its top; where
/// they make up more than half of it, it is rebuilt without them, so that a time-out on each of a million calls that
/// were answered long ago costs no memory.
///
/// Inlinable, so that what is generic here is compiled where the values' type is known: looking types up while the program
/// runs would cost more than all the rest.
package struct TimerQueue<Value> {
    package var deadlines = DeadlineHeap()
    package var values: [UInt64: Value] = [:]
    package var lastNumber: UInt64 = 0

    @inlinable
    package init() {}

    /// How many entries wait.
    @inlinable package var count: Int { values.count }
    @inlinable package var isEmpty: Bool { values.isEmpty }

    /// How many entries are stored, cancelled ones among them; for tests of the bound.
    package var storedCount: Int { deadlines.count }

    /// Adds a value; the result names it for `cancel`.
    @inlinable
    package mutating func add(_ value: Value, deadline: Instant) -> UInt64 {
        lastNumber += 1
        values[lastNumber] = value
        deadlines.insert(lastNumber, deadline: deadline)
        return lastNumber
    }

    /// Takes an entry out; nil where it fell due or was cancelled before.
    @inlinable @discardableResult
    package mutating func cancel(_ number: UInt64) -> Value? {
        guard let value = values.removeValue(forKey: number) else { return nil }
        if deadlines.count > 64, deadlines.count > 2 * values.count {
            let values = values
            deadlines.keep { values[$0] != nil }
        }
        return value
    }

    /// A waiting entry's value; nil where it fell due or was cancelled. Setting another value keeps the deadline.
    @inlinable
    package subscript(number: UInt64) -> Value? {
        get { values[number] }
        set {
            guard values[number] != nil, let newValue else { return }
            values[number] = newValue
        }
    }

    /// Takes every entry out, in the order they were added.
    package mutating func removeAll() -> [Value] {
        defer {
            values = [:]
            deadlines = DeadlineHeap()
        }
        return values.sorted { $0.key < $1.key }.map(\.value)
    }

    /// The deadline of the entry that falls due first.
    @inlinable
    package var nextDeadline: Instant? {
        mutating get {
            while let number = deadlines.first {
                if values[number] != nil { return deadlines.firstDeadline }
                deadlines.removeFirst()
            }
            return nil
        }
    }

    /// Takes the first entry whose deadline is not after `now`.
    @inlinable
    package mutating func popDue(at now: Instant) -> Value? {
        guard let deadline = nextDeadline, deadline <= now, let number = deadlines.first else { return nil }
        deadlines.removeFirst()
        return values.removeValue(forKey: number)
    }
}

/// Numbers in the order of their deadlines, and of equal ones in their own.
package struct DeadlineHeap {
    private struct Entry: Comparable {
        let deadline: Instant
        let number: UInt64

        static func < (left: Entry, right: Entry) -> Bool {
            left.deadline == right.deadline ? left.number < right.number : left.deadline < right.deadline
        }

        static func == (left: Entry, right: Entry) -> Bool {
            left.number == right.number
        }
    }

    private var heap = Heap<Entry>()

    package init() {}

    package var count: Int { heap.count }
    package var first: UInt64? { heap.min?.number }
    package var firstDeadline: Instant? { heap.min?.deadline }

    package mutating func insert(_ number: UInt64, deadline: Instant) {
        heap.insert(Entry(deadline: deadline, number: number))
    }

    package mutating func removeFirst() { heap.removeMin() }

    package mutating func keep(_ isKept: (UInt64) -> Bool) {
        heap = Heap(heap.unordered.filter { isKept($0.number) })
    }
}
