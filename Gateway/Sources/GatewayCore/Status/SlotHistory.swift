/// The last sixty numbers of a series in equal steps of time, in place, without allocation.
struct SlotHistory<Number: FixedWidthInteger & SignedInteger & BitwiseCopyable & Sendable>: Sendable {
    static var capacity: Int { 60 }
    /// Stands for a step without a number.
    private static var absent: Number { .min }

    private var numbers = InlineArray<60, Number>(repeating: Self.absent)
    /// The step of the last number; -1 before the first one.
    private(set) var newest = -1

    /// Sets the number of a step, which replaces an earlier one of the same step.
    ///
    /// - Parameter step: Not negative. A step before the newest one is taken as the newest one.
    mutating func record(_ number: Number, step: Int) {
        let step = max(step, newest)
        if step - newest >= Self.capacity {
            numbers = InlineArray(repeating: Self.absent)
        } else if step > newest {
            for skipped in (newest + 1)...step { numbers[skipped % Self.capacity] = Self.absent }
        }
        numbers[step % Self.capacity] = max(number, Self.absent + 1)
        newest = step
    }

    /// Returns the numbers from a step on, without leading steps that have none.
    func history(from first: Int) -> StatusSnapshot.History {
        var step = max(first, newest - Self.capacity + 1, 0)
        while step <= newest, numbers[step % Self.capacity] == Self.absent { step += 1 }
        guard step <= newest else { return .init(end: max(newest, 0), values: []) }
        let values = (step...newest).map { step -> Int? in
            let number = numbers[step % Self.capacity]
            return number == Self.absent ? nil : Int(number)
        }
        return .init(end: newest, values: values)
    }
}
