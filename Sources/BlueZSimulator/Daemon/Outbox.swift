/// The changes that are not announced yet, as gdbus keeps them: each object once, each property once however often it
/// changed, and no property of an object that is itself not announced.
struct Outbox: Sendable {
    struct Entry: Sendable, Equatable {
        var key: ObjectKey
        var isNew: Bool
        /// By their names.
        var properties: [String] = []
        /// The numbers of its first and its latest change.
        var first: Int
        var last: Int
    }

    private var entries: [ObjectKey: Entry] = [:]
    private var step = 0

    mutating func added(_ key: ObjectKey) {
        step += 1
        entries[key] = Entry(key: key, isNew: true, first: step, last: step)
    }

    mutating func changed(_ property: String, of key: ObjectKey) {
        step += 1
        if let entry = entries[key], entry.isNew || entry.properties.contains(property) { return }
        entries[key, default: Entry(key: key, isNew: false, first: step, last: step)].properties.append(property)
        entries[key]?.last = step
    }

    /// Takes the changes of an object that is removed; nil if it has none.
    mutating func take(_ key: ObjectKey) -> Entry? { entries.removeValue(forKey: key) }

    mutating func drain(_ inOrder: (Entry, Entry) -> Bool) -> [Entry] {
        guard !entries.isEmpty else { return [] }
        defer { entries.removeAll(keepingCapacity: true) }
        return entries.values.sorted(by: inOrder)
    }
}
