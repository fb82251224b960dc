import BlueZ
import Futures
import GATT

/// Who comes and goes. But for the getters everything runs on the loop.
extension PeripheralManagerSession {
    var centrals: [Central] { core.withLock { $0.roll.centrals } }

    /// A device is there, or has changed in whether it is connected.
    func connectionChanged(of handle: DeviceHandle, in tree: borrowing ObjectTree) {
        guard let key = tree.key(of: handle), tree.adapter(of: handle) == core.withLock({ $0.shell.adapter }) else {
            return
        }
        var isConnected = false
        var central: Central?
        tree.read(handle) { device in
            isConnected = device.isConnected
            if isConnected { central = Central(address: device.address, type: device.addressType, mtu: nil) }
        }
        change { roll in
            if isConnected, let central { roll.connected(key, central) } else { roll.disconnected(key) }
        }
    }

    func deviceRemoved(_ handle: DeviceHandle, in tree: borrowing ObjectTree) {
        guard let key = tree.key(of: handle) else { return }
        change { $0.disconnected(key) }
    }

    /// The adapter is another one now, or there is none.
    func recountCentrals(in tree: borrowing ObjectTree) {
        change { $0.leftAll() }
        tree.forEachDevice { connectionChanged(of: $0, in: tree) }
    }

    func centralsLeft() { change { $0.leftAll() } }

    private func change(_ decision: (inout CentralRoll) -> Bool) {
        let centrals = core.withLock { core in decision(&core.roll) ? core.roll.centrals : nil }
        if let centrals { complete { self.centralPromise.success(centrals) } }
    }
}
