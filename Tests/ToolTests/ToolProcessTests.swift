import ArgumentParser
import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

/// `bluecap` as a process with arguments, output and a status.
final class ScanProcessTests: XCTestCase, StartsPrograms {
    func testAJSONScanOfTheSimulatedRoomEndsWithFinished() throws {
        let result = try ToolRun("scan", "--simulated", "--duration", "3", "--json").finish()

        XCTAssertEqual(result.status, 0)
        XCTAssertEqual(result.errors, [])
        let objects = try result.objects()
        let finished = try XCTUnwrap(objects.last)
        XCTAssertEqual(finished["event"] as? String, "finished")
        let discovered = objects.filter { $0["event"] as? String == "discovered" }
        let identifiers = discovered.compactMap { $0["identifier"] as? String }
        XCTAssertGreaterThanOrEqual(identifiers.count, 6)
        XCTAssertEqual(Set(identifiers).count, identifiers.count, "discovered twice")
        XCTAssertEqual(finished["peripherals"] as? Int, identifiers.count)
        let seconds = try XCTUnwrap(finished["seconds"] as? Double)
        XCTAssertTrue((3..<ToolRun.limit).contains(seconds), "\(seconds)")
        let strap = try XCTUnwrap(discovered.first { $0["name"] as? String == "Pulse Strap 7F" })
        XCTAssertEqual(strap["addressType"] as? String, "random")
        XCTAssertEqual(strap["services"] as? [String], ["180D", "180F"])
        XCTAssertEqual(strap["manufacturerData"] as? [String: String], ["107": "72084a"])
    }

    func testDuplicatesPrintEverySighting() throws {
        let run = try ToolRun("scan", "--simulated", "--duplicates", "--name", "CC2650")
        let line = try run.line { $0.contains("  discovered  ") }
        XCTAssertNotNil(line.prefixMatch(of: /\d\d:\d\d:\d\d\.\d{3}/), line)
        _ = try run.line { $0.contains("  updated  ") }
        let result = try run.end(SIGTERM)
        XCTAssertTrue(result.lines.dropLast().allSatisfy { $0.contains("CC2650 SensorTag") }, "\(result.lines)")
    }

    func testFiltersAreHonoured() throws {
        let run = try ToolRun(
            "scan", "--simulated", "--service", "180D", "--service", "cycling speed and cadence", "--rssi", "-90",
            "--json", "--duplicates")
        for name in ["Cadence 2", "Pulse Strap 7F"] { _ = try run.line { $0.contains(name) } }
        // By then each other peripheral has advertised.
        try run.waitForLines(20)
        let result = try run.end()
        let names = try result.objects().filter { $0["event"] as? String == "discovered" }.map { $0["name"] as? String }
        XCTAssertEqual(names.compactMap(\.self).sorted(), ["Cadence 2", "Pulse Strap 7F"])
    }

