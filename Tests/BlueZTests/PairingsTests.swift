import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// `Pair` and what surrounds it, on a bus.
final class PairingsTests: XCTestCase {
    private var scene = PairingScene()
    private var manager = FakeManager()
    private let outcomes = Locked<[PairingOutcome]>([])
    private let results = Locked<[String]>([])
    /// Writes down the result of a call: "done", or the name of the error.
    private lazy var note: @Sendable (Result<Void, BlueZError>) -> Void = { [results] result in
        results.withLock { $0.append(result.failure?.name ?? "done") }
    }
    private var daemon: FakeDaemon { scene.daemon }

    private let bonded: TestProperties = [("Bonded", .bool(true)), ("Paired", .bool(true))]
    private let canceled = DBusError(name: "org.bluez.Error.AuthenticationCanceled", message: "Authentication Canceled")
    private let failed = DBusError(name: "org.bluez.Error.AuthenticationFailed", message: "Authentication Failed")

    /// Starts a client whose agent is registered.
    private func start(_ minor: Int = 82, _ properties: TestProperties = []) -> BlueZClient {
        let client = scene.start(minor, properties)
        scene.want(.keyboardDisplay, manager)
        daemon.forgetCalls()
        return client
    }

    private func pair(
        _ client: BlueZClient, _ key: ObjectKey? = nil, timeout: Double = 60, mayEndLink: Bool = true
    ) throws -> Pairings.WaiterID? {
        let key = key ?? scene.device
        let (outcomes, waiter) = (outcomes, Locked<Pairings.WaiterID?>(nil))
        client.loop.post {
            let id = client.pairings.pair(key, timeout: timeout, mayEndLink: mayEndLink) { outcome in
                outcomes.withLock { $0.append(outcome) }
            }
            waiter.withLock { $0 = id }
        }
        daemon.loop.run()
        return waiter.withLock { $0 }
    }

    /// Starts a client that waits for the reply to `Pair`.
    private func pairing(
        _ minor: Int = 82, _ properties: TestProperties = [], timeout: Double = 60
    ) throws -> BlueZClient {
        let client = start(minor, properties)
        daemon.silent = ["Pair"]
        _ = try pair(client, timeout: timeout)
        return client
    }

    private func cancel(_ client: BlueZClient, _ waiter: Pairings.WaiterID?) throws {
        let (waiter, device) = (try XCTUnwrap(waiter), scene.device)
        client.loop.post { client.pairings.cancel(waiter, of: device) }
        daemon.loop.run()
    }

    private func answerPair(_ error: DBusError) {
        daemon.answerLate("Pair", error: error)
        daemon.loop.advance(by: 1)
    }

    private var result: [PairingOutcome] { outcomes.withLock { $0 } }

    private func causes() -> [PairingCause?] {
        result.map { if case .failed(let cause, _) = $0 { cause } else { nil } }
    }

    // MARK: Success

    func testPairConnectsAndBonds() throws {
        let client = try pairing()
        XCTAssertEqual(daemon.calls, ["Pair"])
        XCTAssertEqual(client.pairings.isPairing(scene.device), true)
        scene.change([("Connected", .bool(true))])
        scene.change(bonded)
        daemon.answerLate("Pair")
        XCTAssertEqual(result, [.bonded])
        XCTAssertEqual(daemon.calls, ["Pair"])
        XCTAssertEqual(client.pairings.isPairing(scene.device), false)
    }

    func testABondedDeviceIsNotPairedAgain() throws {
        let client = start(82, bonded)
        _ = try pair(client)
        XCTAssertEqual(result, [.bonded])
        XCTAssertEqual(daemon.calls, [])
    }

    func testTwoManagersShareOnePairing() throws {
        let client = try pairing()
        _ = try pair(client)
        scene.change(bonded)
        daemon.answerLate("Pair")
        XCTAssertEqual(result, [.bonded, .bonded])
        XCTAssertEqual(daemon.calls, ["Pair"])
    }

    func testPairWaitsForTheAgent() throws {
        let client = scene.start()
        daemon.silent = ["RegisterAgent", "Pair"]
        scene.want(.keyboardDisplay, manager)
        _ = try pair(client)
        XCTAssertEqual(daemon.calls, ["RegisterAgent"])
        daemon.answerLate("RegisterAgent")
        XCTAssertEqual(daemon.calls, ["RegisterAgent", "Pair"])
    }

