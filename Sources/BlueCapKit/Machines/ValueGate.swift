import Foundation

/// Decides which of the values that the daemon reports of a characteristic are notifications. There is one for each
/// subscription, used on the loop only, so that a value needs no lock.
///
/// BlueZ reports a notified value in the same way as a value that any program has read: `Value` has changed. The report
/// that our own read causes precedes the read's reply, and equals it. So values are held during a read. At the reply
/// the last one that equals the reply is dropped, and the others are delivered.
struct ValueGate {
    /// The number of values that may wait for a read's reply; beyond it the oldest is delivered. BlueZ 5.66 sends a
    /// read's value and its reply in immediate succession, so the read's own value is among the newest.
    static let patience = 16

    private var transport: NotificationTransport?
    private var isGapDue = false
    /// Whether a value has passed since the gate was opened.
    private(set) var hasPassed = false
    private var readsUnderWay = 0
    private var held: [Data] = []
    /// The values that have passed since they were taken last, in their order; `nil` is a gap mark.
    private(set) var batch: [Data?] = []

    /// Whether values from signals pass, now or after a read.
    var passesSignals: Bool { transport == .signals }

    /// Whether the gate is closed, and no value waits for a read.
    var isIdle: Bool { transport == nil && held.isEmpty }

    /// Lets the values of this transport pass from now on. `afterGap`: after a gap mark.
    mutating func open(_ transport: NotificationTransport, afterGap: Bool) {
        self.transport = transport
        isGapDue = afterGap
        hasPassed = false
    }

    /// Changes the transport of the values, if any pass at all; a gap mark that is due stays due.
    mutating func reopen(_ transport: NotificationTransport) {
        if self.transport != nil { self.transport = transport }
    }

    /// Lets no more values pass. Those that wait for a read still do.
    mutating func close() {
        transport = nil
        isGapDue = false
    }

    /// Adds the gap mark unless a value has done so already.
    mutating func markGap() {
        guard isGapDue else { return }
        isGapDue = false
        batch.append(nil)
    }

    /// The daemon has reported a value by a signal.
    mutating func signalled(_ value: Data) {
        guard transport == .signals else { return }
        guard readsUnderWay > 0 else { return pass(value) }
        if held.count == Self.patience { pass(held.removeFirst()) }
        held.append(value)
    }

    /// Adds values of the socket. The results of reads do not appear there.
    mutating func received(_ values: [Data]) {
        guard transport == .socket, !values.isEmpty else { return }
        markGap()
        hasPassed = true
        batch.append(contentsOf: values.lazy.map { $0 })
    }

    /// A read of this program is being sent to the daemon.
    mutating func readBegan() { readsUnderWay += 1 }

    /// The daemon has replied: with the value from `offset` on, or with an error.
    mutating func readEnded(_ reply: Data?, offset: Int = 0) {
        readsUnderWay = max(0, readsUnderWay - 1)
        if let reply, let own = held.lastIndex(where: { $0.dropFirst(offset) == reply }) { held.remove(at: own) }
        guard readsUnderWay == 0 else { return }
        for value in held { pass(value) }
        held.removeAll(keepingCapacity: true)
    }

    mutating func takeBatch() -> [Data?] {
        defer { batch = [] }
        return batch
    }

    private mutating func pass(_ value: Data) {
        markGap()
        hasPassed = true
        batch.append(value)
    }
}
