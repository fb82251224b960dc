import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

/// One virtual strap, on a bus of its own, for processes that use it.
final class RemoteBench: ToolBench {
    static let address: VirtualAddress = "C0:5A:17:00:18:0D"
    static let text = "C0:5A:17:00:18:0D"
    static let name = "Pulse Strap 7F"

    /// - Parameter services: Those of the strap; `nil` for its usual ones.
    init(name: String = RemoteBench.name, services: [VirtualService]? = nil, bluez: BlueZVersion = .default) throws {
        let strap = VirtualPeripheral(
            Self.address, addressType: .random,
            advertisement: Advertisement(localName: name, serviceUUIDs: ["180D"]), interval: 0.05,
            services: services ?? [
                VirtualService(
                    "180D",
                    characteristics: [
                        VirtualCharacteristic(
                            "2A37", [.notify], notifications: .cycle([[6, 72], [6, 74]], every: 0.02)),
                        VirtualCharacteristic("2A38", [.read], value: [1]),
                        VirtualCharacteristic("2A39", [.write]),
                    ]),
                VirtualService(
                    "180F", characteristics: [VirtualCharacteristic("2A19", [.read, .notify], value: [100])]),
                VirtualService(
                    "AA00",
                    characteristics: [
                        VirtualCharacteristic(
                            "AA01", [.read, .write], value: Array("hello".utf8),
                            descriptors: [.description("Greeting")]),
                        VirtualCharacteristic("AA02", [.writeWithoutResponse]),
                        VirtualCharacteristic("AA03", [.read], value: [3], descriptors: [.description("Left")]),
                        VirtualCharacteristic("AA03", [.read], value: [4], descriptors: [.description("Right")]),
                    ]),
            ])
        super.init(try .onPrivateBus(room: Room(peripherals: [strap]), bluez: bluez))
    }

    func run(_ arguments: String..., file: StaticString = #filePath, line: UInt = #line) throws -> ToolRun.Result {
        try finish(start(arguments), file: file, line: line)
    }

    /// Runs commands at the same time, each on a bench of its own: BlueZ takes two seconds to end a link.
    static func run(
        _ commands: [[String]], file: StaticString = #filePath, line: UInt = #line
    ) throws -> [(bench: RemoteBench, result: ToolRun.Result)] {
        let runs = try commands.map { command in
            let bench = try RemoteBench()
            return (bench, try bench.start(command))
        }
        return try runs.map { bench, run in (bench, try bench.finish(run, file: file, line: line)) }
    }

    private func finish(_ run: ToolRun, file: StaticString, line: UInt) throws -> ToolRun.Result {
        let result = try run.finish(file: file, line: line)
        XCTAssertTrue(simulator.links.isEmpty, "a link was left behind", file: file, line: line)
        // The tool's last message may still be on the bus when its process has ended.
        wait("a scan", file: file, line: line) { !isDiscovering }
        return result
    }

