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
            let found = core.state.readDealing(with: peripheral.key) { state in
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
            let found = core.state.readDealing(with: peripheral.key) { state -> (AttributeID, CBUUID)? in
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
            core.state.readDealing(with: key) { state in state.attributes.table[id].flatMap { body($0) } }
        }
    }

    /// Reads from the table of a peripheral's attributes; `nil` where it was never asked for something.
    func attributes<R>(_ key: PeripheralKey, _ body: (borrowing AttributeTable) -> R?) -> R? {
        core.withLock { core in core.state.readDealing(with: key) { body($0.attributes.table) } }
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

    // MARK: Operations; any thread

    /// Has something done with an attribute that brings more than success.
    /// - Parameter take: takes what it has brought.
    func operation<T: Sendable>(
        on key: PeripheralKey, _ target: AttributeID, _ request: AttributeState.Request, timeout: TimeInterval,
        take: @escaping @Sendable (inout AttributeState, OperationID) -> T?
    ) -> Future<T> {
        operation(on: key) { attributes, operation in
            attributes.submit(request, on: target, operation, timeout: timeout, isFetched: true)
        } take: {
            take(&$0, $1)
        }
    }

    /// Has something decided about attributes that brings more than success.
    /// - Parameter take: takes what it has brought. Called in any case, when it is settled.
    func operation<T: Sendable>(
        on key: PeripheralKey, _ decision: (inout AttributeState, OperationID) -> [PeripheralState.Effect],
        take: @escaping @Sendable (inout AttributeState, OperationID) -> T?
    ) -> Future<T> {
        let promise = Promise<T>()
        let operation = core.withLock { $0.nameOperation() }
        let completion: Completion = { [self] error in
            var value: T?
            decide(key) { state in
                value = take(&state.attributes, operation)
                return []
            }
            if let value, error == nil {
                promise.success(value)
            } else {
                promise.failure(error ?? PeripheralError.disconnected)
            }
        }
        let isAccepted = decideIfOpen { core in
            core.completions[operation] = completion
            return core.state.peripheral(key) { decision(&$0.attributes, operation) }
        }
        if !isAccepted { complete { completion(PeripheralError.disconnected) } }
        return promise.future
    }

    /// Has BlueZ forget a device and meet it anew.
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
        let future: Future<Peripheral> = operation(on: key, value: { peripheral }) { state, id in
            state.isRefreshing = true
            refresh = id
            let effects = state.attributes.discoverServicesOnNextLink(id, timeout: timeout)
            return state.connection.state == .connected ? effects + state.connect(.disconnectAsked) : effects
        }
        loop.post { [self, refresh] in
            // The connection's own call goes first.
            drain()
            guard let device = readDealing(with: key, { $0.facts.device }) else {
                return endRefresh(of: peripheral)
            }
            client.removeDevice(device) { [self] result in
                // A device that is not there any more is forgotten.
                if let refresh, case .failure(let error) = result, error.cause != .doesNotExist,
                    error.cause != .unknownObject
                {
                    decide(key) { $0.attributes.refuseNextLink(refresh, BusFailure(error)) }
                }
                endRefresh(of: peripheral)
            }
        }
        return future
    }

    /// Has BlueZ meet the device that it has forgotten, unless the user has had enough meanwhile.
    private func endRefresh(of peripheral: Peripheral) {
        let isWanted = core.withLock { core in
            core.state.updateDealing(with: peripheral.key) { state in
                defer { state.isRefreshing = false }
                return state.isRefreshing
            }
        }
        if isWanted == true { reconnect(peripheral, delay: 0) }
    }

    /// A future that has failed, completed where the manager's promises are.
    func failed<T: Sendable>(_ error: any Error) -> Future<T> {
        let promise = Promise<T>()
        complete { promise.failure(error) }
        return promise.future
    }

    /// A future that has succeeded, completed where the manager's promises are.
    func succeeded() -> Future<Void> {
        let promise = Promise<Void>()
        complete { promise.success(()) }
        return promise.future
    }

    // MARK: Doing; on the loop

    func perform(_ effect: AttributeState.Effect, of key: PeripheralKey) {
        switch effect {
        case .fence(let device, let link):
            fence(device, of: key, link: link)
        case .readTable(let device, let link):
            readTable(of: device, of: key, link: link)
        case .call(let id, let device, let handle, let request):
            call(id, of: key, AttributeKey(device: device, handle: handle), request)
        case .letGo(let ids):
            let handles = core.withLock { $0.attributeHandles[key]?.letGo(ids) }
            withExtendedLifetime(handles) {}
            for id in ids {
                endNotifications(
                    of: Subject(peripheral: key, characteristic: id), failure: CharacteristicError.invalidated)
            }
        case .servicesChanged:
            let (promise, peripheral) = core.withLock { ($0.serviceStreams[key], $0.handles[key]) }
            guard let promise, let peripheral else { return }
            complete { promise.success(peripheral) }
        }
    }
}
