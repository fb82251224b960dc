import BlueCapBlueZ

/// Chooses the adapter that a manager uses from those that are present.
///
/// An adapter is kept by its address, not by its name: after a restart of the daemon, or a change of the USB port,
/// `hci0` may be another adapter. Several cheap adapters may have the same address. The manager then chooses the one
/// that it chose last, by its name, or else the one with the lowest index. That also holds if the user has requested
/// that address.
struct AdapterChoice: Equatable {
    struct Candidate: Hashable {
        /// The last part of its path: `hci0`.
        let name: String
        /// `00:1A:7D:DA:71:13`
        let address: String
    }

    /// The adapter that the user requested: a name, an address, or `nil` for the default one.
    let wanted: String?
    /// The address of the adapter that was chosen first.
    private(set) var keptAddress: String?
    /// The name of the adapter that was chosen last.
    private(set) var lastName: String?
    /// The name of the adapter that was in use when all adapters left, until it is chosen again: a starting daemon adds
    /// its adapters one by one, in any order.
    private(set) var awaitedName: String?
    /// Whether adapters that cannot be chosen were added or removed while no adapter is in use: the candidates have
    /// changed.
    private(set) var isOutdated = false
    /// The number of adapters that were examined so far; tests measure the effort with it.
    private(set) var examined = 0

    init(wanted: String?) { self.wanted = wanted }

    /// Returns the adapter to use now, or `nil` if none fits. The order of the candidates does not matter.
    mutating func choose(from candidates: [Candidate]) -> Candidate? {
        isOutdated = false
        examined += candidates.count
        guard let choice = pick(from: candidates) else {
            allWent()
            return nil
        }
        if keptAddress == nil { keptAddress = choice.address }
        if choice.name == awaitedName { awaitedName = nil }
        lastName = choice.name
        return choice
    }

    /// No adapter is left, because the daemon is gone or has none. The adapters that appear next may not be all.
    mutating func allWent() { awaitedName = awaitedName ?? lastName }

    private func pick(from candidates: [Candidate]) -> Candidate? {
        guard let wanted else {
            return preferred(candidates.filter { $0.address == keptAddress }) ?? preferred(candidates)
        }
        // A name is unique; an address is not.
        return candidates.first { $0.name == wanted }
            ?? preferred(candidates.filter { $0.address.lowercased() == wanted.lowercased() })
    }

    /// Returns the adapter that was used last, or else the one with the lowest index.
    private func preferred(_ candidates: [Candidate]) -> Candidate? {
        candidates.first { $0.name == awaitedName } ?? candidates.first { $0.name == lastName }
            ?? candidates.min { ($0.number, $0.name) < ($1.number, $1.name) }
    }
}

extension AdapterChoice {
    /// Returns whether the choice has to be made again after an adapter was added, changed or removed. Only a change
    /// that can matter leads to a comparison with all other adapters, so that the effort for each of many adapters
    /// stays constant.
    /// - Parameter current: The adapter in use.
    mutating func concerns(_ key: ObjectKey, current: ObjectKey?, in tree: borrowing ObjectTree) -> Bool {
        if key == current { return true }
        examined += 1
        let candidate = Self.candidate(key, in: tree)
        if let wanted {
            if candidate?.isCalled(wanted) == true { return true }
        } else {
            guard let current, let used = tree[adapter: current]?.address, used.description == keptAddress else {
                return true
            }
            // Another adapter with the same address.
            if candidate?.address == keptAddress { return true }
        }
        if current == nil { isOutdated = true }
        return false
    }

    private static func candidate(_ key: ObjectKey, in tree: borrowing ObjectTree) -> Candidate? {
        guard let address = tree[adapter: key]?.address else { return nil }
        let path = key.path
        let name = String(path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...])
        return Candidate(name: name, address: address.description)
    }

    /// Returns the adapters that BlueZ has, each with its key in the tree.
    static func candidates(in tree: borrowing ObjectTree) -> [Candidate: ObjectKey] {
        var keys: [Candidate: ObjectKey] = [:]
        for key in tree.adapterKeys {
            if let candidate = candidate(key, in: tree) { keys[candidate] = key }
        }
        return keys
    }
}

extension AdapterChoice.Candidate {
    /// Returns whether the user's text refers to this adapter.
    fileprivate func isCalled(_ text: String) -> Bool {
        name == text || address.lowercased() == text.lowercased()
    }

    /// The number in `hci12`; adapters with other names come last.
    fileprivate var number: Int { Int(name.drop { !$0.isNumber }) ?? .max }
}
