import BlueCapKit
import Foundation
import GatewayCore
import XCTest

final class SchemaTests: XCTestCase {
    private let time = Date(timeIntervalSince1970: 1_772_366_400.25)

    /// The payload with the members that the store puts before it.
    private func stored(_ payload: some StoredPayload, _ extra: String = "") -> String {
        let body = String(decoding: payload.json, as: UTF8.self).dropFirst()
        return #"{"sequence":1,"time":"2026-03-01T12:00:00.250Z"\#(extra)"# + (body == "}" ? "" : ",") + body
    }

    private func text(_ payload: some Payload) -> String { String(decoding: payload.json, as: UTF8.self) }

    /// The file's examples of what each type encodes, and of what each schema refuses.
    private func cases() throws -> [(schema: String, isValid: Bool, payload: String)] {
        let device = try XCTUnwrap(DeviceName("c0ffee00180d"))
        let uuid = try XCTUnwrap(UUID(uuidString: "E2C56DB5-DFFB-48D2-B060-D0F5A71096E0"))
        var cases: [(schema: String, isValid: Bool, payload: String)] = []
        func valid(_ schema: String, _ payload: String) { cases.append((schema, true, payload)) }
        func wrong(_ schema: String, _ payloads: String...) { cases += payloads.map { (schema, false, $0) } }

        let state = GatewayStatePayload(
            state: .online, gateway: "attic", version: "1", scanning: true, links: 0, time: time)
        valid("gateway-state", text(state))
        valid("gateway-state", text(GatewayStatePayload(state: .offline, gateway: "attic", version: "1", time: time)))
        wrong(
            "gateway-state", "{}", text(state).replacing("online", with: "on"),
            text(state).replacing("attic", with: "a/b"))

        let frames: [Beacon?] = [
            .iBeacon(IBeacon(uuid: uuid, major: 1, minor: 65_535)),
            Eddystone.UID(namespace: Data(count: 10), instance: Data(count: 6)).map { .eddystoneUID($0) },
            Eddystone.URL("https://example.org/").map { .eddystoneURL($0) },
        ]
        let advertisements = PeripheralAdvertisements(
            localName: "Strap\u{0}", manufacturerDataByCompany: [0xFFFF: Data([1]), 0: Data()], txPower: 4,
            serviceUUIDs: [CBUUID(string: "180F"), CBUUID(nsuuid: uuid)], serviceData: [CBUUID(nsuuid: uuid): Data([1])]
        )
        var advertisement = AdvertisementPayload(device: device, advertisements: advertisements, rssi: -61, time: time)
        advertisement.beacons = frames.compactMap { $0.map(BeaconPayload.init) }
        XCTAssertEqual(advertisement.beacons?.count, 3)
        valid("advertisement", text(advertisement))
        valid(
            "advertisement",
            text(AdvertisementPayload(device: device, advertisements: .init(localName: "\u{0}"), rssi: nil, time: time))
        )
        wrong(
            "advertisement", "{}", text(advertisement).replacing("C0:FF", with: "c0:ff"),
            text(advertisement).replacing("\"rssi\"", with: "\"strength\""),
            text(advertisement).replacing("iBeacon", with: "x"))

        let reading = ReadingPayload(
            format: "bthome_v2", rssi: -60,
            readings: [
                .init("temperature_1", .number(21.5), unit: "°C"), .init("motion", .flag(true)),
                .init("text", PayloadValue("x")),
            ])
        valid("reading", stored(reading))
        valid("reading", stored(reading, #","repeated":true,"dropped":7,"restarted":true"#))
        valid("reading", stored(ReadingPayload(format: "x", readings: [])))
        wrong(
            "reading", text(reading), stored(reading, #","repeated":false"#), stored(reading, #","dropped":0"#),
            stored(reading).replacing("\"sequence\":1", with: "\"sequence\":0"),
            stored(reading).replacing("21.5", with: "null"),
            stored(reading).replacing("temperature_1", with: "Temperature"), stored(reading, #","more":1"#))

        let battery = ValueDecoder(service: CBUUID(string: "180F"), characteristic: CBUUID(string: "2A19"))
        let value = ValuePayload(Data([64]), source: .read, decoder: battery)
        XCTAssertNotNil(value.decoded)
        valid("value", stored(value))
        valid("value", stored(ValuePayload(Data(), source: .notify)))
        valid("value", stored(ValuePayload(Data(count: 512), source: .notify)))
        wrong(
            "value", text(value), stored(value).replacing("\"40\"", with: "\"4\""),
            stored(value).replacing("\"40\"", with: "\"AB\""), stored(value).replacing("read", with: "written"))

        for reason in GapPayload.Reason.allCases { valid("gap", stored(GapPayload(reason: reason))) }
        wrong(
            "gap", text(GapPayload(reason: .linkLost)),
            stored(GapPayload(reason: .linkLost)).replacing("linkLost", with: "x"))

        for state in LinkPayload.State.allCases {
            valid(
                "link", text(LinkPayload(device: device, name: "x", state: state, reason: "y", rssi: -40, time: time)))
        }
        let link = text(LinkPayload(device: device, state: .connected, time: time))
        valid("link", link)
        wrong("link", link.replacing("connected", with: "up"), link.replacing("250Z", with: "25Z"), "[]")

        // The type has no public initializer: `HomeAssistant` creates its values.
        var homeAssistant = HomeAssistant(
            .init(prefix: "homeassistant", absentAfter: .seconds(300), removeAfter: .seconds(86_400)),
            topics: Topics(prefix: "bluecap", gateway: "attic"), deviceLimit: 10, version: "1")
        homeAssistant.handle(.connected, at: .zero, date: time)
        homeAssistant.handle(.reading(device, reading), at: .seconds(1), date: time)
        homeAssistant.handle(.link(device, name: "x", isConnected: true), at: .seconds(2), date: time)
        let states = homeAssistant.pending(limit: 10, at: .seconds(3)).map(\.message)
        let payload = try XCTUnwrap(states.first { $0.topic == "bluecap/device/c0ffee00180d" }).payload
        let example = String(decoding: payload, as: UTF8.self)
        valid("device", example)
        wrong(
            "device", example.replacing("\"sensor/", with: "\"light/"), example.replacing("\"present\":true,", with: "")
        )

        // Requests: what the schema says is what the decoder accepts.
        let topics = Topics(prefix: "bluecap", gateway: "attic")
        let characteristic = #""peripheral":"x","service":"180d","characteristic":"2A37""#
        for (isValid, members) in [
            (true, #""command":"scanOn""#), (true, #""command":"scanOff","replyTo":"bluecap/reply/x""#),
            (true, #""command":"connect","peripheral":"C0:FF:EE:00:18:0D""#),
            (true, #""command":"disconnect","peripheral":"x""#), (true, #""command":"read",\#(characteristic)"#),
            (true, #""command":"subscribe",\#(characteristic)"#),
            (true, #""command":"unsubscribe",\#(characteristic)"#),
            (true, #""command":"write",\#(characteristic),"value":"01fF""#),
            (true, #""command":"write",\#(characteristic),"value":"""#), (false, #""command":"read""#),
            (false, #""command":"x""#),
            (false, #""command":"scanOn","peripheral":"x""#), (false, #""command":"connect""#),
            (false, #""command":"write",\#(characteristic)"#),
            (false, #""command":"write",\#(characteristic),"value":"0""#),
            (false, #""command":"read",\#(characteristic),"value":"00""#),
            (false, #""command":"scanOn","replyTo":"a/b""#),
            (false, #""command":"scanOn","replyTo":"bluecap/+/reply""#), (false, #""command":"scanOn","more":1"#),
        ] {
            let json = "{\"id\":\"1\",\(members)}"
            cases.append(("command", isValid, json))
            XCTAssertEqual((try? CommandRequest(json: Data(json.utf8), topics: topics)) != nil, isValid, json)
        }

        let request = try CommandRequest(json: Data(#"{"id":"1","command":"scanOn"}"#.utf8), topics: topics)
        valid("reply", text(CommandReply(to: request, gateway: "attic", time: time)))
        valid("reply", text(CommandReply(to: request, gateway: "attic", result: .init(value), time: time)))
        for code in CommandReply.Code.allCases {
            let reply = CommandReply(to: request, gateway: "attic", failure: .init(code, "x"), time: time)
            valid("reply", text(reply))
            wrong("reply", text(reply).replacing("\"\(code)\"", with: "\"code\""))
        }
        do throws(CommandRequestError) {
            _ = try CommandRequest(json: Data("{".utf8), topics: topics)
        } catch {
            valid("reply", text(CommandReply(to: error, gateway: "attic", time: time)))
        }
        wrong("reply", #"{"id":"1","gateway":"attic","time":"2026-03-01T12:00:00.250Z"}"#)

        for state in Claim.State.allCases {
            let claim = Claim(
                state, strength: state == .wants ? nil : -127, bid: 20, freeLinks: 5,
                successor: state == .yields ? "attic" : nil, session: .max, number: 1)
            valid("claim", String(decoding: claim.payload, as: UTF8.self))
        }
        // What the schema refuses is no claim either. It refuses unknown members too, which later versions may have.
        let claim = try XCTUnwrap(try Self.examples("claim").first)
        for payload in [
            "{}", claim.replacing("holds", with: "has"), claim.replacing("-61.5", with: "21"),
            claim.replacing("-63", with: "-128"), claim.replacing("38211", with: "-1"),
            claim.replacing("\"version\":1", with: "\"version\":0"),
        ] {
            wrong("claim", payload)
            XCTAssertThrowsError(try Claim.decode(Data(payload.utf8)), payload)
        }

        var entities: [BrokerMessage] = []
        for second in 4..<10 {
            for message in homeAssistant.pending(limit: 100, at: .seconds(second)) {
                if message.message.topic.hasPrefix("homeassistant/") { entities.append(message.message) }
                homeAssistant.sent(message, at: .seconds(second))
                homeAssistant.handle(.received(message.message), at: .seconds(second), date: time)
            }
            homeAssistant.handle(.tick, at: .seconds(second), date: time)
        }
        XCTAssertGreaterThan(entities.count, 3)
        for entity in entities { valid("discovery", String(decoding: entity.payload, as: UTF8.self)) }
        let entity = try XCTUnwrap(try Self.examples("discovery").first)
        wrong(
            "discovery", "{}", entity.replacing("\"all\"", with: "\"any\""),
            entity.replacing("\"bluecap_c05a1700180d_", with: "\"attic_"),
            entity.replacing("\"online\"", with: "\"up\""))

        let board = StatusBoard(gateway: "attic", version: "1", broker: "mqtt://127.0.0.1:1883")
        valid("status", String(decoding: board.snapshot().json, as: UTF8.self))
        board.reported(device, name: "x", strength: -60)
        board.decoded(
            device,
            [
                .init(name: "temperature", value: .number(21.5), unit: "°C"), .init(name: "motion", value: .flag(true)),
                .init(name: "text", value: .text("x")),
            ])
        board.link(device, .connecting, detail: "x")
        board.value(device, service: "180F", characteristic: "2A19", text: "57")
        board.refused("read", why: "x")
        board.broker(connected: false, reason: "x")
        board.queue(depth: 1, stored: 2, acknowledged: 1, dropped: 0)
        let status = String(decoding: board.snapshot().json, as: UTF8.self)
        valid("status", status)
        wrong(
            "status", "{}", status.replacing("\"connecting\"", with: "\"up\""),
            status.replacing("\"queue\"", with: "\"waiting\""), status.replacing("-60", with: "-200"))

        let files = try FileManager.default.contentsOfDirectory(
            atPath: gatewayFolder.appending(path: "Documentation/schema").path())
        for name in files.sorted() where name.hasSuffix(".json") {
            let name = String(name.dropLast(".json".count))
            let examples = try Self.examples(name)
            XCTAssertFalse(examples.isEmpty, name)
            for example in examples { valid(name, example) }
        }
        return cases
    }

    /// The examples of a schema, each in one line: the sequence number and the time of a stored message, then the members from A
    /// to Z, as the gateway writes them.
    static func examples(_ name: String) throws -> [String] {
        let data = try Data(contentsOf: gatewayFolder.appending(path: "Documentation/schema/\(name).json"))
        let schema = try XCTUnwrap(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        func text(_ value: Any) throws -> String {
            String(
                decoding: try JSONSerialization.data(
                    withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed]),
                as: UTF8.self)
        }
        return try XCTUnwrap(schema["examples"] as? [[String: Any]], name).map { example in
            guard let sequence = example["sequence"], let time = example["time"] else { return try text(example) }
            let rest = try text(example.filter { $0.key != "sequence" && $0.key != "time" })
            return "{\"sequence\":\(try text(sequence)),\"time\":\(try text(time)),\(rest.dropFirst())"
        }
    }

    func testPayloadsAgreeWithTheirSchemas() throws {
        let python = try Python.having("jsonschema", environment: "python", packages: "python-packages.txt")
        let lines = try cases().map { #"{"schema":"\#($0.schema)","valid":\#($0.isValid),"payload":\#($0.payload)}"# }
        let folder = gatewayFolder.appending(path: "Documentation/schema")
        let (output, status) = try Python.run(
            python, script: "check-payloads", arguments: [folder.path()], lines: lines)
        XCTAssertEqual(status, 0, output)
        XCTAssertTrue(output.hasSuffix("\(lines.count) payloads, 0 faults\n"), output)
    }
}
