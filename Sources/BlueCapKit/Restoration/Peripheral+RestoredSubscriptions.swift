import Futures
import Reactor

/// Subscriptions of an earlier run that have not been taken up again so far, for those who ask their users about each.
extension Peripheral {
    package var restoredSubscriptions: [CharacteristicIdentifier] {
        session.readDealing(with: key) { state in
            state.restored.map { entry in
                CharacteristicIdentifier(
                    uuid: entry.subscription.characteristic,
                    service: ServiceIdentifier(uuid: entry.subscription.service))
            }
        } ?? []
    }

    /// It is not taken up again. One that has been meanwhile stays.
    package func forgetRestoredSubscription(to characteristic: CharacteristicIdentifier) {
        guard let uuid = characteristic.uuid, let service = characteristic.service.uuid else { return }
        session.decide { core in
            _ = core.state.updateDealing(with: key) { state in
                state.restored.removeAll {
                    $0.subscription.characteristic == uuid && $0.subscription.service == service
                }
            }
            return []
        }
        session.loop.perform { [session] in session.keepSoon() }
    }
}
