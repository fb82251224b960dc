import TestSupport
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

        XCTAssertNil(KernelFilter.merged([session(nil)], countsEveryFilter: true, adapter: .both))
        XCTAssertEqual(
            KernelFilter.merged([session(heart), session(battery)], countsEveryFilter: true, adapter: .both),
            KernelFilter(rssi: -80, transport: .lowEnergy, uuids: ["b", "h"]), "the wider of each")
        XCTAssertEqual(
            KernelFilter.merged([session(heart), session(anything)], countsEveryFilter: true, adapter: .both),
            KernelFilter(rssi: nil, transport: .lowEnergy, uuids: []), "a filter without UUIDs and strength passes all")
        XCTAssertEqual(
            KernelFilter.merged([session(heart), session(nil)], countsEveryFilter: true, adapter: .both),
            KernelFilter(rssi: nil, transport: .both, uuids: []), "a client without a filter opens everything")
    }

    func testAPathLossFiltersNothing() {
        var bench = DaemonBench()
        _ = bench.ask(.filter(("Pathloss", .uint16(1))))
        _ = bench.ask(.start)
        XCTAssertEqual(bench.receive(Cast.strap, rssi: -60).first?.value(of: "RSSI"), .int16(-60))
        XCTAssertEqual(bench.receive(Cast.tag, rssi: -30).first?.value(of: "RSSI"), .int16(-30))
    }

    func testFiltersPassWhatTheyPassInBlueZ() {
        check(
            "without a filter only discoverable devices are reported and small changes are not", DaemonBench(),
            (.ask(.start), nil), (.receive(Cast.hidden), []), (.receive(Cast.tag, rssi: -60), ["+ _00_02"]),
            // 7 dB is not worth a word.
            (.receive(Cast.tag, rssi: -67), []), (.receive(Cast.tag, rssi: -68), ["00_02 RSSI"]))
        check(
            "with any filter everything is reported and every report", DaemonBench(),
            (.ask(.filter(("Transport", .string("le")))), nil), (.ask(.start), nil),
            (.receive(Cast.hidden), ["+ _00_04"]),
            // even the same strength.
            (.receive(Cast.hidden), ["00_04 RSSI"]))
        check(
            "a filter of UUI ds matches what is advertised", DaemonBench(),
            (.ask(.filter(("UUIDs", .strings(["180d"])), ("Transport", .string("le")))), nil), (.ask(.start), nil),
            (.receive(Cast.strap), ["+ _00_01"]), (.receive(Cast.tag), []))
        check(
            "another clients wider filter lets through what this one did not ask for", DaemonBench(),
            (.ask(.filter(("RSSI", .int16(-70))), as: ":1.7"), nil), (.ask(.start, as: ":1.7"), nil),
            (.receive(Cast.tag, rssi: -90), []), (.ask(.filter(("RSSI", .int16(-100))), as: ":1.8"), nil),
            (.ask(.start, as: ":1.8"), nil), (.receive(Cast.tag, rssi: -90), ["+ _00_02"]))
        check(
            "a pattern is a prefix of name or address and hides the rest from all clients", DaemonBench(),
            (.ask(.filter(("Pattern", .string("Str"))), as: ":1.7"), nil), (.ask(.start, as: ":1.7"), nil),
            (.ask(.start, as: ":1.8"), nil), (.receive(Cast.strap), ["+ _00_01"]),
            // although client 1.8 asked for everything.
            (.receive(Cast.tag), []), (.ask(.filter(("Pattern", .string("C0:00:00:00:00:02"))), as: ":1.7"), nil),
            (.receive(Cast.tag), ["+ _00_02"]), (.ask(.filter(("Pattern", .string("str"))), as: ":1.7"), nil),
            // case counts.
            (.receive(Cast.strap), []))
        check(
            "unchanged bytes are signalled again only with duplicate data", DaemonBench(),
            (.ask(.filter(("Transport", .string("le")))), nil), (.ask(.start), nil), (.receive(Cast.tag), nil),
            (.receive(Cast.tag), ["00_02 RSSI"]),
            (.ask(.filter(("Transport", .string("le")), ("DuplicateData", .bool(true)))), nil),
            (.receive(Cast.tag), ["00_02 RSSI ManufacturerData"]))
        check(
            "a classic transport receives no low energy", DaemonBench(),
            (.ask(.filter(("Transport", .string("bredr")))), nil), (.ask(.start), nil), (.receive(Cast.tag), []))
        check(
            "a filter that asks for it makes the adapter discoverable while it scans", DaemonBench(),
            (.ask(.filter(("Discoverable", .bool(true)))), nil),
            (.ask(.start), ["/hci0 Discoverable", "reply", "/hci0 Discovering"]),
            (.ask(.stop), ["/hci0 Discoverable", "reply", "/hci0 Discovering"]),
            (.holds { $0.daemon.core.tree.adapters[0]?.isDiscoverable == false }, nil))
    }
}
