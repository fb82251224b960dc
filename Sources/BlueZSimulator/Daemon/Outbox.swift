/// A property of such an object.
enum ObjectProperty: Hashable, Sendable {
    case adapter(AdapterProperty)
    case device(DeviceProperty)
    case characteristic(CharacteristicProperty)
    case advertising(AdvertisingProperty)
}

/// What has changed and was not said yet, as gdbus keeps it: each object once, each property once, however often it
/// changed, and nothing about properties of an object whose appearance was not said yet.
struct Outbox: Sendable {
    struct Entry: Sendable, Equatable {
        var key: ObjectKey
        var isNew: Bool
        var properties: [ObjectProperty]
        /// When it was first and last touched, in steps of this box.
        var first: Int
        var last: Int
    }

    private var entries: [ObjectKey: Entry] = [:]
    private var step = 0

    var isEmpty: Bool { entries.isEmpty }

    /// An object has come.
    mutating func added(_ key: ObjectKey) {
        step += 1
        entries[key] = Entry(key: key, isNew: true, properties: [], first: step, last: step)
    }

    /// A property has changed.
    mutating func changed(_ property: ObjectProperty, of key: ObjectKey) {
        step += 1
        guard entries[key] != nil else {
            entries[key] = Entry(key: key, isNew: false, properties: [property], first: step, last: step)
            return
        }
        guard entries[key]?.isNew == false, entries[key]?.properties.contains(property) == false else { return }
        entries[key]?.properties.append(property)
        entries[key]?.last = step
    }

    /// Takes out what is left to say of one object that is going away; nil when nothing is.
    mutating func take(_ key: ObjectKey) -> Entry? {
        entries.removeValue(forKey: key)
    }

    /// When the daemon comes to rest: each object's idle handler was put back at the end whenever it changed again.
    mutating func drainAtRest() -> [Entry] { drain { $0.last < $1.last } }

    /// Before a reply, which must not overtake what it caused: the objects in the order they first changed.
    mutating func drainBeforeReply() -> [Entry] { drain { $0.first < $1.first } }

    mutating func removeAll() {
        entries.removeAll()
    }

    private mutating func drain(_ inOrder: (Entry, Entry) -> Bool) -> [Entry] {
        defer { entries.removeAll(keepingCapacity: true) }
        return entries.values.sorted(by: inOrder)
    }
}
