import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// The agent on a bus: its registration, and the calls of BlueZ and of other programs.
final class PairingAgentTests: XCTestCase {
    private var scene = PairingScene()
    private var daemon: FakeDaemon { scene.daemon }

    /// A manager that wants the agent, which is registered.
    private func registered(_ client: BlueZClient? = nil) -> FakeManager {
        let manager = FakeManager()
        _ = client ?? scene.start()
        scene.want(.keyboardDisplay, manager)
        return manager
    }

    /// The same while it displays a passkey on a link.
    private func displaying() -> FakeManager {
        let manager = registered()
        scene.change([("Connected", .bool(true))])
        _ = scene.call("DisplayPasskey", [.uint32(4711), .uint16(0)])
        return manager
    }

    // MARK: Registration

    func testTheAgentIsRegisteredWhenAManagerWantsIt() throws {
        let manager = FakeManager()
        let client = scene.start()
        XCTAssertEqual(client.pairings.agentState, .absent)
        scene.want(.displayYesNo, manager)

        XCTAssertEqual(daemon.calls, ["RegisterAgent"])
        XCTAssertEqual(daemon.details, ["bluez org.bluez.AgentManager1 RegisterAgent os"])
        var reader = try XCTUnwrap(daemon.lastCalls["RegisterAgent"]).reader
        XCTAssertEqual(reader.objectPath(), Pairings.agentPath)
        XCTAssertEqual(reader.string(), "DisplayYesNo")
        XCTAssertEqual(client.pairings.agentState, .registered(.displayYesNo, isDefault: false))
    }

    func testTheAgentHasTheCapabilitiesOfAllManagers() throws {
        let (one, two) = (FakeManager(), FakeManager())
        let client = scene.start()
        scene.want(.displayOnly, one)
        scene.want(.keyboardOnly, two, asDefault: true)
        XCTAssertEqual(client.pairings.agentState, .registered(.keyboardDisplay, isDefault: true))
        scene.want(nil, one)
        XCTAssertEqual(client.pairings.agentState, .registered(.keyboardOnly, isDefault: true))
        scene.want(nil, two)
        XCTAssertEqual(client.pairings.agentState, .absent)
        XCTAssertEqual(daemon.calls.last, "UnregisterAgent")
    }

    func testANewDaemonIsAskedAgain() {
        let client = scene.start()
        _ = registered(client)
        daemon.vanish()
        XCTAssertEqual(client.pairings.agentState, .absent)
        daemon.appear()
        XCTAssertEqual(daemon.count("RegisterAgent"), 2)
        XCTAssertEqual(client.pairings.agentState, .registered(.keyboardDisplay, isDefault: false))
    }

    func testARefusalIsReportedToTheManagersThatWait() {
        let manager = FakeManager()
        let client = scene.start()
        let results = Locked<[String]>([])
        func wait() {
            client.loop.post {
                client.pairings.whenAgentRegistered { error in
                    results.withLock { $0.append(error?.name ?? "registered") }
                }
            }
            daemon.loop.run()
        }
        wait()
        daemon.errors["RegisterAgent"] = [DBusError(name: DBusError.Name.accessDenied, message: "")]
        scene.want(.keyboardDisplay, manager)
        wait()
        scene.want(.displayOnly, manager)
        wait()
        XCTAssertEqual(
            results.withLock { $0 },
            ["org.bluez.Error.Rejected", "org.freedesktop.DBus.Error.AccessDenied", "registered"])
    }

    func testTheClientLeavesWhenTheAgentIsUnregisteredOrAfterASecondWithoutAReply() {
        for isAnswered in [true, false] {
            scene = PairingScene()
            let client = scene.start()
            _ = registered(client)
            daemon.silent = ["UnregisterAgent"]
            scene.observation?.cancel()
            daemon.loop.advance(by: 0.5)
            XCTAssertEqual(daemon.calls.last, "UnregisterAgent")
            XCTAssertNotNil(client.daemon.connection)
            if isAnswered { daemon.answerLate("UnregisterAgent") } else { daemon.loop.advance(by: 2.5) }
            XCTAssertNil(client.daemon.connection, "\(isAnswered)")
        }
    }

    // MARK: Requests

