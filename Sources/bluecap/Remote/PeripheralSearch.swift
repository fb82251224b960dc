import BlueCapKit

/// Decides which of those that are heard is the one that was asked for, as a value.
///
/// An address is somebody at once. A name may be that of several: for a moment others of that name are waited for, and a
/// beginning of a name waits longer, so that nothing is written to the wrong one.
struct PeripheralSearch: Sendable {
    /// One that fits.
    struct Candidate: Equatable, Sendable {
        var address: BluetoothAddress
        var name: String?
    }

    enum Event: Equatable, Sendable {
        case heard(Candidate)
        /// The time that `wait` asked for is over.
        case waited
        /// The time for the search is over.
        case timeIsOver
    }

    enum Effect: Equatable, Sendable {
        /// Tells `waited` after so many seconds; instead of an earlier wish.
        case wait(Double)
        case found(Candidate)
        case failed(String)
    }

    /// How long a peripheral of the same name may take to be heard, in seconds: most advertise every second or faster.
    static let waitForNamesakes = 1.0
    /// How long one with a better name may take.
    static let waitForBetter = 2.5

    private let argument: PeripheralArgument
    private let patience: Double
    private var best: (fit: PeripheralArgument.Fit, candidates: [Candidate])?
    private var others: Set<BluetoothAddress> = []
    private var isOver = false

    /// - Parameter patience: seconds that the search lasts at most, for the words that say so.
    init(for argument: PeripheralArgument, patience: Double) {
        self.argument = argument
        self.patience = patience
    }

    mutating func handle(_ event: Event) -> [Effect] {
        guard !isOver else { return [] }
        switch event {
        case .heard(let candidate): return hear(candidate)
        case .waited, .timeIsOver: return decide()
        }
    }

    private mutating func hear(_ candidate: Candidate) -> [Effect] {
        guard let fit = argument.fit(address: candidate.address, name: candidate.name) else {
            others.insert(candidate.address)
            return []
        }
        others.remove(candidate.address)
        if fit == .address { return end(.found(candidate)) }
        if let best, best.fit >= fit {
            guard best.fit == fit, !best.candidates.contains(where: { $0.address == candidate.address }) else {
                return []
            }
            self.best = (fit, best.candidates + [candidate])
            return []
        }
        best = (fit, [candidate])
        return [.wait(fit == .name ? Self.waitForNamesakes : Self.waitForBetter)]
    }

    private mutating func decide() -> [Effect] {
        guard let candidates = best?.candidates, let first = candidates.first else { return end(.failed(nobody)) }
        guard candidates.count == 1 else {
            let list = candidates.map { "\($0.address) (\($0.name.map(DisplayText.name) ?? "no name"))" }.joined(
                separator: ", ")
            return end(
                .failed(
                    "\"\(argument.text)\" is \(candidates.count) peripherals here; say which by its address: \(list)."))
        }
        return end(.found(first))
    }

    private mutating func end(_ effect: Effect) -> [Effect] {
        isOver = true
        return [effect]
    }

    private var nobody: String {
        let seconds = patience == patience.rounded() ? String(Int(patience)) : String(patience)
        let who = argument.address == nil ? "nobody of the name \"\(argument.text)\"" : "\(argument.text) was not"
        let heard = argument.address == nil ? "\(who) was heard" : "\(who) heard"
        let rest = others.isEmpty ? "nor anybody else" : "\(others.count) other\(others.count == 1 ? " was" : "s were")"
        return "In \(seconds) s \(heard), \(rest): `bluecap scan` shows who is there."
    }
}
