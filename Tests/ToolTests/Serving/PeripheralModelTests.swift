import BlueCapKit
import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

final class PeripheralModelTests: RandomTestCase {
    func testEachBuiltinProfileHasItsServices() throws {
        let services = PeripheralModel.builtin.map { $0.model.services.map(\.uuid.uuidString) }
        XCTAssertEqual(services[0], ["180D"])
        XCTAssertEqual(services[1], ["180F"])
        XCTAssertEqual(services[2].count, 8)
        XCTAssertEqual(services[3], ["6E400001-B5A3-F393-E0A9-E50E24DCCA9E"])
        for (name, _, model) in PeripheralModel.builtin {
            for characteristic in model.services.flatMap(\.characteristics) {
                XCTAssertNotNil(characteristic.name, name)
            }
        }
    }

    func testWhatIsThereTwiceIsServedOnce() throws {
        let battery = try XCTUnwrap(PeripheralModel.builtin.first { $0.name == "battery" }).model
        let heart = try XCTUnwrap(PeripheralModel.builtin.first { $0.name == "heart-rate" }).model
        let joined = PeripheralModel.joined([heart, battery, battery])
        XCTAssertEqual(joined.services.map(\.uuid.uuidString), ["180D", "180F"])
        XCTAssertNil(joined.name)
        XCTAssertEqual(joined.appearance, 0x0341)
        XCTAssertEqual(PeripheralModel.joined([battery]).name, "BlueCap Battery")
    }

