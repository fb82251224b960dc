public import Foundation
public import Futures

/// An advertisement of a ``PeripheralManager``, from its start to its end.
///
/// The manager keeps it: releasing this ends nothing. It is sent again when `bluetoothd`, the adapter or its power
/// returns.
public final class RunningAdvertisement: Sendable {
    private struct Core {
        var data: AdvertisingData
        /// What the adapter can do, once BlueZ has said so.
        var limits: AdvertisingLimits?
    }

    private let session: PeripheralManagerSession
    private let number: PeripheralManagerState.Number
    private let core: Locked<Core>
    let endPromise = Promise<AdvertisingEnd>()

    init(session: PeripheralManagerSession, number: PeripheralManagerState.Number, data: AdvertisingData) {
        self.session = session
        self.number = number
        core = Locked(Core(data: data))
    }

    /// What is advertised.
    public var data: AdvertisingData { core.withLock { $0.data } }

    /// What of that BlueZ ignores; usually nothing.
    public var notes: [AdvertisingNote] { core.withLock { $0.limits?.notes(on: $0.data) ?? [] } }

    /// Whether it is being sent at the moment, as far as BlueZ says.
    public var isOnAir: Bool { session.isOnAir(number) }

    /// Advertises something else in its place, with a short gap.
    ///
    /// - Throws: As `AdvertisingData.check(_:)` with what the adapter can do. What BlueZ then refuses ends it: see ``whenEnded()``.
    public func change(to data: AdvertisingData) throws {
        if let limits = core.withLock({ $0.limits }) { try data.check(limits) } else { try data.checkForAny() }
        core.withLock { $0.data = data }
        session.changed(number, to: data)
    }

    /// Ends it.
    ///
    /// - Parameter timeout: In seconds.
    /// - Returns: Succeeds when BlueZ has confirmed it, or it had ended; fails with
    ///   ``PeripheralManagerError/stopAdvertisingTimeout`` if that takes longer.
    @discardableResult
    public func stop(timeout: TimeInterval = 10.0) -> Future<Void> { session.stopAdvertising(number, timeout: timeout) }

    /// Completes with how it has ended.
    public func whenEnded() -> Future<AdvertisingEnd> { endPromise.future }

    func learn(_ limits: AdvertisingLimits) { core.withLock { $0.limits = limits } }
}

extension RunningAdvertisement: Hashable {
    public static func == (left: RunningAdvertisement, right: RunningAdvertisement) -> Bool { left === right }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
