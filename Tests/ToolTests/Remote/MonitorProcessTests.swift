import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

final class MonitorProcessTests: XCTestCase, StartsPrograms {
    func testValuesAreReadAndReceivedAsNumbers() throws {
        let bench = try RemoteBench()
        let run = try bench.start("monitor", RemoteBench.text, "2A37", "Battery Level", "--json")
        // Which value comes first depends on the machine.
        try run.waitForText("Heart Rate")
        try run.waitForText("Battery Level")
        let result = try run.end()
        XCTAssertEqual(result.errors, [])
        let objects = try result.objects()
        XCTAssertEqual(objects.last?["event"] as? String, "finished")
        XCTAssertEqual(objects.last?["values"] as? Int, objects.count - 1)
        let series = Dictionary(grouping: objects.dropLast()) { $0["series"] as? String ?? "" }
        XCTAssertEqual(Set(series.keys), ["Heart Rate", "Battery Level"])
        XCTAssertEqual(series["Battery Level"]?.first?["number"] as? Double, 100)
        XCTAssertEqual(series["Battery Level"]?.first?["unit"] as? String, "%")
        XCTAssertTrue(Set(series["Heart Rate"]?.compactMap { $0["number"] as? Double } ?? []).isSubset(of: [72, 74]))
    }

    func testItEndsAfterTheCount() throws {
        let bench = try RemoteBench()
        let result = try bench.run(
            "monitor", RemoteBench.text, "2A37", "Battery Level", "--count", "5", "--json")
        XCTAssertEqual(result.status, 0, "\(result)")
        XCTAssertEqual(result.errors, [])
        let objects = try result.objects()
        XCTAssertEqual(objects.count, 6)
        XCTAssertEqual(objects.last?["values"] as? Int, 5)
    }

    func testAValueThatIsNotSentIsReadAtEachInterval() throws {
        let bench = try RemoteBench()
        let run = try bench.start("monitor", RemoteBench.text, "@\(try handle(of: 3))", "--interval", "0.1")
        try run.waitForLines(3)
        bench.simulator.simulateLinkLoss(of: RemoteBench.address)
        try run.errorLine { $0.contains("The link is back.") }
        let count = run.lineCount
        try run.waitForLines(count + 3)
        let result = try run.end()
        XCTAssertTrue(result.lines.allSatisfy { $0.hasSuffix("AA03  3") }, "\(result)")
        XCTAssertNotNil(result.errors.last?.wholeMatch(of: /bluecap: \d+ values in \d+\.\d s/), "\(result)")
        XCTAssertTrue(bench.simulator.links.isEmpty)
    }

    /// The handle of the first characteristic AA03, as `explore` prints it.
    private func handle(of value: Int) throws -> String {
        let result = try RemoteBench().run("explore", RemoteBench.text)
        let line = try XCTUnwrap(result.lines.first { $0.contains("AA03") && $0.hasSuffix("0\(value)") }, result.output)
        return String(try XCTUnwrap(line.firstMatch(of: /@([0-9a-f]{4})/)?.1))
    }

    func testALostLinkIsAGapAndComesBack() throws {
        let bench = try RemoteBench()
        let run = try bench.start("monitor", RemoteBench.text, "2A37", "--interval", "0.1", "--json")
        let result = try bench.expectGap(in: run)
        XCTAssertTrue(result.errors.contains { $0.contains("The link is back.") }, "\(result.errors)")
    }

    func testWhatThePeripheralDoesNotHaveIsOneLine() throws {
        let bench = try RemoteBench()
        assertOneLine(try bench.run("monitor", RemoteBench.text, "2A19", "2A99"), "bluecap explore")
    }

    func testWithoutACharacteristicItPlotsTheStrengthAndDoesNotConnect() throws {
        let bench = try RemoteBench()
        let run = try bench.start("monitor", RemoteBench.text, "--json")
        try run.waitForLines(3)
        XCTAssertTrue(bench.simulator.links.isEmpty)
        let result = try run.end(SIGTERM)
        let objects = try result.objects()
        XCTAssertEqual(Set(objects.dropLast().compactMap { $0["series"] as? String }), ["RSSI"])
        XCTAssertEqual(objects.first?["unit"] as? String, "dBm")
        bench.wait("a scan") { !bench.isDiscovering }
    }

