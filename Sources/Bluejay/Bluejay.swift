public import BlueCapKit
public import Dispatch
public import Foundation

/// One peripheral, a queue of operations, callbacks: the simple way to talk to a device.
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
/// All closures, observers and handlers are called on the callback queue: the main queue, as in the document, unless
/// `init` is given another one. **A plain Linux program has to run the main queue itself**: it ends with `dispatchMain()`
/// or runs the main run loop, or it gives Bluejay a queue of its own. Closures are called one after the other, never
/// inside of the call that they belong to, and each as often as it says: a completion exactly once, whatever happens,
/// also when Bluejay is stopped or deallocated while something is under way. A Bluejay may be used on any thread.
///
/// ## The queue
/// Scans, connections, disconnections, reads, writes, and the beginning and end of listens have their turns in the order
/// in which they were asked for, one at a time. What cannot be is refused at once: without a connection, reads, writes and
/// listens fail with ``BluejayError/notConnected``. What is asked for right after `start()`, while it is not known yet
/// whether Bluetooth is on, waits for that.
///
/// When the connection is lost all that takes it fails with ``BluejayError/notConnected``, listens too; the observers are
/// told, then the ``DisconnectHandler``, and Bluejay reconnects unless that says otherwise. Listens are for one
/// connection: begin them again in `connected(to:)` of a ``ConnectionObserver``.
public final class Bluejay: Swift.Sendable {
    /// Tells one Bluejay from another.
    public let uuid = UUID()
    let session: BluejaySession

    /// - Parameter callbackQueue: Where closures, observers and handlers are called; one after the other, also where the
    ///   queue is concurrent.
    public init(callbackQueue: DispatchQueue = .main) { session = BluejaySession(callbackQueue: callbackQueue) }

    deinit { session.stop() }

    // MARK: Beginning and end

    /// Begins. Does nothing where it has begun already.
    ///
    /// - Parameters:
    ///   - mode: Whether Bluejay makes a manager or takes one over. A peripheral that is handed over with a connection stays
    ///     connected; observers hear of it as of any connection.
    ///   - connectionObserver: The first observer.
    public func start(
        mode: StartMode = .new(StartOptions.bluejayDefault), connectionObserver: (any ConnectionObserver)? = nil
    ) {
        session.start(mode, observer: connectionObserver)
    }

    /// Ends Bluejay, and gives away what it has worked with: the manager, and the peripheral if it is connected. The
    /// connection stays, and so do subscriptions. Everything under way fails with ``BluejayError/stopped``.
    ///
    /// Traps where Bluejay has not been started: ask ``hasStarted``.
    public func stopAndExtractBluetoothState() -> (manager: CentralManager, peripheral: Peripheral?) {
        guard let state = session.stop() else {
            preconditionFailure(
                "There is no Bluetooth state to extract before start(mode:connectionObserver:): ask hasStarted first.")
        }
        return state
    }

    /// Whether it has been started, and not stopped since.
    public var hasStarted: Bool { session.core.withLock { $0.machine.isStarted } }

    // MARK: How things stand

    /// Whether Bluetooth is on and can be used.
    public var isBluetoothAvailable: Bool { session.core.withLock { $0.machine.isAvailable == true } }

    /// Whether it is about to be known if it can be: after `start()`, and while `bluetoothd` is being restarted.
    public var isBluetoothStateUpdateImminent: Bool {
        let (isStarted, manager) = session.core.withLock { ($0.machine.isStarted, $0.manager) }
        guard isStarted, let manager else { return false }
        return manager.state == .unknown || manager.state == .resetting
    }

    /// Whether a connection is being attempted, also by Bluejay itself after a loss.
    public var isConnecting: Bool { session.core.withLock { $0.machine.isConnecting } }

    /// Whether there is a connection.
    public var isConnected: Bool { session.core.withLock { $0.machine.connection == .connected } }

    /// Whether the connection, or the attempt at one, is being ended.
    public var isDisconnecting: Bool { session.core.withLock { $0.machine.isDisconnecting } }

    /// Whether Bluejay reconnects by itself after a loss. `true` at first and after each connection; `false` after
    /// `disconnect` and ``cancelEverything(error:shouldDisconnect:)`` have disconnected, and as
    /// the ``DisconnectHandler`` says.
    public var shouldAutoReconnect: Bool { session.core.withLock { $0.machine.shouldAutoReconnect } }

    /// Whether a scan is running.
    public var isScanning: Bool { session.core.withLock { $0.machine.isScanning } }

    /// Whether a background task is running.
    public var isRunningBackgroundTask: Bool { session.core.withLock { $0.machine.isTaskRunning } }

    // MARK: Observers

    /// Adds an observer, and tells it how things stand. It is held weakly.
    public func register(observer: any ConnectionObserver) { session.register(observer) }

    /// Takes an observer out, where it is to hear no more before it is deallocated.
    public func unregister(observer: any ConnectionObserver) { session.unregister(observer) }

    /// Sets the one who decides what follows a disconnection, in the place of the one before. It is held weakly.
    public func registerDisconnectHandler(handler: any DisconnectHandler) {
        session.core.withLock { $0.handler = handler }
    }

    /// Goes back to reconnecting by ``shouldAutoReconnect`` alone.
    public func removeDisconnectHandler() { session.core.withLock { $0.handler = nil } }

    // MARK: Cancelling

    /// Fails everything in the queue, what is running and what waits, and a background task; and disconnects.
    ///
    /// - Parameters:
    ///   - error: What everything fails with.
    ///   - shouldDisconnect: Whether the connection is ended, too. When that has succeeded ``shouldAutoReconnect`` is
    ///     `false`. Without it the connection and its listens stay.
    public func cancelEverything(error: any Error = BluejayError.cancelled, shouldDisconnect: Bool = true) {
        session.decide { $0.machine.cancelEverything(error, shouldDisconnect: shouldDisconnect) }
    }
}
