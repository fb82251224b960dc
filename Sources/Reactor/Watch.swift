/// A descriptor that is being watched, until cancelled. Loop only.
///
/// Unchecked, because its state is confined to the loop: every method checks that it is called there.
package final class Watch: @unchecked Sendable {
    package let descriptor: Int32
    /// What is being watched for.
    package private(set) var events: IOEvents
    private(set) var ready: (@Sendable (IOEvents) -> Void)?
    private weak var table: (any WatchTableOwner)?

    init(
        descriptor: Int32, events: IOEvents, table: any WatchTableOwner, ready: @escaping @Sendable (IOEvents) -> Void
    ) {
        self.descriptor = descriptor
        self.events = events
        self.ready = ready
        self.table = table
    }

    /// Watches for other events from now on; none is a pause.
    package func update(_ events: IOEvents) {
        guard let table, ready != nil, events != self.events else { return }
        precondition(table.isCurrent, "Watch.update belongs on its event loop: call it inside loop.post { … }.")
        self.events = events
        table.watchesChanged(of: descriptor)
    }

    /// Ends the watch: `ready` is not called again, and what it holds is released.
    package func cancel() {
        guard let table, ready != nil else { return }
        precondition(table.isCurrent, "Watch.cancel belongs on its event loop: call it inside loop.post { … }.")
        ready = nil
        table.watchesChanged(of: descriptor)
    }
}

/// A loop, as its watches see it.
protocol WatchTableOwner: AnyObject, Sendable {
    var isCurrent: Bool { get }

    /// A watch of this descriptor asks for other events, or for none any more.
    func watchesChanged(of descriptor: Int32)
}

/// All watches of a loop. Several may be on one descriptor (libdbus asks for reading and for writing separately), which
/// epoll knows only once.
struct WatchTable {
    private var watches: [Int32: [Watch]] = [:]

    var descriptors: [Int32] { Array(watches.keys) }

    mutating func add(_ watch: Watch) {
        watches[watch.descriptor, default: []].append(watch)
    }

    /// What all live watches of the descriptor ask for together; nil where none is left, and the descriptor is let go.
    mutating func interest(in descriptor: Int32) -> IOEvents? {
        watches[descriptor]?.removeAll { $0.ready == nil }
        guard let live = watches[descriptor], !live.isEmpty else {
            watches[descriptor] = nil
            return nil
        }
        return live.reduce(into: []) { $0.formUnion($1.events) }
    }

    /// The watches to tell of these events.
    func watches(of descriptor: Int32) -> [Watch] {
        watches[descriptor] ?? []
    }
}

extension Watch {
    /// Tells the watch what holds; a watch that was cancelled meanwhile, or that asks for nothing of it, hears nothing.
    func tell(_ found: IOEvents) {
        guard let ready, !events.isEmpty else { return }
        let relevant = found.intersection(events.union([.hangup, .error]))
        if !relevant.isEmpty { ready(relevant) }
    }
}