    func testWithoutAManagerThatWantsTheAgentPairIsNotCalled() throws {
        let client = scene.start()
        _ = try pair(client)
        XCTAssertEqual(causes(), [.noAgent])
        XCTAssertEqual(daemon.calls, [])
    }

    func testADeviceThatBlueZDoesNotHaveIsNotFound() throws {
        let client = start()
        _ = try pair(client, ObjectKey(rawValue: 7))
        XCTAssertEqual(causes(), [.notFound])
    }

    // MARK: The agent

    func testARejectionOfThisProcessIsTheCause() throws {
        for cause in [PairingCause.rejectedByUser, .timedOut] {
            let client = scene.client ?? start()
            daemon.silent = ["Pair"]
            _ = try pair(client)
            _ = scene.call("RequestConfirmation", [.uint32(1)])
            try scene.answer(XCTUnwrap(manager.requests.last), .reject(cause))
            answerPair(failed)
            XCTAssertEqual(causes().last, cause)
            XCTAssertEqual(daemon.calls.last, "Disconnect")
        }
    }

    func testANumberThatThisSideHadConfirmedIsRejectedByThePeer() throws {
        _ = try pairing()
        _ = scene.call("RequestConfirmation", [.uint32(1)])
        scene.answer(manager.requests[0], .accept)
        answerPair(failed)
        XCTAssertEqual(causes(), [.rejectedByPeer])
    }

    func testARequestThatNoManagerClaimsIsARejectionOfThisProcess() throws {
        manager.claim = .no
        _ = try pairing()
        _ = scene.call("RequestAuthorization")
        answerPair(failed)
        XCTAssertEqual(causes(), [.rejectedByPolicy])
    }

    func testADisplayEndsWithTheReplyOfPair() throws {
        _ = try pairing()
        _ = scene.call("DisplayPasskey", [.uint32(1), .uint16(0)])
        XCTAssertTrue(manager.ends.isEmpty)
        daemon.answerLate("Pair", error: failed)
        XCTAssertEqual(manager.ends.map(\.end), [.ended])
    }

    func testADisplayThatIsRejectedCancelsThePairing() throws {
        _ = try pairing()
        _ = scene.call("DisplayPasskey", [.uint32(1), .uint16(0)])
        scene.answer(manager.requests[0], .reject(.rejectedByUser))
        answerPair(canceled)
        XCTAssertEqual(daemon.calls, ["Pair", "CancelPairing", "Disconnect"])
        XCTAssertEqual(causes(), [.rejectedByUser])
    }

    // MARK: Refused displays of pairings that BlueZ has begun

    /// A display was refused, and the link has not ended yet.
    private func refuseDisplay(_ properties: TestProperties = []) throws -> (BlueZClient, ObjectKey) {
        let client = start(82, [("Connected", .bool(true))] + properties)
        _ = scene.call("DisplayPasskey", [.uint32(1), .uint16(0)])
        daemon.silent = ["RemoveDevice"]
        scene.answer(manager.requests[0], .reject(.rejectedByUser))
        XCTAssertEqual(Set(daemon.calls), ["Disconnect"])
        return (client, scene.device)
    }

    func testABondAfterARefusedDisplayIsRemovedOnce() throws {
        let (client, device) = try refuseDisplay()
        XCTAssertTrue(client.daemon.isRefused(device))
        scene.change([("Bonded", .bool(true))])
        scene.change([("Paired", .bool(true))])
        scene.change([("Connected", .bool(false))])
        XCTAssertEqual(daemon.calls, ["Disconnect", "RemoveDevice"], "The removal joins the call.")
        XCTAssertTrue(client.daemon.isRefused(device))
        daemon.send(BlueZMessages.interfacesRemoved(BlueZMessages.device, ["org.bluez.Device1"]))
        daemon.loop.run()
        daemon.answerLate("RemoveDevice")
        XCTAssertFalse(client.daemon.isRefused(device))
    }

    /// The reply to the first removal is late: the device has returned, and was refused again.
    func testALateReplyToARemovalDoesNotForgetALaterRefusal() throws {
        let (client, device) = try refuseDisplay()
        scene.change(bonded)
        scene.change([("Bonded", .bool(false)), ("Paired", .bool(false)), ("Connected", .bool(false))])
        scene.change([("Connected", .bool(true))])
        _ = scene.call("DisplayPasskey", [.uint32(1), .uint16(0)])
        scene.answer(manager.requests[1], .reject(.rejectedByUser))
        scene.change(bonded)
        daemon.answerLate("RemoveDevice")
        XCTAssertTrue(client.daemon.isRefused(device))
        daemon.silent = []
        daemon.loop.advance(by: 6)
        XCTAssertEqual(daemon.calls.suffix(1), ["RemoveDevice"])
    }

