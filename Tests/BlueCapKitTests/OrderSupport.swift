import BlueCapBlueZ
import Foundation
import BlueCapGATT
import BlueCapReactor

@testable import BlueCapKit

/// Tests of machines compare the actions of the orders that an event gives.
extension Orders {
    static func given(_ decide: (inout Orders) -> Void) -> [Order.Action] {
        var orders = Orders()
        decide(&orders)
        return orders.pending.map(\.action)
    }
}

extension Order.Action {
    static func startTimer(_ timer: ConnectionMachine.Timer, _ seconds: TimeInterval) -> Self {
        .startTimer(.connection(timer), seconds)
    }

    static func reportFailure(_ number: ConnectionMachine.ConnectionNumber, _ error: PeripheralError) -> Self {
        .report(number, .failed(error))
    }

    static func callConnect(_ attempt: ConnectionMachine.Attempt) -> Self { .callConnect(attempt, pausesScans: true) }

    static func cancelTimer(_ timer: ConnectionMachine.Timer) -> Self { .cancelTimer(.connection(timer)) }

    static func subscribe(
        _ call: SubscriptionMachine.Call, _ transport: NotificationTransport, afterGap: Bool = false
    ) -> Self {
        .subscribe(call, transport, afterGap: afterGap, isRepeated: false)
    }

    static func subscribe(
        _ call: SubscriptionMachine.Call, _ transport: NotificationTransport, isRepeated: Bool
    ) -> Self {
        .subscribe(call, transport, afterGap: false, isRepeated: isRepeated)
    }

    static func settle(_ id: OperationID, _ failure: PeripheralFailure?) -> Self {
        .settle(id, failure.map { .failed($0) } ?? .done)
    }

    static func finish(_ failure: PeripheralFailure?) -> Self { .finishNotifications(failure) }
}

/// A `ConnectionMachine` with what BlueZ reports, as its peripheral passes it on.
@dynamicMemberLookup
struct ReportedMachine: Equatable {
    private var machine: ConnectionMachine
    private var status = LinkStatus()
    private(set) var isUsable: Bool

    init(backOff: BackOff, isUsable: Bool, isPresent: Bool, isLinkUp: Bool) {
        machine = ConnectionMachine(backOff: backOff)
        self.isUsable = isUsable
        status = Self.status(isPresent, isLinkUp && isUsable)
    }

    private static func status(_ isPresent: Bool, _ isConnected: Bool) -> LinkStatus {
        LinkStatus(device: isPresent ? ObjectKey(adapter: 0) : nil, isConnected: isPresent && isConnected)
    }

    subscript<Value>(dynamicMember path: KeyPath<ConnectionMachine, Value>) -> Value { machine[keyPath: path] }

    mutating func event(_ event: ConnectionMachine.Event) -> [Order.Action] {
        Orders.given {
            ($0.status, $0.isUsable) = (status, isUsable)
            machine.event(event, into: &$0)
        }
    }

    mutating func deviceChanged(isPresent: Bool = true, isConnected: Bool) -> [Order.Action] {
        let wasConnected = status.isConnected
        status = Self.status(isPresent, isConnected)
        return event(.deviceChanged(wasConnected: wasConnected))
    }

    mutating func adapterUsable(_ isUsable: Bool) -> [Order.Action] {
        guard isUsable != self.isUsable else { return [] }
        self.isUsable = isUsable
        if !isUsable { status.isConnected = false }
        return event(.adapterUsable(isUsable))
    }
}

extension SubscriptionMachine {
    /// - Parameter isReady: Whether the link is up and the characteristic exists on it.
    init(isReady: Bool) {
        self.init()
        if isReady { _ = event(.attributesReady) }
    }

    mutating func event(_ event: Event) -> [Order.Action] { Orders.given { self.event(event, into: &$0) } }
}

