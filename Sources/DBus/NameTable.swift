/// Who owns which name of a bus, and who waits for it: the rules of org.freedesktop.DBus.RequestName as a pure value.
struct NameTable {
    struct Change: Equatable {
        let name: String
        let old: String?
        let new: String?
    }

    private struct Claim {
        let owner: String
        var flags: NameFlags
    }

    /// The first of each is the owner, the others wait.
    private var claims: [String: [Claim]] = [:]

    var names: [String] { claims.keys.sorted() }

    func owner(of name: String) -> String? { claims[name]?.first?.owner }

    mutating func request(_ name: String, by owner: String, flags: NameFlags) -> (NameReply, Change?) {
        var queue = claims[name] ?? []
        defer { claims[name] = queue }
        let claim = Claim(owner: owner, flags: flags)
        guard let first = queue.first else {
            queue = [claim]
            return (.primaryOwner, Change(name: name, old: nil, new: owner))
        }
        if first.owner == owner {
            queue[0].flags = flags
            return (.alreadyOwner, nil)
        }
        queue.removeAll { $0.owner == owner }
        if flags.contains(.replaceExisting), first.flags.contains(.allowReplacement) {
            // Who is replaced waits first in line, unless it did not want to wait.
            if first.flags.contains(.doNotQueue) { queue.removeFirst() }
            queue.insert(claim, at: 0)
            return (.primaryOwner, Change(name: name, old: first.owner, new: owner))
        }
        if flags.contains(.doNotQueue) { return (.exists, nil) }
        queue.append(claim)
        return (.inQueue, nil)
    }

    /// What org.freedesktop.DBus.ReleaseName answers: 1 released, 2 no such name, 3 not the owner's.
    mutating func release(_ name: String, by owner: String) -> (UInt32, Change?) {
        guard let queue = claims[name] else { return (2, nil) }
        guard queue.contains(where: { $0.owner == owner }) else { return (3, nil) }
        return (1, remove(owner, from: name))
    }

    /// The connection is gone, and everything it owned or waited for.
    mutating func removeOwner(_ owner: String) -> [Change] {
        names.compactMap { remove(owner, from: $0) }
    }

    private mutating func remove(_ owner: String, from name: String) -> Change? {
        guard var queue = claims[name] else { return nil }
        let wasOwner = queue.first?.owner == owner
        queue.removeAll { $0.owner == owner }
        claims[name] = queue.isEmpty ? nil : queue
        return wasOwner ? Change(name: name, old: owner, new: queue.first?.owner) : nil
    }
}
