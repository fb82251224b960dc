public import Dispatch
package import Foundation
public import Futures
public import GATT
import Reactor

/// The central role: finds peripherals, and is where their connections live.
///
/// ```swift
/// let manager = CentralManager()
/// manager.whenStateChanges().flatMap { state -> FutureStream<Peripheral> in
///     guard state == .poweredOn else { throw CentralManagerError.isPoweredOff }
///     return manager.startScanning()
/// }.onSuccess { peripheral in
///     print(peripheral.name, peripheral.RSSI)
/// }
/// ```
///
/// A manager is safe to use from any thread. Its getters answer at once from what is known. Managers of one process
/// that use one bus share its connection and one discovery session per adapter. When the manager is deallocated its
/// scan ends, the links that it opened are ended (``CentralManagerOptionKeepsLinksKey`` says otherwise), and BlueZ is left
/// as it was found. A process that exits or is killed with its manager alive leaves its links up: BlueZ ends the process's
/// scan and subscriptions, and no link.
///
/// Closures given to its futures run on their own `context`; with `ImmediateContext` they run on the thread that talks
/// to the bus (or on `queue`, where one was given): be brief there, and never wait.
public final class CentralManager: Sendable {
    let session: CentralSession

    /// A manager whose promises are completed on the thread that talks to the bus.
    ///
    /// - Parameters:
    ///   - profileManager: the profiles that give services and characteristics their names.
    ///   - options: `CentralManagerOptionBusAddressKey`, `CentralManagerOptionAdapterKey`,
    ///     `CentralManagerOptionMaximumPeripheralsKey`, `CentralManagerOptionKeepsLinksKey`. A wrong value makes each `startScanning` fail with
    ///     `CentralManagerError.invalidOption`; `stateExplanation` names it too.
    public convenience init(profileManager: ProfileManager? = nil, options: [String: Any]? = nil) {
        self.init(on: nil, profileManager: profileManager, options: options)
    }

    /// A manager whose promises are completed on `queue`, as Core Bluetooth's callbacks are: one after the other, in
    /// their order, also where the queue is concurrent.
    public convenience init(
        queue: DispatchQueue, profileManager: ProfileManager? = nil, options: [String: Any]? = nil
    ) {
        self.init(on: queue, profileManager: profileManager, options: options)
    }

    private init(on queue: DispatchQueue?, profileManager: ProfileManager?, options: [String: Any]?) {
        session = CentralSession(queue: queue, profileManager: profileManager, options: ManagerOptions(options))
        session.open()
        session.beginRestoration()
    }

    deinit { session.close() }

    // MARK: State

    /// Whether Bluetooth can be used now.
    public var state: ManagerState { session.managerState }

    /// Whether the adapter is on.
    public var poweredOn: Bool { state == .poweredOn }

    /// Whether the adapter is there and off.
    public var poweredOff: Bool { state == .poweredOff }

    /// Why the state is what it is, and what can be done about it, in one sentence.
    public var stateExplanation: String { session.standing.explanation }

    /// The state and its explanation, both of one moment.
    package var standing: (state: ManagerState, explanation: String) { session.standing }

    /// The states of this manager: the present one first, unless it is still `unknown`, then each change.
    ///
    /// Every call returns the same stream, which keeps the newest state alone; any number of handlers may watch it.
    /// It never fails, and it ends with the manager and with ``invalidate()``.
    public func whenStateChanges() -> FutureStream<ManagerState> { session.stateStream }

    /// What BlueZ and the adapter in use can do, as far as is known now; ``BluetoothCapabilities`` says when that is all.
    public var capabilities: BluetoothCapabilities { session.capabilities }

    /// The values of ``capabilities``: the present one first, unless nothing is known yet, then each change.
    ///
    /// Every call returns the same stream, which keeps the newest value alone. It never fails, and it ends with the manager
    /// and with ``invalidate()``.
    public func whenCapabilitiesChange() -> FutureStream<BluetoothCapabilities> { session.capabilityStream }

    // MARK: Peripherals

    /// The discovered peripherals that are still about, in the order of their discovery.
    public var peripherals: [Peripheral] {
        session.core.withLock { core in
            core.state.peripherals.listed { $0.discoveredAt }.sorted { $0.part < $1.part }
                .compactMap { core.handles[$0.key] }
        }
    }

    /// Ends every connection that this manager has or attempts; each peripheral's stream reports `.forceDisconnect`.
    public func disconnectAllPeripherals() {
        _ = session.decideIfOpen { core in
            for key in core.state.keysWithState {
                core.state.peripheral(key, into: &core.shell.orders) { $0.disconnectIfInUse(into: &$1) }
            }
        }
    }

    /// The profiles that give services and characteristics their names.
    public var profileManager: ProfileManager? { session.profileManager }

    /// Peripherals that fell silent while this manager scanned.
    ///
    /// A peripheral expires when BlueZ has not received it for 30 seconds or, if that is longer, four times the interval
    /// between its sightings; or when BlueZ drops it. It leaves `peripherals`, and is discovered again when BlueZ receives it again. Every call returns the same stream, which keeps nothing: it is for observers.
    public func whenPeripheralsExpire() -> FutureStream<Peripheral> { session.streams.expiries.stream }

    /// Starts again: ends the scan, announces the state again, and requests everything from `bluetoothd` again. Connections,
    /// subscriptions and whatever is under way on them stay.
    ///
    /// Nothing needs this for coming back after `resetting`, which happens by itself.
    public func reset() { session.reset() }
}

/// The manager's clock for modules above this one, so that what they time stands still where a test holds the time.
extension CentralManager {
    /// Does the work once, on the thread that talks to the bus, that many seconds from now; at once where that is not
    /// more than zero.
    package func timer(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> ManagerTimer {
        // A century is as good as infinity, and the loop can add it to its time.
        let seconds = seconds > 0 ? min(seconds, 3e9) : 0
        let loop = session.loop
        let timer = loop.schedule(after: seconds, work)
        return ManagerTimer { loop.cancel(timer) }
    }
}

/// Something that a manager's clock is going to do.
package struct ManagerTimer: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    /// Nothing more comes of it, unless it is being done at this moment.
    package func cancel() { end() }
}
