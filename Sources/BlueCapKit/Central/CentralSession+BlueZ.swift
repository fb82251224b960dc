import BlueCapBlueZ
import BlueCapFutures
import BlueCapReactor

/// The reports of BlueZ. Everything here runs on the loop.
extension CentralSession {
    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .deviceChanged(let source, let fields, let isAdvertised):
            let linkEnd = fields.contains(.isConnected) ? tree.linkEnd(of: source) : nil
            tree.read(source) {
                deviceChanged(source, $0, fields: fields, isAdvertised: isAdvertised, linkEnd: linkEnd)
            }
            if fields.contains(.battery) { batteryChanged(source, in: tree) }
        case .deviceAdded(let source, let isAdvertised):
            tree.read(source) { deviceChanged(source, $0, fields: $0.fields, isAdvertised: isAdvertised) }
        case .deviceRemoved(let source): tree.read(source) { deviceRemoved(source, $0, in: tree) }
        case .adapterAdded, .adapterChanged, .adapterRemoved:
            adapterReported(change, in: tree)
        case .attributeAdded(let attribute, _):
            report(attribute, in: tree) { $0.attributes.objectAppeared(into: &$1) }
        case .attributeRemoved(let attribute, _):
            let value = tree.value(of: attribute)
            report(attribute, in: tree) {
                $0.attributes.objectDisappeared(AttributeHandle(attribute.handle), value: value, into: &$1)
            }
        case .attributeChanged(let attribute, let fields): attributeChanged(attribute, fields, in: tree)
        }
    }

    func batchEnded() {
        adapterBatchEnded()
        let mustDrain = core.withLock { core in
            core.batchTime = nil
            return core.shell.mustWake()
        }
        if mustDrain { drain() }
    }

    private func deviceRemoved(_ source: ObjectKey, _ device: borrowing Device1, in tree: borrowing ObjectTree) {
        core.withLock { core in
            let key = core.state.key(of: source, at: PeripheralKey(device))
            _ = core.state.peripherals.update(key) { $0.wasRemoved(source, device) }
            if let use = core.state.peripherals.use(of: key), use.state.status.device == source {
                use.state.attributes.keepValues { AttributeKey(source, $0).flatMap { tree.value(of: $0) } }
            }
            guard source.adapter == core.shell.adapter, !core.state.isDuplicate(source, of: key) else { return }
            core.state.statusChanged(LinkStatus(), of: key, into: &core.shell.orders)
            // When the daemon ends, it removes all devices; they may still be in range.
            if client.availability == .ready { core.state.deviceRemoved(key, into: &core.shell.orders) }
        }
    }

    private func deviceChanged(
        _ source: ObjectKey, _ device: borrowing Device1, fields: Device1.Fields, isAdvertised: Bool,
        linkEnd: LinkEnd? = nil, only: ScanNumber? = nil
    ) {
        core.withLock { core in
            guard source.adapter == core.shell.adapter else { return }
            let key = core.state.key(of: source, at: PeripheralKey(device))
            guard device.isConnected || !core.state.isDuplicate(source, of: key) else { return }
            if !fields.isDisjoint(with: .ofStatus) {
                var status = status(of: source, device)
                status.linkEnd = linkEnd
                core.state.statusChanged(status, of: key, into: &core.shell.orders)
            }
            // The clock is read once for each batch.
            let now = core.batchTime ?? loop.now
            core.batchTime = now
            core.state.listWanted(key, device: source, at: now, date: loop.date, into: &core.shell.orders)
            core.state.deviceChanged(
                key, source, device, fields: fields, isAdvertised: isAdvertised, at: now, only: only, date: loop.date,
                into: &core.shell.orders)
        }
    }

    /// A device with a bond that is about to be removed, because its pairing was refused, counts as absent: its link is
    /// encrypted, and no operation may use that.
    private func status(of source: ObjectKey, _ device: borrowing Device1) -> LinkStatus {
        if device.isRefused, device.hasKeys { return LinkStatus() }
        var status = LinkStatus(of: source, device)
        status.shortLinks = client.daemon.shortLinks(of: source)
        return status
    }

    // MARK: Adapters

    func daemonLeft() {}

    func adapterChanged(from old: ObjectKey?, in tree: borrowing ObjectTree) {
        let adapter = core.withLock { $0.shell.adapter }
        // Connected devices are known before the application connects to them.
        if let adapter, adapter != old { leaveOtherAdapters(adapter, in: tree) }
        var statuses: [PeripheralKey: LinkStatus] = [:]
        if let adapter {
            tree.forEachDevice(on: adapter) { source, device in
                let key = core.withLock { $0.state.key(of: source, at: PeripheralKey(device)) }
                // Of two objects with one address, the connected one.
                if statuses[key]?.isConnected != true { statuses[key] = status(of: source, device) }
            }
        }
        decide { $0.state.statusesReplaced(statuses, into: &$0.shell.orders) }
    }

    /// Ends our links and attempts on the previous adapter, if it still exists: its devices cannot be reached from the
    /// new one. Peripherals that the new adapter knows are used there.
    private func leaveOtherAdapters(_ adapter: ObjectKey, in tree: borrowing ObjectTree) {
        for (key, device) in core.withLock({ $0.state.ownLinks(besides: adapter) }) {
            cancelConnect(key)
            if tree.contains(device) { client.connector.disconnect(device) { _ in } }
        }
        tree.forEachDevice(on: adapter) { source, device in
            core.withLock { core in
                let key = core.state.key(of: source, at: PeripheralKey(device))
                _ = core.state.peripherals.update(key) { $0.isPresent(as: source) }
            }
        }
    }

    func adaptersSettled() { syncDiscovery() }

    // MARK: Discovery

    /// Starts and ends discoveries of the client, so that they match the scans and the adapter in use.
    func syncDiscovery() {
        let (adapter, outdated) = core.withLock { core in
            (core.shell.adapter, core.scans.removeOutdated(adapter: core.shell.adapter))
        }
        for id in outdated { stop(id) }
        guard let adapter else { return }
        // The first scan without a discovery: what is reported to it may end others.
        while let (scan, request) = core.withLock({ core in
            core.state.scans.first { core.scans.isMissing($0.id) }.map { ($0.id, $0.request) }
        }) {
            let id = client.discovery.start(
                on: adapter, filter: request.filter, watchdogSeconds: request.watchdog > 0 ? request.watchdog : nil
            ) { [weak self] event in
                self?.discoveryReported(event, for: scan)
            }
            core.withLock { $0.scans.started(id, for: scan, on: adapter) }
            reportPresentDevices(on: adapter, to: scan)
        }
    }

    /// Ends a discovery that was removed from the scans.
    func stop(_ discovery: ScanID) {
        client.discovery.stop(discovery) { [self] in
            core.withLock { $0.scans.ended() }
            completeWaitingForRest()
        }
    }

    private func completeWaitingForRest() {
        let waiting = core.withLock { $0.scans.takeWaiting() }
        if !waiting.isEmpty { complete { for promise in waiting { promise.success(()) } } }
    }

    /// Returns a future that completes when no discovery of this manager runs any more. Any thread.
    func whenScanningStopped() -> Future<Void> {
        let promise = Promise<Void>()
        // Orders that were given earlier are executed first, so that the end of the discovery has been requested.
        loop.post { [self] in
            drain()
            let isWaiting = core.withLock { $0.scans.wait(promise) }
            if !isWaiting { complete { promise.success(()) } }
        }
        return promise.future
    }

    /// Reports the devices with an RSSI: BlueZ is receiving them now, for another scan or another program.
    private func reportPresentDevices(on adapter: ObjectKey, to scan: ScanNumber) {
        client.withTree { tree in
            tree.forEachDevice(on: adapter) { source, device in
                if device.fields.contains(.rssi) {
                    deviceChanged(source, device, fields: [], isAdvertised: true, only: scan)
                }
            }
        }
        batchEnded()
    }

    private func discoveryReported(_ event: ScanEvent, for scan: ScanNumber) {
        switch event {
        case .started:
            break
        case .restarted(let reason):
            // If ranging shares the discovery with the scan, one report suffices.
            let promise = core.withLock { core -> StreamPromise<ScanRestart>? in
                guard (core.state.scan(ranging: false)?.id ?? scan) == scan else { return nil }
                core.counter.scanRestarted()
                return core.streams.restarts
            }
            log?.noteRestart(ScanRestart(reason), of: self)
            if let promise { complete { promise.success(ScanRestart(reason)) } }
        case .failed(let error):
            core.withLock { $0.scans.failed(scan) }
            decide { $0.state.endScan(scan, CentralManagerError(error), into: &$0.shell.orders) }
            completeWaitingForRest()
        }
    }
}

extension CentralManagerError: SessionError {
    /// Creates the manager's error for a BlueZ error of a discovery.
    init(_ error: BlueZError) {
        self =
            switch error.cause {
            case .notReady, .blocked: .isPoweredOff
            case .accessDenied: .unauthorized
            default: .scanFailed(BusError(name: error.name, message: error.message))
            }
    }
}