    func testFiltersThatTheToolComparesAreHonoured() throws {
        let arguments = [
            ["--name", "/(?i)^pulse .*F$/"], ["--name", "Pulse", "--name", "/^Pulse/"], ["--manufacturer", "polar"],
            ["--manufacturer-data", "7208", "--manufacturer", "0x006B"], ["--address", "c0:5a:17:00:18:0d"],
            ["--service", "Heart Rate", "--not", "manufacturer-data=00", "--not", "address=00"],
        ]
        let runs = arguments.map { ["scan", "--simulated", "--json", "--first", "--duration", "60"] + $0 }
        for (arguments, result) in zip(arguments, try ToolRun.finish(commands: runs)) {
            XCTAssertEqual(result.status, 0, "\(arguments)")
            let objects = try result.objects()
            XCTAssertEqual(objects.map { $0["event"] as? String }, ["discovered", "finished"], "\(arguments)")
            XCTAssertEqual(objects.first?["name"] as? String, "Pulse Strap 7F", "\(arguments)")
            for object in objects {
                let time = try XCTUnwrap(object["time"] as? String)
                let date = try Date(time, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
                XCTAssertLessThan(abs(date.timeIntervalSinceNow), 120, time)
            }
        }
    }

    func testAScanThatWaitsInVainIsAFailure() throws {
        let wait = ["scan", "--simulated", "--duration", "1", "--json"]
        let commands = [
            wait + ["--first", "--name", "Nothing"], wait + ["--count", "1000"], wait + ["--named", "--count", "1"],
        ]
        let results = try ToolRun.finish(commands: commands)
        XCTAssertEqual(results.map(\.status), [1, 1, 0])
        for result in results { XCTAssertEqual(try result.objects().last?["event"] as? String, "finished") }
        let error = try XCTUnwrap(results[0].errors.first)
        XCTAssertNotNil(error.prefixMatch(of: /bluecap: 0 of 1 peripheral found in \d+\.\d s\. `bluecap scan`/), error)
        let run = try ToolRun("scan", "--simulated", "--count", "1000")
        _ = try run.line()
        try run.end(SIGTERM, status: 128 + SIGTERM)
    }

    func testFiltersInErrorAreRefusedWithWhatTheyTake() {
        for (arguments, part) in [
            (["--name", ""], "It takes the beginning of a name"),
            (["--name", "/(/"], "It is not a regular expression: "),
            (["--manufacturer", "No Such"], "It takes a company by its number, such as 0x004C"),
            (["--manufacturer", ""], "It takes a company"), (["--manufacturer", "0x10000"], "It takes a company"),
            (["--manufacturer-data", "0x1"], "It takes bytes in hexadecimal digits"),
            (["--address", "C0:5"], "It takes an address, such as"), (["--not", "name"], "It takes named, or name"),
            (["--not", "rssi=-50"], "It takes named, or name"), (["--not", "address=x"], "It takes an address"),
            (["--first", "--count", "2"], "--first is --count 1"),
            (["--count", "0"], "It takes a whole number of peripherals"),
        ] {
            expectRefusal(of: ["scan"] + arguments, part)
        }
    }

    func testAnEmptyRoomIsNoFailure() throws {
        let result = try ToolRun("scan", "--simulated", "--peripherals", "empty", "--duration", "0.5").finish(status: 0)
        assertEmptySummary(result)
    }

    func testTooFewOpenFilesAreAFailureWithTheLimit() throws {
        let result = try ToolRun(script: "ulimit -n 12; exec $BLUECAP scan --simulated --duration 1").finish(status: 1)
        XCTAssertEqual(result.lines, [])
        XCTAssertEqual(result.errors.count, 1, "\(result.errors)")
        XCTAssertTrue(result.errors.first?.contains("ulimit -n") == true, "\(result.errors)")
    }

    /// The scan ended with "The adapter hci0 is on." as its failure.
    func testAThousandAdaptersAreNoFailure() throws {
        let bench = try ServingBench(adapters: 1_000)
        let result = try bench.start("scan", "--duration", "0.5").finish(status: 0)
        XCTAssertEqual(result.errors, [])
        assertEmptySummary(result)
    }

    func testCtrlCPrintsTheSummaryAndLeavesNoDiscovery() throws {
        let bench = try ToolBench(room: .furnished)
        let run = try bench.start("scan")
        _ = try run.line()
        XCTAssertTrue(bench.isDiscovering)

        let result = try run.end()
        XCTAssertEqual(result.errors, [])
        let summary = try XCTUnwrap(result.lines.last)
        XCTAssertNotNil(summary.wholeMatch(of: /\d+ peripherals? in \d+\.\d s/), summary)
        XCTAssertFalse(bench.isDiscovering)
    }

    func testCtrlCBeforeTheAdapterIsKnownPrintsAnEmptySummary() throws {
        let bench = try ToolBench()
        let simulator = bench.simulator
        simulator.simulateSlowReplies(by: 3600)
        let run = try bench.start("scan")
        XCTAssertTrue(simulator.wait(until: { !simulator.statistics.calls.isEmpty }, limit: ToolRun.limit))
        let result = try run.end()
        XCTAssertEqual(result.errors, [])
        XCTAssertEqual(result.lines, ["0 peripherals in 0.0 s"])
    }

    func testAScanThatBlueZRefusesIsAFailureAfterTheSummary() throws {
        let bench = try ToolBench()
        let failure = DaemonError(name: "org.bluez.Error.NotSupported", message: "No such thing")
        bench.simulator.simulateStartDiscoveryFailures(1_000, error: failure)
        let result = try bench.start("scan").finish(status: 1)
        XCTAssertEqual(result.lines.map { $0.hasPrefix("0 peripherals in ") }, [true], "\(result)")
        XCTAssertEqual(result.errors.count, 1, "\(result)")
        XCTAssertFalse(bench.isDiscovering)
    }

    func testASecondCtrlCEndsAtOnceAlsoWhereBlueZDoesNotAnswer() throws {
        let bench = try ToolBench(room: .furnished)
        let run = try bench.start("scan", "--verbose")
        _ = try run.line()
        bench.simulator.simulateSlowReplies(by: 3600)

        run.signal(SIGINT)
        try run.errorLine { $0.contains("scan stopped") }
        run.signalUntilItEnds(SIGINT)

        let result = try run.finish()
        XCTAssertEqual(result.status, 128 + SIGINT)
        XCTAssertFalse(result.wasKilled)
    }

    func testASecondCtrlCEndsAtOnceAlsoWhereTheReaderTakesNothing() throws {
        let bench = try ToolBench(room: .furnished)
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("pipe-\(UUID().uuidString)").path
        XCTAssertEqual(mkfifo(path, 0o600), 0)
        defer { unlink(path) }
        let pipe = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(pipe) }
        let room = [UInt8](repeating: 0, count: 4096)
        while write(pipe, room, room.count) > 0 {}
        XCTAssertEqual(errno, EAGAIN)
        // Descriptor 9 ends with the tool.
        let run = try bench.start(script: "exec $BLUECAP scan 9>&1 > '\(path)'")
        bench.wait("a scan") { bench.isDiscovering }
        run.signalUntilItEnds(SIGINT)
        let result = try run.finish()
        XCTAssertEqual(result.status, 128 + SIGINT, "\(result)")
        XCTAssertFalse(result.wasKilled)
        XCTAssertEqual(result.problems, ["bluecap: A second signal has ended the command before it was finished."])
    }

