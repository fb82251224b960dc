import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

final class ShellProcessTests: XCTestCase, StartsPrograms {
    private func run(
        _ script: String, _ arguments: [String] = ["shell", RemoteBench.name], on bench: RemoteBench
    ) throws -> ToolRun.Result {
        let run = try bench.start(arguments)
        run.type(script)
        run.closeInput()
        let result = try run.finish()
        XCTAssertTrue(bench.simulator.links.isEmpty, "a link was left behind")
        return result
    }

    func testAPipeOfCommandsUsesOneConnection() throws {
        let bench = try RemoteBench()
        let result = try run(
            """
            # Two values.
            read 2A19
            read "Body Sensor Location" 2A19 --as hex
            write AA01 'good day' --as text
            notify 2A37 --count 2
            echo done  now
            read AA01
            """, on: bench)
        XCTAssertEqual(result.status, 0, "\(result)")
        XCTAssertEqual(result.problems.map { $0.prefix(17) }, ["bluecap: 2 values"])
        XCTAssertEqual(result.lines.count, 7)
        XCTAssertEqual(Array(result.lines[..<3]), ["100 %", "Body Sensor Location  01", "Battery Level  64"])
        for line in result.lines[3...4] { XCTAssertTrue(line.contains("  Heart Rate Measurement  "), line) }
        XCTAssertEqual(Array(result.lines[5...]), ["done now", "\"good day\""])
        XCTAssertEqual(bench.value("AA01"), Array("good day".utf8))
    }

    func testTheFirstErrorEndsAScriptWithItsLineAndStatus() throws {
        let bench = try RemoteBench()
        let result = try run("read 2A19\nread 2A39\nwrite AA01 00\n", on: bench)
        XCTAssertEqual(result.status, 1)
        XCTAssertEqual(result.lines, ["100 %"])
        XCTAssertEqual(result.problems.count, 1)
        XCTAssertTrue(result.problems[0].hasPrefix("bluecap: line 2: Heart Rate Control Point cannot be read"))
        XCTAssertEqual(bench.value("AA01"), Array("hello".utf8))
    }

    func testKeepGoingContinuesAndHasTheStatusOfTheFirstError() throws {
        let result = try run(
            "raed\nread 2A39\n\nread 2A19", ["run", "-", RemoteBench.name, "--keep-going", "--json"], on: RemoteBench())
        XCTAssertEqual(result.status, 64)
        XCTAssertEqual(result.problems.map { $0.prefix(16) }, ["bluecap: line 1:", "bluecap: line 2:"])
        let value = try XCTUnwrap(result.objects().first)
        XCTAssertEqual(value["value"] as? String, "64")
        XCTAssertEqual(value["name"] as? String, "Battery Level")
    }

