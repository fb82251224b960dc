public import Foundation
public import BlueCapFutures

/// An advertisement of a ``PeripheralManager``, from its start to its end.
///
/// The manager keeps the advertisement: releasing this object does not end it. It is sent again when `bluetoothd`, the
/// adapter or its power returns.
public final class RunningAdvertisement: Sendable {
    private struct Core {
        var data: AdvertisingData
        /// What the adapter can advertise; `nil` until BlueZ has reported it.
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

    /// The data that are advertised.
    public var data: AdvertisingData { core.withLock { $0.data } }

    /// The parts of the data that BlueZ ignores; usually none.
    public var notes: [AdvertisingNote] { core.withLock { $0.limits?.notes(on: $0.data) ?? [] } }

    /// Whether the advertisement is being sent now, according to BlueZ.
    public var isOnAir: Bool { session.isRegistered(number) }

    /// Replaces the advertised data, with a short gap.
    ///
    /// - Throws: As `AdvertisingData.check(_:)` with the limits of the adapter. If BlueZ refuses the new data later,
    ///   the advertisement ends: see ``whenEnded()``.
    public func change(to data: AdvertisingData) throws(PeripheralManagerError) {
        if let limits = core.withLock({ $0.limits }) { try data.check(limits) } else { try data.checkForAny() }
        core.withLock { $0.data = data }
        session.changed(number, to: data)
    }

    /// Variant of ``stop(timeout:)-(Duration?)`` that returns a future.
    ///
    /// - Parameter timeout: The time limit in seconds; `.infinity` sets none.
    @discardableResult
    public func stop(timeout: TimeInterval = 10.0) -> Future<Void> { session.stopAdvertising(number, timeout: timeout) }

    /// Variant of ``whenEnded()->AdvertisingEnd`` that returns a future.
    public func whenEnded() -> Future<AdvertisingEnd> { endPromise.future }

    func learn(_ limits: AdvertisingLimits) { core.withLock { $0.limits = limits } }
}

extension RunningAdvertisement: Hashable {
    public static func == (left: RunningAdvertisement, right: RunningAdvertisement) -> Bool { left === right }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