    func testAScanOutlivesBluetoothd() throws {
        let bench = try ToolBench(room: .furnished)
        let run = try bench.start("scan", "--duplicates")
        _ = try run.line { $0.contains("  updated  ") }

        bench.simulator.simulateDaemonDeath()
        try run.errorLine { $0.hasSuffix("The command continues when Bluetooth is back.") }
        let printed = run.lineCount
        bench.simulator.simulateDaemonReturn()
        try run.errorLine { $0.hasSuffix("Bluetooth is back.") && !$0.contains("continues") }
        try run.waitForLines(printed + 5)

        try run.end()
    }

    func testOnATerminalATableIsDrawnAndTheCursorComesBack() throws {
        let run = try ToolRun(onTerminal: "scan --simulated", setUp: "stty cols 110 rows 30;")
        try run.waitForText("Bookshelf")
        try run.waitForText("Ctrl-C ends", times: 4)
        run.type("\u{03}")
        let result = try run.finish(status: 0)
        XCTAssertTrue(result.output.contains(LiveScreen.begin))
        XCTAssertTrue(result.output.contains("SERVICES"))
        XCTAssertTrue(result.output.contains(/\d+ peripherals in \d+\.\d s/), result.output)
        XCTAssertTrue(result.output.hasSuffix(LiveScreen.end))
    }

    /// A line feed that the terminal echoes would move the frame.
    func testWhatIsTypedDoesNotDisturbTheTable() throws {
        let scan = "$BLUECAP scan --simulated --peripherals empty"
        // Job control: Ctrl-Z stops the scan, and the next command runs.
        let commands = "set -m; \(scan); stty -a; echo Stopped; fg; stty -a; echo Ended"
        let run = try ToolRun(
            script: "export BLUECAP; SHELL=/bin/bash TERM=xterm exec script -qec \"bash -c '\(commands)'\" /dev/null")
        try run.waitForText("Ctrl-C ends")
        run.type("typed\n\n")
        try run.waitForText("2 s")
        run.type("\u{1A}")
        try run.waitForText("Stopped")
        try run.waitForText(LiveScreen.begin, times: 2)
        run.type("typed\n\n")
        try run.waitForText("5 s")
        run.type("\u{03}")
        let result = try run.finish()
        XCTAssertFalse(result.output.contains("typed"), result.output)
        XCTAssertTrue(result.output.contains("Ended"), result.output)
        XCTAssertEqual(result.output.ranges(of: " echo ").count, 2, result.output)
        XCTAssertFalse(result.output.contains("-echo "), result.output)
    }

