import BlueCapBlueZ
import BlueZSimulator
import BlueCapFutures
import BlueCapReactor
import TestSupport
import XCTest

@testable import BlueCapKit

/// A peripheral manager that virtual centrals pair with, with each version of BlueZ.
final class PeripheralPairingTests: EachVersionTestCase {
    private let address: VirtualAddress = "C0:FF:EE:00:CE:01"
    private lazy var simulator = Simulator.inProcess(room: .empty, bluez: bluez)
    private let changes = Locked<[CentralPairingChange]>([])
    private let requests = Locked<[PairingRequest]>([])

    // MARK: Steps

    private func manager(_ policy: PairingPolicy) -> PeripheralManager {
        let manager = try! PeripheralManager(configuration: .init(busAddress: simulator.address, pairingPolicy: policy))
        manager.whenPairingChanges().onSuccess(context: ImmediateContext()) { [changes] change in
            changes.withLock { $0.append(change) }
        }
        return manager
    }

    /// One characteristic for each operation and level, `B101` to `B109`, and one without security, `B10A`.
    private func lock() -> MutableService {
        let service = MutableService(uuid: "B100")
        let levels: [(CBAttributePermissions, CBAttributePermissions, CBCharacteristicProperties)] = [
            (.readEncryptionRequired, .writeEncryptionRequired, .notifyEncryptionRequired),
            (.readAuthenticationRequired, .writeAuthenticationRequired, .notifyAuthenticationRequired),
            (.readSecureConnectionRequired, .writeSecureConnectionRequired, .notifySecureConnectionRequired),
        ]
        let protected = levels.enumerated().flatMap { index, level in
            [
                MutableCharacteristic(
                    uuid: "B10\(3 * index + 1)", properties: .read, permissions: [.readable, level.0], value: Data([1])),
                MutableCharacteristic(uuid: "B10\(3 * index + 2)", properties: .write, permissions: level.1),
                MutableCharacteristic(
                    uuid: "B10\(3 * index + 3)", properties: [.read, .notify, level.2], permissions: .readable),
            ]
        }
        let open = MutableCharacteristic(uuid: "B10A", properties: .read, permissions: .readable, value: Data([7]))
        service.characteristics = protected + [open]
        return service
    }

    /// A manager with that policy that serves and advertises.
    private func served(
        _ policy: PairingPolicy, _ service: MutableService? = nil
    ) throws -> (manager: PeripheralManager, service: MutableService) {
        let manager = manager(policy)
        let service = service ?? lock()
        XCTAssertNil(simulator.failure(of: manager.add(service)))
        XCTAssertNil(simulator.failure(of: manager.startAdvertising("Lock")))
        for characteristic in service.characteristics where characteristic.propertyEnabled(.write) {
            characteristic.startRespondingToWriteRequests().onSuccess(context: ImmediateContext()) {
                [weak characteristic] request, _ in characteristic?.respondToRequest(request, withResult: .success)
            }
        }
        return (manager, service)
    }

    /// Collects the requests of a manager, and passes them to `answer`.
    private func answer(_ manager: PeripheralManager, _ answer: @escaping @Sendable (PairingRequest) -> Void) {
        manager.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { [requests] request in
            requests.withLock { $0.append(request) }
            answer(request)
        }
    }

    /// The same, with an answer to the requests.
    private func served(
        _ policy: PairingPolicy, answering: @escaping @Sendable (PairingRequest) -> Void
    ) throws -> PeripheralManager {
        let (manager, _) = try served(policy)
        answer(manager, answering)
        return manager
    }

    private func phone(_ security: VirtualSecurity = VirtualSecurity()) -> CentralLink {
        let link = simulator.connect(VirtualCentral(address, name: "Phone", security: security))
        XCTAssertTrue(simulator.advance(until: { link.state == .connected }, limit: 10))
        return link
    }

    /// Whether the pairing succeeds.
    private func pairs(_ phone: CentralLink) -> Bool {
        let pairing = phone.pair()
        XCTAssertTrue(simulator.advance(until: { pairing.result != nil }, limit: 60))
        simulator.advance(by: 1)
        return pairing.failure == nil
    }

