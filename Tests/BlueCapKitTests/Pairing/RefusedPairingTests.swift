import BlueZSimulator
import BlueCapFutures
import TestSupport
import XCTest

@testable import BlueCapKit

/// A central manager beside a virtual lock, with each version of BlueZ.
class LockTestCase: EachVersionTestCase {
    private static let service = ServiceIdentifier(uuid: "B001")
    let encrypted = CharacteristicIdentifier(uuid: "B002", service: service)
    let events = CharacteristicIdentifier(uuid: "B004", service: service)
    let open = CharacteristicIdentifier(uuid: "B005", service: service)
    let authenticated = CharacteristicIdentifier(uuid: "B008", service: service)
    let guardedEvents = CharacteristicIdentifier(uuid: "B007", service: service)
    let address: VirtualAddress = "C0:00:00:00:00:0A"

    lazy var simulator = Simulator.inProcess(room: .empty, bluez: bluez)
    var manager: CentralManager?
    /// The requests of the manager, and what the next of them are answered.
    let requests = Locked<[PairingRequest]>([])
    let answers = Locked<[@Sendable (PairingRequest) -> Void]>([])

    var isOld: Bool { bluez < BlueZVersion(5, 67) }

    /// A manager that has found the lock, and connects it.
    func lock(
        _ policy: PairingPolicy = .ask, _ security: VirtualSecurity = VirtualSecurity(), isConnected: Bool = true,
        configuration: CentralManager.Configuration = .init()
    ) throws -> Peripheral {
        simulator.add(
            VirtualPeripheral(
                address, addressType: .random,
                advertisement: Advertisement(localName: "Lock", serviceUUIDs: ["B001"]), interval: 0.1,
                services: [
                    VirtualService(
                        "B001",
                        characteristics: [
                            VirtualCharacteristic("B002", [.read, .write], value: [2], security: .encrypted),
                            VirtualCharacteristic(
                                "B004", [.notify], security: AttributeSecurity(subscribe: .encrypted)),
                            VirtualCharacteristic("B005", [.read], value: [5]),
                            VirtualCharacteristic("B008", [.read], value: [8], security: .authenticated),
                            VirtualCharacteristic(
                                "B007", [.notify], security: AttributeSecurity(subscribe: .authenticated)),
                        ])
                ], security: security))
        let peripheral = try find(policy, configuration)
        if isConnected { connect(peripheral) }
        return peripheral
    }

    /// The same, paired, and disconnected.
    func pairedLock(
        _ policy: PairingPolicy = .justWorks, _ security: VirtualSecurity = VirtualSecurity(),
        configuration: CentralManager.Configuration = .init()
    ) throws -> Peripheral {
        let peripheral = try lock(policy, security, isConnected: false, configuration: configuration)
        XCTAssertNil(error(of: peripheral.pair()))
        disconnect(peripheral)
        return peripheral
    }

    /// Another room, and nothing of what was requested and answered in the last one.
    func beginAgain() {
        simulator = .inProcess(room: .empty, bluez: bluez)
        requests.withLock { $0 = [] }
        answers.withLock { $0 = [] }
    }

