public import Foundation
public import BlueCapFutures
public import BlueCapGATT

extension CentralManager {
    /// Whether a scan is active.
    ///
    /// The value is true from `startScanning` until `stopScanning`, a time-out or a failure. It stays true while the
    /// adapter is off or `bluetoothd` is not running, since the scan continues when they return.
    public var isScanning: Bool { session.core.withLock { $0.state.scan(ranging: false) != nil } }

    /// Starts a scan, and returns a stream of the peripherals that it discovers.
    ///
    /// ```swift
    /// let stream = manager.startScanning(timeout: .seconds(30), options: ScanOptions(rssiThreshold: -70))
    /// ```
    ///
    /// - Parameters:
    ///   - uuids: The services of which a peripheral must advertise one; `nil` and an empty list accept all
    ///     peripherals.
    ///   - capacity: How many peripherals the stream keeps for handlers that are added later. `Int.max` keeps as many
    ///     as the manager remembers, or the newest 1 024 sightings if duplicates are allowed; 0 keeps none.
    ///   - timeout: The time after which the scan stops; `nil` for no limit. If no peripheral was discovered, the stream
    ///     fails with `CentralManagerError.peripheralScanTimeout`; otherwise it ends as with `stopScanning()`.
    ///   - options: What to report. A value out of range fails with ``CentralManagerError/invalidOption(_:)``.
    /// - Returns: A stream of the discovered peripherals: each once, or at every sighting if duplicates are allowed. It
    ///   fails with `isPoweredOff`, `unsupported` or `unauthorized` if the state is not `poweredOn`, with `isScanning`
    ///   if this manager is already scanning, with `invalidOption`, and with `scanFailed` if BlueZ still refuses after
    ///   the retries (0.1, 0.25, 0.5 and 1 s later). It ends after a failure, with `stopScanning` and with the
    ///   time-out.
    // Disfavoured: a call with neither options nor a duration is one of the documents'.
    @_disfavoredOverload
    public func startScanning(
        forServiceUUIDs uuids: [CBUUID]? = nil, capacity: Int = .max, timeout: Duration? = nil,
        options: ScanOptions = ScanOptions()
    ) -> FutureStream<Peripheral> {
        scan(capacity, timeout.seconds, { try ScanRequest(services: uuids, options: options) }) { $0.peripheral }
    }

    /// Variant of `startScanning(forServiceUUIDs:capacity:timeout:options:)` for all peripherals, as in the documents.
    public func startScanning(
        capacity: Int = .max, timeout: TimeInterval = .infinity, options: [String: Any]? = nil
    ) -> FutureStream<Peripheral> {
        startScanning(forServiceUUIDs: nil, capacity: capacity, timeout: timeout, options: options)
    }

    /// Variant of `startScanning(forServiceUUIDs:capacity:timeout:options:)` with seconds and a dictionary, as in the
    /// documents.
    public func startScanning(
        forServiceUUIDs uuids: [CBUUID]?, capacity: Int = .max, timeout: TimeInterval = .infinity,
        options: [String: Any]? = nil
    ) -> FutureStream<Peripheral> {
        scan(capacity, timeout, { try ScanRequest(services: uuids, options: ScanOptions(options)) }) { $0.peripheral }
    }

    /// Starts a scan with typed options and a number of seconds.
    @available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(10).")
    public func startScanning(
        forServiceUUIDs uuids: [CBUUID]? = nil, capacity: Int = .max, timeout: TimeInterval, options: ScanOptions
    ) -> FutureStream<Peripheral> {
        scan(capacity, timeout, { try ScanRequest(services: uuids, options: options) }) { $0.peripheral }
    }

    /// Starts a scan, and returns a stream of its reports, each with its own data.
    ///
    /// The scan is the same as that of `startScanning(forServiceUUIDs:capacity:timeout:options:)`, with the same
    /// parameters, errors and end. A manager has one scan at a time, of either kind. Only the elements differ: a
    /// ``ScanReport`` is a value with the time, the signal strength and the advertisement of that report, while a
    /// ``Peripheral`` returns the newest data. This matters if duplicates are allowed and the handler runs after a
    /// later report has arrived.
    ///
    /// ```swift
    /// for try await report in manager.startScanningForReports(options: ScanOptions(allowsDuplicates: true)) {
    ///     print(report.date, report.peripheral.address, report.rssi ?? 127)
    /// }
    /// ```
    ///
    /// - Returns: A stream of reports: one of each peripheral, or all reports if duplicates are allowed.
    @_disfavoredOverload
    public func startScanningForReports(
        forServiceUUIDs uuids: [CBUUID]? = nil, capacity: Int = .max, timeout: Duration? = nil,
        options: ScanOptions = ScanOptions()
    ) -> FutureStream<ScanReport> {
        scanForReports(uuids, capacity, timeout.seconds) { options }
    }

