import BlueZ
import Foundation
import Futures
import GATT
import Reactor

/// The attributes of peripherals: their handles, BlueZ's reports, and calls to BlueZ.
extension CentralSession {
    // MARK: Handles; any thread

    /// The handles of the attributes with the ids that `ids` finds in a peripheral's table.
    func handles<Handle: AttributeObject>(
        of peripheral: Peripheral,
        _ memory: WritableKeyPath<AttributeHandles, AttributeHandles.Memory<Handle>>,
        _ ids: (borrowing AttributeTable) -> [AttributeID]
    ) -> [Handle] {
        core.withLock { core in
            let found = core.state.readState(of: peripheral.key) { state in
                ids(state.attributes.table).compactMap { id in state.attributes.table[id].map { (id, $0.uuid) } }
            }
            return (found ?? []).map { id, uuid in
                core.attributeHandles[peripheral.key, default: AttributeHandles()][keyPath: memory].hold(id) {
                    Handle(peripheral: peripheral, id: id, uuid: uuid)
                }
            }
        }
    }

    /// The service of a characteristic, or the characteristic of a descriptor, also if it does not exist any more.
    func parent<Handle: AttributeObject>(
        of id: AttributeID, _ peripheral: Peripheral,
        _ memory: WritableKeyPath<AttributeHandles, AttributeHandles.Memory<Handle>>
    ) -> Handle? {
        core.withLock { core in
            let found = core.state.readState(of: peripheral.key) { state -> (AttributeID, CBUUID)? in
                guard let parent = state.attributes.table[id]?.parent else { return nil }
                return state.attributes.table[parent].map { (parent, $0.uuid) }
            }
            return found.map { id, uuid in
                core.attributeHandles[peripheral.key, default: AttributeHandles()][keyPath: memory].find(id) {
                    Handle(peripheral: peripheral, id: id, uuid: uuid)
                }
            }
        }
    }

    /// Reads the record of an attribute; `nil` if there is none.
    func attribute<R>(
        _ key: PeripheralKey, _ id: AttributeID, _ body: (borrowing AttributeTable.Record) -> R?
    ) -> R? {
        core.withLock { core in
            core.state.readState(of: key) { state in state.attributes.table[id].flatMap { body($0) } }
        }
    }

    /// Reads the table of a peripheral's attributes; `nil` if the application has not used the peripheral.
    func attributes<R>(_ key: PeripheralKey, _ body: (borrowing AttributeTable) -> R?) -> R? {
        core.withLock { core in core.state.readState(of: key) { body($0.attributes.table) } }
    }

    /// Reports changed services until the manager ends, or the handle of the peripheral is released.
    func serviceChanges(of key: PeripheralKey) -> FutureStream<Peripheral> {
        let made = StreamPromise<Peripheral>(capacity: 0)
        let kept = core.withLock { core -> StreamPromise<Peripheral>? in
            guard !core.shell.isClosed else { return nil }
            if let known = core.serviceStreams[key] { return known }
            core.serviceStreams[key] = made
            return made
        }
        if kept == nil { made.finish() }
        return (kept ?? made).stream
    }

    /// Releases the handles of attributes that no longer exist, and finishes their streams. On the loop.
    func releaseAttributes(_ ids: [AttributeID], of key: PeripheralKey) {
        let handles = core.withLock { $0.attributeHandles[key]?.letGo(ids) }
        withExtendedLifetime(handles) {}
        for id in ids {
            endNotifications(
                of: CharacteristicKey(peripheral: key, characteristic: id), failure: CharacteristicError.invalidated)
        }
    }

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
                guard adapter == core.shell.adapter, core.state.hasState(of: key) else { return }
                core.state.peripheral(key, into: &core.shell.orders, decision)
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
        client.readValue(attribute, offset: offset, timeout: Self.callLimit) { [reference] result in
            reference.session?.replied(id, of: key, result.map { $0 })
        }
    }

    func write(
        _ value: Data, to attribute: AttributeKey, _ type: CBCharacteristicWriteType, offset: Int,
        for id: OperationID, of key: PeripheralKey
    ) {
        client.daemon.writeValue(
            attribute, value, type: type == .withResponse ? .request : .command, offset: offset,
            timeout: Self.callLimit
        ) { [reference] result in
            reference.session?.replied(id, of: key, result.map { nil })
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
