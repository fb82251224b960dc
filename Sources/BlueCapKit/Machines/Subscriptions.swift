import BlueCapBlueZ
import BlueCapFutures
import Foundation

/// The subscriptions to a peripheral's characteristics.
struct Subscriptions {
    private var machines: [AttributeID: SubscriptionMachine] = [:]

    func isNotifying(_ id: AttributeID) -> Bool { machines[id]?.isNotifying ?? false }

    func isWanted(_ id: AttributeID) -> Bool { machines[id]?.wanted != nil }

    /// The characteristics with a subscription, and the transport of each.
    var wanted: [(id: AttributeID, transport: NotificationTransport)] {
        ids.compactMap { id in machines[id]?.wanted.map { (id, $0) } }
    }

    /// Whether a subscription waits for a pairing.
    var isSecuring: Bool { machines.values.contains(where: \.isSecuring) }

    /// Whether BlueZ is executing a request to begin.
    var isStarting: Bool { machines.values.contains(where: \.isStarting) }

    private var ids: [AttributeID] { machines.keys.ordered() }

    // MARK: Events

    /// Sends an event to a subscription. Does nothing if there is none.
    mutating func send(_ id: AttributeID, _ event: SubscriptionMachine.Event, into orders: inout Orders) {
        orders.subject.characteristic = id
        machines[id]?.event(event, into: &orders)
    }

    mutating func sendAll(_ event: SubscriptionMachine.Event, into orders: inout Orders) {
        for id in ids { send(id, event, into: &orders) }
    }

    /// Sends an event to a subscription, and creates the subscription if there is none.
    mutating func event(
        _ id: AttributeID, _ event: SubscriptionMachine.Event, _ attributes: borrowing AttributeState,
        into orders: inout Orders
    ) {
        if machines[id] == nil {
            machines[id] = SubscriptionMachine()
            follow(id, attributes, isPairing: false, into: &orders)
        }
        send(id, event, into: &orders)
    }

    /// An operation has exceeded its time limit, or is withdrawn. Returns false if it does not wait for a subscription.
    mutating func end(
        _ operation: OperationID, _ event: SubscriptionMachine.Event, into orders: inout Orders
    ) -> Bool {
        guard let id = machines.first(where: { $0.value.isAwaited(by: operation) })?.key else { return false }
        send(id, event, into: &orders)
        return true
    }

    /// There will be no link for the subscriptions that a pairing has left waiting.
    mutating func linkUnwanted(into orders: inout Orders) {
        for id in ids where machines[id]?.isAwaitingLink == true { send(id, .attribute(.away), into: &orders) }
    }

    // MARK: The link and the attributes

    /// Sends each subscription the changes of its characteristic. Called after every event of the peripheral.
    /// - Parameter isPairing: Whether a pairing is under way that may end the link.
    mutating func follow(_ attributes: borrowing AttributeState, isPairing: Bool, into orders: inout Orders) {
        guard !machines.isEmpty else { return }
        for id in ids { follow(id, attributes, isPairing: isPairing, into: &orders) }
    }

    private mutating func follow(
        _ id: AttributeID, _ attributes: borrowing AttributeState, isPairing: Bool, into orders: inout Orders
    ) {
        guard let old = machines[id]?.attribute else { return }
        let new = attribute(attributes.key(of: id, on: orders.subject.device), attributes, before: old)
        guard new != old else { return }
        let failure = attributes.linkFailure
        let keepsSecuring = isPairing && failure != .linkEnded
        send(id, .attribute(new, failure.linkError, keepsSecuring: keepsSecuring), into: &orders)
    }

    private func attribute(
        _ key: AttributeKey?, _ attributes: borrowing AttributeState, before: SubscriptionMachine.Attribute
    ) -> SubscriptionMachine.Attribute {
        guard attributes.hasLink else { return .away }
        guard attributes.isReady else {
            // The table is being read again because of other attributes.
            if let key, before == .ready(key) { return before }
            return .awaited
        }
        return key.map { .ready($0) } ?? .invalid
    }
}
