import TestSupport
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

    func testPowerAndAdaptersChangeAsInBlueZ() {
        let register = Request.registerAgent("/agent", capability: "NoInputNoOutput")
        check(
            "a power off by a client removes temporary devices and the strength of others", scanning(),
            (.ask(.power(false)), ["- _00_02", "reply", "00_01 -TxPower -RSSI", "/hci0 Powered Discovering Class"]),
            (.holds { !$0.isListening }, nil), (.holds { $0.daemon.discovery.scans[0]?.sessions == [] }, nil))
        check(
            "held off by rfkill the devices stay and switching on is blocked", scanning(),
            (
                .signals({ $0.setBlocked(true, on: 0) }),
                ["00_02 -RSSI", "00_01 -TxPower -RSSI", "/hci0 Powered Discovering Class"]
            ),
            (.ask(.power(true)), ["org.bluez.Error.Blocked"]),
            (.signals({ $0.setBlocked(false, on: 0) }), ["/hci0 Powered Class"]))
        check(
            "switching to what it is changes nothing", DaemonBench(), (.ask(.power(true)), ["reply"]))
        check(
            "an adapter pulled out takes its devices with it", scanning(),
            (.signals({ $0.removeAdapter(0) }), ["- _00_01", "- _00_02", "- z/hci0"]),
            (.holds { $0.daemon.core.tree.objects.map(\.path) == ["/org/bluez"] }, nil))
        check(
            "discoverable ends after its timeout", DaemonBench(),
            (.ask(.set("Discoverable", .bool(true))), ["reply", "/hci0 Discoverable"]), (.advance(by: 179), []),
            (.advance(by: 1), ["/hci0 Discoverable"]))
        check(
            "one agent for each client until it leaves", DaemonBench(),
            // the first is the default agent.
            (.ask(register), ["reply", "/hci0 Pairable"]), (.refused(register, .alreadyExists), []),
            (.ask(.requestDefaultAgent("/agent")), ["reply"]),
            (.refused(.requestDefaultAgent("/agent"), as: ":1.8", .doesNotExist), []),
            // no agent, no pairing.
            (.signals({ $0.clientLeft(":1.7") }), ["/hci0 Pairable"]), (.ask(register), ["reply", "/hci0 Pairable"]),
            (.refused(.registerAgent("/a", capability: "Telepathy"), as: ":1.9", .invalidArguments), []))
    }
}
