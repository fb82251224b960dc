import BlueCapDBus
import BlueCapFutures
import XCTest

@testable import BlueZSimulator

/// How a peripheral responds to requests: with its value, by its behaviour, by a file.
final class PeripheralServerTests: XCTestCase {
    private let strap = GattCast.strap

    private func scene(_ room: Room, behavior: (any PeripheralBehavior)? = nil) -> (Simulator, BusClient) {
        let simulator = Simulator.inProcess(room: room, bluez: .v5_66)
        if let behavior { simulator.add(strap, behavior: behavior) }
        let client = BusClient(simulator)
        client.startScanning()
        simulator.advance(by: 4)
        _ = client.error(of: "StopDiscovery")
        return (simulator, client)
    }

    private func connect(_ client: BusClient, _ path: ObjectPath = GattCast.path) -> DBusError? {
        client.error(of: "Connect", at: path)
    }

    // MARK: Tables

    func testHandlesAreGivenInTheOrderOfTheListAndHolesAreLeftWhereOneIsAskedFor() {
        let table = AttributeDatabase(
            [
                VirtualService(
                    "180d", characteristics: [VirtualCharacteristic("2a37", [.indicate])], includes: ["180f", "1234"],
                    handle: 0x20),
                VirtualService("180f", isPrimary: false, characteristics: [VirtualCharacteristic("2a19")]),
                VirtualService("no uuid"),
            ], name: nil, appearance: nil)
        XCTAssertEqual(table.services.map(\.handle), [1, 6, 0x20, 0x26])
        XCTAssertEqual(table.services[2].includes, [0x26])
        XCTAssertEqual(table.services[2].characteristics.map(\.handle), [0x23])
        XCTAssertEqual(table.services[2].characteristics[0].configurationHandle, 0x25)
        XCTAssertEqual(table.characteristic("2A19")?.handle, 0x27)
        XCTAssertEqual(table.characteristic(0x28)?.uuid, "00002a19-0000-1000-8000-00805f9b34fb")
    }

    func testTheSameUUIDTwiceIsTwoCharacteristics() {
        let table = AttributeDatabase(
            [VirtualService("180d", characteristics: [VirtualCharacteristic("2a37"), VirtualCharacteristic("2a37")])],
            name: nil, appearance: nil)
        XCTAssertEqual(table.services[2].characteristics.map(\.handle), [0x0b, 0x0d])
    }

    func testReliableWritesBringTheirDescriptor() {
        let table = AttributeDatabase(
            [VirtualService("180d", characteristics: [VirtualCharacteristic("2a39", [.write, .reliableWrite])])],
            name: nil, appearance: nil)
        let characteristic = table.services[2].characteristics[0]
        XCTAssertTrue(characteristic.flags.contains(.extendedProperties))
        XCTAssertEqual(characteristic.descriptors.map(\.uuid), [AttributeDatabase.extendedProperties])
        XCTAssertEqual(table.value(of: characteristic.descriptors[0].handle), [1, 0])
    }

    // MARK: Behaviours

    private final class Script: PeripheralBehavior {
        let log = Locked<[String]>([])
        let answers: [AttributeAnswer]
        private let position = Locked(0)
        let connection: ConnectionAnswer

        init(_ answers: [AttributeAnswer] = [], connection: ConnectionAnswer = .accept(after: 0)) {
            self.answers = answers
            self.connection = connection
        }

        private func next() -> AttributeAnswer? {
            position.withLock { position in
                defer { position += 1 }
                return position < answers.count ? answers[position] : nil
            }
        }

        private func note(_ text: String) { log.withLock { $0.append(text) } }

        func connectRequested(to peripheral: VirtualPeripheral, at seconds: Double) -> ConnectionAnswer {
            note("connect")
            return connection
        }

        func linkChanged(of peripheral: VirtualPeripheral, isUp: Bool, at seconds: Double) {
            note(isUp ? "up" : "down")
        }

        func read(
            _ attribute: VirtualAttribute, of peripheral: VirtualPeripheral, value: [UInt8], at seconds: Double
        ) -> AttributeAnswer {
            note("read \(attribute.characteristic.prefix(8))")
            return next() ?? .value(value)
        }

