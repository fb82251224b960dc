import BlueCapDBus
import BlueCapFutures
import TestSupport
import XCTest

@testable import BlueZSimulator

/// `Pair`, `CancelPairing` and protected values with virtual peripherals, on the versions that differ.
final class PairingTests: XCTestCase {
    private static let versions: [BlueZVersion] = [.v5_66, .v5_72, .v5_82, BlueZVersion(5, 87)]
    private let path: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_0A"
    private let address: VirtualAddress = "C0:00:00:00:00:0A"
    private static let failed = "org.bluez.Error.AuthenticationFailed"
    private static let canceled = "org.bluez.Error.AuthenticationCanceled"

    private func value(_ handle: String) -> ObjectPath {
        ObjectPath(validating: path.rawValue + "/service0020/char" + handle) ?? path
    }

    private var encrypted: ObjectPath { value("0021") }
    private var authenticated: ObjectPath { value("0023") }
    private var notifying: ObjectPath { value("0025") }

    /// A simulator with an adapter that has found the lock, and a program with an agent.
    private func scene(
        _ bluez: BlueZVersion = .v5_82, _ capability: String? = "NoInputNoOutput",
        security: VirtualSecurity = VirtualSecurity(), reply: PairingProgram.Reply = .accept
    ) -> (Simulator, PairingProgram) {
        let simulator = Simulator.inProcess(
            room: Room(peripherals: [StagePeripheral.lock.virtual(address, security: security, handle: 0x20)]),
            bluez: bluez)
        let program = PairingProgram(simulator, capability, reply: reply)
        program.scan()
        return (simulator, program)
    }

    private func connect(_ simulator: Simulator, _ program: PairingProgram) {
        XCTAssertNil(program.device("Connect", path))
        simulator.advance(by: 1)
        _ = program.client.takeLog()
    }

    private func read(_ program: PairingProgram, _ characteristic: ObjectPath) -> PendingCall {
        program.client.begin("ReadValue", at: characteristic)
    }

    private func acquireNotify(_ program: PairingProgram) -> PendingCall {
        program.client.begin("AcquireNotify", at: notifying)
    }

    private func beginRemoval(_ program: PairingProgram) -> PendingCall {
        program.client.begin("RemoveDevice") { $0.objectPath(self.path) }
    }

    /// The program and the lock compare a number.
    private func comparing(
        _ bluez: BlueZVersion = .v5_82, reply: PairingProgram.Reply = .accept, user: VirtualUser = VirtualUser()
    ) -> (Simulator, PairingProgram) {
        scene(bluez, "DisplayYesNo", security: VirtualSecurity(.displayYesNo, user: user), reply: reply)
    }

    private func pairAndLeave(_ program: PairingProgram) {
        XCTAssertNil(program.device("Pair", path))
        XCTAssertNil(program.device("Disconnect", path))
    }

    private func restartDaemon(_ simulator: Simulator) {
        simulator.simulateDaemonDeath()
        simulator.simulateDaemonReturn()
        simulator.run()
    }

    // MARK: Sockets

    func testARefusedAcquireNotifyHasNoReplyUpTo583EvenIfThePairingSucceeds() {
        for bluez in Self.versions {
            let (simulator, program) = scene(bluez)
            connect(simulator, program)
            let acquired = acquireNotify(program)
            simulator.advance(by: 40)
            XCTAssertEqual(program.state(path), ["true", "true"], "\(bluez)")
            XCTAssertEqual(acquired.succeeded, bluez < BlueZVersion(5, 84) ? nil : true, "\(bluez)")
        }
    }

    /// A removal after the end of the link does not.
    func testRemoveDeviceAfterAnAcquireNotifyWithoutAReplyCrashes566() {
        for bluez in Self.versions {
            for isConnected in [true, false] {
                let (simulator, program) = scene(bluez)
                connect(simulator, program)
                _ = acquireNotify(program)
                simulator.advance(by: 1)
                if !isConnected { XCTAssertNil(program.device("Disconnect", path)) }
                let removal = beginRemoval(program)
                simulator.advance(by: 5)
                let crashes = isConnected && (bluez < .v5_82 || bluez == BlueZVersion(5, 87))
                XCTAssertEqual(removal.succeeded != true, crashes, "\(bluez) \(isConnected)")
            }
        }
    }

    // MARK: Pair