    func testEachKindIsGivenToTheManagerAndAnswered() throws {
        let cases: [(String, [TestValue], AgentRequest.Kind, AgentAnswer, String)] = [
            ("RequestConfirmation", [.uint32(123_456)], .confirm(123_456), .accept, "()"),
            ("RequestAuthorization", [], .authorize, .accept, "()"),
            ("RequestPasskey", [], .enterPasskey, .passkey(4711), "(4711)"),
            ("RequestConfirmation", [.uint32(7)], .confirm(7), .reject(.rejectedByUser), "org.bluez.Error.Rejected"),
            ("RequestAuthorization", [], .authorize, .reject(.timedOut), "org.bluez.Error.Rejected"),
            ("RequestPasskey", [], .enterPasskey, .reject(.rejectedByUser), "org.bluez.Error.Rejected"),
            // An answer of another kind.
            ("RequestPasskey", [], .enterPasskey, .accept, "org.bluez.Error.Rejected"),
            ("RequestConfirmation", [.uint32(7)], .confirm(7), .passkey(7), "org.bluez.Error.Rejected"),
        ]
        let manager = registered()
        for (method, arguments, kind, answer, expected) in cases {
            let reply = scene.call(method, arguments)
            let request = try XCTUnwrap(manager.requests.last)
            XCTAssertEqual(request.kind, kind)
            XCTAssertEqual(request.device, scene.device)
            XCTAssertNil(reply.withLock { $0 })
            scene.answer(request, answer)
            XCTAssertEqual(reply.withLock { $0 }, expected, method)
            let counted = expected.first == "(" || answer == .reject(.timedOut) ? answer : .reject(.rejectedByUser)
            XCTAssertEqual(manager.ends.last?.end, .answered(counted))
            // A second answer is ignored.
            XCTAssertFalse(request.answer(.accept))
            daemon.loop.run()
        }
        XCTAssertEqual(manager.ends.map(\.number), manager.requests.map(\.number))
    }

    func testWhatIsNotOfLowEnergyIsRejected() {
        let manager = registered()
        for (method, arguments) in [
            ("RequestPinCode", []), ("DisplayPinCode", [.string("0000")]),
            ("AuthorizeService", [.string("0000110b-0000-1000-8000-00805f9b34fb")]),
        ] as [(String, [TestValue])] {
            XCTAssertEqual(scene.call(method, arguments).withLock { $0 }, "org.bluez.Error.Rejected", method)
        }
        XCTAssertTrue(manager.requests.isEmpty)
    }

    func testAProgramThatIsNotTheDaemonIsRefused() {
        let manager = registered()
        let other = Connection.open(.custom(daemon.bus.address), loop: daemon.loop)
        for (method, arguments) in PairingScene.methods {
            let reply = scene.call(method, arguments, from: other)
            XCTAssertEqual(reply.withLock { $0 }, "org.freedesktop.DBus.Error.AccessDenied", method)
        }
        XCTAssertTrue(manager.requests.isEmpty)
        let open = scene.call("RequestAuthorization")
        for method in ["Cancel", "Release"] {
            let reply = scene.call(method, device: nil, from: other)
            XCTAssertEqual(reply.withLock { $0 }, "org.freedesktop.DBus.Error.AccessDenied", method)
        }
        XCTAssertNil(open.withLock { $0 })
        XCTAssertEqual(daemon.calls, ["RegisterAgent"])
    }

    func testACallOfAnotherFormIsUnknown() {
        let manager = registered()
        XCTAssertEqual(
            scene.call("RequestConfirmation", [.string("1")]).withLock { $0 },
            "org.freedesktop.DBus.Error.UnknownMethod")
        XCTAssertTrue(manager.requests.isEmpty)
    }

    func testARequestThatNoManagerClaimsIsRejected() {
        let manager = FakeManager()
        _ = scene.start()
        manager.claim = .no
        scene.want(.keyboardDisplay, manager)
        XCTAssertEqual(scene.call("RequestAuthorization").withLock { $0 }, "org.bluez.Error.Rejected")
        XCTAssertEqual(daemon.calls, ["RegisterAgent"])
        XCTAssertEqual(
            scene.call("DisplayPasskey", [.uint32(1), .uint16(0)]).withLock { $0 }, "org.bluez.Error.Rejected")
        XCTAssertEqual(daemon.calls, ["RegisterAgent", "Disconnect"])
        XCTAssertTrue(manager.requests.isEmpty)
    }

