import BlueZ
import DBus
import Futures
import Reactor

/// Where BlueZ's changes come in. Everything here runs on the loop, except where it says otherwise.
extension CentralSession: BlueZObserver {
    // MARK: Beginning and end

    /// Any thread.
    func open() {
        if let shortage = loop.start() { fail(shortage) }
        let observation = client.observe(self)
        core.withLock { $0.link.observation = observation }
    }

    /// Any thread. Ends the scan and all streams, lets go of everything, and leaves the client last, when that is done.
    func close() {
        var kept: RestorationState?
        decide { core in
            // What has not been restored yet is not ours to end.
            if core.isKeeping, core.restored == nil {
                kept = options.keepsLinks ? core.state.kept() : RestorationState()
            }
            core.isClosed = true
            core.state.stopScan(into: &core.orders)
            core.state.stopRanging(into: &core.orders)
            core.state.closePeripherals(keepingLinks: options.keepsLinks, into: &core.orders)
        }
        endRestoration(kept)
        loop.post {
            self.drain()
            let (observation, handles, attributes) = self.core.withLock { core in
                core.state.forgetAll { self.client.daemon.readDevice($0) { PeripheralTable.LastValues($0) } }
                defer { (core.link.observation, core.attributeHandles) = (nil, [:]) }
                return (core.link.observation, core.handles.letGoOfAll(), core.attributeHandles)
            }
            self.finishStreams()
            self.endAllNotifications()
            self.endAllWriters()
            self.stopAllPollingOfRSSI()
            observation?.cancel()
            withExtendedLifetime((handles, attributes)) {}
        }
    }

    /// Any thread.
    func reset() {
        decide { core in
            core.standing = Standing()
            core.state.reset(into: &core.orders)
        }
        loop.post { [self] in
            drain()
            let old = core.withLock { core in
                defer { core.link.observation = nil }
                core.link.adapter = nil
                return core.link.observation
            }
            guard client.availability == .ready else {
                // The last one who leaves has the way to BlueZ begun anew.
                old?.cancel()
                return open()
            }
            // Without leaving the bus: calls and subscriptions that are under way belong to this connection.
            open()
            old?.cancel()
            client.reload()
        }
    }

    // MARK: BlueZObserver

