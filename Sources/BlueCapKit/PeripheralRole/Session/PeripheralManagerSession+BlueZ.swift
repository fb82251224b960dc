import BlueZ
import GATT

/// Where BlueZ's changes come in. Everything here runs on the loop.
extension PeripheralManagerSession {
    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterAdded, .adapterChanged, .adapterRemoved:
            adapterReported(change, in: tree)
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

    func batchEnded() { adapterBatchEnded() }

    func adapterChanged(from old: ObjectKey?, in tree: borrowing ObjectTree) {
        let adapter = core.withLock { $0.shell.adapter }
        guard adapter != old else { return }
        if let adapter {
            decide { core in
                // What is registered on an adapter that is gone waits there for its return; the same one, as often as not.
                if let place = core.place, place != adapter { core.order(core.state.placeChanged()) }
                core.place = adapter
            }
        }
        recountCentrals(in: tree)
    }

    func adaptersSettled() {}
    func daemonLeft() { centralsLeft() }

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
