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

    init(wanted: String?) { self.wanted = wanted }

    /// The adapter to use now, or `nil` where none fits.
    mutating func choose(from candidates: [Candidate]) -> Candidate? {
        let choice = pick(from: candidates)
        if keptAddress == nil { keptAddress = choice?.address }
        return choice
    }

    private func pick(from candidates: [Candidate]) -> Candidate? {
        if let wanted {
            return candidates.first { $0.name == wanted || $0.address.lowercased() == wanted.lowercased() }
        }
        return candidates.first { $0.address == keptAddress } ?? candidates.min { $0.number < $1.number }
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
