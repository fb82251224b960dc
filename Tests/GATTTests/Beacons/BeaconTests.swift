import TestBasics
import XCTest

@testable import BlueCapGATT

final class BeaconTests: RandomTestCase {
    private let floor = UUID(uuidString: "F7826DA6-4FA2-4E98-8024-BC5B71E0893E") ?? UUID()
    private let floorBytes: [UInt8] = [
        0xF7, 0x82, 0x6D, 0xA6, 0x4F, 0xA2, 0x4E, 0x98, 0x80, 0x24, 0xBC, 0x5B, 0x71, 0xE0, 0x89, 0x3E,
    ]

    private func frame(_ bytes: [UInt8]) -> Beacon? {
        Beacon(service: CBUUID(string: "FEAA"), serviceData: Data(bytes))
    }

    // MARK: iBeacon and AltBeacon

    func testAnIBeaconIsWrittenAndReadByteForByte() {
        let beacon = IBeacon(uuid: floor, major: 0x0102, minor: 0xFF07, measuredPower: -59)
        XCTAssertEqual([UInt8](beacon.data), [0x02, 0x15] + floorBytes + [0x01, 0x02, 0xFF, 0x07, 0xC5])
        XCTAssertEqual(Beacon(company: 0x004C, manufacturerData: beacon.data), .iBeacon(beacon))
        XCTAssertEqual(Beacon.iBeacon(beacon).measuredPower, -59)
    }

    func testAUUIDOnBluetoothsBaseTakesSixteenBytesToo() {
        let beacon = IBeacon(uuid: CBUUID(string: "180D").nsuuid, major: 0, minor: 0)
        XCTAssertEqual(beacon.data.count, 23)
        XCTAssertEqual(IBeacon(data: beacon.data), beacon)
    }

    func testAnAltBeaconIsWrittenAndReadByteForByte() {
        let beacon = AltBeacon(
            company: 0x0118, organization: floor, number: 0x0001_0007, measuredPower: -66, manufacturerReserved: 9)
        XCTAssertEqual([UInt8](beacon.data), [0xBE, 0xAC] + floorBytes + [0x00, 0x01, 0x00, 0x07, 0xBE, 0x09])
        XCTAssertEqual(Beacon(company: 0x0118, manufacturerData: beacon.data), .altBeacon(beacon))
        XCTAssertEqual(Beacon(company: 0x004C, manufacturerData: beacon.data)?.kind, .altBeacon)
    }

    func testASliceOfDataIsReadAsItsBytes() {
        let beacon = IBeacon(uuid: floor, major: 1, minor: 7)
        XCTAssertEqual(IBeacon(data: (Data([0x4C, 0x00]) + beacon.data).dropFirst(2)), beacon)
    }

    func testAnIBeaconOfAnotherCompanyIsNone() {
        XCTAssertNil(Beacon(company: 0x0006, manufacturerData: IBeacon(uuid: floor, major: 1, minor: 7).data))
    }

    // MARK: Eddystone

    func testAUIDFrameIsWrittenAndReadByteForByte() throws {
        let frame = try XCTUnwrap(
            Eddystone.UID(
                namespace: Data(0x10...0x19), instance: Data(0xA0...0xA5), powerAtZeroMetres: -18))
        XCTAssertEqual(
            [UInt8](frame.data), [0x00, 0xEE] + Array(0x10...0x19) + Array(0xA0...0xA5) + [0x00, 0x00])
        XCTAssertEqual(self.frame([UInt8](frame.data)), .eddystoneUID(frame))
        XCTAssertEqual(
            self.frame([UInt8](frame.data.prefix(18))), .eddystoneUID(frame), "the reserved bytes may be missing")
        XCTAssertEqual(Beacon.eddystoneUID(frame).measuredPower, -59)
    }

    func testAUIDHasTenBytesAndSix() {
        XCTAssertNil(Eddystone.UID(namespace: Data(count: 9), instance: Data(count: 6)))
        XCTAssertNil(Eddystone.UID(namespace: Data(count: 10), instance: Data(count: 7)))
    }

