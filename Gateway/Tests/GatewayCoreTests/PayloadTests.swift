import BlueCapKit
import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

final class PayloadTests: XCTestCase {
    private let device = DeviceName("C0:FF:EE:00:18:0D") ?? devices(1)[0]
    private let time = Date(timeIntervalSince1970: 1_772_366_400.25)
    private let topics = Topics(prefix: "bluecap", gateway: "attic")

    private func text(_ payload: some Payload) -> String { String(decoding: payload.json, as: UTF8.self) }

    // MARK: Topics

    func testTopics() {
        let (service, uuid) = (CBUUID(string: "180D"), CBUUID(string: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E"))
        XCTAssertEqual(topics.state, "bluecap/attic/state")
        XCTAssertEqual(topics.advertisement(device), "bluecap/attic/advertisement/c0ffee00180d")
        XCTAssertEqual(topics.reading(device), "bluecap/attic/reading/c0ffee00180d")
        XCTAssertEqual(
            topics.value(device, service: service, characteristic: uuid),
            "bluecap/attic/value/c0ffee00180d/180d/6e400003-b5a3-f393-e0a9-e50e24dcca9e")
        XCTAssertEqual(
            topics.gap(device, service: service, characteristic: service), "bluecap/attic/gap/c0ffee00180d/180d/180d")
        XCTAssertEqual(topics.link(device), "bluecap/attic/link/c0ffee00180d")
        XCTAssertEqual(topics.claim(device, of: "cellar"), "bluecap/claim/c0ffee00180d/cellar")
        XCTAssertEqual(topics.device(device), "bluecap/device/c0ffee00180d")
        XCTAssertEqual(Topics.text(of: CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB")), "180d")
        XCTAssertEqual(Topics.text(of: CBUUID(string: "0001180D")), "0001180d")
        XCTAssertEqual(Topics.text(of: CBUUID(0x1)), "0001")
    }

    func testReceivedTopics() {
        XCTAssertEqual(topics.received("bluecap/attic/command"), .command)
        XCTAssertEqual(topics.received("bluecap/cellar/state"), .state(gateway: "cellar"))
        XCTAssertEqual(topics.received("bluecap/claim/c0ffee00180d/cellar"), .claim(device, gateway: "cellar"))
        XCTAssertEqual(topics.received("bluecap/device/c0ffee00180d"), .device(device))
        for topic in [
            "", "bluecap", "bluecap/", "bluecap/cellar/command", "bluecap/claim/x/cellar", "bluecap/device/x",
            "bluecap2/cellar/state", "bluecap/attic/command/x", "bluecap/claim/c0ffee00180d",
        ] { XCTAssertNil(topics.received(topic), topic) }
        let nested = Topics(prefix: "site/é/bluecap", gateway: "attic")
        XCTAssertEqual(nested.received("site/é/bluecap/cellar/state"), .state(gateway: "cellar"))
    }

    func testRepliesGoOnlyToTopicsOfReplies() {
        for topic in ["bluecap/attic/reply", "bluecap/attic/reply/x", "bluecap/reply/me", "bluecap/reply/a/b"] {
            XCTAssertTrue(topics.allowsReply(to: topic), topic)
        }
        for topic in [
            "", "bluecap/attic/state", "bluecap/attic/command", "bluecap/claim/c0ffee00180d/attic",
            "bluecap/cellar/reply",
            "bluecap/reply", "bluecap/reply/", "bluecap/reply/+", "bluecap/reply/#", "$SYS/reply/x", "other/reply/x",
            "bluecap/attic/reply/\u{0}", "bluecap/attic/replyx", "bluecap/reply/" + String(repeating: "x", count: 250),
            "bluecap/attic/reply/../state//",
        ] { XCTAssertFalse(topics.allowsReply(to: topic), topic) }
    }

    // MARK: Payloads

    func testTheMembersOfPayloadsHaveOneOrder() throws {
        XCTAssertEqual(
            text(
                LinkPayload(device: device, name: "A\u{7}\u{202E}b", state: .disconnected, reason: "lost", time: time)),
            #"{"address":"C0:FF:EE:00:18:0D","name":"Ab","reason":"lost","state":"disconnected","time":"2026-03-01T12:00:00.250Z"}"#
        )
        XCTAssertEqual(
            text(
                GatewayStatePayload(
                    state: .online, gateway: "attic", version: "0.3.0", scanning: true, links: 2, time: time)),
            #"{"gateway":"attic","links":2,"scanning":true,"state":"online","time":"2026-03-01T12:00:00.250Z","version":"0.3.0"}"#
        )
        XCTAssertEqual(text(GapPayload(reason: .linkLost)), #"{"reason":"linkLost"}"#)
        let reading = ReadingPayload(
            format: "bthome_v2", rssi: -60,
            readings: [
                .init("temperature", .number(21.5), unit: "°C"), .init("motion", .flag(true)),
                .init("text", PayloadValue("a/\"")),
                .init("Bad name", .flag(true)), .init("temperature", .number(1)),
            ])
        XCTAssertEqual(
            text(reading),
            #"{"format":"bthome_v2","readings":{"motion":true,"temperature":21.5,"text":"a/\""},"rssi":-60,"#
                + #""units":{"temperature":"°C"}}"#)
        XCTAssertEqual(try JSONDecoder().decode(ReadingPayload.self, from: reading.json), reading)
    }

    func testNumbersThatJSONDoesNotHaveAreNoValues() {
        XCTAssertNil(PayloadValue(Double.nan))
        XCTAssertNil(PayloadValue(Double.infinity))
        XCTAssertEqual(
            text(ReadingPayload(format: "x", readings: [.init("a", .number(.nan))])),
            #"{"format":"x","readings":{"a":"nan"}}"#)
    }

    func testAnAdvertisementHasItsDataAndBeacons() throws {
        let uuid = try XCTUnwrap(UUID(uuidString: "E2C56DB5-DFFB-48D2-B060-D0F5A71096E0"))
        let advertisements = PeripheralAdvertisements(
            localName: "Strap",
            manufacturerDataByCompany: [0x4C: IBeacon(uuid: uuid, major: 1, minor: 2).data, 0x499: Data([5, 255])],
            txPower: -4, serviceUUIDs: [CBUUID(string: "180F"), CBUUID(string: "180D")],
            serviceData: [CBUUID(string: "181A"): Data([1])])
        XCTAssertEqual(
            text(AdvertisementPayload(device: device, advertisements: advertisements, rssi: -61, time: time)),
            #"{"address":"C0:FF:EE:00:18:0D","beacons":[{"kind":"iBeacon","major":1,"measuredPower":-59,"minor":2,"#
                + #""uuid":"e2c56db5-dffb-48d2-b060-d0f5a71096e0"}],"manufacturerData":{"004c":"#
                + #""0215e2c56db5dffb48d2b060d0f5a71096e000010002c5","0499":"05ff"},"name":"Strap","rssi":-61,"#
                + #""serviceData":{"181a":"01"},"services":["180d","180f"],"time":"2026-03-01T12:00:00.250Z","txPower":-4}"#
        )
    }

    func testValuesAreDecodedByProfilesAndFormats() throws {
        func decoded(_ service: String, _ uuid: String, _ format: ValueFormat, _ bytes: [UInt8]) -> String {
            let decoder = ValueDecoder(
                service: CBUUID(string: service), characteristic: CBUUID(string: uuid), format: format)
            return text(ValuePayload(Data(bytes), source: .notify, decoder: decoder))
        }
        XCTAssertEqual(
            decoded("180F", "2A19", .profile(nil), [64]),
            #"{"decoded":{"Battery Level":64},"raw":"40","source":"notify","units":{"Battery Level":"%"}}"#)
        XCTAssertEqual(decoded("180F", "2A19", .profile(nil), [1, 2]), #"{"raw":"0102","source":"notify"}"#)
        XCTAssertEqual(decoded("FFF0", "FFF1", .profile(nil), [1]), #"{"raw":"01","source":"notify"}"#)
        XCTAssertEqual(decoded("FFF0", "FFF1", .simple(.raw), [1]), #"{"raw":"01","source":"notify"}"#)
        XCTAssertEqual(
            decoded("FFF0", "FFF1", .profile("battery level"), [9]),
            #"{"decoded":{"Battery Level":9},"raw":"09","source":"notify","units":{"Battery Level":"%"}}"#)
        XCTAssertEqual(
            decoded("FFF0", "FFF1", .simple(.int16), [0xFE, 0xFF]),
            #"{"decoded":{"number":-2},"raw":"feff","source":"notify"}"#)
        XCTAssertEqual(
            decoded("FFF0", "FFF1", .simple(.float32), [0, 0, 0x20, 0x41]),
            #"{"decoded":{"number":10},"raw":"00002041","source":"notify"}"#)
        XCTAssertEqual(
            decoded("FFF0", "FFF1", .simple(.float32), [0, 0, 0x80, 0x7F]), #"{"raw":"0000807f","source":"notify"}"#)
        XCTAssertEqual(decoded("FFF0", "FFF1", .simple(.uint32), [1]), #"{"raw":"01","source":"notify"}"#)
        XCTAssertEqual(
            decoded("FFF0", "FFF1", .simple(.text), Array("ä".utf8)),
            #"{"decoded":{"text":"ä"},"raw":"c3a4","source":"notify"}"#)
        // A serial number is a text, also if it has only digits.
        XCTAssertEqual(
            decoded("180A", "2A25", .profile(nil), Array("1234".utf8)),
            #"{"decoded":{"Serial Number String":"1234"},"raw":"31323334","source":"notify"}"#)
    }

    func testArbitraryBytesOfEachProfileNeverTrap() {
        var generator = SeededNumbers(SeededNumbers.seed)
        for name in ValueDecoder.profileNames {
            let decoder = ValueDecoder(service: CBUUID(0xFFF0), characteristic: CBUUID(0xFFF1), format: .profile(name))
            XCTAssertNotNil(decoder, name)
            for _ in 0..<20 {
                let count = Int.random(in: 0...40, using: &generator)
                let data = Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
                let payload = ValuePayload(data, source: .read, decoder: decoder)
                XCTAssertEqual(
                    try? JSONDecoder().decode(ValuePayload.self, from: payload.json), payload,
                    "\(name) \(SeededNumbers.seed)")
            }
        }
    }

    func testTimes() {
        XCTAssertEqual(PayloadTime.text(Date(timeIntervalSince1970: 0)), "1970-01-01T00:00:00.000Z")
        XCTAssertEqual(PayloadTime.text(Date(timeIntervalSince1970: 0.9996)), "1970-01-01T00:00:01.000Z")
        XCTAssertEqual(PayloadTime.text(Date(timeIntervalSince1970: 1.9994)), "1970-01-01T00:00:01.999Z")
        XCTAssertEqual(PayloadTime.text(.distantPast), "1970-01-01T00:00:00.000Z")
        XCTAssertEqual(PayloadTime.text(.distantFuture).count, 24)
        XCTAssertEqual(PayloadTime.text(Date(timeIntervalSince1970: 1e300)), "9999-12-31T23:59:59.000Z")
        XCTAssertEqual(PayloadTime.date("2026-03-01T12:00:00.250Z"), time)
        for text in ["", "2026", String(repeating: "2", count: 10_000)] { XCTAssertNil(PayloadTime.date(text)) }
    }

    // MARK: Commands

    private func refusal(_ json: String) -> CommandRequestError? {
        do throws(CommandRequestError) {
            _ = try CommandRequest(json: Data(json.utf8), topics: topics)
            return nil
        } catch {
            return error
        }
    }

    func testRequestsAreRead() throws {
        func request(_ json: String) throws -> CommandRequest {
            try CommandRequest(json: Data(json.utf8), topics: topics)
        }
        let write = try request(
            #"{"id":"7","command":"write","peripheral":"c0ffee00180d","service":"180d","characteristic":"2A39","value":"01FF","replyTo":"bluecap/reply/me"}"#
        )
        XCTAssertEqual(
            write.action,
            .write(
                .address(device), service: CBUUID(string: "180D"), characteristic: CBUUID(string: "2A39"),
                value: Data([1, 255])))
        XCTAssertEqual(write.replyTo, "bluecap/reply/me")
        XCTAssertEqual(try request(#"{"id":"1","command":"scanOff"}"#).action, .scan(isOn: false))
        XCTAssertEqual(
            try request(#"{"id":"1","command":"connect","peripheral":"Front Door"}"#).action,
            .connect(.name("Front Door")))
        for command in CommandRequest.Command.allCases {
            let all = #","peripheral":"x","service":"180d","characteristic":"2a37""#
            let members =
                switch command {
                case .scanOn, .scanOff: ""
                case .connect, .disconnect: #","peripheral":"x""#
                case .read, .subscribe, .unsubscribe: all
                case .write: all + #","value":"""#
                }
            XCTAssertEqual(try request("{\"id\":\"1\",\"command\":\"\(command)\"\(members)}").command, command)
        }
    }

    func testWrongRequestsAreRefusedWithAReasonForTheSender() {
        let cases = [
            #""x""#: "The request is not a JSON object in UTF-8.",
            "": "The request is not a JSON object in UTF-8.",
            "{": "The request is not a JSON object in UTF-8.",
            "[]": "The request is not a JSON object in UTF-8.",
            "{}": "The member \"id\" is missing.",
            #"{"id":1}"#: "The member \"id\" must be a text.",
            #"{"id":""}"#: "\"id\" must have 1 to 64 characters and no control characters.",
            #"{"id":"1"}"#: "The member \"command\" is missing.",
            #"{"id":"1","command":"conect"}"#: "The command is unknown. Did you mean \"connect\"?",
            #"{"id":"1","command":"connect"}"#: "The command connect requires \"peripheral\".",
            #"{"id":"1","command":"scanOn","peripheral":"x"}"#: "The command scanOn has no member \"peripheral\".",
            #"{"id":"1","command":"connect","peripherl":"x"}"#: "Did you mean \"peripheral\"?",
            #"{"id":"1","command":"connect","peripheral":""}"#: "\"peripheral\" must be an address",
            #"{"id":"1","command":"read","peripheral":"x","service":"zz","characteristic":"2a37"}"#:
                "\"service\" must be a UUID",
            #"{"id":"1","command":"write","peripheral":"x","service":"180d","characteristic":"2a37","value":"0"}"#:
                "\"value\" must be 0 to 512 bytes",
            #"{"id":"1","command":"scanOn","replyTo":"bluecap/attic/state"}"#:
                "\"replyTo\" must be bluecap/attic/reply",
            #"{"id":"1","command":["scanOn"]}"#: "The member \"command\" must be a text.",
        ]
        for (json, reason) in cases {
            let found = refusal(json)
            XCTAssertTrue(found?.reason.contains(reason) ?? false, "\(json): \(found?.reason ?? "accepted")")
        }
        let later = refusal(#"{"id":"7","replyTo":"bluecap/reply/me","command":"x"}"#)
        XCTAssertEqual(later?.id, "7")
        XCTAssertEqual(later?.replyTo, "bluecap/reply/me")
        XCTAssertNil(refusal(#"{"id":"7","command":"scanOn","replyTo":"bluecap/cellar/state"}"#)?.replyTo)
        let deep = String(repeating: "[", count: 4_000)
        XCTAssertNotNil(refusal(deep))
        XCTAssertNotNil(refusal("{\"id\":\(deep)"))
        XCTAssertEqual(
            refusal(String(repeating: " ", count: 5_000))?.reason,
            "The request has 5000 bytes; at most 4096 are allowed.")
        let long = String(repeating: "00", count: 513)
        XCTAssertNotNil(
            refusal(
                #"{"id":"1","command":"write","peripheral":"x","service":"180d","characteristic":"2a37","value":"\#(long)"}"#
            ))
    }

    func testRandomRequestsNeverTrap() {
        var generator = SeededNumbers(SeededNumbers.seed)
        let valid = Array(
            #"{"id":"7","command":"write","peripheral":"c0ffee00180d","service":"180d","characteristic":"2a39","value":"01"}"#
                .utf8)
        var accepted = 0
        for _ in 0..<2_000 {
            var bytes = valid
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            guard let request = try? CommandRequest(json: Data(bytes), topics: topics) else { continue }
            accepted += 1
            XCTAssertLessThanOrEqual(request.id.count, 64)
        }
        XCTAssertTrue((100..<1_900).contains(accepted), "\(accepted)")
    }

    // MARK: The policy

    private func policy(_ yaml: String) throws -> CommandPolicy {
        CommandPolicy(try GatewayConfiguration(yaml: yaml, file: "").commands)
    }

    private func request(_ json: String) throws -> CommandRequest {
        try CommandRequest(json: Data("{\"id\":\"1\",\(json)}".utf8), topics: topics)
    }

    func testNothingIsAllowedWithoutARule() throws {
        let policy = try policy("")
        for json in [
            #""command":"scanOn""#, #""command":"connect","peripheral":"c0ffee00180d""#,
            #""command":"read","peripheral":"x","service":"180f","characteristic":"2a19""#,
        ] {
            XCTAssertEqual(policy.refusal(of: try request(json), device: device, name: "x")?.code, .notAllowed)
        }
    }

    func testRulesAllowWhatTheyName() throws {
        let policy = try policy(
            """
            commands:
              scan: true
              allow:
                - {peripheral: "C0:FF:EE:00:18:0D", connect: true, read: [180f/*], write: [180d/2a39], subscribe: [180d/2a37]}
                - {peripheral: "*", read: ["180a/2a29"]}
                - {peripheral: "Front*", write: ["*"]}
            """)
        let other = try XCTUnwrap(DeviceName("010203040506"))
        func refused(_ json: String, device: DeviceName?, name: String?) throws -> Bool {
            policy.refusal(of: try request(json), device: device, name: name) != nil
        }
        func use(_ command: String, _ peripheral: String, _ service: String, _ characteristic: String) -> String {
            "\"command\":\"\(command)\",\"peripheral\":\"\(peripheral)\",\"service\":\"\(service)\",\"characteristic\":\"\(characteristic)\""
                + (command == "write" ? ",\"value\":\"01\"" : "")
        }
        let strap = "c0ffee00180d"
        XCTAssertFalse(try refused(#""command":"scanOff""#, device: nil, name: nil))
        XCTAssertFalse(try refused("\"command\":\"connect\",\"peripheral\":\"\(strap)\"", device: device, name: nil))
        XCTAssertTrue(try refused(#""command":"connect","peripheral":"010203040506""#, device: other, name: nil))
        XCTAssertFalse(try refused(use("read", strap, "180f", "2a19"), device: device, name: nil))
        XCTAssertTrue(try refused(use("read", strap, "180d", "2a19"), device: device, name: nil))
        XCTAssertFalse(try refused(use("write", strap, "180d", "2a39"), device: device, name: nil))
        XCTAssertFalse(
            try refused(use("write", strap, "0000180d-0000-1000-8000-00805f9b34fb", "2a39"), device: device, name: nil))
        XCTAssertTrue(try refused(use("write", strap, "180d", "2a37"), device: device, name: nil))
        XCTAssertFalse(try refused(use("unsubscribe", strap, "180d", "2a37"), device: device, name: nil))
        XCTAssertTrue(try refused(use("subscribe", strap, "180d", "2a39"), device: device, name: nil))
        XCTAssertFalse(try refused(use("read", "010203040506", "180a", "2a29"), device: other, name: nil))
        XCTAssertTrue(try refused(use("write", "010203040506", "180a", "2a29"), device: other, name: "Back"))
        XCTAssertFalse(try refused(use("write", "Front Door", "180a", "2a29"), device: other, name: "Front Door"))
        // The address of a request counts, not an address that the caller has for something else.
        XCTAssertTrue(try refused(use("write", "010203040506", "180d", "2a39"), device: device, name: nil))
        let refusal = policy.refusal(of: try request(use("write", strap, "180d", "2a37")), device: device, name: nil)
        XCTAssertEqual(
            refusal?.reason,
            "The command is not allowed: no rule of commands.allow for the peripheral C0:FF:EE:00:18:0D has the characteristic "
                + "in its list write.")
    }

    func testTheRateOfCommandsIsLimited() {
        var rate = CommandRate(perSecond: 10)
        XCTAssertEqual((0..<20).filter { _ in rate.admits(at: .zero) }.count, 10)
        XCTAssertFalse(rate.admits(at: .milliseconds(50)))
        XCTAssertTrue(rate.admits(at: .milliseconds(150)))
        XCTAssertFalse(rate.admits(at: .milliseconds(100)))
        XCTAssertEqual((0..<20).filter { _ in rate.admits(at: .seconds(100)) }.count, 10)
        XCTAssertEqual(
            (0..<1_000).filter { rate.admits(at: .seconds(200) + .milliseconds(10 * $0)) }.count, 109,
            "10 s and a burst")
    }
}