    /// The error codes of all operations; `nil` for success.
    private func codes(_ phone: CentralLink) -> [UInt8?] {
        (1...9).map { number in
            let uuid = AttributeSelector.uuid("B10\(number)")
            let request =
                switch number % 3 {
                case 1: phone.read(uuid)
                case 2: phone.write([1], to: uuid)
                default: phone.subscribe(to: uuid)
                }
            XCTAssertTrue(simulator.advance(until: { request.result != nil }, limit: 10))
            guard case .attribute(let code)? = request.failure else { return nil }
            return code
        }
    }

    private func reported() -> [PairingChange] { changes.withLock { $0.map(\.change) } }

    // MARK: Permissions

    func testEachPermissionIsEnforced() throws {
        let table: [(PairingPolicy, VirtualSecurity, [UInt8?])] = [
            (.justWorks, VirtualSecurity(), [nil, nil, nil, 5, 5, 5, 5, 5, 5]),
            (
                .ask(.displayYesNo), VirtualSecurity(.keyboardOnly, hasSecureConnections: false),
                [nil, nil, nil, nil, nil, nil, 5, 5, 5]
            ),
            (.ask(.displayYesNo), VirtualSecurity(.displayYesNo), Array(repeating: nil, count: 9)),
        ]
        for (policy, security, expected) in table {
            simulator = .inProcess(room: .empty, bluez: bluez)
            let (manager, _) = try served(policy)
            answer(manager) { $0.confirm() }
            let phone = phone(security)
            XCTAssertEqual(codes(phone), [15, 15, 15, 5, 5, 5, 5, 5, 5])
            XCTAssertTrue(pairs(phone))
            XCTAssertEqual(codes(phone), expected)
            let open = phone.read("B10A")
            simulator.advance(by: 1)
            XCTAssertEqual(open.bytes, [7])
        }
    }

    func testARequestHasTheSecurityOfItsPermission() throws {
        let (manager, service) = try served(.ask(.displayYesNo))
        answer(manager) { $0.confirm() }
        let seen = Locked<[RequiredSecurity?]>([])
        for characteristic in service.characteristics where characteristic.propertyEnabled(.read) {
            characteristic.startRespondingToReadRequests().onSuccess(context: ImmediateContext()) {
                [weak characteristic] request, central in
                seen.withLock { $0.append(request.security) }
                XCTAssertTrue(central.isBonded)
                characteristic?.respondToRequest(request, withValue: Data([9]))
            }
        }
        let phone = phone(VirtualSecurity(.displayYesNo))
        XCTAssertTrue(pairs(phone))
        for uuid in ["B101", "B104", "B107", "B10A"] {
            let read = phone.read(.uuid(uuid))
            simulator.advance(by: 1)
            XCTAssertEqual(read.bytes, [9])
        }
        XCTAssertEqual(seen.withLock { $0 }, [.encryption, .authentication, .secureConnections, nil])
    }

    func testTheApplicationAuthorizesOrTheRequestIsRefused() throws {
        let service = MutableService(uuid: "B100")
        let value = MutableCharacteristic(
            uuid: "B101", properties: [.read, .write], permissions: [.readable, .writeable, .authorizationRequired],
            value: Data([1]))
        service.characteristics = [value]
        let (manager, _) = try served(.reject, service)
        value.stopRespondingToWriteRequests()
        let phone = phone()
        let refused = [
            phone.read("B101"), phone.write([2], to: "B101"), phone.write(Array(repeating: 0, count: 300), to: "B101"),
        ]
        simulator.advance(by: 2)
        XCTAssertEqual(refused.map(\.failure), Array(repeating: .attribute(8), count: 3))
        value.startRespondingToReadRequests().onSuccess(context: ImmediateContext()) { [weak value] request, _ in
            value?.respondToRequest(request, withResult: .success)
        }
        value.startRespondingToWriteRequests().onSuccess(context: ImmediateContext()) { [weak value] request, _ in
            value?.respondToRequest(request, withResult: .success)
        }
        let allowed = [phone.read("B101"), phone.write(Array(repeating: 0, count: 300), to: "B101")]
        simulator.advance(by: 2)
        XCTAssertEqual(allowed.map(\.bytes), [[1], []])
        withExtendedLifetime(manager) {}
    }

