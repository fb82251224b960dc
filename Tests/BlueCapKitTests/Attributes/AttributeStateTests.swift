import BlueCapBlueZ
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapKit

final class AttributeStateTests: XCTestCase {
    private typealias Effects = [Order.Action]

    private var state = AttributeState()

    private func service(_ handle: UInt16, _ uuid: UInt32, characteristic: UInt32) -> [AttributeDeclaration] {
        [
            AttributeDeclaration(
                handle: AttributeHandle(handle), kind: .service, uuid: CBUUID(uuid), isPrimary: true),
            AttributeDeclaration(
                handle: AttributeHandle(handle + 1), kind: .characteristic, uuid: CBUUID(characteristic),
                parent: AttributeHandle(handle), properties: [.read, .write]),
        ]
    }

    private func linkUp() { _ = state.linkUp(isResolved: true) }

    /// Begins a link with this attribute table.
    private func begin(_ declarations: [AttributeDeclaration], link: UInt32 = 1) throws {
        linkUp()
        _ = state.fencePassed(link: link)
        _ = state.tableRead(declarations, naming: [], link: link)
        XCTAssertTrue(state.isReady)
    }

    private func settled(_ effects: Effects) -> [OperationID: PeripheralFailure?] {
        Dictionary(
            effects.compactMap { effect in
                guard case .settle(let id, let outcome) = effect else { return nil }
                if case .failed(let failure) = outcome { return (id, failure) }
                return (id, nil)
            }, uniquingKeysWith: { first, _ in first })
    }

    private func calls(_ effects: Effects) -> [OperationID] {
        effects.compactMap { if case .read(let id, _, _, _) = $0 { id } else { nil } }
    }

    private func id(_ number: UInt64) -> OperationID { OperationID(rawValue: number) }

    private func attribute(_ handle: UInt16) throws -> AttributeID {
        try XCTUnwrap(state.table.id(at: AttributeHandle(handle)))
    }

    func testNewsOfAnEarlierLinkSaysNothing() throws {
        linkUp()
        _ = state.linkDown(.linkLost)
        linkUp()
        XCTAssertEqual(state.fencePassed(link: 1), [])
        XCTAssertEqual(state.tableRead(service(1, 0x180D, characteristic: 0x2A38), naming: [], link: 1), [])
        XCTAssertFalse(state.isReady)
    }

    func testAChangeThatTakesTwoReadingsIsReportedOnce() throws {
        let old = service(1, 0x180D, characteristic: 0x2A38)
        let new = service(8, 0x180F, characteristic: 0x2A19)
        try begin(old)
        _ = state.resolved(false)
        _ = state.resolved(true)
        _ = state.fencePassed(link: 1)
        XCTAssertFalse(
            state.tableRead(new, naming: [CBUUID(0x181A)], link: 1).contains(.servicesChanged))
        _ = state.fired(.quiet)
        XCTAssertTrue(state.tableRead(new, naming: [CBUUID(0x181A)], link: 1).contains(.servicesChanged))
    }

    func testAServiceThatBlueZNeverExportsIsWaitedForOnce() throws {
        let table = service(1, 0x180D, characteristic: 0x2A38)
        let named = [CBUUID(0x180D), CBUUID(0xFEED)]
        linkUp()
        _ = state.fencePassed(link: 1)
        _ = state.tableRead(table, naming: named, link: 1)
        XCTAssertFalse(state.isReady)
        _ = state.fired(.quiet)
        _ = state.tableRead(table, naming: named, link: 1)
        XCTAssertTrue(state.isReady)
        _ = state.linkDown(.linkLost)
        linkUp()
        _ = state.fencePassed(link: 2)
        _ = state.tableRead(table, naming: named, link: 2)
        XCTAssertTrue(state.isReady)
    }

    // MARK: Operations without a reply

    private let noReply = BlueZError(name: "org.freedesktop.DBus.Error.NoReply", message: "No")
    private let inProgress = BlueZError(name: "org.bluez.Error.InProgress")

    private func replied(_ number: UInt64, _ error: BlueZError, isPaired: Bool = false) -> Effects {
        state.replied(id(number), .failure(error), at: .origin, isPaired: isPaired)
    }