    func testEachSchemeAndExpansionIsWrittenAndRead() throws {
        let schemes = ["http://www.", "https://www.", "http://", "https://"]
        let expansions = [
            ".com/", ".org/", ".edu/", ".net/", ".info/", ".biz/", ".gov/", ".com", ".org", ".edu", ".net", ".info",
            ".biz", ".gov",
        ]
        for (scheme, beginning) in schemes.enumerated() {
            for (code, ending) in expansions.enumerated() {
                let link = try XCTUnwrap(Eddystone.URL("\(beginning)a\(ending)", powerAtZeroMetres: 4))
                XCTAssertEqual([UInt8](link.data), [0x10, 0x04, UInt8(scheme), 0x61, UInt8(code)])
                XCTAssertEqual(Eddystone.URL(data: link.data), link)
            }
        }
    }

    func testAFrameOfAnotherMakerIsRead() throws {
        // A vendor's example of its configuration, http://www.minewtech.com.
        let bytes: [UInt8] = [0x10, 0x04, 0x00, 0x6D, 0x69, 0x6E, 0x65, 0x77, 0x74, 0x65, 0x63, 0x68, 0x07]
        let link = try XCTUnwrap(Eddystone.URL(data: Data(bytes)))
        XCTAssertEqual(link.text, "http://www.minewtech.com")
        XCTAssertEqual([UInt8](link.data), bytes)
    }

    func testALongerSpellingIsReadAndWrittenShort() throws {
        let spelled = try XCTUnwrap(Eddystone.URL(data: Data([0x10, 0x00, 0x03] + Array("a.com/b".utf8))))
        XCTAssertEqual([UInt8](spelled.data), [0x10, 0x00, 0x03, 0x61, 0x00, 0x62])
        let bare = try XCTUnwrap(Eddystone.URL(data: Data([0x10, 0x00, 0x02] + Array("www.".utf8))))
        XCTAssertEqual(bare.text, "http://www.")
        XCTAssertEqual(Eddystone.URL(data: bare.data), bare)
    }

    func testALinkThatNoFrameCanSayIsNil() {
        for text in ["", "https://", "ftp://a.com", "goo.gl/x", "https://a b", "https://é.com", "https://a\n"] {
            XCTAssertNil(Eddystone.URL(text), text)
        }
        XCTAssertNotNil(Eddystone.URL("https://" + String(repeating: "a", count: 17)))
        XCTAssertNil(Eddystone.URL("https://" + String(repeating: "a", count: 18)))
    }

    func testTelemetryIsWrittenAndReadByteForByte() {
        let bytes: [UInt8] = [0x20, 0x00, 0x0B, 0xB8, 0x15, 0x80, 0x00, 0x01, 0x00, 0x02, 0x00, 0x00, 0x02, 0x5D]
        let telemetry = Eddystone.TLM(
            batteryMillivolts: 3_000, temperature: 21.5, advertisementCount: 0x0001_0002, tenthsOfUptime: 605)
        XCTAssertEqual([UInt8](telemetry.data), bytes)
        XCTAssertEqual(frame(bytes), .eddystoneTLM(telemetry))
        XCTAssertEqual(telemetry.uptime, 60.5)
        XCTAssertNil(Beacon.eddystoneTLM(telemetry).measuredPower)
    }

    func testTelemetryThatIsNotMeasuredIsNil() {
        let telemetry = Eddystone.TLM(data: Data([0x20, 0x00, 0, 0, 0x80, 0x00, 0, 0, 0, 0, 0, 0, 0, 0]))
        XCTAssertEqual(telemetry, Eddystone.TLM(advertisementCount: 0, tenthsOfUptime: 0))
        XCTAssertNil(telemetry?.batteryMillivolts)
        XCTAssertNil(telemetry?.temperature)
    }

    func testATemperatureThatDoesNotFitIsTheNearestThatDoes() {
        func kept(_ degrees: Double) -> Double? {
            Eddystone.TLM(temperature: degrees, advertisementCount: 0, tenthsOfUptime: 0).temperature
        }
        XCTAssertEqual(kept(-0.5), -0.5)
        XCTAssertEqual(kept(.infinity), 32_767.0 / 256)
        XCTAssertEqual(kept(-1_000), -32_767.0 / 256)
        XCTAssertNil(kept(.nan))
    }

    // MARK: What is no beacon