    func testJustWorksPairsWithoutAQuestionAndBlueZSignalsItInItsOrder() {
        for bluez in Self.versions {
            let (simulator, program) = scene(bluez)
            XCTAssertNil(program.device("Pair", path), "\(bluez)")
            let device = "dev_C0_00_00_00_00_0A"
            let log = program.client.takeLog().filter { $0.hasPrefix(device) }
            let words = ["Connected=true", "Bonded=true", "ServicesResolved=true", "Paired=true"]
            let places = words.map { word in log.firstIndex { $0.contains(word) } ?? -1 }
            XCTAssertFalse(places.contains(-1), "\(bluez) \(log)")
            let isLate = bluez >= .v5_82
            XCTAssertEqual(places.last, log.count - 1, "\(bluez) \(log)")
            if isLate { XCTAssertEqual(places, places.sorted(), "\(bluez) \(log)") }
            program.expectCalls()
            XCTAssertEqual(program.state(path), ["true", "true"])
            XCTAssertEqual(simulator.links.map(\.security), [.encrypted])
        }
    }

    func testABondOutlivesTheAdapterAndPairHasAReplyAfterwards() {
        for bluez in Self.versions {
            let (simulator, program) = scene(bluez)
            XCTAssertNil(program.device("Pair", path), "\(bluez)")
            simulator.simulateAdapterRemoval()
            simulator.advance(by: 1)
            simulator.simulateAdapterAddition()
            simulator.advance(by: 1)
            XCTAssertEqual(program.state(path), ["true", "true"], "\(bluez)")
            let again = program.begin("Pair", path)
            simulator.advance(by: 30)
            XCTAssertEqual(again.succeeded, false, "\(bluez)")
            let removal = beginRemoval(program)
            simulator.advance(by: 5)
            XCTAssertEqual(removal.succeeded, true, "\(bluez)")
            simulator.simulateKeyLoss(of: address)
            program.scan()
            XCTAssertNil(program.device("Pair", path), "\(bluez)")
        }
    }

    func testAPairThatWaitsForItsLinkFailsWithTheAdapterAndTheNextOneSucceeds() {
        for bluez in Self.versions {
            for isRemoved in [false, true] {
                let (simulator, program) = scene(bluez)
                simulator.simulateOutOfRange(of: address)
                let pair = program.begin("Pair", path)
                simulator.advance(by: 1)
                XCTAssertNil(pair.succeeded)
                if isRemoved { simulator.simulateAdapterRemoval() } else { simulator.simulatePowerOff() }
                simulator.run()
                XCTAssertEqual(pair.succeeded, false, "\(bluez) \(isRemoved)")
                if isRemoved { simulator.simulateAdapterAddition() } else { simulator.simulatePowerOn() }
                simulator.simulateOutOfRange(false, of: address)
                simulator.advance(by: 1)
                XCTAssertEqual(simulator.links, [], "\(bluez) \(isRemoved)")
                program.scan()
                XCTAssertNil(program.device("Pair", path), "\(bluez) \(isRemoved)")
            }
        }
    }

    func testWithoutAnAgentNothingPairs() {
        let (simulator, program) = scene(.v5_82, nil)
        XCTAssertEqual(program.device("Pair", path)?.name, Self.failed)
        simulator.run()
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(program.state(path), ["false", "false"])
    }

    func testANumberIsComparedOnBothSides() {
        for bluez in Self.versions {
            let (simulator, program) = comparing(bluez)
            XCTAssertNil(program.device("Pair", path))
            program.expectCalls("RequestConfirmation 0A")
            XCTAssertEqual(simulator.links.map(\.security), [.secure])
        }
    }

    func testAPasskeyIsEnteredHere() {
        let displayed = VirtualSecurity(.displayOnly, user: VirtualUser(displays: 4711))
        var (simulator, program) = scene(.v5_82, "KeyboardOnly", security: displayed, reply: .passkey(4711))
        XCTAssertNil(program.device("Pair", path))
        program.expectCalls("RequestPasskey 0A")
        XCTAssertEqual(simulator.links.map(\.security), [.secure])
        (simulator, program) = scene(.v5_82, "KeyboardOnly", security: displayed, reply: .passkey(4712))
        XCTAssertEqual(program.device("Pair", path)?.name, Self.failed)
        simulator.run()
        XCTAssertEqual(simulator.links, [])
    }

