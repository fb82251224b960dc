import BlueCapBlueZ
import Foundation
import BlueCapFutures

/// The attributes of peripherals: their objects, BlueZ's reports, and calls to BlueZ.
extension CentralSession {
    /// Returns the newest value of an attribute.
    func value(of id: AttributeID, _ key: PeripheralKey) -> Data? {
        use(of: key) { [client] use in
            guard let record = use.state.attributes.table[id] else { return nil }
            let present = record.isPresent ? use.state.status.device.flatMap { AttributeKey($0, record.handle) } : nil
            return present.flatMap { client.daemon.value(of: $0) } ?? record.value
        }
    }

    /// Returns a stream of changes, which ends with the manager or when the peripheral's object is released.
    func stream<T>(
        _ property: ReferenceWritableKeyPath<PeripheralUse, StreamPromise<T>?>, of key: PeripheralKey, capacity: Int
    ) -> FutureStream<T> {
        var promise: StreamPromise<T>?
        _ = decideIfOpen { core in
            let use = core.state.use(of: key)
            promise = use[keyPath: property] ?? StreamPromise(capacity: capacity)
            use[keyPath: property] = promise
        }
        return promise?.stream ?? .ended
    }

    /// Releases the objects of attributes that no longer exist, and finishes their streams. On the loop.
    func releaseAttributes(_ ids: [AttributeID], of key: PeripheralKey) {
        let objects = use(of: key) { $0.weaken(ids) }
        withExtendedLifetime(objects) {}
        for id in ids {
            endNotifications(id, of: key, failure: CharacteristicError.invalidated)
        }
    }

    // MARK: Reports

    func attributeChanged(_ attribute: AttributeKey, _ fields: AttributeFields, in tree: borrowing ObjectTree) {
        if fields.contains(.mtu) {
            let mtu = tree.attribute(attribute)?.mtu
            report(attribute, in: tree) { state, _ in
                state.attributes.mtuChanged(at: AttributeHandle(attribute.handle), mtu)
            }
        }
        if !fields.intersection(.ofDeclaration).isEmpty {
            report(attribute, in: tree) { $0.attributes.objectAppeared(into: &$1) }
        }
    }

    /// Reports a change to the peripheral of an attribute, if the application has used the peripheral. The orders are
    /// executed at the end of the batch: the tree is being read.
    func report(
        _ attribute: AttributeKey, in tree: borrowing ObjectTree,
        _ decision: (inout PeripheralState, inout Orders) -> Void
    ) {
        tree.read(attribute.device) { device in
            core.withLock { core in
                let key = core.state.key(of: attribute.device, at: PeripheralKey(device))
                guard attribute.device.adapter == core.shell.adapter, core.state.hasState(of: key) else { return }
                core.decide(key, decision)
            }
        }
    }

    /// The level of a battery has appeared, changed or disappeared.
    func batteryChanged(_ device: ObjectKey, in tree: borrowing ObjectTree) {
        let level = tree.batteryLevel(of: device)
        report(.battery(of: device), in: tree) { $0.attributes.batteryChanged(level, into: &$1) }
    }
}
