/// Values with deadlines, in the order of the deadlines; equal deadlines keep the order in which they were added.
///
/// A pure value without a clock or a thread: a binary heap from which any entry can be removed. A cancelled entry leaves
/// it at once, so that the time-outs of a million calls with replies take no memory.
///
/// Usable from inline code, so that it is compiled with the type of the values: looking types up at run time would cost more
/// than everything else.
@usableFromInline
package struct TimerQueue<Value> {
    @usableFromInline
    struct Entry {
        @usableFromInline var value: Value?
        @usableFromInline let deadline: Instant
        /// The sequence number, then the slot in the lowest 24 bits.
        @usableFromInline let number: UInt64
        /// The index in `heap`.
        @usableFromInline var position: Int

        @inlinable
        init(value: Value, deadline: Instant, number: UInt64, position: Int) {
            (self.value, self.deadline, self.number, self.position) = (value, deadline, number, position)
        }
    }

    /// The entries, at indices that do not change, called slots. An entry without a value is free.
    @usableFromInline var entries: [Entry] = []
    @usableFromInline var freeSlots: [Int] = []
    /// The slots of the values: each deadline is not after those at twice its index plus one and plus two.
    @usableFromInline var heap: [Int] = []
    @usableFromInline var lastSequence: UInt64 = 0

    @inlinable
    package init() {}

    /// The number of entries that are neither due nor cancelled.
    @inlinable package var count: Int { heap.count }
    @inlinable package var isEmpty: Bool { heap.isEmpty }

    /// The number of entries that the queue has allocated; for tests of its memory.
    package var storedCount: Int { entries.count }

    /// Adds a value. The result identifies it in `cancel`; later entries have greater numbers.
    @inlinable
    package mutating func add(_ value: Value, deadline: Instant) -> UInt64 {
        let slot = freeSlots.popLast() ?? entries.count
        precondition(slot < 1 << 24, "More than 16 million timers or calls are pending on one loop.")
        lastSequence += 1
        let number = lastSequence << 24 | UInt64(slot)
        let entry = Entry(value: value, deadline: deadline, number: number, position: heap.count)
        if slot == entries.count { entries.append(entry) } else { entries[slot] = entry }
        heap.append(slot)
        moveUp(slot)
        return number
    }

    /// Removes an entry and returns its value; `nil` if it is no longer in the queue.
    @inlinable @discardableResult
    package mutating func cancel(_ number: UInt64) -> Value? { slot(of: number).flatMap { remove($0) } }

    /// The value of an entry; `nil` if it is no longer in the queue. Setting a value keeps the deadline.
    @inlinable
    package subscript(number: UInt64) -> Value? {
        get { slot(of: number).flatMap { entries[$0].value } }
        set { if let newValue, let slot = slot(of: number) { entries[slot].value = newValue } }
    }

    /// Removes all entries and returns their values in the order in which they were added.
    package mutating func removeAll() -> [Value] {
        let last = lastSequence
        defer {
            self = TimerQueue()
            // The number of a removed entry never names a later one.
            lastSequence = last
        }
        let numbers = heap.map { entries[$0].number }.sorted()
        return numbers.compactMap { self[$0] }
    }

    /// The deadline of the entry that is due first.
    @inlinable package var nextDeadline: Instant? { heap.first.map { entries[$0].deadline } }

    /// Removes the first entry and returns its value, if its deadline is not after `now`.
    @inlinable
    package mutating func popDue(at now: Instant) -> Value? {
        guard let slot = heap.first, entries[slot].deadline <= now else { return nil }
        return remove(slot)
    }

    @inlinable
    func slot(of number: UInt64) -> Int? {
        let slot = Int(number & (1 << 24 - 1))
        return slot < entries.count && entries[slot].number == number && entries[slot].value != nil ? slot : nil
    }

    @inlinable
    mutating func remove(_ slot: Int) -> Value? {
        let last = heap.removeLast()
        if last != slot {
            place(last, at: entries[slot].position)
            moveUp(last)
            moveDown(last)
        }
        freeSlots.append(slot)
        return entries[slot].value.take()
    }

    @inlinable
    func isBefore(_ left: Int, _ right: Int) -> Bool {
        let (first, second) = (entries[left].deadline, entries[right].deadline)
        return first == second ? entries[left].number < entries[right].number : first < second
    }

    @inlinable
    mutating func place(_ slot: Int, at position: Int) {
        heap[position] = slot
        entries[slot].position = position
    }

    @inlinable
    mutating func moveUp(_ slot: Int) {
        var position = entries[slot].position
        while position > 0, isBefore(slot, heap[(position - 1) / 2]) {
            place(heap[(position - 1) / 2], at: position)
            position = (position - 1) / 2
        }
        place(slot, at: position)
    }

    @inlinable
    mutating func moveDown(_ slot: Int) {
        var position = entries[slot].position
        while 2 * position + 1 < heap.count {
            var child = 2 * position + 1
            if child + 1 < heap.count, isBefore(heap[child + 1], heap[child]) { child += 1 }
            guard isBefore(heap[child], slot) else { break }
            place(heap[child], at: position)
            position = child
        }
        place(slot, at: position)
    }
}

extension TimerQueue: Sendable where Value: Sendable {}
extension TimerQueue.Entry: Sendable where Value: Sendable {}
