import BlueCapBlueZ
import Foundation

/// What a `PeripheralManager` decides, as a value: the manager's state, and its services and advertisements from the
/// request until BlueZ has none of them. Events go in, orders come out.
///
/// Services and advertisements are identified by their numbers; promises, clocks and the bus belong to the session. A
/// registration keeps each of them registered with BlueZ, and its states are events here. What concerns a single
/// characteristic belongs to that characteristic (`UpdateQueue`).
///
/// Each service has its own registration: BlueZ can change a registration only by removing it, so in a common
/// registration each service that is added or removed would end the subscriptions of all others (observed with 5.66).
/// For the same reason each service can fail without the others.
struct PeripheralManagerState {
    /// Identifies a service or an advertisement from its request on.
    struct Number: Hashable, Sendable {
        let rawValue: UInt64
    }

    enum Kind: Equatable {
        case service
        /// - Parameter isMain: Whether it is one of those of which a manager has only one at a time.
        case advertisement(isMain: Bool)
    }

    enum Timer: Hashable {
        case adapterGrace
        case request(Number)
    }

    enum Order: Equatable {
        case announce(ManagerState)
        case startTimer(Timer, TimeInterval)
        case cancelTimer(Timer)
        /// Asks BlueZ what the adapter can advertise; the reply is
        /// ``PeripheralManagerState/limitsKnown(_:refusal:into:)``.
        case askLimits(Number)
        /// Registers it with BlueZ on the adapter in use, and passes on the states of the registration.
        case register(Number)
        /// Unregisters it from BlueZ.
        case unregister(Number)
        /// The request has succeeded, or failed with this error.
        case settle(Number, PeripheralManagerError?)
        /// The service is not offered any more.
        case drop(Number)
        /// The advertisement has ended, after it was sent or before.
        case ended(Number, AdvertisingEnd)
    }

    enum Stage: Hashable {
        /// Waits for power.
        case waiting
        /// An advertisement only: BlueZ is asked what the adapter can do.
        case asking
        case registering
        case registered
        /// It was registered, and is registered again without another request.
        case returning
    }

    private struct Request {
        let number: Number
        let kind: Kind
        var stage: Stage
        /// Why BlueZ has not registered it so far, if BlueZ reports a reason.
        var delay: PeripheralManagerError?
        /// The number of advertisements that the adapter can have, if BlueZ has reported it.
        var capacity: Int?

        /// Whether the request has succeeded.
        var isSettled: Bool { stage == .registered || stage == .returning }
    }

    /// The time that a returning daemon has to find its adapters, in seconds.
    static let adapterGrace: TimeInterval = 5

    private var machine = ManagerStateMachine()
    /// First the services, in the sequence of their requests, which becomes that of their handles; then the
    /// advertisements, in the sequence of their requests.
    private var requests: [Request] = []

    var managerState: ManagerState { machine.state }
    var services: [Number] { requests.filter { $0.kind == .service }.map(\.number) }
    var advertisements: [Number] { requests.filter { $0.kind != .service }.map(\.number) }
    /// Whether there is an advertisement of which a manager has only one at a time.
    var hasMainAdvertisement: Bool { requests.contains { $0.kind == .advertisement(isMain: true) } }
    func stage(of number: Number) -> Stage? { requests.first { $0.number == number }?.stage }
    /// Returns whether BlueZ has registered it. What is being registered again counts as registered.
    func isSettled(_ number: Number) -> Bool { requests.contains { $0.number == number && $0.isSettled } }
    /// Whether a service or an advertisement was registered, so that centrals can be expected.
    var isOffering: Bool { requests.contains { $0.isSettled } }

    // MARK: Daemon and adapter

    /// Ends everything, and discards the manager's state so that every state is announced again.
    mutating func reset(into orders: inout [Order]) {
        endAll(into: &orders)
        machine = ManagerStateMachine()
        orders.append(.cancelTimer(.adapterGrace))
    }

    /// Ends everything, and fails what callers wait for.
    mutating func endAll(into orders: inout [Order]) {
        for request in requests { takeOut(request.number, .managerEnded, .managerEnded, into: &orders) }
    }

    mutating func event(_ event: ManagerStateMachine.Event, into orders: inout [Order]) {
        let old = machine.state
        for effect in machine.event(event) {
            switch effect {
            case .announce(let state):
                orders.append(.announce(state))
                powerChanged(from: old, into: &orders)
            case .startGrace: orders.append(.startTimer(.adapterGrace, Self.adapterGrace))
            case .cancelGrace: orders.append(.cancelTimer(.adapterGrace))
            }
        }
    }

    private mutating func powerChanged(from old: ManagerState, into orders: inout [Order]) {
        let isOn = managerState == .poweredOn
        guard isOn != (old == .poweredOn) else { return }
        for index in requests.indices {
            switch requests[index].stage {
            case .waiting where isOn: begin(index, into: &orders)
            case .asking where !isOn: requests[index].stage = .waiting
            // A registration restores itself without another order.
            case .waiting, .asking, .registering, .registered, .returning: break
            }
        }
    }

    /// Moves everything to another adapter. What was on the former one has been unregistered.
    mutating func placeChanged(into orders: inout [Order]) {
        for index in requests.indices {
            switch requests[index].stage {
            case .waiting, .asking: continue
            case .registering: break
            case .registered, .returning: requests[index].stage = .returning
            }
            orders.append(.register(requests[index].number))
        }
    }

    // MARK: Requests

