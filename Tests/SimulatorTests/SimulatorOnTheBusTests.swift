import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// The simulator as a D-Bus client uses it: over a bus, in virtual time.
final class SimulatorOnTheBusTests: XCTestCase {
    private let tag = VirtualPeripheral(
        "C0:00:00:00:00:02", addressType: .random,
        rssi: .steps([.init(after: 0, rssi: -60), .init(after: 5, rssi: -50)]),
        advertisement: Advertisement(localName: "Tag", serviceUUIDs: ["180f"]), interval: 1)

    private func room(_ peripherals: VirtualPeripheral...) -> Simulator {
        Simulator.inProcess(room: Room(peripherals: peripherals), bluez: .v5_66)
    }

    func testAClientFindsTheRootTheAdapterAndWhatIsRemembered() {
        var old = tag
        old.isRemembered = true
        let client = BusClient(room(old))
        XCTAssertEqual(
            client.objects(), ["/org/bluez", "/org/bluez/hci0", "/org/bluez/hci0/dev_C0_00_00_00_00_02"])
        XCTAssertEqual(client.property("Powered"), "true")
        XCTAssertEqual(client.property("Roles"), "central,peripheral")
        XCTAssertEqual(client.property("Name", at: "/org/bluez/hci0/dev_C0_00_00_00_00_02"), "Tag")
        XCTAssertNil(client.property("RSSI", at: "/org/bluez/hci0/dev_C0_00_00_00_00_02"))
    }

    func testAScanReportsWhoComesAndEveryAdvertisementUntilItStops() {
        let simulator = room(tag)
        let client = BusClient(simulator)
        client.startScanning()
        client.expectLog("hci0 Discovering=true")
        simulator.advance(by: 3)
        client.expectLog("+ dev_C0_00_00_00_00_02", "dev_C0_00_00_00_00_02 RSSI=-60", "dev_C0_00_00_00_00_02 RSSI=-60")
        simulator.advance(by: 3)
        XCTAssertEqual(client.takeLog().last, "dev_C0_00_00_00_00_02 RSSI=-50")
        XCTAssertNil(client.error(of: "StopDiscovery"))
        client.expectLog("dev_C0_00_00_00_00_02 -RSSI", "hci0 Discovering=false")
        simulator.advance(by: 24)
        client.expectLog()
        simulator.advance(by: 6)
        client.expectLog("- dev_C0_00_00_00_00_02", note: "thirty seconds after it was last received")
    }

    func testAClientThatLeavesTheBusEndsItsSession() {
        let simulator = room()
        let watcher = BusClient(simulator)
        do {
            let client = BusClient(simulator)
            client.startScanning()
            XCTAssertEqual(simulator.discoverySessions.map(\.client), [client.name])
            XCTAssertEqual(simulator.discoverySessions.first?.filter, ["Transport": .string("le")])
            client.connection.close()
        }
        simulator.run()
        XCTAssertEqual(simulator.discoverySessions, [])
        watcher.expectLog("hci0 Discovering=true", "hci0 Discovering=false")
    }

    func testStatisticsKeepTheExactKeysOfEachFilter() {
        let simulator = room()
        let client = BusClient(simulator)
        client.startScanning()
        XCTAssertNil(
            client.setFilter(["RSSI": .int16(-70), "UUIDs": .strings(["180d"]), "DuplicateData": .bool(true)]))
        let statistics = simulator.statistics
        XCTAssertEqual(statistics.count(of: "StartDiscovery"), 1)
        XCTAssertEqual(statistics.count(of: "StopDiscovery"), 0)
        XCTAssertEqual(
            statistics.discoveryFilters,
            [
                ["Transport": .string("le")],
                ["RSSI": .int16(-70), "UUIDs": .strings(["180d"]), "DuplicateData": .bool(true)],
            ])
        XCTAssertEqual(statistics.calls.first { $0.member == "StartDiscovery" }?.sender, client.name)
    }