    func testAServiceIsNotOfferedWithoutItsSecurity() throws {
        let table: [(BlueZVersion, CBCharacteristicProperties, CBAttributePermissions, String?)] = [
            (BlueZVersion(5, 56), .read, .readSecureConnectionRequired, "5.57"),
            (BlueZVersion(5, 57), .read, .readSecureConnectionRequired, nil),
            (BlueZVersion(5, 56), .read, .readAuthenticationRequired, nil),
            (BlueZVersion(5, 61), .notifyEncryptionRequired, .readable, "5.66"),
            (BlueZVersion(5, 65), .indicateAuthenticationRequired, .readable, "5.66"),
            (bluez, .notifySecureConnectionRequired, .writeSecureConnectionRequired, nil),
        ]
        for (version, properties, permissions, needed) in table {
            simulator = .inProcess(room: .empty, bluez: version)
            let manager = manager(.reject)
            let service = MutableService(uuid: "B100")
            service.characteristics = [
                MutableCharacteristic(uuid: "B101", properties: properties, permissions: permissions)
            ]
            guard let needed else {
                XCTAssertNil(simulator.failure(of: manager.add(service)), "\(version)")
                continue
            }
            guard
                case .securityNotEnforced(let text)? = simulator.failure(of: manager.add(service))
                    as? PeripheralManagerError
            else {
                XCTFail("BlueZ \(version) offers it")
                continue
            }
            XCTAssertTrue(text.hasPrefix("BlueZ \(version) ") && text.contains("BlueZ \(needed)"), text)
            XCTAssertEqual(simulator.applications.count, 0)
            XCTAssertEqual(manager.services, [])
        }
    }

    // MARK: Requests and bonds

    func testTheServerIsAskedAndTheCentralIsBonded() throws {
        let manager = try served(.ask(.displayYesNo)) { $0.confirm() }
        let phone = phone(VirtualSecurity(.displayYesNo))
        let central = try XCTUnwrap(manager.centrals.first)
        XCTAssertFalse(central.isPaired || central.isBonded)
        XCTAssertTrue(pairs(phone))
        let request = try XCTUnwrap(requests.withLock { $0.first })
        guard case .confirm = request.kind else { return XCTFail("\(request)") }
        XCTAssertEqual(request.peer, .central(central))
        XCTAssertFalse(request.isOpen)
        XCTAssertEqual(reported().map(\.isBonded), [true, true])
        XCTAssertEqual(reported().last, PairingChange(isPaired: true, isBonded: true, origin: .application, error: nil))
        XCTAssertEqual(changes.withLock { $0.map(\.central) }, [central, central])
        XCTAssertEqual(manager.centrals.map(\.isBonded), [true])
        XCTAssertEqual(manager.bonds().map(\.isOurs), [true])
        XCTAssertEqual(manager.bonds().map(\.identifier), [central.identifier])
    }

    /// A central without the means for a number gets a bond without one only if the application allows that.
    func testAPairingWithoutANumberIsAskedForToo() throws {
        let manager = try served(.ask(.displayYesNo)) { _ = $0.kind == .authorize ? $0.reject() : $0.confirm() }
        XCTAssertFalse(pairs(phone()))
        XCTAssertEqual(requests.withLock { $0.map(\.kind) }, [.authorize])
        XCTAssertEqual(manager.bonds(), [])
    }

    /// A link keeps the capability that the adapter had when the link was made.
    func testACentralThatConnectedBeforeThePolicyPairsWithoutANumber() throws {
        let manager = try served(.reject) { $0.confirm() }
        let phone = phone(VirtualSecurity(.displayYesNo))
        manager.pairingPolicy = .ask(.displayYesNo)
        XCTAssertTrue(simulator.advance(until: { manager.isPairable }, limit: 5))
        XCTAssertTrue(pairs(phone))
        XCTAssertEqual(requests.withLock { $0.map(\.kind) }, [.authorize])
        XCTAssertEqual(codes(phone), [nil, nil, nil, 5, 5, 5, 5, 5, 5])
    }

