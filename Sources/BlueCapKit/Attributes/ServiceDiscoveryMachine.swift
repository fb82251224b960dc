import Foundation

/// When the services of a peripheral are known, and who waits for that.
///
/// BlueZ 5.66 says `ServicesResolved` first and exports the services then, one object after another; what
/// `Device1.UUIDs` names by that time is all that it will export. Whatever it has registered it announces before it
/// answers any call, so the table is read when a call that was sent after `ServicesResolved` has been answered (the
/// *fence*). Is the table whole then, it is ready at once. Otherwise, and whenever objects come or go later, it is read
/// again when there has been quiet for 250 ms, or after 5 s.
///
/// | state | resolved | fence passed | came or went | quiet, at last | read | link lost |
/// |---|---|---|---|---|---|---|
/// | `noLink` | `fencing` | – | – | – | – | – |
/// | `resolving` | `fencing` | – | – | – | – | `noLink` |
/// | `fencing` | – | `reading` | – | – | – | `noLink` |
/// | `reading` | – | – | – | – | whole, or for the last time: `ready`, else `settling` | `noLink` |
/// | `settling` | – | – | quiet begins anew | `reading` for the last time | – | `noLink` |
/// | `ready` | – | – | `settling` | – | – | `noLink` |
struct ServiceDiscoveryMachine: Equatable {
    enum Timer: Hashable, Sendable {
        /// Nothing has come or gone for a while.
        case quiet
        /// It comes and goes for too long.
        case limit
    }

    enum Event: Equatable {
        case linkUp(isResolved: Bool)
        case resolved(Bool)
        case fencePassed
        case read(Inventory)
        /// An object of the table was added or removed.
        case cameOrWent
        case fired(Timer)
        case linkLost
        /// Somebody wants to know the services.
        case wanted(OperationID)
        /// That somebody waits no longer.
        case abandoned(OperationID)
    }

    /// What a reading of the table showed.
    enum Inventory: Equatable {
        case nothing
        /// Something, and perhaps not all.
        case some
        case whole
    }

    enum Effect: Equatable {
        /// Calls BlueZ, and tells when it has answered.
        case fence
        /// Reads the table, and tells what is there.
        case read
        case startTimer(Timer, TimeInterval)
        case cancelTimer(Timer)
        /// The table that was read last holds, until the link is lost or something comes or goes.
        case tableHolds
        /// BlueZ takes its word back: the table does not hold any more.
        case tableIsVoid
        case finish(OperationID, Outcome)
    }

    enum Outcome: Equatable { case found, foundNothing, linkLost }

    private enum State: Equatable {
        case noLink
        /// There is a link, and BlueZ looks for services.
        case resolving
        case fencing
        case reading(isLast: Bool)
        case settling
        case ready(isEmpty: Bool)
    }

    /// How long nothing must come or go, in seconds.
    static let quiet: TimeInterval = 0.25
    /// How long it may come and go altogether, in seconds.
    static let limit: TimeInterval = 5

    private var state = State.noLink
    private var waiting: [OperationID] = []

    /// Whether the services are known.
    var isReady: Bool {
        switch state {
        case .ready(let isEmpty): !isEmpty
        case .noLink, .resolving, .fencing, .reading, .settling: false
        }
    }

    var hasLink: Bool { state != .noLink }

    mutating func event(_ event: Event) -> [Effect] {
        switch event {
        case .linkUp(let isResolved):
            guard state == .noLink else { return [] }
            state = .resolving
            return isResolved ? fence() : []
        case .resolved(let isResolved):
            return resolved(isResolved)
        case .fencePassed:
            guard state == .fencing else { return [] }
            return read(isLast: false)
        case .read(let inventory):
            guard case .reading(let isLast) = state else { return [] }
            return isLast || inventory == .whole ? finish(inventory) : settle()
        case .cameOrWent:
            return cameOrWent()
        case .fired(let timer):
            guard state == .settling else { return [] }
            return [.cancelTimer(timer == .quiet ? .limit : .quiet)] + read(isLast: true)
        case .linkLost:
            return linkLost()
        case .wanted(let operation):
            return wanted(operation)
        case .abandoned(let operation):
            waiting.removeAll { $0 == operation }
            return []
        }
    }

    private mutating func fence() -> [Effect] {
        state = .fencing
        return [.fence]
    }

    private mutating func read(isLast: Bool) -> [Effect] {
        state = .reading(isLast: isLast)
        return [.read]
    }

    private mutating func settle() -> [Effect] {
        state = .settling
        return [.startTimer(.quiet, Self.quiet), .startTimer(.limit, Self.limit)]
    }

    private mutating func finish(_ inventory: Inventory) -> [Effect] {
        state = .ready(isEmpty: inventory == .nothing)
        defer { waiting = [] }
        return [.tableHolds] + waiting.map { .finish($0, inventory == .nothing ? .foundNothing : .found) }
    }

    private mutating func resolved(_ isResolved: Bool) -> [Effect] {
        switch (state, isResolved) {
        case (.noLink, _), (.resolving, false):
            return []
        case (.resolving, true):
            return fence()
        case (.fencing, true), (.reading, true), (.settling, true), (.ready, true):
            return []
        case (.fencing, false), (.reading, false):
            state = .resolving
            return []
        case (.settling, false):
            state = .resolving
            return [.cancelTimer(.quiet), .cancelTimer(.limit)]
        case (.ready, false):
            // BlueZ says so a moment before the link is lost; what is in flight is left to its fate.
            state = .resolving
            return [.tableIsVoid]
        }
    }

    private mutating func cameOrWent() -> [Effect] {
        switch state {
        case .noLink, .resolving, .fencing, .reading:
            return []
        case .settling:
            return [.startTimer(.quiet, Self.quiet)]
        case .ready:
            return settle()
        }
    }

    private mutating func wanted(_ operation: OperationID) -> [Effect] {
        switch state {
        case .noLink:
            return [.finish(operation, .linkLost)]
        case .resolving, .fencing, .reading, .settling:
            waiting.append(operation)
            return []
        case .ready(isEmpty: false):
            return [.finish(operation, .found)]
        case .ready(isEmpty: true):
            // Perhaps something has come that nobody told us of.
            waiting.append(operation)
            return settle()
        }
    }

    private mutating func linkLost() -> [Effect] {
        let wasSettling = state == .settling
        state = .noLink
        defer { waiting = [] }
        return (wasSettling ? [.cancelTimer(.quiet), .cancelTimer(.limit)] : [])
            + waiting.map { .finish($0, .linkLost) }
    }
}