    func testAPasskeyIsDisplayedHere() {
        var security = VirtualSecurity(.keyboardOnly, user: VirtualUser(passkey: .displayed(after: 3)))
        var (simulator, program) = scene(.v5_66, "DisplayOnly", security: security)
        let begin = simulator.seconds
        XCTAssertNil(program.device("Pair", path))
        program.expectCalls("DisplayPasskey 0A")
        XCTAssertNotNil(program.number)
        XCTAssertGreaterThan(simulator.seconds - begin, 3)
        security.hasSecureConnections = false
        (simulator, program) = scene(.v5_66, "DisplayOnly", security: security)
        XCTAssertNil(program.device("Pair", path))
        XCTAssertEqual(simulator.links.map(\.security), [.authenticated])
        security.user.passkey = .wrong
        (simulator, program) = scene(.v5_66, "DisplayOnly", security: security)
        XCTAssertEqual(program.device("Pair", path)?.name, Self.failed)
    }

    func testEachSidesRejectionIsTheSameError() {
        var (simulator, program) = comparing(reply: .reject)
        XCTAssertEqual(program.device("Pair", path)?.name, Self.failed)
        (simulator, program) = comparing(user: VirtualUser(confirms: .reject(after: 2)))
        XCTAssertEqual(program.device("Pair", path)?.name, Self.failed)
        simulator.run()
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(program.state(path), ["false", "false"])
        simulator.advance(by: 31)
        XCTAssertFalse(program.client.objects().contains(path.rawValue), "it is temporary again")
    }

    func testAnUnansweredQuestionEndsWithTheLinkAfterThirtySeconds() {
        let (simulator, program) = comparing(reply: .later)
        let begin = simulator.seconds
        XCTAssertEqual(program.device("Pair", path)?.name, Self.canceled)
        XCTAssertEqual(simulator.seconds - begin, 30, accuracy: 1)
        program.expectCalls("RequestConfirmation 0A", "Cancel")
        XCTAssertEqual(simulator.links, [])
    }

    func testALostLinkCancelsAPairingAndItsQuestion() {
        let (simulator, program) = comparing(reply: .later)
        let pair = program.begin("Pair", path)
        simulator.advance(by: 2)
        program.expectCalls("RequestConfirmation 0A")
        _ = program.client.takeLog()
        simulator.simulateLinkLoss(of: address)
        simulator.run()
        XCTAssertEqual(pair.error?.name, Self.canceled)
        program.expectCalls("Cancel")
        XCTAssertTrue(program.client.takeLog().contains { $0.hasSuffix("Connected=false") })
        XCTAssertEqual(program.state(path), ["false", "false"])
    }

    func testOnePairingOfADeviceAtATime() {
        let (simulator, program) = scene(reply: .later)
        let pair = program.begin("Pair", path)
        XCTAssertEqual(program.device("Pair", path)?.name, "org.bluez.Error.InProgress")
        XCTAssertEqual(program.device("Connect", path)?.name, "org.bluez.Error.InProgress")
        simulator.advance(by: 2)
        XCTAssertEqual(pair.succeeded, true)
    }

    func testPairOfABondedDeviceDependsOnTheVersion() {
        for bluez in Self.versions {
            let (_, program) = scene(bluez)
            XCTAssertNil(program.device("Pair", path))
            XCTAssertEqual(
                program.device("Pair", path)?.name,
                bluez < BlueZVersion(5, 79)
                    ? "org.bluez.Error.ConnectionAttemptFailed" : "org.bluez.Error.AlreadyExists")
        }
    }

    func testAPeripheralOutOfReachIsAFailedAttempt() {
        let (simulator, program) = scene()
        simulator.simulateOutOfRange(of: address)
        XCTAssertEqual(program.device("Pair", path)?.name, "org.bluez.Error.ConnectionAttemptFailed")
    }

    func testTheCapabilityOfALinkIsThatOfItsBeginningFrom581On() {
        for bluez in Self.versions {
            let (simulator, program) = scene(bluez, nil, security: VirtualSecurity(.displayYesNo))
            connect(simulator, program)
            XCTAssertNil(program.register("DisplayYesNo"))
            XCTAssertNil(program.device("Pair", path), "\(bluez)")
            XCTAssertEqual(program.takeCalls(), bluez < .v5_82 ? ["RequestConfirmation 0A"] : [], "\(bluez)")
            XCTAssertEqual(simulator.links.map(\.security), [bluez < .v5_82 ? .secure : .encrypted])
        }
    }

