import BlueCapBlueZ
import BlueCapGATT
import BlueCapReactor
import TestSupport
import XCTest

@testable import BlueCapKit

/// The state of a peripheral that the application connects, with what BlueZ reports.
private struct PeripheralPlayer {
    private var state = PeripheralState(backOff: BackOff(seed: 1))
    private var facts = LinkStatus()

    init() throws {
        facts.device = ObjectKey(device: BluetoothAddress(rawValue: 1), on: try XCTUnwrap(ObjectKey(adapter: 0)))
        _ = state.managerStateChanged(.poweredOn)
        _ = state.statusChanged(facts)
        _ = state.connect(.connectAsked(ConnectionPolicy()))
    }

    private static let failures: [String: BlueZError] = [
        "failed": BlueZError(name: "org.bluez.Error.Failed", message: "Operation failed"),
        "notPaired": BlueZError(name: "org.bluez.Error.NotPermitted", message: "Not paired"),
    ]

    /// Reads a characteristic of the table that is read for the link.
    private mutating func read(_ operation: OperationID, link: UInt32) throws {
        let service = AttributeDeclaration(
            handle: AttributeHandle(1), kind: .service, uuid: CBUUID(0x180D), isPrimary: true)
        let characteristic = AttributeDeclaration(
            handle: AttributeHandle(2), kind: .characteristic, uuid: CBUUID(0x2A38), parent: AttributeHandle(1),
            properties: .read)
        _ = state.attributes.fencePassed(link: link)
        _ = state.attributes.tableRead([service, characteristic], naming: [], link: link)
        let target = try XCTUnwrap(state.attributes.table.id(at: AttributeHandle(2)))
        XCTAssertFalse(state.attributes.submit(.read(offset: 0), on: target, operation, timeout: .infinity).isEmpty)
    }

    /// Executes an event of a table. A number is that of an operation, an attempt or a link.
    mutating func send(_ event: [String]) throws -> String {
        let number = event.count > 1 ? UInt32(event[1]) ?? 0 : 0
        let id = OperationID(rawValue: UInt64(number))
        let refusal = event.compactMap { ConnectionMachine.Report.refusals[$0] }.first
        var orders = Orders()
        switch event[0] {
        case "hasLink": return "\(state.attributes.hasLink)"
        case "hasLostCalls": return "\(state.attributes.hasLostCalls)"
        case "isPairing": return "\(state.pairing.isPairing)"
        case "agentAsked": return "\(state.agentAsked())"
        case "connection": return "\(state.connection.state)"
        case "pairsByItself": state.policyChanged(.justWorks)
        case "shortLinks":
            facts.shortLinks = Int(number)
            return state.statusChanged(facts).words
        case "gone": _ = state.statusChanged(LinkStatus())
        case "linked", "connected", "unlinked", "bonded":
            if event[0] == "bonded" {
                (facts.isPaired, facts.isBonded) = (true, true)
            } else {
                facts.isConnected = event[0] != "unlinked"
                facts.areServicesResolved = event[0] == "linked"
            }
            return state.statusChanged(facts).words
        case "reads":
            for event in [["linked"], ["replied", "1"]] { _ = try send(event) }
            try read(OperationID(rawValue: 1), link: 1)
        case "interrupted":
            for event in [["reads"], ["unlinked"]] { _ = try send(event) }
            XCTAssertEqual(try send(["reconnect"]), "awaitReplies")
        case "read": try read(id, link: UInt32(event[3])!)
        case "reply":
            let failure = event.count > 2 ? Self.failures[event[2]] : nil
            return state.attributes.replied(id, failure.map { .failure($0) } ?? .success(Data()), at: .origin).words
        case "reconnect": return state.connect(.reconnectAsked(delay: TimeInterval(number))).words
        case "disconnect": return state.connect(.disconnectAsked).words
        case "ended": return state.connect(.disconnectReplied).words
        case "started": return state.connect(.connectStarted(number)).words
        case "replied": return state.connect(.connectReplied(number, refusal)).words
        case "waited": return state.connect(.timerFired(.wait)).words
        case "repliesCame": state.repliesCame(into: &orders)
        case "removed": state.removed(nil, into: &orders)
        case "pair": state.pairingAsked(.pair(trusting: false), id, timeout: .infinity, into: &orders)
        case "cancelPairing": state.cancelPairing(into: &orders)
        case "pairReplied":
            state.pairReplied(1, nil, at: Date(timeIntervalSince1970: 0), into: &orders)
            state.follow(into: &orders)
        case "rejected":
            state.pairingRejected(.rejected(by: .application), into: &orders)
            state.follow(into: &orders)
        case "follow": state.follow(into: &orders)
        default: throw UnknownEvent(event)
        }
        return orders.pending.map(\.action).words
    }
}

