import BlueCapBlueZ
import Foundation
import BlueCapReactor

/// Counts for ``CentralStatistics`` and ``PeripheralStatistics``, from the orders that the session executes.
struct CentralCounter {
    /// What is counted of one peripheral, as long as the application uses it.
    struct OfPeripheral {
        var counts = PeripheralStatistics()
        /// How many attempts to connect were given up after their time limit.
        var timeouts: UInt = 0
        /// When the present attempt to connect began.
        var attemptBegan: Instant?
        /// When the present link began.
        var linkBegan: Instant?
        /// When the newest link began; in the distant past before the first.
        var connectedAt = Date.distantPast
        /// When the last link ended that has ended.
        var disconnectedAt = Date.distantPast
        /// The duration of the last link that has ended.
        var secondsOfLast: TimeInterval = 0

        /// Adds what goes on at this time.
        func statistics(at now: Instant) -> PeripheralStatistics {
            var statistics = counts
            if let linkBegan { statistics.secondsConnected += now.seconds(since: linkBegan) }
            return statistics
        }

        /// Begins again. A present link is counted further.
        mutating func reset() {
            let connected = counts.connected
            self = OfPeripheral(attemptBegan: attemptBegan, linkBegan: linkBegan, connectedAt: connectedAt)
            counts.connected = connected
        }

        /// Returns the seconds of the present link, or else of the last one.
        func secondsConnected(at now: Instant) -> TimeInterval {
            linkBegan.map { now.seconds(since: $0) } ?? secondsOfLast
        }
    }

    private var counts = CentralStatistics()
    private var scans: [ScanNumber: Instant] = [:]
    private var transfers = KeyedTable<OperationID, (isRead: Bool, began: Instant)>()

    static func statistics(of core: borrowing CentralCore, at now: Instant) -> CentralStatistics {
        var statistics = core.counter.counts
        statistics.interruptions = core.shell.interruptions
        statistics.scansRunning = core.counter.scans.count
        for began in core.counter.scans.values { statistics.scanSeconds += now.seconds(since: began) }
        for (_, use) in core.state.peripherals.used {
            guard let began = use.counter.linkBegan else { continue }
            statistics.peripherals.secondsConnected += now.seconds(since: began)
        }
        statistics.peripherals.operationsPending = core.completions.count
        return statistics
    }

    static func statistics(
        of key: PeripheralKey, in core: inout CentralCore, at now: Instant
    ) -> PeripheralStatistics {
        var statistics = core.state.peripherals.use(of: key)?.counter.statistics(at: now) ?? PeripheralStatistics()
        statistics.operationsPending = core.completions.count { $0.peripheral == key }
        return statistics
    }

    // MARK: What is not an order

    mutating func reported(_ count: Int) { counts.reports += count }
    mutating func scanRestarted() { counts.scanRestarts += 1 }

    mutating func attemptFailed(_ use: PeripheralUse?) {
        // BlueZ also replies with an error to attempts whose links are up.
        if use?.counter.attemptBegan.take() != nil { count(use) { $0.connectionAttemptsFailed += 1 } }
    }

    /// - Parameter values: `nil` is a gap.
    mutating func notified(_ values: Int?, by use: PeripheralUse?) {
        count(use) {
            if let values { $0.notifications += values } else { $0.notificationGaps += 1 }
        }
    }

    // MARK: Orders

    mutating func count(_ order: Order, of use: PeripheralUse?, by loop: any EventLoop) {
        func now() -> Instant { loop.now }
        switch order.action {
        case .startScan(let scan, _):
            scans[scan] = now()
            counts.scansStarted += 1
        case .endScan(let scan, let error):
            if error != nil { counts.scansFailed += 1 }
            if let began = scans.removeValue(forKey: scan) { counts.scanSeconds += now().seconds(since: began) }

        case .callConnect:
            count(use) { $0.connectionAttempts += 1 }
            use?.counter.attemptBegan = now()
        case .report(_, let report) where report == .timedOut || report == .gaveUp(after: .timedOut):
            use?.counter.timeouts += 1
        case .linkWentUp: linkWentUp(use, at: now(), loop.date)
        case .linkWentDown: linkWentDown(use, at: now(), loop.date)

        // A long value has several calls for one operation.
        case .read(let id, _, _, _): if transfers[id] == nil { transfers[id] = (true, now()) }
        case .write(let id, _, _, _, _, _): if transfers[id] == nil { transfers[id] = (false, now()) }
        case .settle(let id, let outcome):
            let transfer = transfers.remove(id)
            if case .failed(let failure) = outcome {
                count(use) { $0.failures.add(failure) }
            } else if let transfer {
                let seconds = now().seconds(since: transfer.began)
                count(use) {
                    if transfer.isRead { $0.reading.add(seconds) } else { $0.writing.add(seconds) }
                }
            }
        default: break
        }
    }

    private mutating func linkWentUp(_ use: PeripheralUse?, at now: Instant, _ date: Date) {
        use?.counter.linkBegan = now
        use?.counter.connectedAt = date
        let attemptBegan = use?.counter.attemptBegan.take()
        count(use) {
            $0.connected += 1
            $0.connections += 1
            if let attemptBegan { $0.connecting.add(now.seconds(since: attemptBegan)) }
        }
    }

    private mutating func linkWentDown(_ use: PeripheralUse?, at now: Instant, _ date: Date) {
        guard let use, let began = use.counter.linkBegan.take() else { return }
        let seconds = now.seconds(since: began)
        (use.counter.secondsOfLast, use.counter.disconnectedAt) = (seconds, date)
        count(use) {
            $0.connected -= 1
            $0.disconnections += 1
            $0.secondsConnected += seconds
        }
    }

    /// Changes the numbers of the peripheral, and those of all peripherals.
    private mutating func count(_ use: PeripheralUse?, _ change: (inout PeripheralStatistics) -> Void) {
        change(&counts.peripherals)
        if let use { change(&use.counter.counts) }
    }
}

extension FailureStatistics {
    fileprivate mutating func add(_ failure: PeripheralFailure) {
        switch failure {
        case .peripheral(.connectionTimeout), .peripheral(.serviceDiscoveryTimeout), .peripheral(.runTimeout),
            .characteristic(.readTimeout), .characteristic(.writeTimeout), .characteristic(.notifyTimeout):
            timedOut += 1
        case .peripheral(.disconnected): disconnected += 1
        case .pairing, .peripheral(.pairing), .characteristic(.pairingRequired), .characteristic(.pairingFailed):
            security += 1
        case .cancelled, .peripheral(.forcedDisconnect): cancelled += 1
        default: other += 1
        }
    }
}