    func testARequestOfAnUnknownDeviceIsRejected() {
        _ = registered()
        let reply = scene.call("RequestAuthorization", device: "/org/bluez/hci0/dev_00_00_00_00_00_01")
        XCTAssertEqual(reply.withLock { $0 }, "org.bluez.Error.Rejected")
    }

    func testTheGreatestClaimGetsTheRequestAndAmongEqualsTheFirst() {
        let managers = [FakeManager(), FakeManager(), FakeManager(), FakeManager()]
        _ = scene.start()
        for (manager, claim) in zip(managers, [.asServer, .asConnected, .asConnected, .no] as [AgentClaim]) {
            manager.claim = claim
            scene.want(.keyboardDisplay, manager)
        }
        func receiver() -> Int? {
            let before = managers.map(\.requests.count)
            _ = scene.call("RequestAuthorization")
            let receiver = managers.indices.first { managers[$0].requests.count > before[$0] }
            receiver.flatMap { managers[$0].requests.last }?.answer(.accept)
            daemon.loop.run()
            return receiver
        }
        XCTAssertEqual(receiver(), 1)
        scene.want(nil, managers[1])
        XCTAssertEqual(receiver(), 2)
        managers[3].claim = .asPairing
        XCTAssertEqual(receiver(), 3)
        XCTAssertLessThan(AgentClaim.no, .asServer)
    }

    func testASecondRequestIsRejectedWhileOneIsOpen() {
        let manager = registered()
        let first = scene.call("RequestAuthorization")
        XCTAssertEqual(scene.call("RequestPasskey").withLock { $0 }, "org.bluez.Error.Rejected")
        XCTAssertEqual(manager.requests.count, 1)
        scene.answer(manager.requests[0], .accept)
        XCTAssertEqual(first.withLock { $0 }, "()")
    }

    func testAnAnswerInsideTheRequestIsSent() {
        let manager = registered()
        manager.whenRequested = { $0.answer(.accept) }
        XCTAssertEqual(scene.call("RequestAuthorization").withLock { $0 }, "()")
        XCTAssertEqual(manager.ends.map(\.end), [.answered(.accept)])
    }

    // MARK: Ends

    func testCancelEndsTheOpenRequest() {
        let manager = registered()
        XCTAssertEqual(scene.call("Cancel", device: nil).withLock { $0 }, "()")
        let reply = scene.call("RequestPasskey")
        XCTAssertEqual(scene.call("Cancel", device: nil).withLock { $0 }, "()")
        XCTAssertEqual(reply.withLock { $0 }, "org.bluez.Error.Canceled")
        XCTAssertEqual(manager.ends.map(\.end), [.cancelled])
        scene.answer(manager.requests[0], .passkey(1))
        XCTAssertEqual(manager.ends.count, 1)
    }

    func testAManagerThatLeavesRejectsItsRequest() {
        let (manager, other) = (FakeManager(), FakeManager())
        let client = scene.start()
        scene.want(.keyboardDisplay, manager)
        scene.want(.keyboardDisplay, other)
        let reply = scene.call("RequestAuthorization")
        scene.want(nil, manager)
        XCTAssertEqual(reply.withLock { $0 }, "org.bluez.Error.Rejected")
        XCTAssertEqual(client.pairings.agentState, .registered(.keyboardDisplay, isDefault: false))
    }

    func testADaemonThatLeavesEndsTheRequest() {
        let manager = registered()
        _ = scene.call("RequestAuthorization")
        daemon.vanish()
        XCTAssertEqual(manager.ends.map(\.end), [.cancelled])
    }

    func testAReleasedAgentIsRegisteredAgain() {
        let client = scene.start()
        let manager = registered(client)
        _ = scene.call("RequestAuthorization")
        XCTAssertEqual(scene.call("Release", device: nil).withLock { $0 }, "()")
        XCTAssertEqual(manager.ends.map(\.end), [.cancelled])
        XCTAssertEqual(client.pairings.agentState, .registering)
        daemon.loop.advance(by: 1)
        XCTAssertEqual(client.pairings.agentState, .registered(.keyboardDisplay, isDefault: false))
        XCTAssertEqual(daemon.count("RegisterAgent"), 2)
    }