    func testAnOperationHasTheTimeOfEachRequestThatItNeedsOrWaitsFor() throws {
        try begin(
            service(1, 0x180D, characteristic: 0x2A38) + service(8, 0x180F, characteristic: 0x2A19)
                + service(16, 0x1805, characteristic: 0x2A2B))
        let (first, second, third) = (try attribute(2), try attribute(9), try attribute(17))
        state.mtuChanged(at: AttributeHandle(9), 185)
        func limits(_ effects: Effects) -> [TimeInterval] {
            effects.compactMap { effect in
                switch effect {
                case .read(_, _, _, let limit), .write(_, _, _, _, _, let limit): limit
                default: nil
                }
            }
        }
        var effects = state.submit(.read(offset: 0), on: first, id(1), timeout: .infinity)
        XCTAssertEqual(limits(effects), [35])
        // 512 bytes in parts of 180, and their execution, after the read.
        effects = state.submit(
            .write(Data(count: 512), .withResponse, offset: 0), on: second, id(2), timeout: .infinity)
        XCTAssertEqual(limits(effects), [30 * 5 + 5])
        effects = state.submit(.write(Data(count: 20), .withResponse, offset: 0), on: third, id(3), timeout: .infinity)
        XCTAssertEqual(limits(effects), [30 * 3 + 5])
        for number in 1...3 as ClosedRange<UInt64> { _ = state.replied(id(number), .success(nil), at: .origin) }

        // A value of 100 bytes with packets of 23.
        state.keepValues { $0 == AttributeHandle(17) ? Data(count: 100) : nil }
        state.mtuChanged(at: AttributeHandle(17), 23)
        effects = state.submit(.read(offset: 0), on: third, id(4), timeout: .infinity)
        XCTAssertEqual(limits(effects), [30 * 5 + 5])
        effects = state.submit(.read(offset: 0), on: first, id(5), timeout: 200)
        XCTAssertEqual(limits(effects), [200])
    }

    func testWithoutAPairingAnUnansweredOperationEndsTheLink() throws {
        try begin(service(1, 0x180D, characteristic: 0x2A38))
        _ = state.submit(.read(offset: 0), on: try attribute(2), id(1), timeout: .infinity)
        XCTAssertEqual(
            replied(1, noReply),
            [.settle(id(1), .failed(.characteristic(.pairingRequired(.encryption, BusError(noReply)))))])
        XCTAssertTrue(state.isSpoiled)
        XCTAssertTrue(state.isLinkDead)
        XCTAssertEqual(state.table[try attribute(2)]?.isProtected, true)
    }

    func testAProtectedValueIsNotTriedAfterAPairingThatHasFailed() throws {
        try begin(service(1, 0x180D, characteristic: 0x2A38))
        state.policyChanged(pairsForOperations: true)
        _ = state.submit(.read(offset: 0), on: try attribute(2), id(1), timeout: .infinity)
        let error = BlueZError(name: "org.bluez.Error.NotPermitted", message: "Not paired")
        XCTAssertEqual(replied(1, error), [])
        state.hasFailedToPair = true
        _ = Orders.given { state.secured(.timedOut, into: &$0) }
        let failure = BusError(BlueZError.pairingHasFailed)
        XCTAssertEqual(
            state.submit(.read(offset: 0), on: try attribute(2), id(2), timeout: .infinity),
            [.settle(id(2), .failed(.characteristic(.pairingRequired(.encryption, failure))))])
        // Without a pairing that has failed, it may be possible with the agent of another program.
        state.policyChanged(pairsForOperations: false)
        XCTAssertNotEqual(state.submit(.read(offset: 0), on: try attribute(2), id(3), timeout: .infinity), [])
    }

    func testACommandOrAPairedPeripheralOnlyExceedsItsTime() throws {
        try begin(service(1, 0x180D, characteristic: 0x2A38))
        state.policyChanged(pairsForOperations: true)
        _ = state.submit(.read(offset: 0), on: try attribute(2), id(1), timeout: .infinity)
        XCTAssertEqual(replied(1, noReply, isPaired: true), [.settle(id(1), .failed(.characteristic(.readTimeout)))])
        XCTAssertFalse(state.hasLostCalls)
        XCTAssertFalse(state.isLinkDead)
    }

