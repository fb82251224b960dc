import BlueCapBlueZ
import Logging

/// What a central manager logs: each order that the loop executes, in words.
struct CentralLog: Sendable {
    private let log: ManagerLog

    init(_ logger: Logger) { log = ManagerLog(logger) }

    func noteRestart(_ reason: ScanRestart, of session: CentralSession) {
        log.write(.warning, "scan restarted", [("adapter", adapter(of: session)), ("why", "\(reason)")])
    }

    func restorationFailed(_ reason: String) { log.restorationFailed(reason) }

    /// Called before the order is executed, on the loop.
    func note(_ order: Order, of session: CentralSession) {
        // `attribute`: that of an operation, whose names are added to the metadata. Not inlined at each of the many messages.
        @inline(never)
        func write(
            _ level: Logger.Level, _ message: Logger.Message, of attribute: AttributeKey? = nil,
            _ metadata: @autoclosure () -> ManagerLog.Metadata = []
        ) {
            log.write(
                level, message,
                [
                    ("adapter", adapter(of: session)),
                    ("peripheral", address(of: order.subject.peripheral, in: session)),
                ] + names(of: attribute, in: session) + metadata())
        }
        func writeSubscription(
            _ level: Logger.Level, _ message: Logger.Message, operation: String = "subscribe",
            why: PeripheralFailure? = nil
        ) {
            write(
                level, message, of: order.subject.attribute,
                [("operation", operation), ("why", why.map { "\($0.error)" })])
        }
        switch order.action {
        case .startTimer, .cancelTimer, .limit, .drop, .stopSeeking, .awaitReplies, .finishStream, .forget, .endUse,
            .noteShortLinks, .rejectRequests, .cancelRequests, .fence, .release:
            return

        case .announce(let state): log.state(state, session.standing.explanation, adapter: adapter(of: session))
        case .startScan(_, let request):
            write(
                .info, "scan started",
                [("services", request.services.map { $0.map(\.uuidString).joined(separator: " ") })])
        case .endScan(_, nil): write(.info, "scan stopped")
        case .endScan(_, let error?): write(.error, "scan failed", [("why", "\(error)")])
        case .discovered(let key, _), .sighted(let key, _, _):
            write(.trace, "received", [("peripheral", address(of: key, in: session))])
        case .expired(let key): write(.debug, "expired", [("peripheral", address(of: key, in: session))])

        case .callConnect: write(.debug, "connecting")
        case .cancelConnect: write(.debug, "attempt to connect cancelled")
        case .callDisconnect: write(.debug, "disconnecting")
        case .seek: write(.debug, "searching the peripheral, which BlueZ does not have")
        case .report(_, .connected): write(.debug, "connected")
        case .report(_, .timedOut): write(.notice, "attempt to connect timed out")
        case .report(_, .disconnected), .report(_, .forced): write(.debug, "disconnected")
        case .report(_, let report) where report.event == .giveUp: write(.warning, "connection given up")
        case .report(_, let report):
            write(.warning, "connection failed", [("why", report.error.map { "\($0)" })])
        case .linkWentUp: write(.info, "link up")
        case .linkWentDown(let loss):
            write(loss == .application ? .info : .notice, "link down", [("why", "\(loss)")])

        case .askForConsent: write(.info, "asking whether to pair")
        case .callPair: write(.info, "pairing")
        case .cancelPairing: write(.info, "cancelling the pairing")
        case .removeDevice: write(.info, "removing the device from BlueZ, with its bond")
        case .setTrusted(let isTrusted): write(.info, isTrusted ? "marking as trusted" : "removing the mark of trust")
        case .reportPairing(let change):
            if let error = change.error {
                write(.warning, "pairing failed", [("why", "\(error)")])
            } else {
                write(
                    .info, change.isBonded ? "bonded" : change.isPaired ? "paired" : "not paired",
                    [("origin", "\(change.origin)")])
            }

        case .readTable: write(.debug, "reading the services")
        case .servicesChanged: write(.info, "services changed")
        case .read(_, let handle, _, _):
            write(.trace, "reading", of: order.subject.key(of: handle), [("operation", "read")])
        case .write(_, let handle, let value, let type, _, _):
            write(
                .trace, "writing", of: order.subject.key(of: handle),
                [
                    ("operation", type == .withResponse ? "write" : "write without response"),
                    ("length", "\(value.count)"),
                ])
        case .settle(_, .failed(let failure)): write(.info, "operation failed", [("why", "\(failure.error)")])
        case .settle: write(.trace, "operation done")

        case .subscribe(_, let transport, _, _):
            writeSubscription(.debug, transport == .signals ? "subscribing" : "subscribing over a socket")
        case .unsubscribe: writeSubscription(.debug, "unsubscribing", operation: "unsubscribe")
        case .subscribed(afterGap: false): writeSubscription(.info, "subscribed")
        case .subscribed(afterGap: true): writeSubscription(.notice, "subscription resumed; values may be missing")
        case .deliver(let failure), .finishNotifications(let failure?):
            writeSubscription(.warning, "subscription failed", why: failure)
        case .finishNotifications(nil): writeSubscription(.debug, "notifications ended")

        case .beginRun: write(.debug, "run begins", [("operation", "run")])
        case .stopRun: write(.debug, "run ends", [("operation", "run")])
        }
    }

    // MARK: Metadata

    private func adapter(of session: CentralSession) -> String? { session.core.withLock { $0.shell.choice.lastName } }

    private func address(of key: PeripheralKey, in session: CentralSession) -> String? {
        key.rawValue == 0 ? nil : session.presentAddress(of: key).address.description
    }

    private func names(of key: AttributeKey?, in session: CentralSession) -> ManagerLog.Metadata {
        guard let key else { return [] }
        return session.client.withTree { tree in
            guard let attribute = tree.attribute(key) else { return [] }
            let service = tree.attribute(AttributeKey(device: key.device, handle: attribute.service))?.uuid.uuidString
            switch attribute.kind {
            case .service: return [("service", service)]
            case .characteristic: return [("service", service), ("characteristic", attribute.uuid.uuidString)]
            case .descriptor:
                let characteristic = AttributeKey(device: key.device, handle: attribute.characteristic)
                return [
                    ("service", service), ("characteristic", tree.attribute(characteristic)?.uuid.uuidString),
                    ("descriptor", attribute.uuid.uuidString),
                ]
            }
        }
    }
}
