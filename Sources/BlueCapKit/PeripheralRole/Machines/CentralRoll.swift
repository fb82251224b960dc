import BlueZ

/// Who is connected to the adapter, in the order in which they came. Each event answers whether that has changed anything.
struct CentralRoll {
    private var entries: [(key: ObjectKey, central: Central)] = []

    var centrals: [Central] { entries.map(\.central) }

    mutating func connected(_ key: ObjectKey, _ central: Central) -> Bool {
        guard !entries.contains(where: { $0.key == key }) else { return false }
        entries.append((key, central))
        return true
    }

    mutating func disconnected(_ key: ObjectKey) -> Bool {
        guard let index = entries.firstIndex(where: { $0.key == key }) else { return false }
        entries.remove(at: index)
        return true
    }

    /// The daemon, or the adapter, has gone.
    mutating func leftAll() -> Bool {
        defer { entries = [] }
        return !entries.isEmpty
    }
}