    func testTheDurationEndsTheTable() throws {
        let result = try ToolRun(onTerminal: "scan --simulated --peripherals empty --duration 0.5").finish(status: 0)
        XCTAssertTrue(result.output.contains(/0 peripherals in \d+\.\d s/), result.output)
        XCTAssertTrue(result.output.hasSuffix(LiveScreen.end))
    }

    func testATableWithoutPeripheralsIsRedrawnEverySecond() throws {
        let run = try ToolRun(onTerminal: "scan --simulated --peripherals empty")
        try run.waitForText("Ctrl-C ends", times: 3)
        try run.waitForText("1 s")
        run.type("\u{03}")
        XCTAssertEqual(try run.finish().status, 0)
    }

    func testAReaderThatLeavesEndsTheScanQuietly() throws {
        let bench = try ToolBench(room: .furnished)
        let result = try bench.run("scan --json", into: "head -n 1")
        XCTAssertEqual(result.status, 0)
        XCTAssertEqual(result.lines.count, 1)
        XCTAssertEqual(result.errors, [])
        XCTAssertFalse(bench.isDiscovering)
    }

    func testLinesByATemplateReplaceTheTable() throws {
        let run = try ToolRun(onTerminal: "scan --simulated --name Pulse --first --format '{event} {name}|{txPower}'")
        let result = try run.finish(status: 0)
        XCTAssertFalse(result.output.contains("\u{1B}"), result.output)
        XCTAssertTrue(
            result.output.hasPrefix("discovered Pulse Strap 7F|4\r\nbluecap: 1 peripheral in "), result.output)
        let piped = try ToolRun("scan", "--simulated", "--duration", "1", "--csv", "--statistics").finish(status: 0)
        XCTAssertEqual(piped.lines.first, Sighting.header)
        XCTAssertGreaterThan(piped.lines.count, 3)
        XCTAssertTrue(piped.lines.dropFirst().allSatisfy { $0.contains("Z,") }, "\(piped)")
        XCTAssertTrue(piped.errors.first?.contains(/^bluecap: \d+ peripherals in \d/) == true, "\(piped)")
        XCTAssertTrue(piped.errors.dropFirst().first?.contains(" sightings of ") == true, "\(piped)")
    }

