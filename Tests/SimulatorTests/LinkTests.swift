import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// `Connect`, `Disconnect` and their signals, in the order that the radio lab shows.
final class LinkTests: XCTestCase {
    func testAFirstConnectionSignalsTheLinkThenOneObjectAfterAnotherAndThenTheUUIDs() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
        client.expectLog("dev_C0_00_00_00_00_01 Connected=true")
        XCTAssertEqual(client.property("ServicesResolved", at: GattCast.path), "false")
        simulator.advance(by: 1)
        client.expectLog(
            "+ service0006", "+ char0007", "+ desc0009", "+ service000a", "+ char000b", "+ desc000d", "+ char000e",
            "+ char0010", "+ desc0012", "+ char0013", "+ desc0015",
            "dev_C0_00_00_00_00_01 UUIDs=00001800-0000-1000-8000-00805f9b34fb,"
                + "00001801-0000-1000-8000-00805f9b34fb,0000180d-0000-1000-8000-00805f9b34fb "
                + "ServicesResolved=true Name=Strap of the gap Alias=Strap of the gap")
        XCTAssertEqual(simulator.links.map(\.address), [GattCast.strap.address])
    }

    func testASecondConnectIsAlreadyInProgressAndOneWhileConnectedIsFine() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        let first = client.begin("Connect", at: GattCast.path)
        XCTAssertEqual(
            client.error(of: "Connect", at: GattCast.path),
            .bluez("Failed", "Operation already in progress"))
        simulator.advance(by: 1)
        XCTAssertEqual(first.succeeded, true)
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
    }

    func testWhoIsNotThereIsTriedForFortySeconds() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.remove(GattCast.strap.address)
        let begin = simulator.seconds
        XCTAssertEqual(client.error(of: "Connect", at: GattCast.path), .bluez("Failed", "le-connection-abort-by-local"))
        XCTAssertEqual(simulator.seconds - begin, 40, accuracy: 0.01)
    }

    func testWhoComesInTimeIsConnectedTo() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        simulator.remove(GattCast.strap.address)
        let call = client.begin("Connect", at: GattCast.path)
        simulator.advance(by: 10)
        XCTAssertNil(call.succeeded)
        simulator.add(GattCast.strap)
        simulator.advance(by: 1)
        XCTAssertEqual(call.succeeded, true)
    }

    func testADisconnectCancelsAConnectionThatIsBeingTried() {
        let (simulator, client) = GattCast.scene(isConnected: false)
        let call = client.begin("Connect", at: GattCast.path)
        XCTAssertNil(client.error(of: "Disconnect", at: GattCast.path))
        XCTAssertEqual(call.error, .bluez("Failed", "br-connection-canceled"))
        simulator.advance(by: 30)
        XCTAssertEqual(simulator.links, [])
    }

    func testADisconnectIsAnsweredBeforeTheDeviceIsNotConnected() {
        var bench = DaemonBench(remembering: [GattCast.known])
        let key = DeviceKey(adapter: 0, address: GattCast.strap.address)
        _ = bench.ask(.connect(key))
        bench.link(key, .connected(VirtualLink()), now: 0)
        bench.daemon.take(.discovered(key, [], name: nil))
        XCTAssertEqual(bench.settle().outline, ["00_01 Connected", "reply", "00_01 ServicesResolved"])
        XCTAssertEqual(bench.ask(.disconnect(key)), [])
        bench.link(key, .disconnected(.local), now: 2)
        XCTAssertEqual(bench.settle().outline, ["00_01 ServicesResolved", "reply", "00_01 Connected"])
    }

    func testADisconnectTakesTwoSecondsAndKeepsTheObjects() {
        let (simulator, client) = GattCast.scene()
        let begin = simulator.seconds
        XCTAssertNil(client.error(of: "Disconnect", at: GattCast.path))
        XCTAssertEqual(simulator.seconds - begin, 2, accuracy: 0.01)
        client.expectLog("dev_C0_00_00_00_00_01 ServicesResolved=false", "dev_C0_00_00_00_00_01 Connected=false")
        XCTAssertTrue(client.objects().contains { $0.hasSuffix("service000a") }, "objects are kept")
    }

    func testAConnectWithinTheTwoSecondsSucceedsAndTheLinkFallsAllTheSame() {
        let (simulator, client) = GattCast.scene()
        let call = client.begin("Disconnect", at: GattCast.path)
        simulator.advance(by: 1)
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
        simulator.advance(by: 2)
        XCTAssertEqual(call.succeeded, true)
        XCTAssertEqual(simulator.links, [])
    }

    func testALinkLossIsOneSignal() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateLinkLoss(of: GattCast.strap.address)
        client.expectLog("dev_C0_00_00_00_00_01 ServicesResolved=false Connected=false")
    }

    func testASecondConnectionHasTheObjectsAtOnceAndSignalsNoUUIDs() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateLinkLoss(of: GattCast.strap.address)
        simulator.run()
        _ = client.takeLog()
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
        simulator.advance(by: 1)
        client.expectLog("dev_C0_00_00_00_00_01 Connected=true", "dev_C0_00_00_00_00_01 ServicesResolved=true")
    }

    func testTheLinkOutlivesItsClient() {
        let (simulator, client) = GattCast.scene()
        client.connection.close()
        simulator.advance(by: 60)
        XCTAssertEqual(simulator.links.count, 1)
    }

    func testWhoIsConnectedDoesNotAdvertise() {
        let (simulator, client) = GattCast.scene()
        client.startScanning()
        _ = client.takeLog()
        simulator.advance(by: 5)
        client.expectLog()
        simulator.simulateLinkLoss(of: GattCast.strap.address)
        simulator.advance(by: 1)
        XCTAssertTrue(client.takeLog().contains { $0.contains("RSSI") })
    }

    func testTheRemovalOfAConnectedDeviceTakesTheTwoSecondsAndAllItsObjects() {
        let (simulator, client) = GattCast.scene()
        XCTAssertNil(client.error(of: "RemoveDevice") { $0.objectPath(GattCast.path) })
        let log = client.takeLog()
        XCTAssertEqual(log.last, "- dev_C0_00_00_00_00_01")
        XCTAssertEqual(log.filter { $0.hasPrefix("- desc") }.count, 4)
        XCTAssertEqual(simulator.links, [])
        XCTAssertEqual(client.objects(), ["/org/bluez", "/org/bluez/hci0"])
    }

    func testPowerOffEndsLinksBeforeThePower() {
        let (simulator, client) = GattCast.scene()
        simulator.simulatePowerOff()
        client.expectLog(
            "dev_C0_00_00_00_00_01 ServicesResolved=false Connected=false",
            "hci0 Powered=false Discovering=false Class=0")
    }

    func testADeadDaemonHasNoLinksWhenItReturns() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateDaemonDeath()
        simulator.run()
        XCTAssertEqual(simulator.links, [])
        simulator.simulateDaemonReturn()
        simulator.run()
        XCTAssertEqual(client.property("Connected", at: GattCast.path), "false")
        XCTAssertEqual(client.objects().count, 3)
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
    }

    func testAPeripheralThatIsSwitchedOffLosesItsLink() {
        var strap = GattCast.strap
        strap.disappearsAfter = 10
        let (simulator, client) = GattCast.scene(strap, isConnected: false)
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
        simulator.advance(by: 8)
        XCTAssertEqual(simulator.links.count, 1)
        simulator.advance(by: 2)
        XCTAssertEqual(simulator.links, [])
    }

    func testWhoWasConnectedAdvertisesAgainAfterTheDaemonsDeath() {
        let (simulator, client) = GattCast.scene()
        simulator.simulateDaemonDeath()
        simulator.simulateDaemonReturn()
        simulator.run()
        client.startScanning()
        simulator.advance(by: 1)
        XCTAssertTrue(client.takeLog().contains { $0.contains("RSSI") })
    }

    func testASecondAdapterWaitsForTheLinkOfTheFirstToEnd() {
        let simulator = Simulator.inProcess(
            room: Room(peripherals: [GattCast.known]), adapters: [VirtualAdapter(), VirtualAdapter(index: 1)],
            bluez: .v5_66)
        let client = BusClient(simulator)
        XCTAssertNil(client.error(of: "Connect", at: GattCast.path))
        let second = client.begin("Connect", at: "/org/bluez/hci1/dev_C0_00_00_00_00_01")
        simulator.advance(by: 5)
        XCTAssertNil(second.succeeded)
        simulator.simulateLinkLoss(of: GattCast.strap.address)
        simulator.advance(by: 1)
        XCTAssertEqual(second.succeeded, true)
        XCTAssertEqual(simulator.links.map(\.adapter), [1])
    }
}