    /// Requests a service or an advertisement, once for each number.
    ///
    /// - Parameter timeout: The seconds within which it must be registered; infinite for no limit.
    mutating func add(
        _ number: Number, _ kind: Kind, timeout: TimeInterval = .infinity, into orders: inout [Order]
    ) {
        guard stage(of: number) == nil else { return }
        let end = kind == .service ? requests.firstIndex { $0.kind != .service } : nil
        let index = end ?? requests.endIndex
        requests.insert(Request(number: number, kind: kind, stage: .waiting), at: index)
        if timeout.isFinite { orders.append(.startTimer(.request(number), timeout)) }
        if managerState == .poweredOn { begin(index, into: &orders) }
    }

    private mutating func begin(_ index: Int, into orders: inout [Order]) {
        let request = requests[index]
        requests[index].stage = request.kind == .service ? .registering : .asking
        orders.append(request.kind == .service ? .register(request.number) : .askLimits(request.number))
    }

    /// Removes a service or an advertisement.
    mutating func remove(_ number: Number?, into orders: inout [Order]) {
        guard let number, let request = requests.first(where: { $0.number == number }) else { return }
        takeOut(number, request.kind.stopped, .stopped, into: &orders)
    }

    mutating func removeAllServices(into orders: inout [Order]) {
        for number in services { remove(number, into: &orders) }
    }

    private mutating func takeOut(
        _ number: Number, _ error: PeripheralManagerError, _ end: AdvertisingEnd, hasTimer: Bool = true,
        into orders: inout [Order]
    ) {
        guard let index = requests.firstIndex(where: { $0.number == number }) else { return }
        let request = requests.remove(at: index)
        if hasTimer, !request.isSettled { orders.append(.cancelTimer(.request(number))) }
        let isInBlueZ = request.stage != .waiting && request.stage != .asking
        switch request.kind {
        case .service:
            if isInBlueZ { orders.append(.unregister(number)) }
            // Dropped before the failure is reported, because a handler may add it again.
            orders.append(.drop(number))
            if !request.isSettled { orders.append(.settle(number, error)) }
        case .advertisement:
            if !request.isSettled { orders.append(.settle(number, error)) }
            orders.append(.ended(number, end))
            if isInBlueZ { orders.append(.unregister(number)) }
        }
    }

    // MARK: Events

    /// It cannot be registered as it was requested.
    mutating func refused(_ number: Number, _ error: PeripheralManagerError, into orders: inout [Order]) {
        takeOut(number, error, .notStarted, into: &orders)
    }

    /// The limits of the adapter are known, as far as BlueZ reports them.
    /// - Parameter capacity: The number of advertisements that the adapter can have.
    mutating func limitsKnown(
        _ number: Number, refusal: PeripheralManagerError?, capacity: Int? = nil, into orders: inout [Order]
    ) {
        guard let index = requests.firstIndex(where: { $0.number == number && $0.stage == .asking }) else { return }
        if let refusal { return refused(number, refusal, into: &orders) }
        (requests[index].stage, requests[index].capacity) = (.registering, capacity)
        orders.append(.register(number))
    }

    /// The registration of a service or an advertisement has changed its state.
    mutating func registrationChanged(_ number: Number, _ state: RegistrationState, into orders: inout [Order]) {
        guard let index = requests.firstIndex(where: { $0.number == number }) else { return }
        let request = requests[index]
        switch state {
        case .registered:
            requests[index].stage = .registered
            if !request.isSettled { orders += [.cancelTimer(.request(number)), .settle(number, nil)] }
        case .refused(let error):
            // A service that was added is registered again when the daemon or the adapter changes.
            if request.kind == .service, request.isSettled { return }
            let failure = request.kind.failed(error, capacity: request.capacity)
            takeOut(number, failure, .refused(BusError(error)), into: &orders)
        case .timedOut:
            takeOut(number, request.kind.stopped, .timedOut, into: &orders)
        case .idle:
            break
        case .waiting, .registering, .retrying:
            requests[index].delay = request.kind.delay(by: state)
            if request.stage == .registered { requests[index].stage = .returning }
        }
    }

    mutating func fired(_ timer: Timer, into orders: inout [Order]) {
        switch timer {
        case .adapterGrace: event(.graceEnded, into: &orders)
        case .request(let number):
            guard let request = requests.first(where: { $0.number == number }), !request.isSettled else { return }
            let error =
                managerState == .poweredOn ? request.delay ?? request.kind.unanswered : .notPoweredOn(managerState)
            takeOut(number, error, .notStarted, hasTimer: false, into: &orders)
        }
    }
}

extension PeripheralManagerState.Kind {
    /// BlueZ's text if an adapter can have no more advertisements (`register_advertisement`, src/advertising.c).
    private static let limitText = "Maximum advertisements reached"

    fileprivate var stopped: PeripheralManagerError { self == .service ? .serviceRemoved : .advertisingStopped }
    fileprivate var unanswered: PeripheralManagerError { self == .service ? .serviceTimeout : .startAdvertisingTimeout }
    private var notSupported: PeripheralManagerError {
        self == .service ? .servicesNotSupported : .advertisingNotSupported
    }

    /// - Parameter capacity: The number of advertisements that the adapter can have, if it is known.
    fileprivate func failed(_ error: BlueZError, capacity: Int? = nil) -> PeripheralManagerError {
        guard error.cause != .noReply else { return unanswered }
        // Another program was faster since BlueZ reported that there is space.
        if error.cause == .notPermitted, error.message == Self.limitText {
            return .tooManyAdvertisements(capacity ?? 0)
        }
        return self == .service ? .serviceRefused(BusError(error)) : .advertisementRefused(BusError(error))
    }

    /// Returns why BlueZ has not registered it; `nil` if BlueZ has only to reply, or to return.
    fileprivate func delay(by state: RegistrationState) -> PeripheralManagerError? {
        switch state {
        case .waiting(.support): notSupported
        case .retrying(let error): failed(error)
        case .idle, .waiting(.adapter), .waiting(.power), .registering, .registered, .refused, .timedOut: nil
        }
    }
}
