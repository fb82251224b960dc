import DBus
import Reactor

/// An advertisement of this process, from ``BlueZClient/advertise(_:on:stateChanged:)`` on. It is registered again
/// whenever daemon, bus, adapter or power return.
///
/// Every method may be called on any thread. Releasing this ends it.
package final class Advertising: Sendable {
    private let registration: Registration<AdvertisementContent>

    fileprivate init(_ registration: Registration<AdvertisementContent>) { self.registration = registration }

    deinit { end() }

    /// Advertises something else in its place, with a short gap. Nothing happens if it is the same.
    package func change(to data: AdvertisementData) {
        registration.client.loop.perform { [registration] in registration.update(data) }
    }

    /// Ends it. Its last state is `.idle`. A second call does nothing.
    ///
    /// - Parameter completion: On the client's loop, never inside the call: when BlueZ has confirmed it, or after 20 seconds.
    package func end(completion: @escaping @Sendable () -> Void = {}) {
        registration.client.loop.perform { [registration] in registration.end(completion: completion) }
    }
}

extension BlueZClient {
    /// Advertises on an adapter, as soon as it is there and on. Any thread.
    ///
    /// What BlueZ refuses the first time is not tried again until the adapter or the daemon has changed, with two
    /// exceptions: after an error that is known to pass it is tried for 7.5 seconds, and after
    /// `org.bluez.Error.Failed`, which names no reason, for a second and a half. What BlueZ has registered before is
    /// tried for half a minute.
    /// - Parameter stateChanged: Called on the loop at each change, never inside a call.
    package func advertise(
        _ data: AdvertisementData, on adapter: ObjectKey,
        stateChanged: @escaping @Sendable (RegistrationState) -> Void
    ) -> Advertising {
        let content = AdvertisementContent(data, client: self)
        let registration = Registration(content, on: adapter, client: self, stateChanged: stateChanged)
        loop.perform { content.registration = registration }
        registration.begin()
        return Advertising(registration)
    }

    /// Asks what an adapter can advertise. Any thread; `completion` runs on the loop. It fails with `unknownObject` if
    /// the adapter or its `LEAdvertisingManager1` is not there.
    /// - Parameter timeout: In seconds, up to a day.
    package func advertisingCapabilities(
        of adapter: ObjectKey, timeout: Double = DaemonLink.defaultTimeout,
        completion: @escaping BlueZCompletion<AdvertisingCapabilities>
    ) {
        loop.perform { [self] in
            daemon.call(
                adapter, interface: BlueZName.properties, member: "GetAll", timeout: timeout,
                body: { $0.string(AdvertisementContent.manager) },
                completion: { completion($0.map(AdvertisingCapabilities.init)) })
        }
    }
}

/// An advertisement as the object that BlueZ reads.
///
/// On the client's loop, and unchecked because of that.
final class AdvertisementContent: RegisteredContent, @unchecked Sendable {
    typealias Generation = RegistrationMachine.Generation

    static let rules = RegistrationMachine.Rules.advertisement
    static let manager = "org.bluez.LEAdvertisingManager1"
    static let noun = "Advertisement"
    /// Longer than callers wait for the end.
    static let lastTimeout = 20.0

    let first: AdvertisementData?
    private(set) var data: AdvertisementData
    private let client: BlueZClient
    private let path: ObjectPath
    fileprivate(set) weak var registration: Registration<AdvertisementContent>?

    init(_ data: AdvertisementData, client: BlueZClient) {
        first = data
        self.data = data
        self.client = client
        path = ObjectPath.root.appending("org").appending("bluecap").appending("advertisement\(client.makeID())")
    }

    func isLimited(_ data: AdvertisementData) -> Bool { data.timeout != nil }
    func path(of generation: Generation) -> ObjectPath { path }

    func obstacle(on adapter: Adapter1) -> RegistrationState.Obstacle? {
        guard adapter.interfaces.contains(.advertisingManager) else { return .support }
        return adapter.isPowered ? nil : .power
    }

    func export(_ data: AdvertisementData, _ generation: Generation) -> Bool {
        self.data = data
        client.daemon.connection?.export(ExportedObject(path, [AdvertisementTable.table.bound(to: self)]))
        return false
    }

    /// The object stays until the end: BlueZ may still call it.
    func withdraw(_ generation: Generation?) {}

    func ended() { client.daemon.connection?.unexport(path) }

    func releaseCalled(_ invocation: Invocation) {
        guard client.daemon.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
        invocation.reply()
        registration?.released()
    }
}
