import BlueCapBlueZ
import Foundation
import BlueCapFutures
import BlueCapReactor

/// All that a manager has of one peripheral. The manager's only table by peripheral, ``PeripheralTable``, contains records.
///
/// Kept small, 64 bytes, because there may be ten thousand peripherals: what few of them have is an object, and the small
/// fields are together.
struct PeripheralRecord {
    /// What the manager has of it besides the listing.
    private enum Knowledge {
        case none
        /// In an allocation of its own, since few peripherals have one.
        indirect case status(LinkStatus)
        case use(PeripheralUse)
    }

    /// The values that a device had when BlueZ removed it.
    final class LastValues: Sendable {
        let device: Device1
        init(_ device: borrowing Device1) { self.device = copy device }
    }

    /// When it was last received, and how regularly.
    ///
    /// There is no copy of what BlueZ reports: the listing has the key of the device, whose values are in the object tree. It
    /// stores the last values only when BlueZ removes the device.
    struct Listing {
        /// What few listings have.
        private final class Extra: Sendable {
            let lastValues: LastValues?
            let track: BeaconTrack?

            init(_ lastValues: LastValues?, _ track: BeaconTrack?) {
                (self.lastValues, self.track) = (lastValues, track)
            }
        }

        /// The device in the object tree.
        private(set) var device: ObjectKey
        private var extra: Extra?
        /// When it was first reported.
        let discoveredAt: Date
        var lastReceived: Instant
        private var smoothedInterval: Float = 0
        /// The scan that reported it last.
        var reportedBy: ScanNumber?
        var isListed = false

        /// `nil` while the device is in the tree.
        private(set) var lastValues: LastValues? {
            get { extra?.lastValues }
            set { extra = newValue == nil && track == nil ? nil : Extra(newValue, track) }
        }

        /// The averages of its beacons, if they are ranged.
        var track: BeaconTrack? {
            get { extra?.track }
            set { extra = newValue == nil && lastValues == nil ? nil : Extra(lastValues, newValue) }
        }

        /// Smoothed seconds between sightings; 0 until there have been two.
        var interval: TimeInterval { TimeInterval(smoothedInterval) }

        /// `nil` if there is no device.
        init?(device: ObjectKey?, discoveredAt: Date, lastReceived: Instant) {
            guard let device else { return nil }
            self.device = device
            self.discoveredAt = discoveredAt
            self.lastReceived = lastReceived
        }

        /// Reads the values in place. The tree's lock is taken inside that of the manager's session, never the other way
        /// round; so the values of a device that BlueZ removes are either in the tree or in this listing.
        func read<R>(in daemon: DaemonLink, _ body: (borrowing Device1) -> R?) -> R? {
            if let lastValues { return body(lastValues.device) }
            return daemon.readDevice(device, body)
        }

        /// The device, if BlueZ has it.
        var present: ObjectKey? { lastValues == nil ? device : nil }

        /// BlueZ has this device, on the adapter in use.
        mutating func isPresent(as device: ObjectKey) {
            self.device = device
            if lastValues != nil { lastValues = nil }
        }

        /// BlueZ removes a device. If it is the device of this listing, its values are kept.
        mutating func wasRemoved(_ key: ObjectKey, _ device: borrowing Device1) {
            if key == self.device { lastValues = LastValues(device) }
        }

        /// The tree is no longer observed: these are the values from now on, unless BlueZ had removed the device
        /// before.
        mutating func keepValues(_ values: LastValues?) {
            if lastValues == nil { lastValues = values }
        }

        /// A peripheral has been silent for too long after four of its own intervals, and never before half a minute.
        /// After that time BlueZ also removes a device that it has not received (TemporaryTimeout).
        var patience: TimeInterval { max(30, 4 * interval) }

        /// Records a sighting at this moment.
        mutating func recordSighting(at now: Instant) {
            let gap = now.seconds(since: lastReceived)
            lastReceived = now
            // A long pause (another scan, a peripheral out of range) is not an interval.
            guard gap > 0, gap < 4 * patience else { return }
            smoothedInterval = Float(interval == 0 ? gap : interval * 0.75 + gap * 0.25)
        }
    }

    /// `nil` before the peripheral is listed for the first time.
    var listing: Listing?
    /// Whether this manager has made its bond.
    var isBondOurs = false
    /// The object, referenced strongly while the peripheral is listed.
    var object = ObjectReference<Peripheral>()
    private var knowledge = Knowledge.none

