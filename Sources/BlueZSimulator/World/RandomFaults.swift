/// Faults that are drawn anew for each attempt to connect.
struct RandomFaults: Sendable {
    private var numbers: SeededGenerator
    private let share: Double

    init(seed: UInt64, share: Double) {
        numbers = SeededGenerator(seed: seed)
        self.share = min(1, max(0, share))
    }

    /// What goes wrong this time.
    mutating func next() -> PeerFaults {
        var faults = PeerFaults()
        let isFaulty = Double(numbers.next() >> 11) / Double(1 << 53) < share
        let kind = numbers.next() % 8
        let size = Int(numbers.next() % 6) + 1
        guard isFaulty else { return faults }
        switch kind {
        case 0: faults.refusals = 1
        case 1:
            faults.drops = 1
            faults.dropDelay = Double(size) * 0.03
        case 2, 3: faults.requestsUntilDrop = size
        case 4: faults.vanishesInWrite = true
        case 5: faults.isSilent = true
        case 6: faults.extraDelay = Double(size) * 0.4
        default: faults.isUnresolved = true
        }
        return faults
    }
}
