import Foundation
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

    /// Sends values to the subscribers of a characteristic, or to some of them: see ``UpdateSender``. Each value is sent, also
    /// one that equals the last. Each subscriber receives those that are for it in the order of the calls.
    ///
    /// - Parameter completion: Called for each value, in the order of the values. Success when the bus or the sockets have taken
    ///   it; of a characteristic that only indicates, when as many confirmations have come as subscribers have a socket and a
    ///   link, one value after the other. Where none has a socket, and up to 5.68, that is the first confirmation; after 30
    ///   seconds one is enough as well. From 5.76 to 5.79 BlueZ does not report the confirmation of what was written to a
    ///   socket: that succeeds when it was taken.
    ///
    ///   It fails with `notConnected` when no central is subscribed or all have left, with ``BlueZError/centralUnreachable`` if
    ///   of the centrals that it is for none has an open socket or BlueZ cannot send to one central, with `noReply` after 30
    ///   seconds without confirmation, as all do that wait behind it, with `invalidArguments` for more than 512 bytes, and
    ///   for none to some subscribers.
    package func notify(
        _ characteristic: ServerAttributeID, _ updates: [ServerUpdate],
        completion: @escaping @Sendable (Result<Void, BlueZError>) -> Void
    ) {
        core.client.loop.perform { [core] in
            for update in updates { core.notify(characteristic, update, completion: completion) }
        }
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
