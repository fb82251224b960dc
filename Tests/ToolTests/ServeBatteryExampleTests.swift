import BlueZSimulator
import TestBasics
import XCTest

/// The README's peripheral.
final class ServeBatteryExampleTests: XCTestCase, StartsPrograms {
    func testTheExampleIsAPeripheral() throws {
        let bench = try ServingBench()
        let run = try bench.start(script: #"exec "$(dirname "$BLUECAP")/ServeBatteryExample""#)
        let phone = bench.central()
        XCTAssertNoThrow(try bench.result(phone.subscribe(to: "2A19"))?.get())
        bench.wait("no updates") { phone.values.count >= 2 }
        let levels = phone.values.compactMap(\.bytes.first)
        XCTAssertGreaterThan(levels[0], 90)
        XCTAssertEqual(levels[1], levels[0] - 1)
        XCTAssertEqual(bench.simulator.advertisements.first?.scanResponse, [8, 0x09] + Array("Battery".utf8))
        run.signal(SIGTERM)
        _ = try run.finish()
        bench.assertNothingIsLeft()
    }
}
