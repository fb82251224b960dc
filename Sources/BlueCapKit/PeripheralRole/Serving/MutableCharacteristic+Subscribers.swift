import BlueZ
import Foundation
public import Futures
public import GATT
import Reactor

extension MutableCharacteristic {
    /// The centrals that have subscribed, as far as BlueZ tells.
    ///
    /// BlueZ up to 5.68 names the first of them, and only where updates go over a socket; later ones name each. Where it
    /// says that there is somebody and not who, there is one ``Central`` here that is ``Central/isAnonymous``. So the list is
    /// empty when nobody has subscribed, and only then.
    public var subscribers: [any CBCentralInjectable] { core.withLock { $0.subscribers.map(\.central) } }

    /// Whether anybody has subscribed.
    public var hasSubscribers: Bool { core.withLock { !$0.subscribers.isEmpty } }

    /// The subscribers, each time that what BlueZ tells of them changes: when the first one comes, when the last one goes,
    /// when `bluetoothd` ends, and with those that it names.
    ///
    /// It begins with those who are there already. Every call answers the same stream, which keeps the newest list alone. It
    /// ends when the service is removed.
    public func whenSubscribersChange() -> FutureStream<[any CBCentralInjectable]> {
        let made = StreamPromise<[any CBCentralInjectable]>(capacity: 1)
        let (promise, session) = core.withLock { core in
            let promise = core.subscriberPromise ?? made
            core.subscriberPromise = promise
            return (promise, core.session)
        }
        if promise === made, let session { session.loop.post { self.tellSubscribers(promise, session) } }
        return promise.stream
    }

    private func tellSubscribers(
        _ promise: StreamPromise<[any CBCentralInjectable]>, _ session: PeripheralManagerSession
    ) {
        let subscribers = core.withLock { $0.subscribers.map(\.central) }
        if !subscribers.isEmpty { session.complete { promise.success(subscribers) } }
    }

    // MARK: What happens; on the loop

    func subscribersChanged(to subscribers: [Subscriber], _ session: PeripheralManagerSession) {
        let (promise, mustSend, released, finished) = core.withLock { core in
            let released = (core.subscribers, subscribers.isEmpty ? core.updates.unsubscribed() : [])
            let hasChanged = core.subscribers.map(\.central) != subscribers.map(\.central)
            core.subscribers = subscribers
            if !subscribers.isEmpty { core.updates.subscribed() }
            return (
                hasChanged ? core.subscriberPromise : nil, core.updates.mustWake(), released, core.takeFinished()
            )
        }
        withExtendedLifetime(released) {}
        finish(finished, session)
        if let promise {
            let centrals = subscribers.map(\.central)
            session.complete { promise.success(centrals) }
        }
        if mustSend { send(through: session) }
    }
}