    func testAnotherCapabilityWaitsForTheOpenRequest() {
        let (manager, other) = (FakeManager(), FakeManager())
        let client = scene.start()
        scene.want(.displayOnly, manager)
        _ = scene.call("RequestAuthorization")
        scene.want(.keyboardOnly, other)
        XCTAssertEqual(client.pairings.agentState, .registered(.displayOnly, isDefault: false))
        scene.answer(manager.requests[0], .accept)
        XCTAssertEqual(client.pairings.agentState, .registered(.keyboardDisplay, isDefault: false))
    }

    // MARK: Displayed passkeys

    func testADisplayIsAnsweredAtOnceAndEndsWithTheBond() {
        let manager = registered()
        XCTAssertEqual(scene.call("DisplayPasskey", [.uint32(4711), .uint16(0)]).withLock { $0 }, "()")
        XCTAssertEqual(manager.requests.map(\.kind), [.display(4711, entered: 0)])
        scene.change([("Connected", .bool(true))])
        XCTAssertTrue(manager.ends.isEmpty)
        scene.change([("Bonded", .bool(true))])
        XCTAssertEqual(manager.ends.map(\.end), [.ended])
    }

    func testADisplayEndsWithTheLink() {
        let manager = displaying()
        scene.change([("Connected", .bool(false))])
        XCTAssertEqual(manager.ends.map(\.end), [.ended])
    }

    func testADisplayOfAnotherPairingIsRejectedByEndingTheLink() {
        let manager = registered()
        _ = scene.call("DisplayPasskey", [.uint32(4711), .uint16(0)])
        scene.answer(manager.requests[0], .reject(.rejectedByUser))
        XCTAssertEqual(daemon.calls, ["RegisterAgent", "Disconnect"])
        XCTAssertEqual(manager.ends.map(\.end), [.answered(.reject(.rejectedByUser))])
    }

    /// A rejection comes from any thread: the pairing may succeed before it reaches the loop.
    func testADisplayThatIsRejectedWhenItsPairingHasSucceededLeavesNoBond() {
        let manager = displaying()
        XCTAssertTrue(manager.requests[0].answer(.reject(.rejectedByUser)))
        scene.change([("Paired", .bool(true)), ("Bonded", .bool(true))])
        XCTAssertEqual(manager.ends.map(\.end), [.answered(.reject(.rejectedByUser))])
        scene.change([("Connected", .bool(false))])
        daemon.loop.advance(by: 10)
        XCTAssertTrue(daemon.calls.contains("RemoveDevice"), "\(daemon.calls)")
    }

    func testARejectionCountsUntilTheEndOfTheDisplay() throws {
        let request = AgentRequest(number: 1, device: scene.device, kind: .display(1, entered: 0)) { _ in }
        XCTAssertTrue(request.answer(.accept))
        XCTAssertTrue(request.isOpen)
        XCTAssertTrue(request.answer(.reject(.rejectedByUser)))
        XCTAssertFalse(request.isOpen)
        XCTAssertFalse(request.answer(.reject(.timedOut)))
        request.end()
        XCTAssertEqual(request.takeAnswer(), .reject(.rejectedByUser))
        XCTAssertNil(request.takeAnswer())
        XCTAssertEqual(request.refusal, .rejectedByUser)
        let ended = AgentRequest(number: 2, device: scene.device, kind: .authorize) { _ in }
        ended.end()
        XCTAssertFalse(ended.answer(.accept))
        XCTAssertNil(ended.takeAnswer())
    }

    func testABondThatIsOlderThanARejectedDisplayStays() {
        let manager = FakeManager()
        _ = scene.start(82, [("Paired", .bool(true)), ("Bonded", .bool(true))])
        scene.want(.keyboardDisplay, manager)
        scene.change([("Connected", .bool(true))])
        _ = scene.call("DisplayPasskey", [.uint32(4711), .uint16(0)])
        scene.change([("Connected", .bool(false))])
        XCTAssertEqual(manager.ends.map(\.end), [.ended])
        XCTAssertFalse(manager.requests[0].answer(.reject(.rejectedByUser)))
        daemon.loop.advance(by: 10)
        XCTAssertEqual(daemon.count("RemoveDevice"), 0)
    }

