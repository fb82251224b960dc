import BlueCapBlueZ
import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

@testable import BlueCapKit

/// A pairing goes on only if the user, the application or its policy has agreed to it.
final class ConsentTests: LockTestCase {
    // MARK: The rule

    func testTheRuleAsATable() {
        let kinds: [PairingStep] = [
            .request, .operation, .question(.authorize, isWanted: true), .question(.confirm(1), isWanted: true),
            .question(.enterPasskey, isWanted: true), .question(.display(1, entered: 0), isWanted: true),
            .question(.authorize, isWanted: false),
        ]
        let no = PairingConsent.refused
        let (given, ask) = (PairingConsent.given, PairingConsent.needsAnswer)
        var onRequest = PairingPolicy.ask
        onRequest.pairsOnDemand = false
        var incoming = PairingPolicy.justWorks
        incoming.acceptsIncoming = true
        let table: [(PairingPolicy, [PairingConsent])] = [
            (.reject, [no, no, no, no, no, no, no]),
            (.reject.asDefaultAgent(), [no, no, no, no, no, no, no]),
            (.justWorks, [given, given, given, no, no, no, no]),
            (incoming, [given, given, given, no, no, no, given]),
            (.ask, [given, ask, ask, ask, ask, ask, no]),
            (onRequest, [given, no, ask, ask, ask, ask, no]),
        ]
        for (policy, expected) in table { XCTAssertEqual(kinds.map { policy.consent(to: $0) }, expected, "\(policy)") }
        XCTAssertEqual(PairingPolicy.ask.consent(to: kinds[6], acceptsIncomingByDefault: true), ask)
        XCTAssertEqual(PairingPolicy.justWorks.consent(to: kinds[6], acceptsIncomingByDefault: true), given)
    }

    /// What makes the manager pair, and may make it call `Pair`.
    private enum Caller: CaseIterable {
        case application
        case operation
        /// An operation on a value that is known to be protected.
        case knownOperation
    }

    /// For each policy, capability of both ends, and caller: no bond without consent, and none after a refusal.
    func testNoCombinationBondsWithoutConsent() throws {
        let capabilities: [(InputOutputCapability, PairingCapability)] = [
            (.noInputNoOutput, .noInputNoOutput), (.keyboardDisplay, .noInputNoOutput),
            (.displayYesNo, .displayYesNo), (.displayOnly, .keyboardOnly), (.keyboardOnly, .displayOnly),
            (.keyboardDisplay, .keyboardDisplay),
        ]
        for (ours, peers) in capabilities {
            for caller in Caller.allCases {
                for agrees in [true, false] {
                    let what = "\(ours) \(peers) \(caller) \(agrees)"
                    beginAgain()
                    let user = VirtualUser(passkey: .displayed(after: 0.1), displays: 123_456)
                    let peripheral = try lock(.ask(ours), VirtualSecurity(peers, user: user))
                    if caller == .knownOperation {
                        answer { $0.reject() }
                        readRefused(peripheral)
                    }
                    let earlier = requests.withLock { $0.count }
                    let answer: @Sendable (PairingRequest) -> Void = { request in
                        switch request.kind {
                        case .enterPasskey where agrees: request.enter(123_456)
                        case .confirm where agrees, .authorize where agrees: request.confirm()
                        case .displayPasskey where agrees: break
                        default: request.reject()
                        }
                    }
                    self.answer(answer, answer, answer)
                    if caller == .application {
                        _ = outcome(peripheral.pair())
                    } else {
                        _ = outcome(read(encrypted, of: peripheral))
                    }
                    simulator.advance(by: 5)
                    let asked = requests.withLock { $0.count } - earlier
                    let isConsented = caller == .application && asked == 0 || asked > 0 && agrees
                    XCTAssertEqual(peripheral.isBonded, isConsented, what)
                    XCTAssertEqual(manager?.bonds().isEmpty, !isConsented, what)
                    if caller != .application { XCTAssertGreaterThan(asked, 0, what) }
                }
            }
        }
    }

