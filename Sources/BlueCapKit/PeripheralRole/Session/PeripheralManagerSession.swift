import BlueZ
import Dispatch
import Foundation
import Futures
import GATT
import Reactor

/// Owns the lock and the state of a `PeripheralManager`, and performs the orders that the state returns.
///
/// Values and their updates are behind the locks of their characteristics, which are leaves as well: no two locks are
/// ever held.
final class PeripheralManagerSession: ManagerSession {
    typealias Number = PeripheralManagerState.Number

    struct Core: SessionCore {
        var shell: SessionShell<[PeripheralManagerState.Order], PeripheralManagerState.Timer>
        var state = PeripheralManagerState()
        /// The adapter on which everything is registered, even while it is gone.
        var place: ObjectKey?
        var served: [Number: Served] = [:]
        var adding: [Number: [Promise<Void>]] = [:]
        var aired: [Number: Aired] = [:]
        /// What BlueZ advertises for us, until it is asked to end it.
        var onAir: [Number: Advertising] = [:]
        var stopping: [PeripheralManagerState.Stop: Promise<Void>] = [:]
        /// What an earlier run advertised.
        var restored: AdvertisingData?
        /// The centrals that are connected to the adapter, in the sequence in which they connected, which the object
        /// tree does not have.
        var centrals: [(key: ObjectKey, central: Central)] = []
        private var lastNumber: UInt64 = 0

        init(adapter: String?) { shell = SessionShell(adapter: adapter, orders: []) }

        var managerState: ManagerState { state.managerState }
        /// The adapter to register on: one that left after the decision is waited for there.
        var target: ObjectKey? { shell.adapter ?? place }

        mutating func event(_ event: ManagerStateMachine.Event) { state.event(event, into: &shell.orders) }

        mutating func fired(_ timer: PeripheralManagerState.Timer, at now: Instant) {
            state.fired(timer, into: &shell.orders)
        }

        mutating func reset() {
            place = nil
            state.reset(into: &shell.orders)
        }

        mutating func makeNumber() -> Number {
            lastNumber += 1
            return Number(rawValue: lastNumber)
        }
    }

    static let restoreOption = "CBPeripheralManagerOptionRestoreIdentifierKey"

    let options: ManagerOptions<PeripheralManagerError>
    let client: BlueZClient
    let core: Locked<Core>
    let queue: DispatchQueue?
    let keeper: StateKeeper<PeripheralRestorationState>?
    let restoredPromise = Promise<PeripheralAdvertisements>()
    let centralPromise = StreamPromise<[Central]>(capacity: 1)

    init(queue: DispatchQueue?, options: ManagerOptions<PeripheralManagerError>) {
        self.queue = queue.map { DispatchQueue(label: "bluecap.peripheral-manager", target: $0) }
        self.options = options
        keeper = options.restoreIdentifier.map { StateKeeper(identifier: $0, folder: options.stateFolder) }
        client = BlueZClient.shared(at: options.busAddress)
        core = Locked(Core(adapter: options.adapter))
    }

    var centralStream: FutureStream<[Central]> { centralPromise.stream }

    /// Unregisters everything.
    func end(_ core: inout Core) -> PeripheralRestorationState? {
        core.state.endAll(into: &core.shell.orders)
        return PeripheralRestorationState()
    }

    func finish() {
        let streams = core.withLock { $0.shell.streams }
        complete {
            streams.finish()
            self.centralPromise.finish()
        }
    }

    // MARK: Orders; on the loop

    func perform(_ orders: [PeripheralManagerState.Order]) {
        for order in orders {
            switch order {
            case .announce(let state): announce(state)
            case .startTimer(let timer, let seconds): start(timer, after: seconds)
            case .cancelTimer(let timer): cancel(timer)
            case .restored: reportRestored()
            case .askLimits(let number): askLimits(number)
            case .register(let number): register(number)
            case .unregister(let number): unregister(number)
            case .settle(let number, let error): settle(number, error)
            case .drop(let number): drop(number)
            case .ended(let number, let end): ended(number, end)
            case .settleStop(let stop, let isInTime): settle(stop, isInTime: isInTime)
            }
        }
        keepSoon()
    }

