import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// One discovery session per adapter, seen from the daemon's side.
final class SharedDiscoveryTests: XCTestCase {
    private let events = Locked<[String]>([])
    private var daemon = FakeDaemon()
    /// Keeps the client.
    private var observation: CancelHandle?
    private let observer = RecordingObserver()

    private let refusal = DBusError(
        name: "org.bluez.Error.InvalidArguments", message: "Invalid arguments in method call")
    private let busy = DBusError(name: "org.bluez.Error.InProgress", message: "Operation already in progress")

    private func startedClient() -> BlueZClient {
        daemon.appear()
        let client = BlueZClient.shared(at: daemon.bus.address)
        observation = client.observe(observer)
        daemon.loop.run()
        return client
    }

    private func readyClient() -> BlueZClient {
        let client = startedClient()
        daemon.forgetCalls()
        return client
    }

    private func onLoop<R: Sendable>(_ body: @escaping @Sendable () -> R) -> R {
        let result = Locked<R?>(nil)
        daemon.loop.post { result.withLock { $0 = body() } }
        daemon.loop.run()
        guard let value = result.withLock({ $0 }) else { preconditionFailure("The loop did not run.") }
        return value
    }

    private func scan(
        _ client: BlueZClient, _ name: String, _ filter: DiscoveryFilter = DiscoveryFilter(), watchdog: Double? = nil
    ) -> ScanID {
        let events = events
        return onLoop {
            client.discovery.start(on: .hci0, filter: filter, watchdogSeconds: watchdog) { event in
                events.withLock { list in
                    switch event {
                    case .started: list.append("\(name) started")
                    case .restarted(let reason): list.append("\(name) restarted \(reason)")
                    case .failed(let error): list.append("\(name) failed \(error.name)")
                    }
                }
            }
        }
    }

    private func stop(_ client: BlueZClient, _ id: ScanID) { onLoop { client.discovery.stop(id) } }

    func testTwoScansStartDiscoveryOnceAndTheLastOneStopsItOnce() {
        let client = readyClient()
        let a = scan(client, "a", DiscoveryFilter(uuids: [CBUUID(string: "180D")]))
        let b = scan(client, "b", DiscoveryFilter(uuids: [CBUUID(string: "180F")]))
        XCTAssertEqual(events.withLock { $0 }, ["a started", "b started"])
        stop(client, a)
        XCTAssertEqual(daemon.count("StopDiscovery"), 0)
        stop(client, b)

        XCTAssertEqual(
            daemon.calls,
            [
                "SetDiscoveryFilter", "StartDiscovery", "SetDiscoveryFilter", "SetDiscoveryFilter", "StopDiscovery",
                "SetDiscoveryFilter",
            ])
    }

    func testTheFilterHasExactlyTheKeysThatWereAskedFor() {
        let client = readyClient()
        let plain = scan(client, "plain")
        // Without Pathloss BlueZ after 5.87 reports the strength of a device that stands still no more, and from 5.67 on an adapter
        // for LE alone takes the filter for none.
        XCTAssertEqual(daemon.filter, ["Transport": "s", "Pathloss": "q"])
        stop(client, plain)

        let everything = DiscoveryFilter(
            uuids: [CBUUID(string: "180D")], rssi: -70, pattern: "Ru", reportsDuplicateData: true)
        _ = scan(client, "everything", everything)
        XCTAssertEqual(
            daemon.filter, ["Transport": "s", "UUIDs": "as", "RSSI": "n", "Pattern": "s", "DuplicateData": "b"])
    }

    func testServicesAreAskedForWhereTheDaemonSurvivesIt() {
        let versions: [(minor: Int, modalias: String?, takesServices: Bool)] = [
            (66, nil, true), (72, nil, true), (82, nil, true), (86, nil, true), (87, nil, false), (88, nil, true),
            // Of these the version is hidden.
            (72, "usb:v0000p0000d0001", true), (82, "usb:v0000p0000d0001", false), (87, "usb:v0000p0000d0001", false),
        ]
        for version in versions {
            daemon = FakeDaemon()
            daemon.objects = [
                (BlueZMessages.adapterPath, BlueZMessages.adapter(version.minor, modalias: version.modalias))
            ]
            let client = readyClient()
            _ = scan(client, "a", DiscoveryFilter(uuids: [CBUUID(string: "180D")]))
            XCTAssertEqual(daemon.filter["UUIDs"] != nil, version.takesServices, "\(version)")
            XCTAssertEqual(daemon.filter["Pathloss"], "q")
            XCTAssertEqual(daemon.count("StartDiscovery"), 1)
        }
    }

