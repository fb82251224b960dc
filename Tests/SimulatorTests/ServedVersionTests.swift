import BlueCapDBus
import XCTest

@testable import BlueZSimulator

/// The differences between versions of BlueZ for a program that serves and advertises.
final class ServedVersionTests: XCTestCase {
    private func values<Value>(_ minors: [Int], _ body: (BlueZVersion) -> Value) -> [Value] {
        minors.map { body(BlueZVersion(5, $0)) }
    }

    // MARK: Advertisements

    private let parse = "Failed to parse advertisement."
    private let register = "Failed to register advertisement"

    func testLongAdvertisementsDependOnTheVersion() {
        let bytes = [UInt8](repeating: 0xAA, count: 40)
        let manufacturer = ("ManufacturerData", BusValue.manufacturerData(1, bytes))
        let sent = "2bff0100" + Hexadecimal.text(bytes) + " "
        XCTAssertEqual(values([68, 69, 75, 76]) { sentBytes([manufacturer], $0) }, [parse, register, register, sent])
        let secondary = ("SecondaryChannel", BusValue.string("1M"))
        XCTAssertEqual(values([68, 69, 76]) { sentBytes([manufacturer, secondary], $0) }, [parse, sent, sent])
    }

    func testWhatIsNotDiscoverableSendsTheFlagsOfTheVersion() {
        let property = ("Discoverable", BusValue.bool(false))
        XCTAssertEqual(
            values([68, 69, 76, 77, 80]) { sentBytes([property], $0) },
            [" ", "020100 ", "020100 ", "020104 ", "020104 "])
        XCTAssertEqual(
            values([68, 69, 79, 80]) { sentBytes([property], type: "broadcast", $0) }, [" ", parse, parse, " "])
    }

    func testAnAdapterWithoutClassicBluetoothSaysSo() {
        for (isDiscoverable, flags) in [
            (false, [" ", "020104 ", "020104 ", "020104 "]), (true, ["020106 ", "020106 ", "020106 ", "020106 "]),
        ] {
            let property = ("Discoverable", BusValue.bool(isDiscoverable))
            XCTAssertEqual(
                values([68, 69, 77, 80]) { sentBytes([property], isLowEnergyOnly: true, $0) }, flags,
                "\(isDiscoverable)")
        }
    }

    /// `Discoverable` is set to false twice: whether the second time is accepted, and the flags of the record.
    func testWhatIsNotDiscoverableTwiceIsRefusedFrom569On() {
        func second(_ type: String, _ bluez: BlueZVersion) -> (isTaken: Bool, flags: UInt8?) {
            let adapter = Adapter(VirtualAdapter(), version: bluez)
            var record = AdvertisementRecord(
                key: AdvertisementKey(adapter: 0, number: 1), owner: ":1.1", path: "/a", instance: 1,
                traits: DaemonTraits(bluez))
            XCTAssertTrue(record.take("Type", .string(type), of: adapter))
            XCTAssertTrue(record.take("Discoverable", .bool(false), of: adapter))
            let isTaken = record.take("Discoverable", .bool(false), of: adapter)
            return (isTaken, record.data.flags)
        }
        XCTAssertEqual(values([68, 69, 77, 80]) { second("peripheral", $0).isTaken }, [true, false, false, false])
        XCTAssertEqual(values([68, 69, 77, 80]) { second("broadcast", $0).isTaken }, [true, false, false, true])
    }

    func testTheScanResponseHasItsOwnFieldsFrom580On() {
        let properties: [(String, BusValue)] = [
            ("LocalName", .string("A")), ("ScanResponseServiceUUIDs", .strings(["180d"])),
            ("ScanResponseManufacturerData", .manufacturerData(1, [2])),
        ]
        XCTAssertEqual(
            values([79, 80]) { sentBytes(properties, $0) }, [" 020941", " 03030d18" + "04ff010002" + "020941"])
    }

    func testIntervalsAreUsedFrom577On() {
        func sightings(_ bluez: BlueZVersion, _ min: UInt32, _ max: UInt32) -> Int? {
            let adapters = [VirtualAdapter(), VirtualAdapter(index: 1)]
            let simulator = Simulator.inProcess(room: .empty, adapters: adapters, bluez: bluez)
            let program = ServingProgram(
                simulator,
                [
                    ServingProgram.advertisement([
                        ("Type", .string("peripheral")), ("Discoverable", .bool(true)),
                        ("MinInterval", .uint32(min)), ("MaxInterval", .uint32(max)),
                    ])
                ])
            let client = BusClient(simulator)
            client.startScanning()
            guard program.advertise(on: "/org/bluez/hci1") == nil else { return nil }
            let before = simulator.statistics.sightings
            simulator.advance(by: 12.8)
            return simulator.statistics.sightings - before
        }
        XCTAssertEqual(values([76, 77]) { sightings($0, 128, 128) ?? 0 > 50 }, [false, true])
        XCTAssertEqual(values([76, 77]) { sightings($0, 200, 100) == nil }, [false, true], "in the wrong order")
        XCTAssertEqual(values([76, 77]) { sightings($0, 10, 100) == nil }, [false, true], "less than 20 ms")
    }