        func write(
            _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, type: VirtualWriteType,
            at seconds: Double
        ) -> AttributeAnswer {
            note("write \(bytes) \(type)")
            return next() ?? .done
        }

        func subscriptionChanged(
            to attribute: VirtualAttribute, of peripheral: VirtualPeripheral, isOn: Bool, at seconds: Double
        ) {
            note("\(isOn ? "+" : "-") \(attribute.characteristic.prefix(8))")
        }
    }

    func testABehaviourIsAskedAboutEverythingInItsOrder() {
        let script = Script()
        let (simulator, client) = scene(Room(peripherals: [strap]), behavior: script)
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        XCTAssertEqual(client.read(GattCast.place), [1])
        XCTAssertNil(client.write([1, 2], to: GattCast.control, type: "request"))
        XCTAssertNil(client.write([3], to: GattCast.control, type: "command"))
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.rate))
        simulator.simulateLinkLoss(of: strap.address)
        simulator.run()
        XCTAssertEqual(
            script.log.withLock { $0 },
            [
                "connect", "up", "read 00002a38", "write [1, 2] request", "write [3] command", "+ 00002a37",
                "- 00002a37",
                "down",
            ])
        XCTAssertEqual(simulator.value(of: "2A39", at: strap.address), [3])
    }

    func testABehaviourAnswersValuesErrorsLateOrNever() {
        let script = Script([.value([7, 7]), .error(0x81), .value([8], after: 2), .error(0x0C), .linkLoss])
        let (simulator, client) = scene(Room(peripherals: [strap]), behavior: script)
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        func error() -> DBusError? {
            client.error(of: "ReadValue", at: GattCast.place)
        }
        XCTAssertEqual(client.read(GattCast.place), [7, 7])
        XCTAssertEqual(error(), .bluez("Failed", "Operation failed with ATT error: 0x81"))
        let begin = simulator.seconds
        XCTAssertEqual(client.read(GattCast.place), [8])
        XCTAssertEqual(simulator.seconds - begin, 2.005, accuracy: 0.001)
        XCTAssertEqual(error(), .bluez("NotPermitted", "Not paired"))
        XCTAssertEqual(error()?.message, "Operation failed with ATT error: 0x0e")
        XCTAssertEqual(simulator.links, [])
    }

    func testABehaviourRefusesOrIgnoresConnections() {
        for (answer, seconds) in [(ConnectionAnswer.refuse, 0.05), (.ignore, 40)] {
            let (simulator, client) = scene(Room(peripherals: [strap]), behavior: Script(connection: answer))
            let begin = simulator.seconds
            XCTAssertEqual(connect(client)?.message, "le-connection-abort-by-local")
            XCTAssertEqual(simulator.seconds - begin, seconds, accuracy: 0.01)
        }
    }

    func testABehaviourMayNotifyWhileItAnswers() {
        final class Bell: PeripheralBehavior {
            let simulator = Locked<Simulator?>(nil)
            func write(
                _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral,
                type: VirtualWriteType, at seconds: Double
            ) -> AttributeAnswer {
                simulator.withLock { $0 }?.notify(peripheral.address, characteristic: "2A37", value: bytes.reversed())
                return .done
            }
        }
        let bell = Bell()
        let (simulator, client) = scene(Room(peripherals: [strap]), behavior: bell)
        bell.simulator.withLock { $0 = simulator }
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        XCTAssertNil(client.error(of: "StartNotify", at: GattCast.rate))
        _ = client.takeLog()
        XCTAssertNil(client.write([1, 2], to: GattCast.control, type: "request"))
        client.expectLog("char000b Value=0201")
        bell.simulator.withLock { $0 = nil }
    }

    // MARK: Files

    private let file = """
        { "peripherals": [ { "address": "C0:00:00:00:00:01", "addressType": "random",
            "link": { "mtu": 23, "connectTimeout": 5 },
            "services": [ { "uuid": "180d", "includes": ["180a"], "characteristics": [
                { "uuid": "2a37", "flags": ["notify"], "notifications": { "cycle": ["0048", "004a"], "every": 0.5 } },
                { "uuid": "2a39", "flags": ["write", "read"], "value": "0102", "echo": "2a37",
                  "descriptors": [ { "uuid": "2901", "text": "Control" } ] } ] },
              { "uuid": "180a", "isPrimary": false, "appearsAfter": 2 } ] } ] }
        """

    func testAFileDescribesServicesAndSurvivesTheRoundTrip() throws {
        let room = try Room.decoded(from: Data(file.utf8))
        let services = room.peripherals[0].services
        XCTAssertEqual(services[0].includes, ["180a"])
        XCTAssertEqual(services[0].characteristics[0].notifications, .cycle([[0, 0x48], [0, 0x4A]], every: 0.5))
        XCTAssertEqual(services[0].characteristics[1].value, [1, 2])
        XCTAssertEqual(services[0].characteristics[1].descriptors, [.description("Control")])
        XCTAssertEqual(services[1].appearsAfter, 2)
        XCTAssertEqual(room.peripherals[0].link.mtu, 23)
        for room in [room, .furnished] {
            XCTAssertEqual(try Room.decoded(from: try JSONEncoder().encode(room)), room)
        }
    }

    func testAMistakeInAFileIsNamedWithItsPlace() {
        for (wrong, place) in [
            ("\"flags\": [\"notify\"]", "peripherals[0].services[0].characteristics[0].flags[0]"),
            ("\"value\": \"0102\"", "peripherals[0].services[0].characteristics[1].value"),
        ] {
            let text = file.replacingOccurrences(of: wrong, with: wrong.dropLast(3) + "x" + wrong.suffix(2))
            XCTAssertThrowsError(try Room.decoded(from: Data(text.utf8))) { error in
                XCTAssertTrue("\(error)".contains(place), "\(error)")
            }
        }
    }

    func testAnEchoComesFromTheCharacteristicThatNotifies() throws {
        let service = VirtualService(
            "FFF0",
            characteristics: [
                VirtualCharacteristic("FFF1", [.write], echo: "FFF1"), VirtualCharacteristic("FFF1", [.notify]),
            ])
        let database = AttributeDatabase([service], name: nil, appearance: nil)
        let characteristics = try XCTUnwrap(database.services.last?.characteristics)
        let echo = try XCTUnwrap(characteristics[0].echo)
        XCTAssertEqual(database.target(ofEcho: echo)?.handle, characteristics[1].handle)
    }

    func testWhatIsWrittenIsEchoed() throws {
        var room = try Room.decoded(from: Data(file.utf8))
        room.peripherals[0].services[0].characteristics[0].notifications = nil
        let (simulator, client) = scene(room)
        XCTAssertNil(connect(client))
        simulator.advance(by: 1)
        let service = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service000a"
        let rate = ObjectPath(validating: service + "/char000c") ?? .root
        let control = ObjectPath(validating: service + "/char000f") ?? .root
        XCTAssertNil(client.error(of: "StartNotify", at: rate))
        _ = client.takeLog()
        XCTAssertNil(client.write([5, 6], to: control, type: "request"))
        client.expectLog("char000c Value=0506")
    }

    func testTheFurnishedRoomsPeripheralsHaveServicesAndABattery() {
        let simulator = Simulator.inProcess(bluez: .v5_66)
        let client = BusClient(simulator)
        client.startScanning()
        simulator.advance(by: 5)
        for peripheral in Room.furnished.peripherals where !peripheral.services.isEmpty {
            let path = "/org/bluez/hci0/dev_" + peripheral.address.written(separator: UInt8(ascii: "_"))
            XCTAssertNil(connect(client, ObjectPath(validating: path) ?? .root), path)
        }
        simulator.advance(by: 2)
        XCTAssertEqual(simulator.links.count, 7)
        XCTAssertEqual(
            client.property("Percentage", of: "org.bluez.Battery1", at: "/org/bluez/hci0/dev_C0_5A_17_00_18_0D"), "87")
        XCTAssertTrue(simulator.notify("C0:5A:17:00:18:0D", characteristic: "2A19", value: [86]))
        simulator.run()
        XCTAssertTrue(client.takeLog().contains("dev_C0_5A_17_00_18_0D Percentage=86"))
    }
}
