import XCTest

@testable import BlueZSimulator

final class PowerTests: XCTestCase {
    private func scanning() -> DaemonBench {
        var old = Cast.strap
        old.isRemembered = true
        var bench = DaemonBench(remembering: [old])
        _ = bench.ask(.filter(("Transport", .string("le"))))
        _ = bench.ask(.start)
        _ = bench.receive(Cast.strap)
        _ = bench.receive(Cast.tag)
        return bench
    }

    func testAPowerOffByAClientRemovesTemporaryDevicesAndTheStrengthOfOthers() {
        var bench = scanning()
        XCTAssertEqual(
            bench.ask(.power(false)).outline,
            ["- _00_02", "reply", "00_01 -TxPower -RSSI", "/hci0 Powered Discovering Class"])
        XCTAssertFalse(bench.isListening)
        XCTAssertEqual(bench.daemon.discovery.scans[0]?.scanning, [])
        XCTAssertEqual(bench.daemon.discovery.scans[0]?.waiting, [])
    }

    func testHeldOffByRfkillTheDevicesStayAndSwitchingOnIsBlocked() {
        var bench = scanning()
        XCTAssertEqual(
            bench.signals { $0.setBlocked(true, on: 0) }.map(\.outline),
            ["00_02 -RSSI", "00_01 -TxPower -RSSI", "/hci0 Powered Discovering Class"])
        XCTAssertEqual(bench.error(of: .power(true))?.name, "org.bluez.Error.Blocked")
        XCTAssertEqual(bench.signals { $0.setBlocked(false, on: 0) }.map(\.outline), ["/hci0 Powered Class"])
    }

    func testSwitchingToWhatItIsChangesNothing() {
        var bench = DaemonBench()
        XCTAssertEqual(bench.ask(.power(true)).outline, ["reply"])
    }

    func testAnAdapterPulledOutTakesItsDevicesWithIt() {
        var bench = scanning()
        XCTAssertEqual(bench.signals { $0.removeAdapter(0) }.map(\.outline), ["- _00_01", "- _00_02", "- z/hci0"])
        XCTAssertEqual(bench.daemon.core.tree.objects.map(\.path), ["/org/bluez"])
    }

    func testAnAdapterPluggedInBringsTheDevicesItRemembers() {
        var bench = DaemonBench(adapters: [])
        var old = Cast.tag
        old.isRemembered = true
        XCTAssertEqual(
            bench.signals { $0.addAdapter(VirtualAdapter(index: 1), remembering: [old]) }.map(\.outline),
            ["+ z/hci1", "+ _00_02"])
    }

    func testTheAdapterShowsThePropertiesOf566AndNoLaterOnes() {
        let bench = DaemonBench()
        let adapter = bench.daemon.core.tree.state(of: .adapter(0))
        XCTAssertEqual(
            adapter?.interfaces.first { $0.name == "org.bluez.Adapter1" }?.properties.map(\.name),
            [
                "Address", "AddressType", "Name", "Alias", "Class", "Powered", "Discoverable", "DiscoverableTimeout",
                "Pairable", "PairableTimeout", "Discovering", "UUIDs", "Modalias", "Roles",
            ])
    }

    func testDiscoverableEndsAfterItsTimeout() {
        var bench = DaemonBench()
        XCTAssertEqual(
            bench.ask(.set("Discoverable", .bool(true))).outline,
            ["reply", "/hci0 Discoverable"])
        XCTAssertEqual(bench.advance(by: 179), [])
        XCTAssertEqual(bench.advance(by: 1).map(\.outline), ["/hci0 Discoverable"])
    }

    func testOneAgentForEachClientUntilItLeaves() {
        var bench = DaemonBench()
        let register = Request.registerAgent("/agent", capability: "NoInputNoOutput")
        XCTAssertEqual(bench.ask(register).outline, ["reply", "/hci0 Pairable"], "the first is the default agent")
        XCTAssertEqual(bench.error(of: register), .alreadyExists)
        XCTAssertEqual(bench.ask(.requestDefaultAgent("/agent")).outline, ["reply"])
        XCTAssertEqual(bench.error(of: .requestDefaultAgent("/agent"), as: ":1.8"), .doesNotExist)
        XCTAssertEqual(
            bench.signals { $0.clientLeft(":1.7") }.map(\.outline), ["/hci0 Pairable"], "no agent, no pairing")
        XCTAssertEqual(bench.ask(register).outline, ["reply", "/hci0 Pairable"])
        XCTAssertEqual(
            bench.error(of: .registerAgent("/a", capability: "Telepathy"), as: ":1.9"), .invalidArguments)
    }
}
