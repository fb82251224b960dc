/// The `Peripheral` objects of a manager, one of each key.
///
/// The table holds an object strongly while the peripheral is listed, and weakly while there are other references to
/// it. An object that is removed is returned to the caller, which releases it after the session's lock: a `Peripheral`
/// that is deallocated calls its session, which acquires that lock.
struct HandleTable {
    private struct Memory {
        weak var handle: Peripheral?
    }

    private var held = KeyedTable<Peripheral>()
    /// The objects that are held weakly. A weak reference allocates memory, so it is made only when the strong one is
    /// removed.
    private var remembered: [PeripheralKey: Memory] = [:]

    /// The object of this key, if there is one.
    subscript(key: PeripheralKey) -> Peripheral? { held[key] ?? remembered[key]?.handle }

    /// Returns the object of this key and holds it from now on; makes it if there is none.
    mutating func hold(_ key: PeripheralKey, or make: () -> Peripheral) -> Peripheral {
        if let handle = held[key] { return handle }
        let handle = remembered.removeValue(forKey: key)?.handle ?? make()
        held[key] = handle
        return handle
    }

    /// Stops holding the object of this key, and returns it; `nil` if none was held.
    mutating func letGo(_ key: PeripheralKey) -> Peripheral? {
        guard let handle = held[key] else { return nil }
        held[key] = nil
        remembered[key] = Memory(handle: handle)
        return handle
    }

    /// Stops holding all objects, and returns them.
    mutating func letGoOfAll() -> [Peripheral] { held.keys.compactMap { letGo($0) } }

    /// Removes an object of this key that has been deallocated. Returns the object that has replaced it, if any: the
    /// returned reference may be the last one to it.
    mutating func forget(_ key: PeripheralKey) -> Peripheral? {
        if let successor = self[key] { return successor }
        remembered[key] = nil
        return nil
    }
}