extension SubscriptionMachine.Event {
    static let linkWentUp = Self.attribute(.awaited)
    static let attributesReady =
        ObjectKey(adapter: 0).map { Self.attribute(.ready(AttributeKey(device: $0, handle: 1))) }
        ?? .attribute(.awaited)
    static let attributeRemoved = Self.attribute(.awaited)
    static let invalidated = Self.attribute(.invalid)
    static func linkWentDown(_ error: PeripheralError, keepsSecuring: Bool = false) -> Self {
        .attribute(.away, error, keepsSecuring: keepsSecuring)
    }
}

extension AttributeState {
    mutating func linkUp(isResolved: Bool) -> [Order.Action] {
        Orders.given { linkUp(isResolved: isResolved, into: &$0) }
    }

    mutating func linkDown(_ failure: OperationFailure) -> [Order.Action] {
        Orders.given { linkDown(failure, into: &$0) }
    }

    mutating func resolved(_ isResolved: Bool) -> [Order.Action] {
        Orders.given { resolved(isResolved, into: &$0) }
    }

    mutating func fencePassed(link: UInt32) -> [Order.Action] {
        Orders.given { fencePassed(link: link, into: &$0) }
    }

    mutating func tableRead(
        _ declarations: [AttributeDeclaration], naming named: [CBUUID], link: UInt32
    ) -> [Order.Action] {
        Orders.given {
            tableRead(ExportedAttributes(declarations: declarations, services: named), link: link, into: &$0)
        }
    }

    mutating func fired(_ timer: ServiceDiscoveryMachine.Timer) -> [Order.Action] {
        Orders.given { fired(timer, into: &$0) }
    }

    mutating func submit(
        _ request: Request, on target: AttributeID, _ id: OperationID, timeout: TimeInterval
    ) -> [Order.Action] {
        Orders.given { submit(request, on: target, id, timeout: timeout, into: &$0) }
    }

    mutating func replied(
        _ id: OperationID, _ result: Result<Data?, BlueZError>, at now: Instant, isPaired: Bool = false
    ) -> [Order.Action] {
        Orders.given {
            $0.status.isPaired = isPaired
            replied(id, result, at: now, into: &$0)
        }
    }

    mutating func batteryChanged(_ level: UInt8?) -> [Order.Action] {
        Orders.given { batteryChanged(level, into: &$0) }
    }
}

extension PeripheralState {
    mutating func statusChanged(_ new: LinkStatus) -> [Order.Action] { Orders.given { statusChanged(new, into: &$0) } }

    mutating func managerStateChanged(_ state: ManagerState) -> [Order.Action] {
        Orders.given { managerStateChanged(state, into: &$0) }
    }

    mutating func connect(_ event: ConnectionMachine.Event) -> [Order.Action] {
        Orders.given { connect(event, into: &$0) }
    }
}

// MARK: Tables of plays

extension [Order.Action] {
    /// The orders as tables have them.
    var words: String { isEmpty ? "none" : map(\.words).joined(separator: ", ") }
}

extension Order.Action {
    fileprivate var words: String {
        switch self {
        // The length of a back-off is random.
        case .startTimer(let timer, let seconds):
            "start \(timer.words) " + (seconds == seconds.rounded() ? String(format: "%g", seconds) : "later")
        case .cancelTimer(let timer): "cancel \(timer.words)"
        case .settle(let id, .done): "done \(id.rawValue)"
        case .settle(let id, .value(let data)): "value \(id.rawValue) \(Array(data))"
        case .settle(let id, .failed(let failure)): "fail \(id.rawValue) \(failure.words)"
        case .callPair(let attempt, let timeout): "pair \(attempt) " + String(format: "%g", timeout)
        case .reportPairing(let change):
            "report \(change.isBonded ? "bonded" : change.isPaired ? "paired" : "unpaired") \(change.origin)"
                + (change.error.map { " " + $0.words } ?? "")
        case .callConnect(let attempt, let pausesScans): "connect \(attempt)" + (pausesScans ? "" : " scanning")
        case .report(let number, let report): "report \(number) \(report.words)"
        case .finishStream(let number): "finishStream \(number)"
        case .linkWentDown(let reason): "linkWentDown \(reason)"
        case .subscribe(let call, let transport, let afterGap, let isRepeated):
            "subscribe \(call.rawValue) \(transport)" + (afterGap ? " gap" : "") + (isRepeated ? " again" : "")
        case .subscribed(let afterGap): "subscribed" + (afterGap ? " gap" : "")
        case .unsubscribe(let call): "unsubscribe \(call.rawValue)"
        case .deliver(let failure): "deliver \(failure.words)"
        case .finishNotifications(let failure): "finish" + (failure.map { " " + $0.words } ?? "")
        default: "\(self)"
        }
    }
}