    // MARK: A refusal holds

    /// Reads twice, with a refusal the first time, and returns whether the second one succeeds.
    private func readAgain(
        _ peripheral: Peripheral, refusal: (Peripheral, Future<Data>) -> Void
    ) -> Bool {
        let first = read(encrypted, of: peripheral)
        refusal(peripheral, first)
        XCTAssertNotNil(error(of: first, within: 40))
        waitForLinkEnd(peripheral)
        connect(peripheral)
        if case .success? = outcome(read(encrypted, of: peripheral)) { return true }
        return false
    }

    func testARefusedQuestionIsAskedAgain() throws {
        let peripheral = try lock()
        answer({ $0.reject() }, { $0.reject() })
        XCTAssertFalse(readAgain(peripheral) { _, _ in })
        XCTAssertEqual(requests.withLock { $0.map(\.kind) }, [.authorize, .authorize])
        XCTAssertFalse(peripheral.isBonded)
        XCTAssertEqual(manager?.bonds(), [])
    }

    func testAfterACancellationTheUserIsAskedAgain() throws {
        let peripheral = try lock()
        answer({ _ in }, { $0.reject() })
        let isRead = readAgain(peripheral) { peripheral, _ in
            waitForRequest()
            peripheral.cancelPairing()
        }
        XCTAssertFalse(isRead)
        XCTAssertEqual(requests.withLock { $0.count }, 2)
        XCTAssertFalse(peripheral.isBonded)
    }

    func testAWriteAfterARefusalIsAskedAboutToo() throws {
        let peripheral = try lock()
        answer({ $0.reject() }, { $0.reject() })
        readRefused(peripheral)
        let written = peripheral.write(Data([1]), to: encrypted)
        XCTAssertEqual(
            error(of: written) as? CharacteristicError, .pairingFailed(.rejected(by: .application)))
        XCTAssertEqual(requests.withLock { $0.count }, 2)
        XCTAssertFalse(peripheral.isBonded)
    }

    func testWithoutAHandlerNobodyAgrees() throws {
        beginAgain()
        let peripheral = try lock(.ask, isConnected: false)
        let silent = try CentralManager(configuration: .init(busAddress: simulator.address, pairingPolicy: .ask))
        manager = nil
        withExtendedLifetime(peripheral) {}
        XCTAssertTrue(simulator.advance(until: { silent.poweredOn }, limit: 10))
        let scan = silent.startScanning()
        XCTAssertTrue(simulator.advance(until: { !silent.peripherals.isEmpty }, limit: 10))
        silent.stopScanning()
        withExtendedLifetime(scan) {}
        let unasked = try XCTUnwrap(silent.peripherals.first)
        connect(unasked)
        for _ in 0..<3 {
            switch error(of: read(encrypted, of: unasked), within: 60) as? CharacteristicError {
            // The second one on a link that has refused a pairing.
            case .pairingFailed(.rejected(by: .policy)), .pairingRequired(.encryption, _): break
            case let failure: XCTFail("\(String(describing: failure))")
            }
            if unasked.state != .connected { connect(unasked) }
        }
        XCTAssertFalse(unasked.isBonded)
        XCTAssertEqual(silent.bonds(), [])
        XCTAssertEqual(requests.withLock { $0.count }, 0)
    }

    func testAQuestionThatIsNotAnsweredExpires() throws {
        var policy = PairingPolicy.ask
        policy.answerTimeout = .seconds(5)
        let peripheral = try lock(policy)
        answer { $0.reject() }
        XCTAssertFalse(readAgain(peripheral) { _, _ in })
        XCTAssertEqual(requests.withLock { $0.count }, 2)
        XCTAssertTrue(requests.withLock { $0 }.allSatisfy { !$0.isOpen && $0.whenEnded().completed })
        XCTAssertFalse(peripheral.isBonded)
    }

