import DBus
import Futures
import GATT
import Reactor
import XCTest

@testable import BlueZ

/// One discovery session per adapter, seen from the daemon's side.
final class SharedDiscoveryTests: XCTestCase {
    private let devicePath: ObjectPath = "/org/bluez/hci0/dev_C0_26_DF_12_34_56"
    private let events = Locked<[String]>([])
    private var daemon = FakeDaemon()
    private let observer = RecordingObserver()

    override func setUp() {
        daemon = FakeDaemon()
        events.withLock { $0 = [] }
    }

    private func readyClient() -> (BlueZClient, Observation) {
        daemon.appear()
        let client = BlueZClient.shared(at: daemon.bus.address)
        let observation = client.observe(observer)
        daemon.loop.run()
        daemon.forgetCalls()
        return (client, observation)
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
            client.startScan(
                on: ObjectKey(adapter: 0) ?? ObjectKey(foreign: 0), filter: filter, watchdogSeconds: watchdog
            ) { event in
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

    private func stop(_ client: BlueZClient, _ id: ScanID) { onLoop { client.stopScan(id) } }

    func testTwoScansStartDiscoveryOnceAndTheLastOneStopsItOnce() {
        let (client, observation) = readyClient()
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
        withExtendedLifetime(observation) {}
    }

    func testTheFilterHasExactlyTheKeysThatWereAskedFor() {
        let (client, observation) = readyClient()
        let plain = scan(client, "plain")
        XCTAssertEqual(daemon.filter, ["Transport": "s"])
        stop(client, plain)

        let everything = DiscoveryFilter(
            uuids: [CBUUID(string: "180D")], rssi: -70, pattern: "Ru", reportsDuplicateData: true)
        _ = scan(client, "everything", everything)
        XCTAssertEqual(
            daemon.filter, ["Transport": "s", "UUIDs": "as", "RSSI": "n", "Pattern": "s", "DuplicateData": "b"])
        withExtendedLifetime(observation) {}
    }

    func testABusyAdapterIsTriedAgainAndSucceeds() {
        let (client, observation) = readyClient()
        let busy = DBusError(name: "org.bluez.Error.InProgress", message: "Operation already in progress")
        daemon.errors["StartDiscovery"] = [busy, busy]
        _ = scan(client, "a")
        daemon.loop.advance(by: 1)
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
        XCTAssertEqual(daemon.count("StartDiscovery"), 3)
        XCTAssertEqual(daemon.count("StopDiscovery"), 1)
        withExtendedLifetime(observation) {}
    }

    func testAnAdapterThatIsAlwaysBusyFailsTheScanWithinTwoSeconds() {
        let (client, observation) = readyClient()
        let busy = DBusError(name: "org.bluez.Error.InProgress", message: "Operation already in progress")
        daemon.errors["StartDiscovery"] = Array(repeating: busy, count: 100)
        _ = scan(client, "a")
        daemon.loop.advance(by: 2)
        XCTAssertEqual(events.withLock { $0 }, ["a failed org.bluez.Error.InProgress"])
        XCTAssertEqual(client.scans.count, 0)
        withExtendedLifetime(observation) {}
    }

    func testAStartWithoutAnswerFailsInTheEnd() {
        let (client, observation) = readyClient()
        daemon.silent = ["StartDiscovery"]
        _ = scan(client, "a")
        daemon.loop.advance(by: 120)
        XCTAssertEqual(events.withLock { $0 }, ["a failed org.freedesktop.DBus.Error.NoReply"])
        withExtendedLifetime(observation) {}
    }

    func testAScanSurvivesTheDaemon() {
        let (client, observation) = readyClient()
        _ = scan(client, "a")
        daemon.vanish()
        daemon.appear()
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted adapterReturned"])
        withExtendedLifetime((client, observation)) {}
    }

    func testAScanSurvivesTheBus() {
        let (client, observation) = readyClient()
        _ = scan(client, "a")
        daemon.bus.close()
        daemon.loop.advance(by: 3)
        daemon.bus.reopen()
        daemon.appear()
        daemon.loop.advance(by: 30)
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted adapterReturned"])
        withExtendedLifetime((client, observation)) {}
    }

    func testAScanSurvivesThatTheAdapterIsOff() {
        let (client, observation) = readyClient()
        _ = scan(client, "a")
        daemon.set([("Powered", .bool(false)), ("Discovering", .bool(false))])
        daemon.set([("Powered", .bool(true))])
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted adapterReturned"])
        XCTAssertEqual(daemon.count("StopDiscovery"), 0)
        withExtendedLifetime((client, observation)) {}
    }

    func testDiscoveringThatEndsByItselfIsStartedAgain() {
        let (client, observation) = readyClient()
        _ = scan(client, "a")
        daemon.set([("Discovering", .bool(true))])
        daemon.set([("Discovering", .bool(false))])
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted discoveringEnded"])
        withExtendedLifetime((client, observation)) {}
    }

    func testSilenceIsEndedByTheWatchdogAndReportsKeepItQuiet() {
        let (client, observation) = readyClient()
        _ = scan(client, "a", watchdog: 90)
        daemon.send(BlueZMessages.interfacesAdded(devicePath, [("org.bluez.Device1", BlueZMessages.fullDevice)]))
        for _ in 0..<10 {
            daemon.loop.advance(by: 60)
            daemon.send(BlueZMessages.propertiesChanged(devicePath, "org.bluez.Device1", [("RSSI", .int16(-50))]))
        }
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
        daemon.loop.advance(by: 121)
        XCTAssertEqual(events.withLock { $0 }, ["a started", "a restarted silence"])
        withExtendedLifetime((client, observation)) {}
    }

    func testAScanOnAnAdapterThatIsNotThereYetWaitsForIt() {
        daemon.objects = []
        let (client, observation) = readyClient()
        _ = scan(client, "a")
        XCTAssertEqual(daemon.calls, [])
        daemon.send(BlueZMessages.interfacesAdded(BlueZMessages.adapterPath, BlueZMessages.adapter()))
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
        withExtendedLifetime((client, observation)) {}
    }

    func testStoppingIsCompletedWhenTheDaemonHasConfirmedIt() {
        let (client, observation) = readyClient()
        let id = scan(client, "a")
        daemon.silent = ["StopDiscovery"]
        let events = events
        onLoop { client.stopScan(id) { events.withLock { $0.append("confirmed") } } }
        XCTAssertEqual(events.withLock { $0 }, ["a started"])
        daemon.silent = []
        daemon.loop.advance(by: 11)
        XCTAssertEqual(events.withLock { $0 }, ["a started", "confirmed"])
        withExtendedLifetime(observation) {}
    }

    func testTheLastObservationThatEndsStopsDiscovery() {
        let (client, observation) = readyClient()
        _ = scan(client, "a")
        observation.cancel()
        daemon.loop.advance(by: 2)
        XCTAssertEqual(daemon.count("StopDiscovery"), 1)
        XCTAssertNil(client.link)
    }
}