    func find(_ policy: PairingPolicy, _ configuration: CentralManager.Configuration = .init()) throws -> Peripheral {
        var configuration = configuration
        configuration.busAddress = simulator.address
        configuration.pairingPolicy = policy
        let manager = try CentralManager(configuration: configuration)
        self.manager = manager
        // Its state, if it has one, is read in real time.
        manager.session.keeper?.wait()
        manager.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { [requests, answers] request in
            requests.withLock { $0.append(request) }
            answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }?(request)
        }
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 10))
        let scan = manager.startScanning()
        XCTAssertTrue(simulator.advance(until: { !manager.peripherals.isEmpty }, limit: 10))
        manager.stopScanning()
        simulator.advance(by: 0.5)
        withExtendedLifetime(scan) {}
        return try XCTUnwrap(manager.peripherals.first)
    }

    func connect(_ peripheral: Peripheral, file: StaticString = #filePath, line: UInt = #line) {
        peripheral.connect()
        XCTAssertTrue(
            simulator.advance(until: { peripheral.state == .connected }, limit: 30), "no link", file: file, line: line)
        simulator.advance(by: 1)
    }

    func disconnect(_ peripheral: Peripheral, file: StaticString = #filePath, line: UInt = #line) {
        peripheral.disconnect()
        XCTAssertTrue(
            simulator.advance(until: { peripheral.state == .disconnected }, limit: 10), "the link stays", file: file,
            line: line)
    }

    /// Reads the protected value, of which the next answer refuses the pairing, and connects again.
    func readRefused(_ peripheral: Peripheral, file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertNotNil(error(of: read(encrypted, of: peripheral)), file: file, line: line)
        waitForLinkEnd(peripheral, file: file, line: line)
        connect(peripheral, file: file, line: line)
    }

    func waitForRequest(limit: TimeInterval = 5, file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertTrue(
            simulator.advance(until: { requests.withLock { !$0.isEmpty } }, limit: limit), "no request", file: file,
            line: line)
    }

    func waitForLinkEnd(_ peripheral: Peripheral, file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertTrue(
            simulator.advance(until: { peripheral.state != .connected && self.simulator.links.isEmpty }, limit: 5),
            "the link stays", file: file, line: line)
    }

    func read(_ identifier: CharacteristicIdentifier, of peripheral: Peripheral) -> Future<Data> {
        peripheral.read(identifier)
    }

    func start(
        _ identifier: CharacteristicIdentifier, of peripheral: Peripheral,
        over transport: NotificationTransport = .signals
    ) -> Future<Void> {
        let found: Future<Characteristic> = peripheral.characteristic(identifier)
        return found.flatMap(context: ImmediateContext()) { found -> Future<Void> in
            found.startNotifying(over: transport)
        }
    }

    func outcome<T>(
        _ future: Future<T>, within limit: TimeInterval = 120, file: StaticString = #filePath, line: UInt = #line
    ) -> Try<T>? {
        XCTAssertTrue(
            simulator.advance(until: { future.completed }, limit: limit), "the future is not completed", file: file,
            line: line)
        return future.result
    }

    func error<T>(
        of future: Future<T>, within limit: TimeInterval = 120, file: StaticString = #filePath, line: UInt = #line
    ) -> (any Error)? {
        if case .failure(let error)? = outcome(future, within: limit, file: file, line: line) { error } else { nil }
    }

    func answer(_ answers: (@Sendable (PairingRequest) -> Void)...) { self.answers.withLock { $0 += answers } }
}

/// Pairings that are refused or forgotten, and what works after them.
final class RefusedPairingTests: LockTestCase {
    // MARK: Refusals of this process

    func testAfterARejectionTheLinkIsEndedAndTheValueCanBeReadOnTheNextOne() throws {
        let peripheral = try lock()
        answer { $0.reject() }
        let refused = read(encrypted, of: peripheral)
        XCTAssertEqual(
            error(of: refused, within: 2) as? CharacteristicError, .pairingFailed(.rejected(by: .application)))
        waitForLinkEnd(peripheral)

        answer { $0.confirm() }
        connect(peripheral)
        XCTAssertEqual(try outcome(read(open, of: peripheral))?.get(), Data([5]))
        XCTAssertEqual(try outcome(read(encrypted, of: peripheral))?.get(), Data([2]))
        XCTAssertTrue(peripheral.isBonded)
        // The second time the manager calls `Pair`, about which BlueZ does not ask: the manager does.
        XCTAssertEqual(requests.withLock { $0.map(\.kind) }, [.authorize, .authorize])
    }

    func testAPolicyWithoutPairingsRejectsTheOpenRequest() throws {
        let peripheral = try lock()
        let refused = read(encrypted, of: peripheral)
        waitForRequest(limit: 2)
        manager?.pairingPolicy = .reject
        XCTAssertEqual(error(of: refused, within: 2) as? CharacteristicError, .pairingFailed(.rejected(by: .policy)))
        waitForLinkEnd(peripheral)
        XCTAssertEqual(requests.withLock { $0.map(\.isOpen) }, [false])
        connect(peripheral)
        XCTAssertEqual(try outcome(read(open, of: peripheral))?.get(), Data([5]))
    }

