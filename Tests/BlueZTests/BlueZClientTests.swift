import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

final class BlueZClientTests: XCTestCase {
    private let daemon = FakeDaemon()
    /// Keeps the client.
    private var observation: CancelHandle?
    private let observer = RecordingObserver()

    private func makeClient() -> BlueZClient { .shared(at: daemon.bus.address) }

    private func readyClient() -> BlueZClient {
        daemon.appear()
        let client = makeClient()
        observation = client.observe(observer)
        daemon.loop.run()
        XCTAssertEqual(observer.availabilities.last, .ready)
        observer.forget()
        daemon.forgetCalls()
        return client
    }

    private func start() {
        daemon.appear()
        observation = makeClient().observe(observer)
        daemon.loop.run()
    }

    // MARK: Sharing

    func testAllManagersOfABusShareOneClientWhileTheyNeedIt() {
        weak var client: BlueZClient?
        do {
            let first = makeClient()
            client = first
            XCTAssertTrue(first === makeClient())
        }
        XCTAssertNil(client)
    }

    func testNothingIsDoneBeforeTheFirstObserver() {
        daemon.appear()
        let client = makeClient()
        daemon.loop.run()
        XCTAssertEqual(daemon.calls, [])
        XCTAssertEqual(client.availability, .connecting)
    }

    func testAnObservationThatIsCancelledAndThenDroppedLeavesNothingBehind() {
        let client = readyClient()
        weak var left: RecordingObserver?
        var other: CancelHandle?
        do {
            let recorder = RecordingObserver()
            left = recorder
            other = client.observe(recorder)
        }
        daemon.loop.run()
        XCTAssertNotNil(left)
        other?.cancel()
        daemon.loop.run()
        other = nil
        daemon.loop.run()

        XCTAssertNil(left)
        observation?.cancel()
    }

    // MARK: From the bus to the tree

    func testAnObserverReceivesTheObjectsThenReady() {
        daemon.objects.append((BlueZMessages.device, [("org.bluez.Device1", BlueZMessages.fullDevice)]))
        start()

        XCTAssertEqual(
            observer.log, ["connecting", "loading", "+/org/bluez/hci0", "+C0:26:DF:12:34:56 received", "ready"])
        XCTAssertGreaterThan(observer.batches, 0)
        observation?.cancel()
    }

    func testALaterObserverReceivesTheSame() {
        daemon.objects.append((BlueZMessages.device, [("org.bluez.Device1", BlueZMessages.fullDevice)]))
        let client = readyClient()
        let newcomer = RecordingObserver()
        let second = client.observe(newcomer)
        daemon.loop.run()

        XCTAssertEqual(newcomer.log, ["+/org/bluez/hci0", "+C0:26:DF:12:34:56 received", "ready"])
        XCTAssertEqual(newcomer.batches, 1)
        XCTAssertEqual(observer.log, [])
        withExtendedLifetime(second) {}
    }

    func testABusWithoutADaemonSaysSoAndWaitsForOne() {
        observation = makeClient().observe(observer)
        daemon.loop.run()
        XCTAssertEqual(observer.log, ["connecting", "noDaemon"])

        daemon.appear()
        XCTAssertEqual(observer.log, ["connecting", "noDaemon", "loading", "+/org/bluez/hci0", "ready"])
    }

    func testADaemonThatDiesAndReturnsIsLoadedAgain() {
        _ = readyClient()
        daemon.vanish()
        XCTAssertEqual(observer.log, ["-/org/bluez/hci0", "noDaemon"])
        daemon.appear()
        XCTAssertEqual(observer.log.dropFirst(2), ["loading", "+/org/bluez/hci0", "ready"])
    }

    func testALostBusIsOpenedAgainByItself() {
        let client = readyClient()
        daemon.bus.close()
        daemon.loop.run()
        XCTAssertEqual(observer.log, ["-/org/bluez/hci0", "noBus"])

        daemon.loop.advance(by: 5)
        daemon.bus.reopen()
        daemon.appear()
        XCTAssertTrue(daemon.loop.advance(until: { client.availability == .ready }, limit: 30))
        XCTAssertEqual(observer.log.last, "ready")
    }

    func testAnAddressWithoutABusSaysSo() {
        daemon.bus.close()
        daemon.loop.run()
        observation = makeClient().observe(observer)
        daemon.loop.run()
        XCTAssertEqual(observer.log, ["connecting", "noBus"])
    }

    func testAPolicyThatForbidsUsIsARefusal() {
        daemon.errors["GetManagedObjects"] = [DBusError(name: DBusError.Name.accessDenied, message: "no")]
        start()
        XCTAssertEqual(observer.log, ["connecting", "loading", "refused"])
    }