    func testFailuresThatATestWantsComeBeforeAnyQuestion() {
        let (simulator, program) = comparing()
        simulator.simulatePairingFailures(of: address)
        XCTAssertEqual(program.device("Pair", path)?.name, Self.failed)
        program.expectCalls()
        simulator.advance(by: 1)
        XCTAssertNil(program.device("Pair", path))
    }

    func testAPeripheralThatDoesNotBondPairsWithNobody() {
        let (_, program) = scene(security: VirtualSecurity(isBondable: false))
        XCTAssertEqual(program.device("Pair", path)?.name, Self.failed)
    }

    func testKeysOfAnAdapterThatIsNotPairableAreForOneLink() {
        let (simulator, program) = scene()
        XCTAssertNil(program.client.set("Pairable", .bool(false)))
        XCTAssertNil(program.device("Pair", path))
        XCTAssertEqual(program.state(path), ["true", "false"])
        XCTAssertNil(program.device("Disconnect", path))
        simulator.run()
        XCTAssertEqual(program.state(path), ["false", "false"])
    }

    // MARK: CancelPairing

    func testCancellingAnswersBothCallsAndTheAgent() {
        for isConnected in [false, true] {
            let (simulator, program) = comparing(reply: .later)
            if isConnected { connect(simulator, program) }
            let pair = program.begin("Pair", path)
            simulator.advance(by: 1)
            XCTAssertNil(program.device("CancelPairing", path))
            simulator.advance(by: 1)
            XCTAssertEqual(pair.error?.name, Self.canceled)
            program.expectCalls("RequestConfirmation 0A", "Cancel")
            XCTAssertEqual(program.state(path), ["false", "false"])
            XCTAssertEqual(simulator.links.isEmpty, !isConnected, "a link that was there stays")
        }
    }

    func testABondCanStillAppearAfterACancellationFrom581On() {
        for bluez in Self.versions {
            let (simulator, program) = scene(
                bluez, security: VirtualSecurity(user: VirtualUser(confirms: .accept(after: 3))))
            connect(simulator, program)
            let pair = program.begin("Pair", path)
            simulator.advance(by: 1)
            XCTAssertNil(program.device("CancelPairing", path))
            simulator.advance(by: 5)
            XCTAssertEqual(pair.error?.name, Self.canceled)
            XCTAssertEqual(program.state(path)[1], bluez < .v5_82 ? "false" : "true", "\(bluez)")
        }
    }

    func testCancellingWithoutAPairingDeletesTheKeysOfTheKernelOnly() {
        let (simulator, program) = scene()
        XCTAssertNil(program.device("Pair", path))
        XCTAssertEqual(program.device("CancelPairing", path)?.name, "org.bluez.Error.DoesNotExist")
        simulator.run()
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(program.state(path), ["true", "true"])
        restartDaemon(simulator)
        connect(simulator, program)
        XCTAssertEqual(simulator.links.map(\.security), [.encrypted], "they were stored")
    }

    func testThePairingOfAProgramThatLeavesEndsWithItsLink() {
        let (simulator, program) = comparing(reply: .later)
        let other = BusClient(simulator)
        _ = program.begin("Pair", path)
        simulator.advance(by: 1)
        program.client.connection.close()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(other.property("Bonded", at: path), "false")
        XCTAssertEqual(other.property("Pairable"), "false")
    }

    // MARK: On demand

    func testAProtectedValuePairsOnDemandAndIsRead() {
        for bluez in Self.versions {
            let (simulator, program) = scene(bluez)
            connect(simulator, program)
            let read = read(program, encrypted)
            simulator.advance(by: 2)
            XCTAssertEqual(read.bytes, [2], "\(bluez)")
            program.expectCalls("RequestAuthorization 0A")
            XCTAssertEqual(program.state(path), ["true", "true"])
        }
    }

    func testARefusedPairingLeavesTheReadUnansweredFrom567On() {
        for bluez in Self.versions {
            let (simulator, program) = scene(bluez, reply: .reject)
            connect(simulator, program)
            let read = read(program, encrypted)
            simulator.advance(by: 2)
            let isOld = bluez < BlueZVersion(5, 67)
            XCTAssertEqual(simulator.links.isEmpty, isOld)
            XCTAssertEqual(read.error?.message, isOld ? "Operation failed with ATT error: 0x0e" : nil)
        }
    }