    func testACallWithoutAReplyAfterTheLinkSpoilsItsCharacteristic() throws {
        let table = service(1, 0x180D, characteristic: 0x2A38) + service(8, 0x180F, characteristic: 0x2A19)
        try begin(table)
        let (first, second) = (try attribute(2), try attribute(9))
        _ = state.submit(.read(offset: 0), on: first, id(1), timeout: .infinity)
        _ = state.submit(.read(offset: 0), on: second, id(2), timeout: .infinity)
        _ = state.linkDown(.linkLost)
        XCTAssertTrue(state.hasLostCalls)
        _ = replied(2, BlueZError(name: "org.bluez.Error.Failed", message: "Operation failed"))
        state.repliesCame()
        XCTAssertTrue(state.isSpoiled)

        try begin(table, link: 2)
        _ = state.submit(.read(offset: 0), on: first, id(3), timeout: .infinity)
        _ = state.submit(.read(offset: 0), on: second, id(4), timeout: .infinity)
        guard case .characteristic(.readFailed(let failure))? = settled(replied(3, inProgress))[id(3)] else {
            return XCTFail("another error")
        }
        XCTAssertTrue(failure.message.contains("connect again"), failure.message)
        // Of the other one BlueZ has replied, so another program uses it.
        XCTAssertEqual(replied(4, inProgress), [.startTimer(.retry(second), OperationLanes.retries[0])])
        state.deviceRemoved()
        XCTAssertFalse(state.hasLostCalls)
    }

    func testRepliesToAllCallsOfTheLastLinkSpoilNothing() throws {
        try begin(service(1, 0x180D, characteristic: 0x2A38))
        _ = state.submit(.read(offset: 0), on: try attribute(2), id(1), timeout: .infinity)
        _ = state.linkDown(.linkLost)
        _ = replied(1, BlueZError(name: "org.bluez.Error.Failed", message: "Operation failed"))
        XCTAssertFalse(state.hasLostCalls)
        state.repliesCame()
        XCTAssertFalse(state.isSpoiled)
    }

    // MARK: Operations

    func testWhatIsAskedBeforeTheTableIsKnownGoesOrIsInvalid() throws {
        let both = service(1, 0x180D, characteristic: 0x2A38) + service(8, 0x180F, characteristic: 0x2A19)
        try begin(both)
        let (kept, gone) = (try attribute(2), try attribute(9))
        _ = state.linkDown(.linkLost)
        linkUp()
        XCTAssertEqual(calls(state.submit(.read(offset: 0), on: kept, id(1), timeout: .infinity)), [])
        XCTAssertEqual(calls(state.submit(.read(offset: 0), on: gone, id(2), timeout: .infinity)), [])
        _ = state.fencePassed(link: 2)
        let effects = state.tableRead(service(1, 0x180D, characteristic: 0x2A38), naming: [], link: 2)
        XCTAssertEqual(calls(effects), [id(1)])
        XCTAssertEqual(settled(effects), [id(2): .characteristic(.invalidated)])
    }

    func testADescriptorWaitsForItsCharacteristic() throws {
        let descriptor = AttributeDeclaration(
            handle: AttributeHandle(3), kind: .descriptor, uuid: CBUUID(0x2901), parent: AttributeHandle(2))
        try begin(service(1, 0x180D, characteristic: 0x2A38) + [descriptor])
        let characteristic = try attribute(2)
        XCTAssertEqual(calls(state.submit(.read(offset: 0), on: characteristic, id(1), timeout: .infinity)), [id(1)])
        XCTAssertEqual(calls(state.submit(.read(offset: 0), on: try attribute(3), id(2), timeout: .infinity)), [])
        XCTAssertEqual(calls(state.replied(id(1), .success(Data([7])), at: .origin)), [id(2)])
        XCTAssertEqual(state.table[characteristic]?.value, Data([7]))
    }

    func testALinkThatTheApplicationEndsIsReportedAsSuch() throws {
        try begin(service(1, 0x180D, characteristic: 0x2A38))
        _ = state.submit(.read(offset: 0), on: try attribute(2), id(1), timeout: .infinity)
        XCTAssertEqual(settled(state.linkDown(.linkEnded)), [id(1): .peripheral(.forcedDisconnect)])
    }
}
