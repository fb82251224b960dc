public import Dispatch
public import Foundation
public import Futures

/// The peripheral role: offers services to centrals, and advertises.
///
/// ```swift
/// let battery = MutableCharacteristic(
///     uuid: CBUUID(string: "2A19"), properties: [.read, .notify], permissions: [.readable], value: Data([80]))
/// let service = MutableService(uuid: "180F")
/// service.characteristics = [battery]
///
/// let manager = PeripheralManager()
/// manager.whenStateChanges().flatMap { state -> Future<Void> in
///     guard state == .poweredOn else { throw PeripheralManagerError.notPoweredOn(state) }
///     return manager.add(service)
/// }.flatMap {
///     manager.startAdvertising("Sensor", uuids: [service.uuid])
/// }.onSuccess {
///     try? battery.update(withData: Data([79]))
/// }
/// ```
///
/// A manager is safe to use from any thread. Its getters answer at once from what is known. What it offers and advertises
/// comes back by itself when `bluetoothd`, the adapter or its power do. When the manager is deallocated it is taken back:
/// keep a reference for as long as it is to serve.
///
/// Closures given to its futures run on their own `context`; with `ImmediateContext` they run on the thread that talks
/// to the bus (or on `queue`, where one was given): be brief there, and never wait.
public final class PeripheralManager: Sendable {
    let session: PeripheralManagerSession

    /// A manager whose promises are completed on the thread that talks to the bus.
    ///
    /// - Parameter options: `PeripheralManagerOptionBusAddressKey`, `PeripheralManagerOptionAdapterKey`,
    ///   `CBPeripheralManagerOptionRestoreIdentifierKey`, `PeripheralManagerOptionStateDirectoryKey`. A wrong value makes
    ///   each `add` and `startAdvertising` fail with ``PeripheralManagerError/invalidOption(_:)``; ``stateExplanation``
    ///   names it too.
    public convenience init(options: [String: Any]? = nil) { self.init(on: nil, options: options) }

    /// A manager whose promises are completed on `queue`, as Core Bluetooth's callbacks are: one after the other, in
    /// their order, also where the queue is concurrent.
    public convenience init(queue: DispatchQueue, options: [String: Any]? = nil) {
        self.init(on: queue, options: options)
    }

    private init(on queue: DispatchQueue?, options: [String: Any]?) {
        session = PeripheralManagerSession(queue: queue, options: PeripheralManagerOptions(options))
        session.open()
        session.beginRestoration()
    }

    deinit { session.close() }

    /// The time-out of `add` and `startAdvertising` unless a call is given another one: 10 seconds.
    public static let defaultTimeout: TimeInterval = 10

    // MARK: State

    /// Whether Bluetooth can be used now.
    public var state: ManagerState { session.managerState }

    /// Whether the adapter is on.
    public var poweredOn: Bool { state == .poweredOn }

    /// Whether the adapter is there and off.
    public var poweredOff: Bool { state == .poweredOff }

    /// Why the state is what it is, and what can be done about it, in one sentence.
    public var stateExplanation: String { session.standing.explanation }

    /// The state, and why it is that: both of one moment, so that no sentence of a state that has passed is told of another.
    package var standing: (state: ManagerState, explanation: String) { session.standing }

    /// The states of this manager: the present one first, unless it is still `unknown`, then each change.
    ///
    /// Every call answers the same stream, which keeps the newest state alone; any number of handlers may watch it.
    /// It never fails, and it ends with the manager.
    public func whenStateChanges() -> FutureStream<ManagerState> { session.stateStream }

    /// What BlueZ and the adapter in use can do, as far as is known now; ``BluetoothCapabilities`` says when that is all.
    public var capabilities: BluetoothCapabilities { session.capabilities }

    /// The values of ``capabilities``: the present one first, unless nothing is known yet, then each change.
    ///
    /// Every call answers the same stream, which keeps the newest value alone. It never fails, and it ends with the manager.
    public func whenCapabilitiesChange() -> FutureStream<BluetoothCapabilities> { session.capabilityStream }

    /// Starts over: removes all services, ends all advertisements, and asks `bluetoothd` anew for everything, so that
    /// ``whenStateChanges()`` tells every state again.
    ///
    /// Nothing needs this for coming back after `resetting`, which happens by itself, with all that is offered.
    public func reset() { session.reset() }

    // MARK: Centrals

    /// Who is connected to the adapter, in the order in which they came.
    ///
    /// BlueZ tells who is connected, and not who began it: what this machine has connected to by itself is among them.
    public var centrals: [Central] { session.centrals }

    /// The same, each time that it changes: when one comes or goes, and when `bluetoothd` or the adapter goes.
    ///
    /// Every call answers the same stream, which keeps the newest list alone. It never fails, and it ends with the manager.
    public func whenCentralsChange() -> FutureStream<[Central]> { session.centralStream }
}
