import Foundation
import Futures
import GATT
import Reactor

/// What of a manager outlives its process: read in the beginning, kept while things change.
extension CentralSession {
    /// What was restored, as values and handles.
    struct Restored: Sendable {
        var peripherals: [Peripheral] = []
        var scan: ScanRequest?
    }

    /// Seconds from a change until it is on its way to the disk; what changes meanwhile goes along.
    static let keepingDelay = 0.25
    /// Seconds until a write that failed is tried again.
    static let keepingPatience = 30.0
    /// Seconds until a state is opened again for which the process had no descriptor.
    static let openingPatience = 1.0

    // MARK: Beginning and end; any thread

    /// Has the kept state read, and what was under way wanted again.
    func beginRestoration() {
        guard options.problem == nil, let keeper else {
            let error =
                options.problem
                ?? .invalidOption(
                    "A state is restored for a manager with CBCentralManagerOptionRestoreIdentifierKey among its options."
                )
            complete { self.restoredPromise.failure(error) }
            return
        }
        // Without a thread here the disk's queue may wait for one, and this with it.
        guard loop.start() == nil else { return loop.post { [weak self] in self?.beginRestoration() } }
        guard !core.withLock({ $0.isClosed }) else { return }
        keeper.open { [weak self] opening in self?.restore(opening) }
    }

    /// A manager that ends leaves nothing under way, but links that it was told to keep: with them all is kept.
    /// - Parameter kept: what is to be kept; `nil` for what the file holds already.
    func endRestoration(_ kept: RestorationState?) {
        keeper?.finish(kept)
        complete { self.restoredPromise.failure(CentralManagerError.restoreFailed) }
    }

    // MARK: Restoring

    private func restore(_ opening: RestorationKeeper.Opening) {
        switch opening {
        case .postponed:
            loop.schedule(after: Self.openingPatience) { [weak self] in self?.beginRestoration() }
        case .failed(let error):
            core.withLock { $0.isKeeping = true }
            // Not here: whoever hears of it must not hold up the disk.
            loop.post { self.complete { self.restoredPromise.failure(CentralManagerError(error)) } }
        case .kept(let state):
            let now = loop.now
            let date = loop.date
            _ = decideIfOpen { core in
                core.isKeeping = true
                core.restored = state
                for connection in state.connections { watchRestored(connection.key, in: &core) }
                core.state.restore(state, into: &core.orders)
                listRestored(state, in: &core, at: now, date: date)
            }
        }
    }

    /// Until the application connects the peripheral itself, somebody has to answer what becomes of the connection.
    private func watchRestored(_ key: PeripheralKey, in core: inout Core) {
        guard core.state.readState(of: key, { $0.connection.isWanted }) != true else { return }
        let peripheral = core.handles.hold(key) { Peripheral(session: self, key: key) }
        // The number that its `connect` is going to have.
        let number = (core.state.readState(of: key) { $0.connection.number } ?? 0) + 1
        core.connections[ConnectionName(key: key, number: number)] = ConnectionStream(keeping: peripheral)
    }

    /// Lists the restored peripherals that BlueZ has on the adapter in use.
    private func listRestored(
        _ restored: RestorationState, in core: inout Core, at now: Instant, date: Date
    ) {
        for connection in restored.connections {
            let device = core.device(of: connection.key, in: client)
            core.state.listRestored(connection.key, device: device, at: now, date: date, into: &core.orders)
        }
    }

    /// On the loop.
    func completeRestoration() {
        let now = loop.now
        let date = loop.date
        var restored = Restored()
        decide { core in
            guard let state = core.restored else { return }
            core.restored = nil
            listRestored(state, in: &core, at: now, date: date)
            for connection in state.connections {
                restored.peripherals.append(
                    core.handles.hold(connection.key) { Peripheral(session: self, key: connection.key) })
            }
            restored.scan = state.scan
        }
        complete { [restored] in self.restoredPromise.success(restored) }
    }

    // MARK: Keeping; on the loop

    /// Something may have changed of what is kept.
    func keepSoon() {
        guard keeper != nil, core.withLock({ $0.isKeeping && !$0.isClosed && $0.timers[TimerKey(.keeping)] == nil })
        else {
            return
        }
        start(TimerKey(.keeping), after: Self.keepingDelay)
    }

    /// The time has come to have it written.
    func keepNow() {
        guard let keeper, let kept = core.withLock({ $0.isClosed ? nil : $0.state.kept() }) else { return }
        keeper.keep(kept) { [weak self] in
            guard let self else { return }
            loop.post { self.keepAgain() }
        }
    }

    private func keepAgain() {
        guard core.withLock({ !$0.isClosed && $0.timers[TimerKey(.keeping)] == nil }) else { return }
        start(TimerKey(.keeping), after: Self.keepingPatience)
    }
}

extension ConnectionStream {
    /// Of a restored connection that the application has not taken over: it is wanted until its retries are spent.
    init(keeping peripheral: Peripheral) {
        report = { report in
            switch report {
            case .disconnected, .timedOut: peripheral.reconnect()
            case .connected, .forced, .gaveUp: break
            }
        }
        fail = { _ in withExtendedLifetime(peripheral) {} }
        finish = {}
    }
}

extension ScanRequest {
    /// The options as `startScanning` takes them; those that have their usual values are left out.
    var restoredOptions: [String: AnyObject] {
        var options: [String: AnyObject] = [:]
        if allowsDuplicates { options[CBCentralManagerScanOptionAllowDuplicatesKey] = NSNumber(value: true) }
        if let rssiThreshold { options[CentralManagerScanOptionRSSIThresholdKey] = NSNumber(value: rssiThreshold) }
        if let pattern { options[CentralManagerScanOptionPatternKey] = NSString(string: pattern) }
        if watchdog != ScanRequest().watchdog {
            options[CentralManagerScanOptionWatchdogKey] = NSNumber(value: watchdog ?? 0)
        }
        return options
    }
}

extension CentralManagerError {
    init(_ failure: RestorationFailure) {
        self =
            switch failure {
            case .restoreFailed: .restoreFailed
            case .restoreIdentifierInUse(let path): .restoreIdentifierInUse(path)
            }
    }
}
