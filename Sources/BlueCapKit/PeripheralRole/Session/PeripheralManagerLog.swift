import BlueCapBlueZ
import BlueCapGATT
import Logging

/// What a peripheral manager logs.
struct PeripheralManagerLog: Sendable {
    private let log: ManagerLog

    init(_ logger: Logger) { log = ManagerLog(logger) }

    /// Called before the order is executed, on the loop.
    func note(_ order: PeripheralManagerState.Order, of session: PeripheralManagerSession) {
        switch order {
        case .startTimer, .cancelTimer, .askLimits, .drop: return
        case .announce(let state): log.state(state, session.standing.explanation, adapter: adapter(of: session))
        case .register(let number): write(.debug, "registering", number, session)
        case .unregister(let number): write(.debug, "unregistering", number, session)
        case .settle(let number, nil): write(.info, "registered", number, session)
        case .settle(let number, let error?):
            write(.warning, "not registered", number, session, [("why", "\(error)")])
        case .ended(let number, let end): write(.info, "ended", number, session, [("why", "\(end)")])
        }
    }

    func restorationFailed(_ reason: String) { log.restorationFailed(reason) }

    /// BlueZ reports the state of a registration.
    func note(
        _ state: RegistrationState, of number: PeripheralManagerState.Number, in session: PeripheralManagerSession
    ) {
        switch state {
        case .idle, .registering, .registered, .timedOut: return
        case .waiting(let obstacle): write(.debug, "waiting for the adapter", number, session, [("why", "\(obstacle)")])
        case .retrying(let error), .refused(let error):
            write(.notice, "registration refused", number, session, [("why", "\(error)")])
        }
    }

    func note(_ request: ServerRequest, _ attribute: CBUUID, in session: PeripheralManagerSession) {
        log.write(
            .trace, request.value == nil ? "read request" : "write request",
            [
                ("adapter", adapter(of: session)), ("central", session.central(request.peer).address?.description),
                ("characteristic", attribute.uuidString), ("length", request.value.map { "\($0.count)" }),
            ])
    }

    func note(_ change: PairingChange, of central: Central, in session: PeripheralManagerSession) {
        let metadata = [(name: "adapter", value: adapter(of: session)), ("central", central.address?.description)]
        if let error = change.error {
            log.write(.warning, "pairing failed", metadata + [("why", "\(error)")])
        } else {
            let message: Logger.Message = change.isBonded ? "bonded" : change.isPaired ? "paired" : "not paired"
            log.write(.info, message, metadata + [("origin", "\(change.origin)")])
        }
    }

    func note(centrals: [Central], of session: PeripheralManagerSession) {
        log.write(
            .info, "centrals",
            [
                ("adapter", adapter(of: session)),
                ("central", centrals.map { $0.address?.description ?? "unknown" }.joined(separator: " ")),
            ])
    }

    private func write(
        _ level: Logger.Level, _ message: Logger.Message, _ number: PeripheralManagerState.Number,
        _ session: PeripheralManagerSession, _ metadata: @autoclosure () -> ManagerLog.Metadata = []
    ) {
        log.write(level, message, [("adapter", adapter(of: session))] + what(number, in: session) + metadata())
    }

    private func adapter(of session: PeripheralManagerSession) -> String? {
        session.core.withLock { $0.shell.choice.lastName }
    }

    /// A service by its UUID, or an advertisement.
    private func what(
        _ number: PeripheralManagerState.Number, in session: PeripheralManagerSession
    ) -> ManagerLog.Metadata {
        let served = session.core.withLock { $0.served[number] }
        return served.map { [("service", $0.service.uuid.uuidString), ("operation", "add")] } ?? [
            ("operation", "advertise")
        ]
    }
}
