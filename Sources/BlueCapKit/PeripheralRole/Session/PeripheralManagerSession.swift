import BlueCapBlueZ
import Dispatch
import Foundation
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor

/// Owns the lock and the state of a `PeripheralManager`, and performs the orders that the state returns.
///
/// Values and their updates are behind the locks of their characteristics. Lock order: session, service or characteristic,
/// tree, counts. No application code runs under any of them.
final class PeripheralManagerSession: ManagerSession {
    typealias Number = PeripheralManagerState.Number

    struct Core: SessionCore {
        var shell: SessionShell<[PeripheralManagerState.Order], PeripheralManagerState.Timer>
        var state = PeripheralManagerState()
        /// The adapter on which everything is registered, even while it is gone.
        var place: ObjectKey?
        var served: [Number: Served] = [:]
        var adding: [Number: [Promise<Void>]] = [:]
        var advertised: [Number: Advertised] = [:]
        /// What an earlier run advertised.
        var restored: AdvertisingData?
        /// The centrals that are connected to the adapter, in the sequence in which they connected, which the object
        /// tree does not have.
        var centrals: [(key: ObjectKey, central: Central)] = []
        /// The devices that were connected, while BlueZ has them: the keys that identify their centrals, and their present
        /// addresses. A bond changes the address of a device with a private one.
        var devices: [ObjectKey: (key: PeripheralKey, address: PeripheralKey)] = [:]
        var ownBonds: Set<PeripheralKey> = []
        /// The devices whose pairing this manager was asked about, while they have their link.
        var pairing: Set<ObjectKey> = []
        /// The devices with bonds that the application has removed, while BlueZ has them.
        var removing: Set<ObjectKey> = []
        var policy: PairingPolicy
        var openRequests: [AgentRequest.ID: PairingRequest] = [:]
        private var lastNumber: UInt64 = 0

        init(_ configuration: PeripheralManager.Configuration) {
            shell = SessionShell(adapter: configuration.adapter, orders: [])
            policy = configuration.pairingPolicy
        }

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

    let problem: PeripheralManagerError?
    let client: BlueZClient
    let core: Locked<Core>
    let queue: DispatchQueue?
    let keeper: StateKeeper<PeripheralRestorationState>?
    let restoredPromise = Promise<PeripheralAdvertisements>()
    let centralPromise = StreamPromise<[Central]>(capacity: 1)
    let log: PeripheralManagerLog?
    let counts = Locked(PeripheralManagerStatistics())
    let pairingRequests = StreamPromise<PairingRequest>(capacity: 0)
    let pairingChanges = StreamPromise<CentralPairingChange>(capacity: 0)

    init(queue: DispatchQueue?, _ configuration: (PeripheralManager.Configuration, problem: String?)) {
        let (configuration, problem) = configuration
        self.queue = queue.map { DispatchQueue(label: "bluecap.peripheral-manager", target: $0) }
        self.problem = problem.map { .invalidOption($0) }
        log = configuration.logger.map { PeripheralManagerLog($0) }
        keeper = StateKeeper(identifier: configuration.restoreIdentifier, folder: configuration.stateDirectory)
        client = BlueZClient.shared(at: configuration.busAddress, notesIn: configuration.stateDirectory)
        core = Locked(Core(configuration))
    }

    /// Unregisters everything.
    func end(_ core: inout Core) -> PeripheralRestorationState? {
        core.state.endAll(into: &core.shell.orders)
        return PeripheralRestorationState(bonds: core.keptBonds)
    }

    func finish() {
        endPairing()
        let (streams, numbers) = core.withLock { ($0.shell.streams, Array($0.advertised.keys)) }
        for number in numbers { confirmEnd(number) }
        complete {
            streams.finish()
            self.centralPromise.finish()
            self.pairingRequests.finish()
            self.pairingChanges.finish()
        }
    }

    // MARK: Orders; on the loop

    func perform(_ orders: [PeripheralManagerState.Order]) {
        for order in orders {
            log?.note(order, of: self)
            switch order {
            case .announce(let state): announce(state)
            case .startTimer(let timer, let seconds): start(timer, after: seconds)
            case .cancelTimer(let timer): cancel(timer)
            case .askLimits(let number): askLimits(number)
            case .register(let number): register(number)
            case .unregister(let number): unregister(number)
            case .settle(let number, let error): settle(number, error)
            case .drop(let number): drop(number)
            case .ended(let number, let end): ended(number, end)
            }
        }
        keepSoon()
    }

    /// Registers it after BlueZ has confirmed the agent: a link keeps the capability that the agent had when the central
    /// connected.
    private func register(_ number: Number) {
        guard policy.needsAgent else { return registerNow(number) }
        client.pairings.whenAgentRegistered { [weak self] error in
            guard let self else { return }
            guard let error, policy.needsAgent else { return registerNow(number) }
            // The policy has changed, and the loop requests the agent only after this.
            if error == .noAgent, decideIfOpen({ _ in }) { return self.register(number) }
            decide { $0.state.refused(number, .pairingAgentRefused(BusError(error)), into: &$0.shell.orders) }
        }
    }

