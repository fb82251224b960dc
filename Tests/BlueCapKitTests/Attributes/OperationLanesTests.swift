import BlueCapBlueZ
import TestSupport
import XCTest

@testable import BlueCapKit

final class OperationLanesTests: XCTestCase {
    private typealias Lanes = OperationLanes

    private var lanes = Lanes()
    private let lane = AttributeID(rawValue: 1)
    private let other = AttributeID(rawValue: 2)
    private let failures: [String: OperationFailure] = [
        "inProgress": OperationFailure(BlueZError(name: "org.bluez.Error.InProgress")),
        "unpaired": OperationFailure(BlueZError(name: "org.bluez.Error.NotPermitted", message: "Not paired")),
        "refused": .refused(BlueZError(name: "x")),
    ]

    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }

    /// The orders, and the operations to send.
    private func words(_ decide: (inout Orders) -> [Lanes.Operation]) -> String {
        var sent: [Lanes.Operation] = []
        let actions = Orders.given { sent = decide(&$0) }
        let orders = actions.map { action in
            switch action {
            case .settle(let id, .done): "done \(id.rawValue)"
            case .settle(let id, .failed(.characteristic(.readTimeout))): "timed out \(id.rawValue)"
            case .settle(let id, .failed): "failed \(id.rawValue)"
            case .startTimer(.retry(let lane), _): "retry \(lane.rawValue)"
            case .cancelTimer(.retry(let lane)): "cancel \(lane.rawValue)"
            default: "\(action)"
            }
        }
        let all = orders + sent.map { "send \($0.id.rawValue)" }
        return all.isEmpty ? "none" : all.joined(separator: ", ")
    }

    /// Executes an event. A number is that of an operation; operations are in the first lane, unless it is `other`.
    private func send(_ event: [String]) throws -> String {
        let id = id(event.count > 1 ? UInt64(event[1]) ?? 0 : 0)
        let lane = event.contains("other") ? other : lane
        switch event[0] {
        case "isIdle": return "\(lanes.isIdle)"
        case "isSecuring": return "\(lanes.isSecuring)"
        case "isHeld": return "\(lanes.isHeld(lane))"
        case "pairsOnDemand": lanes.pairsForOperations = true
        case "close": lanes.close()
        case "hold": lanes.hold(lane)
        case "open": return words { lanes.open(where: { event.count == 1 || $0 == self.lane }, into: &$0) }
        case "submit":
            return words { _ in
                [lanes.submit(.init(id: id, target: lane, request: .read(offset: 0)), lane: lane)].compactMap(\.self)
            }
        case "replied":
            let result =
                event.count > 2
                ? failures[event[2]].map { Result<Order.Outcome, OperationFailure>.failure($0) }! : .success(.done)
            return words { [lanes.replied(id, result, into: &$0)].compactMap(\.self) }
        case "retry": return words { _ in [lanes.retry(lane)].compactMap(\.self) }
        case "timedOut":
            return words { orders in
                _ = lanes.end(id, .timedOut, into: &orders)
                return []
            }
        case "withdrawn":
            var isUnsettled = false
            let orders = words { orders in
                isUnsettled = lanes.end(id, .withdrawn, into: &orders)
                return []
            }
            return "\(isUnsettled) " + orders
        case "lost":
            return words { orders in
                lanes.fail(.linkLost, keepsSecuring: event.contains("pairing"), into: &orders)
                return []
            }
        case "secured": return words { lanes.secured(event.contains("cancelled") ? .cancelled : nil, into: &$0) }
        default: throw UnknownEvent(event)
        }
        return "none"
    }

    private func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            lanes = Lanes()
            _ = words { lanes.open(where: { _ in true }, into: &$0) }
            return { [self] in try send($0) }
        }
    }

    func testOrder() {
        play(
            """
            Operations of a characteristic follow each other:
            submit 1 → send 1; submit 2 → none; submit 3 → none; replied 1 → done 1, send 2
            replied 2 refused → failed 2, send 3; replied 3 → done 3; isIdle → true
            Characteristics do not wait for each other:
            submit 1 → send 1; submit 2 other → send 2; submit 3 → none; replied 2 → done 2; replied 1 → done 1, send 3
            """)
    }

    func testALongLaneKeepsItsOrder() throws {
        _ = try (1...1_000).map { try send(["submit", "\($0)"]) }
        _ = words { lanes.open(where: { _ in true }, into: &$0) }
        for number in 1..<1_000 {
            XCTAssertEqual(try send(["replied", "\(number)"]), "done \(number), send \(number + 1)")
        }
        XCTAssertEqual(try send(["replied", "1000"]), "done 1000")
        XCTAssertTrue(lanes.isIdle)
    }

    func testTimeLimitsAndWithdrawals() {
        play(
            """
            What exceeds its time in BlueZ keeps its place until BlueZ replies:
            submit 1; submit 2; timedOut 1 → timed out 1; timedOut 1 → none; replied 1 → send 2; replied 1 → none
            replied 2 → done 2; isIdle → true
            What is withdrawn while it waits is never sent:
            submit 1; submit 2; withdrawn 2 → true failed 2; withdrawn 2 → false none; replied 1 → done 1; isIdle → true
            What BlueZ executes is not withdrawn:
            submit 1; submit 2; withdrawn 1 → true none; replied 1 → done 1, send 2; withdrawn 1 → false none
            timedOut 2 → timed out 2; withdrawn 2 → false none
            What is withdrawn is not repeated, and the next operation is:
            pairsOnDemand; submit 1; withdrawn 1 → true none; replied 1 inProgress → failed 1
            submit 3; replied 3 inProgress → retry 1
            What is withdrawn causes no pairing:
            pairsOnDemand; submit 2; withdrawn 2 → true none; replied 2 unpaired → failed 2; isSecuring → false
            What waits for its repetition is withdrawn:
            submit 1; submit 2; replied 1 inProgress → retry 1; withdrawn 1 → true failed 1; retry → send 2
            What exceeds its time while it waits is never sent:
            submit 1; submit 2; submit 3; timedOut 2 → timed out 2; replied 1 → done 1, send 3
            The time limit of what is finished does nothing:
            submit 1; replied 1; timedOut 1 → none
            """)
    }

    func testABusyCharacteristicIsTriedAgainForALimitedTime() {
        let again = "replied 1 inProgress → retry 1; retry → send 1;"
        play(
            """
            It is tried again before what waits:
            submit 1; submit 2; \(again) replied 1 → done 1, send 2
            Not without end:
            submit 1; \(String(repeating: again, count: Lanes.retries.count)) replied 1 inProgress → failed 1
            What exceeds its time in a pause is not tried again:
            submit 1; submit 2; replied 1 inProgress; timedOut 1 → timed out 1; retry → send 2
            """)
        XCTAssertLessThan(Lanes.retries.reduce(0, +), 2.5)
    }

    func testLinksAndAttributes() {
        play(
            """
            What is asked before the attributes are known waits:
            close; submit 1 → none; submit 2 other → none; open → send 1, send 2
            A lost link fails everything once:
            submit 1; submit 2; submit 3 other; replied 3 inProgress; lost → failed 1, failed 2, cancel 2, failed 3
            isIdle → true; replied 1 → none; retry other → none
            What BlueZ has not replied to does not delay the next link:
            submit 1; lost; open; submit 4 → send 4; replied 1 → none
            A held lane waits and is released or fails:
            hold; hold other; submit 1 → none; submit 2 other → none; open lane → failed 2, send 1; isHeld → false
            replied 1 → done 1; isIdle → true
            A pause that ends without a link keeps the place:
            submit 1; submit 2; replied 1 inProgress; close; retry → none; open → send 1; replied 1 → done 1, send 2
            """)
    }

    func testTheSentenceWithoutALinkIsALostLink() {
        XCTAssertEqual(
            OperationFailure(BlueZError(name: "org.bluez.Error.Failed", message: "Not connected")), .linkLost)
        XCTAssertEqual(OperationFailure(BlueZError(name: "org.bluez.Error.NotConnected")), .linkLost)
        XCTAssertEqual(
            OperationFailure(BlueZError(name: "org.freedesktop.DBus.Error.UnknownObject")), .invalidated)
    }

    func testTheErrorsOfATTThatMeanALackOfSecurity() {
        for code in ["05", "0c", "0f"] {
            let error = BlueZError(
                name: "org.bluez.Error.Failed", message: "Operation failed with ATT error: 0x\(code)")
            XCTAssertEqual(OperationFailure(error), .needsSecurity(error))
        }
        for error in [
            BlueZError(name: "org.bluez.Error.NotAuthorized"),
            BlueZError(name: "org.bluez.Error.Failed", message: "Operation failed with ATT error: 0x0e"),
            BlueZError(name: "org.bluez.Error.NotPermitted", message: "Read not permitted"),
        ] { XCTAssertEqual(OperationFailure(error), .refused(error)) }
    }

    func testAFailedPairingFailsTheOperation() {
        play(
            """
            Without pairing on demand an operation fails:
            submit 1; replied 1 unpaired → failed 1; isIdle → true
            It is repeated once in its place:
            pairsOnDemand; submit 1; submit 2; replied 1 unpaired → none; isSecuring → true; submit 3 other → send 3
            secured → send 1; isSecuring → false; replied 1 unpaired → failed 1, send 2
            A failed pairing fails it:
            pairsOnDemand; submit 1; submit 2; replied 1 unpaired; secured cancelled → failed 1, send 2
            Its time limit ends the wait for a pairing:
            pairsOnDemand; submit 1; submit 2; replied 1 unpaired; timedOut 1 → timed out 1; isSecuring → false
            secured → send 2
            Only the wait for a pairing outlives the link that the pairing ends:
            pairsOnDemand; submit 1; submit 2; replied 1 unpaired; submit 3 other; lost pairing → failed 2, failed 3
            secured → none; open → send 1; replied 1 → done 1; isIdle → true
            A lost link ends the wait for a pairing:
            pairsOnDemand; submit 1; replied 1 unpaired; lost → failed 1; isIdle → true; secured → none
            """)
    }

    func testARejectedPairingFailsWhatIsInFlightAndItsLaneWaitsForBlueZ() {
        play("submit 1; submit 2")
        var targets: [AttributeID] = []
        let command = Lanes.Operation(
            id: id(4), target: other, request: .write(Data(), .withoutResponse, offset: 0))
        _ = lanes.submit(command, lane: other)
        let orders = Orders.given { targets = lanes.refuse(.rejected(by: .policy), into: &$0) }
        XCTAssertEqual(
            orders, [.settle(id(1), .failed(.characteristic(.pairingFailed(.rejected(by: .policy)))))])
        XCTAssertEqual(targets, [lane])
        XCTAssertEqual(Set(lanes.unanswered.map(\.operation.id)), [id(1), id(4)])
        XCTAssertNil(lanes.inFlight(id(1)))
        XCTAssertEqual(lanes.called(id(1))?.lane, lane)
        XCTAssertEqual(try send(["timedOut", "1"]), "none")
        XCTAssertEqual(try send(["replied", "1", "unpaired"]), "send 2")
        XCTAssertNil(lanes.called(id(1)))
    }
}
