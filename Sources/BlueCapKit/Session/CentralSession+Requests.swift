import BlueZ
import Foundation
import Futures
import GATT
import Reactor

/// What users ask for, on any thread.
extension CentralSession {
    var managerState: ManagerState {
        tryAgain()
        return core.withLock { $0.state.managerState }
    }
    var isScanning: Bool { core.withLock { $0.state.scan != nil } }

    var peripherals: [Peripheral] {
        core.withLock { core in
            core.state.peripherals.listed { $0.discoveredAt }.sorted { $0.part < $1.part }
                .compactMap { core.handles[$0.key] }
        }
    }

    // MARK: Scanning

    func startScanning(
        services: [CBUUID]?, capacity: Int, timeout: TimeInterval, options: [String: Any]?
    ) -> FutureStream<Peripheral> {
        startScan(services: services, capacity: capacity, timeout: timeout, options: options, in: \.scans)
    }

    func startScanningForReports(
        services: [CBUUID]?, capacity: Int, timeout: TimeInterval, options: [String: Any]?
    ) -> FutureStream<ScanReport> {
        startScan(
            services: services, capacity: capacity, timeout: timeout, options: options, wantsReports: true,
            in: \.reportScans)
    }

    /// Begins a scan whose stream is kept in `table`.
    private func startScan<T: Sendable>(
        services: [CBUUID]?, capacity: Int, timeout: TimeInterval, options: [String: Any]?, wantsReports: Bool = false,
        in table: WritableKeyPath<Core, [ScanNumber: StreamPromise<T>]>
    ) -> FutureStream<T> {
        var request: ScanRequest
        do {
            if let problem = self.options.problem { throw problem }
            guard timeout >= 0 else {
                throw CentralManagerError.invalidOption("A scan's timeout is zero or more seconds, not \(timeout).")
            }
            guard capacity >= 0 else {
                throw CentralManagerError.invalidOption(
                    "A stream's capacity is zero or more elements, not \(capacity).")
            }
            request = try ScanRequest(services: services, options: options)
            request.wantsReports = wantsReports
        } catch {
            return .failed(error)
        }
        let promise = StreamPromise<T>(capacity: bounded(capacity, for: request))
        var refusal: CentralManagerError?
        decide { core in
            switch core.state.startScan(request, timeout: timeout, into: &core.orders) {
            case .failure(let error): refusal = error
            case .success(let scan): core[keyPath: table][scan] = promise
            }
        }
        return refusal.map { .failed($0) } ?? promise.stream
    }

    /// A stream that kept everything would grow for as long as somebody advertises.
    private func bounded(_ capacity: Int, for request: ScanRequest) -> Int {
        guard capacity == .max else { return capacity }
        return request.allowsDuplicates ? 1_024 : options.maximumPeripherals
    }

    func stopScanning() { decide { $0.state.stopScan(into: &$0.orders) } }

    func whenScanningStopped() -> Future<Void> {
        let promise = Promise<Void>()
        // What was decided before is done before: the discovery's end is under way when this comes to its turn.
        loop.post { [self] in
            drain()
            let isAtRest = core.withLock { core in
                if core.link.stopping > 0 || !core.link.discoveries.isEmpty {
                    core.link.waiting.append(promise)
                    return false
                }
                return true
            }
            if isAtRest { complete { promise.success(()) } }
        }
        return promise.future
    }

    var stateExplanation: String { standing.explanation }

    /// The state, and why it is that: both of one moment.
    var standing: (state: ManagerState, explanation: String) {
        core.withLock { ($0.state.managerState, options.problem?.description ?? $0.standing.explanation) }
    }

    // MARK: Peripherals

    /// Takes peripherals off the list. What is under way with them goes on.
    func remove(where isRemoved: (PeripheralKey) -> Bool) {
        decide { core in
            for (key, _) in core.state.peripherals.listed({ _ in }) where isRemoved(key) {
                core.state.forget(key, into: &core.orders)
            }
        }
    }

    /// Reads a peripheral's device in place; `nil` if nothing is known of it.
    ///
    /// - Parameter body: Runs under locks: it calls no code of a user.
    func read<R>(_ key: PeripheralKey, _ body: (borrowing Device1) -> R?) -> R? {
        core.withLock { $0.read(key, in: client, body) }
    }

    func discoveredAt(_ key: PeripheralKey) -> Date {
        core.withLock { $0.state.read(key) { $0.discoveredAt } } ?? .distantPast
    }

    func lastHeardAt(_ key: PeripheralKey) -> Date {
        let now = (instant: loop.now, date: loop.date)
        let heard = core.withLock { $0.state.read(key) { $0.lastHeard } } ?? nil
        return heard.map { now.date.addingTimeInterval(-now.instant.seconds(since: $0)) } ?? .distantPast
    }

    func interval(of key: PeripheralKey) -> TimeInterval? {
        let interval = core.withLock { $0.state.read(key) { $0.interval } } ?? 0
        return interval > 0 ? interval : nil
    }

    /// A handle has died.
    func released(_ key: PeripheralKey) {
        let (successor, attributes, services) = core.withLock { core in
            let successor = core.handles.forget(key)
            guard successor == nil else {
                return (successor, AttributeHandles?.none, StreamPromise<Peripheral>?.none)
            }
            core.state.release(key)
            if core.connectionCalls[key]?.isIdle == true { core.connectionCalls[key] = nil }
            return (nil, core.attributeHandles.removeValue(forKey: key), core.serviceStreams.removeValue(forKey: key))
        }
        if let services { complete { services.finish() } }
        if successor == nil { endForgottenNotifications(of: key) }
        withExtendedLifetime((successor, attributes)) {}
    }
}

extension CentralSession.Core {
    /// The device of a peripheral on the adapter in use; `nil` if BlueZ has none there.
    func device(of key: PeripheralKey, in client: BlueZClient) -> ObjectKey? {
        guard let adapter = link.adapter, let device = ObjectKey(device: key.address, on: adapter) else { return nil }
        return client.daemon.readDevice(device) { _ in device }
    }

    /// Reads a peripheral's device in place. The tree's lock is taken inside that of the session, never the other way round;
    /// so a device that BlueZ removes is found either in the tree or in its record.
    mutating func read<R>(_ key: PeripheralKey, in client: BlueZClient, _ body: (borrowing Device1) -> R?) -> R? {
        state.read(key) { record in
            if let last = record.lastValues { return body(last.device) }
            return client.daemon.readDevice(record.device, body)
        }
    }
}

extension FutureStream {
    /// A stream with one failure, finished.
    static func failed(_ error: any Error) -> FutureStream<T> {
        let promise = StreamPromise<T>(capacity: 1)
        promise.failure(error)
        promise.finish()
        return promise.stream
    }
}
