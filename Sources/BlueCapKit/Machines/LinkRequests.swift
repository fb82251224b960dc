import Foundation

/// The callers that wait for a link to one peripheral, without a stream.
struct LinkRequests {
    private struct Waiter {
        let id: OperationID
        /// In seconds.
        let timeout: TimeInterval
        /// Whether the limit of the wait for the adapter has begun, and that of the attempt.
        var isWaitLimited = false
        var isLimited = false
    }

    private var waiters: [Waiter] = []
    /// The newest connection that was begun for such a caller; `nil` before the first.
    var number: ConnectionMachine.ConnectionNumber?

    var isEmpty: Bool { waiters.isEmpty }

    /// The longest time limit, in seconds.
    var longestTimeout: TimeInterval { waiters.lazy.map(\.timeout).max() ?? 0 }

    mutating func add(_ id: OperationID, timeout: TimeInterval) { waiters.append(Waiter(id: id, timeout: timeout)) }

    /// Returns whether the caller waited.
    mutating func remove(_ id: OperationID) -> Bool {
        guard let index = waiters.firstIndex(where: { $0.id == id }) else { return false }
        waiters.remove(at: index)
        return true
    }

    /// Settles the requests if there is a link, or if there will be none. Called after every event of the peripheral.
    mutating func follow(_ connection: borrowing ConnectionMachine, into orders: inout Orders) {
        guard !waiters.isEmpty else { return }
        let outcome: Order.Outcome
        switch connection.state {
        case .connected: outcome = .done
        case .disconnected: outcome = .failed(.peripheral(connection.lastError ?? .disconnected))
        case .closed: outcome = .failed(.peripheral(.disconnected))
        // The wait for the adapter has a limit of its own, and then the attempt has the whole limit.
        case .waiting(.power): return startLimits(\.isWaitLimited, &orders)
        case .waiting(.device), .connecting(isUnderWay: true): return startLimits(\.isLimited, &orders)
        case .connecting, .waiting, .ending: return
        }
        for waiter in waiters { orders.append(.settle(waiter.id, outcome)) }
        waiters = []
    }

    private mutating func startLimits(_ limit: WritableKeyPath<Waiter, Bool>, _ orders: inout Orders) {
        for index in waiters.indices where !waiters[index][keyPath: limit] && waiters[index].timeout.isFinite {
            waiters[index][keyPath: limit] = true
            orders.append(.limit(waiters[index].id, waiters[index].timeout))
        }
    }
}
