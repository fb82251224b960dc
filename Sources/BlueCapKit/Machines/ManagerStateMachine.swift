import BlueCapBlueZ

/// Derives a manager's state from the bus, the daemon and the adapter, according to the table of `ManagerState`.
///
/// | event | not ready before | ready before |
/// |---|---|---|
/// | connecting, loading | stays | `resetting` |
/// | no bus, no daemon | `unsupported` | `resetting` |
/// | refused | `unauthorized` | `unauthorized` |
/// | ready, adapter on | `poweredOn` | `poweredOn` |
/// | ready, adapter off | `poweredOff` | `poweredOff` |
/// | ready, no adapter | `unsupported` | `resetting` for the grace time after a return, else `unsupported` |
///
/// The grace time exists because a starting `bluetoothd` takes its name before it has its adapters: without it each
/// restart would briefly show that there is no Bluetooth.
struct ManagerStateMachine: Equatable {
    enum Event: Equatable {
        case reached(Availability)
        /// The chosen adapter's power; `nil` if there is no adapter.
        case adapterPower(Bool?)
        case graceEnded
    }

    enum Effect: Equatable {
        case announce(ManagerState)
        case startGrace
        case cancelGrace
    }

    private(set) var state: ManagerState = .unknown
    private var reach = Availability.connecting
    private var power: Bool?
    private var wasReady = false
    private var isInGrace = false

    mutating func event(_ event: Event) -> [Effect] {
        switch event {
        case .reached(let new):
            guard new != reach else { return [] }
            let returns = new == .ready && state == .resetting
            reach = new
            if new != .ready { power = nil }
            return settle(startingGrace: returns && power == nil)
        case .adapterPower(let new):
            power = new
            return settle(startingGrace: false)
        case .graceEnded:
            isInGrace = false
            return settle(startingGrace: false)
        }
    }

    private mutating func settle(startingGrace: Bool) -> [Effect] {
        var effects: [Effect] = []
        if isInGrace, reach != .ready || power != nil {
            isInGrace = false
            effects.append(.cancelGrace)
        } else if startingGrace {
            isInGrace = true
            effects.append(.startGrace)
        }
        let new = presentState
        if reach == .ready { wasReady = true }
        if new != state {
            state = new
            effects.append(.announce(new))
        }
        return effects
    }

    private var presentState: ManagerState {
        switch reach {
        case .connecting, .loading, .notLoaded: wasReady && state != .unauthorized ? .resetting : state
        case .noBus, .noDaemon: wasReady ? .resetting : .unsupported
        case .refused: .unauthorized
        case .ready:
            switch power {
            case true?: .poweredOn
            case false?: .poweredOff
            case nil: isInGrace ? .resetting : .unsupported
            }
        }
    }
}
