package import Foundation
import Reactor

/// Services of this process as BlueZ offers them to centrals, from ``BlueZClient/serve(on:delegate:stateChanged:)`` on. They
/// are registered again by themselves whenever daemon, bus or adapter come back.
///
/// Every method may be called on any thread; completions run on the client's loop, once, never inside the call. Releasing
/// this ends it.
package final class ServerApplication: Sendable {
    private let core: ApplicationCore

    fileprivate init(_ core: ApplicationCore) { self.core = core }

    deinit { end() }

    /// Offers these services in the place of those before, in one swap. Attributes that keep their identifier keep their
    /// handle. All subscriptions end: to BlueZ all of it is new.
    ///
    /// After an error that is known to pass BlueZ is asked again for 7.5 seconds, and for half a minute if it had taken the
    /// same before; after any other one `completion` is called at once.
    ///
    /// - Parameter completion: Success when BlueZ has taken these or newer ones, which may be long: it waits for daemon and
    ///   adapter, and for the answer of a daemon that hangs. When BlueZ refuses them it fails with the reason, and the
    ///   services that it had before come back.
    package func update(
        _ services: [ServerService], completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void = { _ in }
    ) {
        core.client.loop.perform { [core] in core.update(services, completion: completion) }
    }

    /// Sends values to all who have subscribed to the characteristic. Each value is sent, also one that equals the last.
    ///
    /// They are sent in their order, but for a value of no bytes where BlueZ has fetched a socket: it goes over the bus, and
    /// may overtake what lies in the socket.
    /// - Parameter completion: Called for each value, in the order of the values. Success when it was handed over, as fast as
    ///   socket or bus take it; where the characteristic only indicates, when a central has confirmed it, and then one value
    ///   goes after the other. It fails with `notConnected` when no central has subscribed or all have left, with
    ///   ``BlueZError/socketClosed`` when `bluetoothd` has closed the socket before it took the value, with `noReply` after 30
    ///   seconds without confirmation, which all fail with that wait behind it, with `invalidArguments` for more than 512 bytes.
    package func notify(
        _ characteristic: ServerAttributeID, _ values: [Data],
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        core.client.loop.perform { [core] in
            for value in values { core.notify(characteristic, value, completion: completion) }
        }
    }

    /// The same for one.
    package func notify(
        _ characteristic: ServerAttributeID, _ value: Data,
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) { notify(characteristic, [value], completion: completion) }

    /// Whether anybody listens to the characteristic. On the loop only.
    package func isSubscribed(_ characteristic: ServerAttributeID) -> Bool {
        core.client.requireLoop()
        return core.isSubscribed(characteristic)
    }

    /// Takes everything back. What waits fails; the delegate is let go of. A second call does nothing.
    ///
    /// - Parameter completion: When BlueZ has confirmed it, or after 5 seconds; later only if BlueZ has not answered the
    ///   registration yet.
    package func end(completion: @escaping @Sendable () -> Void = {}) {
        core.client.loop.perform { [core] in core.end(completion: completion) }
    }
}

extension BlueZClient {
    /// Begins to offer services on an adapter, none at first. Any thread.
    ///
    /// The adapter need not be there. While it is off the services stay registered.
    /// - Parameters:
    ///   - delegate: Is held until the application was ended.
    ///   - stateChanged: Told on the loop at each change, never inside a call.
    package func serve(
        on adapter: ObjectKey, delegate: any ServerDelegate,
        stateChanged: @escaping @Sendable (RegistrationState) -> Void = { _ in }
    ) -> ServerApplication {
        let core = ApplicationCore(client: self, adapter: adapter, delegate: delegate, stateChanged: stateChanged)
        let observation = observe(core)
        loop.perform { core.observation = observation }
        return ServerApplication(core)
    }
}
