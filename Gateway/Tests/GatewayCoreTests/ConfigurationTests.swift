import BlueCapKit
import Foundation
import GatewayTestSupport
import XCTest

@testable import GatewayCore

final class ConfigurationTests: XCTestCase {
    // MARK: What is read

    func testAnEmptyFileHasTheDefaults() throws {
        for yaml in ["", "# nothing\n", "broker:\n", "---\n"] {
            let configuration = try GatewayConfiguration(yaml: yaml, file: "gateway.yaml")
            XCTAssertEqual(configuration.topicPrefix, "bluecap")
            XCTAssertEqual(configuration.broker.addresses.map(\.description), ["mqtt://127.0.0.1:1883"])
            XCTAssertEqual(configuration.broker.clientIdentifier, "bluecap-\(configuration.name)")
            XCTAssertEqual(configuration.broker.keepAlive, .seconds(5))
            XCTAssertEqual(configuration.store.maximumSize, 100_000_000)
            XCTAssertEqual(configuration.page?.port, 8080)
            XCTAssertNil(configuration.homeAssistant)
            XCTAssertEqual(configuration.claims?.hysteresis, 6)
            XCTAssertTrue(configuration.commands.allow.isEmpty)
            XCTAssertFalse(configuration.commands.scan)
        }
    }

    func testTheExampleIsReadCompletely() throws {
        let example = gatewayFolder.appending(path: "Documentation/gateway.yaml")
        let yaml = try String(contentsOf: example, encoding: .utf8)
        let configuration = try GatewayConfiguration(yaml: yaml, file: "gateway.yaml")
        XCTAssertEqual(configuration.name, "attic")
        XCTAssertEqual(configuration.logLevel, .notice)
        XCTAssertEqual(configuration.broker.addresses.count, 3)
        XCTAssertEqual(configuration.broker.addresses[2].host, "fd00::3")
        XCTAssertTrue(configuration.broker.addresses[0].isSecure)
        XCTAssertEqual(configuration.broker.password, .credential("mqtt-password"))
        XCTAssertEqual(configuration.broker.keepAlive, .seconds(10))
        XCTAssertEqual(configuration.broker.certificateFile, "/etc/bluecap-gateway/client.crt")
        XCTAssertEqual(configuration.radio.adapter, "hci0")
        XCTAssertEqual(configuration.radio.bindKeys, .credential("bind-keys"))
        XCTAssertEqual(configuration.radio.filter.names.map(\.description), ["Ruuvi*", "ATC_123456"])
        XCTAssertEqual(configuration.radio.filter.manufacturers, [0x0499])
        XCTAssertEqual(configuration.radio.filter.minimumStrength, -90)
        XCTAssertEqual(configuration.radio.throttle.minimumInterval, .milliseconds(500))
        XCTAssertEqual(configuration.peripherals.count, 2)
        let strap = configuration.peripherals[0]
        XCTAssertEqual(strap.selector, DeviceName("C0:FF:EE:00:18:0D").map { .address($0) })
        XCTAssertEqual(strap.characteristics.map(\.mode), [.notify, .read(every: .seconds(600))])
        XCTAssertEqual(strap.characteristics[1].uuid, CBUUID(string: "2A19"))
        XCTAssertEqual(configuration.peripherals[1].selector, .name("Front Door"))
        XCTAssertEqual(configuration.peripherals[1].characteristics[0].format, .simple(.uint16))
        XCTAssertEqual(configuration.commands.allow.count, 2)
        XCTAssertEqual(configuration.commands.allow[0].write.map(\.description), ["180d/2a39"])
        XCTAssertEqual(configuration.store.maximumAge, .seconds(14 * 86_400))
        XCTAssertEqual(configuration.store.maximumSize, 500_000_000)
        XCTAssertEqual(configuration.page?.token, .file("/etc/bluecap-gateway/token"))
        XCTAssertEqual(configuration.page?.hosts, ["gateway.example.org"])
        XCTAssertEqual(configuration.homeAssistant?.removeAfter, .seconds(60 * 86_400))
        XCTAssertEqual(configuration.claims?.duration, .seconds(10))
        XCTAssertEqual(configuration.limits.messageSize, 8_192)
    }