    func testLinesGoToAFileThatIsRotated() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("seen-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
        func text(_ name: String) throws -> String { try String(contentsOfFile: path(name), encoding: .utf8) }
        for _ in 0..<2 {
            let run = try ToolRun(
                "scan", "--simulated", "--duplicates", "--csv", "--count", "5", "--output", path("seen.csv"),
                "--rotate",
                "400")
            XCTAssertEqual(try run.finish(status: 0).output, "")
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        XCTAssertGreaterThan(names.count, 2)
        XCTAssertEqual(names, ["seen.csv"] + (1..<names.count).map { "seen.csv.\($0)" })
        for name in names {
            let lines = try text(name).split(separator: "\n")
            XCTAssertEqual(lines.count { $0 == Sighting.header }, 1, "\(lines)")
            XCTAssertEqual(String(lines[0]), Sighting.header)
            XCTAssertGreaterThan(lines.count, 1)
        }
        let json = try ToolRun(
            "scan", "--simulated", "--json", "--first", "--statistics", "--output", path("seen.json")
        ).finish(status: 0)
        XCTAssertEqual(json.output, "")
        XCTAssertEqual(
            try text("seen.json").matches(of: /"event":"(\w+)"/).map { String($0.1) },
            ["discovered", "finished", "statistics"])
        let terminal = try ToolRun(onTerminal: "scan --simulated --first --output \(path("seen.txt"))")
        XCTAssertFalse(try terminal.finish(status: 0).output.contains("\u{1B}"))
        XCTAssertTrue(try text("seen.txt").contains("  discovered  "))
        assertOneLine(
            try ToolRun("scan", "--simulated", "--output", "/no/such/file").finish(),
            "Cannot write /no/such/file: No such file or directory.")
    }

    func testStatisticsAreTheLastJSONLine() throws {
        let result = try ToolRun("scan", "--simulated", "--duration", "3", "--json", "--statistics").finish(status: 0)
        let object = try XCTUnwrap(result.objects().last)
        XCTAssertEqual(object["event"] as? String, "statistics")
        let peripherals = try XCTUnwrap(object["peripherals"] as? [[String: Any]])
        XCTAssertEqual(peripherals.count, result.lines.count { $0.contains(#""event":"discovered""#) })
        XCTAssertGreaterThan(peripherals.count, 0)
        XCTAssertEqual(object["sightings"] as? Int, peripherals.reduce(0) { $0 + ($1["sightings"] as? Int ?? 0) })
    }
}

/// The time is not compared: on a busy machine half a second is printed as 0.6 s.
private func assertEmptySummary(_ result: ToolRun.Result, file: StaticString = #filePath, line: UInt = #line) {
    XCTAssertEqual(result.lines.count, 1, file: file, line: line)
    XCTAssertNotNil(
        result.lines.last?.wholeMatch(of: /0 peripherals in \d+\.\d s/), "\(result.lines)", file: file, line: line)
}

final class ToolFailureTests: XCTestCase, StartsPrograms {
    func testBadArgumentsShowTheUsage() throws {
        let mistakes = [
            ["--service", "heart"], ["--rssi", "5000"], ["--duration", "0"], ["--duration", "soon"], ["--name", ""],
            ["--peripherals", "room"], ["--simulated", "--peripherals", "crowd:many"], ["--unheard-of"], ["extra"],
        ]
        try expectUsage(mistakes.map { ["scan"] + $0 }, of: " scan")
    }

    func testAVersionOfBlueZThatIsNotSimulatedIsRefusedWithTheRange() throws {
        for (version, part) in [
            ("5.54", "knows BlueZ 5.55 and newer"), ("5.99", "knows BlueZ up to 5.87"), ("new", "such as 5.72"),
        ] {
            let result = try ToolRun("scan", "--simulated", "--bluez", version).finish()
            XCTAssertEqual(result.status, 64, version)
            XCTAssertTrue(result.errors.joined(separator: " ").contains(part), "\(result.errors)")
        }
        XCTAssertEqual(try ToolRun("scan", "--bluez", "5.72").finish().status, 64, "without --simulated")
    }

    func testNumbersOutOfRangeAreRefusedWithTheRange() throws {
        let seconds = "It takes a number of seconds from 0.001 to 1000000000."
        let options: [(command: String, option: String, values: [String], sentence: String)] = [
            ("scan", "--duration", ["nan", "inf", "0", "1e10", "soon", "0x10", "0X1p4"], seconds),
            ("scan", "--rssi", ["-128", "21", "nan"], "It takes a whole number of dBm from -127 to 20."),
            ("serve battery", "--duration", ["nan"], seconds),
            ("notify x 2A37", "--duration", ["infinity"], seconds),
            (
                "notify x 2A37", "--count", ["0", "nan"],
                "It takes a whole number of values from 1 to 1000000000."
            ),
            ("read x 2A19", "--timeout", ["nan", "inf", "0"], "It takes a number of seconds from 0.001 to 1000000."),
            ("simulate", "--adapters", ["0", "17", "nan"], "It takes a whole number of adapters from 1 to 16."),
            (
                "beacon --telemetry", "--temperature", ["nan", "-inf", "128", "-128", "warm"],
                "It takes a number of °C from -127.99 to 127.99."
            ),
            (
                "beacon --telemetry", "--battery", ["65536", "nan"],
                "It takes a whole number of millivolts from 0 to 65535."
            ),
            ("beacon", "--major", ["-1"], "It takes a whole number from 0 to 65535."),
            ("beacon", "--minor", ["65536"], "It takes a whole number from 0 to 65535."),
            ("beacon", "--number", ["4294967296"], "It takes a whole number from 0 to 4294967295."),
            ("beacon", "--measured-power", ["-128", "21"], "It takes a whole number of dBm from -127 to 20."),
            ("advertise", "--tx-power", ["21", "nan"], "It takes a whole number of dBm from -127 to 20."),
            (
                "advertise", "--interval", ["19", "10241", "nan", "200-100", "0x20", "0x20-0x40"],
                "It takes a time from 20 to 10240 milliseconds, or two such as 100-200."
            ),
            ("advertise", "--appearance", ["65536"], "It takes a number from 0 to 65535, such as 0x00C0"),
            ("advertise", "--manufacturer", ["65536=00"], "It takes a company from 0 to 65535"),
        ]
        for (command, option, values, sentence) in options {
            for value in values {
                XCTAssertThrowsError(
                    try BlueCapTool.parseAsRoot(command.split(separator: " ").map(String.init) + ["\(option)=\(value)"])
                ) { error in
                    XCTAssertEqual(BlueCapTool.exitCode(for: error).rawValue, 64)
                    let text = BlueCapTool.message(for: error)
                    XCTAssertTrue(text.contains(sentence) && text.contains(option), "\(command) \(value): \(text)")
                }
            }
        }
        XCTAssertNoThrow(
            try BlueCapTool.parseAsRoot(["beacon", "--telemetry", "--temperature", "-12.5", "--battery", "0"]))
        XCTAssertNoThrow(try BlueCapTool.parseAsRoot(["scan", "--rssi", "-70", "--duration", "0.5"]))
    }

    func testArgumentsInErrorsAreWrittenAsEscapes() throws {
        let cases = [
            ["scan", "--duration", "\u{202E}3"], ["scan", "--serv\u{2066}ice", "x"], ["un\u{1B}[2Jknown"],
            ["scan", "--simulated", "--peripherals", "/tmp/\u{E0041}room"], ["serve", "file\u{202D}name"],
            ["simulate", "--", "no\u{202E}such"],
        ]
        for arguments in cases {
            let result = try ToolRun(arguments).finish()
            XCTAssertNotEqual(result.status, 0, "\(arguments)")
            let text = result.errors.joined()
            XCTAssertTrue(text.contains("\\u{"), "\(arguments) \(text)")
            XCTAssertFalse(text.unicodeScalars.contains(where: DisplayText.isUnsafe), "\(arguments) \(text)")
        }
    }

    func testWithoutABusOneLineSaysWhatIsWrongAndWhatToDo() throws {
        let result = try ToolRun("scan", environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/no/such/socket"]).finish()
        assertOneLine(result)
    }

    func testWithTheAdapterOffOneLineSaysSo() throws {
        let bench = try ToolBench()
        bench.simulator.simulatePowerOff()
        let result = try bench.start("scan").finish()
        assertOneLine(result)
        XCTAssertTrue(result.errors.first?.contains("power") == true, "\(result.errors)")
    }

    func testWithoutPermissionOneLineSaysSo() throws {
        let bench = try ToolBench()
        bench.simulator.simulateAccessDenied()
        assertOneLine(try bench.start("scan").finish())
    }

    func testWithoutAnAdapterOrADaemonOneLineSaysSo() throws {
        let bench = try ToolBench()
        bench.simulator.simulateAdapterRemoval()
        assertOneLine(try bench.start("scan").finish())
        bench.simulator.simulateDaemonDeath()
        assertOneLine(try bench.start("scan").finish())
    }

    func testOutputThatCannotBeWrittenIsAFailure() throws {
        let commands = [
            "scan --simulated --duration 5", "scan --simulated --duration 5 --json",
            "scan --simulated --peripherals empty --duration 0.2", "simulate", "explore --simulated 'Pulse Strap 7F'",
            "read --simulated 'Pulse Strap 7F' 2A19", "notify --simulated 'Pulse Strap 7F' 2A37 --json",
            "serve battery --simulated --json", "beacon --simulated --telemetry --json",
            "advertise --simulated --name Desk --json", "--help", "--version", "help scan",
            "--generate-completion-script bash",
        ]
        try expectFailure(of: commands, with: "> /dev/full", "No space left on device")
    }

    private func expectFailure(of commands: [String], with redirection: String, _ reason: String) throws {
        let results = try ToolRun.finish(scripts: commands.map { #"exec "$BLUECAP" \#($0) \#(redirection)"# })
        for (command, result) in zip(commands, results) {
            XCTAssertEqual(result.status, 1, command)
            XCTAssertEqual(result.errors, ["bluecap: Cannot write the output: \(reason)."], command)
        }
    }

    /// Their numbers would be the next socket's: the output would go to BlueZ.
    func testClosedOutputIsAFailureAndNoSocketTakesItsPlace() throws {
        let commands = [
            "scan --simulated --peripherals empty --duration 0.2 --json", "simulate", "--version",
            "read --simulated 'Pulse Strap 7F' 2A19", "serve battery --simulated --json",
        ]
        try expectFailure(of: commands, with: "<&- >&-", "Bad file descriptor")
    }

    func testAnAdapterThatIsNotThereIsNamed() throws {
        let result = try ToolRun("scan", "--simulated", "--adapter", "hci7").finish(status: 3)
        XCTAssertEqual(result.errors.count, 1)
        XCTAssertTrue(result.errors.first?.contains("hci7") == true, "\(result.errors)")
    }

    func testVersionAndHelpAreThere() throws {
        let version = try ToolRun("--version").finish(status: 0)
        XCTAssertNotNil(version.lines.first?.wholeMatch(of: /bluecap \d+\.\d+\.\d+/))
        let commands = ["", "scan", "explore", "read", "write", "notify", "simulate"].map { name in
            name.isEmpty ? ["--help"] : [name, "--help"]
        }
        for (command, help) in zip(commands, try ToolRun.finish(commands: commands)) {
            XCTAssertEqual(help.status, 0)
            XCTAssertTrue(help.lines.contains { $0.hasSuffix("Examples:") }, "\(command)")
        }
    }

    private func assertOneLine(_ result: ToolRun.Result, file: StaticString = #filePath, line: UInt = #line) {
        ToolTests.assertOneLine(result, "bluecap scan --simulated", status: 3, file: file, line: line)
    }
}

final class SimulateProcessTests: XCTestCase, StartsPrograms {
    func testTheCommandsStatusIsPassedOn() throws {
        XCTAssertEqual(try ToolRun("simulate", "--", "sh", "-c", "exit 7").finish().status, 7)
        XCTAssertEqual(try ToolRun("simulate", "--", "true").finish().status, 0)
        XCTAssertEqual(try ToolRun("simulate", "--", "sh", "-c", "kill -KILL $$").finish().status, 137)
    }

    func testTheCommandFindsTheBusInItsEnvironment() throws {
        let run = try ToolRun(
            "simulate", "--peripherals", "crowd:5", "--", ToolRun.executable.path, "scan", "--json")
        try run.waitForText(#""event":"discovered""#, times: 5)
        let result = try run.end(SIGTERM)
        XCTAssertEqual(result.lines.last?.contains(#""peripherals":5"#), true, "\(result.lines)")
    }

    func testBlueZsOwnToolSeesTheAdapter() throws {
        let result = try ToolRun("simulate", "--", "bluetoothctl", "list").finish(status: 0)
        XCTAssertTrue(result.lines.contains { $0.hasSuffix("[default]") }, "\(result.lines)")
    }

    func testTheChosenVersionOfBlueZIsSimulated() throws {
        for (version, modalias) in [("5.72", "d0548"), ("head", "d0557")] {
            let result = try ToolRun("simulate", "--bluez", version, "--", "bluetoothctl", "show").finish()
            XCTAssertTrue(result.output.contains("usb:v1D6Bp0246" + modalias), result.output)
        }
    }

    func testACommandThatIsNotThereIsNamed() throws {
        let result = try ToolRun("simulate", "--", "no-such-command").finish(status: 127)
        XCTAssertEqual(result.errors, ["bluecap: Cannot run no-such-command: No such file or directory."])
    }

    func testASignalIsForwardedToTheCommand() throws {
        let run = try ToolRun("simulate", "--", "sh", "-c", "echo ready; exec sleep 60")
        _ = try run.line { $0 == "ready" }
        try run.end(SIGTERM, status: 128 + SIGTERM)
    }

    /// On a busy machine one of twenty was lost: the watch was still being registered.
    func testASignalRightAfterTheStartIsForwardedToo() throws {
        for _ in 0..<5 {
            let run = try ToolRun("simulate", "--", "sh", "-c", "kill -TERM $PPID; exec sleep 60")
            XCTAssertEqual(try run.finish().status, 128 + SIGTERM)
        }
    }

    func testWithoutACommandTheAddressIsPrintedAndTheBusStaysUntilCtrlC() throws {
        let run = try ToolRun("simulate")
        let address = try run.line()
        XCTAssertTrue(address.hasPrefix("unix:"), address)
        let scan = try ToolRun(
            "scan", "--duration", "1", environment: ["DBUS_SYSTEM_BUS_ADDRESS": address]
        ).finish()
        XCTAssertEqual(scan.status, 0, "\(scan.errors)")

        let result = try run.end()
        XCTAssertEqual(result.lines, [address])
    }
}