    func testAnAnswerOfAnotherFormIsAskedForAgain() {
        daemon.errors["GetManagedObjects"] = [DBusError(name: DBusError.Name.failed, message: "starting")]
        start()
        XCTAssertEqual(observer.log.last, "notLoaded org.freedesktop.DBus.Error.Failed: starting")
        daemon.loop.advance(by: 1)
        XCTAssertEqual(observer.log.last, "ready")
    }

    func testSignalsOfOneBatchEndWithOneCall() {
        let client = readyClient()
        for path in [BlueZMessages.device, "/org/bluez/hci0/dev_C0_26_DF_12_34_57"] as [ObjectPath] {
            daemon.connection?.send(BlueZMessages.interfacesAdded(path, [("org.bluez.Device1", [])]))
        }
        daemon.loop.run()
        XCTAssertEqual(observer.log, ["+C0:26:DF:12:34:56", "+C0:26:DF:12:34:57"])
        XCTAssertLessThanOrEqual(observer.batches, 2)
        XCTAssertEqual(client.withTreeOnLoop(daemon.loop) { $0.deviceCount }, 2)
    }

    func testSignalsOfOtherConnectionsAreIgnored() {
        _ = readyClient()
        let other = Connection.open(.custom(daemon.bus.address), loop: daemon.loop)
        other.send(BlueZMessages.interfacesAdded(BlueZMessages.device, [("org.bluez.Device1", [])]))
        daemon.loop.run()
        XCTAssertEqual(observer.log, [])
    }

    func testTheLastObservationThatEndsLeavesNothingOnTheBus() {
        let client = readyClient()
        let second = client.observe(RecordingObserver())
        daemon.loop.run()
        observation?.cancel()
        daemon.loop.run()
        XCTAssertNotNil(client.daemon.connection)
        second.cancel()
        daemon.loop.advance(by: 2)
        XCTAssertNil(client.daemon.connection)
        XCTAssertEqual(observer.log, [])

        let third = client.observe(observer)
        daemon.loop.run()
        XCTAssertEqual(observer.log.last, "ready")
        withExtendedLifetime(third) {}
    }

    func testAnObserverMayLeaveInsideACallback() {
        let client = readyClient()
        observer.whenReported = { [unowned self] in observation?.cancel() }
        daemon.connection?.send(BlueZMessages.interfacesAdded(BlueZMessages.device, [("org.bluez.Device1", [])]))
        daemon.connection?.send(BlueZMessages.interfacesRemoved(BlueZMessages.device, ["org.bluez.Device1"]))
        daemon.loop.advance(by: 2)
        XCTAssertEqual(observer.log, ["+C0:26:DF:12:34:56"])
        XCTAssertNil(client.daemon.connection)
    }

    // MARK: Calls

    private func turnOn(_ client: BlueZClient, completion: @escaping BlueZCompletion<Message>) {
        client.loop.post {
            client.daemon.call(
                ObjectKey.hci0, interface: "org.freedesktop.DBus.Properties", member: "Set",
                body: {
                    $0.string("org.bluez.Adapter1")
                    $0.string("Powered")
                    $0.variant("b") { $0.bool(true) }
                }, completion: completion)
        }
        daemon.loop.run()
    }

    func testRefusalsKeepTheirName() throws {
        let client = readyClient()
        let results = Locked<[String]>([])
        daemon.errors["Set"] = [DBusError(name: "org.bluez.Error.Blocked", message: "Blocked through rfkill")]
        for _ in 0..<2 {
            turnOn(client) { result in
                results.withLock { list in
                    switch result {
                    case .success: list.append("ok")
                    case .failure(let error): list.append("\(error.cause) \(error)")
                    }
                }
            }
        }
        XCTAssertEqual(
            results.withLock { $0 }, ["blocked org.bluez.Error.Blocked: Blocked through rfkill", "ok"])
        XCTAssertEqual(daemon.calls, ["Set", "Set"])
    }

    func testACallWithoutABusFailsSoon() throws {
        let client = makeClient()
        let results = Locked<[BlueZError.Cause]>([])
        turnOn(client) { result in
            if case .failure(let error) = result { results.withLock { $0.append(error.cause) } }
        }
        XCTAssertEqual(results.withLock { $0 }, [.disconnected])
    }
}

extension BlueZClient {
    /// Reads the tree from a test, which drives the loop and is not on it.
    func withTreeOnLoop<R: Sendable>(
        _ loop: ManualLoop, _ body: @escaping @Sendable (borrowing ObjectTree) -> R
    ) -> R? {
        let result = Locked<R?>(nil)
        loop.post { self.withTree { tree in result.withLock { $0 = body(tree) } } }
        loop.run()
        return result.withLock { $0 }
    }
}
