import BlueZSimulator
import Foundation
import TestBasics
import XCTest

/// The examples that read the sensors of Examples/Rooms/sensors.json.
final class SensorExampleTests: XCTestCase, StartsPrograms {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private let room = root.appendingPathComponent("Examples/Rooms/sensors.json").path

    func testTheGatewayPrintsFiveSensorsAndLeavesNoLink() throws {
        let bench = ToolBench(try .onPrivateBus(room: .named(room)))
        let run = try bench.start(script: #"exec "$(dirname "$BLUECAP")/SensorGatewayExample""#)
        let temperatures = [
            "Kitchen": 25, "Ruuvi 884F": 24.3, "ATC_AABBCC": 20.6, "Garden": 24.14, "Cellar": -11.54,
        ]
        for name in temperatures.keys {
            _ = try run.line { $0.contains(#""name":"\#(name)","quantity":"temperature""#) }
        }
        bench.simulator.simulateLinkLoss(of: "C8:D0:83:6A:12:F4")
        try run.errorLine { $0.hasPrefix("Garden: disconnected") }
        try run.waitForText(#""name":"Garden""#, times: 5)  // one each second
        let objects = try run.end(SIGTERM).objects()
        for (name, degrees) in temperatures {
            let line = objects.first { $0["name"] as? String == name && $0["quantity"] as? String == "temperature" }
            XCTAssertEqual(line?["value"] as? Double, degrees, name)
            XCTAssertEqual(line?["unit"] as? String, "°C")
            XCTAssertNotNil((line?["time"] as? String)?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/))
        }
        XCTAssertEqual(bench.simulator.links.count, 0)
    }

    /// What a sensor advertises again and again is printed once.
    func testTheGatewayPrintsAMeasurementOnce() throws {
        let run = try ToolRun(
            script: #"""
                exec "$BLUECAP" simulate --peripherals '\#(room)' -- "$(dirname "$BLUECAP")/SensorGatewayExample"
                """#)
        for value in [24.14, 24.24] { _ = try run.line { $0.hasSuffix(#""value":\#(value)}"#) } }
        let result = try run.end(SIGTERM)
        XCTAssertEqual(result.lines.filter { $0.contains("Kitchen") }.count, 2, "\(result.lines)")
    }

    func testAProgramWithBleakIsTestedOnTheSimulator() throws {
        let python = Self.root.appendingPathComponent(".build/python/bin/python3").path
        guard FileManager.default.isExecutableFile(atPath: python) else {
            return XCTFail("\(python) is missing: make test installs it.")
        }
        let program = Self.root.appendingPathComponent("Examples/Bleak/test_climate.py").path
        let result = try ToolRun(
            "simulate", "--peripherals", room, "--", python, program,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"]
        ).finish(status: 0)
        XCTAssertTrue(result.errors.contains { $0.hasPrefix("Ran 5 tests in ") }, "\(result)")
        XCTAssertEqual(result.errors.last, "OK")
    }
}
