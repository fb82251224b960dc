import Foundation

/// All that a `PeripheralManager` decides about, as a value: what happened goes in, what is to be done comes out.
///
/// It speaks of services and advertisements by their numbers; promises, clocks and the bus are the session's. What concerns
/// one characteristic alone (`UpdateQueue`, `RequestLedger`) is with that.
struct PeripheralManagerState {
    enum Timer: SessionTimer {
        case adapterGrace, restoration
        /// The state is to be kept.
        case keeping
        case service(ServiceRegistry.Number)
        case advertisement(AdvertisingRegistry.Number)
        case stop(AdvertisingRegistry.Stop)
    }

    enum Effect: Equatable {
        case announce(ManagerState)
        case startTimer(Timer, TimeInterval)
        case cancelTimer(Timer)
        case service(ServiceRegistry.Effect)
        case advertising(AdvertisingRegistry.Effect)
        /// What was restored can be told.
        case restored
    }

    /// How long a returning daemon has to find its adapters, in seconds.
    static let adapterGrace: TimeInterval = 5

    private var machine = ManagerStateMachine()
    private(set) var services = ServiceRegistry()
    private(set) var advertising = AdvertisingRegistry()
    /// What was restored has not been told yet.
    private(set) var isRestoring = false

    var managerState: ManagerState { machine.state }

    // MARK: Daemon and adapter

    /// Ends everything and forgets how things stood, so that every state is announced anew.
    mutating func reset() -> [Effect] {
        let effects = endAll()
        machine = ManagerStateMachine()
        let told = service { $0.managerStateChanged(.unknown) } + advertise { $0.managerStateChanged(.unknown) }
        return effects + told + [.cancelTimer(.adapterGrace)]
    }

    /// Nothing is offered and advertised any more, and whoever waits is told so.
    mutating func endAll() -> [Effect] {
        service { $0.removeAll(.ended) } + advertise { $0.endAll(.ended, .managerEnded) + $0.forgetStops() }
    }

    mutating func event(_ event: ManagerStateMachine.Event) -> [Effect] {
        machine.event(event).flatMap { effect -> [Effect] in
            switch effect {
            case .announce(let state):
                [.announce(state)] + service { $0.managerStateChanged(state) }
                    + advertise { $0.managerStateChanged(state) } + endRestoring()
            case .startGrace: [.startTimer(.adapterGrace, Self.adapterGrace)]
            case .cancelGrace: [.cancelTimer(.adapterGrace)]
            }
        }
    }

    /// Everything is on another adapter from now on.
    mutating func placeChanged() -> [Effect] { service { $0.placeChanged() } + advertise { $0.placeChanged() } }

    // MARK: Parts

    mutating func service(_ decision: (inout ServiceRegistry) -> [ServiceRegistry.Effect]) -> [Effect] {
        decision(&services).map { effect in
            switch effect {
            case .startTimer(let number, let seconds): .startTimer(.service(number), seconds)
            case .cancelTimer(let number): .cancelTimer(.service(number))
            case .register, .unregister, .settle, .drop: .service(effect)
            }
        }
    }

    mutating func advertise(_ decision: (inout AdvertisingRegistry) -> [AdvertisingRegistry.Effect]) -> [Effect] {
        decision(&advertising).map { effect in
            switch effect {
            case .startTimer(let number, let seconds): .startTimer(.advertisement(number), seconds)
            case .cancelTimer(let number): .cancelTimer(.advertisement(number))
            case .startStopTimer(let stop, let seconds): .startTimer(.stop(stop), seconds)
            case .cancelStopTimer(let stop): .cancelTimer(.stop(stop))
            case .askLimits, .start, .end, .settle, .ended, .settleStop: .advertising(effect)
            }
        }
    }

    mutating func fired(_ timer: Timer) -> [Effect] {
        switch timer {
        case .adapterGrace: event(.graceEnded)
        case .restoration: endRestoring()
        case .keeping: []
        case .service(let number): service { $0.timerFired(number) }
        case .advertisement(let number): advertise { $0.timerFired(number) }
        case .stop(let stop): advertise { $0.stopTimerFired(stop) }
        }
    }

    // MARK: Restoration

    /// How long the restored state waits for word on how Bluetooth stands, in seconds.
    static let restorationPatience: TimeInterval = 5

    mutating func beginRestoring() -> [Effect] {
        guard managerState == .unknown else { return [.restored] }
        isRestoring = true
        return [.startTimer(.restoration, Self.restorationPatience)]
    }

    private mutating func endRestoring() -> [Effect] {
        guard isRestoring else { return [] }
        isRestoring = false
        return [.cancelTimer(.restoration), .restored]
    }
}
