// `Peripheral`, `CentralManager`, `CBUUID`, `ServiceIdentifier` and `CharacteristicIdentifier` come with `import Bluejay`.
@_exported public import BlueCapKit
public import Dispatch
public import Foundation

/// One peripheral, a queue of operations, callbacks: the simple interface to a device.
///
/// ```swift
/// import Bluejay
/// import Foundation
///
/// let heartRate = ServiceIdentifier(uuid: "180D")
/// let location = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
///
/// let bluejay = Bluejay()
/// bluejay.start()
/// bluejay.scan(
///     serviceIdentifiers: [heartRate],
///     discovery: { discovery, _ in
///         .connect(discovery) { result in
///             guard case .success = result else { exit(1) }
///             bluejay.read(from: location) { (result: ReadResult<UInt8>) in print(result) }
///         }
///     },
///     stopped: { _, error in print("scan over", error ?? "") })
/// dispatchMain()
/// ```
///
/// ## Where callbacks run
/// All closures, observers and handlers are called on the callback queue: the main queue by default, as in the document,
/// or the queue that `init` is given. **A plain Linux program has to run the main queue itself**: it ends with
/// `dispatchMain()` or runs the main run loop, or it gives Bluejay another queue. Closures are called one after the other,
/// never during the call that they belong to. A completion is called exactly once, also if Bluejay is stopped or
/// deallocated before the request has ended. A Bluejay may be used on any thread.
///
/// ## The queue
/// Scans, connections, disconnections, reads, writes, and the beginning and end of listens run in the order of the
/// requests, one at a time. Impossible requests are refused at once: without a connection, reads, writes and listens fail
/// with ``BluejayError/notConnected``. Requests right after `start()` wait until the state of Bluetooth is known.
///
/// When the connection is lost, all operations and listens fail with ``BluejayError/notConnected``. Then Bluejay calls the
/// observers and the ``DisconnectHandler``, and reconnects unless the handler changes that. A listen belongs to one
/// connection: begin it again in `connected(to:)` of a ``ConnectionObserver``.
///
/// ## Pairing
/// See ``pair(timeout:completion:)``. If the peripheral no longer has the keys of its bond, the connection fails, or is lost,
/// with ``BluejayError/pairingFailed(_:)``.
public final class Bluejay: Swift.Sendable {
    /// The identifier of this Bluejay, unique in the process.
    public let uuid = UUID()
    let session: BluejaySession

    /// - Parameter callbackQueue: The queue on which closures, observers and handlers are called; one after the other, also
    ///   if the queue is concurrent.
    public init(callbackQueue: DispatchQueue = .main) { session = BluejaySession(callbackQueue: callbackQueue) }

    deinit { session.stop() }

    // MARK: Start and stop

    /// Starts Bluejay. Does nothing if it has been started.
    ///
    /// - Parameters:
    ///   - mode: Whether Bluejay creates a manager or uses an existing one. A connected peripheral stays connected, and is
    ///     reported to observers.
    ///   - connectionObserver: The first observer.
    ///   - pairingPolicy: Whether and how Bluejay pairs. `nil` for the policy of the manager, `.reject` if nothing has
    ///     set it.
    public func start(
        mode: StartMode = .new(StartOptions.bluejayDefault), connectionObserver: (any ConnectionObserver)? = nil,
        pairing pairingPolicy: PairingPolicy? = nil
    ) {
        session.start(mode, observer: connectionObserver, pairing: pairingPolicy)
    }

    /// Stops Bluejay, and returns its manager, and the peripheral if it is connected. The connection and the subscriptions
    /// remain. All requests fail with ``BluejayError/stopped``.
    ///
    /// Traps if Bluejay has not been started: check ``hasStarted``.
    public func stopAndExtractBluetoothState() -> (manager: CentralManager, peripheral: Peripheral?) {
        guard let state = session.stop() else {
            preconditionFailure("There is no Bluetooth state to extract before start(): check hasStarted first.")
        }
        return state
    }

    /// Whether Bluejay has been started, and not stopped since.
    public var hasStarted: Bool { session.state(\.isStarted) }

    // MARK: State

    /// Whether Bluetooth can be used: it is on.
    public var isBluetoothAvailable: Bool { session.state(\.isAvailable) == true }

    /// Whether the state of Bluetooth will be known soon: after `start()`, and while `bluetoothd` restarts.
    public var isBluetoothStateUpdateImminent: Bool {
        guard hasStarted, let manager = session.manager else { return false }
        return manager.state == .unknown || manager.state == .resetting
    }

