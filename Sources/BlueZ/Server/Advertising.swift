import DBus
import Reactor

/// An advertisement of this process, from ``BlueZClient/advertise(_:on:handler:)`` on. It is registered again by itself
/// whenever daemon, bus, adapter or power come back.
///
/// Every method may be called on any thread. Releasing this ends it.
package final class Advertising: Sendable {
    private let core: AdvertisingCore

    fileprivate init(_ core: AdvertisingCore) { self.core = core }

    deinit { end() }

    /// Advertises something else in its place, with a short gap. Nothing happens where it is the same.
    package func change(to data: AdvertisementData) {
        core.client.loop.perform { [core] in core.change(to: data) }
    }

    /// Ends it. The handler hears `.idle`, and nothing after that. A second call does nothing.
    ///
    /// - Parameter completion: On the client's loop, never inside the call: when BlueZ has confirmed it, or after 20 seconds.
    package func end(completion: @escaping @Sendable () -> Void = {}) {
        core.client.loop.perform { [core] in core.end(completion: completion) }
    }
}

extension BlueZClient {
    /// Advertises on an adapter, as soon as it is there and on. Any thread.
    ///
    /// What BlueZ refuses the first time is not tried again until the adapter or the daemon has changed, with two exceptions:
    /// after an error that is known to pass it is tried for 7.5 seconds, and after `org.bluez.Error.Failed`, which names no
    /// reason, for a second and a half. What BlueZ had taken before is tried for half a minute.
    /// - Parameter handler: Told on the loop what becomes of it, never inside a call.
    package func advertise(
        _ data: AdvertisementData, on adapter: ObjectKey, handler: @escaping @Sendable (AdvertisingEvent) -> Void
    ) -> Advertising {
        let core = AdvertisingCore(client: self, adapter: adapter, data: data, handler: handler)
        let observation = observe(core)
        loop.perform { core.observation = observation }
        return Advertising(core)
    }

    /// Asks what an adapter can advertise. Any thread; `completion` runs on the loop. It fails with `unknownObject` where
    /// the adapter or its `LEAdvertisingManager1` is not there.
    /// - Parameter timeout: In seconds, up to a day.
    package func advertisingCapabilities(
        of adapter: ObjectKey, timeout: Double = DaemonLink.defaultTimeout,
        completion: @escaping @Sendable (Result<AdvertisingCapabilities, BlueZError>) -> Void
    ) {
        loop.perform { [self] in
            daemon.call(
                adapter, interface: BlueZName.properties, member: "GetAll", timeout: timeout,
                body: { $0.string(AdvertisingCore.manager) },
                completion: { completion($0.map(AdvertisingCapabilities.init)) })
        }
    }
}

extension AdvertisingCapabilities {
    /// The powers of the controller, in dBm; `nil` if BlueZ does not report them.
    package var powers: ClosedRange<Int>? {
        guard let least = minTxPower, let most = maxTxPower, least <= most else { return nil }
        return least...most
    }

    init(_ reply: Message) {
        var reader = reply.reader
        self.init()
        take(&reader)
    }

    /// Takes over properties of `LEAdvertisingManager1`: the reader stands at an `a{sv}`.
    mutating func take(_ reader: inout MessageReader) {
        var capabilities = self
        reader.dictionary { entry in
            guard let name = entry.string() else { return }
            _ = entry.variant { capabilities.take(name, &$0) }
        }
        self = capabilities
    }

    private mutating func take(_ name: String, _ value: inout MessageReader) {
        switch name {
        case "ActiveInstances": activeInstances = value.byte().map(Int.init)
        case "SupportedInstances": supportedInstances = value.byte().map(Int.init)
        case "SupportedIncludes": supportedIncludes = value.strings()
        case "SupportedSecondaryChannels": supportedSecondaryChannels = value.strings()
        case "SupportedFeatures": supportedFeatures = value.strings()
        case "SupportedCapabilities": takeLimits(&value)
        default: break
        }
    }

    private mutating func takeLimits(_ reader: inout MessageReader) {
        var limits = self
        reader.dictionary { entry in
            guard let name = entry.string() else { return }
            _ = entry.variant { value in
                switch name {
                case "MaxAdvLen": limits.maxAdvertisementLength = value.byte().map(Int.init)
                case "MaxScnRspLen": limits.maxScanResponseLength = value.byte().map(Int.init)
                case "MinTxPower": limits.minTxPower = value.int16().map(Int.init)
                case "MaxTxPower": limits.maxTxPower = value.int16().map(Int.init)
                default: break
                }
            }
        }
        self = limits
    }
}
