/// The observers of a ``Bluejay``, held weakly, in the order of their registration.
struct Observers {
    /// An observer of one kind, from its registration on.
    struct Registration {
        fileprivate let number: UInt64
        /// The protocol.
        fileprivate let kind: ObjectIdentifier
        /// Identifies the observer without retaining it: its last reference must not be released under the lock.
        fileprivate let identity: ObjectIdentifier
        fileprivate(set) weak var observer: AnyObject?
    }

    private var registrations: [Registration] = []
    private var lastNumber: UInt64 = 0

    /// The observers of one kind, also those that have been deallocated since the last event.
    subscript(kind: Any.Type) -> [Registration] {
        let kind = ObjectIdentifier(kind)
        return registrations.filter { $0.kind == kind }
    }

    /// Adds an observer at the end; one that is registered already moves there.
    mutating func add(_ observer: AnyObject, as kind: Any.Type) {
        remove(observer, as: kind)
        lastNumber += 1
        registrations.append(
            Registration(
                number: lastNumber, kind: ObjectIdentifier(kind), identity: ObjectIdentifier(observer),
                observer: observer))
    }

    mutating func remove(_ observer: AnyObject, as kind: Any.Type) {
        let (kind, identity) = (ObjectIdentifier(kind), ObjectIdentifier(observer))
        registrations.removeAll { $0.kind == kind && $0.identity == identity }
    }

    mutating func remove(_ registration: Registration) { registrations.removeAll { $0.number == registration.number } }

    func contains(_ registration: Registration) -> Bool {
        registrations.contains { $0.number == registration.number }
    }
}
