import Foundation

/// The callers that wait for a link to one peripheral, without a stream.
struct LinkRequests {
    private struct Waiter {
        let id: OperationID
        /// In seconds.
        let timeout: TimeInterval
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
        // The limit begins with the turn of the attempt, or with the wait for the adapter or the device.
        case .connecting(isUnderWay: true), .waiting(.power), .waiting(.device): return startLimits(&orders)
        case .connecting, .waiting, .ending: return
        }
        for waiter in waiters { orders.append(.settle(waiter.id, outcome)) }
        waiters = []
    }

    private mutating func startLimits(_ orders: inout Orders) {
        for index in waiters.indices where !waiters[index].isLimited && waiters[index].timeout.isFinite {
            waiters[index].isLimited = true
            orders.append(.limit(waiters[index].id, waiters[index].timeout))
        }
    }
}
