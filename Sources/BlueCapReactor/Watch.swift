import CBlueCapReactor
import Glibc

/// A watched descriptor, until the watch is cancelled. Loop only.
///
/// Unchecked, because its state is confined to the loop: every method checks that it is called there. For the same reason the
/// runtime need not check the accesses.
package final class Watch: @unchecked Sendable {
    package let descriptor: Int32
    /// A later watch of the same loop has a greater number.
    fileprivate let number: UInt64
    /// The events that it watches for.
    @exclusivity(unchecked) package private(set) var events: IOEvents
    @exclusivity(unchecked) private var ready: (@Sendable (IOEvents) -> Void)?
    private weak var table: (any WatchingLoop)?

    fileprivate init(
        descriptor: Int32, number: UInt64, events: IOEvents, table: any WatchingLoop,
        ready: @escaping @Sendable (IOEvents) -> Void
    ) {
        self.descriptor = descriptor
        self.number = number
        self.events = events
        self.ready = ready
        self.table = table
    }

    fileprivate var isCancelled: Bool { ready == nil }

    /// Watches for other events from now on; an empty set pauses the watch.
    package func update(_ events: IOEvents) {
        guard let table, !isCancelled, events != self.events else { return }
        precondition(table.isCurrent, "Watch.update belongs on its event loop: call it inside loop.post { … }.")
        self.events = events
        table.watchesChanged(of: descriptor)
    }

    /// Ends the watch: `ready` is not called again and is released.
    package func cancel() {
        guard let table, !isCancelled else { return }
        precondition(table.isCurrent, "Watch.cancel belongs on its event loop: call it inside loop.post { … }.")
        ready = nil
        table.watchesChanged(of: descriptor)
    }

    /// Calls `ready` with those of the events that it watches for. A cancelled or paused watch ignores them.
    fileprivate func deliver(_ found: IOEvents) {
        guard let ready, !events.isEmpty else { return }
        let relevant = found.intersection(events.union([.hangup, .error]))
        if !relevant.isEmpty { ready(relevant) }
    }
}

/// What the two kinds of loop share about descriptors. On the loop.
protocol WatchingLoop: AnyObject, Sendable {
    var isCurrent: Bool { get }
    /// All watches, by descriptor. There may be several of one descriptor, which epoll accepts only once: libdbus watches
    /// for reading and for writing separately.
    var watches: DescriptorTable<[Watch]> { get set }
    /// How many watches there have been.
    var watchCount: UInt64 { get set }

    /// A watch of this descriptor was added, cancelled, or watches for other events.
    func watchesChanged(of descriptor: Int32)
}

extension WatchingLoop {
    func makeWatch(
        _ descriptor: Int32, for events: IOEvents, _ ready: @escaping @Sendable (IOEvents) -> Void
    ) -> Watch {
        precondition(isCurrent, "Watching a descriptor belongs on its event loop: call it inside loop.post { … }.")
        watchCount += 1
        let watch = Watch(descriptor: descriptor, number: watchCount, events: events, table: self, ready: ready)
        watches[descriptor] = (watches[descriptor] ?? []) + [watch]
        watchesChanged(of: descriptor)
        return watch
    }

    /// The events of all remaining watches of the descriptor, after the removal of the cancelled ones.
    func interest(in descriptor: Int32) -> IOEvents {
        let rest = (watches[descriptor] ?? []).filter { !$0.isCancelled }
        watches[descriptor] = rest.isEmpty ? nil : rest
        return rest.reduce(into: []) { $0.formUnion($1.events) }
    }

    /// - Parameter count: ``watchCount`` before the events were looked for. In the meantime a handler may have closed the
    ///   descriptor, and watch a new one with the same number, which the events do not belong to.
    func deliver(_ events: IOEvents, of descriptor: Int32, toFirst count: UInt64) {
        for watch in watches[descriptor] ?? [] where watch.number <= count { watch.deliver(events) }
    }
}

/// Values for descriptors. Those are small numbers, so this is an array, in which finding a value needs no hashing.
struct DescriptorTable<Value> {
    private var values: [Value?] = []

    /// The descriptors with a value, the smallest first; -1 for what is not a descriptor.
    var descriptors: [Int32] { values.indices.filter { values[$0] != nil }.map { Int32($0) - 1 } }

    subscript(descriptor: Int32) -> Value? {
        get {
            let place = place(of: descriptor)
            return place < values.count ? values[place] : nil
        }
        set {
            let place = place(of: descriptor)
            if place >= values.count { values += Array(repeating: nil, count: place + 1 - values.count) }
            values[place] = newValue
        }
    }

    /// Negative numbers, which are not descriptors, share one place.
    private func place(of descriptor: Int32) -> Int { Int(max(descriptor, -1)) + 1 }
}

/// The flags of poll and of epoll, which are the same bits (`EPOLLIN` is `POLLIN`, and so on).
extension IOEvents {
    var pollFlags: UInt32 {
        (contains(.readable) ? EPOLLIN.rawValue : 0) | (contains(.writable) ? EPOLLOUT.rawValue : 0)
    }

    init(pollFlags flags: UInt32) {
        self = []
        if flags & EPOLLIN.rawValue != 0 { insert(.readable) }
        if flags & EPOLLOUT.rawValue != 0 { insert(.writable) }
        if flags & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0 { insert(.hangup) }
        if flags & (EPOLLERR.rawValue | UInt32(POLLNVAL)) != 0 { insert(.error) }
    }
}
