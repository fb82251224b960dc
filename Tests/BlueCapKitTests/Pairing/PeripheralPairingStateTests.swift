import BlueCapBlueZ
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapKit

/// What the state of one peripheral does about pairings beyond ``PairingState``: the link and the operations.
final class PeripheralPairingStateTests: XCTestCase {
    private var state = PeripheralState(backOff: BackOff(seed: 1))
    private var facts = LinkStatus()

    override func setUpWithError() throws {
        let adapter = try XCTUnwrap(ObjectKey(adapter: 0))
        facts.device = ObjectKey(device: BluetoothAddress(rawValue: 1), on: adapter)
        _ = state.managerStateChanged(.poweredOn)
        _ = state.statusChanged(facts)
        _ = state.connect(.connectAsked(ConnectionPolicy()))
    }

    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }

    private func change(_ change: (inout LinkStatus) -> Void) -> [Order.Action] {
        change(&facts)
        return state.statusChanged(facts)
    }

    /// A link with one characteristic, which is read.
    private func read() throws {
        _ = change { ($0.isConnected, $0.areServicesResolved) = (true, true) }
        _ = state.connect(.connectReplied(1, nil))
        try read(id(1), link: 1)
    }

    private func read(_ operation: OperationID, link: UInt32) throws {
        let service = AttributeDeclaration(
            handle: AttributeHandle(1), uuid: CBUUID(0x180D), role: .service(isPrimary: true, includes: []))
        let characteristic = AttributeDeclaration(
            handle: AttributeHandle(2), uuid: CBUUID(0x2A38),
            role: .characteristic(of: AttributeHandle(1), properties: [.read]))
        _ = state.attributes.fencePassed(link: link)
        _ = state.attributes.tableRead([service, characteristic], naming: [], link: link)
        let target = try XCTUnwrap(state.attributes.table.id(at: AttributeHandle(2)))
        XCTAssertFalse(
            state.attributes.submit(.read(offset: 0), on: target, operation, timeout: .infinity).isEmpty)
    }

    private func rejected() -> [Order.Action] {
        Orders.given {
            state.pairingRejected(.rejected(by: .application), into: &$0)
            state.follow(into: &$0)
        }
    }

    func testARejectionEndsTheLinkOfTheOperationThatNeededThePairing() throws {
        try read()
        XCTAssertEqual(
            rejected(),
            [
                .settle(id(1), .failed(.characteristic(.pairingFailed(.rejected(by: .application))))),
                .cancelTimer(.stability), .linkWentDown(.linkLost), .callDisconnect,
            ])
        XCTAssertFalse(state.attributes.hasLink)
        _ = change { $0.isConnected = false }
        XCTAssertTrue(state.connect(.disconnectReplied).contains(.report(1, .disconnected)))
    }

    func testWithoutAnOperationARejectionChangesNothing() throws {
        try read()
        _ = state.attributes.replied(id(1), .success(Data()), at: .origin)
        XCTAssertEqual(rejected(), [])
    }

    /// The link has ended with the read, and the application connects again.
    private func reconnect() throws {
        try read()
        _ = change { ($0.isConnected, $0.areServicesResolved) = (false, false) }
        XCTAssertEqual(state.connect(.reconnectAsked(delay: 0)), [.awaitReplies])
    }

    private func repliesCame() -> [Order.Action] { Orders.given { state.repliesCame(into: &$0) } }

    func testADeviceWithAForgottenOperationIsRemovedBeforeTheNextLink() throws {
        try reconnect()
        XCTAssertEqual(repliesCame(), [.removeDevice])
        _ = state.statusChanged(LinkStatus())
        XCTAssertEqual(Orders.given { state.removed(nil, into: &$0) }, [.callConnect(3)])
        XCTAssertFalse(state.attributes.hasLostCalls)
    }

    func testARequestOfThePairingThatIsBeingCancelledIsNotWanted() {
        state.policyChanged(.justWorks)
        XCTAssertEqual(pair(id(1)), [.callPair(1, timeout: PairingState.limit)])
        XCTAssertTrue(state.agentAsked())
        _ = Orders.given { state.cancelPairing(into: &$0) }
        XCTAssertTrue(state.pairing.isPairing)
        XCTAssertFalse(state.agentAsked())
    }

    private func pair(_ operation: OperationID) -> [Order.Action] {
        Orders.given { state.pairingAsked(.pair(trusting: false), operation, timeout: .infinity, into: &$0) }
    }

    func testAPairingWaitsForTheRepliesToTheCallsOfTheLastLink() throws {
        state.policyChanged(.justWorks)
        try read()
        _ = change { ($0.isConnected, $0.areServicesResolved) = (false, false) }
        XCTAssertEqual(pair(id(2)), [.awaitReplies])
        var late = state
        let error = BlueZError(name: "org.bluez.Error.Failed", message: "Operation failed")
        _ = late.attributes.replied(id(1), .failure(error), at: .origin)
        XCTAssertEqual(Orders.given { late.repliesCame(into: &$0) }, [.callPair(1, timeout: PairingState.limit)])
        XCTAssertEqual(repliesCame(), [.removeDevice])
    }

    func testADeviceThatAnotherProgramHasConnectedIsNotRemovedForAPairing() throws {
        state.policyChanged(.justWorks)
        try reconnect()
        _ = change { ($0.isConnected, $0.areServicesResolved) = (true, true) }
        XCTAssertEqual(pair(id(2)), [.callPair(1, timeout: PairingState.limit)])
        XCTAssertEqual(repliesCame().contains(.removeDevice), false)
    }

    func testAnOperationDoesNotPairAfterACancellationDuringTheRemoval() throws {
        state.policyChanged(.justWorks)
        try reconnect()
        XCTAssertEqual(repliesCame(), [.removeDevice])
        XCTAssertEqual(pair(id(2)), [.removeDevice])
        // Another program connects before the device is removed.
        _ = change { ($0.isConnected, $0.areServicesResolved) = (true, true) }
        try read(id(3), link: 2)
        let error = BlueZError(name: "org.bluez.Error.NotPermitted", message: "Not paired")
        _ = state.attributes.replied(id(3), .failure(error), at: .origin)
        XCTAssertEqual(follow(), [])
        XCTAssertEqual(
            Orders.given { state.cancelPairing(into: &$0) },
            [
                .settle(id(2), .failed(.pairing(.cancelled))),
                .settle(id(3), .failed(.characteristic(.pairingFailed(.cancelled)))),
            ])
        _ = state.statusChanged(LinkStatus())
        _ = Orders.given { state.removed(nil, into: &$0) }
        XCTAssertFalse(follow().contains(.seek))
    }

    func testABondIsNotRemoved() throws {
        try reconnect()
        _ = change { ($0.isPaired, $0.isBonded) = (true, true) }
        XCTAssertEqual(repliesCame(), [.callConnect(3)])
    }

    func testALateReplyMakesTheRemovalUnnecessary() throws {
        try reconnect()
        let error = BlueZError(name: "org.bluez.Error.Failed", message: "Operation failed")
        _ = state.attributes.replied(id(1), .failure(error), at: .origin)
        XCTAssertEqual(repliesCame(), [.callConnect(3)])
    }

    func testAnAttemptThatWasCancelledIsNotCalled() throws {
        try reconnect()
        XCTAssertEqual(state.connect(.disconnectAsked).first, .cancelConnect)
        XCTAssertFalse(repliesCame().contains(.callConnect(3)))
        _ = state.statusChanged(LinkStatus())
        let orders = Orders.given { state.removed(nil, into: &$0) }
        XCTAssertFalse(orders.contains(.callConnect(3)))
        XCTAssertEqual(state.connection.state, .disconnected)
    }

    private func follow() -> [Order.Action] { Orders.given { state.follow(into: &$0) } }

    /// BlueZ refuses the read, and `Pair` succeeds when the link has ended.
    private func pairWithoutALink() throws {
        state.policyChanged(.justWorks)
        try read()
        let error = BlueZError(name: "org.bluez.Error.NotPermitted", message: "Not paired")
        _ = state.attributes.replied(id(1), .failure(error), at: .origin)
        XCTAssertEqual(follow(), [.callPair(1, timeout: PairingState.limit)])
        _ = change { ($0.isConnected, $0.areServicesResolved) = (false, false) }
        _ = state.connect(.reconnectAsked(delay: 10))
        XCTAssertEqual(follow(), [])
        let orders = Orders.given {
            state.pairReplied(1, nil, at: Date(timeIntervalSince1970: 0), into: &$0)
            state.follow(into: &$0)
        }
        XCTAssertFalse(orders.contains { if case .settle = $0 { true } else { false } })
    }

    func testAnOperationThatWaitsForTheLinkAfterItsPairingFailsIfTheApplicationEndsTheConnection() throws {
        try pairWithoutALink()
        XCTAssertEqual(follow(), [])
        _ = state.connect(.disconnectAsked)
        XCTAssertEqual(follow(), [.settle(id(1), .failed(.peripheral(.disconnected)))])
    }

    /// BlueZ does not always signal a link, and the property that is read then is false.
    func testALinkThatEndsBeforeItIsSignalledIsASignToo() {
        _ = change { ($0.isPaired, $0.isBonded) = (true, true) }
        for attempt in 1...2 as ClosedRange<UInt32> {
            _ = change { $0.shortLinks = Int(attempt) - 1 }
            _ = state.connect(.connectStarted(attempt))
            let orders = state.connect(.connectReplied(attempt, .noLink))
            let error = PeripheralError.pairing(.keyMissing(isCertain: false))
            XCTAssertEqual(orders.contains(.reportFailure(1, error)), attempt == 2)
            XCTAssertTrue(orders.contains(.noteShortLinks(Int(attempt))))
            if attempt == 1 { _ = state.connect(.timerFired(.wait)) }
        }
        XCTAssertEqual(state.connection.state, .disconnected)
    }

    func testAnAttemptWhoseLinkFallsIsReportedAsAMissingKeyTheSecondTime() {
        _ = change { ($0.isPaired, $0.isBonded) = (true, true) }
        let failure = BlueZError(name: "org.bluez.Error.Failed", message: "le-connection-abort-by-local")
        for attempt in 1...2 as ClosedRange<UInt32> {
            _ = state.connect(.connectStarted(attempt))
            _ = change {
                $0.isConnected = true
                // What was noted after the attempt before.
                $0.shortLinks = Int(attempt) - 1
            }
            _ = change { $0.isConnected = false }
            let orders = state.connect(.connectReplied(attempt, failure))
            let error = PeripheralError.pairing(.keyMissing(isCertain: false))
            XCTAssertEqual(orders.contains(.reportFailure(1, error)), attempt == 2)
            if attempt == 1 { _ = state.connect(.timerFired(.wait)) }
        }
        XCTAssertEqual(state.connection.state, .disconnected)
    }
}
