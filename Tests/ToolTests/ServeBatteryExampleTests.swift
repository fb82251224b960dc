import BlueZSimulator
import XCTest

/// The README's ten lines that are a peripheral.
final class ServeBatteryExampleTests: XCTestCase {
    func testTenLinesAreAPeripheral() throws {
        let bench = try ServingBench()
        let run = try ToolRun(
            script: """
                export DBUS_SYSTEM_BUS_ADDRESS='\(bench.simulator.address)'
                exec "$(dirname "$BLUECAP")/ServeBatteryExample"
                """)
        let phone = bench.central()
        XCTAssertNoThrow(try bench.result(phone.subscribe(to: "2A19"))?.get())
        bench.wait("no updates") { phone.values.count >= 2 }
        XCTAssertEqual(phone.values.prefix(2).map(\.bytes), [[100], [99]])
        XCTAssertEqual(bench.simulator.advertisements.first?.scanResponse, [10, 0x09] + Array("Ten Lines".utf8))
        run.signal(SIGTERM)
        _ = try run.finish()
        bench.assertNothingIsLeft()
    }
}
