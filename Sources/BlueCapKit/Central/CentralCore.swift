import BlueCapBlueZ
import BlueCapReactor

/// What the lock of a ``CentralSession`` guards: the state of the manager, and what executes its orders.
struct CentralCore: SessionCore {
    var shell: SessionShell<Orders, CentralSession.TimerKey>
    var state: CentralState
    var scans = Scans()
    var counter = CentralCounter()
    /// The time of the current batch of reports, if it was read.
    var batchTime: Instant?
    /// The streams of the manager besides those of its state; ``CentralManager/invalidate()`` replaces them.
    var streams = ManagerStreams()
    var openRequests: [AgentRequest.ID: PairingRequest] = [:]
    /// The operations that have not been settled.
    var completions = KeyedTable<OperationID, CentralSession.Completion>()
    private var lastOperation: UInt64 = 0
    /// The state that an earlier process has saved, until it is reported.
    var restored: RestorationState?

    init(_ options: CentralManager.Configuration, seed: UInt64) {
        shell = SessionShell(adapter: options.adapter, orders: Orders())
        state = CentralState(maximumPeripherals: options.maximumPeripherals, backOffSeed: seed)
        state.policyChanged(options.pairingPolicy)
    }

    var managerState: ManagerState { state.managerState }
    var kept: RestorationState { state.kept }

    mutating func event(_ event: ManagerStateMachine.Event) { state.event(event, into: &shell.orders) }
    mutating func reset() { state.reset(into: &shell.orders) }

    mutating func fired(_ key: CentralSession.TimerKey, at now: Instant) {
        state.fired(key.timer, of: key.peripheral, at: now, into: &shell.orders)
    }

    mutating func makeOperation() -> OperationID {
        lastOperation += 1
        return OperationID(rawValue: lastOperation)
    }

    mutating func decide(
        _ key: PeripheralKey, isOperation: Bool = false,
        _ decision: (inout PeripheralState, inout Orders) -> Void
    ) {
        state.peripheral(key, isOperation: isOperation, into: &shell.orders, decision)
    }

    // MARK: Restoration

    /// Resumes what was under way in an earlier process.
    mutating func restore(_ kept: RestorationState, in session: CentralSession) {
        shell.isKeeping = true
        restored = kept
        let now = session.loop.now
        for connection in kept.connections {
            let key = connection.key
            // Before the connection: a peripheral whose device BlueZ already has is connected without a search.
            let device = shell.device(key.address, in: session.client.daemon)
            let new = PeripheralRecord.Listing(device: device, discoveredAt: session.date, lastReceived: now)
            state.list(key, or: new, into: &shell.orders)
        }
        state.restore(kept, into: &shell.orders)
    }

    /// Returns what was restored, and puts it on the list if BlueZ has its devices.
    mutating func completeRestoration(in session: CentralSession) -> RestoredCentral {
        guard let kept = restored.take() else { return RestoredCentral() }
        let now = session.loop.now
        let peripherals = kept.connections.map { connection in
            let device = shell.device(connection.key.address, in: session.client.daemon)
            state.listWanted(connection.key, device: device, at: now, date: session.date, into: &shell.orders)
            return state.peripherals.hold(connection.key, in: session)
        }
        return RestoredCentral(peripherals: peripherals, scan: kept.scan)
    }
}