    func testJustWorksNeedsNoHandler() throws {
        let (manager, _) = try served(.justWorks)
        XCTAssertTrue(pairs(phone()))
        XCTAssertEqual(manager.bonds().map(\.isOurs), [true])
    }

    func testARejectionLeavesNoBond() throws {
        let manager = try served(.ask(.displayYesNo)) { $0.reject() }
        XCTAssertFalse(pairs(phone(VirtualSecurity(.displayYesNo))))
        XCTAssertEqual(
            reported(),
            [PairingChange(isPaired: false, isBonded: false, origin: .application, error: .rejected(by: .application))])
        XCTAssertEqual(manager.bonds(), [])
    }

    func testARequestWithoutAHandlerOrAnAnswerIsRejected() throws {
        var policy = PairingPolicy.ask(.displayYesNo)
        policy.answerTimeout = .seconds(5)
        let (manager, _) = try served(policy)
        XCTAssertFalse(pairs(phone(VirtualSecurity(.displayYesNo))))
        answer(manager) { _ in }
        XCTAssertFalse(pairs(phone(VirtualSecurity(.displayYesNo))))
        XCTAssertEqual(reported().map(\.error), [.rejected(by: .policy), .timedOut])
        XCTAssertEqual(manager.bonds(), [])
    }

    func testAPolicyThatAcceptsNothingIncomingRejects() throws {
        var policy = PairingPolicy.justWorks
        policy.acceptsIncoming = false
        let (manager, _) = try served(policy)
        XCTAssertFalse(pairs(phone()))
        XCTAssertEqual(manager.bonds(), [])
        XCTAssertEqual(reported().map(\.error), [.rejected(by: .policy)])
    }

    func testAPasskeyIsDisplayed() throws {
        let (manager, _) = try served(.ask(.displayOnly))
        answer(manager) { _ in }
        let phone = phone(VirtualSecurity(.keyboardOnly))
        XCTAssertTrue(pairs(phone))
        let request = try XCTUnwrap(requests.withLock { $0.first })
        guard case .displayPasskey(_, entered: 0) = request.kind else { return XCTFail("\(request)") }
        XCTAssertTrue(request.whenEnded().completed)
        XCTAssertEqual(phone.security, .secure)
    }

    /// BlueZ ends the link two seconds after `Disconnect`: until then the user of the other device can complete the pairing.
    func testRejectingADisplayedPasskeyLeavesNoBondAlsoIfItIsEntered() throws {
        let manager = try served(.ask(.displayOnly)) { $0.reject() }
        let user = VirtualUser(passkey: .displayed(after: 1))
        _ = pairs(phone(VirtualSecurity(.keyboardOnly, user: user)))
        simulator.advance(by: 10)
        XCTAssertEqual(manager.bonds(), [])
        XCTAssertEqual(reported().map(\.error), [.rejected(by: .application)])
        XCTAssertFalse(reported().contains(where: \.isBonded))
    }

    func testAPolicyWithoutPairingsRejectsADisplayedPasskey() throws {
        let manager = try served(.ask(.displayOnly)) { _ in }
        let user = VirtualUser(passkey: .displayed(after: 1))
        let pairing = phone(VirtualSecurity(.keyboardOnly, user: user)).pair()
        XCTAssertTrue(simulator.advance(until: { requests.withLock { !$0.isEmpty } }, limit: 2))
        manager.pairingPolicy = .reject
        simulator.advance(by: 10)
        XCTAssertNotNil(pairing.result)
        XCTAssertEqual(manager.bonds(), [])
        XCTAssertEqual(reported().map(\.error), [.rejected(by: .policy)])
        XCTAssertFalse(reported().contains(where: \.isBonded))
    }

    func testAWrongPasskeyEndsTheLinkAndLeavesNoBond() throws {
        let manager = try served(.ask) { $0.enter(4712) }
        let displays = VirtualSecurity(.displayOnly, user: VirtualUser(displays: 4711))
        XCTAssertFalse(pairs(phone(displays)))
        XCTAssertFalse(pairs(phone(VirtualSecurity(.keyboardOnly, user: VirtualUser(passkey: .wrong)))))
        XCTAssertEqual(reported().map(\.error), [.linkLost, .linkLost])
        XCTAssertEqual(manager.bonds(), [])
    }

