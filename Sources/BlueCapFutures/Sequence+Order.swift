extension Sequence {
    /// Returns the elements in the order of `precedes`; those of which neither precedes the other keep their order.
    ///
    /// For each type of elements the compiler makes another `sorted(by:)`, which takes it as long as some dozen functions.
    /// This one sorts positions, for elements of every type by the same code.
    @inlinable
    package func ordered(by precedes: (Element, Element) -> Bool) -> [Element] {
        let elements = Array(self)
        guard elements.count > 1 else { return elements }
        return orderedPositions(elements.count) { precedes(elements[$0], elements[$1]) }.map { elements[$0] }
    }
}

extension Sequence where Element: Comparable {
    /// Returns the elements in ascending order.
    @inlinable
    package func ordered() -> [Element] { ordered(by: <) }
}

@usableFromInline
@inline(never)
func orderedPositions(_ count: Int, _ precedes: (Int, Int) -> Bool) -> [Int] { (0..<count).sorted(by: precedes) }
