import BlueCapDBus
import XCTest

@testable import BlueZSimulator

/// `RegisterAdvertisement`: which bytes are sent, and what is refused.
final class AdvertisingTests: XCTestCase {
    private func scene(
        _ properties: [(String, BusValue)], isLowEnergyOnly: Bool = false
    ) -> (Simulator, ServingProgram) {
        let simulator = Simulator.inProcess(
            room: .empty, adapters: [VirtualAdapter(isLowEnergyOnly: isLowEnergyOnly)], bluez: .v5_66)
        return (simulator, ServingProgram(simulator, [ServingProgram.advertisement(properties)]))
    }

    private let long = "f000aa00-0451-4000-b000-000000000001"
    private let parse = "Failed to parse advertisement."
    private let register = "Failed to register advertisement"

    func testTheBytesOfAnAdvertisement() {
        let manufacturer = BusValue.manufacturerData(0x004C, [2, 0x15])
        let service = BusValue.serviceData("feaa", [0x10, 0xEB])
        let table: [(String, [(String, BusValue)], String)] = [
            ("nothing", [], " "),
            ("two of two bytes", [("ServiceUUIDs", .strings(["180d", "180f"]))], "05030d180f18 "),
            (
                "by size, whatever the order",
                [("ServiceUUIDs", .strings([long, "180D", "12345678"]))],
                "03030d18" + "050578563412" + "1107010000000000" + "00b0004051040" + "0aa00f0 "
            ),
            ("the base UUID is two bytes", [("ServiceUUIDs", .strings([ServiceUUID.long("180d") ?? ""]))], "03030d18 "),
            ("solicited", [("SolicitUUIDs", .strings(["180d"]))], "03140d18 "),
            ("a company's", [("ManufacturerData", manufacturer)], "05ff4c000215 "),
            ("a service's", [("ServiceData", service)], "0516aafe10eb "),
            (
                "discoverable, at the end", [("Discoverable", .bool(true)), ("ServiceUUIDs", .strings(["180d"]))],
                "03030d18020106 "
            ),
            ("limited", [("Discoverable", .bool(true)), ("DiscoverableTimeout", .uint16(9))], "020105 "),
            ("a look", [("Appearance", .uint16(833))], "03194103 "),
            ("a name is in the scan response", [("LocalName", .string("Strap"))], " 06095374726170"),
            ("an empty name is none", [("LocalName", .string(""))], " "),
            ("the adapter's name", [("Includes", .strings(["local-name"]))], " 0a0973696d756c61746564"),
            ("how strong", [("Includes", .strings(["tx-power"]))], "020a00 "),
            (
                "with a second channel all is in one",
                [("LocalName", .string("A")), ("SecondaryChannel", .string("2M"))],
                "020941 "
            ),
            (
                "all of it in BlueZ's order",
                [
                    ("ServiceUUIDs", .strings(["180d"])), ("SolicitUUIDs", .strings(["180f"])),
                    ("ManufacturerData", manufacturer), ("ServiceData", service), ("Appearance", .uint16(1)),
                    ("Discoverable", .bool(true)),
                ], "03030d1803140f1805ff4c0002150516aafe10eb03190100020106 "
            ),
        ]
        for (name, properties, bytes) in table { XCTAssertEqual(sentBytes(properties), bytes, name) }
    }

    func testWhatIsRefused() {
        func company(_ count: Int) -> BusValue {
            .manufacturerData(1, Array(repeating: 7, count: count))
        }
        let table: [(String, [(String, BusValue)], String)] = [
            ("of another type", [("Type", .string("central"))], parse),
            ("no list", [("ServiceUUIDs", .string("180d"))], parse),
            ("no UUID", [("ServiceUUIDs", .strings(["heart"]))], parse),
            ("too much of one company", [("ManufacturerData", company(28))], parse),
            ("a name twice", [("Includes", .strings(["local-name"])), ("LocalName", .string("A"))], parse),
            (
                "a broadcast is not discoverable", [("Type", .string("broadcast")), ("Discoverable", .bool(true))],
                parse
            ),
            (
                "discoverable for longer than it lasts",
                [
                    ("Discoverable", .bool(true)), ("Timeout", .uint16(3)), ("DiscoverableTimeout", .uint16(4)),
                ], parse
            ),
            ("too long together", [("ManufacturerData", company(27)), ("ServiceUUIDs", .strings(["180d"]))], register),
            ("a look that the kernel is to know", [("Includes", .strings(["appearance"]))], register),
            (
                "too long with the strength",
                [("ManufacturerData", company(26)), ("Includes", .strings(["tx-power"]))],
                register
            ),
        ]
        for (name, properties, message) in table { XCTAssertEqual(sentBytes(properties), message, name) }
        XCTAssertEqual(sentBytes([("ManufacturerData", company(27))]).count, 63)
    }

    func testANameThatDoesNotFitIsCut() {
        XCTAssertEqual(
            sentBytes([("LocalName", .string(String(repeating: "x", count: 40)))]),
            " 1e08" + String(repeating: "78", count: 29))
    }