    private func register(_ number: Number) {
        let (adapter, served, aired) = core.withLock { ($0.target, $0.served[number], $0.aired[number]) }
        guard let adapter else { return }
        if let served {
            serve(served, number, on: adapter)
        } else if let aired {
            advertise(aired.handle.data, number, on: adapter)
        }
    }

    private func unregister(_ number: Number) {
        let (application, advertising) = core.withLock { core in
            defer { core.served[number]?.application = nil }
            return (core.served[number]?.application, core.onAir.removeValue(forKey: number))
        }
        application?.end()
        let confirm: @Sendable () -> Void = { [weak self] in
            self?.decide { $0.state.confirmedEnd(number, into: &$0.shell.orders) }
        }
        if let advertising { advertising.end(completion: confirm) } else { confirm() }
    }

    /// Passes on the state of a registration.
    func registrationChanged(_ number: Number, _ state: RegistrationState) {
        decide { $0.state.registrationChanged(number, state, into: &$0.shell.orders) }
    }

    private func settle(_ number: Number, _ error: PeripheralManagerError?) {
        let (promises, served, aired) = core.withLock {
            ($0.adding.removeValue(forKey: number) ?? [], $0.served[number], $0.aired[number])
        }
        if error == nil, let served { becameAdded(served) }
        guard aired != nil || !promises.isEmpty else { return }
        complete {
            if let error {
                for promise in promises { promise.failure(error) }
                aired?.promise.failure(error)
            } else {
                for promise in promises { promise.success(()) }
                if let aired { aired.promise.success(aired.handle) }
            }
        }
    }

    // MARK: BlueZ; on the loop

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
                // What is registered on an adapter that is gone waits there for its return: often it is the same one.
                if let place = core.place, place != adapter {
                    core.state.placeChanged(into: &core.shell.orders)
                }
                core.place = adapter
            }
        }
        recountCentrals(in: tree)
    }

    func adaptersSettled() {}
    func daemonLeft() { changeCentrals { $0.removeAll() } }

    /// The central that sent a request.
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

    // MARK: Centrals; on the loop except for the getter

    var centrals: [Central] { core.withLock { $0.centrals.map(\.central) } }

    /// A device was added, or was connected or disconnected.
    private func connectionChanged(of handle: DeviceHandle, in tree: borrowing ObjectTree) {
        guard let key = tree.key(of: handle), tree.adapter(of: handle) == core.withLock({ $0.shell.adapter }) else {
            return
        }
        var central: Central?
        tree.read(handle) { device in
            if device.isConnected { central = Central(address: device.address, type: device.addressType, mtu: nil) }
        }
        changeCentrals { centrals in
            guard let central else { return centrals.removeAll { $0.key == key } }
            if !centrals.contains(where: { $0.key == key }) { centrals.append((key, central)) }
        }
    }

    private func deviceRemoved(_ handle: DeviceHandle, in tree: borrowing ObjectTree) {
        guard let key = tree.key(of: handle) else { return }
        changeCentrals { $0.removeAll { $0.key == key } }
    }

    /// Another adapter is in use, or none.
    private func recountCentrals(in tree: borrowing ObjectTree) {
        changeCentrals { $0.removeAll() }
        tree.forEachDevice { connectionChanged(of: $0, in: tree) }
    }

    /// Adds a central to the list, or removes one or all.
    private func changeCentrals(_ change: (inout [(key: ObjectKey, central: Central)]) -> Void) {
        let centrals = core.withLock { core in
            let count = core.centrals.count
            change(&core.centrals)
            return core.centrals.count == count ? nil : core.centrals.map(\.central)
        }
        if let centrals { complete { self.centralPromise.success(centrals) } }
    }
}