    func testWhateverIsMalformedIsNil() throws {
        let whole: [(UInt16, Data)] = [
            (0x004C, IBeacon(uuid: floor, major: 1, minor: 7).data),
            (0x0118, AltBeacon(organization: floor, number: 7).data),
        ]
        for (company, data) in whole {
            for count in 0..<data.count {
                XCTAssertNil(Beacon(company: company, manufacturerData: data.prefix(count)), "\(count) bytes")
            }
            let beacon = Beacon(company: company, manufacturerData: data)
            XCTAssertEqual(
                Beacon(company: company, manufacturerData: data + Data([0xBB])), beacon, "what follows is ignored")
        }
        for bytes: [UInt8] in [
            [], [0x00], [0x10], [0x10, 0, 3], [0x10, 0, 4, 0x61], [0x10, 0, 3, 0x20], [0x10, 0, 3, 0x0E],
            [0x10, 0, 3, 0x7F], [0x10, 0, 3] + Array(repeating: 0x61, count: 18), [0x20, 0x00],
            [0x20, 0x01] + Array(repeating: 0, count: 12),
            [0x30] + Array(repeating: 0, count: 9), Array(repeating: 0, count: 17),
        ] {
            XCTAssertNil(frame(bytes), "\(bytes)")
        }
        XCTAssertNil(Beacon(service: CBUUID(string: "180D"), serviceData: Data([0x10, 0, 3, 0x61])))
    }

    func testAnyBytesAreReadOrRefusedAndNeverTrap() {
        var random = TestRandom(self)
        for _ in 0..<20_000 {
            let bytes = random.bytes(random.below(26))
            for first: UInt8 in [0x00, 0x10, 0x20] {
                guard let beacon = frame([first] + bytes) else { continue }
                switch beacon {
                case .eddystoneUID(let frame): XCTAssertEqual(Eddystone.UID(data: frame.data), frame)
                case .eddystoneURL(let frame): XCTAssertEqual(Eddystone.URL(data: frame.data), frame)
                case .eddystoneTLM(let frame): XCTAssertEqual(frame.data, Data([first] + bytes.prefix(13)))
                case .iBeacon, .altBeacon: XCTFail("\(beacon)")
                }
            }
            _ = Beacon(company: 0x004C, manufacturerData: Data([0x02, 0x15] + bytes))
        }
    }

    // MARK: All of a peripheral's, and filters

    func testAllThatAPeripheralSendsIsFound() throws {
        let beacon = IBeacon(uuid: floor, major: 1, minor: 7)
        let other = AltBeacon(organization: floor, number: 7)
        let link = try XCTUnwrap(Eddystone.URL("https://goo.gl/room4"))
        XCTAssertEqual(
            Beacon.all(
                manufacturerData: [0x0118: other.data, 0x004C: beacon.data, 0x0006: Data([1])],
                serviceData: [Eddystone.service: link.data, CBUUID(string: "180F"): Data([90])]),
            [.iBeacon(beacon), .altBeacon(other), .eddystoneURL(link)])
    }

    func testAFilterAsksForAFormatAnOwnerOrOneBeacon() throws {
        let beacon = Beacon.iBeacon(IBeacon(uuid: floor, major: 1, minor: 7))
        XCTAssertTrue(BeaconFilter.kind(.iBeacon).accepts(beacon))
        XCTAssertFalse(BeaconFilter.kind(.altBeacon).accepts(beacon))
        XCTAssertTrue(BeaconFilter.iBeacon(floor).accepts(beacon))
        XCTAssertTrue(BeaconFilter.iBeacon(floor, major: 1, minor: 7).accepts(beacon))
        XCTAssertFalse(BeaconFilter.iBeacon(floor, major: 2).accepts(beacon))
        XCTAssertFalse(BeaconFilter.iBeacon(floor, minor: 8).accepts(beacon))
        XCTAssertFalse(BeaconFilter.iBeacon(CBUUID(0x180D).nsuuid).accepts(beacon))
        XCTAssertFalse(BeaconFilter.altBeacon(floor).accepts(beacon))

        let frame = try XCTUnwrap(Eddystone.UID(namespace: Data(0..<10), instance: Data(0..<6)))
        XCTAssertTrue(BeaconFilter.eddystone(namespace: Data(0..<10)).accepts(.eddystoneUID(frame)))
        XCTAssertFalse(
            BeaconFilter.eddystone(namespace: Data(0..<10), instance: Data(1..<7)).accepts(.eddystoneUID(frame)))
        XCTAssertTrue(
            BeaconFilter.altBeacon(floor, number: 7).accepts(.altBeacon(AltBeacon(organization: floor, number: 7))))
    }
}