    private func registerNow(_ number: Number) {
        let (adapter, served, advertised) = core.withLock { core in
            let isRequested = core.state.stage(of: number) != nil
            return (isRequested ? core.target : nil, core.served[number], core.advertised[number])
        }
        guard let adapter else { return }
        if let served {
            serve(served, number, on: adapter)
        } else if let advertised {
            advertise(advertised.handle.data, number, on: adapter)
        }
    }

    private func unregister(_ number: Number) {
        let (application, advertising) = core.withLock { core in
            defer { core.served[number]?.application = nil }
            return (core.served[number]?.application, core.advertised[number]?.advertising)
        }
        application?.end()
        advertising?.end { [weak self] in self?.confirmEnd(number) }
    }

    /// Passes on the state of a registration.
    func registrationChanged(_ number: Number, _ state: RegistrationState) {
        log?.note(state, of: number, in: self)
        count(state)
        decide { $0.state.registrationChanged(number, state, into: &$0.shell.orders) }
    }

    private func settle(_ number: Number, _ error: PeripheralManagerError?) {
        let (promises, served, advertised) = core.withLock {
            ($0.adding.removeValue(forKey: number) ?? [], $0.served[number], $0.advertised[number])
        }
        if error == nil, let served {
            for characteristic in served.characteristics { characteristic.begin(self, served.application) }
        }
        guard advertised != nil || !promises.isEmpty else { return }
        complete {
            if let error {
                for promise in promises { promise.failure(error) }
                advertised?.promise.failure(error)
            } else {
                for promise in promises { promise.success(()) }
                if let advertised { advertised.promise.success(advertised.handle) }
            }
        }
    }

    // MARK: BlueZ; on the loop

    func treeChanged(_ change: Change, in tree: borrowing ObjectTree) {
        switch change {
        case .adapterAdded, .adapterChanged, .adapterRemoved:
            adapterReported(change, in: tree)
        case .deviceChanged(let device, let fields, _):
            guard !fields.isDisjoint(with: [.isConnected, .isPaired, .isBonded, .address, .addressType]) else { return }
            connectionChanged(of: device, in: tree)
            pairingChanged(of: device, fields, in: tree)
        case .deviceAdded(let device, _):
            if tree[device]?.isConnected == true { connectionChanged(of: device, in: tree) }
        case .deviceRemoved(let device):
            pairingEnded(of: device, in: tree)
            deviceRemoved(device)
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
        removeCentrals()
        for device in tree.deviceKeys { connectionChanged(of: device, in: tree) }
    }

    func adaptersSettled() {}
    func daemonLeft() {
        core.withLock { core in
            core.forgetDevices()
            (core.pairing, core.removing) = ([], [])
        }
        removeCentrals()
    }

    /// The central that sent a request.
    func central(_ peer: ServerPeer?) -> Central {
        peer?.device.flatMap { central(of: $0, mtu: peer?.mtu) } ?? Central(address: peer?.address, mtu: peer?.mtu)
    }

    /// The central of a device; `nil` if BlueZ does not have it.
    func central(of source: ObjectKey, mtu: Int? = nil) -> Central? {
        client.withTree { tree in tree[source].map { central(source, $0, mtu: mtu) } }
    }

    func central(_ source: ObjectKey, _ device: borrowing Device1, mtu: Int? = nil) -> Central {
        let address = PeripheralKey(device)
        return Central(core.withLock { $0.identify(source, at: address) }, device, mtu: mtu)
    }

    // MARK: Centrals; on the loop except for the getter

    var centrals: [Central] { core.withLock { $0.centrals.map(\.central) } }

    /// A device was added, or was connected or disconnected.
    private func connectionChanged(of key: ObjectKey, in tree: borrowing ObjectTree) {
        guard key.adapter == core.withLock({ $0.shell.adapter }) else { return }
        let central = tree[key].flatMap { $0.isConnected ? self.central(key, $0) : nil }
        changeCentrals { centrals in
            let index = centrals.firstIndex { $0.key == key }
            guard let central else { return index.map { centrals.remove(at: $0) } != nil }
            guard let index else {
                centrals.append((key, central))
                counts.withLock { $0.connections += 1 }
                return true
            }
            defer { centrals[index].central = central }
            return !centrals[index].central.hasValues(of: central)
        }
    }

    private func deviceRemoved(_ key: ObjectKey) {
        core.withLock { $0.forgetDevice(key) }
        changeCentrals { centrals in centrals.firstIndex { $0.key == key }.map { centrals.remove(at: $0) } != nil }
    }

    private func removeCentrals() {
        changeCentrals { centrals in
            defer { centrals.removeAll() }
            return !centrals.isEmpty
        }
    }

    /// - Parameter change: Returns whether it has changed the list.
    private func changeCentrals(_ change: (inout [(key: ObjectKey, central: Central)]) -> Bool) {
        let centrals = core.withLock { change(&$0.centrals) ? $0.centrals.map(\.central) : nil }
        guard let centrals else { return }
        log?.note(centrals: centrals, of: self)
        complete { self.centralPromise.success(centrals) }
    }
}

extension Central {
    /// Whether the other value of the same central has the same address and pairing.
    fileprivate func hasValues(of other: Central) -> Bool {
        address == other.address && isPaired == other.isPaired && isBonded == other.isBonded
    }
}
