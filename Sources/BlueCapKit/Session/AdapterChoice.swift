import BlueZ

/// Which of the present adapters a manager uses.
///
/// An adapter is kept by its address, not by its name: after a restart of the daemon, or a change of the USB port,
/// `hci0` may be another one. Cheap adapters may have one address: of those the one is chosen that was chosen last, by its
/// name, else the one with the lowest index. That also holds if the user has asked for their address.
struct AdapterChoice: Equatable {
    struct Candidate: Hashable {
        /// The last part of its path: `hci0`.
        let name: String
        /// `00:1A:7D:DA:71:13`
        let address: String
    }

    /// What the user asked for: a name, an address, or `nil` for the default one.
    let wanted: String?
    /// The address of the adapter that was chosen first.
    private(set) var keptAddress: String?
    /// The name of the adapter that was chosen last.
    private(set) var lastName: String?
    /// The name of the adapter that was in use when all adapters left, until it is chosen again: a daemon that starts adds
    /// its adapters one by one, in any order.
    private(set) var awaitedName: String?
    /// Adapters have come or gone that cannot be chosen, while none is: what there is to choose among has changed.
    private(set) var isOutdated = false
    /// How many adapters were looked at so far; for tests of the effort.
    private(set) var examined = 0

    init(wanted: String?) { self.wanted = wanted }

    /// The adapter to use now, or `nil` if none fits. The order of the candidates does not matter.
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

    /// There is no adapter to choose, since the daemon is gone or has none. What comes next may not be all.
    mutating func allWent() { awaitedName = awaitedName ?? lastName }

    private func pick(from candidates: [Candidate]) -> Candidate? {
        guard let wanted else {
            return preferred(candidates.filter { $0.address == keptAddress }) ?? preferred(candidates)
        }
        // A name is unique; an address is not.
        return candidates.first { $0.name == wanted }
            ?? preferred(candidates.filter { $0.address.lowercased() == wanted.lowercased() })
    }

    /// The adapter that was used last, else the one with the lowest index.
    private func preferred(_ candidates: [Candidate]) -> Candidate? {
        candidates.first { $0.name == awaitedName } ?? candidates.first { $0.name == lastName }
            ?? candidates.min { ($0.number, $0.name) < ($1.number, $1.name) }
    }
}

extension AdapterChoice {
    /// Whether the choice has to be made again now that an adapter has come, changed or gone. So that many adapters cost no
    /// more than each of them, only those are compared with all others that can matter.
    ///
    /// - Parameter current: the adapter in use.
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
            // Another one that has the address, too.
            if candidate?.address == keptAddress { return true }
        }
        if current == nil { isOutdated = true }
        return false
    }

    private static func candidate(_ key: ObjectKey, in tree: borrowing ObjectTree) -> Candidate? {
        guard let path = tree.path(of: key), let address = tree[adapter: key]?.address else { return nil }
        let name = String(path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...])
        return Candidate(name: name, address: address.description)
    }

    /// The adapters that BlueZ has, each with its place in the tree.
    static func candidates(in tree: borrowing ObjectTree) -> [Candidate: ObjectKey] {
        var keys: [Candidate: ObjectKey] = [:]
        for key in tree.adapterKeys {
            if let candidate = candidate(key, in: tree) { keys[candidate] = key }
        }
        return keys
    }
}

extension AdapterChoice.Candidate {
    /// Whether this is the user's word for it.
    fileprivate func isCalled(_ text: String) -> Bool {
        name == text || address.lowercased() == text.lowercased()
    }

    /// The number in `hci12`; adapters with other names come last.
    fileprivate var number: Int { Int(name.drop { !$0.isNumber }) ?? .max }
}
