import BlueCapKit
import Foundation

/// Beginning, end, and coming back.
extension BluejaySession {
    func start(_ mode: StartMode, observer: (any ConnectionObserver)?) {
        guard !core.withLock({ $0.machine.isStarted }) else { return }
        if let observer { register(observer) }
        switch mode {
        case .new(let options):
            var managerOptions = options.managerOptions
            managerOptions[CBCentralManagerOptionRestoreIdentifierKey] = options.backgroundRestore.identifier
            start(with: CentralManager(options: managerOptions), options.backgroundRestore)
            if options.backgroundRestore.identifier != nil { watchForRestoration() }
        case .use(let manager, let peripheral):
            start(with: manager, .disable)
            switch peripheral?.state {
            case .connected, .connecting:
                decide { core in
                    core.peripheral = peripheral
                    return core.machine.tookOver()
                }
            case .disconnected, .disconnecting, nil:
                break
            }
        }
    }

    private func start(with manager: CentralManager, _ mode: BackgroundRestoreMode) {
        let (restorer, backgroundRestorer) = (mode.restorer, mode.backgroundRestorer)
        var number = 0
        var token = CancelToken()
        // Let go of after the lock.
        var last: CentralManager?
        defer { withExtendedLifetime(last) {} }
        decide { core in
            // Somebody else may have been faster.
            guard !core.machine.isStarted else { return [] }
            core.start += 1
            last = core.manager
            core.manager = manager
            (core.restorer, core.backgroundRestorer) = (restorer, backgroundRestorer)
            core.isRestorationEnabled = mode.identifier != nil
            core.stateToken = CancelToken()
            (number, token) = (core.start, core.stateToken)
            return core.machine.started()
        }
        guard number > 0 else { return }
        log("Started.")
        manager.whenStateChanges().onSuccess(context: ImmediateContext(), cancelToken: token) {
            [weak self, number] state in
            self?.stateChanged(state, of: number)
        }
    }

    private func stateChanged(_ state: ManagerState, of start: Int) {
        guard state != .unknown else { return }
        decide { core in core.start == start ? core.machine.availabilityChanged(state == .poweredOn) : [] }
    }

    /// Everything that is under way fails with `stopped`. Gives what Bluejay has worked with.
    @discardableResult
    func stop() -> (manager: CentralManager, peripheral: Peripheral?)? {
        var extracted: (manager: CentralManager, peripheral: Peripheral?)?
        var token = CancelToken()
        decide { core in
            guard let manager = core.manager else { return [] }
            extracted = (manager, core.machine.connection == .connected ? core.peripheral : nil)
            token = core.stateToken
            return core.machine.stopped()
        }
        guard let extracted else { return nil }
        log("Stopped.")
        extracted.manager.whenStateChanges().cancel(token)
        // After what was just decided has been done, which needs them.
        work { _ in [.call { self.forget(extracted.manager) }] }
        return extracted
    }

    private func forget(_ manager: CentralManager) {
        let dropped = core.withLock { core -> (CentralManager?, Peripheral?, DiscoveredPeripherals)? in
            // It may have been started with the same one again.
            guard core.manager === manager, !core.machine.isStarted else { return nil }
            defer { (core.manager, core.peripheral, core.discovered) = (nil, nil, DiscoveredPeripherals()) }
            return (core.manager, core.peripheral, core.discovered)
        }
        withExtendedLifetime(dropped) {}
    }

    // MARK: Restoration

    private func watchForRestoration() {
        guard let (manager, start) = core.withLock({ core in core.manager.map { ($0, core.start) } }) else { return }
        let restoration: Future<(peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])> =
            manager.whenStateRestored()
        restoration.onSuccess(context: ImmediateContext()) { [weak self] peripherals, _, _ in
            self?.restored(peripherals, of: start)
        }
        restoration.onFailure(context: ImmediateContext()) { [weak self, weak manager] error in
            // A manager that is released before it has restored fails too.
            guard let self, core.withLock({ $0.start == start && $0.machine.isStarted }) else { return }
            let reason = manager?.stateRestorationFailure ?? error.localizedDescription
            log("Nothing was restored: \(reason)")
        }
    }

    private func restored(_ peripherals: [Peripheral], of start: Int) {
        guard let peripheral = peripherals.first else { return }
        // An identifier is one Bluejay's, and a Bluejay has one connection.
        for other in peripherals.dropFirst() { other.terminate() }
        let listens = peripheral.restoredSubscriptions
        var isWanted = false
        work { core in
            guard core.start == start else { return [] }
            let effects = core.machine.tookOver()
            // The application may have been faster, and wants the same one.
            isWanted = !effects.isEmpty || core.wants(peripheral)
            guard isWanted else { return [] }
            if !effects.isEmpty {
                core.peripheral = peripheral
                if core.backgroundRestorer != nil { core.restoration = Restoration(attempt: core.machine.attempt) }
            }
            // The restorer is asked before anybody hears of the connection.
            return [.call { self.call { self.askRestorer(about: listens, of: peripheral) } }]
                + effects.map { .effect($0) }
        }
        if isWanted { limitRestoration() } else { peripheral.terminate() }
    }

    /// On the callback queue.
    private func askRestorer(about listens: [CharacteristicIdentifier], of peripheral: Peripheral) {
        let restorer = core.withLock { $0.restorer }
        for identifier in listens {
            if let restorer, restorer.willRestoreListen(on: identifier) {
                if restorer.receivesUnhandledListens { restoreUnhandledListen(to: identifier, of: peripheral) }
                continue
            }
            peripheral.forgetRestoredSubscription(to: identifier)
            // It may have been taken up already, also before Bluejay has heard of the link: so it is not asked for a turn.
            peripheral.stopNotifications(identifier)
        }
    }

    func restoreListen(_ listen: Listen) {
        var failure: BluejayError?
        var isConnected = false
        core.withLock { core in
            guard core.machine.isStarted else {
                failure = .stopped
                return
            }
            isConnected = core.machine.connection == .connected
            guard !isConnected else { return }
            if core.machine.willBeConnected { core.restoredListens.append(listen) } else { failure = .notConnected }
        }
        if let failure { listen.receive(.failure(failure)) }
        if isConnected { begin(listen, by: caller) }
    }
}

extension BluejaySession.Core {
    /// Whether the application has the peripheral connected, or has asked for that.
    fileprivate func wants(_ wanted: Peripheral) -> Bool {
        requests.values.contains { $0.target == wanted.identifier }
            || peripheral === wanted && machine.connection.isThereOrTried
    }
}