    func testAServiceThatIsTwiceInAFileIsServedTwice() throws {
        let twice = try model(#"{"services": [{"uuid": "AA00"}, {"uuid": "AA00"}]}"#)
        XCTAssertEqual(PeripheralModel.joined([twice]).services.count, 2)
        let joined = PeripheralModel.joined([twice, twice])
        XCTAssertEqual(joined.services.count, 2)
        XCTAssertEqual(joined.omissions, Array(repeating: "AA00, which an earlier profile has", count: 2))
    }

    // MARK: Files

    private func model(_ json: String) throws -> PeripheralModel {
        try PeripheralModel.decoded(from: Data(json.utf8), source: "desk.json")
    }

    func testAFileDescribesAPeripheral() throws {
        let model = try model(
            """
            { "name": "Desk", "appearance": 833, "services": [
                { "uuid": "AA00", "characteristics": [
                    { "uuid": "AA01", "flags": ["read", "write"], "text": "hello", "echo": "AA02",
                      "descriptors": [ { "uuid": "2901", "text": "Greeting" } ] },
                    { "uuid": "AA02", "flags": ["notify"], "notifications": { "cycle": ["01", "02"], "every": 2 } },
                    { "uuid": "AA03", "flags": ["indicate"], "notifications": { "counter": 2, "every": 0.5 } } ] },
                { "uuid": "180F", "characteristics": [ { "uuid": "2A19", "flags": ["read"], "value": "32" } ] } ] }
            """)
        XCTAssertEqual(model.name, "Desk")
        XCTAssertEqual(model.appearance, 833)
        XCTAssertEqual(model.services.map(\.label), ["AA00", "Battery"])
        let greeting = model.services[0].characteristics[0]
        XCTAssertEqual(greeting.value, Data("hello".utf8))
        XCTAssertEqual(greeting.label, "Greeting")
        XCTAssertEqual(greeting.properties, [.read, .write])
        XCTAssertEqual(greeting.permissions, [.readable, .writeable])
        XCTAssertEqual(
            greeting.descriptors, [.init(uuid: CBUUID(string: "2901"), value: Data("Greeting".utf8))])
        guard case .echoes(let target) = greeting.behaviour else { return XCTFail("\(greeting.behaviour)") }
        XCTAssertEqual(target, CBUUID(string: "AA02"))
        guard case .changes(let cycle, 2) = model.services[0].characteristics[1].behaviour else {
            return XCTFail("no cycle")
        }
        XCTAssertEqual(cycle.value(at: 2), Data([2]))
        XCTAssertEqual(model.services[1].characteristics[0].label, "Battery Level")
    }

    func testTheSecurityOfAFileIsThatOfTheServedAttributes() throws {
        let model = try model(
            #"""
            {"services": [{"uuid": "AA00", "characteristics": [
                {"uuid": "AA01", "flags": ["read", "write"], "security": {"read": "encrypted", "write": "authenticated"},
                 "descriptors": [{"uuid": "2901", "value": "41", "security": {"read": "secure"}}]},
                {"uuid": "AA02", "flags": ["notify"], "security": {"subscribe": "authenticated"}},
                {"uuid": "AA03", "flags": ["read"]}]}]}
            """#)
        XCTAssertTrue(model.isProtected)
        let characteristics = model.services[0].characteristics
        XCTAssertEqual(
            characteristics[0].permissions,
            [.readable, .writeable, .readEncryptionRequired, .writeAuthenticationRequired])
        XCTAssertEqual(characteristics[0].descriptors[0].permissions, [.readable, .readSecureConnectionRequired])
        XCTAssertEqual(characteristics[1].properties, [.notify, .notifyAuthenticationRequired])
        XCTAssertEqual(characteristics[2].permissions, .readable)
        XCTAssertTrue(
            characteristics[0].secured.permissions.contains([.writeAuthenticationRequired, .writeEncryptionRequired]))
    }

    func testTheFlagsOfADescriptorAreServed() throws {
        let model = try model(
            #"""
            {"services": [{"uuid": "AA00", "characteristics": [{"uuid": "AA01", "descriptors": [
                {"uuid": "2901", "flags": ["read", "write"]}, {"uuid": "2906", "flags": ["write"]},
                {"uuid": "2904", "flags": ["read", "write"], "security": {"write": "encrypted"}}]}]}]}
            """#)
        XCTAssertEqual(
            model.services[0].characteristics[0].descriptors.map(\.permissions),
            [[.readable, .writeable], .writeable, [.readable, .writeable, .writeEncryptionRequired]])
    }

    func testWhatCannotBeServedIsNamed() throws {
        let model = try model(
            #"""
            {"services": [{"uuid": "AA00", "includes": ["180F"], "handle": 16, "appearsAfter": 1, "isAnnounced": false,
                "characteristics": [{"uuid": "AA01", "flags": ["read", "reliable-write"]}]}]}
            """#)
        XCTAssertEqual(
            model.omissions,
            ["includes", "handle", "appearsAfter", "isAnnounced"].map { #""\#($0)" of the service AA00"# }
                + ["the flag reliable-write of the characteristic AA01"])
    }

    func testTheExampleOfAFileDescribesOne() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let model = try PeripheralModel.contents(
            ofFile: root.appendingPathComponent("Examples/Peripherals/greeter.json").path)
        XCTAssertEqual(model.name, "Greeter")
        XCTAssertEqual(model.services.map(\.uuid.uuidString), ["AA00", "180F"])
    }

    func testWhatIsWrongInAFileIsSaidWithItsPlace() {
        for (json, part) in [
            ("{", "desk.json, line 1, column 2: the file is not valid JSON"),
            (#"{"services": [{"uuid": "AA00"}], "appearance": 65536}"#, "appearance: 65536 is not a whole number"),
            (#"{"name": "x"}"#, #"lacks "services""#),
            (#"{"services": []}"#, "services: there is no service in it"),
            (#"{"services": [], "nmae": "x"}"#, "desk.json, line 1, column 18: nmae: unknown key"),
            (#"{"services": [{"uuid": "18OD"}]}"#, "services[0].uuid"),
            (#"{"services": [{"uuid": "AA00", "characteristics": [{"uuid": "AA01", "flags": ["raed"]}]}]}"#, "flags"),
            (#"{"services": [{"uuid": "AA00", "characteristics": [{"uuid": "AA01", "echo": "AA09"}]}]}"#, "AA09"),
            (
                #"{"services": [{"uuid": "AA00", "characteristics": [{"uuid": "AA01", "notifications": "#
                    + #"{"counter": 2, "every": 0}}]}]}"#,
                "characteristics[0].notifications.every: 0 is not a number from 0.001 to 1000000000"
            ),
            (
                #"{"services": [{"uuid": "AA00", "characteristics": [{"uuid": "AA01", "notifications": "#
                    + #"{"counter": 900, "every": 1}}]}]}"#,
                "characteristics[0].notifications.counter: 900 is not a whole number from 1 to 512"
            ),
        ] {
            XCTAssertThrowsError(try model(json), json) { error in
                let text = "\(error)"
                XCTAssertTrue(text.contains(part) && text.hasSuffix("."), text)
            }
        }
    }

    func testAUUIDMayBeginAsAHexadecimalNumber() throws {
        let model = try model(
            #"{"services": [{"uuid": "0x180F", "characteristics": [{"uuid": "0x2a19", "echo": "0x2A19"}]}]}"#)
        XCTAssertEqual(model.services.map(\.uuid), [CBUUID(string: "180F")])
    }

    func testMoreCharacteristicsThanHandlesAreRefused() {
        let many = Array(repeating: #"{"uuid": "AA01"}"#, count: 40_000).joined(separator: ",")
        XCTAssertThrowsError(try model(#"{"services": [{"uuid": "AA00", "characteristics": [\#(many)]}]}"#)) { error in
            XCTAssertTrue("\(error)".contains("no handle is left for it"), "\(error)")
        }
    }

    func testRandomNumbersInEveryPlaceLoadOrAreRefusedInASentence() throws {
        var random = TestRandom(self)
        func number(_ usual: String) -> String {
            let wild = [
                "\(Int.random(in: .min ... .max, using: &random))", "\(Int.random(in: -600...600, using: &random))",
                "\(Double.random(in: -2...2, using: &random))", "1e\(Int.random(in: -400...400, using: &random))",
                "65536", "-1", "0", "true", #""7""#,
            ]
            return Int.random(in: 0..<6, using: &random) == 0 ? wild.randomElement(using: &random) ?? usual : usual
        }
        var loaded = 0
        for _ in 0..<1000 {
            let json = """
                { "appearance": \(number("833")), "services": [
                    { "uuid": "AA00", "handle": \(number("16")), "appearsAfter": \(number("0")), "characteristics": [
                        { "uuid": "AA01", "flags": ["notify"], "notifications": {
                            "cycle": ["00", "01"], "every": \(number("1")) } },
                        { "uuid": "AA02", "flags": ["notify"], "notifications": {
                            "counter": \(number("4")), "every": \(number("1")) } } ] } ] }
                """
            do {
                let model = try model(json)
                loaded += 1
                for characteristic in model.services.flatMap(\.characteristics) {
                    guard case .changes(let source, _) = characteristic.behaviour else { return XCTFail(json) }
                    for seconds in [0, 0.5, 1e9] { XCTAssertLessThanOrEqual(source.value(at: seconds).count, 512) }
                }
            } catch {
                let text = "\(error)"
                XCTAssertNotNil(text.prefixMatch(of: #/desk.json, line \d+, column \d+: /#), text)
                XCTAssertTrue(text.contains(" is not a ") || text.contains("no handle is left"), text)
            }
        }
        XCTAssertGreaterThan(loaded, 50)
    }

    func testAFileThatIsNotThereNamesTheProfiles() {
        XCTAssertThrowsError(try PeripheralModel.contents(ofFile: "/no/such/file")) { error in
            XCTAssertTrue("\(error)".contains("heart-rate, battery, sensortag, uart"), "\(error)")
        }
    }
}
