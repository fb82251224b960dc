import BlueZSimulator
import Foundation
import GatewayBroker
import GatewayCore
import GatewayTestSupport
import XCTest

/// What the program says to its user: each fault has one clear message that says what to do.
final class UserTests: XCTestCase {
    private let password = "the-secret-of-this-test"
    /// The key of <https://bthome.io/encryption>, with the address of its sensor.
    private let (sensor, bindKey) = ("54:48:E6:8F:80:A5", "231d39c1d7cc1ab1aee224cd096db932")

    private func simplest(_ broker: String, _ more: String = "page: {enabled: false}") -> String {
        "name: attic\nbroker: {addresses: [\"\(broker)\"]}\n\(more)\n"
    }

    func testWithoutABrokerItSaysSoOnceAndConnectsWhenThereIsOne() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let port = try Loopback.freePort()
        let process = try stage.start(simplest("mqtt://127.0.0.1:\(port)"))
        let message = """
            warning not connected to the broker: mqtt://127.0.0.1:\(port) cannot be reached: Connection refused. \
            Is the broker running, and is broker.addresses right?
            """
        try await process.wait(for: message)
        // The second attempt follows within a second.
        try await stage.simulator.waits(3)
        XCTAssertEqual(process.text.components(separatedBy: "Is the broker running").count, 2, process.text)
        var options = MosquittoBroker.Options()
        options.port = port
        let broker = try await MosquittoBroker(options)
        try await process.wait(for: "notice connected to the broker \(broker.address)")
        try await process.terminate(limit: .seconds(30))
        XCTAssertEqual(process.exitStatus, 0)
        XCTAssertFalse(process.text.contains("CancellationError"), process.text)
    }

    func testAWrongPasswordIsSaid() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        var options = MosquittoBroker.Options()
        options.users = ["attic": "another"]
        let broker = try await MosquittoBroker(options)
        let file = try stage.directory.write("password", password + "\n")
        let process = try stage.start(
            """
            name: attic
            broker: {addresses: ["\(broker.address)"], user: attic, passwordFile: \(file)}
            page: {enabled: false}
            """)
        try await process.wait(
            for: "not authorised; the user name or the password is wrong, or this user may not connect.")
    }

    /// All that it writes at the most detailed level, and all that the page shows, with a right and a wrong password.
    func testSecretsAreNeverWritten() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        var options = MosquittoBroker.Options()
        options.users = ["attic": password, "observer": "x"]
        let broker = try await MosquittoBroker(options)
        let token = "the-token-of-this-test"
        for isRight in [true, false] {
            let secret = isRight ? password : "wrong-" + password
            let file = try stage.directory.write("password", secret + "\n")
            let tokenFile = try stage.directory.write("token", token + "\n")
            let keys = try stage.directory.write("keys", "\(sensor) \(bindKey)\n")
            let port = try Loopback.freePort()
            let process = try stage.start(
                """
                name: attic
                logLevel: trace
                radio: {bindKeysFile: \(keys)}
                broker: {addresses: ["\(broker.address)"], user: attic, passwordFile: \(file)}
                peripherals: [{name: Tag, characteristics: [{service: 180D, uuid: 2A37}]}]
                page: {port: \(port), tokenFile: \(tokenFile)}
                claims: {enabled: false}
                """)
            if isRight {
                let subscriber = try await Subscriber([broker.address], ["bluecap/attic/value/#"]) {
                    ($0.user, $0.password) = ("observer", "x")
                }
                _ = try await subscriber.messages(atLeast: 20, limit: .seconds(30))
                await subscriber.stop()
            } else {
                try await process.wait(for: "the password is wrong")
            }
            try await process.wait(for: "the page: http://")
            var pages = ""
            for path in ["/", "/status", "/metrics"] {
                pages += String(decoding: try XCTUnwrap(Loopback.get(path, port: port), path), as: UTF8.self)
            }
            try await process.terminate(limit: .seconds(30))
            let log = process.text
            XCTAssertTrue(log.contains(" debug ") || log.contains(" trace "), log)
            for text in [log, pages] {
                XCTAssertFalse(text.contains(password), "the password is written")
                XCTAssertFalse(text.contains(token), "the token is written")
                XCTAssertFalse(text.contains(bindKey), "the key of a sensor is written")
            }
        }
    }

    func testAPasswordFileThatIsMissingIsSaidWithItsKey() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let process = try stage.start(
            "name: attic\nbroker: {user: attic, passwordFile: credential:mqtt-password}\n",
            environment: ["CREDENTIALS_DIRECTORY": "/nowhere"])
        let status = try await process.status()
        XCTAssertEqual(status, 1)
        XCTAssertTrue(
            process.text.contains(
                "bluecap-gateway: broker.passwordFile: credential:mqtt-password: the file cannot be read."),
            process.text)
    }

    /// The published vector, from three sensors: with its key, with another one, and with none.
    func testEncryptedReadingsArriveAndAKeyThatIsMissingOrWrongIsSaidOnce() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let (other, unknown) = ("C0:FF:EE:00:00:02", "C0:FF:EE:00:00:03")
        let vector: [UInt8] = [
            0x41, 0xE4, 0x45, 0xF3, 0xC9, 0x96, 0x2B, 0x33, 0x22, 0x11, 0x00, 0x6C, 0x7C, 0x45, 0x19,
        ]
        for address in [sensor, other, unknown] {
            stage.simulator.add(
                VirtualPeripheral(
                    try XCTUnwrap(VirtualAddress(address)), advertisement: Advertisement(serviceData: ["FCD2": vector]),
                    interval: 0.1))
        }
        let broker = try await MosquittoBroker()
        let subscriber = try await Subscriber([broker.address], ["bluecap/attic/reading/#"])
        let keys = try stage.directory.write("keys", "\(sensor) \(bindKey)\n\(other) \(bindKey)  # not its own\n")
        let process = try stage.start(simplest(broker.address) + "radio: {bindKeysFile: \(keys)}\n")
        let readings = try await subscriber.messages(atLeast: 1, limit: .seconds(30))
        XCTAssertEqual(Set(readings.map(\.topic)), ["bluecap/attic/reading/5448e68f80a5"])
        let payload = try XCTUnwrap(readings.first).payload
        let reading = try XCTUnwrap(JSONSerialization.jsonObject(with: payload) as? [String: Any])
        XCTAssertEqual(reading["format"] as? String, "bthome_v2")
        XCTAssertEqual(reading["readings"] as? [String: Double], ["temperature": 25.06, "humidity": 50.55])
        let messages = [
            "warning the key of \(other) in radio.bindKeysFile does not decrypt its readings; the sensor has another one",
            "notice the readings of \(unknown) are encrypted; to publish them, add its address and key to "
                + "radio.bindKeysFile",
        ]
        for message in messages { try await process.wait(for: message) }
        try await stage.simulator.waits(2)
        for message in messages { XCTAssertEqual(process.text.components(separatedBy: message).count, 2, process.text) }
        XCTAssertFalse(process.text.contains(sensor), process.text)
        await subscriber.stop()
    }

    func testAKeyOfASensorThatIsWrittenWrongIsSaidWithItsLine() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        for (key, count) in [(bindKey.dropLast(), 31), (bindKey + "0", 33)] {
            let keys = try stage.directory.write("keys", "\(sensor) \(key)\n")
            let process = try stage.start("name: attic\nradio: {bindKeysFile: \(keys)}\n")
            let status = try await process.status()
            XCTAssertEqual(status, 1)
            XCTAssertEqual(
                process.text,
                "bluecap-gateway: radio.bindKeysFile: \(keys): line 1: the key has \(count) characters; "
                    + "32 hexadecimal digits are required.\n")
        }
    }

    func testConfigurationsThatCannotBeUsedAreSaid() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let wrong = try stage.start("name: attic\nbrokr: {}\n")
        var status = try await wrong.status()
        XCTAssertEqual(status, 78)
        XCTAssertTrue(wrong.text.contains(":2:1: brokr: unknown key. Did you mean \"broker\"?"), wrong.text)

        let missing = try stage.run(["--config", "/nowhere.yaml"])
        status = try await missing.status()
        XCTAssertEqual(status, 78)
        XCTAssertEqual(
            missing.text,
            "bluecap-gateway: /nowhere.yaml: no such file. Write one, or name another with --config.\n")

        let folder = try stage.run(["--config", "/tmp"])
        status = try await folder.status()
        XCTAssertEqual(status, 78)
        XCTAssertEqual(folder.text, "bluecap-gateway: /tmp: not a file that can be read.\n")

        let right = try stage.start("name: attic\n", ["--check"])
        status = try await right.status()
        XCTAssertEqual(status, 0)
        XCTAssertTrue(right.text.hasSuffix(".yaml: no errors\n"), right.text)

        let standard = "/etc/bluecap-gateway/gateway.yaml"
        if !FileManager.default.fileExists(atPath: standard) {
            let none = try stage.run(["--check"])
            status = try await none.status()
            XCTAssertEqual(status, 0)
            XCTAssertEqual(none.text, "\(standard) does not exist: all keys have their defaults\n")
        }
    }

    func testWithoutABusOrWithTheAdapterOffItSaysSo() async throws {
        let stage = try ProgramStage(adapterIsPowered: false)
        defer { stage.end() }
        let broker = try await MosquittoBroker()
        let off = try stage.start(simplest(broker.address))
        try await off.wait(for: "warning Bluetooth cannot be used: The adapter hci0")
        try await off.wait(for: "bluetoothctl power on")
        let none = try stage.start(
            simplest(broker.address).replacing("attic", with: "cellar"),
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nowhere"])
        try await none.wait(
            for: "warning Bluetooth cannot be used: There is no connection to the D-Bus system bus")
        // It goes on: what is stored is sent, and the bus may come.
        try await none.wait(for: "notice connected to the broker")
        XCTAssertTrue(none.isRunning)
    }

    func testAPortInUseIsSaid() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let broker = try await MosquittoBroker()
        let process = try stage.start(simplest(broker.address, "page: {port: \(broker.port)}"))
        let status = try await process.status()
        XCTAssertEqual(status, 1)
        XCTAssertTrue(
            process.text.contains(
                """
                bluecap-gateway: The page cannot listen on 127.0.0.1:\(broker.port), because another program does. \
                Set page.port in the configuration, or end that program.\n
                """), process.text)
    }

    func testTheFolderOfTheStoreIsMadeAndAnUnusableOneIsSaid() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let broker = try await MosquittoBroker()
        let path = stage.directory.path("new/store.sqlite")
        let process = try stage.start(simplest(broker.address) + "store: {path: \(path)}\n")
        try await process.wait(for: "connected to the broker")
        let folder = try FileManager.default.attributesOfItem(atPath: stage.directory.path("new"))
        XCTAssertEqual(folder[.posixPermissions] as? Int, 0o700)
        let file = try FileManager.default.attributesOfItem(atPath: path)
        XCTAssertEqual(file[.posixPermissions] as? Int, 0o600)
        // A folder of the kernel, in which no file can be made; a folder whose parent is missing too; and a file.
        for path in ["/proc/store.sqlite", stage.directory.path("a/b/store.sqlite"), path + "/store.sqlite"] {
            let process = try stage.start(simplest(broker.address) + "store: {path: \(path)}\n")
            let status = try await process.status()
            XCTAssertEqual(status, 1)
            XCTAssertTrue(process.text.contains("bluecap-gateway: Cannot open \(path): "), process.text)
            XCTAssertTrue(
                process.text.contains("Make its folder for the user of the gateway, or change store.path.\n"),
                process.text)
        }
    }

    func testTwoGatewaysOfOneNameAreSaid() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let broker = try await MosquittoBroker()
        let first = try stage.start(simplest(broker.address))
        try await first.wait(for: "connected to the broker")
        _ = try stage.start(simplest(broker.address))
        try await first.wait(
            for: "\(broker.address) has ended the connection. If that repeats, another client may have the identifier "
                + "\"bluecap-attic\": each gateway needs its own name.")
    }

    func testValuesArriveOverTLSWithAClientCertificate() async throws {
        let stage = try ProgramStage()
        defer { stage.end() }
        let certificates = try await TestCertificates()
        var options = MosquittoBroker.Options()
        options.certificates = certificates
        let broker = try await MosquittoBroker(options)
        func configuration(_ client: String) -> String {
            """
            name: attic
            broker:
              addresses: ["\(broker.address)"]
              tls: {authorityFile: \(certificates.authority)\(client)}
            peripherals: [{name: Tag, characteristics: [{service: 180D, uuid: 2A37}]}]
            page: {enabled: false}
            claims: {enabled: false}
            """
        }
        let without = try stage.start(configuration(""))
        try await without.wait(for: "whether the broker wants a certificate.")
        without.end()
        let subscriber = try await Subscriber([broker.address], ["bluecap/attic/value/#"]) {
            $0.security = MosquittoSecurity(
                authorityFile: certificates.authority, certificateFile: certificates.client,
                keyFile: certificates.clientKey)
        }
        _ = try stage.start(
            configuration(", certificateFile: \(certificates.client), keyFile: \(certificates.clientKey)"))
        _ = try await subscriber.messages(atLeast: 5, limit: .seconds(30))
        await subscriber.stop()
    }
}

extension Simulator {
    /// Waits until the simulated time has advanced by so many seconds.
    fileprivate func waits(_ count: Double) async throws {
        let end = seconds + count
        try await eventually(limit: .seconds(count + 10), "\(count) s") { self.seconds >= end }
    }
}
