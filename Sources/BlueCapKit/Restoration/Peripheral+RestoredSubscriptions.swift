import Futures
import Reactor

/// Subscriptions of an earlier run that have not been taken up again so far, for those who ask their users about each.
extension Peripheral {
    package var restoredSubscriptions: [CharacteristicIdentifier] {
        session.readState(of: key) { state in
            state.restoredSubscriptions.map {
                CharacteristicIdentifier(uuid: $0.characteristic, service: ServiceIdentifier(uuid: $0.service))
            }
        } ?? []
    }

    /// It is not taken up again. One that has been meanwhile stays.
    package func forgetRestoredSubscription(to characteristic: CharacteristicIdentifier) {
        guard let uuid = characteristic.uuid, let service = characteristic.service.uuid else { return }
        session.decide { core in
            core.state.updateState(of: key) { state in
                state.removeRestored { $0.characteristic == uuid && $0.service == service }
            }
        }
        session.loop.perform { [session] in session.keepSoon() }
    }
}
