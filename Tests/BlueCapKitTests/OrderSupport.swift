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
