public import Dispatch
public import Foundation
public import BlueCapFutures
public import BlueCapGATT
import BlueCapReactor

/// The central role: discovers peripherals, and manages their connections.
///
/// ```swift
/// let manager = CentralManager()
/// try await manager.waitUntilPoweredOn(timeout: .seconds(10))
/// for try await peripheral in manager.startScanning(timeout: .seconds(30)) { print(peripheral.name) }
/// ```
///
/// A manager is safe to use from any thread. Its properties return at once, from what the manager already knows.
/// Managers of one process that use the same bus share one D-Bus connection, and one discovery session per adapter.
///
/// When the manager is deallocated, its scan ends and the links that it opened are ended, unless
/// ``Configuration/keepsLinks`` is set. BlueZ is then in the state in which the manager found it. If a process
/// exits or is killed before its manager is deallocated, BlueZ ends the process's scan and subscriptions, and leaves
/// its links connected.
///
/// Closures that are passed to its futures run in their own `context`. With `ImmediateContext` they run on the thread
/// that communicates with the bus, or on the manager's `queue` if it was created with one. Return quickly from such
/// closures, and never block in them.
public final class CentralManager: Sendable {
    let session: CentralSession

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - queue: The queue on which promises are completed, as Core Bluetooth's callbacks are: one at a time and in order,
    ///     even if the queue is concurrent. `nil` for the thread that communicates with the bus.
    ///   - profileManager: The profiles that give services and characteristics their names.
    ///   - configuration: The adapter, the pairing policy and others.
    /// - Throws: `ConfigurationError` if the configuration has an invalid value.
    public convenience init(
        queue: DispatchQueue? = nil, profileManager: ProfileManager? = nil, configuration: Configuration
    ) throws(ConfigurationError) {
        try configuration.check()
        self.init(on: queue, profileManager, (configuration, nil))
    }

    /// Variant of ``init(queue:profileManager:configuration:)`` with a dictionary, as in the documents.
    ///
    /// - Parameters:
    ///   - profileManager: The profiles that give services and characteristics their names.
    ///   - options: `CBCentralManagerOptionRestoreIdentifierKey`. An invalid value makes each `startScanning` fail with
    ///     `CentralManagerError.invalidOption`; `stateExplanation` names it too.
    public convenience init(profileManager: ProfileManager? = nil, options: [String: Any]? = nil) {
        self.init(on: nil, profileManager, Configuration.reading(options))
    }

    /// Variant of ``init(queue:profileManager:configuration:)`` with a dictionary, as in the documents.
    public convenience init(
        queue: DispatchQueue, profileManager: ProfileManager? = nil, options: [String: Any]? = nil
    ) {
        self.init(on: queue, profileManager, Configuration.reading(options))
    }

    /// Creates a manager with the options of a dictionary, and with those of a configuration where the dictionary has none.
    /// What is invalid makes each `startScanning` fail.
    package convenience init(queue: DispatchQueue?, options: [String: Any]?, over configuration: Configuration) {
        self.init(on: queue, nil, Configuration.reading(options, over: configuration))
    }

    init(
        on queue: DispatchQueue?, _ profileManager: ProfileManager?, _ configuration: (Configuration, problem: String?)
    ) {
        session = CentralSession(queue: queue, profileManager: profileManager, configuration)
        session.open()
        session.beginPairing()
        session.beginRestoration()
    }

    deinit { session.close() }

    // MARK: State

    /// Whether Bluetooth can be used now.
    public var state: ManagerState { session.managerState }

    /// Whether the adapter is on, and this manager can be used.
    public var isPoweredOn: Bool { state == .poweredOn }

    /// Variant of ``isPoweredOn``, as in the documents.
    public var poweredOn: Bool { isPoweredOn }

    /// Whether there is an adapter that is off.
    public var poweredOff: Bool { state == .poweredOff }

    /// The reason for the current state and what can be done about it, in one sentence.
    public var stateExplanation: String { session.standing.explanation }

    /// The state and its explanation, both read at the same moment.
    package var standing: (state: ManagerState, explanation: String) { session.standing }

    /// Returns a stream of the states of this manager: the current one first, unless it is still `unknown`, then each
    /// change.
    ///
    /// Every call returns the same stream, which may have any number of handlers and keeps only the newest state. The
    /// stream never fails. It ends with the manager and with ``invalidate()``.
    public func whenStateChanges() -> FutureStream<ManagerState> { session.stateStream }

    /// Waits until the adapter is on and this manager can be used; returns at once if it is.
    ///
    /// ```swift
    /// try await manager.waitUntilPoweredOn(timeout: .seconds(10))
    /// ```
    ///
    /// If the task is cancelled, the wait ends.
    /// - Parameter timeout: The longest time to wait; `nil` for as long as it takes, also while there is no `bluetoothd`.
    ///   Zero or less does not wait.
    /// - Throws: ``BluetoothUnavailableError`` with the state and its explanation if the time-out passes or the manager
    ///   ends, `CancellationError` if the task is cancelled.
    public func waitUntilPoweredOn(timeout: Duration? = nil) async throws {
        try await session.waitUntilPoweredOn(timeout: timeout.seconds)
    }

