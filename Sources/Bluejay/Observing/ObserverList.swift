import BlueCapKit

/// The observers of one kind, held weakly, in the order of their registration.
struct ObserverList<Observer> {
    /// An observer from its registration on.
    struct Entry {
        fileprivate let number: UInt64
        /// Identifies the observer without retaining it: its last reference must not be released under the lock.
        fileprivate let identity: ObjectIdentifier
        fileprivate weak var object: AnyObject?

        /// The observer, until it is deallocated.
        var observer: Observer? { object as? Observer }
    }

    private(set) var entries: [Entry] = []
    private var lastNumber: UInt64 = 0

    /// Adds an observer at the end; one that is registered already moves there.
    mutating func add(_ observer: Observer) {
        remove(observer)
        lastNumber += 1
        let object = observer as AnyObject
        entries.append(Entry(number: lastNumber, identity: ObjectIdentifier(object), object: object))
    }

    mutating func remove(_ observer: Observer) {
        let identity = ObjectIdentifier(observer as AnyObject)
        entries.removeAll { $0.identity == identity }
    }

    mutating func remove(_ entry: Entry) { entries.removeAll { $0.number == entry.number } }

    func contains(_ entry: Entry) -> Bool { entries.contains { $0.number == entry.number } }
}

/// The observers of a session.
struct Observers {
    var connection = ObserverList<any ConnectionObserver>()
    var rssi = ObserverList<any RSSIObserver>()
    var service = ObserverList<any ServiceObserver>()
    var log = ObserverList<any LogObserver>()
}

/// Follows the services of the connected peripheral.
struct ServiceWatch: Swift.Sendable {
    let peripheral: Peripheral
    let token = CancelToken()
    /// The services when they were read last; `nil` until then.
    var services: [Service]?
}