    func testWithRejectNoCentralPairsAndNoAgentIsRegistered() throws {
        let (manager, _) = try served(.reject)
        XCTAssertFalse(manager.isPairable)
        XCTAssertFalse(pairs(phone()))
        XCTAssertEqual(simulator.statistics.count(of: "RegisterAgent"), 0)
        XCTAssertEqual(reported(), [])
    }

    func testABondThatAnotherProgramAllowsIsReported() throws {
        let (manager, _) = try served(.reject)
        simulator.add(VirtualAgent(.noInputNoOutput))
        XCTAssertTrue(pairs(phone()))
        XCTAssertEqual(reported().last, PairingChange(isPaired: true, isBonded: true, origin: .elsewhere, error: nil))
        XCTAssertEqual(manager.bonds().map(\.isOurs), [false])
        XCTAssertEqual(try simulator.outcome(of: manager.forgetBonds()), [])
    }

    // MARK: The agent

    /// A link keeps the capability that the agent had when the link was made.
    func testNothingIsRegisteredBeforeTheAgent() throws {
        simulator.simulateSlowReplies(by: 1)
        let manager = manager(.ask(.displayYesNo))
        let service = lock()
        let (added, started) = (manager.add(service, timeout: 30), manager.startAdvertising("Lock", timeout: 30))
        XCTAssertTrue(simulator.advance(until: { manager.poweredOn }, limit: 30))
        while !manager.isPairable {
            XCTAssertEqual(simulator.applications.count + simulator.advertisements.count, 0)
            simulator.advance(by: 0.1)
        }
        XCTAssertNil(simulator.failure(of: added))
        XCTAssertNil(simulator.failure(of: started))
    }

    func testARefusedAgentFailsTheServiceAndTheAdvertisement() throws {
        simulator.simulateRefusedCalls(1_000, of: "RegisterAgent", error: .notAuthorized)
        let manager = manager(.justWorks)
        for failure in [
            simulator.failure(of: manager.add(lock())), simulator.failure(of: manager.startAdvertising("Lock")),
        ] {
            guard case .pairingAgentRefused? = failure as? PeripheralManagerError else {
                XCTFail("\(String(describing: failure))")
                continue
            }
        }
        manager.pairingPolicy = .reject
        XCTAssertNil(simulator.failure(of: manager.add(lock())))
    }

    func testTheAgentReturnsWithTheDaemonBeforeTheServices() throws {
        let (manager, _) = try served(.justWorks)
        simulator.simulateDaemonDeath()
        simulator.advance(by: 2)
        simulator.simulateDaemonReturn()
        XCTAssertTrue(simulator.advance(until: { !self.simulator.advertisements.isEmpty }, limit: 30))
        XCTAssertTrue(manager.isPairable)
        let registrations = ["RegisterAgent", "RegisterApplication", "RegisterAdvertisement"]
        let calls = simulator.statistics.calls.map(\.member).filter { registrations.contains($0) }
        XCTAssertEqual(calls, registrations + registrations)
        XCTAssertTrue(pairs(phone()))
    }

    func testTheAgentIsRegisteredAgainAfterAResetWithoutADaemon() throws {
        let (manager, _) = try served(.justWorks)
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        manager.reset()
        simulator.advance(by: 3)
        simulator.simulateDaemonReturn()
        XCTAssertTrue(simulator.advance(until: { manager.isPairable }, limit: 30))
    }

