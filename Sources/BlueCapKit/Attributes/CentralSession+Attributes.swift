import BlueZ
import Foundation
import Futures
import GATT
import Reactor

/// What users ask of services, characteristics and descriptors, and what follows from it.
extension CentralSession {
    // MARK: Handles; any thread

    /// The services of a peripheral with the ids that are found in its table.
    func services(
        of peripheral: Peripheral, _ ids: (borrowing AttributeTable) -> [AttributeID]
    ) -> [Service] {
        handles(peripheral, ids) { handles, id, uuid in
            handles.services.hold(id) { Service(peripheral: peripheral, id: id, uuid: uuid) }
        }
    }

    /// The characteristics of a peripheral with the ids that are found in its table.
    func characteristics(
        of peripheral: Peripheral, _ ids: (borrowing AttributeTable) -> [AttributeID]
    ) -> [Characteristic] {
        handles(peripheral, ids) { handles, id, uuid in
            handles.characteristics.hold(id) { Characteristic(peripheral: peripheral, id: id, uuid: uuid) }
        }
    }

    /// The descriptors of a peripheral with the ids that are found in its table.
    func descriptors(
        of peripheral: Peripheral, _ ids: (borrowing AttributeTable) -> [AttributeID]
    ) -> [Descriptor] {
        handles(peripheral, ids) { handles, id, uuid in
            handles.descriptors.hold(id) { Descriptor(peripheral: peripheral, id: id, uuid: uuid) }
        }
    }

    private func handles<Handle>(
        _ peripheral: Peripheral, _ ids: (borrowing AttributeTable) -> [AttributeID],
        _ handle: (inout AttributeHandles, AttributeID, CBUUID) -> Handle
    ) -> [Handle] {
        core.withLock { core in
            let found = core.state.readState(of: peripheral.key) { state in
                ids(state.attributes.table).compactMap { id in state.attributes.table[id].map { (id, $0.uuid) } }
            }
            return (found ?? []).map { id, uuid in
                handle(&core.attributeHandles[peripheral.key, default: AttributeHandles()], id, uuid)
            }
        }
    }

    /// The service that an attribute belongs to, also where it is not there any more.
    func service(of peripheral: Peripheral, owning id: AttributeID) -> Service? {
        parent(of: id, peripheral) { handles, parent, uuid in
            handles.services.find(parent) { Service(peripheral: peripheral, id: parent, uuid: uuid) }
        }
    }

    /// The characteristic that a descriptor belongs to, also where it is not there any more.
    func characteristic(of peripheral: Peripheral, owning id: AttributeID) -> Characteristic? {
        parent(of: id, peripheral) { handles, parent, uuid in
            handles.characteristics.find(parent) { Characteristic(peripheral: peripheral, id: parent, uuid: uuid) }
        }
    }

    private func parent<Handle>(
        of id: AttributeID, _ peripheral: Peripheral,
        _ handle: (inout AttributeHandles, AttributeID, CBUUID) -> Handle
    ) -> Handle? {
        core.withLock { core in
            let found = core.state.readState(of: peripheral.key) { state -> (AttributeID, CBUUID)? in
                guard let parent = state.attributes.table[id]?.parent else { return nil }
                return state.attributes.table[parent].map { (parent, $0.uuid) }
            }
            return found.map { id, uuid in
                handle(&core.attributeHandles[peripheral.key, default: AttributeHandles()], id, uuid)
            }
        }
    }

    /// Reads from what is known of an attribute; `nil` where nothing is.
    func attribute<R>(
        _ key: PeripheralKey, _ id: AttributeID, _ body: (borrowing AttributeTable.Record) -> R?
    ) -> R? {
        core.withLock { core in
            core.state.readState(of: key) { state in state.attributes.table[id].flatMap { body($0) } }
        }
    }

    /// Reads from the table of a peripheral's attributes; `nil` where it was never asked for something.
    func attributes<R>(_ key: PeripheralKey, _ body: (borrowing AttributeTable) -> R?) -> R? {
        core.withLock { core in core.state.readState(of: key) { body($0.attributes.table) } }
    }

    /// Tells of changed services until the manager ends, or nobody holds the peripheral any more.
    func serviceChanges(of key: PeripheralKey) -> FutureStream<Peripheral> {
        let made = StreamPromise<Peripheral>(capacity: 0)
        let kept = core.withLock { core -> StreamPromise<Peripheral>? in
            guard !core.isClosed else { return nil }
            if let known = core.serviceStreams[key] { return known }
            core.serviceStreams[key] = made
            return made
        }
        if kept == nil { made.finish() }
        return (kept ?? made).stream
    }

    // MARK: Refreshing; any thread

    /// Has BlueZ remove a device and discover it again.
    func refreshServices(
        of peripheral: Peripheral, forgettingBond: Bool, timeout: TimeInterval
    ) -> Future<Peripheral> {
        let key = peripheral.key
        guard forgettingBond || read(key, { $0.isPaired }) != true else {
            return failed(
                PeripheralError.invalidArgument(
                    "The peripheral is bonded and would have to be paired again: "
                        + "ask for refreshServices(forgettingBond: true) if that is meant."))
        }
        var refresh: OperationID?
        let future: Future<Peripheral> = operation(on: key, yielding: peripheral) { state, id, orders in
            refresh = id
            state.refreshAsked(id, timeout: timeout, into: &orders)
        }
        loop.post { [self, refresh] in
            // After the connection's own call.
            drain()
            guard let device = readState(of: key, { $0.facts.device }) else {
                return endRefresh(of: peripheral)
            }
            client.removeDevice(device) { [self] result in
                // A device that does not exist any more counts as removed.
                if let refresh, case .failure(let error) = result, error.cause != .doesNotExist,
                    error.cause != .unknownObject
                {
                    decide(key) { $0.attributes.refuseNextLink(refresh, BusFailure(error), into: &$1) }
                }
                endRefresh(of: peripheral)
            }
        }
        return future
    }

    /// Connects the device that BlueZ has removed, unless the application has ended the refresh.
    private func endRefresh(of peripheral: Peripheral) {
        let isWanted = core.withLock { core in core.state.updateState(of: peripheral.key) { $0.refreshEnded() } }
        if isWanted == true { reconnect(peripheral, delay: 0) }
    }

    // MARK: Executing; on the loop

    /// Releases the handles of attributes that no longer exist, and finishes their streams.
    func releaseAttributes(_ ids: [AttributeID], of key: PeripheralKey) {
        let handles = core.withLock { $0.attributeHandles[key]?.letGo(ids) }
        withExtendedLifetime(handles) {}
        for id in ids {
            endNotifications(
                of: CharacteristicKey(peripheral: key, characteristic: id), failure: CharacteristicError.invalidated)
        }
    }
}
