public import Dispatch
public import Foundation
public import Futures
import GATT

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
/// A manager is safe to use from any thread. Its getters return at once with what is known. When `bluetoothd`, the
/// adapter or its power returns, the manager offers and advertises the same again. When the manager is deallocated,
/// everything is unregistered: keep a reference for as long as the services are needed.
///
/// Closures that are passed to its futures run on their own `context`. With `ImmediateContext` they run on the
/// manager's bus thread, or on `queue` if one was given: such closures must be short and must not wait.
public final class PeripheralManager: Sendable {
    let session: PeripheralManagerSession

    /// Creates a manager that completes promises on its bus thread.
    ///
    /// - Parameter options: `PeripheralManagerOptionBusAddressKey`, `PeripheralManagerOptionAdapterKey`,
    ///   `CBPeripheralManagerOptionRestoreIdentifierKey`, `PeripheralManagerOptionStateDirectoryKey`. With a wrong
    ///   value each `add` and `startAdvertising` fails with ``PeripheralManagerError/invalidOption(_:)``;
    ///   ``stateExplanation`` names the value too.
    public convenience init(options: [String: Any]? = nil) { self.init(on: nil, options: options) }

    /// Creates a manager that completes promises on `queue`, as Core Bluetooth calls its delegate: one after the other,
    /// in their order, even if the queue is concurrent.
    public convenience init(queue: DispatchQueue, options: [String: Any]? = nil) {
        self.init(on: queue, options: options)
    }

    private init(on queue: DispatchQueue?, options: [String: Any]?) {
        session = PeripheralManagerSession(queue: queue, options: ManagerOptions(options))
        session.open()
        session.beginRestoration()
    }

    deinit { session.close() }

    /// The time-out of `add` and `startAdvertising` for calls without a `timeout`: 10 seconds.
    public static let defaultTimeout: TimeInterval = 10

    // MARK: State

    /// Whether Bluetooth can be used now.
    public var state: ManagerState { session.managerState }

    /// Whether the adapter is on.
    public var poweredOn: Bool { state == .poweredOn }

    /// Whether the adapter is present and off.
    public var poweredOff: Bool { state == .poweredOff }

    /// Why the state is what it is, and what to do about it, in one sentence.
    public var stateExplanation: String { session.standing.explanation }

    /// The state and its explanation at the same moment, so that the explanation always belongs to the state.
    package var standing: (state: ManagerState, explanation: String) { session.standing }

    /// The states of this manager: the present one first, unless it is still `unknown`, then each change.
    ///
    /// Every call returns the same stream, which keeps only the newest state; any number of handlers may use it. It
    /// never fails, and it ends with the manager.
    public func whenStateChanges() -> FutureStream<ManagerState> { session.stateStream }

    /// What BlueZ and the adapter in use can do, as far as is known now; ``BluetoothCapabilities`` describes when the
    /// value is complete.
    public var capabilities: BluetoothCapabilities { session.capabilities }

    /// The values of ``capabilities``: the present one first, unless nothing is known yet, then each change.
    ///
    /// Every call returns the same stream, which keeps only the newest value. It never fails, and it ends with the
    /// manager.
    public func whenCapabilitiesChange() -> FutureStream<BluetoothCapabilities> { session.capabilityStream }

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

    /// The list of ``centrals`` at each change: when a central connects or disconnects, and when `bluetoothd` or the
    /// adapter leaves.
    ///
    /// Every call returns the same stream, which keeps only the newest list. It never fails, and it ends with the
    /// manager.
    public func whenCentralsChange() -> FutureStream<[Central]> { session.centralStream }
}

// The options that this library adds to `CBPeripheralManagerOptionRestoreIdentifierKey`. A value of the wrong type fails
// with `PeripheralManagerError.invalidOption`.

/// `PeripheralManager(options:)`: the D-Bus address of the bus to use, a `String`, as
/// ``CentralManagerOptionBusAddressKey``; the system bus without this option.
public let PeripheralManagerOptionBusAddressKey = "PeripheralManagerOptionBusAddressKey"

/// `PeripheralManager(options:)`: the adapter to use, a `String`: a name such as `hci0`, or an address; without this
/// option the adapter with the lowest number. ``CentralManagerOptionAdapterKey`` says what happens if several adapters
/// have one address.
public let PeripheralManagerOptionAdapterKey = "PeripheralManagerOptionAdapterKey"

/// `PeripheralManager(options:)`: the folder in which state is kept, a `String` with an absolute path;
/// `$XDG_STATE_HOME/bluecap` or `~/.local/state/bluecap` without this option.
/// ``CentralManagerOptionStateDirectoryKey`` says to whom the folder must belong. The option has an effect only together
/// with `CBPeripheralManagerOptionRestoreIdentifierKey`.
public let PeripheralManagerOptionStateDirectoryKey = "PeripheralManagerOptionStateDirectoryKey"

/// `PeripheralManager(options:)`: what the manager replies when a pairing needs an answer, as
/// ``CentralManagerOptionPairingPolicyKey``.
public let PeripheralManagerOptionPairingPolicyKey = "PeripheralManagerOptionPairingPolicyKey"

extension ManagerOptions<PeripheralManagerError> {
    init(_ options: [String: Any]?) {
        self.init(
            options, busAddress: PeripheralManagerOptionBusAddressKey, adapter: PeripheralManagerOptionAdapterKey,
            restoreIdentifier: CBPeripheralManagerOptionRestoreIdentifierKey,
            stateFolder: PeripheralManagerOptionStateDirectoryKey,
            pairingPolicy: PeripheralManagerOptionPairingPolicyKey)
    }
}