    func testFrom567OnALinkWithARefusedPairingIsDeadAndItsValueStaysOccupied() {
        for bluez in Self.versions.dropFirst() {
            let (simulator, program) = scene(bluez, reply: .reject)
            connect(simulator, program)
            let refused = read(program, encrypted)
            simulator.advance(by: 2)
            // A value that needs no security.
            let open = read(program, notifying)
            simulator.advance(by: 20)
            XCTAssertEqual(simulator.links.count, 1, "\(bluez)")
            XCTAssertNil(program.device("Disconnect", path))
            simulator.advance(by: 2)
            XCTAssertNil(refused.succeeded)
            XCTAssertEqual(open.error?.message, "Operation failed with ATT error: 0x0e")

            program.setReply(.accept)
            connect(simulator, program)
            let again = read(program, encrypted)
            let other = read(program, notifying)
            simulator.advance(by: 2)
            XCTAssertEqual(again.error?.name, "org.bluez.Error.InProgress")
            XCTAssertEqual(other.bytes, [4])

            XCTAssertNil(program.device("Disconnect", path))
            simulator.advance(by: 3)
            XCTAssertNil(program.client.error(of: "RemoveDevice") { $0.objectPath(self.path) })
            program.scan()
            connect(simulator, program)
            let last = read(program, encrypted)
            simulator.advance(by: 2)
            XCTAssertEqual(last.bytes, [2])
        }
    }

    func testANumberIsNeededForAnAuthenticatedValue() {
        for bluez in Self.versions {
            var (simulator, program) = scene(bluez)
            XCTAssertNil(program.device("Pair", path))
            simulator.advance(by: 1)
            let refused = read(program, authenticated)
            simulator.advance(by: 2)
            XCTAssertNil(refused.bytes)
            XCTAssertEqual(simulator.links, [], "no capability for it")

            (simulator, program) = comparing(bluez)
            XCTAssertNil(program.device("Pair", path))
            simulator.advance(by: 1)
            let read = read(program, authenticated)
            simulator.advance(by: 2)
            XCTAssertEqual(read.bytes, [3])
        }
    }

    func testWritesAndSubscriptionsPairOnDemandToo() {
        let (simulator, program) = scene()
        connect(simulator, program)
        XCTAssertNil(program.client.error(of: "StartNotify", at: notifying))
        program.expectCalls("RequestAuthorization 0A")
        XCTAssertNil(program.client.write([9], to: encrypted))
        XCTAssertEqual(simulator.value(of: "B002", at: address), [9])
        program.expectCalls()
    }

    func testAPeripheralAsksForSecurityItself() {
        let (simulator, program) = scene(security: VirtualSecurity(requestsSecurity: true))
        connect(simulator, program)
        simulator.advance(by: 1)
        program.expectCalls("RequestAuthorization 0A")
        XCTAssertEqual(simulator.links.map(\.security), [.encrypted])
    }

    // MARK: Keys

    func testABondIsUsedAgainWithoutAQuestionAlsoByANewDaemon() {
        for bluez in Self.versions {
            let (simulator, program) = scene(bluez)
            pairAndLeave(program)
            connect(simulator, program)
            XCTAssertEqual(simulator.links.map(\.security), [.encrypted])
            restartDaemon(simulator)
            XCTAssertEqual(program.state(path), ["true", "true"])
            connect(simulator, program)
            let read = read(program, encrypted)
            simulator.advance(by: 1)
            XCTAssertEqual(read.bytes, [2])
            program.expectCalls()
        }
    }

    func testAPeripheralThatHasForgottenEndsTheLink() {
        for bluez in Self.versions {
            let (simulator, program) = scene(bluez)
            pairAndLeave(program)
            simulator.simulateKeyLoss(of: address)
            XCTAssertNil(program.device("Connect", path), "\(bluez) does not wait for the encryption")
            simulator.advance(by: 0.1)
            XCTAssertEqual(program.state(path), ["true", "true"])
            XCTAssertEqual(simulator.links, [])

            // Repair.
            guard bluez != BlueZVersion(5, 87) else { continue }
            XCTAssertNil(program.client.error(of: "RemoveDevice") { $0.objectPath(self.path) })
            program.scan()
            XCTAssertNil(program.device("Pair", path))
        }
    }

