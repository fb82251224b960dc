import BlueCapBlueZ
import XCTest

@testable import BlueCapKit

final class OperationLanesTests: XCTestCase {
    private typealias Lanes = OperationLanes

    private var lanes = Lanes()
    private let lane = AttributeID(rawValue: 1)
    private let other = AttributeID(rawValue: 2)
    private let inProgress = OperationFailure(BlueZError(name: "org.bluez.Error.InProgress"))

    override func setUp() { _ = open() }

    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }

    /// Orders and operations to send in short: `send 1`, `done 1`, `failed 1`, `retry 1`.
    private func words(_ decide: (inout Orders) -> [Lanes.Operation]) -> [String] {
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
        return orders + sent.map { "send \($0.id.rawValue)" }
    }

    private func words(_ sent: [Lanes.Operation]) -> [String] { words { _ in sent } }
    private func words(_ sent: Lanes.Operation?) -> [String] { words { _ in [sent].compactMap { $0 } } }

    private func submit(_ number: UInt64, lane: AttributeID? = nil) -> [String] {
        words(
            lanes.submit(
                .init(id: id(number), target: lane ?? self.lane, request: .read(offset: 0)), lane: lane ?? self.lane))
    }

    private func open(where exists: (AttributeID) -> Bool = { _ in true }) -> [String] {
        words { lanes.open(where: exists, into: &$0) }
    }

    private func replied(_ number: UInt64, _ failure: OperationFailure? = nil) -> [String] {
        words { orders in
            let result = failure.map { Result<Order.Outcome, OperationFailure>.failure($0) } ?? .success(.done)
            return [lanes.replied(id(number), result, into: &orders)].compactMap { $0 }
        }
    }

    private func timedOut(_ number: UInt64) -> [String] {
        words { orders in
            _ = lanes.end(id(number), .timedOut, into: &orders)
            return []
        }
    }

    /// `true` or `false` after the orders: whether the operation was not settled.
    private func withdrawn(_ number: UInt64) -> [String] {
        var isUnsettled = false
        let orders = words { orders in
            isUnsettled = lanes.end(id(number), .withdrawn, into: &orders)
            return []
        }
        return orders + ["\(isUnsettled)"]
    }

    // MARK: Order

    func testOperationsOfACharacteristicGoOneAfterTheOther() {
        XCTAssertEqual(submit(1), ["send 1"])
        XCTAssertEqual(submit(2), [])
        XCTAssertEqual(submit(3), [])
        XCTAssertEqual(replied(1), ["done 1", "send 2"])
        XCTAssertEqual(replied(2, .refused(BlueZError(name: "x"))), ["failed 2", "send 3"])
        XCTAssertEqual(replied(3), ["done 3"])
        XCTAssertTrue(lanes.isIdle)
    }

    func testCharacteristicsDoNotWaitForEachOther() {
        XCTAssertEqual(submit(1), ["send 1"])
        XCTAssertEqual(submit(2, lane: other), ["send 2"])
        XCTAssertEqual(submit(3), [])
        XCTAssertEqual(replied(2), ["done 2"])
        XCTAssertEqual(replied(1), ["done 1", "send 3"])
    }

    func testALongLaneKeepsItsOrder() {
        _ = (1...1_000).map { submit($0) }
        for number in 1...1_000 as ClosedRange<UInt64> {
            XCTAssertEqual(replied(number).first, "done \(number)")
        }
        XCTAssertTrue(lanes.isIdle)
    }

    // MARK: Time-outs

    func testWhatTimesOutInFlightKeepsItsPlaceUntilBlueZAnswers() {
        _ = submit(1)
        _ = submit(2)
        XCTAssertEqual(timedOut(1), ["timed out 1"])
        XCTAssertEqual(timedOut(1), [])
        XCTAssertEqual(replied(1), ["send 2"], "The late reply settles nothing, and frees the lane.")
        XCTAssertEqual(replied(1), [])
        XCTAssertEqual(replied(2), ["done 2"])
        XCTAssertTrue(lanes.isIdle)
    }

    func testWhatIsWithdrawnWhileItWaitsIsNeverSent() {
        _ = submit(1)
        _ = submit(2)
        XCTAssertEqual(withdrawn(2), ["failed 2", "true"])
        XCTAssertEqual(withdrawn(2), ["false"])
        XCTAssertEqual(replied(1), ["done 1"])
        XCTAssertTrue(lanes.isIdle)
    }

    func testWhatBlueZExecutesIsNotWithdrawn() {
        _ = submit(1)
        _ = submit(2)
        XCTAssertEqual(withdrawn(1), ["true"])
        XCTAssertEqual(replied(1), ["done 1", "send 2"])
        XCTAssertEqual(withdrawn(1), ["false"])
        XCTAssertEqual(timedOut(2), ["timed out 2"])
        XCTAssertEqual(withdrawn(2), ["false"])
    }

    func testWhatIsWithdrawnIsNeitherRepeatedNorPairedFor() {
        lanes.pairsOnDemand = true
        _ = submit(1)
        XCTAssertEqual(withdrawn(1), ["true"])
        XCTAssertEqual(replied(1, inProgress), ["failed 1"])
        _ = submit(2)
        XCTAssertEqual(withdrawn(2), ["true"])
        XCTAssertEqual(replied(2, unpaired), ["failed 2"])
        XCTAssertFalse(lanes.isSecuring)
        _ = submit(3)
        XCTAssertEqual(replied(3, inProgress), ["retry 1"], "The next operation is repeated as before.")
    }

    func testWhatWaitsForItsRepetitionIsWithdrawn() {
        _ = submit(1)
        _ = submit(2)
        XCTAssertEqual(replied(1, inProgress), ["retry 1"])
        XCTAssertEqual(withdrawn(1), ["failed 1", "true"])
        XCTAssertEqual(words(lanes.retry(lane)), ["send 2"])
    }

    func testWhatTimesOutWhileItWaitsIsNeverSent() {
        _ = submit(1)
        _ = submit(2)
        _ = submit(3)
        XCTAssertEqual(timedOut(2), ["timed out 2"])
        XCTAssertEqual(replied(1), ["done 1", "send 3"])
    }

    func testTheTimeOfWhatIsFinishedSaysNothing() {
        _ = submit(1)
        _ = replied(1)
        XCTAssertEqual(timedOut(1), [])
    }

    // MARK: Busy

    func testABusyCharacteristicIsTriedAgainBeforeWhatWaits() {
        _ = submit(1)
        _ = submit(2)
        XCTAssertEqual(replied(1, inProgress), ["retry 1"])
        XCTAssertEqual(words(lanes.retry(lane)), ["send 1"])
        XCTAssertEqual(replied(1), ["done 1", "send 2"])
    }

    func testABusyCharacteristicIsNotTriedForEver() {
        _ = submit(1)
        for _ in Lanes.retries {
            XCTAssertEqual(replied(1, inProgress), ["retry 1"])
            XCTAssertEqual(words(lanes.retry(lane)), ["send 1"])
        }
        XCTAssertEqual(replied(1, inProgress), ["failed 1"])
        XCTAssertLessThan(Lanes.retries.reduce(0, +), 2.5)
    }

    func testWhatTimesOutInAPauseIsNotTriedAgain() {
        _ = submit(1)
        _ = submit(2)
        _ = replied(1, inProgress)
        XCTAssertEqual(timedOut(1), ["timed out 1"])
        XCTAssertEqual(words(lanes.retry(lane)), ["send 2"])
    }

    // MARK: Link and attributes

    func testWhatIsAskedForBeforeTheAttributesAreKnownWaits() {
        lanes.close()
        XCTAssertEqual(submit(1), [])
        XCTAssertEqual(submit(2, lane: other), [])
        XCTAssertEqual(open(), ["send 1", "send 2"])
    }

    func testALostLinkFailsEverythingOnce() {
        _ = submit(1)
        _ = submit(2)
        _ = submit(3, lane: other)
        _ = replied(3, inProgress)
        XCTAssertEqual(
            words { orders in
                lanes.fail(.linkLost, into: &orders); return []
            }, ["failed 1", "failed 2", "cancel 2", "failed 3"])
        XCTAssertTrue(lanes.isIdle)
        XCTAssertEqual(replied(1), [])
        XCTAssertEqual(words(lanes.retry(other)), [])
        _ = open()
        XCTAssertEqual(submit(4), ["send 4"], "What BlueZ still owes does not hold up a new connection.")
        XCTAssertEqual(replied(1), [])
    }

    func testAHeldLaneWaitsAndIsReleasedOrFails() {
        lanes.hold(lane)
        lanes.hold(other)
        XCTAssertEqual(submit(1), [])
        XCTAssertEqual(submit(2, lane: other), [])
        XCTAssertEqual(open(where: { $0 == lane }), ["failed 2", "send 1"])
        XCTAssertFalse(lanes.isHeld(lane))
        XCTAssertEqual(replied(1), ["done 1"])
        XCTAssertTrue(lanes.isIdle)
    }

    func testAPauseThatEndsWithoutLinkKeepsTheTurn() {
        _ = submit(1)
        _ = submit(2)
        _ = replied(1, inProgress)
        lanes.close()
        XCTAssertEqual(words(lanes.retry(lane)), [])
        XCTAssertEqual(open(), ["send 1"])
        XCTAssertEqual(replied(1), ["done 1", "send 2"])
    }

    func testTheSentenceWithoutALinkIsALostLink() {
        XCTAssertEqual(
            OperationFailure(BlueZError(name: "org.bluez.Error.Failed", message: "Not connected")), .linkLost)
        XCTAssertEqual(OperationFailure(BlueZError(name: "org.bluez.Error.NotConnected")), .linkLost)
        XCTAssertEqual(
            OperationFailure(BlueZError(name: "org.freedesktop.DBus.Error.UnknownObject")), .invalidated)
    }

    // MARK: Security

    private let unpaired = OperationFailure(
        BlueZError(name: "org.bluez.Error.NotPermitted", message: "Not paired"))

    private func secured(_ error: PairingError? = nil) -> [String] { words { lanes.secured(error, into: &$0) } }

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

    func testWithoutPairingOnDemandAnOperationFails() {
        _ = submit(1)
        XCTAssertEqual(replied(1, unpaired), ["failed 1"])
        XCTAssertTrue(lanes.isIdle)
    }

    func testAnOperationIsRepeatedOnceInItsPlace() {
        lanes.pairsOnDemand = true
        _ = submit(1)
        _ = submit(2)
        XCTAssertEqual(replied(1, unpaired), [])
        XCTAssertTrue(lanes.isSecuring)
        XCTAssertEqual(submit(3, lane: other), ["send 3"])
        XCTAssertEqual(secured(), ["send 1"])
        XCTAssertFalse(lanes.isSecuring)
        XCTAssertEqual(replied(1, unpaired), ["failed 1", "send 2"])
    }

    func testAFailedPairingFailsTheOperation() {
        lanes.pairsOnDemand = true
        _ = submit(1)
        _ = submit(2)
        _ = replied(1, unpaired)
        XCTAssertEqual(secured(.cancelled), ["failed 1", "send 2"])
    }

    func testATimeOutEndsTheWaitForAPairing() {
        lanes.pairsOnDemand = true
        _ = submit(1)
        _ = submit(2)
        _ = replied(1, unpaired)
        XCTAssertEqual(timedOut(1), ["timed out 1"])
        XCTAssertFalse(lanes.isSecuring)
        XCTAssertEqual(secured(), ["send 2"])
    }

    func testOnlyTheWaitForAPairingOutlivesTheLinkThatThePairingEnds() {
        lanes.pairsOnDemand = true
        _ = submit(1)
        _ = submit(2)
        _ = replied(1, unpaired)
        _ = submit(3, lane: other)
        XCTAssertEqual(
            Orders.given { lanes.fail(.linkLost, keepsSecuring: true, into: &$0) }.count, 2)
        XCTAssertEqual(secured(), [])
        XCTAssertEqual(open(), ["send 1"])
        XCTAssertEqual(replied(1), ["done 1"])
        XCTAssertTrue(lanes.isIdle)
    }

    func testARejectedPairingFailsWhatIsInFlightAndItsLaneWaitsForBlueZ() {
        _ = submit(1)
        _ = submit(2)
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
        XCTAssertEqual(timedOut(1), [])
        XCTAssertEqual(replied(1, unpaired), ["send 2"])
        XCTAssertNil(lanes.called(id(1)))
    }

    func testALostLinkEndsTheWaitForAPairing() {
        lanes.pairsOnDemand = true
        _ = submit(1)
        _ = replied(1, unpaired)
        XCTAssertEqual(Orders.given { lanes.fail(.linkLost, into: &$0) }.count, 1)
        XCTAssertTrue(lanes.isIdle)
        XCTAssertEqual(secured(), [])
    }
}