    func testAQuestionOfTheManagerEndsWithThePolicy() throws {
        let peripheral = try lock()
        answer { $0.reject() }
        readRefused(peripheral)
        let second = read(encrypted, of: peripheral)
        XCTAssertTrue(simulator.advance(until: { requests.withLock { $0.count == 2 } }, limit: 5))
        manager?.pairingPolicy = .reject
        XCTAssertEqual(error(of: second) as? CharacteristicError, .pairingFailed(.rejected(by: .policy)))
        XCTAssertFalse(requests.withLock { $0 }[1].isOpen)
        XCTAssertFalse(requests.withLock { $0 }[1].confirm())
    }

    // MARK: Removals

    /// An open request, and what is done before the user refuses it.
    private func refuseLate(_ act: (Peripheral) -> [Future<Peripheral>]) throws -> (Peripheral, Bool) {
        let peripheral = try lock()
        let first = read(encrypted, of: peripheral)
        waitForRequest()
        let acts = act(peripheral)
        simulator.advance(by: 0.5)
        let counts = requests.withLock { $0[0] }.reject()
        for future in acts { XCTAssertNotNil(outcome(future)) }
        XCTAssertNotNil(error(of: first))
        simulator.advance(by: 5)
        return (peripheral, counts)
    }

    func testARequestEndsWhenTheDeviceIsRemovedForARepair() throws {
        let (peripheral, counts) = try refuseLate { [$0.repair()] }
        XCTAssertFalse(counts, "the answer has an effect after the removal has begun")
        XCTAssertEqual(requests.withLock { $0.map(\.isOpen) }, [false])
        // The application has asked for this pairing.
        XCTAssertTrue(peripheral.isBonded)
    }

    func testARequestEndsWhenTheDeviceIsUnpaired() throws {
        let (peripheral, counts) = try refuseLate { [$0.unpair()] }
        XCTAssertFalse(counts)
        XCTAssertEqual(requests.withLock { $0.map(\.isOpen) }, [false])
        XCTAssertFalse(peripheral.isBonded)
    }

    func testADisplayedPasskeyEndsWithItsDevice() throws {
        for removesAdapter in [false, true] {
            beginAgain()
            let peripheral = try lock(
                .ask(.displayOnly), VirtualSecurity(.keyboardOnly, user: VirtualUser(passkey: .never)))
            let paired = read(encrypted, of: peripheral)
            waitForRequest()
            if removesAdapter {
                simulator.simulateAdapterRemoval()
            } else {
                simulator.simulateDeviceRemoval(of: address)
            }
            simulator.advance(by: 1)
            let request = requests.withLock { $0[0] }
            XCTAssertFalse(request.isOpen, "adapter: \(removesAdapter)")
            XCTAssertTrue(request.whenEnded().completed)
            XCTAssertNotNil(error(of: paired))
        }
    }

    // MARK: Replies that do not come

    /// Up to 5.86 BlueZ does not reply to `Pair` if it is discovering services when the pairing succeeds.
    func testAPairingWhileServicesAreDiscoveredSucceeds() throws {
        for usesOperation in [false, true] {
            beginAgain()
            let peripheral = try lock(.justWorks, isConnected: false)
            peripheral.connect()
            XCTAssertTrue(simulator.advance(until: { peripheral.state == .connected }, limit: 30))
            let began = simulator.seconds
            let paired = peripheral.pair(timeout: 30)
            if usesOperation { XCTAssertEqual(try outcome(read(encrypted, of: peripheral))?.get(), Data([2])) }
            XCTAssertNil(error(of: paired, within: 30))
            XCTAssertLessThan(simulator.seconds - began, 10)
            XCTAssertTrue(peripheral.isBonded)
            XCTAssertEqual(peripheral.state, .connected)
            XCTAssertEqual(try outcome(read(encrypted, of: peripheral))?.get(), Data([2]))
        }
    }
}