    func testAServiceWaitsForThePolicyThatAnotherThreadSets() throws {
        let manager = manager(.reject)
        XCTAssertTrue(simulator.advance(until: { manager.state == .poweredOn }, limit: 30))
        let service = lock()
        let added = Locked<Future<Void>?>(nil)
        // On the loop, so that the other thread's change is known there only after the service is registered.
        manager.session.client.loop.perform {
            let isSet = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                manager.pairingPolicy = .justWorks
                isSet.signal()
            }
            isSet.wait()
            let future = manager.add(service)
            added.withLock { $0 = future }
        }
        XCTAssertTrue(simulator.advance(until: { added.withLock { $0 != nil } }, limit: 5))
        XCTAssertNil(simulator.failure(of: try XCTUnwrap(added.withLock { $0 })))
        XCTAssertTrue(manager.isPairable)
    }

    func testAnAgentThatNoManagerNeedsLeaves() throws {
        let (manager, _) = try served(.justWorks)
        XCTAssertTrue(manager.isPairable)
        manager.pairingPolicy = .reject
        XCTAssertTrue(simulator.advance(until: { !manager.isPairable }, limit: 5))
    }

    // MARK: The adapter

    func testPairableCanBeSetForATime() throws {
        let (manager, _) = try served(.justWorks)
        XCTAssertNil(manager.pairableTimeout)
        XCTAssertNil(simulator.failure(of: manager.setPairable(false)))
        simulator.advance(by: 0.1)
        XCTAssertFalse(manager.isPairable)
        XCTAssertFalse(pairs(phone()))
        XCTAssertNil(simulator.failure(of: manager.setPairable(true, timeout: 19.5)))
        simulator.advance(by: 0.1)
        XCTAssertTrue(manager.isPairable)
        XCTAssertEqual(manager.pairableTimeout, .seconds(20))
        simulator.advance(by: 21)
        XCTAssertFalse(manager.isPairable)
    }

    func testWithoutAnAdapterNothingIsPairable() throws {
        simulator.simulateAdapterRemoval()
        let manager = manager(.justWorks)
        simulator.advance(by: 6)
        XCTAssertFalse(manager.isPairable)
        XCTAssertNil(manager.pairableTimeout)
        guard case .unavailable? = simulator.failure(of: manager.setPairable(true)) as? PairingError else {
            return XCTFail()
        }
    }

    // MARK: Bonds

    func testForgettingEndsTheLinkAndTheBond() throws {
        let (manager, _) = try served(.justWorks)
        let phone = phone()
        XCTAssertTrue(pairs(phone))
        XCTAssertEqual(try simulator.outcome(of: manager.forgetBonds()).map(\.isOurs), [true])
        simulator.advance(by: 1)
        XCTAssertEqual(manager.bonds(), [])
        XCTAssertEqual(phone.state, .disconnected)
        XCTAssertEqual(
            reported().last, PairingChange(isPaired: false, isBonded: false, origin: .application, error: nil))
    }

    func testARemovalThatBlueZRefusesIsNotTheOriginOfALaterOne() throws {
        let (manager, _) = try served(.justWorks)
        XCTAssertTrue(pairs(phone()))
        let bond = try XCTUnwrap(manager.bonds().first)
        simulator.simulateRefusedCalls(of: "RemoveDevice", error: .bluez("Failed", "Operation failed"))
        XCTAssertNotNil(simulator.failure(of: manager.forget(bond)))
        changes.withLock { $0 = [] }
        simulator.simulateDeviceRemoval(of: address)
        simulator.advance(by: 5)
        XCTAssertEqual(reported().map(\.origin), [.elsewhere])
    }

    func testACentralWhoseAddressChangesStaysTheSame() throws {
        let (manager, _) = try served(.justWorks)
        let identity: VirtualAddress = "00:11:22:33:44:55"
        let link = simulator.connect(
            VirtualCentral(
                "4C:FF:EE:00:CE:01", addressType: .random, name: "Phone",
                security: VirtualSecurity(privacy: VirtualPrivacy(identity: identity))))
        XCTAssertTrue(simulator.advance(until: { link.state == .connected }, limit: 10))
        let central = try XCTUnwrap(manager.centrals.first)
        XCTAssertEqual(central.address?.description, "4C:FF:EE:00:CE:01")
        XCTAssertTrue(pairs(link))
        let known = try XCTUnwrap(manager.centrals.first)
        XCTAssertEqual(known.address?.description, identity.description)
        XCTAssertEqual(known, central)
        XCTAssertEqual(manager.bonds().map(\.identifier), [central.identifier])
        XCTAssertEqual(manager.bonds().map(\.isOurs), [true])
        simulator.simulateDaemonDeath()
        simulator.simulateDaemonReturn()
        simulator.advance(by: 5)
        XCTAssertEqual(manager.bonds().map(\.isOurs), [true], "by its identity address")
    }
}
