import Reactor

/// The calls of one connection that wait for their answer, or for their turn to be sent.
///
/// The bus allows a connection a limited number of unanswered calls (128 on a default system bus) and refuses more, so
/// the rest wait here. A call that timed out is forgotten: its late answer finds no entry, and cannot be taken for the
/// answer to another call. A pure value, with no socket and no clock in it.
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
    private var numberOfSerial: [UInt32: UInt64] = [:]
    private var waiting = Queue<UInt64>()

    init(limit: Int) {
        self.limit = limit
    }

    /// How many calls are sent and unanswered.
    var inFlight: Int { numberOfSerial.count }
    /// How many calls are not settled, sent or not.
    var count: Int { calls.count }

    /// When the next call times out.
    var nextDeadline: Instant? {
        mutating get { calls.nextDeadline }
    }

    /// A new call, to be sent when its turn comes.
    mutating func add(_ request: Request, completion: Completion, deadline: Instant) {
        waiting.append(calls.add(Call(stage: .waiting(request), completion: completion), deadline: deadline))
    }

    /// The call whose turn to be sent it is now, if any; `sent` or `refused` must follow.
    mutating func next() -> (number: UInt64, request: Request)? {
        guard inFlight < limit else { return nil }
        while let number = waiting.popFirst() {
            // One that timed out while it waited is gone.
            if case .waiting(let request)? = calls[number]?.stage { return (number, request) }
        }
        return nil
    }

    mutating func sent(_ number: UInt64, serial: UInt32) {
        calls[number]?.stage = .sent(serial: serial)
        numberOfSerial[serial] = number
    }

    /// The call could not be sent: it is over.
    mutating func refused(_ number: UInt64) -> Completion? {
        calls.cancel(number)?.completion
    }

    /// The answer to a call has come; nil where nobody waits for it any more.
    mutating func answered(serial: UInt32) -> Completion? {
        guard let number = numberOfSerial.removeValue(forKey: serial) else { return nil }
        return calls.cancel(number)?.completion
    }

    /// The calls whose time is up, in the order of their deadlines.
    mutating func expire(at now: Instant) -> [Completion] {
        var expired: [Completion] = []
        while let call = calls.popDue(at: now) {
            if case .sent(let serial) = call.stage { numberOfSerial[serial] = nil }
            expired.append(call.completion)
        }
        return expired
    }

    /// Every call, in the order they were made; the table is empty afterwards.
    mutating func removeAll() -> [Completion] {
        waiting.removeAll()
        numberOfSerial = [:]
        return calls.removeAll().map(\.completion)
    }
}
