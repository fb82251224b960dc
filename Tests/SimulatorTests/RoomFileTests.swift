import TestBasics
import XCTest

@testable import BlueZSimulator

/// What a JSON file of peripherals may contain, and the errors for everything else.
final class RoomFileTests: RandomTestCase {
    func testANumberOutOfRangeIsSaidWithItsPathAndItsRange() {
        let wrong = #"""
            "rssi": 300 → rssi: 300 is not a whole number from -127 to 20 or 127, nor an object with steps or walk
            "rssi": 1e400 → rssi: the value is not a whole number from -127 to 20 or 127
            "rssi": {"walk": {"around": 9223372036854775807, "spread": 6}} → \#
            rssi.walk.around: 9223372036854775807 is not a whole number from -127 to 20
            "rssi": {"walk": {"around": -60, "spread": -1}} → rssi.walk.spread: -1 is not a whole number
            "rssi": {"walk": {"around": -60, "spread": 6, "sed": 1}} → rssi.walk.sed: unknown key
            "rssi": {} → rssi lacks "walk"
            "rssi": {"steps": [{"after": -1, "rssi": -60}]} → rssi.steps[0].after: -1 is not a number from 0 to
            "rssi": {"steps": [{"after": 1}]} → rssi.steps[0] lacks "rssi"
            "interval": 0 → interval: 0 is not a number from 0.02 to 10485.759375
            "interval": "soon" → interval: "soon" is not a number from 0.02
            "appearsAfter": 1e10 → appearsAfter: 10000000000 is not a number from 0 to 1000000000
            "disappearsAfter": -3 → disappearsAfter: -3 is not
            "link": {"mtu": 22} → link.mtu: 22 is not a whole number from 23 to 517
            "link": {"mtu": 23.5} → link.mtu: 23.5 is not a whole number from 23 to 517
            "link": {"callLatency": -0.5} → link.callLatency: -0.5 is not a number from 0 to 1000000000
            "link": {"connectLatency": true} → link.connectLatency: true is not a number
            "advertisement": {"txPower": 128} → advertisement.txPower: 128 is not a whole number from -127 to 127
            "advertisement": {"flags": 256} → advertisement.flags: 256 is not a whole number from 0 to 255
            "advertisement": {"appearance": -1} → advertisement.appearance: -1 is not a whole number from 0 to 65535
            "advertisement": {"manufacturerData": {"65536": "00"}} → \#
            advertisement.manufacturerData.65536: "65536" is not a whole number from 0 to 65535
            "advertisement": {"serviceUUIDs": ["180d", "heart"]} → serviceUUIDs[1]: "heart" is no UUID
            "advertisement": {"serviceUUIDs": ["１8"]} → serviceUUIDs[0]: "１8" is no UUID
            "advertisement": {"localName": "\#(String(repeating: "é", count: 125))"} → \#
            advertisement.localName: 250 bytes are too many; there may be 248
            "addressType": "secret" → addressType: "secret" is none of public, random
            "services": [{"uuid": "180d", "handle": 0}] → services[0].handle: 0 is not a whole number from 1 to 65535
            "services": [{"uuid": "180d", "isPrimary": 1}] → services[0].isPrimary: the value is not true or false
            "services": {} → services: the value is not a list
            "services": [{"uuid": "180d", "includes": ["x"]}] → services[0].includes[0]: "x" is no UUID
            characteristic "flags": ["raed"] → characteristics[0].flags[0]: "raed" is none of broadcast, read
            characteristic "echo": "x" → characteristics[0].echo: "x" is no UUID
            characteristic "value": "\#(String(repeating: "00", count: 513))" → \#
            characteristics[0].value: 513 bytes are too many; there may be 512
            characteristic "notifications": {"cycle": ["00"], "every": 0} → \#
            characteristics[0].notifications.every: 0 is not a number from 0.001 to 1000000000
            characteristic "notifications": {"cycle": ["00", "0"], "every": 1} → \#
            characteristics[0].notifications.cycle[1]: "0" is not hexadecimal bytes
            characteristic "notifications": {"cycle": [], "every": 1} → notifications.cycle: the list has no value
            characteristic "notifications": {"counter": 513, "every": 1} → \#
            characteristics[0].notifications.counter: 513 is not a whole number from 1 to 512
            characteristic "notifications": {"counter": 2} → notifications lacks "every"
            characteristic "notifications": {"counter": 2, "every": null} → \#
            notifications.every: null is not a number from 0.001 to 1000000000
            """#
        for line in wrong.components(separatedBy: "\n") {
            let parts = line.components(separatedBy: " → ")
            let words = parts[1]
            let member = parts[0].hasPrefix("characteristic ") ? characteristic(parts[0].dropFirst(15)) : parts[0]
            let json =
                #"{"peripherals": [{"address": "C0:FF:EE:00:00:01"}, {"address": "C0:FF:EE:00:00:02", \#(member)}]}"#
            XCTAssertThrowsError(try Room.decoded(from: Data(json.utf8), source: "desk.json"), member) { error in
                let text = "\(error)"
                XCTAssertTrue(text.contains(words), text)
                XCTAssertNotNil(text.prefixMatch(of: /desk.json, line 1, column \d+: peripherals\[1\]\./), text)
                XCTAssertTrue(text.hasSuffix("."), text)
            }
        }
    }

    private func characteristic(_ member: some StringProtocol) -> String {
        #""services": [{"uuid": "180d", "characteristics": [{"uuid": "2a37", \#(member)}]}]"#
    }

    func testNullIsAnAbsentValue() throws {
        let members = [
            #""interval": null"#, #""appearsAfter": null"#, #""disappearsAfter": null"#, #""link": {"mtu": null}"#,
            #""link": {"callLatency": null}"#, #""advertisement": {"txPower": null}"#,
            #""advertisement": {"appearance": null}"#, #""services": [{"uuid": "180d", "handle": null}]"#,
            characteristic(#""echo": null"#),
            characteristic(#""notifications": {"counter": null, "cycle": ["00"], "every": 1}"#),
        ]
        for member in members {
            func room(_ member: String) throws -> Room {
                try Room.decoded(from: Data(#"{"peripherals": [{"address": "C0:FF:EE:00:00:02", \#(member)}]}"#.utf8))
            }
            // The same without the member with the value null.
            let absent = member.replacing(/"[A-Za-z]+": null(, )?/, with: "").replacing(", }", with: "}")
            let expected = try room(absent.isEmpty ? #""services": []"# : absent)
            XCTAssertEqual(try room(member), expected, member)
        }
    }

    func testWhatIsNotJSONIsCalledSo() {
        let wrong: [(String, Int, Int)] = [
            ("", 1, 1), ("{", 1, 2), ("{peripherals: []}", 1, 2), (#"{"peripherals": [tru]}"#, 1, 18), ("{} {}", 1, 4),
            ("{\n  \"é\": 1\r\n  \"name\": 2 }", 3, 3), (#"{"name": "x, "peripherals": []}"#, 1, 15),
            (#"{"peripherals": [1 2]}"#, 1, 20), (#"{"peripherals" []}"#, 1, 16), (#"{"name": "\"]", ]"#, 1, 17),
            (String(repeating: "[", count: 10_000), 1, 513),
        ]
        for (text, line, column) in wrong {
            XCTAssertThrowsError(try Room.decoded(from: Data(text.utf8)), text) { error in
                let place = "room, line \(line), column \(column)"
                XCTAssertEqual("\(error)", "\(place): the file is not valid JSON.", String(text.prefix(40)))
            }
        }
        XCTAssertThrowsError(try Room.decoded(from: Data("[]".utf8))) { error in
            XCTAssertEqual("\(error)", "room, line 1, column 1: the file: the value is not an object.")
        }
        XCTAssertThrowsError(try Room.decoded(from: Data([0xFF, 0xFE, 0xFF]))) { error in
            XCTAssertEqual("\(error)", "room, line 1, column 1: the file is not valid JSON.")
        }
    }

    func testAnErrorBeginsWithTheLineAndTheColumnOfTheMember() {
        let first = #"{ "name": "[{é\",", "peripherals": [\#n    {"address": "C0:FF:EE:00:00:01"},\#n"#
        let wrong: [(String, Int, Int, String)] = [
            (#"  { "address": "x" }]}"#, 3, 5, #"peripherals[1].address: "x" is no Bluetooth"#),
            (#"  { "rssi": -3, }]}"#, 3, 3, #"peripherals[1] lacks "address""#),
            (#"  { "address": "C0:FF:EE:00:00:02", "rsi": 3 }]}"#, 3, 37, "peripherals[1].rsi: unknown key"),
            (
                "{\"address\": \"C0:FF:EE:00:00:02\", \"link\":\r\n\t{\"mtu\": 9}}]}", 4, 3,
                "peripherals[1].link.mtu: 9 is not a whole number from 23 to 517"
            ),
            (
                #"{"address": "C0:FF:EE:00:00:02", "services": [{"uuid": "180d"},\#n{"uuid": "180d", "includes": ["180f",\#n "x"]}]}]}"#,
                5, 2, #"peripherals[1].services[1].includes[1]: "x" is no UUID"#
            ),
            (#"], "extra": 1}"#, 3, 4, "extra: unknown key"),
        ]
        for (rest, line, column, words) in wrong {
            XCTAssertThrowsError(try Room.decoded(from: Data((first + rest).utf8), source: "desk.json"), rest) {
                error in
                let start = "desk.json, line \(line), column \(column): \(words)"
                XCTAssertTrue("\(error)".hasPrefix(start), "\(error)\n\(start)")
            }
        }
    }

    func testMoreAttributesThanHandlesAreRefusedWithTheFirstThatHasNone() throws {
        // Generic access and attribute take 9 handles, the service 1, each characteristic 3 with its 2902.
        let most = (65_535 - 10) / 3
        let characteristic = VirtualCharacteristic("2a37", [.notify])
        func service(_ count: Int) -> VirtualService {
            VirtualService("180d", characteristics: Array(repeating: characteristic, count: count))
        }
        let table = AttributeDatabase([service(most)], name: nil, appearance: nil)
        XCTAssertEqual(table.services.last?.characteristics.count, most)
        XCTAssertThrowsError(try AttributeDatabase(placing: [service(most + 1)])) { error in
            let place = error as? AttributeDatabase.Overflow
            XCTAssertEqual(place?.service, 0)
            XCTAssertEqual(place?.characteristic, most)
        }

        let many = Array(repeating: #"{"uuid": "2a37"}"#, count: 40_000).joined(separator: ",")
        let last = (65_535 - 10) / 2
        let json = #"{"peripherals": [{"address": "C0:FF:EE:00:00:01", "services": [{"uuid": "180d", "#
        XCTAssertThrowsError(try Room.decoded(from: Data((json + #""characteristics": [\#(many)]}]}]}"#).utf8))) {
            error in
            let place = "peripherals[0].services[0].characteristics[\(last)]: no handle is left for it"
            XCTAssertTrue("\(error)".contains(place), "\(error)")
        }
    }

    func testAPeripheralWithoutServicesHasTheTableThatItWouldHaveWithThem() {
        let bare = AttributeDatabase([], name: "Tag", appearance: 0x0341)
        let whole = AttributeDatabase([VirtualService("180f")], name: "Tag", appearance: 0x0341)
        XCTAssertEqual(bare.services, Array(whole.services.dropLast()))
        XCTAssertEqual(bare.attributes, whole.attributes)
        XCTAssertEqual(bare.value(of: 3), Array("Tag".utf8))
        XCTAssertEqual(bare.value(of: 5), [0x41, 0x03])
    }

    func testValuesMadeInSwiftTakeTheNearestBound() {
        var peripheral = VirtualPeripheral("C0:FF:EE:00:00:01", interval: 0, appearsAfter: .infinity)
        XCTAssertEqual(peripheral.interval, 0.02)
        XCTAssertEqual(peripheral.appearsAfter, 1e9)
        peripheral.interval = .nan
        XCTAssertEqual(peripheral.interval, 0.02)
        var link = VirtualLink(callLatency: -.infinity, mtu: .max)
        XCTAssertEqual(link.callLatency, 0)
        XCTAssertEqual(link.mtu, 517)
        link.mtu = .min
        XCTAssertEqual(link.mtu, 23)
        XCTAssertEqual(RSSICourse.constant(.min).rssi(at: .nan), -127)
        XCTAssertEqual(RSSICourse.constant(127).rssi(at: 0), 127)
        let walk = RSSICourse.walk(around: .max, spread: .max, seed: .max)
        for seconds in [-Double.infinity, -1, 0, 1e300, .infinity, .nan] {
            XCTAssertTrue((-127...20).contains(walk.rssi(at: seconds)))
        }
        XCTAssertEqual(NotificationSource.counter(size: .min, every: 0).value(at: 258), [2])
        XCTAssertEqual(NotificationSource.counter(size: .max, every: 0).value(at: 0).count, 512)
    }

    func testRandomNumbersInEveryPlaceLoadOrAreRefusedInASentence() throws {
        var random = TestRandom(self)
        var loaded = 0
        for round in 0..<2000 {
            // Half of the files have one random number, the others several, so that some files are accepted and some refused.
            let isWild = round.isMultiple(of: 2) ? -1 : Int.random(in: 0..<Self.places, using: &random)
            var place = 0
            func number(_ usual: String) -> String {
                defer { place += 1 }
                let draws = isWild < 0 ? Int.random(in: 0..<12, using: &random) == 0 : place == isWild
                return draws ? Self.literal(&random) : usual
            }
            let json = Self.file(number)
            XCTAssertEqual(place, Self.places)
            do {
                let room = try Room.decoded(from: Data(json.utf8), source: "room.json")
                loaded += 1
                try play(room)
                XCTAssertEqual(try Room.decoded(from: JSONEncoder().encode(room)), room, json)
            } catch let error as RoomError {
                let text = "\(error)"
                XCTAssertTrue(
                    text.contains(/^room.json, line \d+, column \d+: peripherals\[.*\.$/), text)
                XCTAssertTrue(
                    text.contains(" is not a ") || text.contains(" lacks ") || text.contains("no handle is left"),
                    "\(text)\n\(json)")
            }
        }
        XCTAssertGreaterThan(loaded, 50)
    }

    /// Receives what its peripherals send for a while.
    private func play(_ room: Room) throws {
        for peripheral in room.peripherals {
            for seconds in [0, 0.5, 3, 1e6] {
                _ = peripheral.rssi.rssi(at: seconds)
                if let next = peripheral.advertises(atOrAfter: seconds) { XCTAssertGreaterThanOrEqual(next, seconds) }
            }
            for source in peripheral.services.flatMap(\.characteristics).compactMap(\.notifications) {
                for index in [0, 1, Int.max] { XCTAssertLessThanOrEqual(source.value(at: index).count, 512) }
            }
        }
        let simulator = Simulator.inProcess(room: room, bluez: .v5_66)
        simulator.simulateFlood(updates: 3)
        simulator.advance(by: 2)
        simulator.end()
    }

    private static let places = 25

    private static func literal(_ random: inout TestRandom) -> String {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: "\(Int.random(in: .min ... .max, using: &random))"
        case 1: "\(Int.random(in: -200...200, using: &random))"
        case 2: "\(Int.random(in: -70_000...70_000, using: &random))"
        case 3: "\(Double.random(in: -10...10, using: &random))"
        case 4: "\(Int.random(in: -9...9, using: &random))e\(Int.random(in: -400...400, using: &random))"
        case 5:
            ["9223372036854775807", "-9223372036854775808", "18446744073709551616", "-0", "0", "-0.0"]
                .randomElement(using: &random) ?? "0"
        case 6:
            ["1e400", "-1e400", "1e-400", "5e-324", "1.7976931348623157e308", "2147483648", "65536", "127", "0.5"]
                .randomElement(using: &random) ?? "0"
        default: [#""7""#, "true", "[1]", "{}"].randomElement(using: &random) ?? "true"
        }
    }

    private static func file(_ number: (String) -> String) -> String {
        """
        {"peripherals": [{
            "address": "C0:FF:EE:00:00:01", "interval": \(number("0.5")), "appearsAfter": \(number("0")),
            "disappearsAfter": \(number("60")), "rssi": {"walk": {
                "around": \(number("-60")), "spread": \(number("6")), "seed": \(number("7")) }},
            "advertisement": {
                "localName": "Tag", "txPower": \(number("4")), "flags": \(number("6")), "appearance": \(number("833")) },
            "link": {
                "connectLatency": \(number("0.1")), "resolveLatency": \(number("0.1")), "exportDelay": \(number("0.001")),
                "callLatency": \(number("0.01")), "mtu": \(number("185")), "connectTimeout": \(number("40")) },
            "services": [
                {"uuid": "180d", "handle": \(number("16")), "appearsAfter": \(number("0")), "characteristics": [
                    {"uuid": "2a37", "flags": ["notify"],
                        "notifications": {"cycle": ["00", "01"], "every": \(number("1"))}},
                    {"uuid": "2a38", "flags": ["notify"],
                        "notifications": {"counter": \(number("4")), "every": \(number("1"))}} ]},
                {"uuid": "180f", "handle": \(number("64")) } ] },
            {"address": "C0:FF:EE:00:00:02", "rssi": \(number("-70")) },
            {"address": "C0:FF:EE:00:00:03", "rssi": {"steps": [
                {"after": \(number("0")), "rssi": \(number("-70"))}, {"after": \(number("5")), "rssi": -50} ] }} ]}
        """
    }
}
