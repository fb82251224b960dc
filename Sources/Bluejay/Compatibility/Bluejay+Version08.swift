public import BlueCapKit
public import Dispatch
public import Foundation

// Bluejay's names since version 0.8, and some of earlier versions, beside those of the guide. Observers are held weakly.

extension Bluejay {
    /// Creates a Bluejay with an observer of its log, as ``init(callbackQueue:)`` and ``register(logObserver:)`` do.
    public convenience init(logObserver: (any LogObserver)?, callbackQueue: DispatchQueue = .main) {
        self.init(callbackQueue: callbackQueue)
        if let logObserver { register(logObserver: logObserver) }
    }

    /// Starts with a disconnect handler, as ``registerDisconnectHandler(handler:)`` and
    /// ``start(mode:connectionObserver:pairing:)`` do.
    public func start(
        mode: StartMode = .new(StartOptions.bluejayDefault), connectionObserver: (any ConnectionObserver)? = nil,
        disconnectHandler: any DisconnectHandler
    ) {
        registerDisconnectHandler(handler: disconnectHandler)
        start(mode: mode, connectionObserver: connectionObserver)
    }

    // MARK: Observers

    /// The same as ``register(observer:)``.
    public func register(connectionObserver: any ConnectionObserver) { register(observer: connectionObserver) }

    /// The same as ``unregister(observer:)``.
    public func unregister(connectionObserver: any ConnectionObserver) { unregister(observer: connectionObserver) }

    /// Adds an observer of ``readRSSI()``.
    public func register(rssiObserver: any RSSIObserver) { session.register(rssiObserver, as: (any RSSIObserver).self) }

    /// Removes an observer of ``readRSSI()``.
    public func unregister(rssiObserver: any RSSIObserver) {
        session.unregister(rssiObserver, as: (any RSSIObserver).self)
    }

    /// Adds an observer of the peripheral's services.
    public func register(serviceObserver: any ServiceObserver) {
        session.register(serviceObserver, as: (any ServiceObserver).self)
    }

    /// Removes an observer of the peripheral's services.
    public func unregister(serviceObserver: any ServiceObserver) {
        session.unregister(serviceObserver, as: (any ServiceObserver).self)
    }

    /// Adds an observer of the log.
    public func register(logObserver: any LogObserver) { session.register(logObserver, as: (any LogObserver).self) }

    /// Removes an observer of the log.
    public func unregister(logObserver: any LogObserver) { session.unregister(logObserver, as: (any LogObserver).self) }

    /// The same as ``removeDisconnectHandler()``.
    public func unregisterDisconnectHandler() { removeDisconnectHandler() }

    // MARK: Signal strength

    /// Reads the strength of the connected peripheral's signal; the result goes to each ``RSSIObserver``.
    ///
    /// - Throws: ``BluejayError/notConnected`` without a connection, ``BluejayError/stopped`` before `start()`,
    ///   ``BluejayError/backgroundTaskRunning`` and ``BluejayError/calledInsideBackgroundTask``.
    public func readRSSI() throws { try session.readRSSI() }

    // MARK: State

    /// Whether the connection and its listens are restored in the next run of the program.
    public var isBackgroundRestorationEnabled: Bool { session.isRestorationEnabled }

    // MARK: Results with identifiers

    /// Connects. This variant is chosen if the completion uses the peripheral as an identifier.
    @_disfavoredOverload
    public func connect(
        _ peripheralIdentifier: PeripheralIdentifier, timeout: Timeout = .none, warningOptions: WarningOptions? = nil,
        completion: @escaping (IdentifierConnectionResult) -> Void
    ) {
        session.request(forLink: .connect(peripheralIdentifier, timeout), completion) {
            .success(PeripheralIdentifier($0))
        }
    }

    /// Disconnects. This variant is chosen if the completion has a `case .disconnected`.
    @_disfavoredOverload
    public func disconnect(
        immediate: Bool = false, completion: @escaping (IdentifierDisconnectionResult) -> Void
    ) {
        session.request(forLink: .disconnect(isImmediate: immediate), completion) {
            .disconnected(PeripheralIdentifier($0))
        }
    }
}

/// A ``ConnectionResult`` with the identifier of the peripheral.
public enum IdentifierConnectionResult: RequestResult, Swift.Sendable {
    /// The peripheral is connected.
    case success(PeripheralIdentifier)
    /// The connection failed.
    case failure(any Error)

    init(_ result: ConnectionResult) {
        switch result {
        case .success(let peripheral): self = .success(PeripheralIdentifier(peripheral))
        case .failure(let error): self = .failure(error)
        }
    }
}

/// A ``DisconnectionResult`` with the identifier of the peripheral.
public enum IdentifierDisconnectionResult: RequestResult, Swift.Sendable {
    /// The connection to this peripheral has ended.
    case disconnected(PeripheralIdentifier)
    /// The disconnection failed.
    case failure(any Error)
}

extension SynchronizedPeripheral {
    /// The same as ``flushListen(to:idleWindow:completion:)``. Throws ``BluejayError/indefiniteFlush`` for `.none`.
    public func flushListen(
        to characteristicIdentifier: CharacteristicIdentifier, nonZeroTimeout: Timeout,
        completion: @escaping () -> Void
    ) throws {
        try flushListen(
            to: characteristicIdentifier, idleWindow: nonZeroTimeout.interval, completion: completion)
    }
}

/// Bytes of zero that pad a value.
public struct DataPadding: Sendable, Hashable, Swift.Sendable {
    private let amount: Int

    /// Creates padding of this many bytes; less than zero counts as zero.
    public init(_ amount: Int) { self.amount = max(0, amount) }

    public func toBluetoothData() -> Data { Data(count: amount) }
}

extension StartOptions {
    /// The same as ``bluejayDefault``.
    public static var `default`: StartOptions { bluejayDefault }
}

extension WarningOptions {
    /// No warnings.
    public static var `default`: WarningOptions {
        WarningOptions(notifyOnConnection: false, notifyOnDisconnection: false, notifyOnNotification: false)
    }
}

extension BackgroundRestoreMode {
    /// The same as ``enableWithConfig(_:)``.
    public static func enable(_ config: BackgroundRestoreConfig) -> BackgroundRestoreMode { .enableWithConfig(config) }
}

extension ScanAction {
    /// The same as the case, with the identifier of the peripheral in the result.
    @_disfavoredOverload
    public static func connect(
        _ discovery: ScanDiscovery, _ completion: @escaping (IdentifierConnectionResult) -> Void
    ) -> ScanAction {
        .connect(discovery) { (result: ConnectionResult) in completion(IdentifierConnectionResult(result)) }
    }

    /// The same as the variant with a ``ConnectionResult``.
    @_disfavoredOverload
    public static func connect(
        _ discovery: ScanDiscovery, _ timeout: Timeout, _ warningOptions: WarningOptions?,
        _ completion: @escaping (IdentifierConnectionResult) -> Void
    ) -> ScanAction {
        .connect(discovery, timeout, warningOptions) { (result: ConnectionResult) in
            completion(IdentifierConnectionResult(result))
        }
    }
}

// The guide's names of Core Bluetooth's types, in ``StartMode/use(manager:peripheral:)`` and
// ``Bluejay/Bluejay/stopAndExtractBluetoothState()``. Bluejay stands on BlueCapKit, and not on the module CoreBluetooth.

/// The guide's name of `CentralManager`.
public typealias CBCentralManager = CentralManager

/// The guide's name of `Peripheral`.
public typealias CBPeripheral = Peripheral
