public import BlueCapKit
public import Foundation

extension Bluejay {
    // MARK: Scanning

    /// Scans for peripherals.
    ///
    /// A request to connect ends the scan.
    /// - Parameters:
    ///   - duration: In seconds; 0 for no end.
    ///   - allowDuplicates: Whether each advertisement is a discovery, or only the first one of each peripheral.
    ///   - serviceIdentifiers: The services of which a peripheral advertises one; `nil` or none for all peripherals.
    ///   - discovery: Called with the discovery and all discoveries so far, the newest state of each.
    ///   - expired: Called with a peripheral that has not been received for 30 seconds or more (see
    ///     `CentralManager.whenPeripheralsExpire()`), and those that are left; only if duplicates are allowed.
    ///   - stopped: Called once, when the scan has ended, with its discoveries. The error is `nil` if it was stopped or its
    ///     duration has passed.
    public func scan(
        duration: TimeInterval = 0, allowDuplicates: Bool = false, serviceIdentifiers: [ServiceIdentifier]?,
        discovery: @escaping (ScanDiscovery, [ScanDiscovery]) -> ScanAction,
        expired: ((ScanDiscovery, [ScanDiscovery]) -> ScanAction)? = nil,
        stopped: @escaping ([ScanDiscovery], (any Error)?) -> Void
    ) {
        scan(
            duration: duration, allowDuplicates: allowDuplicates, throttleRSSIDelta: 0,
            serviceIdentifiers: serviceIdentifiers, discovery: discovery, expired: expired, stopped: stopped)
    }

    /// Scans for peripherals, and ignores discoveries with almost the same signal strength, as since version 0.6.5.
    ///
    /// If duplicates are allowed, a peripheral is discovered again only if its strength differs by at least
    /// `throttleRSSIDelta` dB from that of its last discovery; 0 and less ignore nothing. Otherwise the same as without it.
    public func scan(
        duration: TimeInterval = 0, allowDuplicates: Bool = false, throttleRSSIDelta: Int,
        serviceIdentifiers: [ServiceIdentifier]?,
        discovery: @escaping (ScanDiscovery, [ScanDiscovery]) -> ScanAction,
        expired: ((ScanDiscovery, [ScanDiscovery]) -> ScanAction)? = nil,
        stopped: @escaping ([ScanDiscovery], (any Error)?) -> Void
    ) {
        do {
            let services = try serviceIdentifiers?.map { try $0.checked() }
            let scan = Scan(
                duration: duration, allowsDuplicates: allowDuplicates, throttle: throttleRSSIDelta,
                services: services, discovery: discovery, expired: expired, stopped: stopped)
            session.request(.scan(scan)) { scan.hasStopped($0) }
        } catch {
            session.call { stopped([], error) }
        }
    }

    /// Ends the scan, as the action ``ScanAction/stop`` does. Without a scan it does nothing.
    public func stopScanning() { session.decide { $0.scanEnded() } }

    // MARK: Reading, writing, listening

    /// Reads a value. Services and characteristics are discovered if necessary.
    ///
    /// - `completion`: Called once: with the value; or with ``BluejayError/notConnected``,
    ///   ``BluejayError/missingService(_:)``, ``BluejayError/missingCharacteristic(_:)``, BlueCapKit's
    ///   `CharacteristicError` if the peripheral refuses, or an error that `R` throws.
    public func read<R: Receivable>(
        from characteristicIdentifier: CharacteristicIdentifier, completion: @escaping (ReadResult<R>) -> Void
    ) {
        session.request(.read(characteristicIdentifier), completion) { .success(try R(bluetoothData: $0)) }
    }

    /// Writes a value, which the peripheral confirms unless `type` is `withoutResponse`. The completion is called once,
    /// with the errors of ``read(from:completion:)``.
    public func write<S: Sendable>(
        to characteristicIdentifier: CharacteristicIdentifier, value: S,
        type: CBCharacteristicWriteType = .withResponse, completion: @escaping (WriteResult) -> Void
    ) {
        let work = Request.Work.write(value.toBluetoothData(), to: characteristicIdentifier, type)
        session.request(work, completion) { _ in .success }
    }

    /// Listens to a characteristic: the peripheral sends its value after each change, until
    /// ``endListen(to:error:completion:)`` or the end of the connection.
    ///
    /// - `option`: Whether another listen to the same characteristic replaces this one.
    /// - `completion`: Called with each value, and with the failure that ends the listen: ``BluejayError/notConnected`` if
    ///   the connection is lost, ``BluejayError/explicitDisconnect`` after `disconnect`. Two failures do not end the
    ///   listen: that of bytes that are no `R`, and `CharacteristicError.notificationsInterrupted` if values may have
    ///   been missed.
    public func listen<R: Receivable>(
        to characteristicIdentifier: CharacteristicIdentifier,
        multipleListenOption option: MultipleListenOption = .trap,
        completion: @escaping (ReadResult<R>) -> Void
    ) {
        session.request(.listen(listen(characteristicIdentifier, option, completion))) { _ in }
    }

    /// Ends a listen. Succeeds also if there is none.
    ///
    /// - `error`: The last failure that the listen's own closure receives; `nil` for none.
    public func endListen(
        to characteristicIdentifier: CharacteristicIdentifier, error: (any Error)? = nil,
        completion: ((WriteResult) -> Void)? = nil
    ) {
        session.request(.endListen(characteristicIdentifier, error), completion) { _ in .success }
    }