    func testADaemonThatHidesItsVersionIsAskedForItsFilters() {
        for (minor, keys) in [(82, ["UUIDs", "Pathloss"]), (87, ["UUIDs", "Pathloss", "AutoConnect"])] {
            daemon = FakeDaemon()
            daemon.objects = [
                (BlueZMessages.adapterPath, BlueZMessages.adapter(minor, modalias: "usb:v0000p0000d0001"))
            ]
            daemon.bodies["GetDiscoveryFilters"] = { $0.strings(keys) }
            let client = startedClient()
            XCTAssertEqual(daemon.count("GetDiscoveryFilters"), 1)
            _ = scan(client, "a", DiscoveryFilter(uuids: [CBUUID(string: "180D")]))
            XCTAssertEqual(daemon.filter["UUIDs"] != nil, minor == 82)
            // Another daemon is asked again.
            daemon.vanish()
            daemon.appear()
            XCTAssertEqual(daemon.count("GetDiscoveryFilters"), 2)
        }
    }

    func testADaemonThatDoesNotSayItsFiltersIsAskedAgainAtTheNextChange() {
        daemon.objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter(82, modalias: "usb:v0000p0000d0001"))]
        daemon.bodies["GetDiscoveryFilters"] = { $0.strings(["UUIDs", "Pathloss"]) }
        daemon.errors["GetDiscoveryFilters"] = [DBusError(name: "org.freedesktop.DBus.Error.NoReply", message: "")]
        _ = startedClient()
        XCTAssertEqual(daemon.count("GetDiscoveryFilters"), 1)
        for isPairable in [false, true] {
            daemon.send(
                BlueZMessages.propertiesChanged(
                    BlueZMessages.adapterPath, "org.bluez.Adapter1", [("Pairable", .bool(isPairable))]))
            XCTAssertEqual(daemon.count("GetDiscoveryFilters"), 2)
        }
    }

    func testADaemonThatSaysItsVersionIsNotAskedForItsFilters() {
        for minor in [66, 72, 82, 87] {
            daemon = FakeDaemon()
            daemon.objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter(minor))]
            _ = startedClient()
            XCTAssertEqual(daemon.calls, ["GetManagedObjects"])
        }
    }

    func testAFilterThatIsRefusedIsTriedWithoutPathloss() {
        let client = readyClient()
        daemon.errors["SetDiscoveryFilter"] = [refusal]
        let first = scan(client, "a")
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
        XCTAssertEqual(daemon.filter, ["Transport": "s"])
        XCTAssertEqual(daemon.count("SetDiscoveryFilter"), 2)

        // It is remembered until the adapter or the daemon is another one.
        stop(client, first)
        _ = scan(client, "b")
        XCTAssertEqual(daemon.filter, ["Transport": "s"])
        daemon.vanish()
        daemon.appear()
        XCTAssertEqual(daemon.filter, ["Transport": "s", "Pathloss": "q"])
    }

    func testAFilterThatIsRefusedWhileScanningIsTriedWithoutPathloss() {
        let client = readyClient()
        _ = scan(client, "a")
        daemon.errors["SetDiscoveryFilter"] = [refusal]
        _ = scan(client, "b", DiscoveryFilter(reportsDuplicateData: true))
        XCTAssertEqual(events.withLock { $0 }, ["a started", "b started"])
        XCTAssertEqual(daemon.filter, ["Transport": "s", "DuplicateData": "b"])
        XCTAssertEqual(daemon.count("StopDiscovery"), 0)
    }

    func testAFilterThatIsRefusedForAnotherReasonFailsTheScan() {
        let client = readyClient()
        daemon.errors["SetDiscoveryFilter"] = [refusal, refusal]
        _ = scan(client, "a")
        XCTAssertEqual(events.withLock { $0 }, ["a failed org.bluez.Error.InvalidArguments"])
    }

    func testABusyAdapterIsTriedAgainAndSucceeds() {
        let client = readyClient()
        daemon.errors["StartDiscovery"] = [busy, busy]
        _ = scan(client, "a")
        daemon.loop.advance(by: 1)
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
        XCTAssertEqual(daemon.count("StartDiscovery"), 3)
        XCTAssertEqual(daemon.count("StopDiscovery"), 1)
    }

    func testAnAdapterThatIsAlwaysBusyFailsTheScanWithinTwoSeconds() {
        let client = readyClient()
        daemon.errors["StartDiscovery"] = Array(repeating: busy, count: 100)
        _ = scan(client, "a")
        daemon.loop.advance(by: 2)
        XCTAssertEqual(events.withLock { $0 }, ["a failed org.bluez.Error.InProgress"])
        XCTAssertEqual(client.discovery.scanCount, 0)
    }

    func testAStartWithoutAnswerFailsInTheEnd() {
        let client = readyClient()
        daemon.silent = ["StartDiscovery"]
        _ = scan(client, "a")
        daemon.loop.advance(by: 120)
        XCTAssertEqual(events.withLock { $0 }, ["a failed org.freedesktop.DBus.Error.NoReply"])
    }

    func testAScanSurvivesTheDaemon() {
        let client = readyClient()
        _ = scan(client, "a")
        daemon.vanish()
        daemon.appear()
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted adapterReturned"])
    }

    func testAScanSurvivesTheBus() {
        let client = readyClient()
        _ = scan(client, "a")
        daemon.bus.close()
        daemon.loop.advance(by: 3)
        daemon.bus.reopen()
        daemon.appear()
        daemon.loop.advance(by: 30)
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted adapterReturned"])
    }

    func testAScanSurvivesThatTheAdapterIsOff() {
        let client = readyClient()
        _ = scan(client, "a")
        daemon.set([("Powered", .bool(false)), ("Discovering", .bool(false))])
        daemon.set([("Powered", .bool(true))])
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted adapterReturned"])
        XCTAssertEqual(daemon.count("StopDiscovery"), 0)
    }

    func testDiscoveringThatEndsByItselfIsStartedAgain() {
        let client = readyClient()
        _ = scan(client, "a")
        daemon.set([("Discovering", .bool(true))])
        daemon.set([("Discovering", .bool(false))])
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted discoveringEnded"])
    }

    func testSilenceIsEndedByTheWatchdogAndReportsKeepItQuiet() {
        let client = readyClient()
        _ = scan(client, "a", watchdog: 90)
        daemon.send(
            BlueZMessages.interfacesAdded(BlueZMessages.device, [("org.bluez.Device1", BlueZMessages.fullDevice)]))
        for _ in 0..<10 {
            daemon.loop.advance(by: 60)
            daemon.send(
                BlueZMessages.propertiesChanged(BlueZMessages.device, "org.bluez.Device1", [("RSSI", .int16(-50))]))
        }
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
        daemon.loop.advance(by: 121)
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted silence"])
    }

    func testAScanOnAnAdapterThatIsNotThereYetWaitsForIt() {
        daemon.objects = []
        let client = readyClient()
        _ = scan(client, "a")
        XCTAssertEqual(daemon.calls, [])
        daemon.send(BlueZMessages.interfacesAdded(BlueZMessages.adapterPath, BlueZMessages.adapter()))
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
    }

    func testStoppingIsCompletedWhenTheDaemonHasConfirmedIt() {
        let client = readyClient()
        let id = scan(client, "a")
        daemon.silent = ["StopDiscovery"]
        let events = events
        onLoop { client.discovery.stop(id) { events.withLock { $0.append("confirmed") } } }
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
        daemon.silent = []
        daemon.loop.advance(by: 11)
        XCTAssertEqual(events.withLock { $0 }, ["a started", "confirmed"])
    }

    func testTheLastObservationThatEndsStopsDiscovery() {
        let client = readyClient()
        _ = scan(client, "a")
        observation?.cancel()
        daemon.loop.advance(by: 2)
        XCTAssertEqual(daemon.count("StopDiscovery"), 1)
        XCTAssertNil(client.daemon.connection)
    }
}
