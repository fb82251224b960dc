import BlueCapBlueZ
import Foundation
import BlueCapGATT
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
        switch order.action {
        case .startTimer, .cancelTimer, .limit, .drop, .stopSeeking, .awaitReplies, .finishStream, .forget, .endUse,
            .noteShortLinks, .rejectRequests, .cancelRequests, .fence, .release:
            return

        case .announce(let state): log.state(state, session.standing.explanation, adapter: adapter(of: session))
        case .startScan(_, let request):
            write(
                .info, "scan started", order, session,
                [("services", request.services.map { $0.map(\.uuidString).joined(separator: " ") })])
        case .endScan(_, nil): write(.info, "scan stopped", order, session)
        case .endScan(_, let error?): write(.error, "scan failed", order, session, [("why", "\(error)")])
        case .discovered(let key, _), .sighted(let key, _, _):
            write(.trace, "received", order, session, [("peripheral", address(of: key, in: session))])
        case .expired(let key):
            write(.debug, "expired", order, session, [("peripheral", address(of: key, in: session))])

        case .callConnect: write(.debug, "connecting", order, session)
        case .cancelConnect: write(.debug, "attempt to connect cancelled", order, session)
        case .callDisconnect: write(.debug, "disconnecting", order, session)
        case .seek: write(.debug, "searching the peripheral, which BlueZ does not have", order, session)
        case .report(_, .connected): write(.debug, "connected", order, session)
        case .report(_, .timedOut): write(.notice, "attempt to connect timed out", order, session)
        case .report(_, .disconnected), .report(_, .forced): write(.debug, "disconnected", order, session)
        case .report(_, let report) where report.event == .giveUp:
            write(.warning, "connection given up", order, session)
        case .report(_, let report):
            write(.warning, "connection failed", order, session, [("why", report.error.map { "\($0)" })])
        case .linkWentUp: write(.info, "link up", order, session)
        case .linkWentDown(let loss):
            let level: Logger.Level = loss == .application ? .info : .notice
            write(level, "link down", order, session, [("why", "\(loss)")])

        case .askForConsent: write(.info, "asking whether to pair", order, session)
        case .callPair: write(.info, "pairing", order, session)
        case .cancelPairing: write(.info, "cancelling the pairing", order, session)
        case .removeDevice: write(.info, "removing the device from BlueZ, with its bond", order, session)
        case .setTrusted(let isTrusted):
            write(.info, isTrusted ? "marking as trusted" : "removing the mark of trust", order, session)
        case .reportPairing(let change):
            if let error = change.error {
                write(.warning, "pairing failed", order, session, [("why", "\(error)")])
            } else {
                write(
                    .info, change.isBonded ? "bonded" : change.isPaired ? "paired" : "not paired", order, session,
                    [("origin", "\(change.origin)")])
            }

        case .readTable: write(.debug, "reading the services", order, session)
        case .servicesChanged: write(.info, "services changed", order, session)
        case .read(_, let handle, _, _):
            write(.trace, "reading", order, session, of: order.subject.key(of: handle), [("operation", "read")])
        case .write(_, let handle, let value, let type, _, _):
            write(
                .trace, "writing", order, session, of: order.subject.key(of: handle),
                [
                    ("operation", type == .withResponse ? "write" : "write without response"),
                    ("length", "\(value.count)"),
                ])
        case .settle(_, .failed(let failure)):
            write(.info, "operation failed", order, session, [("why", "\(failure.error)")])
        case .settle: write(.trace, "operation done", order, session)

        case .subscribe(_, let transport, _, _):
            write(
                .debug, transport == .signals ? "subscribing" : "subscribing over a socket", order, session,
                of: order.subject.attribute, [("operation", "subscribe")])
        case .unsubscribe:
            write(.debug, "unsubscribing", order, session, of: order.subject.attribute, [("operation", "unsubscribe")])
        case .subscribed(afterGap: false):
            write(.info, "subscribed", order, session, of: order.subject.attribute, [("operation", "subscribe")])
        case .subscribed(afterGap: true):
            write(
                .notice, "subscription resumed; values may be missing", order, session, of: order.subject.attribute,
                [("operation", "subscribe")])
        case .deliver(let failure), .finishNotifications(let failure?):
            write(
                .warning, "subscription failed", order, session, of: order.subject.attribute,
                [("operation", "subscribe"), ("why", "\(failure.error)")])
        case .finishNotifications(nil):
            write(
                .debug, "notifications ended", order, session, of: order.subject.attribute, [("operation", "subscribe")]
            )

        case .beginRun: write(.debug, "run begins", order, session, [("operation", "run")])
        case .stopRun: write(.debug, "run ends", order, session, [("operation", "run")])
        }
    }

    // MARK: Metadata

    /// - Parameter attribute: The attribute of an operation, whose names are added.
    private func write(
        _ level: Logger.Level, _ message: Logger.Message, _ order: Order, _ session: CentralSession,
        of attribute: AttributeKey? = nil, _ metadata: @autoclosure () -> ManagerLog.Metadata = []
    ) {
        log.write(
            level, message,
            [
                ("adapter", adapter(of: session)),
                ("peripheral", address(of: order.subject.peripheral, in: session)),
            ] + names(of: attribute, in: session) + metadata())
    }

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