    func testEachKeyOfTheTableIsInTheExample() throws {
        let example = gatewayFolder.appending(path: "Documentation/gateway.yaml")
        let yaml = try String(contentsOf: example, encoding: .utf8)
        let words = Set(yaml.split { !($0.isLetter || $0.isNumber) }.map(String.init))
        for key in GatewayConfiguration.keys {
            let name = key.path.split(separator: ".").last.map(String.init) ?? ""
            XCTAssertTrue(words.contains(name), "\(key.path) is missing in gateway.yaml")
        }
    }

    func testEachKeyIsDeclaredOnceWithItsMeaning() {
        let keys = GatewayConfiguration.keys
        XCTAssertGreaterThan(keys.count, 50)
        XCTAssertEqual(Set(keys.map(\.path)).count, keys.count)
        for key in keys {
            XCTAssertTrue(key.meaning.hasSuffix("."), key.path)
            XCTAssertFalse(key.type.isEmpty || key.defaultText.isEmpty || key.range.isEmpty, key.path)
        }
    }

    // MARK: Errors

    private func problems(_ yaml: String) -> [String] {
        do throws(GatewayConfigurationError) {
            _ = try GatewayConfiguration(yaml: yaml, file: "gateway.yaml")
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    func testAnUnknownKeyIsReportedWithTheNearestOne() {
        XCTAssertEqual(
            problems("radio:\n  throtle:\n    heartbeat: 10s\n"),
            [
                "gateway.yaml:2:3: radio.throtle: unknown key. Did you mean \"throttle\"? "
                    + "Allowed here: adapter, scan, bindKeysFile, filter, throttle."
            ])
        XCTAssertEqual(
            problems("nonsense: 1\n"),
            [
                "gateway.yaml:1:1: nonsense: unknown key. Allowed here: name, topicPrefix, logLevel, broker, radio, "
                    + "peripherals, commands, store, page, homeAssistant, claims, limits."
            ])
    }

    func testAWrongValueIsReportedWithWhatIsAllowed() {
        XCTAssertEqual(
            problems("broker:\n  keepAlive: 5 years\n"),
            [
                "gateway.yaml:2:14: broker.keepAlive: found \"5 years\"; allowed: a duration from 5s to 1h, such as 500ms, "
                    + "10s or 7d."
            ])
        XCTAssertEqual(
            problems("logLevel: loud\n"),
            [
                "gateway.yaml:1:11: logLevel: found \"loud\"; allowed: one of trace, debug, info, notice, warning, error, "
                    + "critical."
            ])
        XCTAssertEqual(
            problems("radio: {filter: {minimumStrength: 21}}\n"),
            [
                "gateway.yaml:1:35: radio.filter.minimumStrength: found \"21\"; allowed: a whole number from -127 to 20 dBm."
            ])
        XCTAssertEqual(problems("radio: {scan: yes}\n").count, 1)
        XCTAssertEqual(problems("name: a/b\n").count, 1)
        XCTAssertEqual(problems("name: claim\n").count, 1)
        XCTAssertEqual(problems("topicPrefix: a/+\n").count, 1)
        XCTAssertEqual(problems("topicPrefix: /a\n").count, 1)
        XCTAssertEqual(problems("store: {maximumSize: 100}\n").count, 1)
        XCTAssertEqual(problems("store: {maximumSize: 99999999999999999999 GB}\n").count, 1)
        XCTAssertEqual(problems("broker: {keepAlive: 7500ms}\n").count, 1)
        XCTAssertEqual(problems("page: {address: localhost}\n").count, 1)
        XCTAssertEqual(problems("broker: {addresses: []}\n").count, 1)
        XCTAssertEqual(problems("broker: [1]\n").count, 1)
        XCTAssertEqual(problems("peripherals: {a: 1}\n").count, 1)
        XCTAssertEqual(problems("peripherals: [1]\n").count, 1)
        XCTAssertEqual(problems("- 1\n").count, 1)
    }

    func testAnElementOfAListIsReportedAtItsPlace() {
        XCTAssertEqual(
            problems("radio:\n  filter:\n    services:\n      - 180f\n      - battery\n"),
            [
                "gateway.yaml:5:9: radio.filter.services: found \"battery\"; allowed: a UUID of 4, 8 or 32 hexadecimal "
                    + "digits (8-4-4-4-12)."
            ])
    }

    func testAllErrorsAreReportedAtOnceInTheirOrder() {
        let yaml = """
            name: "a b"
            broker:
              adresses: [mqtt://x:1]
              keepAlive: 1s
            peripherals:
              - address: C0:FF:EE:00:18:0D
                characteristics:
                  - service: 180f
                    mode: read
              - name: x
                adress: y
            """
        let paths = problems(yaml).map { $0.split(separator: " ")[1].dropLast() }
        XCTAssertEqual(
            paths,
            [
                "name", "broker.adresses", "broker.keepAlive", "peripherals[1].characteristics[1]",
                "peripherals[1].characteristics[1].mode", "peripherals[2].adress",
            ])
    }

    func testThousandsOfErrorsAreBounded() {
        let yaml = "radio:\n  filter:\n    addresses: [\(Array(repeating: "x", count: 900).joined(separator: ", "))]\n"
        do throws(GatewayConfigurationError) {
            _ = try GatewayConfiguration(yaml: yaml, file: "gateway.yaml")
            XCTFail("accepted")
        } catch {
            XCTAssertEqual(error.problems.count, GatewayConfigurationError.limit)
            XCTAssertEqual(error.omitted, 850)
            XCTAssertTrue(error.description.hasSuffix("… and 850 more."))
        }
    }

    func testKeysThatContradictEachOtherAreReported() {
        let cases = [
            "broker: {passwordFile: /etc/password}": "broker.passwordFile: the key \"user\" is required",
            "broker: {tls: {certificateFile: /a}}": "broker.tls: certificateFile and keyFile are required together.",
            "broker: {tls: {authorityFile: /a}}": "broker.tls: no address uses TLS.",
            "peripherals: [{address: \"C0:FF:EE:00:18:0D\", name: x}]": "only one of address and name is allowed.",
            "peripherals: [{connect: true}]": "the key \"address\" or \"name\" is missing.",
            "peripherals: [{name: x}, {name: x}]": "the peripheral x occurs twice.",
            "peripherals: [{name: x, characteristics: [{service: 180f, uuid: 2a19, interval: 5s}]}]":
                "an interval is allowed only with mode: read.",
            "peripherals: [{name: x, characteristics: [{service: 180f, uuid: 2a19, mode: read}]}]":
                "the key \"interval\" is required with mode: read.",
            "peripherals: [{name: x, characteristics: [{service: 180f, uuid: 2a19, as: Batery Level}]}]":
                "Did you mean \"Battery Level\"?",
            "peripherals: [{name: x, connect: false, characteristics: [{service: 180f, uuid: 2a19}]}]":
                "characteristics need a link",
            "radio: {throttle: {heartbeat: 1s, minimumInterval: 2s}}": "the heartbeat is shorter than minimumInterval",
            "homeAssistant: {absentAfter: 1d, removeAfter: 10m}": "removeAfter must be longer than absentAfter.",
            "commands: {allow: [{read: [\"*\"]}]}": "the key \"peripheral\" is missing",
        ]
        for (yaml, reason) in cases {
            let found = problems(yaml)
            XCTAssertTrue(found.contains { $0.contains(reason) }, "\(yaml): \(found)")
        }
    }

    // MARK: Files that are no configuration

    func testDuplicateKeysAreRefused() {
        XCTAssertEqual(
            problems("name: a\nbroker: {}\nname: b\n"),
            ["gateway.yaml:1:1: the same key occurs twice in one mapping: \"name\". Remove one."])
    }

    func testAnchorsAliasesTagsAndBlockTextsAreRefused() {
        var bomb = "a: &a [x, x]\n"
        for letter in "bcdefghijklmnopqrstuvwxyz" {
            let last = bomb.split(separator: "\n").last?.first.map(String.init) ?? "a"
            bomb +=
                "\(letter): &\(letter) [*\(last), *\(last), *\(last), *\(last), *\(last), *\(last), *\(last), *\(last)]\n"
        }
        let anchors = [
            bomb, bomb + "? *z\n: 1\n", "name: &x a\n", "name: *x\n", "[&a b]", "{a: *b}", "- &a b\n", "? &a b\n",
            "&a b: c\n",
            // Only the parser sees this one: the quotation marks are inside of texts.
            "a: [foo\n 'x, &a [1], z 'y]\n",
        ]
        let texts = ["name: |\n  a\n", "name: >\n  a\n", "name: 'a\n  b'\n"]
        for (cases, reason) in [
            (anchors, "anchors (&name)"), (["name: !secret x\n", "name: !!binary aGVsbG8=\n"], "tags such as !name"),
            (texts, "line"), (["name: 'it''s' &x\n"], "no valid YAML"),
        ] {
            for yaml in cases {
                let found = problems(yaml)
                XCTAssertTrue(found.count == 1 && found[0].contains(reason), "\(yaml): \(found)")
            }
        }
        XCTAssertEqual(problems("page: {enabled: false} # 'it is &off\nradio: {filter: {names: [\"*\", 'a&b']}}\n"), [])
    }

    func testDeepAndHugeAndBrokenFilesAreRefused() {
        let deep = [
            String(repeating: "[", count: 100_000), String(repeating: "{a: ", count: 50_000),
            String(repeating: "- ", count: 100_000),
            (0..<400).map { String(repeating: " ", count: $0) + "a:" }.joined(separator: "\n"),
            String(repeating: "[\n", count: 100_000), String(repeating: "? ", count: 100_000),
        ]
        for yaml in deep { XCTAssertTrue(problems(yaml).first?.contains("nested too deeply") ?? false) }
        XCTAssertEqual(
            problems(String(repeating: "#", count: 262_145)),
            ["gateway.yaml:1:1: the file has 262145 bytes; at most 262144 are allowed."])
        XCTAssertEqual(
            problems("name: a\n---\nname: b\n").first,
            "gateway.yaml:2:1: no valid YAML: the file has several documents; one is allowed.")
        for yaml in [
            "name: [a", "name: \"a", "a: b: c", "\tname: a", "name: \u{0}", "{", "name: a\n broker: {}",
            "%YAML 9.9\n---\n",
        ] {
            XCTAssertFalse(problems(yaml).isEmpty, yaml)
        }
    }

    func testRandomChangesOfTheExampleNeverTrap() throws {
        let example = gatewayFolder.appending(path: "Documentation/gateway.yaml")
        let bytes = Array(try Data(contentsOf: example))
        let special = Array("[]{}:,-?&*!|>'\"#%@` \n\t~0a".utf8)
        var generator = SeededNumbers(SeededNumbers.seed)
        var refused = 0
        for round in 0..<400 {
            var changed = bytes
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let place = Int.random(in: 0..<changed.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: changed[place] = special.randomElement(using: &generator) ?? 0
                case 1: changed.insert(special.randomElement(using: &generator) ?? 0, at: place)
                case 2: changed.remove(at: place)
                default: changed[place] = UInt8.random(in: 0...255, using: &generator)
                }
            }
            let found = problems(String(decoding: changed, as: UTF8.self))
            refused += found.isEmpty ? 0 : 1
            for problem in found {
                XCTAssertTrue(problem.hasPrefix("gateway.yaml:"), "\(SeededNumbers.seed) \(round): \(problem)")
            }
        }
        XCTAssertGreaterThan(refused, 100)
    }

    // MARK: Secrets

    func testASecretInTheWrongPlaceIsNotInTheError() {
        for yaml in [
            "broker: {user: a, passwordFile: hunter2}", "broker: {user: a, pasword: hunter2}",
            "broker: {addresses: [\"mqtt://a:hunter2@h\"]}", "page: {tokenFile: hunter2}", "broker: hunter2",
            "broker: {user: a, passwordFile: \"hunter2\n", "page: {tokenFile: [hunter2]}",
            "radio: {bindKeysFile: hunter2}", "radio: {bindKeysFile: {\"C0:FF:EE:00:18:0D\": hunter2}}",
        ] {
            let found = problems(yaml)
            XCTAssertFalse(found.isEmpty, yaml)
            for problem in found { XCTAssertFalse(problem.contains("hunter2"), problem) }
        }
    }

    func testASecretIsReadFromAFileAndFromACredential() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "bluecap-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "password")
        let variables = ["CREDENTIALS_DIRECTORY": folder.path()]
        for (text, wanted) in [("hunter2\n", "hunter2"), ("hunter2", "hunter2"), ("a b\r\n", "a b"), (" ä ", " ä ")] {
            try Data(text.utf8).write(to: file)
            for source in ["credential:password", file.path()] {
                let secret = try XCTUnwrap(SecretSource(source)).read(environment: variables)
                XCTAssertTrue(secret.matches(wanted))
                XCTAssertEqual(secret.withText { $0 }, wanted)
                XCTAssertFalse(
                    secret.matches(wanted + "x") || secret.matches("") || secret.matches(String(wanted.dropLast())))
                var dumped = "\(secret) \(String(reflecting: secret)) \([secret]) "
                dump(secret, to: &dumped)
                XCTAssertFalse(dumped.contains(wanted), dumped)
                XCTAssertTrue(dumped.contains("‹hidden›"))
            }
        }
        for wrong in ["", "\n", "a\nb", "\u{0}", String(repeating: "x", count: 5_000)] {
            try Data(wrong.utf8).write(to: file)
            XCTAssertThrowsError(try SecretSource(file.path())?.read())
        }
        XCTAssertThrowsError(try SecretSource("credential:password")?.read(environment: [:])) {
            XCTAssertTrue("\($0)".contains("LoadCredential=password"), "\($0)")
        }
        XCTAssertThrowsError(try SecretSource("/nowhere/at/all")?.read())
        for text in ["credential:", "credential:../x", "credential:..", "relative", ""] {
            XCTAssertNil(SecretSource(text))
        }
    }

