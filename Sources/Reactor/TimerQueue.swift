import HeapModule

/// What falls due when: values with deadlines, in the order of the deadlines, equal ones in the order they were added.
///
/// A pure value, with no clock and no thread in it. Cancelled entries leave the heap when they come to its top; where
/// they make up more than half of it, it is rebuilt without them, so that a time-out on each of a million calls that
/// were answered long ago costs no memory.
package struct TimerQueue<Value> {
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
    private var values: [UInt64: Value] = [:]
    private var lastNumber: UInt64 = 0

    package init() {}

    /// How many entries wait.
    package var count: Int { values.count }
    package var isEmpty: Bool { values.isEmpty }

    /// How many entries are stored, cancelled ones among them; for tests of the bound.
    package var storedCount: Int { heap.count }

    /// Adds a value; the result names it for `cancel`.
    package mutating func add(_ value: Value, deadline: Instant) -> UInt64 {
        lastNumber += 1
        values[lastNumber] = value
        heap.insert(Entry(deadline: deadline, number: lastNumber))
        return lastNumber
    }

    /// Takes an entry out; nil where it fell due or was cancelled before.
    @discardableResult
    package mutating func cancel(_ number: UInt64) -> Value? {
        guard let value = values.removeValue(forKey: number) else { return nil }
        if heap.count > 64, heap.count > 2 * values.count {
            heap = Heap(heap.unordered.filter { values[$0.number] != nil })
        }
        return value
    }

    /// A waiting entry's value; nil where it fell due or was cancelled. Setting another value keeps the deadline.
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
            heap = Heap()
        }
        return values.sorted { $0.key < $1.key }.map(\.value)
    }

    /// The deadline of the entry that falls due first.
    package var nextDeadline: Instant? {
        mutating get {
            while let entry = heap.min {
                if values[entry.number] != nil { return entry.deadline }
                heap.removeMin()
            }
            return nil
        }
    }

    /// Takes the first entry whose deadline is not after `now`.
    package mutating func popDue(at now: Instant) -> Value? {
        guard let deadline = nextDeadline, deadline <= now else { return nil }
        return values.removeValue(forKey: heap.removeMin().number)
    }
}