    func testAnAdvertisementReceivesItsInstanceFrom587On() {
        XCTAssertEqual(
            values([86, 87]) { bluez -> Bool in
                let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
                let program = ServingProgram(
                    simulator, [ServingProgram.advertisement([("Instance", .byte(0))])])
                XCTAssertNil(program.advertise())
                simulator.run()
                return program.takeCalls().contains("advert Set Instance 1")
            }, [false, true])
    }

    // MARK: Applications

    private func scene(
        _ bluez: BlueZVersion, _ objects: [ObjectState]
    ) -> (simulator: Simulator, program: ServingProgram, error: DBusError?) {
        let simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        let program = ServingProgram(simulator, objects + [ServingProgram.connectable])
        let error = program.register()
        XCTAssertNil(program.advertise())
        return (simulator, program, error)
    }

    private func connect(_ simulator: Simulator) -> CentralLink {
        let link = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", mtu: 517))
        simulator.advance(by: 1)
        return link
    }

    func testHandlesThatAreLeftToBlueZAreRefusedAt574And575() {
        XCTAssertEqual(
            values([73, 74, 75, 76]) { scene($0, ServingProgram.heart).error?.message },
            [nil, "Failed to create entry in database", "Failed to create entry in database", nil])
        let explicit = [
            ServingProgram.service("s0", "180d", handle: 0x40),
            ServingProgram.characteristic("s0/c0", "2a37", ["notify"], handle: 0x42),
        ]
        XCTAssertNil(scene(BlueZVersion(5, 75), explicit).error)
    }

    func testSecuredSubscriptionsAreKnownFrom562On() {
        let objects = [
            ServingProgram.service("s0", "180d"), ServingProgram.characteristic("s0/c0", "2a37", ["encrypt-notify"]),
        ]
        XCTAssertEqual(
            values([61, 62]) { scene($0, objects).error?.message }, ["No valid service object found", nil])
    }

    func testTheLongestWriteIsThatOfTheVersion() {
        let objects = [
            ServingProgram.service("s0", "180d"), ServingProgram.characteristic("s0/c0", "2a39", ["write"]),
        ]
        func accepts(_ count: Int, _ bluez: BlueZVersion) -> Bool {
            let (simulator, program, _) = scene(bluez, objects)
            let write = connect(simulator).write([UInt8](repeating: 1, count: count), to: "2A39")
            simulator.advance(by: 1)
            return withExtendedLifetime(program) { write.failure == nil }
        }
        XCTAssertEqual(values([62, 63, 68, 69]) { accepts(511, $0) }, [true, false, false, true])
        XCTAssertEqual(values([63, 68]) { accepts(510, $0) }, [true, true])
    }

    func testWhichErrorsReachTheCentralDependsOnTheVersion() {
        func code(_ name: String, _ text: String, _ bluez: BlueZVersion) -> CentralLinkError? {
            let objects = [
                ServingProgram.service("s0", "180d", handle: 0x40),
                ServingProgram.characteristic("s0/c0", "2a38", ["read"], handle: 0x42),
            ]
            let (simulator, program, _) = scene(bluez, objects)
            program.answer("ReadValue") {
                .error(to: $0, DBusError(name: "org.bluez.Error." + name, message: text))
            }
            let read = connect(simulator).read("2A38")
            simulator.advance(by: 1)
            return read.failure
        }
        XCTAssertEqual(values([65, 66]) { code("Failed", "0x81", $0) }, [.attribute(0x80), .attribute(0x81)])
        XCTAssertEqual(
            values([75, 76]) { code("ImproperlyConfigured", "", $0) }, [.attribute(0x0E), .attribute(0xFD)])
    }

    func testGenericAccessHasAddressResolutionFrom561To580() {
        XCTAssertEqual(
            values([60, 61, 80, 81]) { bluez -> [UInt16] in
                let (simulator, program, _) = scene(bluez, ServingProgram.heart)
                let services = connect(simulator).services
                return withExtendedLifetime(program) { services.prefix(3).map(\.handle) }
            }, [[1, 6, 16], [1, 8, 18], [1, 8, 18], [1, 6, 16]])
    }
}
