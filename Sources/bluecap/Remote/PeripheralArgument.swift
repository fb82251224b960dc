import ArgumentParser
import BlueCapKit

/// A peripheral on the command line: its address, its name, or the beginning of its name.
struct PeripheralArgument: ExpressibleByArgument, Equatable, Sendable {
    enum Fit: Equatable, Comparable, Sendable {
        /// The name begins with the text.
        case beginning
        /// The text is the name.
        case name
        /// The text is the address, which is unique.
        case address
    }

    let text: String
    /// `nil` if the text is a name.
    let address: BluetoothAddress?

    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        text = argument
        // With hyphens, as other systems and file names spell it.
        address = BluetoothAddress(argument.replacing("-", with: ":"))
    }

    /// Returns how well a peripheral with this address and these names fits; `nil` if it does not.
    func fit(address: BluetoothAddress, names: [String]) -> Fit? {
        if let wanted = self.address { return address == wanted ? .address : nil }
        let wanted = text.lowercased()
        return names.compactMap { name in
            let name = name.lowercased()
            return name == wanted ? .name : name.hasPrefix(wanted) ? .beginning : nil
        }.max()
    }
}

/// Decides which of the discovered peripherals is the one on the command line, as a value.
///
/// An address identifies a peripheral at once. Several peripherals may have one name, so the search waits for others of that
/// name; after a match with the beginning of a name it waits longer, so that nothing is written to the wrong peripheral.
struct PeripheralSearch: Sendable {
    struct Candidate: Equatable, Sendable {
        var address: BluetoothAddress
        /// The present name first, then those that it had before, or may have again.
        var names: [String]
    }

    enum Effect: Equatable, Sendable {
        /// Call ``decide()`` after so many seconds; replaces an earlier timer.
        case wait(Double)
        case decided(Result<Candidate, ToolFailure>)
    }

    /// How long to wait for another peripheral of the same name, in seconds: most advertise every second or faster.
    static let waitForNamesakes = 1.0
    /// How long to wait for a peripheral that fits better, in seconds.
    static let waitForBetter = 2.5

    private let argument: PeripheralArgument
    private let patience: Double?
    private var best: (fit: PeripheralArgument.Fit, candidates: [Candidate])?
    private var others: Set<BluetoothAddress> = []
    private var isOver = false

    /// - Parameter patience: The length of the search in seconds, for the failure's text; `nil` for a search in a list of
    ///   bonds, which has no length.
    init(for argument: PeripheralArgument, patience: Double?) {
        self.argument = argument
        self.patience = patience
    }

    mutating func discovered(_ candidate: Candidate) -> Effect? {
        guard !isOver else { return nil }
        guard let fit = argument.fit(address: candidate.address, names: candidate.names) else {
            others.insert(candidate.address)
            return nil
        }
        others.remove(candidate.address)
        if fit == .address {
            best = (fit, [candidate])
            return decide()
        }
        guard let best, best.fit >= fit else {
            best = (fit, [candidate])
            return .wait(fit == .name ? Self.waitForNamesakes : Self.waitForBetter)
        }
        if best.fit == fit, !best.candidates.contains(where: { $0.address == candidate.address }) {
            self.best = (fit, best.candidates + [candidate])
        }
        return nil
    }

    /// Ends the search: the time of the search, or of the newest `wait`, is over.
    mutating func decide() -> Effect? {
        guard !isOver else { return nil }
        isOver = true
        return .decided(outcome)
    }

    private var outcome: Result<Candidate, ToolFailure> {
        guard let candidates = best?.candidates, let first = candidates.first else {
            return .failure(ToolFailure(nothingFound))
        }
        guard candidates.count > 1 else { return .success(first) }
        let list = candidates.map { "\($0.address) (\($0.names.first.map(DisplayText.name) ?? "no name"))" }
        return .failure(
            ToolFailure(
                "\"\(argument.text)\" is the name of \(candidates.count) peripherals; use the address of one:",
                list.joined(separator: ", ") + "."))
    }

    /// Returns the address of the bond that the argument names.
    static func choice(
        of argument: PeripheralArgument, amongBonds candidates: [Candidate]
    ) throws(ToolFailure) -> BluetoothAddress {
        var search = PeripheralSearch(for: argument, patience: nil)
        for candidate in candidates { _ = search.discovered(candidate) }
        return try search.outcome.get().address
    }

    private var nothingFound: String {
        let what = argument.address == nil ? "named \"\(argument.text)\"" : "with the address \(argument.text)"
        guard let patience else {
            return "The adapter has no bond with a device \(what): `bluecap bonds` lists its bonds."
        }
        let rest = others.isEmpty ? "nor any other" : "but \(Wording.count(others.count, "other"))"
        return "No peripheral \(what) was found in \(Wording.number(patience)) s, \(rest): "
            + "`bluecap scan` lists what is in range."
    }
}
