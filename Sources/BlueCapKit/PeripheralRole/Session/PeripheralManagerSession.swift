import BlueZ
import DBus
import Dispatch
import Foundation
import Futures
import GATT
import Reactor

/// Owns the lock and the state of a `PeripheralManager`, and performs the orders that the state returns.
///
/// Values and their updates are behind the locks of their characteristics, which are leaves as well: no two locks are ever
/// held.
final class PeripheralManagerSession: ManagerSession {
    struct Core: SessionCore {
        var shell: SessionShell<PeripheralManagerState.Effect, PeripheralManagerState.Timer>
        var state = PeripheralManagerState()
        /// The adapter that what we have in BlueZ is meant for, also while that is gone.
        var place: ObjectKey?
        var served: [ServiceRegistry.Number: Served] = [:]
        var adding: [ServiceRegistry.Number: [Promise<Void>]] = [:]
        var aired: [AdvertisingRegistry.Number: Aired] = [:]
        /// What BlueZ advertises for us, until it has confirmed the end.
        var onAir: [AdvertisingRegistry.Number: Advertising] = [:]
        var stopping: [AdvertisingRegistry.Stop: Promise<Void>] = [:]
        /// What an earlier run advertised.
        var restored: AdvertisingData?
        var roll = CentralRoll()
        private var lastNumber: UInt64 = 0

        init(adapter: String?) { shell = SessionShell(adapter: adapter) }

        var managerState: ManagerState { state.managerState }
        /// Where to register: an adapter that went between the decision and this moment is waited for there.
        var target: ObjectKey? { shell.adapter ?? place }

        mutating func order(_ effects: [PeripheralManagerState.Effect]) { shell.effects.pending += effects }
        mutating func event(_ event: ManagerStateMachine.Event) { order(state.event(event)) }
        mutating func fired(_ timer: PeripheralManagerState.Timer, at now: Instant) { order(state.fired(timer)) }
        mutating func reset() {
            place = nil
            order(state.reset())
        }

        mutating func makeNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }
    }

    static let restoreOption = "CBPeripheralManagerOptionRestoreIdentifierKey"

    let options: PeripheralManagerOptions
    let client: BlueZClient
    let core: Locked<Core>
    let queue: DispatchQueue?
    let keeper: StateKeeper<PeripheralRestorationState>?
    let restoredPromise = Promise<PeripheralAdvertisements>()
    let centralPromise = StreamPromise<[Central]>(capacity: 1)

    init(queue: DispatchQueue?, options: PeripheralManagerOptions) {
        self.queue = queue.map { DispatchQueue(label: "bluecap.peripheral-manager", target: $0) }
        self.options = options
        keeper = options.restoreIdentifier.map { StateKeeper(identifier: $0, folder: options.stateFolder) }
        client = BlueZClient.shared(at: options.busAddress)
        core = Locked(Core(adapter: options.adapter))
    }

    var problem: PeripheralManagerError? { options.problem }
    var centralStream: FutureStream<[Central]> { centralPromise.stream }

    /// Takes everything back.
    func end(_ core: inout Core) -> PeripheralRestorationState? {
        core.order(core.state.endAll())
        return PeripheralRestorationState()
    }

    func finish() {
        let streams = core.withLock { $0.shell.streams }
        complete {
            streams.finish()
            self.centralPromise.finish()
        }
    }

    // MARK: Doing; on the loop

    func perform(_ effects: [PeripheralManagerState.Effect]) {
        for effect in effects { perform(effect) }
    }

    private func perform(_ effect: PeripheralManagerState.Effect) {
        switch effect {
        case .announce(let state): announce(state)
        case .startTimer(let timer, let seconds): start(timer, after: seconds)
        case .cancelTimer(let timer): cancel(timer)
        case .service(let effect): perform(effect)
        case .advertising(let effect): perform(effect)
        case .restored: tellRestored()
        }
        // Whatever is kept changes with one of these, though not with each.
        switch effect {
        case .service, .advertising: keepSoon()
        case .announce, .startTimer, .cancelTimer, .restored: break
        }
    }
}
