/// The one `Peripheral` of each key: held while the peripheral is listed, remembered while somebody else holds it.
///
/// What leaves the table is handed to the caller, who lets go of it after the session's lock is released: a
/// `Peripheral` that dies tells its session, which takes that lock.
struct HandleTable {
    private struct Memory {
        weak var handle: Peripheral?
    }

    private var held = KeyedTable<Peripheral>()
    /// Those that are not held. A weak reference costs an object of its own, so it waits until the strong one goes.
    private var remembered: [PeripheralKey: Memory] = [:]

    /// The handle of this key, if there is one.
    subscript(key: PeripheralKey) -> Peripheral? { held[key] ?? remembered[key]?.handle }

    /// The handle of this key, held from now on; made where there is none.
    mutating func hold(_ key: PeripheralKey, or make: () -> Peripheral) -> Peripheral {
        if let handle = held[key] { return handle }
        let handle = remembered.removeValue(forKey: key)?.handle ?? make()
        held[key] = handle
        return handle
    }

    /// Stops holding the handle of this key, and answers it; `nil` where none was held.
    mutating func letGo(_ key: PeripheralKey) -> Peripheral? {
        guard let handle = held[key] else { return nil }
        held[key] = nil
        remembered[key] = Memory(handle: handle)
        return handle
    }

    /// Stops holding them all.
    mutating func letGoOfAll() -> [Peripheral] { held.keys.compactMap { letGo($0) } }

    /// A handle of this key has died. Answers the one that has taken its place, if any: this reference may become its
    /// last.
    mutating func forget(_ key: PeripheralKey) -> Peripheral? {
        if let successor = self[key] { return successor }
        remembered[key] = nil
        return nil
    }
}
