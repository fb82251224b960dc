import BlueZ
import Foundation
import Reactor

/// Counts for ``CentralStatistics`` and ``PeripheralStatistics``, from the orders that the session executes.
struct CentralCounter {
    /// What is counted of one peripheral. It exists from the first link or operation on, as long as the peripheral's object.
    struct OfPeripheral {
        var counts = PeripheralStatistics()
        /// When the present attempt to connect began.
        var attemptBegan: Instant?
        /// When the present link began.
        var linkBegan: Instant?
        /// When the last link began, and when the last one has ended.
        var connectedAt = Date.distantPast
        var disconnectedAt = Date.distantPast
        var timeouts: UInt = 0
        private var secondsOfLast: Double = 0

        /// Adds what goes on at this time.
        func statistics(at now: Instant) -> PeripheralStatistics {
            var statistics = counts
            if let linkBegan { statistics.secondsConnected += now.seconds(since: linkBegan) }
            return statistics
        }

        /// Returns the seconds of the present link, or else of the last one.
        func secondsConnected(at now: Instant) -> Double { linkBegan.map { now.seconds(since: $0) } ?? secondsOfLast }

        /// Returns the seconds of the link that has ended; `nil` if there was none.
        fileprivate mutating func linkEnded(at now: Instant, date: Date) -> Double? {
            guard let began = linkBegan.take() else { return nil }
            disconnectedAt = date
            secondsOfLast = now.seconds(since: began)
            return secondsOfLast
        }
    }

    private struct Transfer {
        let isRead: Bool
        let began: Instant
    }

    private var counts = CentralStatistics()
    private var scans: [ScanNumber: Instant] = [:]
    private var transfers: [OperationID: Transfer] = [:]

    static func statistics(of core: borrowing CentralSession.Core, at now: Instant) -> CentralStatistics {
        var statistics = core.counter.counts
        statistics.interruptions = core.shell.interruptions
        statistics.scansRunning = core.counter.scans.count
        for began in core.counter.scans.values { statistics.scanSeconds += now.seconds(since: began) }
        for key in core.objects.entries.keys {
            guard let began = core.objects.entries[key]?.counter?.linkBegan else { continue }
            statistics.peripherals.secondsConnected += now.seconds(since: began)
        }
        statistics.peripherals.operationsPending = core.completions.count
        return statistics
    }

    static func statistics(
        of key: PeripheralKey, in core: borrowing CentralSession.Core, at now: Instant
    ) -> PeripheralStatistics {
        var statistics = core.objects.entries[key]?.counter?.statistics(at: now) ?? PeripheralStatistics()
        statistics.operationsPending = core.completions.values.count { $0.peripheral == key }
        return statistics
    }

    // MARK: What is not an order

    mutating func reported(_ count: Int) { counts.reports += count }
    mutating func scanRestarted() { counts.scanRestarts += 1 }

    mutating func attemptFailed(_ key: PeripheralKey, in objects: inout PeripheralObjects) {
        // BlueZ also replies with an error to attempts whose links are up.
        guard withCounter(of: key, in: &objects, { $0.attemptBegan.take() }) != nil else { return }
        count(key, in: &objects) { $0.connectionAttemptsFailed += 1 }
    }

    /// - Parameter values: `nil` is a gap.
    mutating func notified(_ values: [Data?], by key: PeripheralKey, in objects: inout PeripheralObjects) {
        let gaps = values.count { $0 == nil }
        count(key, in: &objects) {
            $0.notifications += values.count - gaps
            $0.notificationGaps += gaps
        }
    }

    // MARK: Orders

    /// Counts an order when it is executed.
    mutating func count(
        _ order: Order, in objects: inout PeripheralObjects, at now: @autoclosure () -> Instant,
        date: @autoclosure () -> Date
    ) {
        let key = order.subject.peripheral
        switch order.action {
        case .startScan(let scan, _):
            guard scans[scan] == nil else { return }
            scans[scan] = now()
            counts.scansStarted += 1
        case .stopScan(let scan), .finishScan(let scan, nil): endScan(scan, at: now())
        case .finishScan(let scan, .some):
            counts.scansFailed += 1
            endScan(scan, at: now())
        case .reported, .ranged: counts.reports += 1

        case .callConnect:
            count(key, in: &objects) { $0.connectionAttempts += 1 }
            withCounter(of: key, in: &objects) { $0.attemptBegan = now() }
        case .linkWentUp: linkWentUp(key, in: &objects, at: now(), date: date())
        case .linkWentDown:
            guard let seconds = withCounter(of: key, in: &objects, { $0.linkEnded(at: now(), date: date()) }) else {
                return
            }
            count(key, in: &objects) {
                $0.connected -= 1
                $0.disconnections += 1
                $0.secondsConnected += seconds
            }
        case .report(_, let report) where report.error == .connectionTimeout:
            withCounter(of: key, in: &objects) { $0.timeouts += 1 }

        // A long value has several calls for one operation.
        case .read(let id, _, _, _): if transfers[id] == nil { transfers[id] = Transfer(isRead: true, began: now()) }
        case .write(let id, _, _, _, _, _):
            if transfers[id] == nil { transfers[id] = Transfer(isRead: false, began: now()) }
        case .settle(let id, let outcome):
            let transfer = transfers.removeValue(forKey: id)
            if case .failed(let failure) = outcome {
                count(key, in: &objects) { $0.failures.add(failure) }
            } else if let transfer {
                let seconds = now().seconds(since: transfer.began)
                count(key, in: &objects) {
                    if transfer.isRead { $0.reading.add(seconds) } else { $0.writing.add(seconds) }
                }
            }
        default: break
        }
    }

    private mutating func endScan(_ scan: ScanNumber, at now: Instant) {
        guard let began = scans.removeValue(forKey: scan) else { return }
        counts.scanSeconds += now.seconds(since: began)
    }

    private mutating func linkWentUp(
        _ key: PeripheralKey, in objects: inout PeripheralObjects, at now: Instant, date: Date
    ) {
        let attemptBegan = withCounter(of: key, in: &objects) { counter in
            (counter.linkBegan, counter.connectedAt) = (now, date)
            return counter.attemptBegan.take()
        }
        count(key, in: &objects) {
            $0.connected += 1
            $0.connections += 1
            if let attemptBegan { $0.connecting.add(now.seconds(since: attemptBegan)) }
        }
    }

    /// Changes the numbers of the peripheral, and those of all peripherals.
    private mutating func count(
        _ key: PeripheralKey, in objects: inout PeripheralObjects, _ change: (inout PeripheralStatistics) -> Void
    ) {
        change(&counts.peripherals)
        if key.rawValue != 0 { withCounter(of: key, in: &objects) { change(&$0.counts) } }
    }

    @discardableResult
    private func withCounter<R>(
        of key: PeripheralKey, in objects: inout PeripheralObjects, _ change: (inout OfPeripheral) -> R
    ) -> R {
        let hasObject = objects.references[key] != nil
        return objects.withEntry(of: key) { entry in
            var counter = entry.counter ?? OfPeripheral()
            defer { if hasObject { entry.counter = counter } }
            return change(&counter)
        }
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
