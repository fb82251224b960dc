/// The elements that a stream keeps for handlers that are added late, and how many it has lost.
@usableFromInline
struct Backlog<Element> {
    /// How many elements are kept at most.
    @usableFromInline var limit: Int
    /// How many elements were lost because nothing received them and the limit was reached.
    @usableFromInline var dropped = 0
    @usableFromInline var ring = Ring<Element>()

    var count: Int { ring.count }
    var elements: [Element] { ring.elements }

    /// Adds an element, and returns the one that it displaces.
    /// - Parameter isReceived: Whether handlers receive the element, so that losing it does not count.
    @inlinable
    mutating func append(_ element: Element, isReceived: Bool) -> Element? {
        let evicted = ring.count >= limit ? ring.popFirst() : nil
        if limit > 0 { ring.append(element) }
        if !isReceived, evicted != nil || limit == 0 { dropped += 1 }
        return evicted
    }

    /// From now on keeps at most `limit` elements, which must be less than before. Returns the removed ones.
    mutating func trim(to limit: Int) -> [Element] {
        self.limit = limit
        var removed: [Element] = []
        while ring.count > limit, let oldest = ring.popFirst() { removed.append(oldest) }
        return removed
    }
}

/// A first-in, first-out queue in a ring of slots: adding and removing cost the same however many elements there are. More than a
/// thousand slots are released when it is empty.
@usableFromInline
package struct Ring<Element> {
    /// Full slots, and, once the ring has wrapped or something was removed, empty ones.
    @usableFromInline var slots: ContiguousArray<Element?> = []
    /// The slot of the oldest element.
    @usableFromInline var head = 0
    @usableFromInline package private(set) var count = 0

    @inlinable
    package init() {}

    @inlinable package var isEmpty: Bool { count == 0 }
    @inlinable package var first: Element? { isEmpty ? nil : slots[head] }

    @inlinable
    package mutating func append(_ element: Element) {
        if count == slots.count { grow() }
        var end = head + count
        if end >= slots.count { end -= slots.count }
        slots[end] = element
        count += 1
    }

    /// Removes and returns the oldest element.
    @inlinable @discardableResult
    package mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let first = slots[head].take()
        head += 1
        if head == slots.count { head = 0 }
        count -= 1
        if count == 0, slots.count > 1_024 { self = Ring() }
        return first
    }

    /// Inserts an element before the others.
    @inlinable
    package mutating func prepend(_ element: Element) {
        if count == slots.count { grow() }
        head = (head == 0 ? slots.count : head) - 1
        slots[head] = element
        count += 1
    }

    /// Removes and returns the first element that `isMeant` accepts.
    @inlinable
    package mutating func remove(where isMeant: (Element) -> Bool) -> Element? {
        var rest = elements
        guard let index = rest.firstIndex(where: isMeant) else { return nil }
        let removed = rest.remove(at: index)
        self = Ring()
        for element in rest { append(element) }
        return removed
    }

    @inlinable
    package mutating func removeAll() { self = Ring() }

    /// All elements, oldest first.
    @inlinable
    package var elements: [Element] {
        var all: [Element] = []
        all.reserveCapacity(count)
        for offset in 0..<count {
            let slot = head + offset
            if let element = slots[slot < slots.count ? slot : slot - slots.count] { all.append(element) }
        }
        return all
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

extension Ring: Sendable where Element: Sendable {}