    func testErrorsHaveBlueZsNamesAndTexts() {
        let client = BusClient(room())
        XCTAssertEqual(client.error(of: "StopDiscovery"), .bluez("Failed", "No discovery started"))
        XCTAssertNil(client.error(of: "StartDiscovery"))
        XCTAssertEqual(client.error(of: "StartDiscovery"), .bluez("InProgress", "Operation already in progress"))
        XCTAssertEqual(
            client.setFilter(["Colour": .string("blue")]),
            .bluez("InvalidArguments", "Invalid arguments in method call"))
        XCTAssertEqual(
            client.error(of: "RemoveDevice") { $0.objectPath("/org/bluez/hci0/dev_00") }?.name,
            "org.bluez.Error.DoesNotExist")
        XCTAssertEqual(client.error(of: "Fly")?.name, "org.freedesktop.DBus.Error.UnknownMethod")
        XCTAssertEqual(
            client.error(of: "Connect", at: "/org/bluez/hci0/dev_00")?.name,
            "org.freedesktop.DBus.Error.UnknownObject")
    }

    func testPropertiesAreSetAndSignalled() {
        let client = BusClient(room())
        XCTAssertNil(client.set("Alias", .string("Mine")))
        XCTAssertNil(client.set("Powered", .bool(false)))
        client.expectLog("hci0 Alias=Mine", "hci0 Powered=false Discovering=false Class=0")
        XCTAssertEqual(client.error(of: "StartDiscovery")?.name, "org.bluez.Error.NotReady")
        XCTAssertEqual(client.set("Powered", .string("on"))?.name, "org.freedesktop.DBus.Error.InvalidSignature")
        XCTAssertEqual(client.set("Address", .string("x"))?.name, "org.freedesktop.DBus.Error.PropertyReadOnly")
    }

    func testIntrospectionListsInterfacesAndChildren() throws {
        let client = BusClient(room())
        func xml(_ path: ObjectPath) throws -> String {
            var reader = try XCTUnwrap(client.call("Introspect", on: "org.freedesktop.DBus.Introspectable", at: path))
                .get().reader
            return reader.string() ?? ""
        }
        XCTAssertTrue(try xml("/").contains("<node name=\"org\""))
        XCTAssertTrue(try xml("/org/bluez").contains("<node name=\"hci0\""))
        let adapter = try xml("/org/bluez/hci0")
        XCTAssertTrue(adapter.contains("org.bluez.GattManager1"))
        XCTAssertTrue(adapter.contains("<property name=\"Powered\" type=\"b\" access=\"readwrite\""))
    }

    func testABehaviourChangesTheAdvertisementOverTime() {
        final class Counter: PeripheralBehavior {
            func advertisement(of peripheral: VirtualPeripheral, at seconds: Double) -> Advertisement {
                var advertisement = peripheral.advertisement
                advertisement.manufacturerData[0xFFFF] = [UInt8(seconds)]
                return advertisement
            }
        }
        let simulator = room()
        simulator.add(tag, behavior: Counter())
        let client = BusClient(simulator)
        client.startScanning()
        simulator.advance(by: 2)
        XCTAssertEqual(
            client.takeLog().last, "dev_C0_00_00_00_00_02 RSSI=-60 ManufacturerData=a{qv}")
    }

    func testTwoAdaptersScanEachForItself() {
        let simulator = Simulator.inProcess(
            room: Room(peripherals: [tag]), adapters: [VirtualAdapter(), VirtualAdapter(index: 1)], bluez: .v5_66)
        let client = BusClient(simulator)
        XCTAssertNil(client.error(of: "StartDiscovery", at: "/org/bluez/hci1"))
        simulator.advance(by: 2)
        XCTAssertEqual(simulator.devices, ["/org/bluez/hci1/dev_C0_00_00_00_00_02"])
        XCTAssertEqual(simulator.adapters.map(\.isDiscovering), [false, true])
    }

    func testAFloodReportsEveryPeripheralOnceAndEveryUpdate() {
        let simulator = Simulator.inProcess(room: .crowd(1000, interval: 3600), bluez: .v5_66)
        let client = BusClient(simulator)
        client.startScanning()
        _ = client.takeLog()
        let finished = Locked(false)
        simulator.simulateFlood(updates: 5000) { finished.withLock { $0 = true } }
        simulator.run()
        XCTAssertTrue(finished.withLock { $0 })
        let log = client.takeLog()
        XCTAssertEqual(log.filter { $0.hasPrefix("+") }.count, 1000)
        XCTAssertEqual(log.count, 5000)
    }
}
