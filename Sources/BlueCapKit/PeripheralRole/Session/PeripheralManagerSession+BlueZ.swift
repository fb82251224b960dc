import BlueZ
import DBus
import GATT

/// Where BlueZ's changes come in. Everything here runs on the loop.
extension PeripheralManagerSession: BlueZObserver {
    func availabilityChanged(_ availability: Availability, in client: BlueZClient) {
        if availability == .ready {
            client.withTree { adaptersChanged(in: $0) }
        } else {
            core.withLock { $0.choice.allWent() }
            tell(core.withLock { $0.standing.capabilitiesChanged(to: nil) })
            centralsLeft()
        }
        decide { core in
            core.standing.reach = Explanation.of(availability)
            return core.state.event(.reached(.init(availability)))
        }
    }

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterRemoved(let key):
            // An adapter that goes with its daemon has not been pulled out.
            if client.availability == .ready { adapterChanged(key, in: tree) }
        case .adapterAdded(let key):
            adapterChanged(key, in: tree)
        case .adapterChanged(let key, let fields):
            if !fields.isDisjoint(with: [.isPowered, .powerState, .address, .capabilities]) {
                adapterChanged(key, in: tree)
            }
        case .deviceChanged(let handle, let fields, _):
            if fields.contains(.isConnected) { connectionChanged(of: handle, in: tree) }
        case .deviceAdded(let handle, _):
            if tree[handle].isConnected { connectionChanged(of: handle, in: tree) }
        case .deviceRemoved(let handle):
            deviceRemoved(handle, in: tree)
        case .attributeAdded, .attributeChanged, .attributeRemoved:
            break
        }
    }

    func batchEnded() {
        if core.withLock({ $0.choice.isOutdated }) { client.withTree { adaptersChanged(in: $0) } }
    }

    private func adapterChanged(_ key: ObjectKey, in tree: borrowing ObjectTree) {
        if core.withLock({ $0.choice.concerns(key, current: $0.adapter, in: tree) }) { adaptersChanged(in: tree) }
    }

    private func adaptersChanged(in tree: borrowing ObjectTree) {
        let keys = AdapterChoice.candidates(in: tree)
        let values = keys.mapValues { tree[adapter: $0] }
        let before = core.withLock { $0.adapter }
        var news: BluetoothCapabilities?
        decide { core in
            let choice = core.choice.choose(from: Array(keys.keys))
            let adapter = choice.flatMap { keys[$0] }
            // What is registered on an adapter that is gone waits there for its return; the same one, as often as not.
            let hasMoved = adapter != nil && core.place != nil && adapter != core.place
            if let adapter { core.place = adapter }
            core.adapter = adapter
            let used = choice.flatMap { values[$0] } ?? nil
            let isPowered = used?.isPowered
            news = core.standing.capabilitiesChanged(to: used?.capabilities)
            core.standing.adapter = Explanation.of(
                choice, isPowered: isPowered, used?.powerState, wanted: options.adapter,
                present: keys.keys.map(\.name).sorted())
            return (hasMoved ? core.state.placeChanged() : []) + core.state.event(.adapterPower(isPowered))
        }
        // The state is told behind this, by the loop.
        tell(news)
        if core.withLock({ $0.adapter }) != before { recountCentrals(in: tree) }
    }

    private func tell(_ capabilities: BluetoothCapabilities?) {
        if let capabilities { complete { self.capabilitiesPromise.success(capabilities) } }
    }

    /// The central that BlueZ speaks of.
    func central(_ peer: ServerPeer?) -> Central {
        var type: BluetoothAddress.AddressType?
        if let device = peer?.device {
            client.withTree { tree in
                guard let handle = tree.handle(of: device) else { return }
                tree.read(handle) { type = $0.addressType }
            }
        }
        return Central(address: peer?.address, type: type, mtu: peer?.mtu)
    }
}