    func testSeveralPeripheralsAreFollowedEachUnderItsName() throws {
        let bench = try RemoteBench()
        let other = VirtualPeripheral(
            "C0:FF:EE:00:18:1A", advertisement: Advertisement(localName: "Garden"), interval: 0.05,
            services: [VirtualService("181A", characteristics: [VirtualCharacteristic("2A6E", value: [0x6E, 0x09])])])
        bench.simulator.add(other)
        let run = try bench.start(
            "monitor", RemoteBench.name, "2A37", "2A37", "--and", "garden=2A6E", "--and", "garden=", "--json")
        let usage = try run.finish(status: 64)
        XCTAssertTrue(usage.errors.contains { $0.contains("such as Garden=2A6E,2A6F") }, "\(usage)")

        let both = try bench.start(
            "monitor", RemoteBench.name, "2A37", "2A37", "--and", "garden=2A6E", "--interval", "0.1", "--json")
        try both.waitForText(#""peripheral":"garden","series":"Temperature","number":24.14,"unit":"°C""#, times: 3)
        try both.waitForText(#""peripheral":"\#(RemoteBench.name)","series":"Heart Rate""#, times: 3)
        XCTAssertEqual(bench.simulator.links.count, 2)
        bench.simulator.simulateLinkLoss(of: other.address)
        try both.errorLine { $0 == "bluecap: garden: The link is back." }
        let result = try both.end()
        XCTAssertTrue(bench.simulator.links.isEmpty)
        let gaps = try result.objects().filter { $0["event"] as? String == "gap" }
        XCTAssertEqual(gaps.map { $0["peripheral"] as? String }, ["garden"])
        XCTAssertEqual(result.errors.first, "bluecap: garden: The link was lost; trying to bring it back.")

        let strengths = try bench.start("monitor", RemoteBench.text, "--and", "garden")
        try strengths.waitForText("  garden  RSSI  ", times: 2)
        try strengths.waitForText("  \(RemoteBench.text)  RSSI  ", times: 2)
        XCTAssertTrue(bench.simulator.links.isEmpty)
        try strengths.end()

        assertOneLine(try bench.run("monitor", RemoteBench.text, "2A37", "--and", "garden"), "C0:FF:EE:00:18:1A")
    }

    func testOnATerminalSeveralPeripheralsHavePlotsOfTheirOwn() throws {
        let bench = try RemoteBench()
        bench.simulator.add(
            VirtualPeripheral("C0:FF:EE:00:18:1A", advertisement: Advertisement(localName: "Garden"), interval: 0.05))
        let run = try ToolRun(
            onTerminal: "monitor \(RemoteBench.text) --and Garden", bench.bus, setUp: "stty cols 70 rows 30;")
        try run.waitForText("Pulse Strap 7F  C0:5A:17:00:18:0D, Garden  C0:FF:EE:00:18:1A")
        try run.waitForText("Garden  RSSI")
        try run.waitForText("\(RemoteBench.text)  RSSI")
        run.type("\u{03}")
        try run.finish(status: 0)
    }

    /// The values of the first peripheral arrive while the second one is looked for.
    func testAllPlotsHaveOneAxisOfTime() throws {
        let bench = try RemoteBench()
        let garden: VirtualAddress = "C0:FF:EE:00:18:1A"
        bench.simulator.add(
            VirtualPeripheral(
                garden, advertisement: Advertisement(localName: "Garden"), interval: 0.05,
                services: [VirtualService("181A", characteristics: [VirtualCharacteristic("2A6E", value: [0x6E, 9])])]))
        bench.simulator.simulateOutOfRange(of: garden)
        let run = try ToolRun(
            onTerminal: "monitor \(RemoteBench.text) 2A37 --and Garden=2A6E --window 60", bench.bus,
            setUp: "stty cols 130 rows 30;")
        bench.wait("a link") { bench.simulator.links.count == 1 }
        // There is no event to wait for: the plot has no frame yet, and is to have values of these seconds.
        Thread.sleep(forTimeInterval: 6)
        bench.simulator.simulateOutOfRange(false, of: garden)
        try run.waitForText("Garden  Temperature")
        run.type("\u{03}")
        let output = try run.finish(status: 0).output
        let seconds = try XCTUnwrap(output.matches(of: /values? in (\d+\.\d) s/).last.flatMap { Double($0.1) })
        let plot = try XCTUnwrap(output.components(separatedBy: "  Heart Rate  ").last)
        let rows = plot.prefix { $0 != "└" }.split(separator: "\n").prefix(4)
        let cells = rows.map { $0.unicodeScalars.count { (0x2801...0x28FF).contains($0.value) } }.max() ?? 0
        // 120 cells are 60 s. The values of at least four seconds before the second link are on the left.
        XCTAssertGreaterThan(Double(cells), min(110, (seconds + 4) * 2), output.suffix(4000).description)
    }

    func testTransmittedNumbersAreInJSONOnly() throws {
        let room = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
                "Examples/Rooms/bluecap.json")
        let command = ["monitor", "SensorTag", "Accelerometer Data", "--simulated", "--peripherals", room.path]
        let results = try ToolRun.finish(commands: [[], ["--json"]].map { command + $0 + ["--count", "1"] })
        XCTAssertEqual(results.map(\.status), [0, 0], "\(results)")
        let names = ["x", "y", "z"]
        XCTAssertEqual(results[0].lines.count, 3, "\(results)")
        for (line, name) in zip(results[0].lines, names) {
            XCTAssertTrue(line.contains("  Accelerometer Data \(name)  "), line)
        }
        let series = try results[1].objects().compactMap { $0["series"] as? String }
        XCTAssertEqual(Set(series), Set((names + names.map { $0 + "Raw" }).map { "Accelerometer Data " + $0 }))
    }

    func testOnATerminalThePlotsAreDrawnAndFitItAlsoWhenItIsResized() throws {
        let bench = try RemoteBench()
        let run = try bench.start(
            script: """
                unset NO_COLOR
                export TERM=xterm LC_ALL=C
                script -qec 'stty cols 50 rows 20; tty; exec "$BLUECAP" monitor \(RemoteBench.text) 2A37' /dev/null
                """)
        try run.waitForText("Heart Rate")
        try run.waitForText(" 74 ")
        let width = "        +" + String(repeating: "-", count: 40)
        try run.waitForText(width)
        let device = try XCTUnwrap(
            run.line { $0.hasPrefix("/dev/pts/") }.trimmingCharacters(in: .whitespacesAndNewlines))
        _ = try ToolRun(script: "stty -F \(device) cols 40").finish()
        try run.waitForText("        +" + String(repeating: "-", count: 30) + "\u{1B}[0m\u{1B}[K")
        run.type("\u{03}")
        let result = try run.finish(status: 0)
        XCTAssertTrue(result.output.contains(LiveScreen.end), "\(result)")
        XCTAssertTrue(bench.simulator.links.isEmpty)
    }

    func testColoursAndPlotsAreLeftOutAsTheEnvironmentAsks() throws {
        let bench = try RemoteBench()
        func output(_ variables: String) throws -> String {
            let result = try bench.start(
                script: """
                    export \(variables)
                    script -qec "exec $BLUECAP monitor \(RemoteBench.text) --count 3" /dev/null
                    """
            ).finish()
            XCTAssertEqual(result.status, 0, "\(result)")
            return result.output
        }
        XCTAssertTrue(try output("TERM=xterm NO_COLOR=").contains("\u{1B}[1;32m"))
        let plain = try output("TERM=xterm NO_COLOR=1")
        XCTAssertTrue(plain.contains(LiveScreen.begin))
        XCTAssertNil(plain.firstMatch(of: /\x1b\[[\d;]*m/), plain)
        let dumb = try output("TERM=dumb")
        XCTAssertTrue(dumb.contains("  RSSI  -"), dumb)
        XCTAssertFalse(dumb.contains(LiveScreen.begin), dumb)
    }

    func testBadArgumentsShowTheUsage() throws {
        let mistakes = [
            ["monitor"], ["monitor", "x", "@zz"], ["monitor", "x", "--interval", "0"],
            ["monitor", "x", "--window", "0"],
            ["monitor", "x", "--count", "0"],
        ]
        try expectUsage(mistakes)
    }
}