    /// Sets the closure of a listen of an earlier run of the program: see ``ListenRestorer``. It receives values from the
    /// next connection on.
    public func restoreListen<R: Receivable>(
        to characteristicIdentifier: CharacteristicIdentifier, completion: @escaping (ReadResult<R>) -> Void
    ) {
        session.restoreListen(listen(characteristicIdentifier, .trap, completion))
    }

    /// Returns whether there is a listen to the characteristic.
    /// - Throws: ``BluejayError/notConnected`` if there is no connection.
    public func isListening(to characteristicIdentifier: CharacteristicIdentifier) throws -> Bool {
        try session.isListening(to: characteristicIdentifier)
    }

    private func listen<R: Receivable>(
        _ identifier: CharacteristicIdentifier, _ option: MultipleListenOption,
        _ completion: @escaping (ReadResult<R>) -> Void
    ) -> Listen {
        // Weak, because the session retains the listen.
        Listen(identifier, option) { [weak session] outcome in
            session?.call { completion(ReadResult(outcome) { .success(try R(bluetoothData: $0)) }) }
        }
    }

    // MARK: Pairing

    /// Pairs with the connected peripheral, and stores the keys (bonds), so that later connections are encrypted without a
    /// pairing. Succeeds at once if there is a bond.
    ///
    /// Start Bluejay with a pairing policy: without one it does not pair. With the policy `ask` a ``PairingObserver``
    /// answers. An operation on a protected value pairs by itself; pair first if the value is known to be protected,
    /// because from BlueZ 5.67 on a refused operation can leave the characteristic unusable. If the policy was set
    /// after the connection, BlueZ may have to end the link and make it again, which is reported as a loss; the pairing
    /// continues, except that of a background task.
    ///
    /// - Parameters:
    ///   - timeout: Includes the answers of the user.
    ///   - completion: Called once; with ``BluejayError/notConnected``, or ``BluejayError/pairingFailed(_:)``.
    public func pair(timeout: Timeout = .seconds(60), completion: @escaping (PairingResult) -> Void) {
        session.request(.pair(timeout), completion) { _ in .success }
    }

    /// Ends the bond with a peripheral, and the connection to it if there is one; ``shouldAutoReconnect`` is `false` then.
    /// No connection is needed. BlueZ forgets the peripheral: scan for it before the next connection.
    ///
    /// The peripheral keeps its keys, and may refuse a new pairing until its user removes them too.
    ///
    /// - `completion`: Called once; with ``BluejayError/unexpectedPeripheral(_:)``, or
    ///   ``BluejayError/pairingFailed(_:)``.
    public func unpair(
        _ peripheralIdentifier: PeripheralIdentifier, completion: ((PairingResult) -> Void)? = nil
    ) {
        session.request(.unpair(peripheralIdentifier), completion) { _ in .success }
    }

    // MARK: Background tasks

    /// Runs a background task: a closure on a thread of its own, with operations that block until they are complete.
    ///
    /// ```swift
    /// bluejay.run(backgroundTask: { peripheral -> UInt8 in
    ///     try peripheral.write(to: location, value: UInt8(0))
    ///     return try peripheral.read(from: location)
    /// }) { (result: RunResult<UInt8>) in
    ///     print(result)
    /// }
    /// ```
    ///
    /// One task runs at a time, and while it runs Bluejay refuses other requests: with
    /// ``BluejayError/backgroundTaskRunning``, and inside the task with ``BluejayError/calledInsideBackgroundTask``. The
    /// exceptions are `cancelEverything` and `stopAndExtractBluetoothState`, which fail the operation that the task waits
    /// for. When the connection is lost, all operations of the task fail; observers and the ``DisconnectHandler`` are
    /// called when the task has ended.
    ///
    /// - Parameters:
    ///   - backgroundTask: Called once if there is a connection, on a thread that may be blocked.
    ///   - completionOnMainThread: Called once, on the callback queue: with the result or the error of the task, or with
    ///     the reason why it was not run.
    @preconcurrency
    public func run<Result>(
        backgroundTask: @escaping @Sendable (SynchronizedPeripheral) throws -> Result,
        completionOnMainThread: @escaping (RunResult<Result>) -> Void
    ) {
        session.run(backgroundTask, completionOnMainThread)
    }

    /// Runs a background task with a value, which no other code accesses until the task has ended.
    @preconcurrency
    public func run<UserData, Result>(
        userData: UserData,
        backgroundTask: @escaping @Sendable (SynchronizedPeripheral, UserData) throws -> Result,
        completionOnMainThread: @escaping (RunResult<Result>) -> Void
    ) {
        // Unchecked: the caller passes the value to the task and does not use it until the task has ended, as documented.
        nonisolated(unsafe) let userData = userData
        run(backgroundTask: { try backgroundTask($0, userData) }, completionOnMainThread: completionOnMainThread)
    }

    /// Waits until the background task waits for Bluetooth, or there is none; for tests with virtual time.
    package func awaitBackgroundTask(limit: TimeInterval = 60) -> Bool { session.awaitBackgroundTask(limit: limit) }
}