    /// What BlueZ has reported of a peripheral that the application has not used, if it has a link, with any program, or a
    /// pairing. Of one in use, its state has it, and it cannot be set here.
    var status: LinkStatus? {
        get { if case .status(let status) = knowledge { status } else { nil } }
        set { if use == nil { knowledge = newValue.map { .status($0) } ?? .none } }
    }

    /// `nil` until the application uses the peripheral.
    var use: PeripheralUse? {
        get { if case .use(let use) = knowledge { use } else { nil } }
        set {
            if let newValue { knowledge = .use(newValue) } else if use != nil { knowledge = .none }
        }
    }

    /// Whether it neither expires nor can be evicted, because it is connected or being connected.
    var isInUse: Bool { use?.state.isInUse ?? false }

    var isEmpty: Bool {
        listing == nil && object.isEmpty && status == nil && use == nil && !isBondOurs
    }
}

/// The streams of changes of one peripheral.
struct ChangeStreams {
    var ofServices: StreamPromise<Peripheral>?
    var ofPairing: StreamPromise<PairingChange>?

    func finish() {
        ofServices?.finish()
        ofPairing?.finish()
    }
}

/// What a manager has of a peripheral that the application uses: its state, the objects of its attributes, streams, and calls
/// that have not ended. It exists until the peripheral's object is released and what it has begun has ended.
///
/// The object of a peripheral calls its session when it is deallocated, which acquires the session's lock. So what may be
/// the last reference to a peripheral, or to one of its attributes, is returned to the caller, which releases it after the
/// lock. For the same reason this is a class: its owner under the lock is not the last one.
final class PeripheralUse {
    var state: PeripheralState
    /// Whether the peripheral's object was released.
    var isReleased = false
    /// The `Service`, `Characteristic` and `Descriptor` objects. They are referenced strongly while the attribute exists,
    /// because applications capture them weakly.
    private var attributes: [AttributeID: ObjectReference<AnyObject>] = [:]
    /// The streams of changes that the application has asked for.
    var changes = ChangeStreams()
    /// The streams of the calls of `connect` that have not ended.
    var connections: [ConnectionMachine.ConnectionNumber: ConnectionStream] = [:]
    private var writers: [ObjectReference<CharacteristicWriter>] = []
    /// The requests for writers that BlueZ has not replied to.
    var writerRequests: [OperationID: Promise<CharacteristicWriter>] = [:]
    /// The runs that wait or are being executed.
    var runs: [OperationID: PeripheralRun] = [:]

    var rssiPoll: RSSIPoll?

    // These two are used for each notified value, under the session's lock, so the runtime need not check the accesses.
    /// The streams of notified values.
    @exclusivity(unchecked) var sinks = KeyedTable<AttributeID, [NotificationSink]>()
    /// What is counted of the peripheral.
    @exclusivity(unchecked) var counter = CentralCounter.OfPeripheral()

    // Calls of BlueZ's client.
    var attempt: (number: ConnectionMachine.Attempt, id: ConnectID)?
    /// The connection and the pairing may search for the device at the same time, each in a discovery of its own.
    var searches: [ScanID] = []
    var pairing: (device: ObjectKey, waiter: Pairings.WaiterID)?

    init(_ state: PeripheralState) { self.state = state }

    // MARK: Objects

    /// Makes references to objects of attributes weak: of those that no longer exist, or of all if the peripheral has left
    /// the list. Returns the references as they were.
    func weaken(_ ids: [AttributeID]? = nil) -> [AttributeID: ObjectReference<AnyObject>] {
        defer { for id in ids ?? Array(attributes.keys) { attributes[id]?.weaken() } }
        return attributes
    }

    /// What belonged to the peripheral's object.
    typealias Released = (attributes: [AttributeID: ObjectReference<AnyObject>], changes: ChangeStreams)

    /// Removes and returns what belongs to the peripheral's object, which was released. The counts begin again. Calls that
    /// have not ended stay.
    func release() -> Released {
        defer {
            attributes = [:]
            changes = ChangeStreams()
            counter.reset()
        }
        return (attributes, changes)
    }

    /// Returns the objects of the attributes whose identifiers `ids` finds in the table, and references them strongly from
    /// now on; makes those that do not exist.
    func objects<Object: AttributeObject>(
        of peripheral: Peripheral, _ ids: (borrowing AttributeTable) -> [AttributeID]
    ) -> [Object] {
        let table = state.attributes.table
        return ids(table).compactMap { id in
            guard let uuid = table[id]?.uuid else { return nil }
            return attributes[id, default: ObjectReference()].hold {
                Object(peripheral: peripheral, id: id, uuid: uuid)
            } as? Object
        }
    }