    func testRemovingADeviceDeletesItsKeysHereAndNotThere() {
        let (simulator, program) = scene()
        XCTAssertNil(program.device("Pair", path))
        XCTAssertNil(program.client.error(of: "RemoveDevice") { $0.objectPath(self.path) })
        program.scan()
        XCTAssertEqual(program.state(path), ["false", "false"])
        XCTAssertEqual(program.device("Pair", path)?.name, Self.failed, "the peripheral has keys, and takes no others")
        simulator.simulateKeyLoss(of: address)
        simulator.advance(by: 1)
        XCTAssertNil(program.device("Pair", path))
    }

    func testAnAdapterThatHasLostItsKeysIsStillCalledBonded() {
        let (simulator, program) = scene(
            security: VirtualSecurity(confirmsJustWorksRepairing: true))
        pairAndLeave(program)
        simulator.simulateKeyLoss(of: address, side: .adapter)
        XCTAssertEqual(program.state(path), ["true", "true"])
    }

    // MARK: Privacy

    func testAPairingGivesTheIdentityAndTheObjectStaysUntilTheDaemonRestarts() {
        for bluez in Self.versions {
            let identity = VirtualPrivacy(identity: "00:1B:DC:00:00:01")
            let (simulator, program) = scene(bluez, security: VirtualSecurity(privacy: identity))
            connect(simulator, program)
            XCTAssertNil(program.device("Pair", path))
            let device = "dev_C0_00_00_00_00_0A"
            XCTAssertEqual(
                program.client.takeLog(),
                ["Address=00:1B:DC:00:00:01", "AddressType=public", "Bonded=true", "Paired=true"].map {
                    "\(device) \($0)"
                })
            XCTAssertNil(program.device("Disconnect", path))
            connect(simulator, program)
            XCTAssertEqual(simulator.links.map(\.security), [.encrypted])
            restartDaemon(simulator)
            let known: ObjectPath = "/org/bluez/hci0/dev_00_1B_DC_00_00_01"
            XCTAssertEqual(program.client.objects().filter { $0.contains("dev_") }, [known.rawValue])
            program.scan()
            XCTAssertEqual(program.client.objects().filter { $0.contains("dev_") }, [known.rawValue])
            XCTAssertNil(program.device("Connect", known))
            simulator.advance(by: 0.1)
            XCTAssertEqual(simulator.links.map(\.security), [.encrypted])
        }
    }

    func testAStoppedDaemonReleasesTheAgents() {
        let (simulator, program) = scene()
        simulator.simulateDaemonStop()
        program.expectCalls("Release")
    }

    // MARK: Other programs

    func testTheDefaultAgentOfAnotherProgramIsAskedOnDemandAndOursWithPair() {
        let (simulator, program) = scene(.v5_82, nil)
        simulator.add(VirtualAgent(.noInputNoOutput, user: VirtualUser(confirms: .reject)))
        simulator.run()
        XCTAssertEqual(program.client.property("Pairable"), "true")
        XCTAssertNil(program.register("NoInputNoOutput"))
        connect(simulator, program)
        _ = read(program, encrypted)
        simulator.advance(by: 1)
        program.expectCalls()
        XCTAssertEqual(simulator.links.map(\.security), [.none])
        XCTAssertNil(program.device("Disconnect", path))
        simulator.advance(by: 3)
        XCTAssertNil(program.device("Pair", path))
    }

    func testAnotherProgramCallsTheAgent() {
        let (simulator, program) = scene(reply: .reject)
        let errors = Locked<[String?]>([])
        simulator.simulateAgentCall(about: address) { error in errors.withLock { $0.append(error) } }
        simulator.advance(by: 1)
        XCTAssertEqual(errors.withLock { $0 }, ["org.bluez.Error.Rejected"])
        program.expectCalls("RequestAuthorization 0A")
    }

    func testAPairingOfAnotherProgram() {
        let (simulator, program) = scene(.v5_82, nil)
        simulator.add(VirtualAgent())
        simulator.simulateForeignPairing(of: address)
        simulator.run()
        XCTAssertEqual(program.device("Pair", path)?.name, "org.bluez.Error.InProgress")
        simulator.advance(by: 2)
        XCTAssertEqual(program.state(path), ["true", "true"])
    }
}