    func testTheFlagsComeFromTheKernelWhereTheAdapterIsDiscoverable() {
        for (isLowEnergyOnly, flags) in [(false, "020102"), (true, "020106")] {
            let (simulator, program) = scene(
                [("Type", .string("peripheral")), ("ServiceUUIDs", .strings(["180d"]))],
                isLowEnergyOnly: isLowEnergyOnly)
            XCTAssertNil(program.client.set("Discoverable", .bool(true)))
            XCTAssertNil(program.advertise())
            XCTAssertEqual(Hexadecimal.text(simulator.advertisements[0].data), flags + "03030d18")
        }
    }

    func testPropertiesAreReadAtOnceAndInstancesAreSignalled() {
        let (_, program) = scene([("Type", .string("peripheral"))])
        _ = program.client.takeLog()
        XCTAssertNil(program.advertise())
        program.expectCalls("advert GetManagedObjects", "advert GetAll", "advert Set TxPower 0")
        program.client.expectLog("hci0 SupportedInstances=2 ActiveInstances=1")
        XCTAssertEqual(program.advertise()?.name, "org.bluez.Error.AlreadyExists")
        XCTAssertNil(program.stopAdvertising())
        program.client.expectLog("hci0 SupportedInstances=3 ActiveInstances=0")
        XCTAssertEqual(program.stopAdvertising()?.name, "org.bluez.Error.DoesNotExist")
    }

    func testThereIsRoomForThree() {
        let (simulator, program) = scene([])
        for path: ObjectPath in ["/a", "/b", "/c"] { XCTAssertNil(program.advertise(path)) }
        XCTAssertEqual(program.advertise("/d"), .bluez("NotPermitted", "Maximum advertisements reached"))
        // If no property can be read, BlueZ continues without any: an empty broadcast.
        XCTAssertEqual(simulator.advertisements.map(\.isConnectable), [false, false, false])
        XCTAssertNil(program.stopAdvertising("/b"))
        XCTAssertNil(program.advertise("/d"))
    }

    func testTheTimeoutReleasesItAndIsSignalled() {
        let (simulator, program) = scene([("Type", .string("peripheral")), ("Timeout", .uint16(5))])
        XCTAssertNil(program.advertise())
        _ = program.takeCalls()
        _ = program.client.takeLog()
        simulator.advance(by: 6)
        program.expectCalls("advert Release")
        program.client.expectLog("hci0 SupportedInstances=3 ActiveInstances=0")
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testAnAdapterThatGoesReleasesThem() {
        let (simulator, program) = scene([("Type", .string("peripheral"))])
        XCTAssertNil(program.advertise())
        _ = program.takeCalls()
        simulator.simulateAdapterRemoval()
        program.expectCalls("advert Release")
    }

    func testChangedPropertiesAreAdvertised() {
        let (simulator, program) = scene([("Type", .string("peripheral")), ("ServiceUUIDs", .strings(["180d"]))])
        XCTAssertNil(program.advertise())
        program.say(
            "/advert", InterfaceName.advertisement,
            [NamedValue(name: "ServiceUUIDs", value: .strings(["180f"]))], invalidated: ["LocalName"])
        XCTAssertEqual(Hexadecimal.text(simulator.advertisements[0].data), "03030f18")
        // A change that is refused has no effect.
        program.say(
            "/advert", InterfaceName.advertisement, [NamedValue(name: "ServiceUUIDs", value: .strings(["heart"]))])
        XCTAssertEqual(Hexadecimal.text(simulator.advertisements[0].data), "03030f18")
    }

    func testDiscoverableEndsByItself() {
        let (simulator, program) = scene([
            ("Type", .string("peripheral")), ("Discoverable", .bool(true)), ("DiscoverableTimeout", .uint16(5)),
        ])
        XCTAssertNil(program.advertise())
        XCTAssertEqual(Hexadecimal.text(simulator.advertisements[0].data), "020105")
        simulator.advance(by: 6)
        XCTAssertEqual(simulator.advertisements[0].data, [])
    }

    func testAProgramThatLeavesTheBusTakesItsAdvertisementsAlong() {
        let (simulator, program) = scene([("Type", .string("peripheral"))])
        XCTAssertNil(program.advertise())
        program.client.connection.close()
        simulator.advance(by: 1)
        XCTAssertEqual(simulator.advertisements, [])
    }

    func testTheAdvertisedBytesAreReadAsTheirFields() {
        let report = AdvertisingReport(
            advertisingData: [2, 1, 6, 3, 3, 0x0D, 0x18, 5, 0xFF, 0x4C, 0, 2, 0x15, 3, 0x19, 0x41, 3, 2, 0x0A, 0xF4],
            scanResponse: [6, 9, 0x53, 0x74, 0x72, 0x61, 0x70, 9], isConnectable: true)
        XCTAssertEqual(
            report,
            AdvertisingReport(
                Advertisement(
                    localName: "Strap", serviceUUIDs: ["180d"], manufacturerData: [0x4C: [2, 0x15]], txPower: -12,
                    flags: 6, appearance: 833)))
    }
}
