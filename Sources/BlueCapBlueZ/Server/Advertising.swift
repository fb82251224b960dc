import BlueCapDBus
import BlueCapReactor

/// An advertisement of this process, as the object that BlueZ reads.
///
/// What BlueZ refuses the first time is not tried again until the adapter or the daemon has changed, with two exceptions:
/// after an error that is known to pass it is tried for 7.5 seconds, and after `org.bluez.Error.Failed`, which names no
/// reason, for a second and a half. What BlueZ has registered before is tried for half a minute.
package final class Advertising: Registration, DaemonCallee, @unchecked Sendable {
    private(set) var data: AdvertisementData
    var daemon: DaemonLink { client.daemon }

    package init(
        _ data: AdvertisementData, on adapter: ObjectKey, client: BlueZClient,
        stateChanged: @escaping @Sendable (RegistrationState) -> Void
    ) {
        self.data = data
        super.init(.advertisement, on: adapter, client: client, stateChanged: stateChanged)
    }

    /// Advertises something else in its place, with a short gap. Nothing happens if it is the same. Any thread.
    package func change(to data: AdvertisementData) {
        client.loop.perform { [self] in
            guard data != self.data else { return }
            self.data = data
            changed()
        }
    }

    override var isLimited: Bool { data.timeout != nil }

    override func obstacle(on adapter: Adapter1) -> RegistrationState.Obstacle? {
        guard adapter.interfaces.contains(.advertisingManager) else { return .support }
        return adapter.isPowered ? nil : .power
    }

    override func export() -> Bool {
        client.daemon.connection?.export(ExportedObject(path, [AdvertisementTable.table.bound(to: self)]))
        return false
    }

    /// The object stays until the end: BlueZ may still call it.
    override func ended() { client.daemon.connection?.unexport(path) }

    func releaseCalled(_ invocation: Invocation) {
        invocation.reply()
        released()
    }
}

extension BlueZClient {
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
                body: { $0.string(RegistrationMachine.Rules.advertisement.manager) },
                completion: { completion($0.map(AdvertisingCapabilities.init)) })
        }
    }
}
