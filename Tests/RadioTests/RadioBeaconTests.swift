import BlueCapKit
import TestSupport
import XCTest

/// Our advertisements, received by btmon, and beacons of another program, received by us.
final class RadioBeaconTests: XCTestCase, StagePlayer {
    let journal = Journal()
    let limit: TimeInterval = 60
    private var stage: RadioStage?
    var ground: any ScanStage { stage! }

    override func setUpWithError() throws { stage = try RadioStage() }
    override func tearDownWithError() throws { try RadioLab.reset() }

    private static let id = UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF") ?? UUID()
    private static let idText = "00112233445566778899aabbccddeeff"

    private static let uid = Eddystone.UID(
        namespace: Data(bytes("00112233445566778899")), instance: Data(bytes("0a0b0c0d0e0f")), powerAtZeroMetres: -18)
    private static let url = Eddystone.URL("https://example.com/oven", powerAtZeroMetres: -18)
    private static let tlm = Eddystone.TLM(
        batteryMillivolts: 3000, temperature: 21.5, advertisementCount: 0x0102_0304, tenthsOfUptime: 1000)

    // MARK: Our advertisements

    private func manager() -> PeripheralManager {
        let manager = try! PeripheralManager(configuration: .init(adapter: "hci1"))
        journal.watchStates(of: manager)
        expect("power") { $0.states.contains(.poweredOn) }
        return manager
    }

    /// Returns what btmon receives of the only advertisement: "advertisement" or "response", and the bytes.
    private func received() throws -> Set<String> {
        let lines = try RadioLab.order(.server, "air", "hci0").split(separator: "\n")
        return Set(lines.map { $0.split(separator: " ").dropFirst().joined(separator: " ") })
    }

    private func assertReceived(
        _ data: AdvertisingData, _ manager: PeripheralManager, _ expected: Set<String>, file: StaticString = #filePath,
        line: UInt = #line
    ) throws {
        let advertisement = try outcome(of: manager.startAdvertising(data))
        // A scan response of nothing is one as well.
        let received = try received().subtracting(["response", "response "])
        XCTAssertEqual(received, expected, file: file, line: line)
        try outcome(of: advertisement.stop())
    }

    func testOtherProgramsReceiveOurBeaconsByteForByte() throws {
        let manager = manager()
        let apple = "1aff4c000215" + Self.idText + "01020304c5"
        try assertReceived(
            AdvertisingData(IBeacon(uuid: Self.id, major: 0x0102, minor: 0x0304)), manager, ["advertisement " + apple])
        let alt = AltBeacon(
            company: 0x0118, organization: Self.id, number: 0x0102_0304, measuredPower: -59, manufacturerReserved: 7)
        try assertReceived(
            AdvertisingData(alt), manager, ["advertisement 1bff1801beac" + Self.idText + "01020304c507"])

        let service = "0303aafe"
        let uid = try XCTUnwrap(Self.uid)
        try assertReceived(
            AdvertisingData(uid), manager,
            ["advertisement " + service + "1716aafe00ee001122334455667788990a0b0c0d0e0f0000"])
        let url = try XCTUnwrap(Self.url)
        // 03: https://, 00: .com/
        try assertReceived(
            AdvertisingData(url), manager,
            ["advertisement " + service + "1216aafe10ee03" + "6578616d706c65" + "00" + "6f76656e"])
        // 3 000 mV, 21.5 °C with eight bits behind the point, the count, tenths of seconds.
        try assertReceived(
            AdvertisingData(Self.tlm), manager, ["advertisement " + service + "1116aafe20000bb8158001020304000003e8"])
    }

    func testOtherProgramsReceiveOurOtherAdvertisementsByteForByte() throws {
        let manager = manager()
        var data = AdvertisingData(localName: "Küche", serviceUUIDs: [CBUUID(string: "180D"), CBUUID(string: "180F")])
        data.manufacturerData = [0xFFFF: Data([1, 2])]
        data.serviceData = [CBUUID(string: "180F"): Data([0x64])]
        try assertReceived(
            data, manager,
            [
                "advertisement 05030d180f1805ffffff010204160f1864020106", "response 07094bc3bc636865",
            ])
        let long = "c0000001-0000-4000-8000-00805f9b34fb"
        try assertReceived(
            AdvertisingData(localName: "Oven", serviceUUIDs: [CBUUID(string: long)]), manager,
            ["advertisement 1107fb349b5f800000800040000001" + "0000c0020106", "response 05094f76656e"])
    }

    func testARegionIsReceivedAsItsBeacon() throws {
        let manager = manager()
        let region = BeaconRegion(proximityUUID: Self.id, identifier: "kitchen", major: 1, minor: 2)
        try outcome(of: manager.startAdvertising(region))
        let power = hex([UInt8(bitPattern: region.measuredPower)])
        XCTAssertEqual(
            try received().subtracting(["response"]), ["advertisement 1aff4c000215" + Self.idText + "00010002" + power])
        try outcome(of: manager.stopAdvertising())
    }

    // MARK: Others', ranged by us

    private func assertRanged(
        _ arguments: [String], _ beacon: Beacon, file: StaticString = #filePath, line: UInt = #line
    ) throws {
        try RadioLab.order(.server, ["advertise", "hci1", "Beacon"] + arguments)
        let manager = try CentralManager(configuration: .init(adapter: "hci0"))
        let sightings = Journal()
        sightings.watchStates(of: manager)
        XCTAssertTrue(ground.wait(sightings, limit: 30) { $0.states.contains(.poweredOn) }, manager.stateExplanation)
        manager.startRangingBeacons([.kind(beacon.kind)]).onSuccess(context: ImmediateContext()) { sighting in
            sightings.write { $0.beacons.append(sighting.beacon) }
        }
        XCTAssertTrue(
            ground.wait(sightings, limit: 30) { $0.beacons.contains(beacon) }, "\(beacon)", file: file, line: line)
        manager.stopRangingBeacons()
        try RadioLab.order(.server, "silence", "hci1")
    }

    func testForeignBeaconsAreRanged() throws {
        try assertRanged(
            ["--manufacturer", "0x004C=0215" + Self.idText + "00010002C5"],
            .iBeacon(IBeacon(uuid: Self.id, major: 1, minor: 2)))
        try assertRanged(
            ["--manufacturer", "0x0118=BEAC" + Self.idText + "01020304C507"],
            .altBeacon(
                AltBeacon(
                    company: 0x0118, organization: Self.id, number: 0x0102_0304, measuredPower: -59,
                    manufacturerReserved: 7)))
        try assertRanged(
            ["--service", "FEAA", "--service-data", "FEAA=00EE001122334455667788990A0B0C0D0E0F0000"],
            .eddystoneUID(try XCTUnwrap(Self.uid)))
        try assertRanged(
            ["--service", "FEAA", "--service-data", "FEAA=20000BB8158001020304000003E8"], .eddystoneTLM(Self.tlm))
    }
}
