/// The changes that are not announced yet, as gdbus keeps them: each object once, each property once however often it
/// changed, and no property of an object that is itself not announced.
struct Outbox: Sendable {
    struct Entry: Sendable, Equatable {
        var key: ObjectKey
        var isNew: Bool
        /// By their names.
        var properties: [String]
        /// The numbers of its first and its latest change.
        var first: Int
        var last: Int
    }

    private var entries: [ObjectKey: Entry] = [:]
    private var step = 0

    var isEmpty: Bool { entries.isEmpty }

    mutating func added(_ key: ObjectKey) {
        step += 1
        entries[key] = Entry(key: key, isNew: true, properties: [], first: step, last: step)
    }

    mutating func changed(_ property: String, of key: ObjectKey) {
        step += 1
        guard entries[key] != nil else {
            entries[key] = Entry(key: key, isNew: false, properties: [property], first: step, last: step)
            return
        }
        guard entries[key]?.isNew == false, entries[key]?.properties.contains(property) == false else { return }
        entries[key]?.properties.append(property)
        entries[key]?.last = step
    }

    /// Takes the changes of an object that is removed; nil if it has none.
    mutating func take(_ key: ObjectKey) -> Entry? { entries.removeValue(forKey: key) }

    /// Takes all changes when the daemon is idle. An object that changed again is announced after those that did not,
    /// because gdbus moves its idle handler to the end.
    mutating func drainAtRest() -> [Entry] { drain { $0.last < $1.last } }

    /// Takes all changes before a reply, which must not precede what the call caused: in the order of first changes.
    mutating func drainBeforeReply() -> [Entry] { drain { $0.first < $1.first } }

    private mutating func drain(_ inOrder: (Entry, Entry) -> Bool) -> [Entry] {
        defer { entries.removeAll(keepingCapacity: true) }
        return entries.values.sorted(by: inOrder)
    }
}
