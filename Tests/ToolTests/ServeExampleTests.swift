import BlueZSimulator
import TestBasics
import XCTest

/// The README's peripheral, and those of the guide to the peripheral role.
final class ServeExampleTests: XCTestCase, StartsPrograms {
    private let (climate, uptime) = ("7B1C0001-5A0E-4E2B-9C5F-3D1E8A6F0B21", "7B1C0002-5A0E-4E2B-9C5F-3D1E8A6F0B21")
    private let target = "7B1C0011-5A0E-4E2B-9C5F-3D1E8A6F0B21"

    private func start(_ example: String, on bench: ServingBench) throws -> ToolRun {
        try bench.start(script: #"exec stdbuf -oL "$(dirname "$BLUECAP")/\#(example)Example""#)
    }

    private func end(_ run: ToolRun, on bench: ServingBench) throws {
        run.signal(SIGTERM)
        _ = try run.finish()
        bench.assertNothingIsLeft()
    }

    func testTheExampleIsAPeripheral() throws {
        let bench = try ServingBench()
        let run = try start("ServeBattery", on: bench)
        let phone = bench.central()
        XCTAssertNoThrow(try bench.result(phone.subscribe(to: "2A19"))?.get())
        bench.wait("no updates") { phone.values.count >= 2 }
        let levels = phone.values.compactMap(\.bytes.first)
        XCTAssertGreaterThan(levels[0], 90)
        XCTAssertEqual(levels[1], levels[0] - 1)
        XCTAssertEqual(bench.simulator.advertisements.first?.scanResponse, [8, 0x09] + Array("Battery".utf8))
        try end(run, on: bench)
    }

    func testAServiceOfItsOwnIsReadAndSubscribedTo() throws {
        let bench = try ServingBench()
        let run = try start("ServeClimate", on: bench)
        let phone = bench.central()
        let read = try bench.result(phone.read(.uuid(climate)))?.get() ?? []
        XCTAssertEqual(read.suffix(2), [0xC0, 0x12], "48 % in hundredths")
        XCTAssertEqual(
            try bench.result(phone.read(.uuid(climate), descriptor: "2901"))?.get(),
            Array("Temperature and humidity".utf8))
        XCTAssertNoThrow(try bench.result(phone.subscribe(to: .uuid(climate)))?.get())
        _ = try run.line { $0 == "subscribers: [Central(C0:FF:EE:00:CE:01)]" }
        bench.wait("no updates") { phone.values.count >= 2 }
        XCTAssertEqual(Set(phone.values.map(\.bytes)), [[0x66, 0x08, 0xC0, 0x12], [0x70, 0x08, 0xC0, 0x12]])
        XCTAssertEqual(try bench.result(phone.read(.uuid(uptime)))?.get().count, 4)
        _ = try run.line { $0 == "Central(C0:FF:EE:00:CE:01) has read the uptime" }
        phone.disconnect()
        _ = try run.line { $0 == "subscribers: []" }
        try end(run, on: bench)
    }

    func testAThermostatChecksWhatIsWritten() throws {
        let bench = try ServingBench()
        let run = try start("ServeThermostat", on: bench)
        let phone = bench.central()
        XCTAssertNoThrow(try bench.result(phone.subscribe(to: .uuid(target)))?.get())
        XCTAssertEqual(try bench.result(phone.write([0x34, 0x08], to: .uuid(target)))?.get(), [])
        _ = try run.line { $0 == "Central(C0:FF:EE:00:CE:01) has set 21.0 °C" }
        for (bytes, code) in [([0xFF, 0x7F], 0x80), ([1], 0x0D), ([1, 2, 3], 0x0D)] as [([UInt8], UInt8)] {
            XCTAssertEqual(
                bench.result(phone.write(bytes, to: .uuid(target))), .failure(.attribute(code)), "\(bytes)")
        }
        _ = try run.line { $0.hasSuffix("was refused: application error 0x80") }
        XCTAssertEqual(try bench.result(phone.read(.uuid(target)))?.get(), [0x34, 0x08])
        XCTAssertEqual(phone.values.map(\.bytes), [[0x34, 0x08]])
        try end(run, on: bench)
    }
}
