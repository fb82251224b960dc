import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapKit

/// Pairings of a central manager with a scripted daemon, in virtual time.
final class CentralPairingTests: XCTestCase {
    private let daemon = ScriptedDaemon(attributes: [
        ("service0010", ScriptedDaemon.service("0000180d-0000-1000-8000-00805f9b34fb")),
        (
            "service0010/char0011",
            ScriptedDaemon.characteristic("00002a38-0000-1000-8000-00805f9b34fb", of: "service0010", ["read"])
        ),
    ])
    private let location = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))

    private func peripheral(_ policy: PairingPolicy) throws -> Peripheral {
        let peripheral = try daemon.connected()
        try XCTUnwrap(daemon.manager).pairingPolicy = policy
        daemon.loop.run()
        return peripheral
    }

    private func bond() {
        daemon.change(["Bonded": .bool(true)])
        daemon.change(["Paired": .bool(true)])
    }

    private func waitForPair() {
        XCTAssertTrue(daemon.loop.advance(until: { self.daemon.pairingCalls.contains("Pair") }, limit: 5))
    }

    func testRejectRegistersNoAgentAndDoesNotPair() throws {
        let peripheral = try peripheral(.reject)
        XCTAssertEqual(daemon.error(of: peripheral.pair()) as? PairingError, .notAllowed)
        XCTAssertEqual(daemon.pairingCalls, [])
    }

    func testTheAgentIsRegisteredBeforeAPairing() throws {
        let peripheral = try peripheral(.justWorks)
        let seen = Elements(peripheral.whenPairingChanges())
        let future = peripheral.pair()
        waitForPair()
        bond()
        XCTAssertNil(daemon.error(of: future))
        XCTAssertEqual(daemon.pairingCalls, ["RegisterAgent", "Pair"])
        XCTAssertTrue(peripheral.isPaired && peripheral.isBonded)
        XCTAssertEqual(peripheral.state, .connected)
        XCTAssertEqual(peripheral.pairingCount, 1)
        XCTAssertEqual(seen.values.last, PairingChange(isPaired: true, isBonded: true, origin: .application))
        let bonds = try XCTUnwrap(daemon.manager).bonds()
        XCTAssertEqual(bonds.map(\.identifier), [peripheral.identifier])
        XCTAssertTrue(bonds.allSatisfy { $0.isOurs && $0.isConnected && !$0.isTrusted })
        XCTAssertNil(daemon.error(of: peripheral.pair()))
        XCTAssertEqual(daemon.pairingCalls, ["RegisterAgent", "Pair"])
    }

    func testAFailedPairingHasTheErrorOfBlueZ() throws {
        daemon.refusals["Pair"] = "org.bluez.Error.AuthenticationFailed"
        let peripheral = try peripheral(.justWorks)
        guard case .failed(let failure)? = daemon.error(of: peripheral.pair()) as? PairingError else {
            return XCTFail("another error")
        }
        XCTAssertEqual(failure.name, "org.bluez.Error.AuthenticationFailed")
        XCTAssertEqual(peripheral.failedPairingCount, 1)
        XCTAssertFalse(peripheral.isPairing)
    }

    func testARefusedReadPairsAndIsRepeated() throws {
        let peripheral = try peripheral(.justWorks)
        daemon.refusals["ReadValue"] = "org.bluez.Error.NotPermitted"
        let read: Future<Data> = peripheral.read(location)
        waitForPair()
        XCTAssertEqual(daemon.attributeCalls, ["ReadValue"])
        daemon.refusals = [:]
        bond()
        XCTAssertNil(daemon.error(of: read))
        XCTAssertEqual(daemon.attributeCalls, ["ReadValue", "ReadValue"])
    }

    func testWithRejectARefusedReadSaysWhichSecurityItNeeds() throws {
        let peripheral = try peripheral(.reject)
        daemon.refusals["ReadValue"] = "org.bluez.Error.NotPermitted"
        let failure = BusError(name: "org.bluez.Error.NotPermitted", message: "Not paired")
        let read: Future<Data> = peripheral.read(location)
        XCTAssertEqual(daemon.error(of: read) as? CharacteristicError, .pairingRequired(.encryption, failure))
        bond()
        let again: Future<Data> = peripheral.read(location)
        XCTAssertEqual(daemon.error(of: again) as? CharacteristicError, .pairingRequired(.authentication, failure))
        XCTAssertEqual(daemon.pairingCalls, [])
    }

    func testAPairingThatBlueZBeginsForAReadIsOnDemand() throws {
        let replies = Locked<[String]>([])
        let peripheral = try peripheral(.justWorks)
        let seen = Elements(peripheral.whenPairingChanges())
        daemon.silences = ["ReadValue"]
        let _: Future<Data> = peripheral.read(location)
        XCTAssertTrue(daemon.loop.advance(until: { self.daemon.attributeCalls == ["ReadValue"] }, limit: 5))
        daemon.askAgent("RequestAuthorization", to: replies)
        bond()
        XCTAssertEqual(seen.values.last, PairingChange(isPaired: true, isBonded: true, origin: .onDemand))
        XCTAssertEqual(try XCTUnwrap(daemon.manager).bonds().map(\.isOurs), [true])
    }

    func testABondFromElsewhereIsReported() throws {
        let peripheral = try peripheral(.reject)
        let seen = Elements(peripheral.whenPairingChanges())
        bond()
        XCTAssertEqual(seen.values.last, PairingChange(isPaired: true, isBonded: true, origin: .elsewhere))
        XCTAssertEqual(try XCTUnwrap(daemon.manager).bonds().map(\.isOurs), [false])
    }

    // MARK: Requests

    /// Begins a pairing whose call has no reply, with the policy `ask` and a handler for each request.
    private func beginPairing(
        _ answer: @escaping @Sendable (PairingRequest) -> Void
    ) throws -> (Peripheral, Future<Peripheral>) {
        let peripheral = try peripheral(.ask)
        daemon.silences = ["Pair"]
        try XCTUnwrap(daemon.manager).whenPairingIsRequested()
            .onSuccess(context: ImmediateContext()) { answer($0) }
        let future = peripheral.pair()
        waitForPair()
        return (peripheral, future)
    }

    func testTheApplicationEntersAPasskey() throws {
        let replies = Locked<[String]>([])
        let requests = Locked<[PairingRequest]>([])
        let (peripheral, _) = try beginPairing { request in requests.withLock { $0.append(request) } }
        daemon.askAgent("RequestPasskey", to: replies)
        let request = try XCTUnwrap(requests.withLock { $0.first })
        XCTAssertEqual(request.kind, .enterPasskey)
        XCTAssertEqual(request.peer, .peripheral(peripheral))
        XCTAssertTrue(request.isOpen)
        XCTAssertFalse(request.confirm())
        XCTAssertTrue(request.enter(4_711))
        XCTAssertFalse(request.enter(4_712))
        daemon.loop.run()
        XCTAssertEqual(replies.withLock { $0 }, ["RequestPasskey 4711"])
        XCTAssertFalse(request.isOpen)
        XCTAssertTrue(request.whenEnded().completed)
    }

    func testARequestWithoutAnAnswerIsRejectedBeforeBlueZGivesUp() throws {
        let replies = Locked<[String]>([])
        let requests = Locked<[PairingRequest]>([])
        _ = try beginPairing { request in requests.withLock { $0.append(request) } }
        daemon.askAgent("RequestConfirmation", to: replies) { $0.uint32(123_456) }
        XCTAssertEqual(requests.withLock { $0.first }?.kind, .confirm(123_456))
        // With everything that the request refers to, such as the agent's connection to the bus.
        var dumped = ""
        dump(requests.withLock { $0 }, to: &dumped)
        XCTAssertNil(dumped.range(of: "123456"))
        daemon.loop.advance(by: 24)
        XCTAssertEqual(replies.withLock { $0 }, [])
        daemon.loop.advance(by: 2)
        XCTAssertEqual(replies.withLock { $0 }, ["RequestConfirmation org.bluez.Error.Rejected"])
        XCTAssertEqual(requests.withLock { $0.first }?.confirm(), false)
        XCTAssertNil("\(requests.withLock { $0 })".range(of: "123456"))
    }

    func testWithoutAHandlerARequestIsRejected() throws {
        let replies = Locked<[String]>([])
        let peripheral = try peripheral(.ask)
        daemon.silences = ["Pair"]
        _ = peripheral.pair()
        waitForPair()
        daemon.askAgent("RequestAuthorization", to: replies)
        XCTAssertEqual(replies.withLock { $0 }, ["RequestAuthorization org.bluez.Error.Rejected"])
    }

    func testAPairingThatNobodyRequestedIsRejected() throws {
        let replies = Locked<[String]>([])
        _ = try peripheral(.justWorks)
        XCTAssertTrue(daemon.loop.advance(until: { self.daemon.pairingCalls == ["RegisterAgent"] }, limit: 5))
        daemon.askAgent("RequestAuthorization", to: replies)
        XCTAssertEqual(replies.withLock { $0 }, ["RequestAuthorization org.bluez.Error.Rejected"])
    }

    func testTheAgentLeavesWithTheLastManager() throws {
        var manager: CentralManager? = try CentralManager(
            configuration: .init(busAddress: daemon.bus.address, pairingPolicy: .ask))
        XCTAssertTrue(daemon.loop.advance(until: { self.daemon.pairingCalls == ["RegisterAgent"] }, limit: 5))
        XCTAssertEqual(manager?.pairingPolicy, .ask)
        manager = nil
        XCTAssertTrue(daemon.loop.advance(until: { self.daemon.pairingCalls.last == "UnregisterAgent" }, limit: 5))
    }

    func testAWrongPolicyIsNamed() {
        let manager = CentralManager(options: [
            "CentralManagerOptionBusAddressKey": daemon.bus.address, "CentralManagerOptionPairingPolicyKey": "always",
        ])
        XCTAssertTrue(manager.stateExplanation.contains("CentralManagerOptionPairingPolicyKey"))
        XCTAssertEqual(manager.pairingPolicy, .reject)
    }
}
