import BlueCapFutures
import BlueCapReactor

/// The calls of one connection that wait for their reply, or for their turn to be sent.
///
/// The bus allows a connection a limited number of pending calls (128 on a default system bus) and refuses more, so the
/// rest wait here. A call that timed out is removed: its late reply finds no entry, and cannot be mistaken for the reply to
/// another call. A pure value, without a socket or a clock.
struct CallTable<Request, Completion> {
    private enum Stage {
        case waiting(Request)
        case sent(serial: UInt32)
    }

    private struct Call {
        var stage: Stage
        let completion: Completion
    }

    private let limit: Int
    private var calls = TimerQueue<Call>()
    /// The calls that are sent and have no reply, in the order in which they were sent and most replies come.
    private var sent: [(serial: UInt32, number: UInt64)] = []
    private var waiting = Ring<UInt64>()

    init(limit: Int) {
        self.limit = limit
    }

    /// The number of calls that are sent and have no reply.
    var inFlight: Int { sent.count }
    /// The number of pending calls, sent or not.
    var count: Int { calls.count }

    /// The time-out of the call that times out next.
    var nextDeadline: Instant? { calls.nextDeadline }

    /// Adds a call, to be sent when its turn comes.
    mutating func add(_ request: Request, completion: Completion, deadline: Instant) {
        waiting.append(calls.add(Call(stage: .waiting(request), completion: completion), deadline: deadline))
    }

    /// Returns the call to send now, if any; `sent` or `refused` must follow.
    mutating func next() -> (number: UInt64, request: Request)? {
        guard inFlight < limit else { return nil }
        while let number = waiting.popFirst() {
            // A call that timed out while it waited is not in `calls` any more.
            if case .waiting(let request)? = calls[number]?.stage { return (number, request) }
        }
        return nil
    }

    mutating func sent(_ number: UInt64, serial: UInt32) {
        calls[number]?.stage = .sent(serial: serial)
        sent.append((serial, number))
    }

    /// Removes a call that could not be sent.
    mutating func refused(_ number: UInt64) -> Completion? {
        calls.cancel(number)?.completion
    }

    /// Removes the call to which a reply has arrived; nil if it timed out before.
    mutating func answered(serial: UInt32) -> Completion? {
        guard let index = sent.firstIndex(where: { $0.serial == serial }) else { return nil }
        return calls.cancel(sent.remove(at: index).number)?.completion
    }

    /// Removes the calls that time out, in the order of their deadlines.
    mutating func expire(at now: Instant) -> [Completion] {
        var expired: [Completion] = []
        while let call = calls.popDue(at: now) {
            if case .sent(let serial) = call.stage { sent.removeAll { $0.serial == serial } }
            expired.append(call.completion)
        }
        return expired
    }

    /// Removes all calls, in the order in which they were added.
    mutating func removeAll() -> [Completion] {
        waiting.removeAll()
        sent = []
        return calls.removeAll().map(\.completion)
    }
}
