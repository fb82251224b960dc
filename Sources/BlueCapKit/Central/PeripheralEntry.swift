import BlueZ
import Futures
import GATT
import Reactor

/// What a manager has of its peripherals besides their states.
struct PeripheralObjects {
    /// The objects of the peripherals, referenced strongly while the peripheral is listed.
    private(set) var references = KeyedTable<ObjectReference<Peripheral>>()
    private(set) var entries = KeyedTable<PeripheralEntry>()

    /// The object of a peripheral, if there is one.
    subscript(key: PeripheralKey) -> Peripheral? { references[key]?.object }

    /// Reads or changes what the manager has of a peripheral.
    @discardableResult
    mutating func withEntry<R>(of key: PeripheralKey, _ change: (inout PeripheralEntry) -> R) -> R {
        let changed = entries.update(key) { entry in (result: change(&entry), isEmpty: entry.isEmpty) }
        if let changed {
            if changed.isEmpty { entries[key] = nil }
            return changed.result
        }
        var entry = PeripheralEntry()
        defer { if !entry.isEmpty { entries[key] = entry } }
        return change(&entry)
    }

    /// Returns a stream of changes of a peripheral, which is made for the first caller.
    mutating func stream<T>(
        _ property: WritableKeyPath<PeripheralEntry, StreamPromise<T>?>, of key: PeripheralKey, capacity: Int
    ) -> FutureStream<T> {
        withEntry(of: key) { entry in
            let promise = entry[keyPath: property] ?? StreamPromise(capacity: capacity)
            entry[keyPath: property] = promise
            return promise.stream
        }
    }

    /// Removes what the manager has of any peripheral, and returns it in the order of the keys.
    mutating func removeAll() -> (objects: [Peripheral], entries: [PeripheralEntry]) {
        defer { (references, entries) = (KeyedTable(), KeyedTable()) }
        return (
            references.keys.compactMap { references[$0]?.object }, entries.keys.sorted().compactMap { entries[$0] }
        )
    }

    /// Returns the object of a listed peripheral; makes it if there is none.
    mutating func hold(_ key: PeripheralKey, in session: CentralSession) -> Peripheral {
        hold(key) { Peripheral(session: session, key: key) }
    }

    /// References the object of a peripheral strongly from now on.
    mutating func hold(_ peripheral: Peripheral) { _ = hold(peripheral.key) { peripheral } }

    private mutating func hold(_ key: PeripheralKey, or make: () -> Peripheral) -> Peripheral {
        if let held = references.update(key, { $0.hold(or: make) }) { return held }
        let peripheral = make()
        references[key] = ObjectReference(peripheral)
        return peripheral
    }

    /// Makes the references to the objects of a peripheral weak. Returns them, to be released after the lock.
    mutating func weaken(_ key: PeripheralKey) -> (Peripheral?, PeripheralEntry) {
        let object = references[key]?.object
        references.update(key) { $0.weaken() }
        return (object, withEntry(of: key) { $0.weaken() })
    }

    /// Removes the references to the objects of a peripheral that was deallocated. Returns the entry as it was.
    mutating func removeObjects(of key: PeripheralKey) -> PeripheralEntry {
        references[key] = nil
        return withEntry(of: key) { $0.removeObjects() }
    }
}

/// The streams of changes of one peripheral.
struct ChangeStreams {
    var ofServices: StreamPromise<Peripheral>?
    var ofPairing: StreamPromise<PairingChange>?

    var isEmpty: Bool { ofServices == nil && ofPairing == nil }

    func finish() {
        ofServices?.finish()
        ofPairing?.finish()
    }
}

/// What a manager has of one peripheral in use besides its object and its state: the objects of attributes, streams, and
/// calls that have not ended.
///
/// The manager has an entry of a peripheral as long as there is something in it; of a peripheral that is only listed it
/// has none. The object of a peripheral calls its session when it is deallocated, which acquires the session's lock. So
/// what may be the last reference to a peripheral, or to one of its attributes, is returned to the caller, which releases
/// it after the lock.
struct PeripheralEntry {
    /// The `Service`, `Characteristic` and `Descriptor` objects. They are referenced strongly while the attribute exists,
    /// because applications capture them weakly.
    private var attributes: [AttributeID: ObjectReference<AnyObject>] = [:]
    /// The streams of changes that the application has asked for.
    var changes = ChangeStreams()
    /// The streams of the calls of `connect` that have not ended.
    var connections: [ConnectionMachine.ConnectionNumber: ConnectionStream] = [:]
    /// The streams of notified values.
    private(set) var sinks: [AttributeID: [NotificationSink]] = [:]
    private var writers: [ObjectReference<CharacteristicWriter>] = []
    /// The requests for writers that BlueZ has not replied to.
    var writerRequests: [OperationID: Promise<CharacteristicWriter>] = [:]
    /// The runs that wait or are being executed.
    var runs: [OperationID: PeripheralRun] = [:]

    var counter: CentralCounter.OfPeripheral?

    // Calls of BlueZ's client.
    var attempt: (number: ConnectionMachine.Attempt, id: ConnectID)?
    /// The connection and the pairing may search for the device at the same time, each in a discovery of its own.
    var searches: [ScanID] = []

    var isEmpty: Bool {
        attributes.isEmpty && changes.isEmpty && connections.isEmpty && sinks.isEmpty && writers.isEmpty
            && writerRequests.isEmpty && runs.isEmpty && attempt == nil && searches.isEmpty
            && counter == nil
    }

    // MARK: Objects

    /// Makes the references to the objects weak: the peripheral has left the list. Returns the entry as it was.
    mutating func weaken() -> PeripheralEntry {
        defer { for id in attributes.keys { attributes[id]?.weaken() } }
        return self
    }

