internal import GatewayCore

/// The events of a transport between the thread of its connection and the loop that takes them.
///
/// Acknowledgements and changes of the connection are never dropped; the transport limits how many there can be. Received
/// messages are dropped if the limits are reached. Those that arrive before the connection is reported follow that report.
final class EventQueue: Sendable {
    private let state: Guarded<State>

    init(limits: MosquittoLimits) { state = Guarded(State(limits: limits)) }

    /// Appends an event. Returns whether it is the first message that is dropped since the loop has taken an event.
    @discardableResult
    func append(_ event: BrokerEvent) -> Bool {
        let (waiter, isFirstDrop) = state.withLock { state in
            let isFirstDrop = state.append(event)
            return (state.takeWaiter(), isFirstDrop)
        }
        waiter?()
        return isFirstDrop
    }

    /// Ends the events after those that are in the queue.
    func finish() {
        let waiter = state.withLock { state in
            state.isFinished = true
            return state.takeWaiter()
        }
        waiter?()
    }

    /// Returns the next event when there is one, or `nil` if there will be none or the task is cancelled.
    func next() async -> BrokerEvent? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = state.withLock { state in
                    precondition(state.waiter == nil, "One loop at a time may take the events of a transport.")
                    state.waiter = continuation
                    return Task.isCancelled ? state.takeWaiter(cancelled: true) : state.takeWaiter()
                }
                waiter?()
            }
        } onCancel: {
            state.withLock { $0.takeWaiter(cancelled: true) }?()
        }
    }

    /// How many acknowledgements the loop has not taken.
    var acknowledgements: Int { state.withLock { $0.acknowledgements } }
    /// How many changes of the connection the loop has not taken.
    var changes: Int { state.withLock { $0.changes } }
    /// How many messages were received, and how many of them dropped, since the beginning.
    var counts: (received: Int, dropped: Int) { state.withLock { ($0.received, $0.dropped) } }

    /// Counts a message that was dropped because of its size. Returns the same as ``append(_:)``.
    func dropOversized() -> Bool { state.withLock { $0.drop() } }

    private struct State {
        let limits: MosquittoLimits
        var waiter: CheckedContinuation<BrokerEvent?, Never>?
        var isFinished = false
        private(set) var acknowledgements = 0
        private(set) var changes = 0
        private(set) var received = 0
        private(set) var dropped = 0
        /// A queue in two parts: the next event is the last of `outgoing`, the newest the last of `incoming`.
        private var incoming: [BrokerEvent] = []
        private var outgoing: [BrokerEvent] = []
        /// Messages of a connection that has not been reported.
        private var early: [BrokerEvent] = []
        private var isConnected = false
        private var messages = 0
        private var bytes = 0
        private var hasDropped = false

        init(limits: MosquittoLimits) { self.limits = limits }

        mutating func append(_ event: BrokerEvent) -> Bool {
            switch event {
            case .received(let message):
                received += 1
                let size = message.size
                guard messages == 0 || (messages < limits.received && bytes + size <= limits.receivedBytes) else {
                    dropped += 1
                    defer { hasDropped = true }
                    return !hasDropped
                }
                messages += 1
                bytes += size
                if isConnected { incoming.append(event) } else { early.append(event) }
            case .acknowledged:
                acknowledgements += 1
                incoming.append(event)
            case .connected:
                changes += 1
                isConnected = true
                incoming.append(event)
                incoming += early
                early = []
            case .disconnected:
                isConnected = false
                incoming += early
                early = []
                // Of attempts that fail one after another the loop needs the last reason.
                if case .disconnected = incoming.last {
                    incoming[incoming.count - 1] = event
                } else {
                    changes += 1
                    incoming.append(event)
                }
            }
            return false
        }

        mutating func drop() -> Bool {
            received += 1
            dropped += 1
            defer { hasDropped = true }
            return !hasDropped
        }

        private mutating func pop() -> BrokerEvent? {
            if outgoing.isEmpty {
                outgoing = incoming.reversed()
                incoming = []
            }
            guard let event = outgoing.popLast() else { return nil }
            hasDropped = false
            switch event {
            case .received(let message):
                messages -= 1
                bytes -= message.size
            case .acknowledged: acknowledgements -= 1
            case .connected, .disconnected: changes -= 1
            }
            return event
        }

        /// Returns what resumes the waiting loop, if it waits and there is something to resume it with.
        mutating func takeWaiter(cancelled: Bool = false) -> (() -> Void)? {
            guard let waiter else { return nil }
            let event = cancelled ? nil : pop()
            guard event != nil || cancelled || isFinished else { return nil }
            self.waiter = nil
            return { waiter.resume(returning: event) }
        }
    }
}

extension BrokerMessage {
    /// The bytes that count towards limits.
    var size: Int { topic.utf8.count + payload.count }
}
