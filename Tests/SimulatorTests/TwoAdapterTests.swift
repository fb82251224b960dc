import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// Two adapters of one simulator: a program serves on `hci1`, a client scans and connects from `hci0`.
final class TwoAdapterTests: XCTestCase {
    private let device: ObjectPath = "/org/bluez/hci0/dev_00_AA_01_01_00_01"
    private let central = "dev_00_AA_01_01_00_00"

    private func scene() -> (Simulator, ServingProgram, BusClient) {
        let simulator = Simulator.inProcess(
            room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)], bluez: .v5_66)
        let program = ServingProgram(simulator, ServingProgram.heart + [ServingProgram.connectable])
        program.serve(on: "/org/bluez/hci1")
        let client = BusClient(simulator)
        client.startScanning()
        _ = program.client.takeLog()
        _ = client.takeLog()
        simulator.advance(by: 2)
        return (simulator, program, client)
    }

    private func connected() -> (Simulator, ServingProgram, BusClient) {
        let (simulator, program, client) = scene()
        XCTAssertNil(client.error(of: "StopDiscovery"))
        XCTAssertNil(client.error(of: "Connect", at: device))
        simulator.advance(by: 1)
        _ = client.takeLog()
        _ = program.takeCalls()
        return (simulator, program, client)
    }

    private func path(_ tail: String) -> ObjectPath { ObjectPath(validating: device.rawValue + "/" + tail)! }

    func testTheAdvertisementOfOneAdapterIsReceivedByTheOther() {
        let (simulator, program, client) = scene()
        XCTAssertEqual(simulator.devices, [device.rawValue])
        XCTAssertEqual(client.property("Name", at: device), "Strap")
        XCTAssertEqual(client.property("UUIDs", at: device), ServiceUUID.long("180d"))
        XCTAssertEqual(simulator.peripherals, [])
        XCTAssertNil(program.stopAdvertising(on: "/org/bluez/hci1"))
        simulator.advance(by: 32)
        XCTAssertEqual(simulator.devices, [])
    }

    func testBothSidesHaveADeviceOnceTheyAreConnected() {
        let (simulator, program, client) = connected()
        XCTAssertEqual(client.property("ServicesResolved", at: device), "true")
        let other = ObjectPath(validating: "/org/bluez/hci1/" + central)!
        XCTAssertEqual(client.property("Connected", at: other), "true")
        XCTAssertEqual(
            client.objects().filter { $0.hasPrefix(device.rawValue + "/") }.map { $0.dropFirst(device.rawValue.count) },
            [
                "/service0008", "/service0008/char0009", "/service0008/char0009/desc000b", "/service0008/char000c",
                "/service0008/char000e", "/service0008/char0010", "/service0012", "/service0012/char0013",
                "/service0015", "/service0015/char0016", "/service0015/char0016/desc0018", "/service0015/char0019",
                "/service0015/char001b", "/service0015/char001b/desc001d", "/service0015/char001b/desc001e",
                "/service0015/char001f",
            ])
        XCTAssertNil(client.error(of: "Disconnect", at: device))
        simulator.run()
        XCTAssertEqual(client.property("Connected", at: other), "false")
        withExtendedLifetime(program) {}
    }

    func testReadsAndWritesGoToTheProgram() {
        let (_, program, client) = connected()
        program.answer("ReadValue") { message in .reply(to: message) { $0.bytes([1, 2, 3] as [UInt8]) } }
        XCTAssertEqual(client.read(path("service0015/char0019")), [1, 2, 3])
        XCTAssertNil(client.write([7], to: path("service0015/char001b"), type: "request"))
        program.expectCalls("c1 ReadValue {link=LE mtu=517}", "c2 WriteValue 07 {link=LE mtu=517}")
        program.answer("ReadValue") { .error(to: $0, .bluez("Failed", "0x85")) }
        XCTAssertEqual(
            client.error(of: "ReadValue", at: path("service0015/char0019")),
            .bluez("Failed", "Operation failed with ATT error: 0x85"))
    }

    func testALongValueComesInSeveralReads() {
        let (_, program, client) = connected()
        let value = [UInt8](repeating: 9, count: 512)
        program.answer("ReadValue") { message in .reply(to: message) { $0.bytes(value) } }
        XCTAssertEqual(client.read(path("service0015/char0019")), value)
        program.expectCalls("c1 ReadValue {link=LE mtu=517}")
    }

    func testSubscriptionsCarryTheProgramsValues() {
        let (simulator, program, client) = connected()
        let characteristic = path("service0015/char0016")
        XCTAssertNil(client.error(of: "StartNotify", at: characteristic))
        program.expectCalls("c0 StartNotify")
        XCTAssertEqual(simulator.links.map(\.subscriptions), [[ServiceUUID.long("2a37") ?? ""]])
        _ = client.takeLog()
        program.notify("/app/s0/c0", [1])
        program.notify("/app/s0/c0", [1])
        client.expectLog("char0016 Value=01", "char0016 Value=01")
        XCTAssertNil(client.error(of: "StopNotify", at: characteristic))
        simulator.advance(by: 1)
        program.expectCalls("c0 StopNotify")
    }

    func testAValueDoesNotOvertakeTheResponseThatItFollows() {
        let (simulator, program, client) = connected()
        let connection = program.client.connection
        program.answer("StartNotify") { _ in
            connection.send(
                .signal(
                    .propertiesChanged(
                        path: "/app/s0/c0", interface: InterfaceName.characteristic,
                        changed: [NamedValue(name: "Value", value: .bytes([7]))], invalidated: [])))
            return nil
        }
        XCTAssertNil(client.error(of: "StartNotify", at: path("service0015/char0016")))
        simulator.advance(by: 1)
        client.expectLog("char0016 Notifying=true", "char0016 Value=07")
    }

    func testServicesThatComeAndGoAreFoundOverTheLink() {
        let (simulator, program, client) = connected()
        XCTAssertNil(program.unregister(on: "/org/bluez/hci1"))
        simulator.advance(by: 1)
        XCTAssertEqual(client.objects().filter { $0.contains("service0015") }, [])
        XCTAssertNil(program.register(on: "/org/bluez/hci1"))
        simulator.advance(by: 1)
        XCTAssertEqual(client.objects().filter { $0.hasSuffix("/service0021") }.count, 1)
    }

    func testALinkEndsWithTheProgramsAdapter() {
        let (simulator, _, client) = connected()
        simulator.simulatePowerOff(adapter: 1)
        simulator.advance(by: 1)
        XCTAssertEqual(client.property("Connected", at: device), "false")
        XCTAssertEqual(simulator.links, [])
    }

    func testALinkIsLost() {
        let (simulator, program, client) = connected()
        simulator.simulateLinkLoss(of: "00:AA:01:01:00:01")
        client.expectLog(
            "\(device.lastElement) ServicesResolved=false Connected=false",
            "\(central) ServicesResolved=false Connected=false")
        XCTAssertNil(client.error(of: "Connect", at: device))
        withExtendedLifetime(program) {}
    }

    func testWhatBroadcastsHasAnAddressOfItsOwn() {
        let simulator = Simulator.inProcess(
            room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)], bluez: .v5_66)
        let data = BusValue.manufacturerData(0x4C, [2, 0x15])
        let program = ServingProgram(
            simulator, [ServingProgram.advertisement([("Type", .string("broadcast")), ("ManufacturerData", data)])])
        XCTAssertNil(program.advertise(on: "/org/bluez/hci1"))
        let client = BusClient(simulator)
        client.startScanning()
        simulator.advance(by: 2)
        let address = simulator.advertisements[0].address
        XCTAssertEqual(address.value >> 46, 0)
        XCTAssertEqual(simulator.devices, ["/org/bluez/hci0/dev_" + address.written(separator: UInt8(ascii: "_"))])
        XCTAssertEqual(
            client.property("AddressType", at: ObjectPath(validating: simulator.devices[0]) ?? "/"),
            "random")
    }

    func testNoAdapterReceivesItsOwnAdvertisements() {
        let simulator = Simulator.inProcess(room: .empty, bluez: .v5_66)
        let program = ServingProgram(simulator, [ServingProgram.connectable])
        XCTAssertNil(program.advertise())
        program.client.startScanning()
        simulator.advance(by: 5)
        XCTAssertEqual(simulator.devices, [])
    }

    func testWhoDoesNotAdvertiseIsTriedFor() {
        let (simulator, program, client) = scene()
        XCTAssertNil(program.stopAdvertising(on: "/org/bluez/hci1"))
        let connect = client.begin("Connect", at: device)
        simulator.advance(by: 20)
        XCTAssertNil(connect.succeeded)
        XCTAssertNil(program.advertise(on: "/org/bluez/hci1"))
        simulator.advance(by: 1)
        XCTAssertEqual(connect.succeeded, true)
    }

    func testThePeripheralEndsALinkAsItEndsEveryOther() {
        let (simulator, program, client) = connected()
        let other = ObjectPath(validating: "/org/bluez/hci1/" + central)!
        XCTAssertNil(program.client.error(of: "Disconnect", at: other))
        simulator.run()
        XCTAssertEqual(client.takeLog().suffix(1), ["dev_00_AA_01_01_00_01 ServicesResolved=false Connected=false"])
    }
}