    /// Returns the service of a characteristic, or the characteristic of a descriptor, even if it no longer exists. An object
    /// that is made is referenced weakly.
    func parent<Object: AttributeObject>(of id: AttributeID, in peripheral: Peripheral) -> Object? {
        let table = state.attributes.table
        guard let parent = table[id]?.parent, let uuid = table[parent]?.uuid else { return nil }
        return attributes[parent, default: ObjectReference()].find {
            Object(peripheral: peripheral, id: parent, uuid: uuid)
        } as? Object
    }

    // MARK: Notifications

    func add(_ sink: NotificationSink, of characteristic: AttributeID) {
        sinks[characteristic] = (sinks[characteristic] ?? []) + [sink]
    }

    /// The characteristic whose values a stream receives.
    func characteristic(of stream: ObjectIdentifier) -> AttributeID? {
        sinks.keys.first { id in sinks[id]?.contains { $0.stream == stream } == true }
    }

    /// Removes all sinks, and returns them in the order of their characteristics.
    func removeSinks() -> [NotificationSink] {
        defer { sinks = KeyedTable() }
        return sinks.keys.sorted().flatMap { sinks[$0] ?? [] }
    }

    /// Removes sinks of a characteristic, and returns them, so that none is released under a lock.
    func removeSinks(
        of characteristic: AttributeID, where isMeant: (NotificationSink) -> Bool
    ) -> [NotificationSink] {
        var kept: [NotificationSink] = []
        var removed: [NotificationSink] = []
        for sink in sinks[characteristic] ?? [] { if isMeant(sink) { removed.append(sink) } else { kept.append(sink) } }
        sinks[characteristic] = kept.isEmpty ? nil : kept
        return removed
    }

    // MARK: Writers

    /// Adds a writer. Returns the others, which must not be released under the lock: their end acquires it.
    func add(_ writer: CharacteristicWriter) -> [CharacteristicWriter] {
        let others = writers.compactMap(\.object)
        writers = (others + [writer]).map { ObjectReference(weakTo: $0) }
        return others
    }

    /// Removes the writers, and the requests for writers, and returns them.
    func removeWriters() -> (writers: [CharacteristicWriter], requests: [Promise<CharacteristicWriter>]) {
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
    /// Not generic, so that it takes no more than one reference.
    private enum Reference {
        /// There never was an object.
        case none
        case strong(AnyObject)
        /// A weak reference allocates memory, so it is made only when the strong one is removed.
        case weak(WeakReference)
    }

    private var reference = Reference.none

    init() {}
    init(weakTo object: Object) { reference = .weak(WeakReference(object)) }

    /// Whether there never was an object.
    var isEmpty: Bool { if case .none = reference { true } else { false } }

    var object: Object? {
        switch reference {
        case .none: nil
        case .strong(let object): unsafeDowncast(object, to: Object.self)
        case .weak(let reference): reference.object.map { unsafeDowncast($0, to: Object.self) }
        }
    }

    /// Returns the object, and references it strongly from now on; makes it if there is none.
    mutating func hold(or make: () -> Object) -> Object {
        let object = object ?? make()
        if case .strong = reference { return object }
        reference = .strong(object)
        return object
    }

    /// Returns the object; makes it if there is none, and then references it weakly.
    mutating func find(or make: () -> Object) -> Object {
        if let object { return object }
        let object = make()
        reference = .weak(WeakReference(object))
        return object
    }

    /// References the object strongly from now on, if there is one.
    mutating func strengthen() { if let object { reference = .strong(object) } }

    /// Removes the strong reference. It must not be the last one.
    mutating func weaken() { if case .strong(let object) = reference { reference = .weak(WeakReference(object)) } }
}

private final class WeakReference {
    weak var object: AnyObject?
    init(_ object: AnyObject) { self.object = object }
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
        session.use(of: key) { $0.objects(of: self, ids) } ?? []
    }

    /// The object with this name, if the attributes of the link are known and no search for one is under way.
    func known<Object: AttributeObject>(_ name: AttributeName) -> Object? {
        session.use(of: key) { use in
            let objects: [Object]? = use.state.attributes.known(name).map { id in use.objects(of: self) { _ in [id] } }
            return objects?.first
        }
    }
}