    /// The link is lost and comes back while a command prints values as JSON; then the command is ended.
    @discardableResult
    func expectGap(
        in run: ToolRun, file: StaticString = #filePath, line: UInt = #line
    ) throws -> ToolRun.Result {
        try run.waitForLines(2, file: file, line: line)
        simulator.simulateLinkLoss(of: Self.address)
        try run.errorLine(where: { $0.contains("trying to bring it back") }, file: file, line: line)
        _ = try run.line(where: { $0.contains(#""event":"gap""#) }, file: file, line: line)
        try run.waitForLines(run.lineCount + 3, file: file, line: line)
        let result = try run.end(file: file, line: line)
        XCTAssertTrue(result.lines.last?.contains("finished") == true, file: file, line: line)
        XCTAssertTrue(simulator.links.isEmpty, file: file, line: line)
        return result
    }

    func value(_ uuid: AttributeSelector) -> [UInt8]? { simulator.value(of: uuid, at: Self.address) }
}

func assertOneLine(
    _ result: ToolRun.Result, _ part: String, status: Int32 = 1, file: StaticString = #filePath, line: UInt = #line
) {
    XCTAssertEqual(result.status, status, file: file, line: line)
    XCTAssertEqual(result.lines, [], file: file, line: line)
    XCTAssertEqual(result.problems.count, 1, "\(result.errors)", file: file, line: line)
    let text = result.problems.first ?? ""
    XCTAssertTrue(text.hasPrefix("bluecap: ") && text.contains(part), text, file: file, line: line)
}

final class ExploreProcessTests: XCTestCase, StartsPrograms {
    /// Commands that run at the same time, for the tests of what one of them did.
    private static let results = Result {
        try RemoteBench.run([
            ["explore", RemoteBench.name], ["explore", "c0:5a:17:00:18:0d", "--json"],
            ["explore", "Pulse", "--no-values"], ["explore", "Kitchen", "--timeout", "1"],
        ]).map(\.result)
    }

    func testTheTreeIsPrintedAndNoLinkIsLeft() throws {
        let result = try Self.results.get()[0]
        XCTAssertEqual(result.status, 0)
        XCTAssertEqual(result.errors, [])
        XCTAssertTrue(result.lines.first?.hasPrefix("Pulse Strap 7F  C0:5A:17:00:18:0D  random") == true)
        for part in [
            "Heart Rate Measurement  2A37", "Body Sensor Location  2A38", "read  Chest", "read notify  100 %",
            "read write  \"hello\"", "Characteristic User Description  2901", "\"Greeting\"",
        ] {
            XCTAssertTrue(result.output.contains(part), part)
        }
    }

    func testTheTreeIsOneJSONObject() throws {
        let result = try Self.results.get()[1]
        XCTAssertEqual(result.lines.count, 1)
        let tree = try XCTUnwrap(result.objects().first)
        XCTAssertEqual(tree["name"] as? String, "Pulse Strap 7F")
        let services = try XCTUnwrap(tree["services"] as? [[String: Any]])
        XCTAssertEqual(services.map { $0["uuid"] as? String }, ["1800", "1801", "180D", "180F", "AA00"])
    }

    func testOnATerminalItSaysWhatItWaitsForAndTakesThatBack() throws {
        let bench = try RemoteBench()
        let result = try ToolRun(onTerminal: "explore Kitchen --timeout 2", bench.bus).finish(status: 1)
        let parts = result.output.components(separatedBy: "\r\u{1B}[K")
        XCTAssertTrue(parts.contains("Looking for Kitchen …"), result.output)
        XCTAssertTrue(parts.last?.hasPrefix("bluecap: No peripheral named") == true, result.output)
    }

    /// BlueZ exports the objects of the first link, and signals nothing about the packets of a later one.
    func testALaterCommandKnowsAsMuchOfTheLinkAsTheFirst() throws {
        let bench = try RemoteBench()
        let first = try bench.run("explore", RemoteBench.text, "--no-values")
        XCTAssertTrue(first.lines.first?.hasSuffix("MTU 247") == true, "\(first)")
        XCTAssertEqual(try bench.run("explore", RemoteBench.text, "--no-values").lines, first.lines)
        let bytes = [UInt8](repeating: 7, count: 244)
        let digits = bytes.map { _ in "07" }.joined()
        let write = try bench.run("write", RemoteBench.text, "AA02", digits, "--without-response")
        XCTAssertEqual(write.status, 0, "\(write)")
        XCTAssertEqual(bench.value("AA02"), bytes)
        assertOneLine(
            try bench.run("write", RemoteBench.text, "AA02", digits + "07"),
            "this link takes at most 244 in a write without response")
    }

    /// Between two others there is a value that needs a pairing, which the command is not allowed to make. Up to 5.66 BlueZ ends
    /// the link, later it does not reply, and sends no other request until then.
    func testAProtectedValueCostsNoOtherItsValue() throws {
        let services = [
            VirtualService("AA00", characteristics: [VirtualCharacteristic("AA01", [.read, .notify], value: [1])]),
            VirtualService(
                "AB00",
                characteristics: [
                    VirtualCharacteristic("AB01", [.read], value: [2], security: .authenticated),
                    VirtualCharacteristic("AB02", [.read], value: [3], descriptors: [.description("Third")]),
                ]),
        ]
        let benches = try ["5.66", "5.82"].map {
            try RemoteBench(services: services, bluez: XCTUnwrap(BlueZVersion($0)))
        }
        for _ in 0..<2 {
            let runs = try benches.map { try $0.start("explore", RemoteBench.text, "--timeout", "10") }
            for (bench, (run, reason)) in zip(benches, zip(runs, ["link lost", "no response"])) {
                let result = try run.finish(status: 1)
                for line in ["AA01  @000b  read notify  01", "AB02  @0011  read  03", "2901  @0013  \"Third\""] {
                    XCTAssertTrue(result.output.contains(line), "\(line) \(result)")
                }
                XCTAssertTrue(result.output.contains("AB01  @000f  read  (\(reason))"), "\(result)")
                XCTAssertEqual(result.output.components(separatedBy: "  (").count, 2, "\(result)")
                XCTAssertEqual(result.problems.count, 1, "\(result)")
                XCTAssertTrue(
                    result.problems.first?.contains("`bluecap pair \(RemoteBench.text)`") == true, "\(result)")
                XCTAssertTrue(bench.simulator.links.isEmpty, "\(result)")
            }
        }
    }

    /// A peripheral that replies to nothing is not asked for each of its values.
    func testAPeripheralThatDoesNotRespondIsNotAskedForEachValue() throws {
        let values = (1...9).map { VirtualCharacteristic("AA0\($0)", [.read], value: [UInt8($0)]) }
        let bench = try RemoteBench(services: [VirtualService("AA00", characteristics: values)])
        bench.simulator.simulateUnansweredAttributes(of: RemoteBench.address)
        let result = try bench.run("explore", RemoteBench.text, "--timeout", "3")
        XCTAssertEqual(result.status, 1, "\(result)")
        XCTAssertEqual(result.output.components(separatedBy: "(no response)").count, 4, "\(result)")
        XCTAssertTrue(result.output.contains("AA09  @001b  read  (not read)"), "\(result)")
    }

    /// The library's text for a peripheral without a name is a name, too.
    func testAPeripheralThatIsCalledUnknownIsFoundByItsName() throws {
        let bench = try RemoteBench(name: "Unknown")
        let result = try bench.run("explore", "Unknown", "--no-values")
        XCTAssertEqual(result.status, 0, "\(result)")
        XCTAssertTrue(result.lines.first?.hasPrefix("Unknown  \(RemoteBench.text)") == true, "\(result)")
    }

    func testWithoutValuesNothingIsRead() throws {
        let result = try Self.results.get()[2]
        XCTAssertEqual(result.status, 0)
        XCTAssertFalse(result.output.contains("Chest"))
    }

    func testNoPeripheralOfThatNameIsOneLine() throws {
        assertOneLine(
            try Self.results.get()[3],
            "No peripheral named \"Kitchen\" was found in 1 s")
    }

    func testAPeripheralThatRefusesConnectionsIsOneLine() throws {
        let bench = try RemoteBench()
        bench.simulator.simulateConnectFailures(1_000, of: RemoteBench.address)
        assertOneLine(try bench.run("explore", RemoteBench.text, "--timeout", "2"), "did not connect in time")
    }

    func testAPeripheralThatAnswersNothingDoesNotHoldUpTheRest() throws {
        let bench = try RemoteBench()
        bench.simulator.simulateSilence(of: RemoteBench.address)
        let result = try bench.run("explore", RemoteBench.text, "--timeout", "2")
        XCTAssertTrue(result.status == 1 || result.output.contains("(no response)"), "\(result)")
    }

    func testWithoutAnAdapterTheStatusSaysSo() throws {
        let bench = try RemoteBench()
        bench.simulator.simulatePowerOff()
        assertOneLine(try bench.run("explore", "Pulse"), "is off", status: 3)
        let result = try ToolRun(
            "read", "x", "2A19", environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/no/such/socket"]
        ).finish()
        assertOneLine(result, "--simulated", status: 3)
    }

    func testASignalEndsTheAttemptAndLeavesNoLink() throws {
        let bench = try RemoteBench()
        bench.simulator.simulateLateAnswers(by: 3600, of: RemoteBench.address)
        let run = try bench.start("explore", RemoteBench.address.description, "--verbose")
        try run.errorLine { $0.contains("link up") }
        XCTAssertEqual(bench.simulator.links.count, 1)
        let result = try run.end(status: 128 + SIGINT)
        XCTAssertFalse(result.wasKilled)
        XCTAssertTrue(bench.simulator.links.isEmpty)
    }

    func testASignalEndsTheSearch() throws {
        let bench = try RemoteBench()
        let run = try bench.start("explore", "Kitchen", "--verbose")
        bench.wait("no scan") { bench.isDiscovering }
        try run.end(SIGTERM, status: 128 + SIGTERM)
    }

    func testOutputThatCannotBeWrittenIsAFailure() throws {
        let bench = try RemoteBench()
        let result = try bench.start(script: "\"$BLUECAP\" explore \(RemoteBench.text) > /dev/full").finish()
        assertOneLine(result, "No space left")
        XCTAssertTrue(bench.simulator.links.isEmpty)
    }

    func testBadArgumentsShowTheUsage() throws {
        let mistakes = [
            ["explore"], ["explore", ""], ["read", "x"], ["read", "x", "@zz"], ["read", "x", "2A19", "--as", "tea"],
            ["write", "x", "2A39"], ["write", "x", "2A39", "0"], ["write", "x", "2A39", "0x"],
            ["write", "x", "2A39", "-", "--as", "text"], ["write", "x", "2A39", "-", "--as", "profile"],
            ["write", "x", "2A39", "300", "--as", "u8"], ["write", "x", "2A39", "!", "--as", "base64"],
            ["explore", "x", "--timeout", "0"],
            ["explore", "x", "--peripherals", "room"], ["notify", "x", "2A37", "--count", "0"],
            ["notify", "x", "2A37", "--duration", "-1"],
            ["read", "x", "2A37", "--json", "--csv"], ["read", "x", "2A37", "--format", "{size}"],
            ["notify", "x", "2A37", "--rotate", "1MB"],
            ["notify", "x", "2A37", "--output", "y", "--rotate", "0"],
        ]
        try expectUsage(mistakes)
    }
}

final class ReadWriteProcessTests: XCTestCase, StartsPrograms {
    /// Commands that run at the same time, for the tests of what some of them did.
    private static let results = Result {
        try RemoteBench.run(
            [
                ["read", "Battery Level"], ["read", "180F/2A19", "--as", "hex"], ["read", "AA01", "--as", "text"],
                ["read", "2A38", "--json"],
                ["read", "2A37"], ["read", "2A99"], ["read", "AA03"], ["read", "AA01", "--as", "profile"],
                ["write", "2A38", "01"], ["write", "AA01", "01", "--without-response"],
                ["write", "AA01", String(repeating: "00", count: 600)],
            ].map { [$0[0], RemoteBench.text] + $0.dropFirst() }
        ).map(\.result)
    }

    func testAValueIsReadByProfileAsDigitsOrAsJSON() throws {
        let results = Array(try Self.results.get()[0..<4])
        XCTAssertEqual(results[0].lines, ["100 %"])
        XCTAssertEqual(results[1].lines, ["64"])
        XCTAssertEqual(results[2].lines, ["hello"])
        let json = results[3]
        XCTAssertTrue(
            json.output.hasSuffix(
                #""value":"01","fields":{"Body Sensor Location":"Chest"},"quantities":{}}"# + "\n"), json.output)
    }

    func testSeveralValuesAreReadOverOneConnectionEachWithItsName() throws {
        let bench = try RemoteBench()
        let attributes = ["2A19", "AA01", "aa01/2901", "180D/2A38", "2A37/2902"]
        let result = try bench.run("read", RemoteBench.text, attributes[0], attributes[1], attributes[2], attributes[3])
        XCTAssertEqual(
            result.lines,
            [
                "Battery Level  100 %", "AA01  \"hello\"",
                "AA01/Characteristic User Description  \"Greeting\"", "Body Sensor Location  Chest",
            ])
        let json = try bench.run("read", RemoteBench.text, attributes[0], attributes[4], "--as", "u16be", "--json")
        let objects = try json.objects()
        XCTAssertEqual(objects.map { $0["uuid"] as? String }, ["2A19", "2902"])
        XCTAssertEqual(
            objects.first?["quantities"] as? [String: [String: AnyHashable]],
            ["Battery Level": ["value": 100, "unit": "%"]])
        XCTAssertTrue(objects.first?["as"] is NSNull, "it has one byte")
        XCTAssertEqual(objects.last?["as"] as? Int, 0)
        // A descriptor by its handle, and a UUID that several descriptors have.
        let handle = try XCTUnwrap(objects.last?["handle"] as? Int)
        let text = AttributeArgument.text(of: UInt32(handle))
        XCTAssertEqual(try bench.run("read", RemoteBench.text, text, "--as", "u16").lines, ["0"])
        assertOneLine(
            try bench.run("read", RemoteBench.text, "AA03/2901"), "names 2 descriptors; use the handle of one: @")
        assertOneLine(
            try bench.run("read", RemoteBench.text, "2A19", "--as", "u16"),
            "The value of Battery Level is not a u16 of 2 bytes: it is 64 in hexadecimal digits.")
    }

    func testTheFailureOfOneOfSeveralValuesNamesItAndThoseThatWereNotRead() throws {
        let reason = "The peripheral has ended the connection"
        for options in [[], ["--json"]] {
            let bench = try RemoteBench()
            // BlueZ reads the battery level, and subscribes to it. The fourth request is the second one of the command.
            bench.simulator.simulateDropAfter(requests: 4, of: RemoteBench.address)
            let run = try bench.start(["read", RemoteBench.text, "2A19", "aa01/2901", "AA01", "2A38"] + options)
            let result = try run.finish(status: 1)
            let problem = try XCTUnwrap(result.problems.first)
            XCTAssertEqual(result.problems.count, 1, "\(result)")
            XCTAssertTrue(
                problem.hasPrefix("bluecap: AA01/Characteristic User Description: \(reason)")
                    && problem.hasSuffix(" Not read: AA01, Body Sensor Location."), problem)
            guard !options.isEmpty else {
                XCTAssertEqual(result.lines, ["Battery Level  100 %"])
                continue
            }
            let objects = try result.objects()
            XCTAssertEqual(objects.map { $0["uuid"] as? String }, ["2A19", "2901"])
            XCTAssertNil(objects.first?["error"])
            XCTAssertTrue((objects.last?["error"] as? String)?.hasPrefix(reason) == true, "\(objects)")
            XCTAssertTrue(objects.last?["value"] is NSNull)
        }
        let misfit = try RemoteBench().run("read", RemoteBench.text, "AA01", "2A19", "2A38", "--as", "u16be")
        XCTAssertEqual(misfit.status, 1)
        XCTAssertEqual(
            misfit.problems,
            [
                "bluecap: The value of AA01 is not a u16be of 2 bytes: it is 68656c6c6f in hexadecimal digits. "
                    + "Not read: Battery Level, Body Sensor Location."
            ])
    }

    func testEachFieldIsARowOfCommaSeparatedValues() throws {
        let result = try RemoteBench().run("read", RemoteBench.text, "2A19", "AA01", "--csv")
        XCTAssertEqual(result.lines.first, "time,name,field,value,unit")
        let rows = [",Battery Level,Battery Level,100,%", ",AA01,,hello,"]
        XCTAssertEqual(result.lines.dropFirst().map { String($0.drop { $0 != "," }) }, rows)
        let path = NSTemporaryDirectory() + "read-\(UUID().uuidString).csv"
        defer { try? FileManager.default.removeItem(atPath: path) }
        for _ in 0..<2 {
            let run = try RemoteBench().run("read", RemoteBench.text, "2A19", "AA01", "--csv", "--output", path)
            XCTAssertEqual(run.output, "")
        }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        XCTAssertEqual(lines.first, "time,name,field,value,unit")
        XCTAssertEqual(lines.dropFirst().map { String($0.drop { $0 != "," }) }, rows + rows)
    }

    func testWhatCannotBeReadOrIsNotThereIsOneLine() throws {
        let results = Array(try Self.results.get()[4..<8])
        assertOneLine(results[0], "cannot be read")
        assertOneLine(results[1], "bluecap explore C0:5A:17:00:18:0D")
        assertOneLine(results[2], "names 2 characteristics")
        let refusal = results[2].problems.first ?? ""
        for text in ["Left", "Right"] { XCTAssertTrue(refusal.contains("AA00/AA03; read; \"\(text)\")"), refusal) }
        assertOneLine(results[3], "68656c6c6f")
    }

    func testAValueIsWrittenAsDigitsTextByProfileAndWithoutResponse() throws {
        let cases: [([String], AttributeSelector, [UInt8])] = [
            (["AA01", "01 a0"], "AA01", [0x01, 0xA0]),
            (["AA01", "good day", "--as", "text"], "AA01", Array("good day".utf8)), (["AA01", ""], "AA01", []),
            (["2A39", "Reset Energy Expended", "--as", "profile"], "2A39", [1]),
            (["AA02", "07", "--without-response"], "AA02", [7]), (["AA02", "08"], "AA02", [8]),
        ]
        let runs = try RemoteBench.run(cases.map { ["write", RemoteBench.text] + $0.0 })
        for ((arguments, uuid, bytes), (bench, result)) in zip(cases, runs) {
            XCTAssertEqual(result.status, 0, "\(arguments) \(result.errors)")
            XCTAssertEqual(result.output, "")
            XCTAssertEqual(bench.value(uuid), bytes)
        }
    }

    func testNumbersAndFilesAreWritten() throws {
        let cases: [(String, [UInt8])] = [
            ("300 --as u16", [0x2C, 1]), ("-2 --as i24be", [0xFF, 0xFF, 0xFE]), ("'1 0x10' --as u8", [1, 16]),
            ("1.5 --as f32", [0, 0, 0xC0, 0x3F]), ("AaA= --as base64", [1, 0xA0]), ("é --as utf8", Array("é".utf8)),
            ("- <<< hello", Array("hello\n".utf8)), ("@<(printf 'a\\0b')", [0x61, 0, 0x62]),
            ("@x --as text", [0x40, 0x78]),
        ]
        let benches = try cases.map { _ in try RemoteBench() }
        let runs = try zip(benches, cases).map { bench, entry in
            try bench.start(script: "\"$BLUECAP\" write \(RemoteBench.text) AA01 \(entry.0)")
        }
        for ((text, bytes), (bench, run)) in zip(cases, zip(benches, runs)) {
            let result = try run.finish(status: 0, note: text)
            XCTAssertEqual(result.output, "", text)
            XCTAssertEqual(bench.value("AA01"), bytes, text)
        }
    }

    func testAFileThatIsNoValueIsOneLine() throws {
        let refusals = [
            ("- < /dev/null", "There are no bytes in standard input: write \"\" for an empty value."),
            ("@/dev/null", "There are no bytes in \"/dev/null\""), ("@/no/such", "No such file or directory"),
            ("@/dev/zero", "More than 512 bytes are in \"/dev/zero\": write it in parts."), ("@/", "Is a directory"),
        ]
        let results = try ToolRun.finish(
            scripts: refusals.map { "\"$BLUECAP\" write \"Pulse Strap 7F\" 2A39 --simulated \($0.0)" })
        for ((_, part), result) in zip(refusals, results) { assertOneLine(result, part) }
    }

    func testWhatCannotBeWrittenIsOneLine() throws {
        let results = Array(try Self.results.get()[8..<11])
        assertOneLine(results[0], "cannot be written")
        assertOneLine(results[1], "cannot be written")
        assertOneLine(results[2], "600 bytes")
    }

    func testALinkThatFallsIsOneLine() throws {
        let bench = try RemoteBench()
        bench.simulator.simulateDropAfter(requests: 0, of: RemoteBench.address)
        assertOneLine(try bench.run("read", RemoteBench.text, "AA01"), "ended the connection")
    }
}

final class NotifyProcessTests: XCTestCase, StartsPrograms {
    /// Commands that run at the same time, for the tests of what one of them did.
    private static let results = Result {
        try RemoteBench.run([
            ["notify", RemoteBench.text, "Heart Rate Measurement", "--count", "3"],
            ["notify", RemoteBench.text, "2A37", "--duration", "0.5", "--json"],
            ["notify", RemoteBench.text, "2A38"],
        ]).map(\.result)
    }

    func testSeveralCharacteristicsAreNotifiedWithTheirNamesByAFormat() throws {
        let bench = try RemoteBench()
        let run = try bench.start(
            "notify", RemoteBench.text, "2A37", "2A19", "--format", #"{name}\t{field:Heart Rate}{field:Battery Level}"#)
        try run.waitForLines(2)
        bench.simulator.notify(RemoteBench.address, characteristic: "2A19", value: [55])
        _ = try run.line { $0 == "Battery Level\t55" }
        let result = try run.end()
        XCTAssertTrue(result.lines.contains("Heart Rate Measurement\t72"), "\(result)")
    }

    func testLinesGoToAFileThatIsRotated() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("rotate-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("rate.csv").path
        let command = ["notify", RemoteBench.text, "2A37", "--csv", "--output", path, "--count", "13"]
        let bench = try RemoteBench()
        let result = try bench.start(command + ["--rotate", "500"]).finish(status: 0)
        XCTAssertEqual(result.output, "")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        XCTAssertGreaterThan(names.count, 2)
        XCTAssertEqual(names, ["rate.csv"] + (1..<names.count).map { "rate.csv.\($0)" })
        let texts = try names.map { try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8) }
        for text in texts {
            XCTAssertTrue(text.hasPrefix("time,name,field,value,unit\n2"), text)
            XCTAssertLessThanOrEqual(text.utf8.count, 500)
        }
        XCTAssertEqual(texts.joined().ranges(of: ",Heart Rate,7").count, 13)
        // What is no file keeps its name.
        let pipe = folder.appendingPathComponent("pipe").path
        let script = """
            mkfifo \(pipe) && (cat \(pipe) & exec "$BLUECAP" notify \(RemoteBench.text) 2A37 --as u8 --count 5 \
            --output \(pipe) --rotate 1)
            """
        XCTAssertEqual(try bench.start(script: script).finish(status: 0).lines.count, 5)
        XCTAssertFalse(FileManager.default.fileExists(atPath: pipe + ".1"))
        assertOneLine(
            try ToolRun("notify", "x", "2A37", "--simulated", "--output", "/no/such/file").finish(),
            "Cannot write /no/such/file: No such file or directory.")
    }

    func testASubscriptionThatIsNotAnsweredEndsWithTheTimeOut() throws {
        let bench = try RemoteBench()
        bench.simulator.simulateUnansweredAttributes(of: RemoteBench.address)
        let start = DispatchTime.now()
        let result = try bench.run("notify", RemoteBench.text, "2A37", "--timeout", "2")
        let seconds = Double(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
        assertOneLine(result, "did not confirm the subscription in time")
        // Looking, connecting and the end of the link come on top; without the time limit it took 35 s.
        XCTAssertLessThan(seconds, 30)
    }

    func testSoManyValuesArePrintedWithTheirTimes() throws {
        let result = try Self.results.get()[0]
        XCTAssertEqual(result.status, 0)
        XCTAssertEqual(result.lines.count, 3)
        for line in result.lines {
            XCTAssertNotNil(line.wholeMatch(of: /\d\d:\d\d:\d\d\.\d{3}  .*Heart Rate: 7[24] bpm.*/), line)
        }
        XCTAssertEqual(result.errors.count, 1)
        XCTAssertNotNil(result.errors.first?.wholeMatch(of: /bluecap: 3 values in \d+\.\d s/), "\(result.errors)")
    }

    func testForProgramsEachValueIsAnObjectAndTheEndToo() throws {
        let result = try Self.results.get()[1]
        XCTAssertEqual(result.status, 0)
        XCTAssertEqual(result.errors, [])
        let objects = try result.objects()
        XCTAssertEqual(objects.last?["event"] as? String, "finished")
        XCTAssertEqual(objects.last?["values"] as? Int, objects.count - 1)
        XCTAssertGreaterThan(objects.count, 2)
        XCTAssertEqual(objects.first?["value"] as? String, "0648")
    }

    func testALostLinkComesBackWithTheSubscriptionAndSaysThatThereWasAGap() throws {
        let bench = try RemoteBench()
        try bench.expectGap(in: bench.start("notify", RemoteBench.text, "2A37", "--json"))
    }

    func testAReaderThatLeavesEndsItQuietly() throws {
        let bench = try RemoteBench()
        let result = try bench.run("notify \(RemoteBench.text) 2A37 --json", into: "head -n 2")
        XCTAssertEqual(result.status, 0, "\(result.errors)")
        XCTAssertEqual(result.lines.count, 2)
        XCTAssertEqual(result.errors, [])
        XCTAssertTrue(bench.simulator.links.isEmpty)
    }

    func testAKilledCommandLeavesALinkThatTheNextOneUses() throws {
        let bench = try RemoteBench()
        let killed = try bench.start("notify", RemoteBench.text, "2A37")
        try killed.waitForLines(2)
        killed.signal(SIGKILL)
        XCTAssertTrue(try killed.finish().wasKilled)
        // BlueZ ends what belongs to the process's bus connection, and not the link.
        let simulator = bench.simulator
        bench.wait("a subscription") { simulator.subscriptions(to: "2A37", at: RemoteBench.address).isEmpty }
        for _ in 0..<2 {
            let next = try bench.start("read", RemoteBench.text, "Battery Level").finish()
            XCTAssertEqual(next.lines, ["100 %"], "\(next.errors)")
            XCTAssertEqual(simulator.links.count, 1)
        }
    }

    /// GNU `timeout` sends its signal to the command and to its process group, systemd SIGHUP after SIGTERM.
    func testTwoSignalsAtOnceAreOneRequest() throws {
        for (first, second) in [(SIGINT, SIGINT), (SIGTERM, SIGTERM), (SIGHUP, SIGHUP), (SIGTERM, SIGHUP)] {
            let bench = try RemoteBench()
            // These tests may run with `nohup`.
            let run = try bench.start(
                script: "exec env --default-signal=HUP \"$BLUECAP\" notify \(RemoteBench.text) 2A37")
            try run.waitForLines(2)
            run.signal(first)
            run.signal(second)
            let result = try run.finish(status: 0, note: "\(first) \(second)")
            XCTAssertFalse(result.errors.contains { $0.contains("second signal") }, "\(first) \(second) \(result)")
            XCTAssertTrue(bench.simulator.links.isEmpty, "\(first) \(second)")
        }
    }

    func testWhatDoesNotNotifyIsOneLine() throws {
        assertOneLine(try Self.results.get()[2], "sends no values")
    }
}
