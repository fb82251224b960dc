import BlueCapBlueZ
import BlueCapFutures
import Foundation
import BlueCapGATT

/// Decides when the services of a peripheral are known, and which operations wait for that.
///
/// BlueZ 5.66 sets `ServicesResolved` first and exports the services afterwards, one object after another; it will
/// export no services but those in `Device1.UUIDs` at that time. BlueZ announces everything that it has registered
/// before it replies to any call, so the table is read when a call that was sent after `ServicesResolved` has been
/// replied to (the *fence*). If the table is whole then, it is ready at once. Otherwise, and whenever objects appear or
/// disappear later, it is read again when nothing has changed for 250 ms, or after 5 s.
///
/// | state | resolved | fence passed | changed | quiet, or limit | read | link lost |
/// |---|---|---|---|---|---|---|
/// | `noLink` | `fencing` | – | – | – | – | – |
/// | `resolving` | `fencing` | – | – | – | – | `noLink` |
/// | `fencing` | – | `reading` | – | – | – | `noLink` |
/// | `reading` | – | – | – | – | whole, or for the last time: `ready`, else `settling` | `noLink` |
/// | `settling` | – | – | quiet restarts | `reading` for the last time | – | `noLink` |
/// | `ready` | – | – | `settling` | – | – | `noLink` |
struct ServiceDiscoveryMachine: Equatable {
    enum Timer: Hashable, Sendable {
        /// Nothing has changed for a while.
        case quiet
        /// The table has been changing for too long.
        case limit
    }

    enum Event: Equatable {
        case linkUp(isResolved: Bool)
        case resolved(Bool)
        case fencePassed
        case read(Inventory)
        /// An object of the table was added or removed.
        case changed
        case fired(Timer)
        case linkLost
        /// An operation needs the services. Without a change, it waits for the next one.
        case wanted
    }

    /// The contents of the table when it was read.
    enum Inventory: Equatable {
        case nothing
        /// Some attributes, and perhaps not all.
        case some
        case whole
    }

    /// What an event means for the users of the table, and for the operations that wait for it.
    enum Change: Equatable {
        /// The table that was read last is valid until the link is lost or an object appears or disappears.
        case found
        /// The same, of a table without services.
        case foundNothing
        /// BlueZ has reset `ServicesResolved`: the table is not valid any more. The operations continue to wait.
        case isVoid
        case linkLost
    }

    private enum State: Equatable {
        case noLink
        /// There is a link, and BlueZ discovers services.
        case resolving
        case fencing
        case reading(isLast: Bool)
        case settling
        case ready(isEmpty: Bool)
    }

    /// The time without a change after which the table is read, in seconds.
    static let quiet: TimeInterval = 0.25
    /// The longest time for which the table may keep changing, in seconds.
    static let limit: TimeInterval = 5

    private var state = State.noLink
    /// Numbers the links, so that a late reply of an earlier one is recognised.
    private(set) var link: UInt32 = 0

    /// Whether the services are known.
    var isReady: Bool { state == .ready(isEmpty: false) }

    var hasLink: Bool { state != .noLink }

    @discardableResult
    mutating func event(_ event: Event, into orders: inout Orders) -> Change? {
        switch event {
        case .linkUp(let isResolved):
            guard state == .noLink else { break }
            state = .resolving
            link &+= 1
            if isResolved { fence(&orders) }
        case .resolved(let isResolved):
            return resolved(isResolved, &orders)
        case .fencePassed:
            if state == .fencing { read(isLast: false, &orders) }
        case .read(let inventory):
            guard case .reading(let isLast) = state else { break }
            if isLast || inventory == .whole { return finish(inventory) }
            settle(&orders)
        case .changed:
            switch state {
            case .noLink, .resolving, .fencing, .reading: break
            case .settling: orders.append(.startTimer(.discovery(.quiet), Self.quiet))
            case .ready: settle(&orders)
            }
        case .fired(let timer):
            guard state == .settling else { break }
            orders.append(.cancelTimer(.discovery(timer == .quiet ? .limit : .quiet)))
            read(isLast: true, &orders)
        case .linkLost:
            guard state != .noLink else { break }
            if state == .settling { cancelTimers(&orders) }
            state = .noLink
            return .linkLost
        case .wanted:
            switch state {
            case .noLink: return .linkLost
            case .ready(isEmpty: false): return .found
            case .resolving, .fencing, .reading, .settling: break
            // An object may have appeared without a report.
            case .ready(isEmpty: true): settle(&orders)
            }
        }
        return nil
    }

