import BlueCapKit
import XCTest

@testable import bluecap

final class ServingEventTests: XCTestCase {
    private let date = Date(timeIntervalSince1970: 1_700_000_000.125)
    private let level = ServingEvent.Attribute(
        service: CBUUID(string: "180F"), uuid: CBUUID(string: "2A19"), name: "Battery Level")
    private let who = ServingEvent.Who("C0:FF:EE:00:CE:01")
    private let value = AttributeValue(
        Data([100]),
        profile: ProfileManager.ready.service(CBUUID(string: "180F"))?.characteristic(CBUUID(string: "2A19")))

    private func text(_ event: ServingEvent) -> String? {
        event.line(.lines, at: date, in: .gmt)
    }

    private func json(_ event: ServingEvent) -> String? { event.line(.json, at: date) }

    func testForPeopleEachEventIsALineWithTheCentral() {
        XCTAssertEqual(text(.read(level, value, who)), "22:13:20.125  C0:FF:EE:00:CE:01  read Battery Level: 100 %")
        XCTAssertEqual(
            text(.subscribed(level, .init(nil))), "22:13:20.125  a central          subscribed to Battery Level")
        XCTAssertEqual(
            text(.written(level, AttributeValue(Data()), who, .writeNotPermitted)),
            "22:13:20.125  C0:FF:EE:00:CE:01  wrote Battery Level: (empty); refused: write not permitted (0x03)")
        XCTAssertEqual(text(.connected(who)), "22:13:20.125  C0:FF:EE:00:CE:01  connected")
        XCTAssertNil(text(.finished(.init())))
    }

    func testForProgramsEachEventIsAnObjectWithTheSameMembers() {
        let head = #""time":"2023-11-14T22:13:20.125Z","central":"C0:FF:EE:00:CE:01","service":"180F","#
        let tail = #""characteristic":"2A19","name":"Battery Level""#
        let bytes =
            #","value":"64","fields":{"Battery Level":"100 %"},"quantities":{"Battery Level":{"value":100,"unit":"%"}}"#
        XCTAssertEqual(json(.subscribed(level, who)), #"{"event":"subscribed","# + head + tail + "}")
        XCTAssertEqual(json(.read(level, value, who)), #"{"event":"read","# + head + tail + bytes + "}")
        XCTAssertEqual(
            json(.written(level, value, who, .success)),
            #"{"event":"write","# + head + tail + bytes + #","error":null}"#)
        XCTAssertTrue(json(.unsubscribed(level, .init(nil)))?.contains(#""central":null"#) == true)
        XCTAssertEqual(
            json(.sent(level, value)),
            #"{"event":"update","time":"2023-11-14T22:13:20.125Z","service":"180F","# + tail + bytes + "}")
    }

    func testTheBeginningSaysWhatIsOfferedAndTheEndWhatHappened() {
        var summary = ServingEvent.Summary()
        let serving = ServingEvent.serving(
            services: [.init(uuid: CBUUID(string: "180F"), name: "Battery", characteristics: [])],
            advertisements: [AdvertisingData(localName: "Desk")])
        XCTAssertEqual(serving.remark(.lines), #"Serving Battery as "Desk". Ctrl-C ends it."#)
        for event in [
            serving, .connected(who), .subscribed(level, who), .read(level, value, who), .read(level, value, who),
        ] {
            summary.count(event)
        }
        summary.seconds = 3.04
        XCTAssertEqual(
            ServingEvent.finished(summary).remark(.lines),
            "1 connection, 1 subscription, 2 reads, 0 writes, 0 updates in 3.0 s")
        XCTAssertEqual(
            json(.finished(summary)),
            #"{"event":"finished","connections":1,"subscriptions":1,"reads":2,"writes":0,"updates":0,"seconds":3.040}"#)
        XCTAssertNil(ServingEvent.finished(summary).remark(.json))
    }

    func testAnAdvertisementIsPutInWords() throws {
        var data = AdvertisingData(localName: "Desk\u{1B}", serviceUUIDs: [CBUUID(string: "180F")])
        data.manufacturerData = [0x1234: Data([1])]
        data.appearance = 0xC0
        XCTAssertEqual(
            data.line, "\"Desk\\u{1B}\", Battery, data of company 0x1234, Watch")
        let uuid = try XCTUnwrap(UUID(uuidString: "B9407F30-F5F8-466E-AFF9-25556B57FE6D"))
        let beacon = AdvertisingData(IBeacon(uuid: uuid, major: 1, minor: 7))
        XCTAssertEqual(beacon.line, "iBeacon B9407F30-F5F8-466E-AFF9-25556B57FE6D 1/7")
        XCTAssertEqual(
            beacon.json.text,
            #"{"name":null,"services":[],"solicitedServices":[],"manufacturerData":{"76":"#
                + #""0215b9407f30f5f8466eaff925556b57fe6d00010007c5"},"serviceData":{},"appearance":null,"#
                + #""connectable":false,"bytes":27,"scanResponseBytes":0,"beacons":[{"kind":"iBeacon","uuid":"#
                + #""B9407F30-F5F8-466E-AFF9-25556B57FE6D","major":1,"minor":7,"measuredPower":-59}]}"#)
    }

    func testEachKindOfBeaconHasItsWords() throws {
        let uuid = try XCTUnwrap(UUID(uuidString: "B9407F30-F5F8-466E-AFF9-25556B57FE6D"))
        let identity = try XCTUnwrap(Eddystone.UID(namespace: Data(count: 10), instance: Data(repeating: 1, count: 6)))
        let telemetry = Eddystone.TLM(
            batteryMillivolts: 2950, temperature: 21.5, advertisementCount: 12, tenthsOfUptime: 300)
        for (beacon, text) in [
            (.altBeacon(AltBeacon(organization: uuid, number: 9)), "AltBeacon \(uuid.uuidString) 9"),
            (.eddystoneUID(identity), "Eddystone 00000000000000000000/010101010101"),
            (.eddystoneURL(try XCTUnwrap(Eddystone.URL("https://a.b/"))), "Eddystone https://a.b/"),
            (.eddystoneTLM(telemetry), "Eddystone telemetry, 2950 mV, 21.5 °C, up 30.0 s"),
        ] as [(Beacon, String)] {
            XCTAssertEqual(beacon.line, text)
            XCTAssertTrue(beacon.json.text.hasPrefix(#"{"kind":"\#(beacon.kind.rawValue)","#))
        }
        XCTAssertEqual(
            Beacon.eddystoneTLM(telemetry).json.text,
            #"{"kind":"eddystoneTLM","batteryMillivolts":2950,"temperature":21.5,"advertisements":12,"uptime":30.000}"#
        )
    }
}