    func testAPairingAfterARejectionMakesTheValueReadable() throws {
        let peripheral = try lock()
        answer { $0.reject() }
        XCTAssertNotNil(error(of: read(encrypted, of: peripheral)))
        XCTAssertNil(error(of: peripheral.pair()))
        XCTAssertTrue(peripheral.isBonded)
        XCTAssertEqual(try outcome(read(encrypted, of: peripheral))?.get(), Data([2]))
    }

    /// BlueZ ends the link two seconds after `Disconnect`: until then the user of the peripheral can enter the passkey.
    func testARejectedPasskeyThatIsEnteredNeverthelessLeavesNoBond() throws {
        for delay in [0, 0.01, 0.5, 1, 1.9] {
            beginAgain()
            let user = VirtualUser(passkey: .displayed(after: delay))
            let peripheral = try lock(.ask(.displayOnly), VirtualSecurity(.keyboardOnly, user: user))
            let changes = Elements(peripheral.whenPairingChanges())
            answer { $0.reject() }
            let refused = read(encrypted, of: peripheral)
            XCTAssertEqual(
                error(of: refused, within: 3) as? CharacteristicError, .pairingFailed(.rejected(by: .application)))
            waitForLinkEnd(peripheral)
            simulator.advance(by: 10)
            XCTAssertEqual(requests.withLock { $0.map(\.isOpen) }, [false])
            XCTAssertFalse(peripheral.isBonded, "\(delay) s")
            XCTAssertEqual(manager?.bonds(), [])
            XCTAssertFalse(changes.values.contains(where: \.isBonded), "\(delay) s")
        }
    }

    func testABondOfARejectedPairingIsRemovedWhenTheDaemonReturns() throws {
        let user = VirtualUser(passkey: .displayed(after: 0))
        let peripheral = try lock(.ask(.displayOnly), VirtualSecurity(.keyboardOnly, user: user))
        answer { $0.reject() }
        XCTAssertNotNil(error(of: read(encrypted, of: peripheral), within: 3))
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        simulator.simulateDaemonReturn()
        simulator.advance(by: 20)
        XCTAssertFalse(peripheral.isBonded)
        XCTAssertEqual(manager?.bonds(), [])
    }

    /// The connection to the bus stays until no bond of a pairing can appear that the end of the manager has refused.
    func testThePairingsOfTheLastManagerLeaveNoBond() throws {
        let kinds: [(name: String, begin: (Peripheral) -> Void)] = [
            ("read", { peripheral in _ = self.read(self.encrypted, of: peripheral) }),
            ("pair", { peripheral in peripheral.pair() }),
        ]
        for (name, begin) in kinds {
            for delay in [0.5, 1.2, 1.8, 1.99] {
                beginAgain()
                let user = VirtualUser(passkey: .displayed(after: delay))
                let peripheral = try lock(.ask(.displayOnly), VirtualSecurity(.keyboardOnly, user: user))
                begin(peripheral)
                waitForRequest(limit: 2)
                manager = nil
                simulator.advance(by: 15)
                simulator.remove(address)
                let next = simulator.central()
                XCTAssertEqual(next.bonds(), [], "\(name), \(delay) s")
                withExtendedLifetime(peripheral) {}
            }
        }
    }

    func testCancellingRejectsTheRequestOfAPairingThatBlueZHasBegun() throws {
        let peripheral = try lock(
            .ask(.displayOnly), VirtualSecurity(.keyboardOnly, user: VirtualUser(passkey: .never)))
        let refused = read(encrypted, of: peripheral)
        waitForRequest()
        peripheral.cancelPairing()
        XCTAssertEqual(error(of: refused, within: 3) as? CharacteristicError, .pairingFailed(.cancelled))
        XCTAssertEqual(requests.withLock { $0.map(\.isOpen) }, [false])
        waitForLinkEnd(peripheral)
        XCTAssertEqual(manager?.bonds(), [])
    }

    func testWithoutAnAnswerTheOperationFailsBeforeTheLinkWould() throws {
        let peripheral = try lock()
        let unanswered = read(encrypted, of: peripheral)
        XCTAssertEqual(error(of: unanswered, within: 26) as? CharacteristicError, .pairingFailed(.timedOut))
        waitForLinkEnd(peripheral)
        XCTAssertEqual(requests.withLock { $0.map(\.isOpen) }, [false])
    }