    /// Variant of `startScanningForReports(forServiceUUIDs:capacity:timeout:options:)` with seconds and with Core
    /// Bluetooth's options.
    public func startScanningForReports(
        forServiceUUIDs uuids: [CBUUID]? = nil, capacity: Int = .max, timeout: TimeInterval = .infinity,
        options: [String: Any]? = nil
    ) -> FutureStream<ScanReport> {
        scanForReports(uuids, capacity, timeout) { try ScanOptions(options) }
    }

    /// Starts a scan with typed options and a number of seconds, and returns a stream of its reports.
    @available(*, deprecated, message: "Write the time limit as a duration: timeout: .seconds(10).")
    public func startScanningForReports(
        forServiceUUIDs uuids: [CBUUID]? = nil, capacity: Int = .max, timeout: TimeInterval, options: ScanOptions
    ) -> FutureStream<ScanReport> {
        scanForReports(uuids, capacity, timeout) { options }
    }

    private func scanForReports(
        _ uuids: [CBUUID]?, _ capacity: Int, _ timeout: TimeInterval, _ options: () throws -> ScanOptions
    ) -> FutureStream<ScanReport> {
        scan(capacity, timeout, { try ScanRequest(services: uuids, options: options(), wantsReports: true) }) {
            ScanReport($0)
        }
    }

    /// Stops the scan and ends its stream. BlueZ stops its discovery when no other manager of this process scans.
    ///
    /// Does nothing if there is no scan.
    public func stopScanning() {
        session.decide { $0.state.stopScan(ranging: false, into: &$0.shell.orders) }
    }

    /// Returns a stream that reports each restart of BlueZ's discovery during a scan of this manager, with the reason.
    ///
    /// Reports may have been missed before each restart. Every call returns the same stream. It keeps no elements for
    /// handlers that are added later.
    public func whenScanningRestarts() -> FutureStream<ScanRestart> { session.streams.restarts.stream }

    /// Returns a future that completes when BlueZ has confirmed that no discovery of this manager runs.
    ///
    /// It completes at once if this manager does not scan and no discovery is being ended, otherwise after
    /// `stopScanning`. Use it in programs that must stop their discovery before they exit.
    public func whenScanningStopped() -> Future<Void> { session.whenScanningStopped() }

    /// Starts a scan, and returns the stream of the elements that `element` makes of its sightings.
    func scan<T: Sendable>(
        _ capacity: Int, _ timeout: TimeInterval, _ makeRequest: () throws -> ScanRequest,
        _ element: @escaping @Sendable (Scans.Stream.Sighting) -> T?
    ) -> FutureStream<T> {
        let request: ScanRequest
        do {
            if let problem = session.problem { throw problem }
            guard timeout >= 0 else {
                throw CentralManagerError.invalidOption("A scan's timeout is zero or more seconds, not \(timeout).")
            }
            guard capacity >= 0 else {
                throw CentralManagerError.invalidOption(
                    "A stream's capacity is zero or more elements, not \(capacity).")
            }
            request = try makeRequest()
        } catch {
            return .failed(error)
        }
        // An unlimited stream would grow for as long as peripherals advertise.
        let bound = request.allowsDuplicates ? 1_024 : session.configuration.maximumPeripherals
        let promise = StreamPromise<T>(capacity: capacity == .max ? bound : capacity)
        var refusal: CentralManagerError?
        session.decide { core in
            switch core.state.startScan(request, timeout: timeout, into: &core.shell.orders) {
            case .failure(let error): refusal = error
            case .success(let scan): core.scans.add(scan, Scans.Stream(promise, element))
            }
        }
        return refusal.map { .failed($0) } ?? promise.stream
    }
}
