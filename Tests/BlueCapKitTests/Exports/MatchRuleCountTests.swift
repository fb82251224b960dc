import BlueCapKit
import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
import XCTest

/// G1: the bus allows a connection 512 match rules.
final class MatchRuleCountTests: XCTestCase {
    private func ruleCount(others: Int) throws -> Int {
        let daemon = ScriptedDaemon(
            attributes: [
                ("service0010", ScriptedDaemon.service("0000180d-0000-1000-8000-00805f9b34fb")),
                (
                    "service0010/char0011",
                    ScriptedDaemon.characteristic(
                        "00002a37-0000-1000-8000-00805f9b34fb", of: "service0010", ["notify"])
                ),
            ], others: others)
        let peripheral = try daemon.connected()
        XCTAssertEqual(try XCTUnwrap(daemon.manager).peripherals.count, others + 1)
        let level = try XCTUnwrap(peripheral.services.first?.characteristics.first)
        let subscription: Future<Characteristic> = level.startNotifying()
        daemon.loop.advance(by: 1)
        withExtendedLifetime(subscription) {}
        return daemon.bus.matchRules.count
    }

    func testAThousandDevicesNeedNoMoreMatchRulesThanOne() throws {
        let count = try ruleCount(others: 0)
        XCTAssertEqual(try ruleCount(others: 1_000), count)
        XCTAssertLessThanOrEqual(count, 6)
    }
}