    func testADisplayThatHasEndedIsNotRejectedAfterTheNextRequest() {
        let manager = displaying()
        scene.change([("Connected", .bool(false))])
        scene.change([("Connected", .bool(true))])
        _ = scene.call("RequestAuthorization")
        scene.answer(manager.requests[0], .reject(.rejectedByUser))
        XCTAssertEqual(daemon.count("Disconnect"), 0)
    }
}

/// A manager that claims each request, and keeps a list of them.
final class FakeManager: AgentDelegate, @unchecked Sendable {
    var claim = AgentClaim.asConnected
    var whenRequested: (AgentRequest) -> Void = { _ in }
    private(set) var requests: [AgentRequest] = []
    private(set) var ends: [(number: AgentRequest.ID, end: AgentEnd)] = []

    func claim(_ device: ObjectKey, in tree: borrowing ObjectTree) -> AgentClaim { claim }

    func agentRequested(_ request: AgentRequest) {
        requests.append(request)
        whenRequested(request)
    }

    func agentRequestEnded(_ request: AgentRequest, _ end: AgentEnd) { ends.append((request.number, end)) }
}

/// A daemon with one device that is not paired, and a client that is ready.
final class PairingScene {
    static let methods: [(String, [TestValue])] = [
        ("RequestPinCode", []), ("DisplayPinCode", [.string("0000")]), ("RequestPasskey", []),
        ("DisplayPasskey", [.uint32(1), .uint16(0)]), ("RequestConfirmation", [.uint32(1)]),
        ("RequestAuthorization", []), ("AuthorizeService", [.string("0000110b-0000-1000-8000-00805f9b34fb")]),
    ]

    let daemon = FakeDaemon()
    private(set) var observation: CancelHandle?
    private(set) var client: BlueZClient?

    /// - Parameter minor: The daemon is BlueZ 5.`minor`.
    func start(_ minor: Int = 82, _ properties: TestProperties = []) -> BlueZClient {
        daemon.objects = [
            (BlueZMessages.adapterPath, BlueZMessages.adapter(minor)),
            (
                BlueZMessages.device,
                [
                    (
                        "org.bluez.Device1",
                        [
                            ("Address", .string("C0:26:DF:12:34:56")), ("AddressType", .string("random")),
                            ("Adapter", .path("/org/bluez/hci0")), ("Paired", .bool(false)),
                            ("Bonded", .bool(false)), ("Connected", .bool(false)),
                        ] + properties
                    )
                ]
            ),
        ]
        daemon.appear()
        let client = BlueZClient.shared(at: daemon.bus.address)
        observation = client.observe(RecordingObserver())
        daemon.loop.run()
        daemon.forgetCalls()
        self.client = client
        return client
    }

    let device = ObjectKey(BlueZMessages.device)

    /// Answers a request of the agent, and waits for the effects.
    func answer(_ request: AgentRequest, _ answer: AgentAnswer) {
        request.answer(answer)
        daemon.loop.run()
    }

    func want(_ capability: IOCapability?, _ manager: FakeManager, asDefault: Bool = false) {
        client?.loop.post { [client] in client?.pairings.wantAgent(capability, asDefault: asDefault, for: manager) }
        daemon.loop.run()
    }

    func change(_ properties: TestProperties) {
        daemon.send(BlueZMessages.propertiesChanged(BlueZMessages.device, "org.bluez.Device1", properties))
    }

    /// Calls the agent; the result is `nil` while there is no reply, "(results)" after one, or the name of an error.
    func call(
        _ method: String, _ arguments: [TestValue] = [], device: ObjectPath? = BlueZMessages.device,
        from connection: Connection? = nil
    ) -> Locked<String?> {
        let reply = Locked<String?>(nil)
        guard let agent = daemon.lastCalls["RegisterAgent"]?.sender, let connection = connection ?? daemon.connection
        else {
            return reply
        }
        let message = Message.call(
            destination: agent, path: Pairings.agentPath, interface: "org.bluez.Agent1", member: method
        ) { writer in
            if let device { writer.objectPath(device) }
            for argument in arguments { argument.write(&writer) }
        }
        connection.call(message, timeout: 100) { result in
            reply.withLock { text in
                switch result {
                case .success(let message):
                    var reader = message.reader
                    text = "(\(reader.uint32().map { "\($0)" } ?? ""))"
                case .failure(let error): text = error.name
                }
            }
        }
        daemon.loop.run()
        return reply
    }
}