    func testKeysOfSensorsAreReadFromAFile() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "bluecap-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        func read(_ text: String) throws -> [BluetoothAddress: Data]? {
            try Data(text.utf8).write(to: file)
            return try SecretSource(file.path())?.readBindKeys()
        }
        let (address, key) = ("54:48:E6:8F:80:A5", "231d39c1d7cc1ab1aee224cd096db932")
        let keys = try read("# kitchen\n\n\(address) \(key)\r\n  c0ffee00180d\t\(key.uppercased()) # attic")
        XCTAssertEqual(keys?.count, 2)
        for sensor in [address, "C0:FF:EE:00:18:0D"] {
            XCTAssertEqual(try keys?[XCTUnwrap(BluetoothAddress(sensor))].map(PayloadBytes.text), key)
        }
        XCTAssertEqual(try read("")?.count, 0)
        for (text, reason) in [
            "\(address) \(key.dropLast())": "line 1: the key has 31 characters; 32 hexadecimal digits are required.",
            "#\n\(address) \(key)0": "line 2: the key has 33 characters; 32 hexadecimal digits are required.",
            "\(address) \(key.dropLast())x": "line 1: the key has 32 characters; 32 hexadecimal digits are required.",
            "\(key) \(address)": "line 1: an address such as C0:FF:EE:00:18:0D, a space and a key",
            "\(address)\n": "line 1: an address such as", "\(address) \(key) \(key)": "line 1: an address such as",
            "\(address) \(key)\n\(address.lowercased()) \(key)": "line 2: the address occurs twice.",
            String(repeating: "#", count: 65_537): "the file exceeds 64 KiB.",
        ] {
            XCTAssertThrowsError(try read(text), text) { error in
                XCTAssertTrue("\(error)".hasPrefix("\(file.path()): \(reason)"), "\(error)")
                XCTAssertFalse("\(error)".contains(key.dropLast()), "\(error)")
            }
        }
    }

    // MARK: Parts

    func testBrokerAddresses() {
        let allowed = [
            "mqtt://h": "mqtt://h:1883", "mqtts://h": "mqtts://h:8883", "mqtt://127.0.0.1:1": "mqtt://127.0.0.1:1",
            "mqtt://[::1]:99": "mqtt://[::1]:99", "mqtt://h:65535/": "mqtt://h:65535",
        ]
        for (text, wanted) in allowed { XCTAssertEqual(ConfigurationType.address(text)?.description, wanted) }
        XCTAssertEqual(ConfigurationType.address("mqtt://[::1]")?.host, "::1")
        for text in [
            "", "h", "h:1", "http://h", "mqtt://", "mqtt://h:0", "mqtt://h:65536", "mqtt://h/x", "mqtt://u@h",
            "mqtt://u:p@h",
            "mqtt://h?x", "mqtt://h#x", "mqtt://a b", "mqtt:///x",
        ] { XCTAssertNil(ConfigurationType.address(text), text) }
    }

    func testTheFilterAcceptsWhatOneOfItsListsHas() throws {
        let device = try XCTUnwrap(DeviceName("c0ffee00180d"))
        let ruuvi = PeripheralAdvertisements(localName: "Ruuvi 1", manufacturerDataByCompany: [0x499: Data([5])])
        let strap = PeripheralAdvertisements(
            serviceUUIDs: [CBUUID(string: "180D")], serviceData: [CBUUID(string: "180F"): Data()])
        var filter = AdvertisementFilter()
        XCTAssertTrue(filter.accepts(device: device, strength: nil, advertisements: ruuvi))
        filter.names = [try XCTUnwrap(NamePattern("Ruuvi*"))]
        XCTAssertTrue(filter.accepts(device: device, strength: -50, advertisements: ruuvi))
        XCTAssertFalse(filter.accepts(device: device, strength: -50, advertisements: strap))
        filter.services = [CBUUID(string: "180F")]
        XCTAssertTrue(filter.accepts(device: device, strength: -50, advertisements: strap))
        filter.minimumStrength = -60
        XCTAssertFalse(filter.accepts(device: device, strength: -61, advertisements: strap))
        XCTAssertFalse(filter.accepts(device: device, strength: nil, advertisements: strap))
        XCTAssertFalse(
            AdvertisementFilter(manufacturers: [1]).accepts(device: device, strength: 0, advertisements: ruuvi))
        XCTAssertTrue(
            AdvertisementFilter(manufacturers: [0x499]).accepts(device: device, strength: 0, advertisements: ruuvi))
        XCTAssertTrue(
            AdvertisementFilter(addresses: [device]).accepts(device: device, strength: 0, advertisements: strap))
    }

    func testTheThrottleAdmitsChangesAndHeartbeats() {
        let options = GatewayConfiguration.ThrottleOptions(
            minimumInterval: .seconds(1), strengthChange: 6, heartbeat: .seconds(60))
        var throttle = AdvertisementThrottle()
        func admits(_ time: Double, _ strength: Int?, _ data: Int = 1) -> Bool {
            throttle.admits(at: .seconds(time), strength: strength, fingerprint: data, options: options)
        }
        XCTAssertTrue(admits(0, -60))
        XCTAssertFalse(admits(0.9, -80, 2))
        XCTAssertFalse(admits(1, -65))
        XCTAssertTrue(admits(2, -66))
        XCTAssertTrue(admits(3.5, -66, 2))
        XCTAssertFalse(admits(60, -66, 2))
        XCTAssertTrue(admits(63.5, -66, 2))
        XCTAssertTrue(admits(65, nil, 2))
        XCTAssertFalse(admits(67, nil, 2))
    }
}
