import Foundation

/// Decides which of the values that the daemon reports of a characteristic are notifications. One for each subscription,
/// on the loop only, so that a value costs no lock.
///
/// BlueZ reports a notified value as it reports a value that any program has read: `Value` has changed. The report that
/// our own read causes precedes the read's reply, and equals it. So during a read values are held; at the reply the last
/// one that equals the reply is dropped, and the others are delivered.
struct ValueGate {
    /// How many values wait for a read's reply; then the oldest is delivered. BlueZ 5.66 sends a read's value and its reply
    /// one right after the other, so the read's own value is among the newest.
    static let patience = 16

    private var transport: NotificationTransport?
    private var isGapDue = false
    /// Whether anything was let through since it was opened.
    private(set) var hasPassed = false
    private var readsUnderWay = 0
    private var held: [Data] = []

    /// Whether values that are signalled are let through, now or after a read.
    var hearsSignals: Bool { transport == .signals }

    /// Whether it is closed, and nothing waits for a read.
    var isIdle: Bool { transport == nil && held.isEmpty }

    /// From now on what comes this way is let through. `afterGap`: after a gap mark.
    mutating func open(_ transport: NotificationTransport, afterGap: Bool) {
        self.transport = transport
        isGapDue = afterGap
        hasPassed = false
    }

    /// Values come this way and no other, if they are let through at all; a gap that is due stays so.
    mutating func reopen(_ transport: NotificationTransport) {
        if self.transport != nil { self.transport = transport }
    }

    /// From now on nothing is let through. What waits for a read still does.
    mutating func close() {
        transport = nil
        isGapDue = false
    }

    /// Puts the gap mark, `nil`, into `batch` unless a value has done so already.
    mutating func markGap(into batch: inout [Data?]) {
        guard isGapDue else { return }
        isGapDue = false
        batch.append(nil)
    }

    /// The daemon has reported a value by a signal.
    mutating func told(_ value: Data, into batch: inout [Data?]) {
        guard transport == .signals else { return }
        guard readsUnderWay > 0 else { return pass(value, into: &batch) }
        if held.count == Self.patience { pass(held.removeFirst(), into: &batch) }
        held.append(value)
    }

    /// Values of the socket. Reads do not appear there.
    mutating func received(_ values: [Data], into batch: inout [Data?]) {
        guard transport == .socket, !values.isEmpty else { return }
        markGap(into: &batch)
        hasPassed = true
        batch.append(contentsOf: values.lazy.map { $0 })
    }

    /// A read of ours goes to the daemon.
    mutating func readBegan() { readsUnderWay += 1 }

    /// The daemon has replied: with the value from `offset` on, or with an error.
    mutating func readEnded(_ reply: Data?, offset: Int = 0, into batch: inout [Data?]) {
        readsUnderWay = max(0, readsUnderWay - 1)
        if let reply, let own = held.lastIndex(where: { $0.dropFirst(offset) == reply }) { held.remove(at: own) }
        guard readsUnderWay == 0 else { return }
        for value in held { pass(value, into: &batch) }
        held.removeAll(keepingCapacity: true)
    }

    private mutating func pass(_ value: Data, into batch: inout [Data?]) {
        markGap(into: &batch)
        hasPassed = true
        batch.append(value)
    }
}