    /// Whether a connection is being attempted, also by Bluejay itself after a connection loss.
    public var isConnecting: Bool { session.state(\.isConnecting) }

    /// Whether there is a connection.
    public var isConnected: Bool { session.state(\.connection) == .connected }

    /// Whether the connection, or the attempt at one, is being ended.
    public var isDisconnecting: Bool { session.state(\.isDisconnecting) }

    /// Whether Bluejay reconnects after a connection loss. `true` at first and after each connection; `false` after
    /// `disconnect` and ``cancelEverything(error:shouldDisconnect:)`` have disconnected. The ``DisconnectHandler`` can
    /// change it.
    public var shouldAutoReconnect: Bool { session.state(\.shouldAutoReconnect) }

    /// Whether a scan is running.
    public var isScanning: Bool { session.state(\.isScanning) }

    /// Whether a background task is running.
    public var isRunningBackgroundTask: Bool { session.state(\.isTaskRunning) }

    // MARK: Connecting

    /// Connects.
    ///
    /// There is one connection at a time: the request fails with ``BluejayError/multipleConnectNotSupported`` if there is a
    /// connection or an attempt. If the previous connection is still ending, the request waits for that. A running scan is
    /// stopped.
    ///
    /// - `peripheralIdentifier`: The identifier of a discovery, or of a peripheral that BlueZ knows.
    /// - `timeout`: From the beginning of the attempt; then ``BluejayError/connectionTimedOut``.
    /// - `warningOptions`: Have no effect on Linux.
    public func connect(
        _ peripheralIdentifier: PeripheralIdentifier, timeout: Timeout = .none, warningOptions: WarningOptions? = nil,
        completion: @escaping (ConnectionResult) -> Void
    ) {
        session.request(forLink: .connect(peripheralIdentifier, timeout), completion) { .success($0) }
    }

    /// Disconnects, or ends the attempt to connect, also while Bluetooth is off. After success, ``shouldAutoReconnect`` is
    /// `false`.
    ///
    /// - Parameters:
    ///   - immediate: Whether everything in the queue fails at once with ``BluejayError/explicitDisconnect``, also a
    ///     disconnection that waits for its turn. If `false`, the disconnection waits for its turn, and operations after it
    ///     are refused with ``BluejayError/disconnectQueued``.
    ///   - completion: Called once, with ``BluejayError/notConnected`` if there is no connection and no attempt.
    public func disconnect(immediate: Bool = false, completion: ((DisconnectionResult) -> Void)? = nil) {
        session.request(forLink: .disconnect(isImmediate: immediate), completion) { .success($0) }
    }

    // MARK: Observers

    /// Adds an observer, and reports the present state to it. Bluejay holds it weakly.
    public func register(observer: any ConnectionObserver) { session.register(observer) }

    /// Removes an observer. A deallocated observer is removed automatically.
    public func unregister(observer: any ConnectionObserver) {
        session.unregister(observer, as: (any ConnectionObserver).self)
    }

    /// Adds an observer of pairings, which Bluejay holds weakly.
    public func register(pairingObserver: any PairingObserver) {
        session.register(pairingObserver, as: (any PairingObserver).self)
    }

    /// Removes an observer of pairings.
    public func unregister(pairingObserver: any PairingObserver) {
        session.unregister(pairingObserver, as: (any PairingObserver).self)
    }

    /// Sets the object that decides what follows a disconnection, and replaces the previous one. Bluejay holds it weakly.
    public func registerDisconnectHandler(handler: any DisconnectHandler) { session.handler = handler }

    /// Removes the disconnect handler: only ``shouldAutoReconnect`` decides then.
    public func removeDisconnectHandler() { session.handler = nil }

    // MARK: Cancelling

    /// Fails all requests, running and waiting, and a background task; and disconnects.
    ///
    /// - Parameters:
    ///   - error: The error of each request.
    ///   - shouldDisconnect: Whether the connection is ended too. When that has succeeded, ``shouldAutoReconnect`` is
    ///     `false`. If `false`, the connection and its listens stay.
    public func cancelEverything(error: any Error = BluejayError.cancelled, shouldDisconnect: Bool = true) {
        session.decide { $0.cancelEverything(error, shouldDisconnect: shouldDisconnect) }
    }

    /// Returns the bytes of all values, one after the other; see ``Sendable``.
    public static func combine(sendables: [any Sendable]) -> Data {
        sendables.reduce(into: Data()) { $0.append($1.toBluetoothData()) }
    }
}