    private mutating func fence(_ orders: inout Orders) {
        state = .fencing
        orders.append(.fence(link: link))
    }

    private mutating func read(isLast: Bool, _ orders: inout Orders) {
        state = .reading(isLast: isLast)
        orders.append(.readTable(link: link))
    }

    private mutating func settle(_ orders: inout Orders) {
        state = .settling
        orders.append(.startTimer(.discovery(.quiet), Self.quiet))
        orders.append(.startTimer(.discovery(.limit), Self.limit))
    }

    private func cancelTimers(_ orders: inout Orders) {
        orders.append(.cancelTimer(.discovery(.quiet)))
        orders.append(.cancelTimer(.discovery(.limit)))
    }

    private mutating func finish(_ inventory: Inventory) -> Change {
        state = .ready(isEmpty: inventory == .nothing)
        return inventory == .nothing ? .foundNothing : .found
    }

    private mutating func resolved(_ isResolved: Bool, _ orders: inout Orders) -> Change? {
        switch (state, isResolved) {
        case (.noLink, _), (.resolving, false), (.fencing, true), (.reading, true), (.settling, true), (.ready, true):
            break
        case (.resolving, true):
            fence(&orders)
        case (.fencing, false), (.reading, false):
            state = .resolving
        case (.settling, false):
            state = .resolving
            cancelTimers(&orders)
        case (.ready, false):
            // BlueZ reports this a moment before the link is lost; calls under way continue.
            state = .resolving
            return .isVoid
        }
        return nil
    }
}

/// The operations that wait for the services of a peripheral to be known, and what each of them requests.
struct DiscoveryRequests {
    enum Request {
        /// Marks the services with these UUIDs as discovered; `nil` for all.
        case services(Set<CBUUID>?)
        /// Marks the characteristics of a service with these UUIDs as discovered; `nil` for all.
        case characteristics(Set<CBUUID>?, of: AttributeID)
        /// Finds an attribute by its name, and marks it as discovered.
        case attribute(AttributeName)
    }

    enum Lifetime {
        /// Fails with the present link, or if there is none.
        case link
        /// Waits for the next link, with which it fails.
        case nextLink
        /// Does not fail with a link, but waits for the next one.
        case lasting
    }

    private var entries: [OperationID: (request: Request, lifetime: Lifetime)] = [:]

    mutating func add(_ request: Request, _ id: OperationID, _ lifetime: Lifetime) {
        entries[id] = (request, lifetime)
    }

    /// There is a link, for which requests may have waited.
    mutating func linkUp() {
        for id in ids(of: .nextLink) { entries[id]?.lifetime = .link }
    }

    /// Returns the requests with this lifetime, or all; those of them for this name if there is one.
    func ids(of lifetime: Lifetime? = nil, for name: AttributeName? = nil) -> [OperationID] {
        entries.filter { _, entry in
            guard lifetime == nil || entry.lifetime == lifetime else { return false }
            guard let name else { return true }
            if case .attribute(name) = entry.request { return true }
            return false
        }.keys.ordered { $0.rawValue < $1.rawValue }
    }

    func failsWithLink(_ id: OperationID) -> Bool { entries[id]?.lifetime == .link }

    /// Returns the error of a request that has exceeded its time limit; `nil` if there is no such request.
    func timeoutError(of id: OperationID) -> PeripheralFailure? {
        switch entries[id]?.request {
        case .services?, .attribute?: .peripheral(.serviceDiscoveryTimeout)
        case .characteristics?: .service(.characteristicDiscoveryTimeout)
        case nil: nil
        }
    }

    /// Marks what was requested as discovered. Returns what the request has found.
    func outcome(of id: OperationID, in table: inout AttributeTable) -> Order.Outcome {
        switch entries[id]?.request {
        case .services(let uuids)?:
            table.discover(table.allServices, uuids)
        case .characteristics(let uuids, let service)?:
            guard let record = table[service], record.isPresent else { return .failed(.service(.invalidated)) }
            table.discover(record.children, uuids)
        case .attribute(let name)?:
            switch table.discover(name) {
            case .success(let attribute): return .found(attribute)
            case .failure(let failure): return .failed(failure)
            }
        case nil:
            break
        }
        return .done
    }

    mutating func settle(_ id: OperationID, _ outcome: Order.Outcome, _ orders: inout Orders) {
        if entries.removeValue(forKey: id) != nil { orders.append(.settle(id, outcome)) }
    }
}