    func testARejectedSubscriptionFailsToo() throws {
        let peripheral = try lock()
        for transport in [NotificationTransport.signals, .socket] {
            answer { $0.reject() }
            XCTAssertEqual(
                error(of: start(events, of: peripheral, over: transport), within: 2) as? CharacteristicError,
                .pairingFailed(.rejected(by: .application)))
            waitForLinkEnd(peripheral)
            connect(peripheral)
        }
        answer { $0.confirm() }
        XCTAssertNil(error(of: start(events, of: peripheral)))
    }

    func testEachOperationOfTheDeadLinkEnds() throws {
        let peripheral = try lock()
        answer { $0.reject() }
        let futures = [
            read(encrypted, of: peripheral), read(open, of: peripheral), read(open, of: peripheral),
            read(encrypted, of: peripheral),
        ]
        for future in futures { XCTAssertTrue(simulator.advance(until: { future.completed }, limit: 4)) }
    }

    // MARK: Refusals of other programs

    func testAReadThatAnotherAgentRefusesEndsWithItsLink() throws {
        let peripheral = try lock(.reject)
        simulator.add(VirtualAgent(.noInputNoOutput, user: VirtualUser(confirms: .reject), isDefault: true))
        let refused = read(encrypted, of: peripheral)
        let error = error(of: refused, within: 36)
        guard !isOld else { return XCTAssertNotNil(error) }
        guard case .pairingRequired(.encryption, let failure)? = error as? CharacteristicError else {
            return XCTFail("\(String(describing: error))")
        }
        XCTAssertEqual(failure.name, "org.freedesktop.DBus.Error.NoReply")
        waitForLinkEnd(peripheral)
        connect(peripheral)
        XCTAssertEqual(try outcome(read(open, of: peripheral))?.get(), Data([5]))
    }

    func testTheSecondAttemptPairsWithTheAgentOfThisProcess() throws {
        let peripheral = try lock(.justWorks)
        simulator.add(VirtualAgent(.noInputNoOutput, user: VirtualUser(confirms: .reject), isDefault: true))
        XCTAssertNotNil(error(of: read(encrypted, of: peripheral)))
        waitForLinkEnd(peripheral)
        guard !isOld else { return }
        connect(peripheral)
        XCTAssertEqual(try outcome(read(encrypted, of: peripheral))?.get(), Data([2]))
        XCTAssertTrue(peripheral.isBonded)
    }

    // MARK: Subscriptions

    func testARefusedSubscriptionOverASocketSaysWhatItNeeds() throws {
        let peripheral = try lock(.justWorks)
        let error = error(of: start(guardedEvents, of: peripheral, over: .socket), within: 34)
        // Up to 5.70 BlueZ tries to raise the security further, which ends the link.
        if bluez < BlueZVersion(5, 71) { return XCTAssertNotNil(error) }
        guard case .pairingRequired(.authentication, _)? = error as? CharacteristicError else {
            return XCTFail("\(String(describing: error))")
        }
        XCTAssertNil(self.error(of: start(events, of: peripheral, over: .socket), within: 5))
        XCTAssertEqual(simulator.subscriptions(to: "B004", at: address).count, 1)
    }

    /// Up to 5.83 `AcquireNotify` of a protected value has no reply without a bond, even if a pairing succeeds; and 5.66 crashes
    /// if it has to remove the device then.
    func testASubscriptionOverASocketPairsOrFailsAndTheDeviceCanBeRemoved() throws {
        for policy in [PairingPolicy.reject, .justWorks, .ask] {
            beginAgain()
            answer { $0.confirm() }
            let peripheral = try lock(policy)
            let subscription = error(of: start(events, of: peripheral, over: .socket), within: 37)
            XCTAssertEqual(subscription == nil, policy != .reject, "\(policy) \(String(describing: subscription))")
            if subscription == nil { XCTAssertEqual(simulator.subscriptions(to: "B004", at: address).count, 1) }
            XCTAssertNil(error(of: peripheral.unpair(), within: 10))
            XCTAssertEqual(manager?.poweredOn, true, "\(policy)")
        }
    }