    func testABondOfALaterLinkStays() throws {
        let (client, device) = try refuseDisplay()
        scene.change([("Connected", .bool(false))])
        XCTAssertFalse(client.daemon.isRefused(device))
        scene.change([("Connected", .bool(true))])
        scene.change(bonded)
        XCTAssertEqual(daemon.calls, ["Disconnect"])
    }

    /// BlueZ does not report whether the pairing has replaced the keys.
    func testABondFromBeforeARefusedDisplayIsRemovedToo() throws {
        let (client, device) = try refuseDisplay(bonded)
        XCTAssertTrue(client.daemon.isRefused(device))
        scene.change([("Connected", .bool(false))])
        XCTAssertTrue(daemon.calls.contains("RemoveDevice"), "\(daemon.calls)")
    }

    func testTheBondOfANewRequestOnTheSameLinkStays() throws {
        let (client, device) = try refuseDisplay()
        _ = scene.call("RequestAuthorization", [])
        XCTAssertFalse(client.daemon.isRefused(device))
        manager.requests[1].answer(.accept)
        scene.change(bonded)
        XCTAssertEqual(daemon.calls, ["Disconnect"])
    }

    // MARK: Removals

    /// 5.87 ends if `RemoveDevice` names a connected device.
    func testADeviceThatIsConnectedAgainIsDisconnectedAgainBeforeItIsRemoved() throws {
        for isConnectedAlways in [false, true] {
            (scene, manager) = (PairingScene(), FakeManager())
            let client = start(87, [("Connected", .bool(true))])
            results.withLock { $0 = [] }
            client.removeDevice(scene.device, completion: note)
            daemon.loop.run()
            XCTAssertEqual(daemon.calls, ["Disconnect"])
            // After the reply it is connected, by another program.
            daemon.loop.advance(by: 0.3)
            XCTAssertEqual(daemon.calls, ["Disconnect", "Disconnect"])
            if !isConnectedAlways { scene.change([("Connected", .bool(false))]) }
            daemon.loop.advance(by: 1)
            let calls = isConnectedAlways ? ["Disconnect"] : ["RemoveDevice"]
            XCTAssertEqual(daemon.calls, ["Disconnect", "Disconnect"] + calls)
            XCTAssertEqual(results.withLock { $0.map { $0 == "done" } }, [!isConnectedAlways])
        }
    }

    func testAnotherCapabilityWaitsForTheEndOfPair() throws {
        let client = scene.start()
        scene.want(.displayOnly, manager)
        daemon.silent = ["Pair"]
        _ = try pair(client)
        scene.want(.keyboardOnly, FakeManager())
        XCTAssertEqual(client.pairings.agentState, .registered(.displayOnly, isDefault: false))
        scene.change(bonded)
        daemon.answerLate("Pair")
        XCTAssertEqual(client.pairings.agentState, .registered(.keyboardDisplay, isDefault: false))
    }

    // MARK: Cancelling

    func testCancellingEndsTheLinkAndLeavesNoBond() throws {
        let client = start()
        daemon.silent = ["Pair"]
        let waiter = try pair(client)
        scene.change([("Connected", .bool(true))])
        daemon.silent = ["Disconnect"]
        try cancel(client, waiter)
        daemon.answerLate("Pair", error: canceled)
        // The kernel has gone on: 5.81 and later.
        scene.change(bonded)
        XCTAssertEqual(result, [])
        daemon.silent = []
        // That of the pairing, which the removal has joined.
        daemon.answerLate("Disconnect")
        daemon.loop.advance(by: 1)
        XCTAssertEqual(daemon.calls, ["Pair", "CancelPairing", "Disconnect", "RemoveDevice"])
        XCTAssertEqual(causes(), [.cancelled])
    }

    func testATimeLimitCancels() throws {
        _ = try pairing(timeout: 5)
        daemon.loop.advance(by: 4)
        XCTAssertEqual(daemon.calls, ["Pair"])
        daemon.loop.advance(by: 2)
        XCTAssertEqual(daemon.calls, ["Pair", "CancelPairing", "Disconnect"])
        XCTAssertEqual(causes(), [.timedOut])
        daemon.answerLate("Pair", error: canceled)
        XCTAssertEqual(result.count, 1)
    }

    func testADaemonThatEndsFailsThePairing() throws {
        _ = try pairing()
        daemon.vanish()
        XCTAssertEqual(causes(), [.notFound])
        XCTAssertFalse(daemon.calls.contains("CancelPairing"))
    }