/// What the state of one peripheral does about pairings beyond ``PairingState``: the link and the operations.
final class PeripheralPairingStateTests: XCTestCase {
    private func play(_ table: String, line: UInt = #line) throws {
        var player = try PeripheralPlayer()
        TestSupport.play(table, line: line) {
            if let new = try? PeripheralPlayer() { player = new }
            return { try player.send($0) }
        }
    }

    func testARejectionEndsTheLinkOfTheOperationThatNeededThePairing() throws {
        try play(
            """
            The link ends with the operation:
            reads; rejected → fail 1 operationRejected, cancel stability, linkWentDown linkLost, callDisconnect
            hasLink → false; unlinked; ended → start loss 6, report 1 disconnected
            Without an operation a rejection changes nothing:
            reads; reply 1; rejected → none
            """)
    }

    func testADeviceWithAForgottenOperationIsRemovedBeforeTheNextLink() throws {
        try play(
            """
            interrupted; repliesCame → removeDevice; gone; removed → connect 3; hasLostCalls → false
            A late reply makes the removal unnecessary:
            interrupted; reply 1 failed; repliesCame → connect 3
            An attempt that was cancelled is not called:
            interrupted; disconnect → cancelConnect, cancel loss, report 1 forced; repliesCame → none; gone
            removed → none
            connection → disconnected
            """)
    }

    func testABondIsNotRemoved() throws { try play("interrupted; bonded; repliesCame → connect 3") }

    func testPairings() throws {
        try play(
            """
            A request of the pairing that is being cancelled is not wanted:
            pairsByItself; pair 1 → pair 1 60; agentAsked → true; cancelPairing; isPairing → true; agentAsked → false
            A pairing waits for the replies to the calls of the last link, which forgets them:
            pairsByItself; reads; unlinked; pair 2 → awaitReplies; repliesCame → removeDevice
            Or replies late:
            pairsByItself; reads; unlinked; pair 2 → awaitReplies; reply 1 failed; repliesCame → pair 1 60
            A device that another program has connected is not removed for a pairing:
            pairsByItself; interrupted; linked; pair 2 → pair 1 60; repliesCame → none
            An operation does not pair after a cancellation during the removal, while another program connects:
            pairsByItself; interrupted; repliesCame → removeDevice; pair 2 → removeDevice; linked; read 3 link 2
            reply 3 notPaired; follow → none; cancelPairing → fail 2 pairingCancelled, fail 3 operationCancelled
            gone; removed; follow → none
            An operation that waits for the link after its pairing fails if the application ends the connection:
            pairsByItself; reads; reply 1 notPaired; follow → pair 1 60; unlinked; reconnect 10; follow → none
            pairReplied → none; follow → none; disconnect; follow → fail 1 disconnected
            """)
    }

    func testAnAttemptWhoseLinkFallsIsReportedAsAMissingKeyTheSecondTime() throws {
        try play(
            """
            bonded; started 1; connected; unlinked
            replied 1 transient → noteShortLinks(1), cancel encryption, start wait later
            waited; started 2; shortLinks 1; connected; unlinked
            replied 2 transient → noteShortLinks(2), report bonded elsewhere keyMissing, cancel encryption, report 1 failed keyMissing
            connection → disconnected
            So is a link that ends before BlueZ signals it:
            bonded; started 1; replied 1 noLink → noteShortLinks(1), start wait later; waited; shortLinks 1; started 2
            replied 2 noLink → noteShortLinks(2), report bonded elsewhere keyMissing, report 1 failed keyMissing
            connection → disconnected
            """)
    }
}
