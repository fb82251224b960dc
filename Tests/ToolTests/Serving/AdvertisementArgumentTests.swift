import ArgumentParser
import BlueCapKit
import XCTest

@testable import bluecap

final class AdvertisementArgumentTests: XCTestCase {
    func testManufacturerDataAndServiceData() {
        XCTAssertEqual(try Arguments.manufacturer("0x004C=0215").company, 0x4C)
        XCTAssertEqual(try Arguments.manufacturer("76=02 15").data, Data([2, 0x15]))
        XCTAssertEqual(try Arguments.manufacturer("0xFFFF=").data, Data())
        for wrong in ["", "=", "76", "x=01", "65536=01", "0x=01", "76=0", "+76=01", "76=0x", "76=-"] {
            XCTAssertThrowsError(try Arguments.manufacturer(wrong), wrong)
        }
        XCTAssertEqual(try Arguments.serviceData("180F=64").service, CBUUID(string: "180F"))
        XCTAssertEqual(try Arguments.serviceData("battery=64").data, Data([0x64]))
        XCTAssertThrowsError(try Arguments.serviceData("nothing=64"))
    }

    func testAppearancesByNumberAndByName() {
        XCTAssertEqual(try Arguments.appearance("0x00C0"), 0xC0)
        XCTAssertEqual(try Arguments.appearance("833"), 833)
        XCTAssertEqual(try Arguments.appearance("watch"), 0xC0)
        XCTAssertEqual(try Arguments.appearance("Mouse"), 0x3C2)
        XCTAssertThrowsError(try Arguments.appearance("spoon"))
    }

    func testIntervals() {
        XCTAssertEqual(try Arguments.interval("100"), 0.1...0.1)
        XCTAssertEqual(try Arguments.interval("100-200"), 0.1...0.2)
        for wrong in ["", "-", "0", "200-100", "1-2-3", "-100", "x", "nan", "inf"] {
            XCTAssertThrowsError(try Arguments.interval(wrong), wrong)
        }
    }

    // MARK: What goes into an advertisement

    func testAsManyServicesAreAnnouncedAsFit() throws {
        let services = PeripheralModel.builtin.flatMap(\.model.services).map(\.uuid)
        let (data, left) = AdvertisingPlan.announcing(services, name: "All", appearance: 0x0341)
        XCTAssertNoThrow(try data.check())
        XCTAssertEqual(data.serviceUUIDs.filter { $0.data.count == 2 }.count, 3)
        XCTAssertEqual(data.serviceUUIDs.count + left.count, services.count)
        XCTAssertNil(data.appearance, "a 128-bit UUID has priority over the appearance")
        let (small, none) = AdvertisingPlan.announcing([CBUUID(string: "180D")], name: "One", appearance: 0x0341)
        XCTAssertEqual(small.appearance, 0x0341)
        XCTAssertEqual(none, [])
    }

    func testTelemetryGrows() throws {
        let plan = AdvertisingPlan.telemetry(batteryMillivolts: 2950, temperature: 21.5)
        let change = try XCTUnwrap(plan.change)
        let frame = try XCTUnwrap(Eddystone.TLM(data: try XCTUnwrap(change.to(60).serviceData[Eddystone.service])))
        XCTAssertEqual(frame.uptime, 60)
        XCTAssertEqual(frame.batteryMillivolts, 2950)
        XCTAssertEqual(frame.temperature, 21.5)
        XCTAssertEqual(plan.data.kind, .broadcast)
    }

    // MARK: Commands

    private func beacons(_ arguments: String...) throws -> [Beacon] {
        let command = try XCTUnwrap(try BlueCapTool.parseAsRoot(["beacon"] + arguments) as? BeaconCommand)
        return try command.plans().flatMap {
            Beacon.all(manufacturerData: $0.data.manufacturerData, serviceData: $0.data.serviceData)
        }
    }

    private let owner = "B9407F30-F5F8-466E-AFF9-25556B57FE6D"

    func testTheOptionsSayWhichBeaconItIs() throws {
        let uuid = try XCTUnwrap(UUID(uuidString: owner))
        XCTAssertEqual(
            try beacons("--uuid", owner, "--major", "1", "--minor", "7", "--measured-power", "-62"),
            [.iBeacon(IBeacon(uuid: uuid, major: 1, minor: 7, measuredPower: -62))])
        XCTAssertEqual(
            try beacons("--uuid", owner, "--number", "65543"),
            [.altBeacon(AltBeacon(organization: uuid, number: 65_543))])
        XCTAssertEqual(
            try beacons("--url", "https://example.com/", "--telemetry").map(\.kind), [.eddystoneURL, .eddystoneTLM])
        XCTAssertEqual(
            try beacons("--namespace", "00112233445566778899", "--instance", "000000000001").first?.measuredPower, -59)
    }

    func testBeaconsThatAreNoneAreSaid() {
        for (arguments, part) in [
            ([], "Say which beacon"), (["--major", "1"], "add --uuid"), (["--uuid", "x"], "looks like B9407F30"),
            (["--uuid", owner, "--url", "https://a.b/"], "give one"),
            (["--uuid", owner, "--number", "1", "--minor", "2"], "one kind"),
            (["--url", "ftp://a.b/"], "not a link"),
            (["--url", "https://a-very-long-name-of-a-host.example/x"], "not a link"),
            (["--namespace", "00"], "takes both"), (["--battery", "3000", "--uuid", owner], "add --telemetry"),
            (["--uuid", owner, "--major", "65536"], "--major"),
        ] {
            expectRefusal(of: ["beacon"] + arguments, part)
        }
    }

    func testAnAdvertisementIsWhatTheOptionsSay() throws {
        let arguments = [
            "advertise", "--name", "Tag", "--service", "180F", "--manufacturer", "0xFFFF=0102", "--appearance", "Tag",
            "--interval", "100-200", "--tx-power", "-4", "--service-data", "181A=5908",
        ]
        let data = try XCTUnwrap(try BlueCapTool.parseAsRoot(arguments) as? AdvertiseCommand).data
        XCTAssertEqual(data.localName, "Tag")
        XCTAssertEqual(data.serviceUUIDs, [CBUUID(string: "180F")])
        XCTAssertEqual(data.manufacturerData, [0xFFFF: Data([1, 2])])
        XCTAssertEqual(data.serviceData, [CBUUID(string: "181A"): Data([0x59, 8])])
        XCTAssertEqual(data.appearance, 0x200)
        XCTAssertEqual(data.interval, .milliseconds(100) ... .milliseconds(200))
        XCTAssertEqual(data.txPower, -4)
        XCTAssertTrue(data.includesTxPower && data.isDiscoverable)
        XCTAssertEqual(data.kind, .connectable)
    }

    func testAnAdvertisementThatDoesNotFitSaysWhatIsTooLong() {
        let long = String(repeating: "0", count: 60)
        for (arguments, part) in [
            (["--name", long], "name is 31 bytes too long"), (["--manufacturer", "1=" + long], "manufacturer data"),
            (["--service", owner, "--service", "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"], "fewer services"),
            ([], "Say what to advertise"), (["--service-data", "180F=01", "--service-data", "180F=02"], "twice"),
            (["--name", "x", "--tx-power", "21"], "-127 to 20"), (["--name", "x", "--interval", "5"], "20 to 10240"),
        ] {
            expectRefusal(of: ["advertise"] + arguments, part)
        }
    }
}
