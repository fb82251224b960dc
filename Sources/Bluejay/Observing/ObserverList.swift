/// The observers of one kind, held weakly, in the order of their registration.
struct ObserverList<Observer> {
    /// An observer from its registration on.
    struct Entry {
        let number: UInt64
        /// Names the observer without retaining it: under the lock the last reference to it must not be dropped.
        let identity: ObjectIdentifier
        /// The observer, while it lives.
        let observer: () -> Observer?
    }

    private(set) var entries: [Entry] = []
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { entries.isEmpty }

    /// Adds an observer at the end; one that is there already changes its place.
    mutating func add(_ identity: ObjectIdentifier, _ observer: @escaping () -> Observer?) {
        remove(identity)
        lastNumber += 1
        entries.append(Entry(number: lastNumber, identity: identity, observer: observer))
    }

    mutating func remove(_ identity: ObjectIdentifier) { entries.removeAll { $0.identity == identity } }

    mutating func remove(_ entry: Entry) { entries.removeAll { $0.number == entry.number } }

    func contains(_ entry: Entry) -> Bool { entries.contains { $0.number == entry.number } }
}