    /// Variant of ``waitUntilPoweredOn(timeout:)`` with a number of seconds.
    public func poweredOn(timeout: TimeInterval = .infinity) async throws {
        try await session.waitUntilPoweredOn(timeout: timeout)
    }

    /// What BlueZ and the adapter in use support, as far as it is known; ``BluetoothCapabilities`` says when it is
    /// complete.
    public var capabilities: BluetoothCapabilities { session.capabilities }

    /// Returns a stream of the values of ``capabilities``: the current one first, if any is known, then each change.
    ///
    /// Every call returns the same stream, which keeps only the newest value. The stream never fails. It ends with the
    /// manager and with ``invalidate()``.
    public func whenCapabilitiesChange() -> FutureStream<BluetoothCapabilities> { session.capabilityStream }

    /// What this manager has done since it was created: a copy of the present numbers, which can be compared and encoded.
    /// It may be read on any thread. ``Peripheral/statistics`` has those of one peripheral.
    public var statistics: CentralStatistics {
        let now = session.loop.now
        return session.core.withLock { CentralCounter.statistics(of: $0, at: now) }
    }

    /// The thread of the bus as an executor, for tasks and actors that read and write often.
    ///
    /// A task elsewhere is resumed on a thread that first has to be woken, except the script of ``Peripheral/run(timeout:_:)``, if
    /// there are often replies for such scripts. A task on this executor is always resumed by the thread that has read the reply, and
    /// sends its next call at once:
    ///
    /// ```swift
    /// let level = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
    /// let levels = try await withTaskExecutorPreference(manager.executor) {
    ///     try await peripheral.run(timeout: .seconds(60)) { connected in
    ///         var levels: [Data] = []
    ///         for _ in 0..<1_000 { levels.append(try await connected.read(level)) }
    ///         return levels
    ///     }
    /// }
    /// ```
    ///
    /// An actor runs on it if its `unownedExecutor` is `executor.asUnownedSerialExecutor()`; the actor keeps the executor. All
    /// that arrives from the bus waits while code runs here, for every manager on this bus: compute and block elsewhere.
    /// In a simulator with virtual time the code runs when that time is driven.
    public var executor: any TaskExecutor & SerialExecutor { session.executor }

    // MARK: Peripherals

    /// The discovered peripherals that have not expired, in the order of their discovery.
    public var peripherals: [Peripheral] {
        session.core.withLock { core in
            core.state.peripherals.listed.ordered { $0.discoveredAt < $1.discoveredAt }
                .compactMap { listed in core.state.peripherals[objectOf: listed.key] }
        }
    }

    /// Ends all connections and connection attempts of this manager; each peripheral's stream reports
    /// `.forceDisconnect`.
    public func disconnectAllPeripherals() {
        _ = session.decideIfOpen {
            $0.state.eachPeripheral(into: &$0.shell.orders) { $0.disconnectIfInUse(into: &$1) }
        }
    }

    /// The profiles that give services and characteristics their names.
    public var profileManager: ProfileManager? { session.profileManager }

    /// Returns a stream of the peripherals that expire while this manager scans.
    ///
    /// A peripheral expires if BlueZ has not received it for 30 seconds or, if that is longer, four times the interval
    /// between its sightings. It also expires if BlueZ removes its device. It is then removed from `peripherals`, and
    /// is discovered again when BlueZ receives it again. Every call returns the same stream. It keeps no elements for
    /// handlers that are added later.
    public func whenPeripheralsExpire() -> FutureStream<Peripheral> { session.streams.expiries.stream }

    /// Resets the manager: ends the scan, reports the state again, and requests all objects from `bluetoothd` again.
    ///
    /// Connections, subscriptions and the operations on them continue. It is not needed to recover from `resetting`:
    /// the manager does that automatically.
    public func reset() { session.reset() }
}

/// The manager's clock for modules that depend on this one, so that a test that stops the time also stops their timers.
extension CentralManager {
    /// Executes `work` once after that many seconds, on the thread that communicates with the bus; at once if `seconds`
    /// is not more than zero.
    package func timer(after seconds: TimeInterval, _ work: @escaping @Sendable () -> Void) -> ManagerTimer {
        // About a century is as good as infinity, and the loop can add it to its time.
        let seconds = seconds > 0 ? min(seconds, 3e9) : 0
        let loop = session.loop
        let timer = loop.schedule(after: seconds, work)
        return ManagerTimer { loop.cancel(timer) }
    }
}

/// A timer of a manager's clock.
package struct ManagerTimer: Sendable {
    /// Cancels the timer, unless its work is being executed at this moment.
    package let cancel: @Sendable () -> Void
}