extension Order.Timer {
    fileprivate var words: String { if case .connection(let timer) = self { "\(timer)" } else { "\(self)" } }
}

extension ConnectionMachine.Report {
    /// Why BlueZ refuses to connect, as tables have it.
    static let refusals: [String: BlueZError] = [
        "transient": BlueZError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local"),
        "busy": BlueZError(name: "org.bluez.Error.Failed", message: "Operation already in progress"),
        "unknown": BlueZError(name: "org.bluez.Error.Failed", message: "Something new"),
        "notFound": BlueZError(name: "org.freedesktop.DBus.Error.UnknownObject"),
        "refusal": BlueZError(name: "org.bluez.Error.AuthenticationFailed"),
        "cancelled": BlueZError(name: "org.bluez.Error.Canceled"), "noLink": .noLink,
    ]

    fileprivate var words: String {
        switch self {
        case .connected: "connected"
        case .timedOut: "timedOut"
        case .disconnected: "disconnected"
        case .forced: "forced"
        case .gaveUp(after: .timedOut): "gaveUp timedOut"
        case .gaveUp(after: .disconnected): "gaveUp disconnected"
        case .failed(.disconnected): "failed disconnected"
        case .failed(.pairing(.keyMissing(isCertain: false))): "failed keyMissing"
        default: Self.refusals.first { self == .failed(.connectionFailed(BusError($0.value))) }?.key ?? "\(self)"
        }
    }
}

extension PeripheralFailure {
    /// The failures that tables have names for.
    static let named: [String: PeripheralFailure] = [
        "disconnected": .peripheral(.disconnected), "forced": .peripheral(.forcedDisconnect), "cancelled": .cancelled,
        "invalidated": .characteristic(.invalidated), "timeout": .characteristic(.notifyTimeout),
        "unpaired": .characteristic(.pairingFailed(.timedOut)),
        "operationRejected": .characteristic(.pairingFailed(.rejected(by: .application))),
        "operationCancelled": .characteristic(.pairingFailed(.cancelled)),
        "acquired": .characteristic(
            .acquiredByOther(BusError(name: "org.bluez.Error.NotPermitted", message: "Notify acquired"))),
        "busy": .characteristic(
            .acquiredByOther(BusError(name: "org.bluez.Error.InProgress", message: "In Progress"))),
        "refused": .characteristic(.notifyFailed(BusError(name: "org.bluez.Error.Failed", message: "no"))),
        "unlikely": .characteristic(
            .notifyFailed(BusError(name: "org.bluez.Error.Failed", message: "0x0e", attError: .unlikelyError))),
    ]

    fileprivate var words: String {
        if case .pairing(let error) = self { return error.words }
        return Self.named.first { $0.value == self }?.key ?? "\(self)"
    }
}

extension PairingError {
    /// The errors that tables have names for.
    static let named: [String: PairingError] = [
        "pairingCancelled": .cancelled, "timedOut": .timedOut, "rejected": .rejected(by: .application),
        "failed": .failed(.authenticationFailed), "keyMissing": .keyMissing(isCertain: false),
        "certainKeyMissing": .keyMissing(isCertain: true), "removalFailed": .removalFailed(.authenticationFailed),
        "noDevice": .unavailable(.noDevice),
    ]

    var words: String { Self.named.first { $0.value == self }?.key ?? "\(self)" }
}

extension BusError {
    static let authenticationFailed = BusError(
        name: "org.bluez.Error.AuthenticationFailed", message: "Authentication Failed")
}