    func testADeviceThatIsRemovedFailsThePairing() throws {
        _ = try pairing()
        daemon.send(BlueZMessages.interfacesRemoved(BlueZMessages.device, ["org.bluez.Device1"]))
        XCTAssertEqual(causes(), [.notFound])
    }

    func testAPairingOfAnotherProgramIsJoined() throws {
        let client = start(82, [("Connected", .bool(true))])
        daemon.errors["Pair"] = [DBusError(name: "org.bluez.Error.InProgress", message: "In Progress")]
        _ = try pair(client, mayEndLink: false)
        XCTAssertEqual(result, [])
        scene.change(bonded)
        XCTAssertEqual(result, [.bonded])
        XCTAssertEqual(daemon.calls, ["Pair"])
    }

    // MARK: Turns

    private func connect(_ client: BlueZClient, _ path: ObjectPath) {
        client.loop.post {
            client.connector.connect(ObjectKey(path)) { _ in }
        }
        daemon.loop.run()
    }

    /// Starts a client, and adds a second device.
    private func startWithNeighbour() -> (BlueZClient, ObjectPath) {
        let client = start()
        let path: ObjectPath = "/org/bluez/hci0/dev_C0_26_DF_12_34_57"
        daemon.send(BlueZMessages.interfacesAdded(path, [("org.bluez.Device1", [("Connected", .bool(false))])]))
        daemon.silent = ["Pair", "Connect"]
        return (client, path)
    }

    func testAPairThatHasToConnectWaitsForItsTurn() throws {
        let (client, neighbour) = startWithNeighbour()
        connect(client, neighbour)
        _ = try pair(client)
        XCTAssertEqual(daemon.calls, ["Connect"])
        daemon.answerLate("Connect", error: failed)
        XCTAssertEqual(daemon.calls, ["Connect", "Pair"])
    }

    func testAPairThatWaitsForItsTurnIsCancelledWithoutACall() throws {
        let (client, neighbour) = startWithNeighbour()
        connect(client, neighbour)
        let waiter = try pair(client)
        try cancel(client, waiter)
        XCTAssertEqual(causes(), [.cancelled])
        daemon.answerLate("Connect", error: failed)
        daemon.loop.advance(by: 1)
        XCTAssertEqual(daemon.calls, ["Connect"])
    }

    func testTheTurnEndsWhenTheLinkIsUp() throws {
        for isSignalled in [true, false] {
            (scene, manager) = (PairingScene(), FakeManager())
            let (client, neighbour) = startWithNeighbour()
            _ = try pair(client)
            connect(client, neighbour)
            XCTAssertEqual(daemon.calls, ["Pair"])
            // BlueZ does not always signal that a device is connected.
            if isSignalled {
                scene.change([("Connected", .bool(true))])
            } else {
                _ = scene.call("RequestPasskey")
            }
            XCTAssertEqual(daemon.calls, ["Pair", "Connect"])
            daemon.loop.advance(by: 20)
            XCTAssertEqual(daemon.count("Pair"), 1)
        }
    }

    func testAnAbsentDeviceGivesItsTurnToThoseThatWaitAndTakesAnother() throws {
        let (client, neighbour) = startWithNeighbour()
        _ = try pair(client)
        connect(client, neighbour)
        daemon.loop.advance(by: 11)
        XCTAssertEqual(daemon.calls, ["Pair", "Disconnect"])
        daemon.answerLate("Pair", error: canceled)
        XCTAssertEqual(daemon.calls, ["Pair", "Disconnect", "Connect"])
        XCTAssertEqual(result, [])
        daemon.answerLate("Connect", error: failed)
        XCTAssertEqual(daemon.calls.last, "Pair")
        scene.change(bonded)
        daemon.answerLate("Pair")
        XCTAssertEqual(result, [.bonded])
    }

    func testALinkThatComesUpDuringTheWaitDoesNotBlockTheQueue() throws {
        let (client, neighbour) = startWithNeighbour()
        connect(client, neighbour)
        _ = try pair(client)
        scene.change([("Connected", .bool(true))])
        daemon.answerLate("Connect", error: failed)
        XCTAssertEqual(daemon.calls, ["Connect", "Pair"])
        connect(client, neighbour)
        XCTAssertEqual(daemon.calls, ["Connect", "Pair", "Connect"])
    }

    // MARK: The capability of the link

