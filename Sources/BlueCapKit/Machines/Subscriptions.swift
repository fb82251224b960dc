import BlueZ
import Foundation

/// The subscriptions to a peripheral's characteristics, and BlueZ's names of the characteristics.
struct Subscriptions {
    /// The state of the characteristic that was last sent to its subscription.
    private enum Standing: Equatable {
        case away
        case awaited
        case ready(AttributeKey)
        case invalid
    }

    private struct Entry {
        var machine = SubscriptionMachine(isReady: false)
        var standing = Standing.away
        /// BlueZ's name of the characteristic when it was last present: a subscription that began under this name is ended
        /// under it.
        var key: AttributeKey?
    }

    private var entries: [AttributeID: Entry] = [:]
    /// The subscriptions that operations with a time limit wait for.
    private var timed: [OperationID: AttributeID] = [:]

    func isNotifying(_ id: AttributeID) -> Bool { entries[id]?.machine.isNotifying ?? false }

    func isWanted(_ id: AttributeID) -> Bool { entries[id]?.machine.wanted != nil }

    /// The characteristics with a subscription, and the transport of each.
    var wanted: [(id: AttributeID, transport: NotificationTransport)] {
        entries.keys.sorted().compactMap { id in entries[id]?.machine.wanted.map { (id, $0) } }
    }

    /// Whether a subscription waits for a pairing.
    var isSecuring: Bool { entries.values.contains { $0.machine.isSecuring } }

    /// Whether BlueZ is executing a request to begin.
    var isStarting: Bool { entries.values.contains { $0.machine.isStarting } }

    /// Whether a subscription waits for the reply to this request.
    func awaits(_ call: SubscriptionMachine.Call, of id: AttributeID) -> Bool {
        entries[id]?.machine.awaits(call) ?? false
    }

    /// The pairing has ended.
    mutating func secured(_ error: PairingError?, into orders: inout Orders) {
        for id in entries.keys.sorted() { send(id, .secured(error), into: &orders) }
    }

    /// There will be no link for the subscriptions that a pairing has left waiting.
    mutating func linkUnwanted(into orders: inout Orders) {
        for id in entries.keys.sorted() where entries[id]?.machine.isAwaitingLink == true {
            send(id, .linkWentDown(.disconnected, canCall: false), into: &orders)
        }
    }

    /// A pairing was rejected that BlueZ may have begun for one of the subscriptions.
    mutating func refuse(_ error: PairingError, into orders: inout Orders) {
        for id in entries.keys.sorted() {
            send(id, .pairingRejected(error), into: &orders)
        }
    }

    // MARK: Events

    /// Sends the request of an operation to a subscription, with a time limit in seconds.
    mutating func request(
        _ id: AttributeID, _ event: SubscriptionMachine.Event, by operation: OperationID, timeout: TimeInterval,
        _ attributes: borrowing AttributeState, into orders: inout Orders
    ) {
        if timeout.isFinite {
            timed[operation] = id
            orders.append(.startTimer(.operation(operation), max(0, timeout)))
        }
        self.event(id, event, attributes, into: &orders)
    }

    /// An operation has exceeded its time limit. Returns false if it does not wait for a subscription.
    mutating func timedOut(_ operation: OperationID, into orders: inout Orders) -> Bool {
        guard let id = timed.removeValue(forKey: operation) else { return false }
        send(id, .timedOut(operation), into: &orders)
        return true
    }

    /// Sends an event to a subscription, and creates the subscription if there is none.
    mutating func event(
        _ id: AttributeID, _ event: SubscriptionMachine.Event, _ attributes: borrowing AttributeState,
        into orders: inout Orders
    ) {
        if entries[id] == nil {
            entries[id] = Entry()
            follow(id, attributes, canCall: true, isPairing: false, into: &orders)
        }
        send(id, event, into: &orders)
    }

    /// Sends a reply of BlueZ to an earlier call, or a timer. Does nothing if there is no such subscription.
    mutating func send(_ id: AttributeID, _ event: SubscriptionMachine.Event, into orders: inout Orders) {
        guard let key = entries[id].map(\.key) else { return }
        orders.subject.characteristic = id
        // Until the characteristic is present for the first time, BlueZ has no name for it, and no call is made.
        orders.subject.attribute = key
        let start = orders.count
        entries[id]?.machine.event(event, into: &orders)
        guard !timed.isEmpty else { return }
        for index in start..<orders.count {
            guard case .settle(let operation, _) = orders[index], timed.removeValue(forKey: operation) != nil else {
                continue
            }
            orders.append(.cancelTimer(.operation(operation)))
        }
    }

    /// The manager ends, or releases the peripheral.
    mutating func closed(canCall: Bool, into orders: inout Orders) {
        for id in entries.keys.sorted() { send(id, .closed(canCall: canCall), into: &orders) }
    }

    // MARK: The link and the attributes

    /// Sends each subscription the changes of its characteristic. Called after every event of the peripheral.
    /// - Parameters:
    ///   - canCall: Whether BlueZ still has the device.
    ///   - isPairing: Whether a pairing is under way that may end the link.
    mutating func follow(
        _ attributes: borrowing AttributeState, canCall: Bool, isPairing: Bool, into orders: inout Orders
    ) {
        guard !entries.isEmpty else { return }
        for id in entries.keys.sorted() {
            follow(id, attributes, canCall: canCall, isPairing: isPairing, into: &orders)
        }
    }

    private mutating func follow(
        _ id: AttributeID, _ attributes: borrowing AttributeState, canCall: Bool, isPairing: Bool,
        into orders: inout Orders
    ) {
        guard let old = entries[id]?.standing else { return }
        let new = standing(of: id, attributes, before: old)
        guard new != old else { return }
        entries[id]?.standing = new
        switch new {
        case .away:
            let error: PeripheralError = attributes.linkFailure == .linkEnded ? .forcedDisconnect : attributes.lossError
            let keepsSecuring = isPairing && attributes.linkFailure == .linkLost
            send(id, .linkWentDown(error, canCall: canCall, keepsSecuring: keepsSecuring), into: &orders)
        case .awaited:
            if case .ready = old {
                send(id, .attributeRemoved, into: &orders)
            } else {
                send(id, .linkWentUp, into: &orders)
            }
        case .ready(let key):
            // If its handle has changed, the characteristic has to be subscribed to again.
            if case .ready = old { send(id, .attributeRemoved, into: &orders) }
            entries[id]?.key = key
            send(id, .attributesReady, into: &orders)
        case .invalid:
            send(id, .invalidated, into: &orders)
        }
    }

    private func standing(
        of id: AttributeID, _ attributes: borrowing AttributeState, before: Standing
    ) -> Standing {
        guard attributes.hasLink else { return .away }
        let key = attributes.subscriptionKey(of: id)
        guard attributes.isReady else {
            // The table is being read again because of other attributes.
            if let key, before == .ready(key) { return before }
            return .awaited
        }
        return key.map { .ready($0) } ?? .invalid
    }
}
