import XCTest

@testable import BlueZSimulator

final class DiscoveryFilterTests: XCTestCase {
    private static let keys = DaemonTraits(.v5_66).discoveryFilterKeys

    private func parsed(_ entries: [(key: String, value: BusValue)]) -> Result<DiscoveryFilter?, DaemonError> {
        do throws(DaemonError) {
            let options = entries.map { NamedValue(name: $0.key, value: $0.value) }
            return .success(try DiscoveryFilter.parsed(options, keys: Self.keys))
        } catch {
            return .failure(error)
        }
    }

    func testAnEmptyDictionaryIsNoFilter() {
        XCTAssertEqual(parsed([]), .success(nil))
    }

    func testWhatBlueZRefuses() {
        let wrong: [[(key: String, value: BusValue)]] = [
            [("Sparkle", .bool(true))],
            [("RSSI", .uint16(3))],
            [("RSSI", .int16(21))],
            [("RSSI", .int16(-128))],
            [("RSSI", .int16(-60)), ("Pathloss", .uint16(40))],
            [("Pathloss", .uint16(138))],
            [("Transport", .string("pigeon"))],
            [("UUIDs", .strings(["heart"]))],
            [("UUIDs", .string("180d"))],
            [("DuplicateData", .other(signature: "i"))],
        ]
        for entries in wrong {
            XCTAssertEqual(parsed(entries), .failure(.invalidArguments), "\(entries)")
        }
    }

    func testUUIDsAreTakenInTheirLongForm() throws {
        let filter = try DiscoveryFilter.parsed(
            [NamedValue(name: "UUIDs", value: .strings(["180D", "0000180f-0000-1000-8000-00805F9B34FB"]))],
            keys: Self.keys)
        XCTAssertEqual(
            filter.map { Set($0.uuids) },
            ["0000180d-0000-1000-8000-00805f9b34fb", "0000180f-0000-1000-8000-00805f9b34fb"])
    }

    func testAllClientsTogetherMakeTheKernelsFilter() {
        func session(_ filter: DiscoveryFilter?) -> DiscoverySession { DiscoverySession(owner: ":1.1", filter: filter) }
        let heart = DiscoveryFilter(uuids: ["h"], rssi: -70, transport: .lowEnergy)
        let battery = DiscoveryFilter(uuids: ["b"], rssi: -80, transport: .lowEnergy)
        let anything = DiscoveryFilter(transport: .lowEnergy)

        XCTAssertNil(KernelFilter.merged([session(nil)], rule: .anyFilter, adapter: .both))
        XCTAssertEqual(
            KernelFilter.merged([session(heart), session(battery)], rule: .anyFilter, adapter: .both),
            KernelFilter(rssi: -80, transport: .lowEnergy, uuids: ["b", "h"]), "the wider of each")
        XCTAssertEqual(
            KernelFilter.merged([session(heart), session(anything)], rule: .anyFilter, adapter: .both),
            KernelFilter(rssi: nil, transport: .lowEnergy, uuids: []), "a filter without UUIDs and strength passes all")
        XCTAssertEqual(
            KernelFilter.merged([session(heart), session(nil)], rule: .anyFilter, adapter: .both),
            KernelFilter(rssi: nil, transport: .both, uuids: []), "a client without a filter opens everything")
    }

    func testWithoutAFilterOnlyDiscoverableDevicesAreReportedAndSmallChangesAreNot() {
        var bench = DaemonBench()
        _ = bench.ask(.start)
        XCTAssertEqual(bench.receive(Cast.hidden), [])
        XCTAssertEqual(bench.receive(Cast.tag, rssi: -60).map(\.outline), ["+ _00_02"])
        XCTAssertEqual(bench.receive(Cast.tag, rssi: -67), [], "7 dB is not worth a word")
        XCTAssertEqual(bench.receive(Cast.tag, rssi: -68).map(\.outline), ["00_02 RSSI"])
    }

