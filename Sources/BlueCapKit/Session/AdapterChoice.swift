import BlueZ

/// Which of the present adapters a manager uses.
///
/// An adapter is kept by its address, not by its name: after a restart of the daemon, or a change of the USB port,
/// `hci0` may be another one.
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
    /// The name of the adapter that was chosen last: cheap adapters may have the same address.
    private(set) var lastName: String?

    init(wanted: String?) { self.wanted = wanted }

    /// The adapter to use now, or `nil` if none fits. The order of the candidates does not matter.
    mutating func choose(from candidates: [Candidate]) -> Candidate? {
        let choice = pick(from: candidates)
        if keptAddress == nil { keptAddress = choice?.address }
        lastName = choice?.name ?? lastName
        return choice
    }

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
        candidates.first { $0.name == lastName } ?? candidates.min { ($0.number, $0.name) < ($1.number, $1.name) }
    }
}

extension AdapterChoice {
    /// The adapters that BlueZ has, each with its place in the tree.
    static func candidates(in tree: borrowing ObjectTree) -> [Candidate: ObjectKey] {
        var keys: [Candidate: ObjectKey] = [:]
        for key in tree.adapterKeys {
            guard let path = tree.path(of: key), let address = tree[adapter: key]?.address else { continue }
            let name = String(path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...])
            keys[Candidate(name: name, address: address.description)] = key
        }
        return keys
    }
}

extension AdapterChoice.Candidate {
    /// The number in `hci12`; adapters with other names come last.
    fileprivate var number: Int { Int(name.drop { !$0.isNumber }) ?? .max }
}
