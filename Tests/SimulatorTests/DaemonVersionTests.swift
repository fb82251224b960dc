import BlueCapDBus
import XCTest

@testable import BlueZSimulator

/// The differences between versions of BlueZ for a client that discovers and connects.
final class DaemonVersionTests: XCTestCase {
    private func version(_ minor: Int) -> BlueZVersion { BlueZVersion(5, minor) }

    /// - Parameter minors: Versions just before and at a change.
    private func values<Value>(_ minors: [Int], _ body: (BlueZVersion) throws -> Value) rethrows -> [Value] {
        try minors.map { try body(version($0)) }
    }

    // MARK: The table

    func testTheChangesAreInTheOrderOfVersionsAndEachChangesSomething() {
        XCTAssertEqual(DaemonTraits.changes.map(\.version), DaemonTraits.changes.map(\.version).sorted())
        for change in DaemonTraits.changes {
            let before = DaemonTraits { $0.version < change.version }
            let after = DaemonTraits { $0.version < change.version || $0 == change }
            XCTAssertNotEqual(after, before, change.summary)
        }
    }

    func testTheDocumentationListsEachChange() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        let text = try String(
            contentsOf: folder.appendingPathComponent("Documentation/reference/SimulatorTables.md").standardizedFileURL,
            encoding: .utf8)
        for change in DaemonTraits.changes {
            XCTAssertTrue(
                text.contains("| \(change.version) | \(change.summary) |"),
                "SimulatorTables.md lacks the row: | \(change.version) | \(change.summary) |")
        }
    }

    // MARK: Objects

    private func properties(_ bluez: BlueZVersion) -> Set<String> {
        let bench = DaemonBench(bluez)
        let adapter = bench.daemon.core.tree.state(of: .adapter(0))
        return Set(adapter?.interfaces.flatMap(\.properties).map(\.name) ?? [])
    }

    func testAdapterPropertiesAreThoseOfTheVersion() {
        for (name, minor) in [
            ("Manufacturer", 71), ("Version", 71), ("PowerState", 73), ("SupportedCapabilities", 77),
            ("SupportedFeatures", 77), ("Connectable", 79),
        ] {
            XCTAssertEqual(values([minor - 1, minor]) { properties($0).contains(name) }, [false, true], name)
        }
    }

    func testAVersionHasNumbersOfAModalias() {
        XCTAssertEqual(BlueZVersion("5.255"), BlueZVersion(5, 255))
        for text in ["5.256", "256.1", "5.-1", "5", "5.82.1", ""] { XCTAssertNil(BlueZVersion(text), text) }
    }

    func testFeaturesComeBeforeCapabilities() {
        let adapter = DaemonBench(.v5_82).daemon.core.tree.state(of: .adapter(0))
        let names = adapter?.interfaces.flatMap(\.properties).map(\.name)
        let first = names?.firstIndex(of: "SupportedFeatures")
        XCTAssertNotNil(first)
        XCTAssertLessThan(first ?? .max, names?.firstIndex(of: "SupportedCapabilities") ?? 0)
    }

    func testTheModaliasNamesTheVersion() {
        XCTAssertEqual(
            values([55, 66, 72, 82, 87, 88]) {
                DaemonBench($0).daemon.core.tree.adapters[0].flatMap(Property<Adapter>.modalias.value)
            },
            ["37", "42", "48", "52", "57", "57"].map { .string("usb:v1D6Bp0246d05" + $0) })
    }

    private func introspection(_ bluez: BlueZVersion, at path: String) -> String {
        var bench = DaemonBench(bluez, remembering: [GattCast.known])
        guard case .success(let values)? = bench.answer(.introspect(path)),
            case .string(let text)? = values.first
        else { return "" }
        return text
    }

    func testIntrospectionDescribesTheVersion() {
        let device = GattCast.path.rawValue
        let table: [(text: String, path: String, minor: Int)] = [
            ("BatteryProviderManager1", "/org/bluez/hci0", 71), ("\"PowerState\"", "/org/bluez/hci0", 73),
            ("signal name=\"Disconnected\"", device, 83), ("\"CablePairing\"", device, 83),
            ("interface name=\"org.bluez.Bearer.LE1\"", device, 84), ("\"AdvertisingData\"", device, 78),
        ]
        for (text, path, minor) in table {
            XCTAssertEqual(
                values([minor - 1, minor]) { introspection($0, at: path).contains(text) }, [false, true], text)
        }
    }

    func testTheFilterKeysOf583HaveAutoConnect() {
        XCTAssertEqual(
            values([82, 83]) { bluez -> Bool in
                var bench = DaemonBench(bluez)
                return bench.error(of: .filter(("AutoConnect", .bool(true)), ("Pattern", .string("x")))) == nil
            }, [false, true])
    }

    func testAttributesHaveHandlesFrom569On() {
        for bluez in [version(68), version(69)] {
            let (simulator, client) = GattCast.scene(bluez: bluez)
            for path in [GattCast.rate, GattCast.controlText] {
                let handle = client.property("Handle", at: path)
                XCTAssertEqual(handle, bluez < version(69) ? nil : path == GattCast.rate ? "11" : "18", "\(bluez)")
            }
            simulator.run()
        }
    }

    // MARK: Power

    func testThePowerStateIsSignalledWithTheStepsInBetween() {
        var bench = DaemonBench(.v5_82)
        func states(_ effects: [Effect]) -> [BusValue] {
            effects.compactMap { effect in
                if case .emit(let emission) = effect { emission.value(of: "PowerState") } else { nil }
            }
        }
        XCTAssertEqual(states(bench.ask(.power(false))), [.string("on-disabling"), .string("off")])
        XCTAssertEqual(states(bench.ask(.power(true))), [.string("off-enabling"), .string("on")])
        XCTAssertEqual(
            bench.signals { $0.setBlocked(true, on: 0) }.compactMap { $0.value(of: "PowerState") },
            [.string("off-blocked")])
        XCTAssertEqual(
            bench.signals { $0.setBlocked(false, on: 0) }.compactMap { $0.value(of: "PowerState") },
            [.string("off-enabling"), .string("on")])
    }

    // MARK: Discovery

    /// Whether the second report of the same strength is signalled, and whether a device without flags is found.
    private func discovery(
        _ bluez: BlueZVersion, _ filter: [(String, BusValue)], isLowEnergyOnly: Bool = false
    ) -> [Bool] {
        var bench = DaemonBench(bluez, adapters: [VirtualAdapter(isLowEnergyOnly: isLowEnergyOnly)])
        _ = bench.ask(.setDiscoveryFilter(filter))
        _ = bench.ask(.start)
        _ = bench.receive(Cast.tag)
        return [
            bench.receive(Cast.tag).contains { $0.value(of: "RSSI") != nil }, !bench.receive(Cast.hidden).isEmpty,
        ]
    }

    func testWhichFiltersCountDependsOnTheVersionAndTheAdapter() {
        let transport: [(String, BusValue)] = [("Transport", .string("le"))]
        let pathloss = transport + [("Pathloss", .uint16(137))]
        let duplicates = transport + [("DuplicateData", .bool(true))]
        XCTAssertEqual(values([66, 67, 82, 87, 88]) { discovery($0, []) }, Array(repeating: [false, false], count: 5))
        XCTAssertEqual(
            values([66, 67, 82, 87, 88]) { discovery($0, transport) },
            [[true, true], [true, true], [true, true], [true, true], [false, true]])
        XCTAssertEqual(
            values([66, 67, 82, 87, 88]) { discovery($0, transport, isLowEnergyOnly: true) },
            [[true, true], [false, false], [false, false], [false, false], [false, false]])
        XCTAssertEqual(
            values([66, 67, 87, 88]) { discovery($0, duplicates, isLowEnergyOnly: true) },
            [[true, true], [true, true], [true, true], [false, true]])
        for isLowEnergyOnly in [false, true] {
            XCTAssertEqual(
                values([66, 67, 82, 87, 88]) { discovery($0, pathloss, isLowEnergyOnly: isLowEnergyOnly) },
                Array(repeating: [true, true], count: 5))
        }
    }

    func testLongFieldsReachTheBusFrom576On() {
        XCTAssertEqual(
            values([75, 76]) { bluez -> Bool in
                var bench = DaemonBench(bluez)
                _ = bench.ask(.start)
                let advertisement = Advertisement(manufacturerData: [1: [UInt8](repeating: 2, count: 100)])
                let seen = bench.receive("C0:00:00:00:00:09", advertisement)
                return seen.contains { $0.value(of: "ManufacturerData") != nil }
            }, [false, true])
    }

    func test587DiesOfAFilterOfUUIDsWhenServicesAreAdvertised() {
        for (bluez, dies) in [(version(86), false), (.v5_87, true), (version(88), false)] {
            let simulator = Simulator.inProcess(room: Room(peripherals: [GattCast.strap]), bluez: bluez)
            let client = BusClient(simulator)
            XCTAssertNil(client.setFilter(["UUIDs": .strings([ServiceUUID.long("180d")!])]))
            XCTAssertNil(client.error(of: "StartDiscovery"))
            simulator.advance(by: 2)
            XCTAssertEqual(client.takeLog().contains("gone"), dies, "\(bluez)")
        }
    }

    func test587ComparesNoServicesBehindASessionThatTakesEverything() {
        func dies(_ filters: [[(String, BusValue)]]) -> Bool {
            var bench = DaemonBench(.v5_87)
            for (number, filter) in filters.enumerated() {
                _ = bench.ask(.setDiscoveryFilter(filter), as: ":1.\(number)")
                _ = bench.ask(.start, as: ":1.\(number)")
            }
            let report = AdvertisingReport(Advertisement(serviceUUIDs: ["180d"], flags: 6))
            let received = Sighting(address: "C0:00:00:00:00:01", addressType: .random, rssi: -50, report: report)
            bench.daemon.received(received)
            return bench.daemon.core.takeEffects().contains { if case .die = $0 { true } else { false } }
        }
        let services: [(String, BusValue)] = [("UUIDs", .strings([ServiceUUID.long("180d")!]))]
        let everything: [(String, BusValue)] = [("Transport", .string("le"))]
        // The session that began last comes first.
        XCTAssertTrue(dies([everything, services]))
        XCTAssertFalse(dies([services, everything]))
    }

    func testOtherDataIsKeptUnlessRejectedAndSignalledForTransportDiscoveryOnly() {
        var bench = DaemonBench(.v5_82)
        _ = bench.ask(.start)
        let address: VirtualAddress = "C0:00:00:00:00:01"
        func receive(_ fields: [UInt8]) -> (signalled: Bool, kept: [UInt8]) {
            let report = AdvertisingReport(advertisingData: [2, 1, 6] + fields, scanResponse: [], isConnectable: true)
            let sighting = Sighting(address: address, addressType: .random, rssi: -50, report: report)
            let signals = bench.signals { $0.received(sighting) }
            let device = bench.daemon.core.tree.devices[DeviceKey(adapter: 0, address: address)]
            return (
                signals.contains { $0.value(of: "AdvertisingData") != nil }, device?.otherData.map(\.key) ?? []
            )
        }
        _ = receive([])
        for (field, signalled, kept) in [
            ([3, 0x1F, 1, 2], false, []), ([3, 0x24, 1, 2], false, [0x24]), ([3, 0x3D, 1, 2], false, [0x24]),
            ([3, 0x26, 1, 2], true, [0x24, 0x26]), ([3, 0x26, 1, 2], false, [0x24, 0x26]),
            ([3, 0x26, 1, 3], true, [0x24, 0x26]),
        ] as [([UInt8], Bool, [UInt8])] {
            let outcome = receive(field)
            XCTAssertEqual(outcome.signalled, signalled, "\(field)")
            XCTAssertEqual(outcome.kept, kept, "\(field)")
        }
    }

    // MARK: Links

    func testFrom583OnTheEndOfALinkIsSignalledWithItsReasonBetweenItsTwoProperties() {
        let key = DaemonBench.strap
        for (reason, isByUs) in [(LinkEndCause.timeout, false), (.remote, false), (.local, true)] {
            var bench = DaemonBench.connected(version(83))
            if isByUs { _ = bench.ask(.disconnect(key)) }
            bench.link(key, .disconnected(reason), now: 1)
            XCTAssertEqual(
                bench.settle().outline,
                ["00_01 ServicesResolved", "00_01 Disconnected \(reason.rawValue)"] + (isByUs ? ["reply"] : [])
                    + ["00_01 Connected"])
        }
        var later = DaemonBench.connected(version(84))
        later.link(key, .disconnected(.remote), now: 1)
        XCTAssertEqual(later.settle().outline.filter { $0.hasSuffix("Remote") }.count, 2, "Bearer.LE1 sends it too")
        var bench = DaemonBench.connected(version(82))
        bench.link(key, .disconnected(.remote), now: 1)
        XCTAssertEqual(bench.settle().outline, ["00_01 ServicesResolved Connected"])
    }

    func testAWaitingConnectIsAnsweredBeforeTheReasonIsSaid() throws {
        for minor in [83, 84] {
            var core = Core(traits: DaemonTraits(version(minor)))
            var connections = Connections()
            core.add(Adapter(VirtualAdapter(), version: version(minor)))
            core.addDevice(DaemonBench.strap, .public)
            try connections.connect(DaemonBench.strap, call: CallID(number: 1000), &core)
            connections.linkEnded(DaemonBench.strap, .remote, asCentral: true, &core)
            core.rest()
            let outline = core.takeEffects().outline
            let answer = outline.firstIndex { $0.hasPrefix("org.bluez.Error") }
            let reason = outline.firstIndex { $0.contains("Disconnected") }
            XCTAssertNotNil(answer, "\(minor)")
            XCTAssertNotNil(reason, "\(minor)")
            XCTAssertLessThan(answer ?? .max, reason ?? .max, "\(minor)")
        }
    }

    func testASecondConnectFailsInTheWordsOfTheVersion() {
        XCTAssertEqual(
            values([80, 81]) { bluez -> DaemonError? in
                var bench = DaemonBench(bluez, remembering: [GattCast.known])
                _ = bench.ask(.connect(DaemonBench.strap))
                return bench.error(of: .connect(DaemonBench.strap))
            }, [.failed("Operation already in progress"), .inProgress])
    }

    func testGenericAccessHasObjectsFrom580OnThatCannotBeWritten() {
        let name: ObjectPath = "/org/bluez/hci0/dev_C0_00_00_00_00_01/service0001/char0002"
        for bluez in [version(79), version(80)] {
            let (simulator, client) = GattCast.scene(bluez: bluez)
            let isShown = bluez >= version(80)
            XCTAssertEqual(client.objects().contains(name.rawValue), isShown, "\(bluez)")
            guard isShown else { continue }
            XCTAssertEqual(client.write([1], to: name, type: "request")?.name, "org.bluez.Error.NotAuthorized")
            XCTAssertNotNil(client.read(name))
            simulator.run()
        }
    }

    func testAcquireNotifyTakesIndicationsFrom580On() {
        XCTAssertEqual(
            values([79, 80]) { bluez -> String? in
                let (simulator, client) = GattCast.scene(bluez: bluez)
                let error = client.error(of: "AcquireNotify", at: GattCast.alarm)
                simulator.run()
                return error?.name
            }, ["org.bluez.Error.NotSupported", nil])
    }

    func testARefusedAcquireNotifyIsAnsweredFrom584On() {
        for (bluez, answer) in [(version(83), []), (version(84), ["org.bluez.Error.NotPermitted"])] {
            var bench = DaemonBench.connected(bluez)
            _ = bench.ask(.acquireNotify(GattCast.rate.rawValue))
            let id = bench.daemon.client.links[DaemonBench.strap]?.requests.keys.max() ?? 0
            bench.link(DaemonBench.strap, .response(id: id, .error(ATTError.writeNotPermitted)), now: 1)
            XCTAssertEqual(bench.settle().outline, answer, "\(bluez)")
        }
    }

    func test587DiesOfRemovingAConnectedDevice() {
        for (bluez, dies) in [(version(86), false), (.v5_87, true), (version(88), false)] {
            let (simulator, client) = GattCast.scene(bluez: bluez)
            let removal = client.begin("RemoveDevice") { $0.objectPath(GattCast.path) }
            simulator.advance(by: 5)
            XCTAssertEqual(client.takeLog().contains("gone"), dies, "\(bluez)")
            XCTAssertEqual(removal.succeeded == true, !dies, "\(bluez)")
        }
    }
}