    /// Makes the references to objects of attributes weak, because these no longer exist. Returns the entry as it was.
    mutating func weaken(_ ids: [AttributeID]) -> PeripheralEntry {
        defer { for id in ids { attributes[id]?.weaken() } }
        return self
    }

    /// Removes what belongs to the peripheral's object, which has been deallocated. Calls that have not ended stay.
    /// Returns the entry as it was.
    mutating func removeObjects() -> PeripheralEntry {
        defer {
            attributes = [:]
            changes = ChangeStreams()
            counter = nil
        }
        return self
    }

    /// Returns the object of an attribute, and references it strongly from now on; makes it if there is none.
    mutating func hold<Object: AttributeObject>(_ id: AttributeID, or make: () -> Object) -> Object? {
        attributes[id, default: ObjectReference()].hold(or: make) as? Object
    }

    /// Returns the object of an attribute; makes it if there is none, and then references it weakly.
    mutating func find<Object: AttributeObject>(_ id: AttributeID, or make: () -> Object) -> Object? {
        attributes[id, default: ObjectReference()].find(or: make) as? Object
    }

    // MARK: Notifications

    mutating func add(_ sink: NotificationSink, to characteristic: AttributeID) {
        sinks[characteristic, default: []].append(sink)
    }

    mutating func removeSinks(of characteristic: AttributeID) -> [NotificationSink] {
        sinks.removeValue(forKey: characteristic) ?? []
    }

    /// Removes all sinks, and returns them in the order of their characteristics.
    mutating func removeSinks() -> [NotificationSink] {
        defer { sinks = [:] }
        return sinks.sorted { $0.key < $1.key }.flatMap(\.value)
    }

    /// Removes sinks without readers. Returns all sinks of the characteristic, so that none is released under a lock.
    mutating func removeForgottenSinks(of characteristic: AttributeID) -> [NotificationSink] {
        guard let all = sinks[characteristic] else { return [] }
        let kept = all.filter { !$0.isForgotten() }
        sinks[characteristic] = kept.isEmpty ? nil : kept
        return all
    }

    // MARK: Writers

    /// Adds a writer. Returns the others, which must not be released under the lock: their end acquires it.
    mutating func add(_ writer: CharacteristicWriter) -> [CharacteristicWriter] {
        let others = writers.compactMap(\.object)
        writers = (others + [writer]).map { ObjectReference(weakTo: $0) }
        return others
    }

    /// Removes the writers, and the requests for writers, and returns them.
    mutating func removeWriters() -> (writers: [CharacteristicWriter], requests: [Promise<CharacteristicWriter>]) {
        defer { (writers, writerRequests) = ([], [:]) }
        return (
            writers.compactMap(\.object),
            writerRequests.sorted { $0.key.rawValue < $1.key.rawValue }.map(\.value)
        )
    }
}

/// A reference to an object of the application's: strong while the manager needs the object, and weak while there are
/// other references to it.
struct ObjectReference<Object: AnyObject> {
    private final class Weak {
        weak var object: Object?
        init(_ object: Object) { self.object = object }
    }

    private var strong: Object?
    /// A weak reference allocates memory, so it is made only when the strong one is removed.
    private var weak: Weak?

    init() {}
    init(_ object: Object) { strong = object }
    init(weakTo object: Object) { weak = Weak(object) }

    /// Whether there never was an object.
    var isEmpty: Bool { strong == nil && weak == nil }

    var object: Object? { strong ?? weak?.object }

    /// Returns the object, and references it strongly from now on; makes it if there is none.
    mutating func hold(or make: () -> Object) -> Object {
        if let strong { return strong }
        let object = weak?.object ?? make()
        (strong, weak) = (object, nil)
        return object
    }

    /// Returns the object; makes it if there is none, and then references it weakly.
    mutating func find(or make: () -> Object) -> Object {
        if let object { return object }
        let object = make()
        weak = Weak(object)
        return object
    }

    /// Removes the strong reference. It must not be the last one.
    mutating func weaken() {
        guard let object = strong else { return }
        (strong, weak) = (nil, Weak(object))
    }
}

// MARK: - The objects of attributes

/// The object of an attribute: a `Service`, `Characteristic` or `Descriptor`.
protocol AttributeObject: AnyObject {
    init(peripheral: Peripheral, id: AttributeID, uuid: CBUUID)
}

extension Service: AttributeObject {}
extension Characteristic: AttributeObject {}
extension Descriptor: AttributeObject {}

extension Peripheral {
    /// Returns the objects of the attributes whose identifiers `ids` finds in the peripheral's table.
    func objects<Object: AttributeObject>(_ ids: (borrowing AttributeTable) -> [AttributeID]) -> [Object] {
        session.core.withLock { core in
            let found = core.state.readState(of: key) { state in
                ids(state.attributes.table).compactMap { id in state.attributes.table[id].map { (id, $0.uuid) } }
            }
            guard let found, !found.isEmpty else { return [] }
            return core.objects.withEntry(of: key) { entry in
                found.compactMap { id, uuid in entry.hold(id) { Object(peripheral: self, id: id, uuid: uuid) } }
            }
        }
    }

    /// Returns the service of a characteristic, or the characteristic of a descriptor, even if it no longer exists.
    func parent<Object: AttributeObject>(of id: AttributeID) -> Object? {
        session.core.withLock { core in
            let found = core.state.readState(of: key) { state -> (AttributeID, CBUUID)? in
                guard let parent = state.attributes.table[id]?.parent else { return nil }
                return state.attributes.table[parent].map { (parent, $0.uuid) }
            }
            return found.flatMap { id, uuid in
                core.objects.withEntry(of: key) { $0.find(id) { Object(peripheral: self, id: id, uuid: uuid) } }
            }
        }
    }
}