    func testASubscriptionOutlivesTheLinkThatItsPairingEnds() throws {
        // The link is older than the agent, and from 5.81 on has another capability.
        let peripheral = try lock(.reject, VirtualSecurity(.displayYesNo))
        manager?.pairingPolicy = .ask(.displayYesNo)
        simulator.advance(by: 1)
        // Whether to pair, and the number.
        answer({ $0.confirm() }, { $0.confirm() })
        simulator.simulateRefusedCalls(of: "StartNotify", error: .bluez("NotPermitted", "Not paired"))
        XCTAssertNil(error(of: start(guardedEvents, of: peripheral), within: 30))
        XCTAssertTrue(peripheral.isBonded)
        XCTAssertEqual(simulator.subscriptions(to: "B007", at: address).count, 1)
        XCTAssertEqual(peripheral.connectionCount, bluez < BlueZVersion(5, 81) ? 1 : 2)
    }

    // MARK: Searches

    func testAConnectionAndAPairingSearchForTheDeviceIndependently() throws {
        let peripheral = try lock(.justWorks)
        simulator.simulateOutOfRange(of: address)
        simulator.simulateDeviceRemoval(of: address)
        simulator.advance(by: 1)
        let pairing = peripheral.pair()
        peripheral.connect()
        simulator.advance(by: 2)
        XCTAssertEqual(simulator.adapters.map(\.isDiscovering), [true])
        peripheral.cancelPairing()
        XCTAssertEqual(error(of: pairing) as? PairingError, .cancelled)
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.adapters.map(\.isDiscovering), [true], "the connection searches no longer")
        simulator.simulateOutOfRange(false, of: address)
        XCTAssertTrue(simulator.advance(until: { peripheral.state == .connected }, limit: 30))
        simulator.advance(by: 2)
        XCTAssertEqual(simulator.adapters.map(\.isDiscovering), [false], "a search has not ended")
    }

    func testAPairingSearchesForAListedDeviceThatBlueZHasRemoved() throws {
        let peripheral = try lock(.justWorks, isConnected: false)
        simulator.simulateOutOfRange(of: address)
        simulator.simulateDeviceRemoval(of: address)
        simulator.advance(by: 1)
        let pairing = peripheral.pair()
        simulator.advance(by: 2)
        XCTAssertFalse(pairing.completed)
        XCTAssertEqual(simulator.adapters.map(\.isDiscovering), [true])
        simulator.simulateOutOfRange(false, of: address)
        XCTAssertNil(error(of: pairing))
        XCTAssertTrue(peripheral.isBonded)
    }

    func testAnAuthenticatedValueOfAJustWorksBondFailsAtOnceWithoutAnAgent() throws {
        let peripheral = try lock(.justWorks)
        XCTAssertNil(error(of: peripheral.pair()))
        disconnect(peripheral)
        manager?.pairingPolicy = .reject
        connect(peripheral)
        XCTAssertNotNil(error(of: read(authenticated, of: peripheral), within: 5))
        waitForLinkEnd(peripheral)
    }

    // MARK: Missing keys

    func testARunFailsWithMissingKeysAsAConnectionDoes() throws {
        let peripheral = try pairedLock()
        simulator.simulateKeyLoss(of: address)
        var errors: [PeripheralError] = []
        for _ in 0..<2 {
            let run: Future<Void> = peripheral.run(timeout: 60) { _ in try await Task.sleep(for: .seconds(3600)) }
            guard let error = error(of: run) as? PeripheralError else { return XCTFail("no error") }
            errors.append(error)
            simulator.advance(by: 5)
        }
        // BlueZ reports it from 5.83 on; before, the second link shows it.
        let isCertain = bluez >= BlueZVersion(5, 83)
        XCTAssertEqual(
            isCertain ? errors.first : errors.last, .pairing(.keyMissing(isCertain: isCertain)), "\(errors)")
    }

    func testAPeripheralWithoutItsKeysIsNotTriedAgainAndAgain() throws {
        let peripheral = try pairedLock(.justWorks, VirtualSecurity(confirmsJustWorksRepairing: true))
        simulator.simulateKeyLoss(of: address)
        let missing = Locked(0)
        let losses = Locked(0)
        let connections: FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)> = peripheral.connect()
        connections.onSuccess(context: ImmediateContext()) { peripheral, event in
            guard event == .disconnect else { return }
            losses.withLock { $0 += 1 }
            peripheral.reconnect()
        }
        connections.onFailure(context: ImmediateContext()) { error in
            guard case .pairing(.keyMissing)? = error as? PeripheralError else { return }
            missing.withLock { $0 += 1 }
        }
        simulator.advance(by: 120)
        XCTAssertGreaterThan(missing.withLock { $0 }, 0)
        // Two show that the keys are missing, and then there is one pair, at most, each half minute.
        XCTAssertLessThanOrEqual(losses.withLock { $0 }, 10)
        XCTAssertNil(error(of: peripheral.repair()))
        XCTAssertEqual(try outcome(read(encrypted, of: peripheral))?.get(), Data([2]))
    }

    func testStayingConnectedThrowsWhenTheKeysAreMissing() throws {
        let peripheral = try pairedLock(.justWorks, VirtualSecurity(confirmsJustWorksRepairing: true))
        simulator.simulateKeyLoss(of: address)
        let before = simulator.statistics.count(of: "Connect")
        guard case .pairing(.keyMissing)? = error(of: peripheral.stayConnected().collect()) as? PeripheralError else {
            return XCTFail("no error")
        }
        let tries = simulator.statistics.count(of: "Connect")
        XCTAssertLessThanOrEqual(tries - before, 3)
        simulator.advance(by: 120)
        XCTAssertEqual(simulator.statistics.count(of: "Connect"), tries)
        XCTAssertEqual(peripheral.state, .disconnected)
    }

    func testARejectedPairingInPlaceOfLostKeysEndsTheLink() throws {
        let peripheral = try lock(.ask, VirtualSecurity(.displayYesNo), isConnected: false)
        answers.withLock { $0 = [{ $0.confirm() }] }
        XCTAssertNil(error(of: peripheral.pair()))
        disconnect(peripheral)
        simulator.simulateKeyLoss(of: address, side: .adapter)
        let run: Future<Void> = peripheral.run { [encrypted] in
            let _: Data = try await $0.read(encrypted)
        }
        // From 5.83 on `Connect` waits for the encryption, as long as an attempt may take.
        XCTAssertNotNil(error(of: run, within: bluez < BlueZVersion(5, 83) ? 10 : 90))
        waitForLinkEnd(peripheral)
        // The application is not asked about a pairing that it has not begun.
        XCTAssertEqual(requests.withLock { $0.count }, 1)
    }

    // MARK: Restoration

    func testARestoredManagerReadsAProtectedValueWithoutAQuestion() throws {
        let folder = TemporaryFolder()
        let configuration = CentralManager.Configuration(
            busAddress: simulator.address, restoreIdentifier: "restored.lock", stateDirectory: folder.path,
            keepsLinks: true)
        var peripheral: Peripheral? = try lock(.justWorks, configuration: configuration)
        XCTAssertNil(error(of: try XCTUnwrap(peripheral).pair()))
        simulator.advance(by: 2)
        let keeper = manager?.session.keeper
        (manager, peripheral) = (nil, nil)
        simulator.advance(by: 2)
        keeper?.wait()
        simulator.simulateLinkLoss(of: address)
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        simulator.simulateDaemonReturn()

        let manager = try CentralManager(configuration: configuration)
        self.manager = manager
        manager.session.keeper?.wait()
        let restored: Future<(peripherals: [Peripheral], scannedServices: [CBUUID], options: [String: AnyObject])> =
            manager.whenStateRestored()
        let lock = try XCTUnwrap(outcome(restored)?.get().peripherals.first)
        XCTAssertTrue(simulator.advance(until: { lock.state == .connected }, limit: 60))
        XCTAssertEqual(try outcome(read(encrypted, of: lock))?.get(), Data([2]))
        XCTAssertTrue(lock.isBonded)
        XCTAssertEqual(manager.bonds().map(\.isOurs), [true])
        XCTAssertEqual(requests.withLock { $0.count }, 0)
    }
}