    func testALinkThatIsOlderThanTheAgentIsMadeAgainFrom581On() throws {
        for (minor, calls) in [(66, ["Pair"]), (80, ["Pair"]), (82, ["Disconnect", "Pair"])] {
            (scene, manager) = (PairingScene(), FakeManager())
            _ = try pairing(minor, [("Connected", .bool(true))])
            scene.change([("Connected", .bool(false))])
            daemon.loop.advance(by: 1)
            XCTAssertEqual(daemon.calls, calls, "5.\(minor)")
        }
    }

    func testALinkThatTheAgentHasSeenComingOrThatNeedsNoNumberIsKept() throws {
        for isSeen in [true, false] {
            (scene, manager) = (PairingScene(), FakeManager())
            let client = scene.start(82, [("Connected", .bool(!isSeen))])
            scene.want(isSeen ? .keyboardDisplay : .noInputNoOutput, manager)
            daemon.forgetCalls()
            if isSeen { scene.change([("Connected", .bool(true))]) }
            daemon.silent = ["Pair"]
            _ = try pair(client)
            XCTAssertEqual(daemon.calls, ["Pair"], "\(isSeen)")
        }
    }

    // MARK: Properties

    func testTrustedIsSet() throws {
        let client = start()
        for _ in 0..<2 {
            client.setTrusted(true, device: scene.device, completion: note)
            daemon.loop.run()
            daemon.errors["Set"] = [DBusError(name: "org.bluez.Error.Failed", message: "")]
        }
        XCTAssertEqual(daemon.details.first, "dev_C0_26_DF_12_34_56 org.freedesktop.DBus.Properties Set ssv")
        var reader = try XCTUnwrap(daemon.lastCalls["Set"]).reader
        XCTAssertEqual(reader.string(), "org.bluez.Device1")
        XCTAssertEqual(reader.string(), "Trusted")
        XCTAssertEqual(reader.variant { $0.bool() }, true)
        XCTAssertEqual(results.withLock { $0 }, ["done", "org.bluez.Error.Failed"])
    }

    func testPairableIsSetAfterItsTimeLimit() throws {
        let client = start()
        func set(_ isPairable: Bool, timeout: UInt32) {
            client.setPairable(isPairable, timeout: timeout, adapter: .hci0, completion: note)
            daemon.loop.run()
        }
        set(true, timeout: 0)
        XCTAssertEqual(daemon.calls, ["Set"])
        set(true, timeout: 30)
        XCTAssertEqual(daemon.calls, ["Set", "Set", "Set"])
        var reader = try XCTUnwrap(daemon.lastCalls["Set"]).reader
        XCTAssertEqual(reader.string(), "org.bluez.Adapter1")
        XCTAssertEqual(reader.string(), "Pairable")
        XCTAssertEqual(reader.variant { $0.bool() }, true)
        set(false, timeout: 30)
        XCTAssertEqual(daemon.count("Set"), 4)

        daemon.set([("PairableTimeout", .uint32(30)), ("Pairable", .bool(true))])
        XCTAssertEqual(client.withTreeOnLoop(daemon.loop) { $0[adapter: .hci0]?.pairableTimeout }, 30)
        XCTAssertEqual(client.withTreeOnLoop(daemon.loop) { $0[adapter: .hci0]?.isPairable }, true)
        set(true, timeout: 30)
        XCTAssertEqual(daemon.count("Set"), 5)
        daemon.errors["Set"] = [DBusError(name: "org.bluez.Error.NotReady", message: "")]
        set(true, timeout: 0)
        XCTAssertEqual(daemon.count("Set"), 6)
        XCTAssertEqual(
            results.withLock { $0 }, ["done", "done", "done", "done", "org.bluez.Error.NotReady"])
    }

    func testKeysAreKeptByABondAndBefore565ByAPairing() throws {
        for (properties, isKept) in [
            ([("Paired", .bool(true))], false), (bonded, true), ([("Bonded", .bool(true))], true),
        ] as [(TestProperties, Bool)] {
            (scene, manager) = (PairingScene(), FakeManager())
            let client = start(82, properties)
            XCTAssertEqual(
                client.daemon.readDevice(scene.device) { $0.keepsKeys }, isKept, "\(properties.map(\.0))")
        }
        var device = Device1(address: BluetoothAddress(rawValue: 1))
        device.truths = .isPaired
        XCTAssertTrue(device.keepsKeys)
    }
}

extension DaemonLink {
    fileprivate func isRefused(_ device: ObjectKey) -> Bool { objects.note(about: device)?.isRefused ?? false }
}