    func availabilityChanged(_ availability: Availability, in client: BlueZClient) {
        if availability == .ready {
            adaptersChanged()
        } else {
            core.withLock { $0.link.choice.allWent() }
            capabilitiesChanged(to: nil)
        }
        decide { core in
            core.standing.reach = Explanation.of(availability)
            core.state.event(.reached(.init(availability)), into: &core.orders)
        }
    }

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .deviceChanged(let handle, let fields, let isHeard):
            let linkEnd = fields.contains(.isConnected) ? tree.linkEnd(of: handle) : nil
            guard let source = tree.key(of: handle) else { return }
            tree.read(handle) { deviceChanged(source, $0, fields: fields, isHeard: isHeard, linkEnd: linkEnd) }
            if fields.contains(.battery) { batteryChanged(handle, in: tree) }
        case .deviceAdded(let handle, let isHeard):
            guard let source = tree.key(of: handle) else { return }
            tree.read(handle) { deviceChanged(source, $0, fields: $0.fields, isHeard: isHeard) }
        case .deviceRemoved(let handle):
            let key = PeripheralKey(tree[handle])
            if let source = tree.key(of: handle) {
                tree.read(handle) { device in core.withLock { $0.state.valuesEnd(key, source, device) } }
            }
            if core.withLock({ $0.link.adapter }) == tree.adapter(of: handle) {
                decide { $0.state.factsChanged(PeripheralState.Facts(), of: key, into: &$0.orders) }
            }
            // A daemon that goes takes all its devices along; that says nothing of who is about.
            guard client.availability == .ready else { return }
            core.withLock { $0.state.deviceRemoved(key, into: &$0.orders) }
        case .adapterRemoved(let key):
            // Likewise: an adapter that goes with its daemon has not been pulled out.
            guard client.availability == .ready else { return }
            adapterChanged(key, in: tree)
        case .adapterAdded(let key):
            adapterChanged(key, in: tree)
        case .adapterChanged(let key, let fields):
            if !fields.isDisjoint(with: [.isPowered, .powerState, .address, .capabilities]) {
                adapterChanged(key, in: tree)
            }
        case .attributeAdded, .attributeChanged, .attributeRemoved:
            attributeChanged(change, in: tree)
        }
    }

    func batchEnded() {
        // What was notified before the link fell, before word of that.
        deliverNotifications()
        if core.withLock({ $0.link.choice.isOutdated }) { client.withTree { adaptersChanged(in: $0) } }
        let mustDrain = core.withLock { core in
            core.batchTime = nil
            return core.orders.mustWake()
        }
        if mustDrain { drain() }
    }

    private func deviceChanged(
        _ source: ObjectKey, _ device: borrowing Device1, fields: Device1.Fields, isHeard: Bool,
        linkEnd: LinkEnd? = nil, only: ScanNumber? = nil
    ) {
        let key = PeripheralKey(device)
        core.withLock { core in
            guard device.adapter == core.link.adapter else { return }
            if !fields.isDisjoint(with: [.isConnected, .areServicesResolved]) {
                var facts = PeripheralState.Facts(device)
                facts.linkEnd = linkEnd
                core.state.factsChanged(facts, of: key, into: &core.orders)
            }
            if core.state.hasUnlistedRestored {
                core.state.listRestored(key, device: source, at: loop.now, date: loop.date, into: &core.orders)
            }
            // One look at the clock for all that came together.
            let now = core.batchTime ?? loop.now
            core.batchTime = now
            core.state.deviceChanged(
                key, source, device, fields: fields, wasHeard: isHeard, at: now, only: only, date: loop.date,
                into: &core.orders)
        }
    }

    // MARK: Adapters

    private func adapterChanged(_ key: ObjectKey, in tree: borrowing ObjectTree) {
        if core.withLock({ $0.link.choice.concerns(key, current: $0.link.adapter, in: tree) }) {
            adaptersChanged(in: tree)
        }
    }

    private func adaptersChanged() { client.withTree { adaptersChanged(in: $0, isReload: true) } }

    private func adaptersChanged(in tree: borrowing ObjectTree, isReload: Bool = false) {
        let keys = AdapterChoice.candidates(in: tree)
        let (choice, hasMoved) = core.withLock { core in
            let choice = core.link.choice.choose(from: Array(keys.keys))
            let adapter = choice.flatMap { keys[$0] }
            defer { core.link.adapter = adapter }
            return (choice, core.link.adapter != adapter)
        }
        // Who is connected is known before anybody begins to connect.
        if hasMoved { adapterReplaced(in: tree, by: choice.flatMap { keys[$0] }) }
        if isReload || hasMoved { linksReplaced(in: tree, on: choice.flatMap { keys[$0] }) }
        let values = choice.flatMap { keys[$0] }.flatMap { tree[adapter: $0] }
        // Before the state, whose handlers read them.
        capabilitiesChanged(to: values?.capabilities)
        decide { core in
            let isPowered = values?.isPowered
            core.standing.adapter = Explanation.of(
                choice, isPowered: isPowered, values?.powerState, wanted: options.adapter,
                present: keys.keys.map(\.name).sorted())
            core.state.event(.adapterPower(isPowered), into: &core.orders)
        }
        syncDiscovery()
    }

    private func capabilitiesChanged(to new: DaemonCapabilities?) {
        let (news, promise) = core.withLock { ($0.standing.capabilitiesChanged(to: new), $0.streams.capabilities) }
        if let news { complete { promise.success(news) } }
    }

    /// Nothing of ours stays behind on the adapter of before, if that is still there: who is linked to it cannot be reached
    /// from this one. Who is known here already is dealt with here.
    private func adapterReplaced(in tree: borrowing ObjectTree, by adapter: ObjectKey?) {
        guard let adapter else { return }
        for (key, device) in core.withLock({ $0.state.ownLinks(besides: adapter) }) {
            cancelConnect(key)
            if tree.handle(of: device) != nil { client.connector.disconnect(device) { _ in } }
        }
        tree.forEachDevice(on: adapter) { source, device in
            let key = PeripheralKey(device)
            core.withLock { $0.state.found(key, source) }
        }
    }

    private func linksReplaced(in tree: borrowing ObjectTree, on adapter: ObjectKey?) {
        var facts: [PeripheralKey: PeripheralState.Facts] = [:]
        if let adapter {
            tree.forEachDevice(on: adapter) { _, device in
                facts[PeripheralKey(device)] = PeripheralState.Facts(device)
            }
        }
        decide { $0.state.factsReplaced(facts, into: &$0.orders) }
    }

    // MARK: Discovery

    /// From now on the shared discovery works for this scan, or no longer does.
    func discover(_ scan: ScanNumber, _ request: ScanRequest?) {
        core.withLock { $0.link.wishes[scan] = request }
        syncDiscovery()
    }

    /// Makes what the client discovers for us what is wished for, on the adapter in use.
    private func syncDiscovery() {
        let link = core.withLock { $0.link }
        for (scan, discovery) in link.discoveries.sorted(by: { $0.key < $1.key })
        where link.wishes[scan] == nil || discovery.adapter != link.adapter {
            // Without an adapter the scan stays with the one it had: it may come back.
            guard link.wishes[scan] == nil || link.adapter != nil else { continue }
            core.withLock { $0.link.discoveries[scan] = nil }
            stop(discovery)
        }
        guard let adapter = link.adapter else { return }
        for (scan, request) in link.wishes.sorted(by: { $0.key < $1.key })
        where core.withLock({ $0.link.discoveries[scan] == nil }) {
            let id = client.discovery.start(
                on: adapter, filter: request.filter, watchdogSeconds: request.watchdog
            ) { [weak self] event in
                self?.scanTold(event, of: scan)
            }
            core.withLock { $0.link.discoveries[scan] = Link.Discovery(adapter: adapter, id: id) }
            reportWhoIsHeard(to: scan)
        }
    }

    private func stop(_ discovery: Link.Discovery) {
        core.withLock { $0.link.stopping += 1 }
        client.discovery.stop(discovery.id) { [self] in
            core.withLock { $0.link.stopping -= 1 }
            tellWhoWaitsForRest()
        }
    }

    /// Whoever waits for the end of our part in every discovery is told when nothing is being ended any more.
    private func tellWhoWaitsForRest() {
        let waiting = core.withLock { core -> [Promise<Void>] in
            guard core.link.stopping == 0 else { return [] }
            defer { core.link.waiting = [] }
            return core.link.waiting
        }
        if !waiting.isEmpty { complete { for promise in waiting { promise.success(()) } } }
    }

    /// A device that has an RSSI when the scan starts is being heard now, for another scan or another program.
    private func reportWhoIsHeard(to scan: ScanNumber) {
        client.withTree { tree in
            tree.forEachDevice { handle in
                guard let source = tree.key(of: handle) else { return }
                tree.read(handle) { device in
                    if device.fields.contains(.rssi) {
                        deviceChanged(source, device, fields: [], isHeard: true, only: scan)
                    }
                }
            }
        }
        batchEnded()
    }

    private func scanTold(_ event: ScanEvent, of scan: ScanNumber) {
        switch event {
        case .started:
            break
        case .restarted(let reason):
            // Where ranging shares the discovery with the scan, once is enough.
            let isTold = core.withLock { ($0.state.scan?.id ?? scan) == scan }
            let promise = streams.restarts
            if isTold { complete { promise.success(ScanRestart(reason)) } }
        case .failed(let error):
            core.withLock { $0.link.discoveries[scan] = nil }
            decide { $0.state.scanFailed(scan, CentralManagerError(error), into: &$0.orders) }
            tellWhoWaitsForRest()
        }
    }
}

extension PeripheralState.Facts {
    init(_ device: borrowing Device1) {
        self.init(
            device: ObjectKey(device: device.address, on: device.adapter),
            // Of a first connection BlueZ from 5.66 on may tell its services and never that it is there (seen in the radio lab).
            isConnected: device.isConnected || device.areServicesResolved,
            areServicesResolved: device.areServicesResolved)
    }
}

extension CentralManagerError {
    /// What a refusal to discover means to the user of a manager.
    init(_ error: BlueZError) {
        self =
            switch error.cause {
            case .notReady, .blocked: .isPoweredOff
            case .accessDenied: .unauthorized
            default: .scanFailed(BusFailure(name: error.name, message: error.message))
            }
    }
}
