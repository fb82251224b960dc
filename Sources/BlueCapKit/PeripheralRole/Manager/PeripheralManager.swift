public import Dispatch
public import Foundation
public import BlueCapFutures
import BlueCapGATT

/// The peripheral role: offers services to centrals, and advertises.
///
/// ```swift
/// let battery = MutableCharacteristic(
///     uuid: CBUUID(string: "2A19"), properties: [.read, .notify], permissions: [.readable], value: Data([80]))
/// let service = MutableService(uuid: "180F")
/// service.characteristics = [battery]
///
/// let manager = PeripheralManager()
/// try await manager.add(service)
/// try await manager.startAdvertising("Sensor", uuids: [service.uuid])
/// try battery.update(UInt8(79))
/// ```
///
/// A manager is safe to use from any thread. Its getters return at once with what is known. When `bluetoothd`, the
/// adapter or its power returns, the manager offers and advertises the same again. When the manager is deallocated,
/// everything is unregistered: keep a reference for as long as the services are needed.
///
/// Closures that are passed to its futures run on their own `context`. With `ImmediateContext` they run on the
/// manager's bus thread, or on `queue` if one was given: such closures must be short and must not wait.
public final class PeripheralManager: Sendable {
    let session: PeripheralManagerSession

    /// Creates a manager.
    ///
    /// - Parameters:
    ///   - queue: The queue on which promises are completed, as Core Bluetooth calls its delegate: one after the other, in
    ///     their order, even if the queue is concurrent. `nil` for the manager's bus thread.
    ///   - configuration: The adapter, the pairing policy and others.
    /// - Throws: `ConfigurationError` if the configuration has an invalid value.
    public convenience init(
        queue: DispatchQueue? = nil, configuration: Configuration
    ) throws(ConfigurationError) {
        try configuration.check()
        self.init(on: queue, (configuration, nil))
    }

    /// Variant of ``init(queue:configuration:)`` with a dictionary, as in the documents.
    ///
    /// - Parameter options: `CBPeripheralManagerOptionRestoreIdentifierKey`. With a wrong value each `add` and
    ///   `startAdvertising` fails with ``PeripheralManagerError/invalidOption(_:)``; ``stateExplanation`` names the value
    ///   too.
    public convenience init(options: [String: Any]? = nil) { self.init(on: nil, Configuration.reading(options)) }

    /// Variant of ``init(queue:configuration:)`` with a dictionary, as in the documents.
    public convenience init(queue: DispatchQueue, options: [String: Any]? = nil) {
        self.init(on: queue, Configuration.reading(options))
    }

    /// Creates a manager with the options of a dictionary, and with those of a configuration where the dictionary has none.
    /// What is invalid makes each `add` and `startAdvertising` fail.
    package convenience init(queue: DispatchQueue?, options: [String: Any]?, over configuration: Configuration) {
        self.init(on: queue, Configuration.reading(options, over: configuration))
    }

    private init(on queue: DispatchQueue?, _ configuration: (Configuration, problem: String?)) {
        session = PeripheralManagerSession(queue: queue, configuration)
        session.open()
        session.beginPairing()
        session.beginRestoration()
    }

    deinit { session.close() }

    /// The time limit of `add`, `startAdvertising` and `advertisingLimits` for calls without a `timeout`: 10 seconds.
    public static let defaultTimeout: Duration = .seconds(10)

    // MARK: State

    /// Whether Bluetooth can be used now.
    public var state: ManagerState { session.managerState }

    /// Whether the adapter is on, and this manager can be used.
    public var isPoweredOn: Bool { state == .poweredOn }

    /// Variant of ``isPoweredOn``, as in the documents.
    public var poweredOn: Bool { isPoweredOn }

    /// Whether the adapter is present and off.
    public var poweredOff: Bool { state == .poweredOff }

    /// Why the state is what it is, and what to do about it, in one sentence.
    public var stateExplanation: String { session.standing.explanation }

    /// The state and its explanation at the same moment, so that the explanation always belongs to the state.
    package var standing: (state: ManagerState, explanation: String) { session.standing }

    /// The states of this manager, as ``CentralManager/whenStateChanges()``.
    public func whenStateChanges() -> FutureStream<ManagerState> { session.stateStream }

    /// Waits until the adapter is on and this manager can be used, as ``CentralManager/waitUntilPoweredOn(timeout:)`` does, with
    /// the same errors; returns at once if it is.
    /// - Parameter timeout: The longest time to wait; `nil` for as long as it takes.
    public func waitUntilPoweredOn(timeout: Duration? = nil) async throws {
        try await session.waitUntilPoweredOn(timeout: timeout.seconds)
    }

    /// Variant of ``waitUntilPoweredOn(timeout:)`` with a number of seconds.
    public func poweredOn(timeout: TimeInterval = .infinity) async throws {
        try await session.waitUntilPoweredOn(timeout: timeout)
    }

    /// What BlueZ and the adapter in use can do, as far as is known now; ``BluetoothCapabilities`` describes when the
    /// value is complete.
    public var capabilities: BluetoothCapabilities { session.capabilities }

    /// The thread of the bus as an executor, as ``CentralManager/executor``: for tasks and actors that send many updates or
    /// answer many requests.
    public var executor: any TaskExecutor & SerialExecutor { session.executor }

    /// The values of ``capabilities``, as ``CentralManager/whenCapabilitiesChange()``.
    public func whenCapabilitiesChange() -> FutureStream<BluetoothCapabilities> { session.capabilityStream }

    /// What this manager has done since it was created: a copy of the present numbers, which can be compared and encoded.
    /// It may be read on any thread.
    public var statistics: PeripheralManagerStatistics { session.statistics }

    /// Starts over: removes all services, ends all advertisements, and reads all of `bluetoothd`'s objects again, so
    /// that ``whenStateChanges()`` yields every state again.
    ///
    /// It is not needed to return from `resetting`: the manager returns automatically, with everything that it offers.
    public func reset() { session.reset() }

    // MARK: Centrals

    /// The centrals that are connected to the adapter, in the order in which they connected.
    ///
    /// BlueZ reports which devices are connected, and not which side began: the list includes devices to which this
    /// machine has connected.
    public var centrals: [Central] { session.centrals }

    /// The list of ``centrals`` at each change: when a central connects, disconnects, pairs or receives another address,
    /// and when `bluetoothd` or the adapter leaves.
    ///
    /// Every call returns the same stream, which keeps only the newest list. It never fails, and it ends with the
    /// manager.
    public func whenCentralsChange() -> FutureStream<[Central]> { session.centralPromise.stream }
}