    func testWithAnyFilterEverythingIsReportedAndEveryReport() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Transport", .string("le"))))
        _ = bench.ask(.start)
        XCTAssertEqual(bench.receive(Cast.hidden).map(\.outline), ["+ _00_04"])
        XCTAssertEqual(bench.receive(Cast.hidden).map(\.outline), ["00_04 RSSI"], "even the same strength")
    }

    func testAFilterOfUUIDsMatchesWhatIsAdvertised() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("UUIDs", .strings(["180d"])), ("Transport", .string("le"))))
        _ = bench.ask(.start)
        XCTAssertEqual(bench.receive(Cast.strap).map(\.outline), ["+ _00_01"])
        XCTAssertEqual(bench.receive(Cast.tag), [])
    }

    func testAnotherClientsWiderFilterLetsThroughWhatThisOneDidNotAskFor() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("RSSI", .int16(-70))), as: ":1.7")
        _ = bench.ask(.start, as: ":1.7")
        XCTAssertEqual(bench.receive(Cast.tag, rssi: -90), [])
        _ = bench.ask(.filter(("RSSI", .int16(-100))), as: ":1.8")
        _ = bench.ask(.start, as: ":1.8")
        XCTAssertEqual(bench.receive(Cast.tag, rssi: -90).map(\.outline), ["+ _00_02"])
    }

    func testAPatternIsAPrefixOfNameOrAddressAndHidesTheRestFromAllClients() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Pattern", .string("Str"))), as: ":1.7")
        _ = bench.ask(.start, as: ":1.7")
        _ = bench.ask(.start, as: ":1.8")
        XCTAssertEqual(bench.receive(Cast.strap).map(\.outline), ["+ _00_01"])
        XCTAssertEqual(bench.receive(Cast.tag), [], "although client 1.8 asked for everything")
        _ = bench.ask(.filter(("Pattern", .string("C0:00:00:00:00:02"))), as: ":1.7")
        XCTAssertEqual(bench.receive(Cast.tag).map(\.outline), ["+ _00_02"])
        _ = bench.ask(.filter(("Pattern", .string("str"))), as: ":1.7")
        XCTAssertEqual(bench.receive(Cast.strap), [], "case counts")
    }

    func testAPathLossFiltersNothing() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Pathloss", .uint16(1))))
        _ = bench.ask(.start)
        XCTAssertEqual(bench.receive(Cast.strap, rssi: -60).first?.value(of: "RSSI"), .int16(-60))
        XCTAssertEqual(bench.receive(Cast.tag, rssi: -30).first?.value(of: "RSSI"), .int16(-30))
    }

    func testUnchangedBytesAreSignalledAgainOnlyWithDuplicateData() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Transport", .string("le"))))
        _ = bench.ask(.start)
        _ = bench.receive(Cast.tag)
        XCTAssertEqual(bench.receive(Cast.tag).map(\.outline), ["00_02 RSSI"])
        _ = bench.ask(.filter(("Transport", .string("le")), ("DuplicateData", .bool(true))))
        XCTAssertEqual(bench.receive(Cast.tag).map(\.outline), ["00_02 RSSI ManufacturerData"])
    }

    func testAClassicTransportReceivesNoLowEnergy() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Transport", .string("bredr"))))
        _ = bench.ask(.start)
        XCTAssertEqual(bench.receive(Cast.tag), [])
    }

    func testAFilterThatAsksForItMakesTheAdapterDiscoverableWhileItScans() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Discoverable", .bool(true))))
        XCTAssertEqual(bench.ask(.start).outline, ["/hci0 Discoverable", "reply", "/hci0 Discovering"])
        XCTAssertEqual(bench.ask(.stop).outline, ["/hci0 Discoverable", "reply", "/hci0 Discovering"])
        XCTAssertEqual(bench.daemon.core.tree.adapters[0]?.isDiscoverable, false)
    }
}
