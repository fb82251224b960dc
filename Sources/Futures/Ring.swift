/// The latest elements of a sequence, oldest first; adding and removing cost the same however many there are.
@usableFromInline
struct Ring<Element> {
    /// Full slots, and, once the ring has wrapped or something was removed, empty ones.
    @usableFromInline var slots: ContiguousArray<Element?> = []
    /// The slot of the oldest element.
    @usableFromInline var head = 0
    @usableFromInline var count = 0

    @inlinable
    init() {}

    @inlinable
    var isEmpty: Bool { count == 0 }

    /// Adds at the end. Returns the oldest element if there were already `limit`, which must be at least 1.
    @inlinable
    mutating func append(_ element: Element, limit: Int) -> Element? {
        if count >= limit {
            let evicted = removeFirst()
            append(element)
            return evicted
        }
        append(element)
        return nil
    }

    @inlinable
    mutating func append(_ element: Element) {
        if count == slots.count { grow() }
        var end = head + count
        if end >= slots.count { end -= slots.count }
        slots[end] = element
        count += 1
    }

    /// Removes and returns the oldest element.
    @inlinable
    mutating func removeFirst() -> Element? {
        guard count > 0 else { return nil }
        let first = slots[head].take()
        head += 1
        if head == slots.count { head = 0 }
        count -= 1
        return first
    }

    /// All elements, oldest first.
    @inlinable
    var elements: [Element] {
        var all: [Element] = []
        all.reserveCapacity(count)
        for offset in 0..<count {
            let slot = head + offset
            if let element = slots[slot < slots.count ? slot : slot - slots.count] { all.append(element) }
        }
        return all
    }

    /// Removes all but the latest `limit` elements and returns the others, oldest first.
    @usableFromInline
    mutating func trim(to limit: Int) -> [Element] {
        guard count > limit else { return [] }
        let all = elements
        self = Ring()
        for element in all.suffix(limit) { append(element) }
        return Array(all.dropLast(limit))
    }

    @usableFromInline @inline(never)
    mutating func grow() {
        var larger = ContiguousArray<Element?>()
        larger.reserveCapacity(Swift.max(4, count * 2))
        for offset in 0..<count {
            let slot = head + offset
            larger.append(slots[slot < count ? slot : slot - count].take())
        }
        while larger.count < larger.capacity { larger.append(nil) }
        slots = larger
        head = 0
    }
}
