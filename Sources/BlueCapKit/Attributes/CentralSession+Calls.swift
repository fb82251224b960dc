import BlueZ
import Foundation
import GATT
import Reactor

/// Attributes and BlueZ: what it tells of them, and what it is asked to do with them. Everything here runs on the loop.
extension CentralSession {
    /// For how many seconds an answer is waited for. A peer has 30 for each request (Core Specification, Vol 3, Part F,
    /// 3.3.3), after which BlueZ ends the link; requests to one peer wait for each other.
    private static let callLimit = 60.0

    // MARK: What BlueZ tells

    /// Something about an attribute became different.
    func attributeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .attributeAdded(let attribute, _):
            tell(attribute, in: tree) { $0.attributes.objectCame() }
        case .attributeRemoved(let attribute, _):
            tell(attribute, in: tree) { $0.attributes.objectWent(AttributeHandle(attribute.handle)) }
        case .attributeChanged(let attribute, let fields):
            // Nearly all that is told of attributes: what they notify.
            if fields == .value, channels.told(attribute, tree.value(of: attribute)) { return }
            let handle = AttributeHandle(attribute.handle)
            if fields.contains(.isNotifying), let isNotifying = tree.characteristic(attribute)?.isNotifying {
                tell(attribute, in: tree) { state in
                    guard let id = state.attributes.table.id(at: handle) else { return [] }
                    return state.subscriptions.tell(id, .notifyingChanged(isNotifying))
                }
            }
            if fields.contains(.value), let value = tree.value(of: attribute), !channels.told(attribute, value) {
                tell(attribute, in: tree) { state in
                    state.attributes.valueChanged(at: handle, value)
                    return []
                }
            }
            if fields.contains(.mtu) {
                let mtu = tree.characteristic(attribute)?.mtu
                tell(attribute, in: tree) { state in
                    state.attributes.mtuChanged(at: handle, mtu)
                    return []
                }
            }
            if !fields.intersection(.ofDeclaration).isEmpty {
                tell(attribute, in: tree) { $0.attributes.objectCame() }
            }
        case .adapterAdded, .adapterChanged, .adapterRemoved, .deviceAdded, .deviceChanged, .deviceRemoved:
            break
        }
    }

    /// Tells the peripheral that an attribute belongs to, if it was asked for something. What follows is done when the
    /// batch has ended: the tree is being read.
    private func tell(
        _ attribute: AttributeKey, in tree: borrowing ObjectTree,
        _ event: (inout PeripheralState) -> [PeripheralState.Effect]
    ) {
        guard let device = tree.handle(of: attribute.device) else { return }
        let adapter = tree.adapter(of: device)
        tree.read(device) { device in
            let key = PeripheralKey(device)
            core.withLock { core in
                guard adapter == core.link.adapter, core.state.deals(with: key) else { return }
                core.effects.pending += core.state.peripheral(key, event)
            }
        }
    }

    /// A battery's level has come, changed or gone.
    func batteryChanged(_ device: DeviceHandle, in tree: borrowing ObjectTree) {
        guard let key = tree.key(of: device) else { return }
        let level = tree.batteryLevel(of: key)
        _ = channels.told(.battery(of: key), level.map { Data([$0]) })
        tell(.battery(of: key), in: tree) { $0.attributes.batteryChanged(level) }
    }

    // MARK: What BlueZ is asked

    func fence(_ device: ObjectKey, of key: PeripheralKey, link: UInt32) {
        client.connector.fence(device) { [weak self] in
            self?.decideHere(key) { $0.attributes.fencePassed(link: link) }
        }
    }

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
        decide(key) { state in
            let effects = state.attributes.tableRead(declarations, naming: named, link: link)
            for (handle, value, mtu) in values {
                state.attributes.mtuChanged(at: handle, mtu)
                // BlueZ exports an empty value before there is one.
                if let value, !value.isEmpty { state.attributes.valueChanged(at: handle, value) }
            }
            return effects
        }
    }

    func call(_ id: OperationID, of key: PeripheralKey, _ attribute: AttributeKey, _ request: AttributeState.Request) {
        switch request {
        case .read(let offset):
            client.readValue(attribute, offset: offset, timeout: Self.callLimit) { [weak self] result in
                self?.replied(id, of: key, result.map { $0 })
            }
        case .write(let value, let type, let offset):
            client.daemon.writeValue(
                attribute, value, type: type == .withResponse ? .request : .command, offset: offset,
                timeout: Self.callLimit
            ) { [weak self] result in
                self?.replied(id, of: key, result.map { nil })
            }
        case .transfer:
            assertionFailure("A transfer is made of reads and writes.")
        }
    }

    private func replied(_ id: OperationID, of key: PeripheralKey, _ result: Result<Data?, BlueZError>) {
        let now = loop.now
        decideHere(key) { $0.attributes.replied(id, result, at: now) }
    }

    /// Has something decided on the loop, outside any report, and does at once what follows.
    func decideHere(_ key: PeripheralKey, _ event: (inout PeripheralState) -> [PeripheralState.Effect]) {
        let mustDrain = core.withLock { core in
            guard core.state.deals(with: key) else { return false }
            core.effects.pending += core.state.peripheral(key, event)
            return core.effects.mustWake()
        }
        if mustDrain { drain() }
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
