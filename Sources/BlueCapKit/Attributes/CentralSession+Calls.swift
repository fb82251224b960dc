import BlueZ
import Foundation
import GATT
import Reactor

/// Attributes in BlueZ: its reports, and calls to it. Everything here runs on the loop.
extension CentralSession {
    /// Seconds until a call without a reply fails. A peer has 30 for each request (Core Specification, Vol 3, Part F,
    /// 3.3.3), after which BlueZ ends the link; requests to one peer wait for each other.
    private static let callLimit = 60.0

    // MARK: Reports

    /// An attribute has appeared, changed or disappeared.
    func attributeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .attributeAdded(let attribute, _):
            report(attribute, in: tree) { $0.attributes.objectAppeared(into: &$1) }
        case .attributeRemoved(let attribute, _):
            report(attribute, in: tree) {
                $0.attributes.objectDisappeared(AttributeHandle(attribute.handle), into: &$1)
            }
        case .attributeChanged(let attribute, let fields):
            // Most reports are notified values.
            if fields == .value, channels.told(attribute, tree.value(of: attribute)) { return }
            let handle = AttributeHandle(attribute.handle)
            if fields.contains(.isNotifying), let isNotifying = tree.characteristic(attribute)?.isNotifying {
                report(attribute, in: tree) { state, orders in
                    guard let id = state.attributes.table.id(at: handle) else { return }
                    state.subscriptionChanged(id, .notifyingChanged(isNotifying), into: &orders)
                }
            }
            if fields.contains(.value), let value = tree.value(of: attribute), !channels.told(attribute, value) {
                report(attribute, in: tree) { state, _ in state.attributes.valueChanged(at: handle, value) }
            }
            if fields.contains(.mtu) {
                let mtu = tree.characteristic(attribute)?.mtu
                report(attribute, in: tree) { state, _ in state.attributes.mtuChanged(at: handle, mtu) }
            }
            if !fields.intersection(.ofDeclaration).isEmpty {
                report(attribute, in: tree) { $0.attributes.objectAppeared(into: &$1) }
            }
        case .adapterAdded, .adapterChanged, .adapterRemoved, .deviceAdded, .deviceChanged, .deviceRemoved:
            break
        }
    }

    /// Reports a change to the peripheral of an attribute, if the application has used the peripheral. The orders are
    /// executed at the end of the batch: the tree is being read.
    private func report(
        _ attribute: AttributeKey, in tree: borrowing ObjectTree,
        _ decision: (inout PeripheralState, inout Orders) -> Void
    ) {
        guard let device = tree.handle(of: attribute.device) else { return }
        let adapter = tree.adapter(of: device)
        tree.read(device) { device in
            let key = PeripheralKey(device)
            core.withLock { core in
                guard adapter == core.link.adapter, core.state.hasState(of: key) else { return }
                core.state.peripheral(key, into: &core.orders, decision)
            }
        }
    }

    /// The level of a battery has appeared, changed or disappeared.
    func batteryChanged(_ device: DeviceHandle, in tree: borrowing ObjectTree) {
        guard let key = tree.key(of: device) else { return }
        let level = tree.batteryLevel(of: key)
        _ = channels.told(.battery(of: key), level.map { Data([$0]) })
        report(.battery(of: key), in: tree) { $0.attributes.batteryChanged(level, into: &$1) }
    }

    // MARK: Calls

    func readTable(of device: ObjectKey, of key: PeripheralKey, link: UInt32) {
        var declarations: [AttributeDeclaration] = []
        var values: [(handle: AttributeHandle, value: Data?, mtu: Int?)] = []
        var named: [CBUUID] = []
        var battery: UInt8?
        client.withTree { tree in
            battery = tree.batteryLevel(of: device)
            if let handle = tree.handle(of: device) { tree.read(handle) { named = $0.uuids } }
            for (attribute, kind) in tree.attributes(of: device) {
                let handle = AttributeHandle(attribute.handle)
                switch kind {
                case .service: declarations += tree.service(attribute).map { AttributeDeclaration(handle, $0) }
                case .characteristic:
                    guard let characteristic = tree.characteristic(attribute) else { continue }
                    declarations.append(AttributeDeclaration(handle, characteristic))
                    values.append((handle, characteristic.value, characteristic.mtu))
                case .descriptor: declarations += tree.descriptor(attribute).map { AttributeDeclaration(handle, $0) }
                }
            }
        }
        if let battery, !declarations.contains(where: { $0.uuid == .battery && $0.kind == .service }) {
            declarations += AttributeDeclaration.virtualBattery
            values.append((.batteryLevel, Data([battery]), nil))
        }
        decide(key) { state, orders in
            state.attributes.tableRead(declarations, naming: named, link: link, into: &orders)
            for (handle, value, mtu) in values {
                state.attributes.mtuChanged(at: handle, mtu)
                // BlueZ exports an empty value before there is one.
                if let value, !value.isEmpty { state.attributes.valueChanged(at: handle, value) }
            }
        }
    }

    func read(_ attribute: AttributeKey, offset: Int, for id: OperationID, of key: PeripheralKey) {
        client.readValue(attribute, offset: offset, timeout: Self.callLimit) { [weak self] result in
            self?.replied(id, of: key, result.map { $0 })
        }
    }

    func write(
        _ value: Data, to attribute: AttributeKey, _ type: CBCharacteristicWriteType, offset: Int,
        for id: OperationID, of key: PeripheralKey
    ) {
        client.daemon.writeValue(
            attribute, value, type: type == .withResponse ? .request : .command, offset: offset,
            timeout: Self.callLimit
        ) { [weak self] result in
            self?.replied(id, of: key, result.map { nil })
        }
    }

    private func replied(_ id: OperationID, of key: PeripheralKey, _ result: Result<Data?, BlueZError>) {
        decideHere(key) { $0.attributes.replied(id, result, at: loop.now, into: &$1) }
    }
}

extension [AttributeDeclaration] {
    fileprivate static func += (list: inout [AttributeDeclaration], declaration: AttributeDeclaration?) {
        if let declaration { list.append(declaration) }
    }
}

extension AttributeDeclaration {
    fileprivate init(_ handle: AttributeHandle, _ service: GattService1) {
        self.init(
            handle: handle, uuid: service.uuid,
            role: .service(isPrimary: service.isPrimary, includes: service.includes.map { AttributeHandle($0) }))
    }

    fileprivate init(_ handle: AttributeHandle, _ characteristic: GattCharacteristic1) {
        self.init(
            handle: handle, uuid: characteristic.uuid,
            role: .characteristic(
                of: AttributeHandle(characteristic.service), properties: characteristic.properties))
    }

    fileprivate init(_ handle: AttributeHandle, _ descriptor: GattDescriptor1) {
        self.init(
            handle: handle, uuid: descriptor.uuid, role: .descriptor(of: AttributeHandle(descriptor.characteristic)))
    }
}
