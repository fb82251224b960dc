import Foundation
import GATT

/// A subscription of an earlier run of the program.
struct RestoredSubscription: Equatable {
    let subscription: RestorationState.Subscription
    /// On the present link.
    var wasTried = false
}

/// What is kept of a peripheral beyond the life of the process, and how it comes back.
extension PeripheralState {
    /// Whether something of it is to come back after a crash: `nil` where nobody wants it connected.
    func kept(_ key: PeripheralKey) -> RestorationState.Connection? {
        guard connection.isWanted else { return nil }
        var kept = RestorationState.Connection(
            address: key.address, addressType: key.addressType, timeoutRetries: connection.policy.timeoutRetries,
            disconnectRetries: connection.policy.disconnectRetries,
            connectionTimeout: connection.policy.timeout ?? .infinity)
        kept.subscriptions = subscriptions.wished.compactMap { attributes.table.kept($0.id, $0.transport) }
        // Those that have not been taken up again so far.
        for entry in restored where !kept.subscriptions.contains(entry.subscription) {
            kept.subscriptions.append(entry.subscription)
        }
        return kept
    }

    /// Wants what was wanted in an earlier run. Without anybody who waits for it.
    mutating func restore(_ kept: RestorationState.Connection) -> [Effect] {
        restored = kept.subscriptions.map { RestoredSubscription(subscription: $0) }
        return connect(
            .connectAsked(
                ConnectionPolicy(
                    timeoutRetries: kept.timeoutRetries, disconnectRetries: kept.disconnectRetries,
                    timeout: kept.connectionTimeout.isFinite ? kept.connectionTimeout : nil)))
    }

    /// Subscribes to what was subscribed to in an earlier run, once the attributes are known: on each link once, until it
    /// has succeeded.
    mutating func takeUpRestored() -> [Effect] {
        guard !restored.isEmpty, attributes.isReady else { return [] }
        var effects: [Effect] = []
        restored.removeAll { entry in
            // What the peripheral does not have any more nobody can subscribe to.
            guard let id = attributes.table.id(of: entry.subscription) else { return true }
            return subscriptions.isNotifying(id)
        }
        for index in restored.indices where !restored[index].wasTried {
            guard let id = attributes.table.id(of: restored[index].subscription) else { continue }
            restored[index].wasTried = true
            effects += subscriptions.event(
                id, .startAsked(.nobodys, restored[index].subscription.transport), attributes)
        }
        return effects
    }

    /// The user wants no values of it any more.
    mutating func forgetRestored(_ id: AttributeID) {
        restored.removeAll { attributes.table.id(of: $0.subscription) == id }
    }
}

extension OperationID {
    /// Of what nobody waits for.
    static let nobodys = OperationID(rawValue: .max)
}

extension AttributeTable {
    func kept(_ id: AttributeID, _ transport: NotificationTransport) -> RestorationState.Subscription? {
        guard let record = self[id], let handle = record.handle.attHandle,
            let service = record.parent.flatMap({ self[$0] })
        else { return nil }
        return RestorationState.Subscription(
            service: service.uuid, characteristic: record.uuid, handle: handle, transport: transport)
    }

    /// The characteristic that is meant: the one at that place, or the only one of that kind where the places have
    /// changed.
    func id(of subscription: RestorationState.Subscription) -> AttributeID? {
        if let id = id(at: AttributeHandle(subscription.handle)), isMeant(id, by: subscription) { return id }
        let alike = allServices.flatMap { self[$0]?.children ?? [] }.filter { isMeant($0, by: subscription) }
        return alike.count == 1 ? alike.first : nil
    }

    private func isMeant(_ id: AttributeID, by subscription: RestorationState.Subscription) -> Bool {
        guard let record = self[id], record.isPresent, record.uuid == subscription.characteristic else { return false }
        return record.parent.flatMap { self[$0]?.uuid } == subscription.service
    }
}
