import BlueCapDBus
import BlueCapFutures
import TestBasics
import XCTest

@testable import BlueZSimulator

/// The faults of links: each verb, and its effects for a client.
final class LinkFaultTests: RandomTestCase {
    private func connect(_ client: BusClient) -> DBusError? {
        client.error(of: "Connect", at: GattCast.path)
    }

    private func read(_ client: BusClient) -> PendingCall {
        client.begin("ReadValue", at: GattCast.place)
    }

    // MARK: Connections

    func testConnectionsFailAsOftenAsWasSaidAndInTheWordsThatWereGiven() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.simulateConnectFailures(2, of: GattCast.strap.address)
        XCTAssertEqual(connect(client)?.message, "le-connection-abort-by-local")
        XCTAssertEqual(connect(client)?.message, "le-connection-abort-by-local")
        XCTAssertNil(connect(client))
        simulator.simulateLinkLoss(of: GattCast.strap.address)
        simulator.simulateConnectFailures(1, error: .failed("le-connection-refused"), of: GattCast.strap.address)
        simulator.run()
        XCTAssertEqual(connect(client)?.message, "le-connection-refused")
    }

    func testAConnectionIsAnsweredWithSuccessAndFalls() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.simulateConnectReplyThenDrop(after: 0.02, of: GattCast.strap.address)
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        client.expectLog("dev_C0_00_00_00_00_01 Connected=true", "dev_C0_00_00_00_00_01 Connected=false")
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.links.count, 1)
    }

    func testAConnectionMayComeUpWithoutASignal() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.simulateUntoldConnections(of: GattCast.strap.address)
        XCTAssertNil(connect(client))
        client.expectLog()
        XCTAssertEqual(client.property("Connected", at: GattCast.path), "true")
    }

    func testADeviceThatIsRemovedNeverAnswersWhoConnects() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.remove(GattCast.strap.address)
        let call = client.begin("Connect", at: GattCast.path)
        simulator.simulateDeviceRemoval(of: GattCast.strap.address)
        simulator.advance(by: 60)
        XCTAssertNil(call.succeeded)
        client.expectLog("- dev_C0_00_00_00_00_01")
    }

    func testCallsThatWaitForObjectsAreCarriedOutWhenTheDeviceIsRemoved() {
        var bench = DaemonBench(remembering: [GattCast.known])
        _ = bench.ask(.connect(DaemonBench.strap))
        bench.link(DaemonBench.strap, .connected(VirtualLink(exportDelay: 1)), now: 0)
        let table = AttributeDatabase(GattCast.strap.services, name: "Strap", appearance: nil)
        bench.daemon.take(.discovered(DaemonBench.strap, table.services, name: nil))
        _ = bench.settle()
        XCTAssertEqual(bench.ask(.getDiscoveryFilters), [])
        bench.daemon.remove(DaemonBench.strap)
        XCTAssertEqual(bench.settle().outline, ["- _00_01", "reply"])
    }

    /// Whether the message of a call is kept after `body`.
    private func keeps(_ request: Request, _ bench: inout DaemonBench, after body: (inout Daemon) -> Void) -> Bool {
        weak var kept: Message?
        do {
            let message = Message.call(destination: "org.bluez", path: "/", interface: "org.bluez", member: "Call")
            kept = message
            bench.daemon.receive(request.call(by: ":1.7", CallID(number: 99, message: message)))
        }
        body(&bench.daemon)
        _ = bench.settle()
        return kept != nil
    }

    func testACallThatNeverHasAReplyIsNotKept() {
        var bench = DaemonBench(remembering: [GattCast.known])
        XCTAssertTrue(keeps(.connect(DaemonBench.strap), &bench) { _ in }, "it waits")
        bench = DaemonBench(remembering: [GattCast.known])
        XCTAssertFalse(keeps(.connect(DaemonBench.strap), &bench) { $0.remove(DaemonBench.strap) })
        bench = DaemonBench.connected
        bench.daemon.core.faults.unanswering[DaemonBench.strap.address] = true
        XCTAssertFalse(keeps(.readValue(GattCast.place.rawValue), &bench) { _ in })
        bench = DaemonBench.connected
        XCTAssertFalse(keeps(.readValue(GattCast.place.rawValue), &bench) { $0.remove(DaemonBench.strap) })
    }

    // MARK: Requests

    func testALinkLossIsSignalledBeforeItsOperationsFail() {
        var bench = DaemonBench.connected
        _ = bench.ask(.readValue(GattCast.place.rawValue))
        bench.link(DaemonBench.strap, .disconnected(.remote), now: 1)
        XCTAssertEqual(bench.settle().outline, ["00_01 ServicesResolved Connected", "org.bluez.Error.Failed"])
    }

    func testTheLinkFallsAtTheRequestThatWasSaid() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateDropAfter(requests: 2, of: GattCast.strap.address)
        XCTAssertEqual(client.read(GattCast.place), [1])
        let second = read(client)
        simulator.advance(by: 1)
        XCTAssertEqual(second.error, .bluez("Failed", "Operation failed with ATT error: 0x0e"))
        XCTAssertEqual(simulator.links, [])
    }

    func testAPeripheralVanishesDuringAWriteOfWhichNothingIsKept() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateVanishingMidWrite(of: GattCast.strap.address)
        XCTAssertEqual(client.read(GattCast.place), [1])
        XCTAssertNotNil(client.write(Array(repeating: 1, count: 400), to: GattCast.control, type: "request"))
        XCTAssertEqual(simulator.value(of: "2A39", at: GattCast.strap.address), [])
        XCTAssertEqual(simulator.links, [])
    }

    func testASilentPeripheralLosesItsLinkAfterHalfAMinute() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateSilence(of: GattCast.strap.address)
        let first = read(client)
        let second = client.begin("ReadValue", at: GattCast.control)
        simulator.advance(by: 29)
        XCTAssertNil(first.succeeded)
        simulator.advance(by: 2)
        XCTAssertEqual(first.succeeded, false)
        XCTAssertEqual(second.succeeded, false)
        XCTAssertEqual(simulator.links, [])
    }

    func testLateAnswersComeLate() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateLateAnswers(by: 3, of: GattCast.strap.address)
        let call = read(client)
        simulator.advance(by: 2.9)
        XCTAssertNil(call.succeeded)
        simulator.advance(by: 0.2)
        XCTAssertEqual(call.bytes, [1])
    }

    func testReadsGiveMoreOrLessThanThereIs() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateWrongLength(by: -1, of: GattCast.strap.address)
        XCTAssertEqual(client.read(GattCast.place), [])
        simulator.simulateWrongLength(by: 2, of: GattCast.strap.address)
        XCTAssertEqual(client.read(GattCast.place), [1, 0xEE, 0xEE])
    }

    // MARK: Services

    func testServicesAreCalledResolvedWhenNothingWasFound() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.simulateUnresolvedServices(of: GattCast.strap.address)
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        client.expectLog("dev_C0_00_00_00_00_01 Connected=true", "dev_C0_00_00_00_00_01 ServicesResolved=true")
    }

    func testLateObjectsFollowServicesResolvedOneAfterAnother() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.simulateLateObjects(by: 0.1, of: GattCast.strap.address)
        XCTAssertNil(connect(client))
        simulator.advance(by: 0.3)
        let log = client.takeLog()
        XCTAssertEqual(
            log.dropFirst().first,
            "dev_C0_00_00_00_00_01 UUIDs=00001800-0000-1000-8000-00805f9b34fb,"
                + "00001801-0000-1000-8000-00805f9b34fb,0000180d-0000-1000-8000-00805f9b34fb "
                + "ServicesResolved=true Name=Strap of the gap Alias=Strap of the gap")
        XCTAssertEqual(log.suffix(2), ["+ service0006", "+ char0007"])
        simulator.advance(by: 1)
        XCTAssertEqual(client.takeLog().last, "+ desc0015")
    }

    func testLateObjectsEnd() {
        var strap = GattCast.strap
        strap.link.exportDelay = 0.1
        let (simulator, client) = GattCast.scene(strap, isConnected: false)
        simulator.simulateLateObjects(by: 0, of: GattCast.strap.address)
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        let log = client.takeLog()
        XCTAssertEqual(log.dropLast().last, "+ desc0015")
        XCTAssertTrue(log.last?.contains("ServicesResolved=true") == true, "\(log)")
    }

    func testAChangeOfServicesRemovesAndAddsObjects() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateServicesChanged(of: GattCast.strap.address, to: [Room.battery(50)])
        simulator.advance(by: 1)
        client.expectLog(
            "- desc000d", "- char000b", "- char000e", "- desc0012", "- char0010", "- desc0015", "- char0013",
            "- service000a", "+ service000a", "+ char000b", "+ desc000d",
            "dev_C0_00_00_00_00_01 UUIDs=00001800-0000-1000-8000-00805f9b34fb,"
                + "00001801-0000-1000-8000-00805f9b34fb,0000180f-0000-1000-8000-00805f9b34fb ServicesResolved=true",
            "+ dev_C0_00_00_00_00_01")
        XCTAssertEqual(
            client.error(of: "ReadValue", at: GattCast.place)?.name,
            "org.freedesktop.DBus.Error.UnknownObject")
    }

    func testALateServiceComesWhenItIsDueAnnouncedOrNot() {
        var strap = GattCast.strap
        strap.services.append(VirtualService("180A", appearsAfter: 3))
        strap.services.append(VirtualService("1809", appearsAfter: 5, isAnnounced: false))
        let (simulator, client) = GattCast.scene(strap)
        let uuids = client.property("UUIDs", at: GattCast.path) ?? ""
        XCTAssertTrue(uuids.contains("0000180a"))
        XCTAssertFalse(uuids.contains("00001809"))
        simulator.advance(by: 5)
        XCTAssertEqual(
            client.takeLog().map { $0.prefix(28) },
            ["+ service0016", "dev_C0_00_00_00_00_01 UUIDs=", "+ service0017"])
    }

    func testAfterTheDaemonsReturnTheObjectsComeBeforeTheServicesAreResolved() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateDaemonDeath()
        simulator.simulateDaemonReturn()
        simulator.run()
        _ = client.takeLog()
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        let log = client.takeLog()
        XCTAssertEqual(log.first, "dev_C0_00_00_00_00_01 Connected=true")
        XCTAssertEqual(log.dropFirst().first, "+ service0006")
        XCTAssertEqual(log.last, "dev_C0_00_00_00_00_01 ServicesResolved=true")
    }

    func testCallsWaitUntilAllObjectsAreOnTheBus() {
        var strap = GattCast.strap
        strap.link.exportDelay = 0.1
        let (simulator, client) = GattCast.scene(strap, isConnected: false)
        XCTAssertNil(connect(client))
        simulator.advance(by: 0.3)
        XCTAssertEqual(client.takeLog().suffix(2), ["+ service0006", "+ char0007"])
        XCTAssertEqual(client.property("ServicesResolved", at: GattCast.path), "true")
        XCTAssertEqual(client.takeLog().last, "+ desc0015")
    }

    func testALinkThatFallsWhileObjectsComeLosesNoneOfThem() {
        var strap = GattCast.strap
        strap.link.exportDelay = 0.1
        let (simulator, client) = GattCast.scene(strap, isConnected: false)
        XCTAssertNil(connect(client))
        simulator.advance(by: 0.35)
        simulator.simulateLinkLoss(of: strap.address)
        simulator.run()
        XCTAssertNil(connect(client))
        simulator.advance(by: 3)
        XCTAssertEqual(client.objects().count, 14)
    }

    // MARK: Chance

    func testRandomFaultsAreTheSameForTheSameSeedAndEndWithAShareOfNothing() {
        func outcomes(seed: UInt64) -> [String] {
            let (simulator, client) = GattCast.scene(isConnected: false)
            simulator.simulateRandomFaults(seed: seed, share: 0.6, of: GattCast.strap.address)
            // So many that each kind of fault occurs: a refusal is one of 13.
            return (0..<200).map { _ in
                let failure = connect(client)?.message ?? "up"
                simulator.advance(by: 0.5)
                let value = client.read(GattCast.place).map { "\($0)" } ?? "nothing"
                simulator.simulateLinkLoss(of: GattCast.strap.address)
                simulator.advance(by: 0.5)
                return failure + " " + value
            }
        }
        var random = TestRandom(self)
        let (seed, other) = (random.next(), random.next())
        let first = outcomes(seed: seed)
        XCTAssertEqual(first, outcomes(seed: seed))
        XCTAssertNotEqual(first, outcomes(seed: other))
        XCTAssertTrue(first.contains("up [1]"))
        XCTAssertGreaterThan(Set(first).count, 2)

        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.simulateRandomFaults(seed: 1, share: 1, of: GattCast.strap.address)
        simulator.simulateRandomFaults(seed: 1, share: 0, of: GattCast.strap.address)
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        XCTAssertEqual(client.read(GattCast.place), [1])
    }

    func testManyRoundsWithFaultsLeaveNothingBehind() throws {
        var strap = GattCast.strap
        strap.services.append(Room.battery(50))
        strap.services[0].characteristics[2].flags.insert(.writeWithoutResponse)
        let (simulator, client) = GattCast.scene(strap, isConnected: false)
        var random = TestRandom(self)
        simulator.simulateRandomFaults(seed: random.next(), share: 0.7, of: strap.address)
        for _ in 0..<300 {
            let calls = [
                client.begin("Connect", at: GattCast.path),
                client.begin("StartNotify", at: GattCast.alarm),
            ]
            simulator.advance(by: Double(random.below(4)) * 0.1)
            let more = [
                client.begin("AcquireNotify", at: GattCast.rate),
                client.begin("ReadValue", at: GattCast.place),
                client.begin("WriteValue", at: GattCast.control) { writer in
                    writer.bytes([1])
                    writer.options(type: "request")
                },
            ]
            simulator.advance(by: Double(random.below(4)) * 0.1)
            if random.below(4) == 0 { simulator.simulateLinkLoss(of: strap.address) }
            let end = client.begin("Disconnect", at: GattCast.path)
            simulator.advance(by: 35)
            for call in calls + more + [end] { XCTAssertNotNil(call.succeeded) }
            XCTAssertEqual(simulator.links, [])
        }
        client.connection.close()
        simulator.advance(by: 1)
        simulator.stage.look { simulation in
            let daemon = simulation.daemon
            let waiting = daemon.connections
            XCTAssertTrue(waiting.connects.isEmpty && waiting.disconnects.isEmpty && waiting.removals.isEmpty)
            XCTAssertTrue(daemon.client.links.isEmpty && !daemon.client.isExporting(daemon.core))
            XCTAssertTrue(daemon.core.tree.devices.keys.allSatisfy { !daemon.core.alarms.contains(.dropLink($0)) })
            XCTAssertTrue(daemon.client.owners.isEmpty)
            for attribute in daemon.client.tables.values.flatMap(\.attributes.values) {
                XCTAssertTrue(attribute.clients.isEmpty && attribute.reading == nil)
                XCTAssertTrue(!attribute.isWriting && attribute.sockets.isEmpty)
            }
        }
        XCTAssertEqual(simulator.stage.wire.withLock { $0.sockets.count + $0.watches.count }, 0)
    }
}