    func testAFileIsCheckedBeforeTheConnection() throws {
        let bench = try RemoteBench()
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("script-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try "write AA01 00\n\nread\n".write(to: file, atomically: true, encoding: .utf8)
        assertOneLine(
            try bench.run("run", file.path, RemoteBench.name), "\(file.path):3: Missing expected argument", status: 64)
        XCTAssertEqual(bench.value("AA01"), Array("hello".utf8))
        try "write AA01 00\nread 2A99\n".write(to: file, atomically: true, encoding: .utf8)
        assertOneLine(
            try bench.run("run", file.path, RemoteBench.name), "\(file.path):2: The peripheral has no characteristic")
        XCTAssertEqual(bench.value("AA01"), [0])
        assertOneLine(try bench.run("run", "/nowhere", RemoteBench.name), "/nowhere cannot be read")
        expectRefusal(of: ["run", "-", "x", "--passkey", "-"], "--passkey DIGITS")
        expectRefusal(of: ["run", "-"], "peripheral")
    }

    func testValuesArePrintedDuringTheNextCommandsAndAfterALostLink() throws {
        let bench = try RemoteBench()
        let run = try bench.start("shell", RemoteBench.name, "--json")
        run.type("notify 2A19 &\nnotify 2A37 &\necho ready\nsleep 60\n")
        _ = try run.line { $0.contains("ready") }
        let result = try bench.expectGapInShell(run)
        let values = try result.objects().filter { $0["event"] as? String == "value" }
        XCTAssertEqual(Set(values.compactMap { $0["uuid"] as? String }), ["2A37"])
        XCTAssertNotNil(values.first?["time"])
    }

    func testAStoppedSubscriptionPrintsNothing() throws {
        let bench = try RemoteBench()
        let run = try bench.start("shell", RemoteBench.name)
        run.type("notify 2A37 &\n")
        try run.waitForLines(2)
        run.type("stop 2A37\necho stopped\nsleep 0.3\nstop 2A37\n")
        run.closeInput()
        let result = try run.finish(status: 1)
        XCTAssertEqual(result.lines.last, "stopped")
        XCTAssertTrue(result.problems.last?.contains("2A37 has no notifications in the background") == true)
    }

    func testADeviceThatIsPairedShowsItsProtectedValue() throws {
        for (capability, status) in [(PairingCapability.noInputNoOutput, Int32(0)), (.displayOnly, 4)] {
            let lock = VirtualPeripheral(
                RemoteBench.address, addressType: .random, advertisement: Advertisement(localName: "Front Door"),
                interval: 0.05,
                services: [
                    VirtualService(
                        "B001",
                        characteristics: [VirtualCharacteristic("B002", [.read], value: [2], security: .encrypted)])
                ], security: VirtualSecurity(capability))
            let bench = try ToolBench(room: Room(peripherals: [lock]))
            let run = try bench.start("shell", "Front Door")
            run.type("pair\nread B002")
            run.closeInput()
            let result = try run.finish(status: status)
            guard status == 0 else {
                XCTAssertEqual(result.problems.count, 1, "\(result)")
                XCTAssertTrue(result.problems[0].hasPrefix("bluecap: line 1: Front Door"), "\(result)")
                XCTAssertTrue(result.problems[0].contains("--passkey"), "\(result)")
                continue
            }
            XCTAssertEqual(result.lines, ["C0:5A:17:00:18:0D  random  Front Door  connected", "02"])
        }
    }

    // MARK: The terminal

    func testALineIsEditedCompletedAndKept() throws {
        let state = FileManager.default.temporaryDirectory.appendingPathComponent("state-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: state) }
        let first = try ToolRun(
            onTerminal: "shell 'Pulse Strap 7F' --simulated", "XDG_STATE_HOME=\(state.path)")
        try first.waitForText("7F> ")
        first.type("red\u{7F}ad bat\t\r")
        try first.waitForText("\r\u{1B}[KPulse Strap 7F> read \"Battery Level\" \r\n87 %")
        first.type("\u{4}")
        try first.finish(status: 0)
        let second = try ToolRun(
            onTerminal: "shell 'Pulse Strap 7F' --simulated", "XDG_STATE_HOME=\(state.path)")
        try second.waitForText("7F> ")
        second.type("\u{1B}[A\r")
        try second.waitForText("87 %")
        second.type("raed\r")
        try second.waitForText("\"raed\" is not a command")
        second.type("quit\r")
        // An error on a terminal is not that of the shell.
        try second.finish(status: 0)
    }

    func testValuesAreDrawnAboveTheLineThatIsTyped() throws {
        let run = try ToolRun(onTerminal: "shell 'Pulse Strap 7F' --simulated")
        try run.waitForText("7F> ")
        run.type("notify 2A37 &\r")
        try run.waitForText("Heart Rate: 7")
        run.type("read 2A")
        try run.waitForText("7F> read 2A")
        try run.waitForText("bpm\r\n\r\u{1B}[KPulse Strap 7F> read 2A\r")
        run.type("19\r")
        try run.waitForText("87 %")
        run.type("stop\rsleep 60\r")
        try run.waitForText("> sleep 60\r\n")
        run.type("\u{3}")
        try run.waitForText("Interrupted.\r\n\r\u{1B}[KPulse Strap 7F> ")
        run.type("\u{3}")
        try run.finish(status: 0)
    }

    func testCtrlCRemovesTheLineAndASecondOneEnds() throws {
        let run = try ToolRun(onTerminal: "shell 'Pulse Strap 7F' --simulated")
        try run.waitForText("7F> ")
        run.type("abc\u{3}")
        try run.waitForText("> \r\u{1B}[16C", times: 2)
        run.type("x\u{7F}\u{3}")
        try run.waitForText("Ctrl-C again, or Ctrl-D, ends.")
        run.type("\u{3}")
        try run.finish(status: 0)
    }
}

extension RemoteBench {
    /// The link is lost and comes back while a shell prints values as JSON; then it is ended.
    fileprivate func expectGapInShell(_ run: ToolRun) throws -> ToolRun.Result {
        try run.waitForLines(2)
        simulator.simulateLinkLoss(of: Self.address)
        try run.errorLine(where: { $0.contains("trying to bring it back") })
        _ = try run.line(where: { $0.contains(#""event":"gap""#) })
        try run.waitForLines(run.lineCount + 3)
        let result = try run.end(status: 130)
        XCTAssertTrue(simulator.links.isEmpty)
        return result
    }
}
