public import Foundation
public import Futures
public import GATT

extension CentralManager {
    /// Whether this manager wants to scan: true from `startScanning` until `stopScanning`, a time-out or a failure,
    /// also while the adapter is off or `bluetoothd` away, since the scan goes on when they return.
    public var isScanning: Bool { session.core.withLock { $0.state.scan != nil } }

    /// Scans for everybody who advertises.
    ///
    /// - Parameters:
    ///   - capacity: how many peripherals the stream keeps for handlers that are added later. `Int.max` keeps as many
    ///     as the manager remembers, or the newest 1 024 sightings where duplicates are allowed; 0 keeps none.
    ///   - timeout: seconds after which the scan stops. If no peripheral was discovered, the stream fails with
    ///     `CentralManagerError.peripheralScanTimeout`; otherwise it ends as with `stopScanning()`.
    ///   - options: `CBCentralManagerScanOptionAllowDuplicatesKey`, and of ours
    ///     `CentralManagerScanOptionRSSIThresholdKey`, `CentralManagerScanOptionPatternKey`,
    ///     `CentralManagerScanOptionWatchdogKey`.
    /// - Returns: a stream of the discovered peripherals: each once, or at every sighting where duplicates are allowed.
    ///   It fails with `isPoweredOff`, `unsupported` or `unauthorized` where the state is not `poweredOn`, with
    ///   `isScanning` where this manager scans already, with `invalidOption`, and with `scanFailed` when BlueZ refuses
    ///   also after the retries (0.1, 0.25, 0.5 and 1 s later). It ends after a failure, with `stopScanning` and with the
    ///   time-out.
    public func startScanning(
        capacity: Int = .max, timeout: TimeInterval = .infinity, options: [String: Any]? = nil
    ) -> FutureStream<Peripheral> {
        startScanning(forServiceUUIDs: nil, capacity: capacity, timeout: timeout, options: options)
    }

    /// Scans for those who advertise one of these services; `nil` and an empty list ask for everybody.
    ///
    /// The rest is as with `startScanning(capacity:timeout:options:)`.
    public func startScanning(
        forServiceUUIDs uuids: [CBUUID]?, capacity: Int = .max, timeout: TimeInterval = .infinity,
        options: [String: Any]? = nil
    ) -> FutureStream<Peripheral> {
        scan(uuids, capacity, timeout, options) { .peripherals($0) }
    }

    /// The earliest revision's form: `duration` is the `timeout`.
    public func startScanning(
        capacity: Int = .max, duration: TimeInterval, options: [String: Any]? = nil
    ) -> FutureStream<Peripheral> {
        startScanning(capacity: capacity, timeout: duration, options: options)
    }

    /// The earliest revision's form: `duration` is the `timeout`.
    public func startScanning(
        forServiceUUIDs uuids: [CBUUID]?, capacity: Int = .max, duration: TimeInterval, options: [String: Any]? = nil
    ) -> FutureStream<Peripheral> {
        startScanning(forServiceUUIDs: uuids, capacity: capacity, timeout: duration, options: options)
    }

    /// Scans for peripherals, and yields each report with its own data.
    ///
    /// The scan is the same as that of `startScanning(forServiceUUIDs:capacity:timeout:options:)`, with the same options,
    /// errors and end; a manager has one scan at a time, of either kind. Only the elements differ: a ``ScanReport`` is a
    /// value with the time, the signal strength and the advertisement of that report, while a ``Peripheral`` reads the
    /// newest. The difference shows if duplicates are allowed and the handler runs after a later report has arrived.
    ///
    /// ```swift
    /// let options = [CBCentralManagerScanOptionAllowDuplicatesKey: true]
    /// for try await report in manager.startScanningForReports(options: options).values {
    ///     print(report.date, report.peripheral.address, report.rssi ?? 127)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - uuids: the services of which a peripheral must advertise one; `nil` and an empty list accept all peripherals.
    ///   - capacity: how many reports the stream keeps for handlers that are added later. `Int.max` keeps as many as the
    ///     manager remembers peripherals, or the newest 1 024 if duplicates are allowed; 0 keeps none.
    ///   - timeout: seconds after which the scan stops.
    ///   - options: as with `startScanning(capacity:timeout:options:)`.
    /// - Returns: a stream of reports: one of each peripheral, or all if duplicates are allowed.
    public func startScanningForReports(
        forServiceUUIDs uuids: [CBUUID]? = nil, capacity: Int = .max, timeout: TimeInterval = .infinity,
        options: [String: Any]? = nil
    ) -> FutureStream<ScanReport> {
        scan(uuids, capacity, timeout, options, wantsReports: true) { .reports($0) }
    }

    /// Ends the scan: its stream ends, and BlueZ stops its discovery when no other manager of this process scans.
    ///
    /// Without a scan it does nothing.
    public func stopScanning() {
        session.decide { $0.state.stopScan(into: &$0.shell.orders) }
    }

    /// Tells each time that BlueZ's discovery had to be started anew under a scan of this manager, and why: there was a
    /// gap. Every call returns the same stream, which keeps nothing.
    public func whenScanningRestarts() -> FutureStream<ScanRestart> { session.streams.restarts.stream }

    /// Completes when BlueZ has confirmed that this manager takes part in no discovery: at once where it does not scan
    /// and nothing is under way, otherwise after `stopScanning`. For programs that want to leave nothing behind.
    public func whenScanningStopped() -> Future<Void> { session.whenScanningStopped() }

    private func scan<T: Sendable>(
        _ services: [CBUUID]?, _ capacity: Int, _ timeout: TimeInterval, _ options: [String: Any]?,
        wantsReports: Bool = false, _ stream: (StreamPromise<T>) -> Scans.Stream
    ) -> FutureStream<T> {
        var request: ScanRequest
        do {
            if let problem = session.problem { throw problem }
            guard timeout >= 0 else {
                throw CentralManagerError.invalidOption("A scan's timeout is zero or more seconds, not \(timeout).")
            }
            if let refusal = CentralManagerError(refusing: capacity) { throw refusal }
            request = try ScanRequest(services: services, options: options)
            request.wantsReports = wantsReports
        } catch {
            return .failed(error)
        }
        // A stream that kept everything would grow for as long as peripherals advertise.
        let bound = request.allowsDuplicates ? 1_024 : session.options.maximumPeripherals
        let promise = StreamPromise<T>(capacity: capacity == .max ? bound : capacity)
        var refusal: CentralManagerError?
        session.decide { core in
            switch core.state.startScan(request, timeout: timeout, into: &core.shell.orders) {
            case .failure(let error): refusal = error
            case .success(let scan): core.scans.add(stream(promise), of: scan)
            }
        }
        return refusal.map { .failed($0) } ?? promise.stream
    }
}

extension CentralManagerError {
    /// The error of a stream's capacity; `nil` if the capacity is valid.
    init?(refusing capacity: Int) {
        guard capacity < 0 else { return nil }
        self = .invalidOption("A stream's capacity is zero or more elements, not \(capacity).")
    }
}
