import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

/// Adapters without virtual peripherals, on a bus of their own, for processes that are peripherals there.
final class ServingBench: ToolBench {
    init(adapters: Int = 1, bluez: BlueZVersion = .default) throws {
        super.init(
            try .onPrivateBus(
                room: .empty, adapters: (0..<adapters).map { VirtualAdapter(index: $0) }, bluez: bluez))
    }

    /// A central that has connected.
    func central(
        _ security: VirtualSecurity = VirtualSecurity(), file: StaticString = #filePath, line: UInt = #line
    ) -> CentralLink {
        let link = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", security: security))
        wait("no link", file: file, line: line) { link.state == .connected }
        return link
    }

    func result(
        _ request: CentralRequest, file: StaticString = #filePath, line: UInt = #line
    ) -> Result<[UInt8], CentralLinkError>? {
        wait("no answer", file: file, line: line) { request.result != nil }
        return request.result
    }

    func assertNothingIsLeft(file: StaticString = #filePath, line: UInt = #line) {
        wait("an application was left behind", file: file, line: line) { simulator.applications.isEmpty }
        wait("an advertisement was left behind", file: file, line: line) { simulator.advertisements.isEmpty }
    }
}

final class ServeProcessTests: XCTestCase, StartsPrograms {
    func testAFileWithADescriptorOfBlueZIsRefused() throws {
        let path = NSTemporaryDirectory() + "ccc-\(UUID().uuidString).json"
        try #"""
        { "name": "CCC", "services": [ { "uuid": "AA00", "characteristics": [
            { "uuid": "AA01", "flags": ["read", "notify"], "value": "01",
              "descriptors": [ { "uuid": "2902", "value": "0000", "flags": ["read", "write"] } ] } ] } ] }
        """#.write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let bench = try ServingBench()
        let result = try bench.start("serve", path).finish(status: 1)
        XCTAssertEqual(
            result.errors,
            [
                "bluecap: The descriptor 2902 of the characteristic AA01 cannot be added: "
                    + "BlueZ adds it where the properties need it."
            ])
        bench.assertNothingIsLeft()
    }

    func testWhatACentralDoesIsPrintedAndNothingIsLeft() throws {
        let bench = try ServingBench()
        let run = try bench.start("serve", "battery", "uart", "--json")
        _ = try run.line { $0.contains(#""event":"serving""#) }
        let phone = bench.central()
        XCTAssertEqual(try bench.result(phone.read("2A19"))?.get(), [100])
        XCTAssertEqual(
            try bench.result(phone.subscribe(to: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E"))?.get(), [])
        XCTAssertEqual(
            try bench.result(phone.write(Array("hello".utf8), to: "6E400002-B5A3-F393-E0A9-E50E24DCCA9E"))?.get(), [])
        bench.wait("no echo") { phone.values.map(\.bytes) == [Array("hello".utf8)] }
        phone.disconnect()
        for event in ["disconnected", "unsubscribed"] { _ = try run.line { $0.contains(#""event":"\#(event)""#) } }
        let result = try run.end()
        XCTAssertEqual(result.problems, [])
        let objects = try result.objects()
        let events = objects.compactMap { $0["event"] as? String }
        XCTAssertEqual(events.prefix(5), ["serving", "connected", "read", "subscribed", "write"])
        // The end of a subscription over a socket and that of the link come in ways of their own.
        XCTAssertEqual(events.dropFirst(5).dropLast().sorted(), ["disconnected", "unsubscribed"])
        XCTAssertEqual(events.last, "finished")
        XCTAssertEqual(objects[1]["central"] as? String, "C0:FF:EE:00:CE:01")
        XCTAssertEqual(objects[2]["value"] as? String, "64")
        XCTAssertEqual(objects[4]["fields"] as? [String: String], ["UART RX": "hello"])
        XCTAssertEqual(objects[7]["updates"] as? Int, 1)
        bench.assertNothingIsLeft()
    }

    func testForPeopleThereAreLinesAndASummary() throws {
        let bench = try ServingBench()
        let run = try bench.start("serve", "heart-rate", "--name", "Strap", "--updates")
        let phone = bench.central()
        XCTAssertNoThrow(try bench.result(phone.subscribe(to: "2A37"))?.get())
        _ = try run.line { $0.hasSuffix("C0:FF:EE:00:CE:01  subscribed to Heart Rate Measurement") }
        _ = try run.line { $0.contains("were sent Heart Rate Measurement: Contact: Yes") }
        guard case .failure(.attribute(0x80))? = bench.result(phone.write([7], to: "2A39")) else {
            return XCTFail("an unknown command was taken")
        }
        _ = try run.line { $0.hasSuffix("wrote Heart Rate Control Point: 07; refused: application error 0x80") }
        let result = try run.end(SIGTERM)
        XCTAssertEqual(result.problems.first, #"bluecap: Serving Heart Rate as "Strap". Ctrl-C ends it."#)
        XCTAssertTrue(
            result.errors.last?.hasPrefix("bluecap: 1 connection, 1 subscription, 0 reads, 1 write, ") == true)
        bench.assertNothingIsLeft()
    }

    func testATerminalShowsWhoIsConnectedAndTakesThatBack() throws {
        let bench = try ServingBench()
        let run = try ToolRun(onTerminal: "serve battery", bench.bus, setUp: "stty -echo;")
        try run.waitForText("No central is connected …")
        XCTAssertEqual(bench.simulator.advertisements.count, 1)
        run.type("\u{03}")
        let result = try run.finish(status: 0)
        let parts = result.output.components(separatedBy: "\r\u{1B}[K")
        XCTAssertTrue(parts.contains("No central is connected …"), result.output)
        XCTAssertTrue(parts.last?.hasPrefix("bluecap: 0 connections") == true, result.output)
    }

    func testASignalBeforeItAdvertisesHasItsStatus() throws {
        let bench = try ServingBench()
        bench.simulator.simulateSlowReplies(by: 3600)
        let run = try bench.start("serve", "battery")
        bench.wait("nothing was asked") { !bench.simulator.statistics.calls.isEmpty }
        let result = try run.end(status: 128 + SIGINT)
        XCTAssertFalse(result.wasKilled)
        XCTAssertEqual(result.output + result.errors.joined(), "")
        bench.assertNothingIsLeft()
    }

    func testAFileIsServed() throws {
        let file = NSTemporaryDirectory() + "bluecap-tests-\(UUID().uuidString).json"
        try #"{"name":"Greeter","services":[{"uuid":"AA00","characteristics":[{"uuid":"AA01","flags":["read","write"],"#
            .appending(#""text":"hello","descriptors":[{"uuid":"2901","text":"Greeting"}]}]}]}"#)
            .write(toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        let bench = try ServingBench()
        let run = try bench.start("serve", file)
        let phone = bench.central()
        XCTAssertEqual(try bench.result(phone.read("AA01"))?.get(), Array("hello".utf8))
        XCTAssertEqual(try bench.result(phone.read("AA01", descriptor: "2901"))?.get(), Array("Greeting".utf8))
        XCTAssertEqual(try bench.result(phone.write([1, 2], to: "AA01"))?.get(), [])
        XCTAssertEqual(try bench.result(phone.read("AA01"))?.get(), [1, 2])
        run.signal(SIGINT)
        XCTAssertEqual(try run.finish().lines.count, 4)
    }

    func testADurationEndsIt() throws {
        let bench = try ServingBench()
        let result = try bench.start("serve", "battery", "--duration", "0.3", "--no-advertise", "--json").finish(
            status: 0)
        XCTAssertEqual(result.lines.count, 2)
        XCTAssertTrue(result.lines[0].contains(#""advertisements":[]"#))
        bench.assertNothingIsLeft()
    }

    func testAShortDurationLeavesTheDaemonTimeToAnswer() throws {
        let bench = try ServingBench()
        bench.simulator.simulateSlowReplies(by: 0.15)
        let result = try bench.start("serve", "battery", "--duration", "0.1", "--json").finish(status: 0)
        XCTAssertEqual(result.lines.count, 2)
    }

    func testEverythingIsBackAfterTheDaemonDied() throws {
        let bench = try ServingBench()
        let run = try bench.start("serve", "battery")
        bench.wait("not served") { bench.simulator.advertisements.count == 1 }
        bench.simulator.simulateDaemonDeath()
        try run.errorLine { $0.contains("continues when Bluetooth is back") }
        bench.simulator.simulateDaemonReturn()
        try run.errorLine { $0 == "bluecap: Bluetooth is back." }
        let phone = bench.central()
        XCTAssertEqual(try bench.result(phone.read("2A19"))?.get(), [100])
        try run.end()
    }

    func testAReaderThatLeavesEndsItQuietly() throws {
        let bench = try ServingBench()
        let result = try bench.run("serve battery --json", into: "head -n 1")
        XCTAssertEqual(result.status, 0, "\(result.errors)")
        XCTAssertEqual(result.problems, [])
        bench.assertNothingIsLeft()
    }

    func testARefusalIsOneLine() throws {
        let bench = try ServingBench()
        bench.simulator.simulateRegistrationFailures(100)
        assertOneLine(try bench.start("serve", "battery").finish(), "refused")
        bench.simulator.simulateRegistrationFailures(0)
        bench.simulator.simulateAdvertisementFailures(100)
        assertOneLine(try bench.start("serve", "battery").finish(), "refused")
        bench.assertNothingIsLeft()
    }

    func testADaemonThatDoesNotReplyIsNamedAndNotWaitedFor() throws {
        let bench = try ServingBench()
        bench.simulator.simulateIgnoredRegistrations()
        let began = Date()
        // At the same time, since each waits for three seconds.
        let runs = try [
            ["serve", "battery", "--duration", "3"], ["advertise", "--name", "Tag", "--duration", "3"],
            ["beacon", "--url", "https://example.com/", "--duration", "3"],
        ].map { ($0, try bench.start($0)) }
        for (arguments, run) in runs {
            let result = try run.finish(status: 1)
            XCTAssertEqual(result.lines, [], "\(arguments)")
            XCTAssertEqual(
                result.errors.last,
                "bluecap: bluetoothd did not answer within 3 s: it may hang. `systemctl restart bluetooth` "
                    + "restarts it, and `journalctl -u bluetooth` shows its log.", "\(arguments)")
            // On a busy machine the limit can pass before this is said.
            let others = result.errors.dropLast()
            XCTAssertTrue(
                others.isEmpty || others == ["bluecap: bluetoothd has not registered everything yet …"], "\(others)")
            // A call without a limit of its own would take 25 s.
            XCTAssertLessThan(Date().timeIntervalSince(began), 20, "\(arguments)")
        }
        bench.simulator.simulateIgnoredRegistrations(false)
        bench.assertNothingIsLeft()
    }

    func testAnErrorOfAnUnknownNameIsSaidAtOnce() throws {
        let bench = try ServingBench()
        let strange = DaemonError(name: "com.example.Error.Strange", message: "Out of cheese")
        bench.simulator.simulateRegistrationFailures(100, error: strange)
        assertOneLine(try bench.start("serve", "battery").finish(), "com.example.Error.Strange: Out of cheese")
        XCTAssertEqual(bench.simulator.statistics.count(of: "RegisterApplication"), 1)
    }

    func testWithoutAnAdapterTheStatusSaysSo() throws {
        let bench = try ServingBench()
        bench.simulator.simulatePowerOff()
        assertOneLine(try bench.start("serve", "battery").finish(), "is off", status: 3)
        let result = try ToolRun(
            "advertise", "--name", "x", environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/no/such/socket"]
        ).finish()
        assertOneLine(result, "--simulated", status: 3)
    }

    func testBadArgumentsShowTheUsage() throws {
        let mistakes = [
            ["serve"], ["serve", "tea"], ["serve", "battery", "--name", ""], ["serve", "battery", "--duration", "0"],
            ["serve", "battery", "--no-advertise", "--name", "x"], ["serve", "battery", "--peripherals", "room"],
            ["serve", "battery", "--name", String(repeating: "x", count: 30)], ["advertise"], ["beacon"],
            ["simulate", "--adapters", "0"],
        ]
        try expectUsage(mistakes)
    }

    func testInASimulatedRoomACentralComesBy() throws {
        let run = try ToolRun("serve", "battery", "--simulated", "--json")
        _ = try run.line { $0.contains(#""event":"read""#) && $0.contains("C0:FF:EE:00:CE:01") }
        _ = try run.line { $0.contains(#""event":"subscribed""#) }
        try run.end()
    }
}

final class AdvertiseProcessTests: XCTestCase, StartsPrograms {
    func testAnAdvertisementIsSentByteForByte() throws {
        let bench = try ServingBench()
        let run = try bench.start(
            "advertise", "--name", "Tag", "--service", "180F", "--manufacturer", "0xFFFF=0102", "--json")
        _ = try run.line { $0.contains(#""event":"serving""#) }
        let sent = try XCTUnwrap(bench.simulator.advertisements.first)
        XCTAssertEqual(sent.data, [3, 0x03, 0x0F, 0x18, 5, 0xFF, 0xFF, 0xFF, 1, 2, 2, 0x01, 0x06])
        XCTAssertEqual(sent.scanResponse, [4, 0x09] + Array("Tag".utf8))
        try run.end()
        bench.assertNothingIsLeft()
    }

    func testABeaconAndItsTelemetryAreTwoAdvertisements() throws {
        let bench = try ServingBench()
        let run = try bench.start("beacon", "--url", "https://example.com/", "--telemetry")
        try run.errorLine { $0.contains("Advertising Eddystone https://example.com/; Eddystone telemetry") }
        XCTAssertEqual(bench.simulator.advertisements.count, 2)
        XCTAssertFalse(bench.simulator.advertisements.contains { $0.isConnectable })
        let result = try run.end()
        XCTAssertTrue(result.errors.last?.hasPrefix("bluecap: 0 connections in ") == true, "\(result.errors)")
        bench.assertNothingIsLeft()
    }

    func testWhatBlueZIgnoresIsSaid() throws {
        let bench = try ServingBench(bluez: .v5_66)
        let result = try bench.start("advertise", "--name", "x", "--interval", "100", "--duration", "0.2").finish(
            status: 0)
        XCTAssertTrue(result.errors.contains { $0.contains("ignores the interval") }, "\(result.errors)")
    }
}

final class TwoToolsProcessTests: XCTestCase, StartsPrograms {
    func testOneToolExploresAnotherInOneRoom() throws {
        let result = try ToolRun(
            script: """
                export PATH="$(dirname "$BLUECAP"):$PATH"
                bluecap simulate --peripherals empty --adapters 2 -- bash -c '
                    bluecap serve battery --adapter hci1 --name Desk > /dev/null 2>&1 &
                    bluecap read Desk "Battery Level" --adapter hci0
                    kill $!
                    wait'
                """
        ).finish()
        XCTAssertEqual(result.lines, ["100 %"], "\(result.errors)")
    }

    func testAScanNamesTheKindOfABeacon() throws {
        let result = try ToolRun(
            script: """
                export PATH="$(dirname "$BLUECAP"):$PATH"
                bluecap simulate --peripherals empty --adapters 2 -- bash -c '
                    bluecap beacon --uuid B9407F30-F5F8-466E-AFF9-25556B57FE6D --minor 7 --adapter hci1 2> /dev/null &
                    bluecap scan --adapter hci0 --rssi -127 --json | head -n 1
                    kill $!
                    wait'
                """
        ).finish()
        XCTAssertTrue(
            result.lines.first?.contains(
                #""beacons":[{"kind":"iBeacon","uuid":"B9407F30-F5F8-466E-AFF9-25556B57FE6D","major":0,"minor":7,"#)
                == true, "\(result)")
    }

    func testAProgramThatServesIsVisited() throws {
        let run = try ToolRun(
            script: """
                export PATH="$(dirname "$BLUECAP"):$PATH"
                exec bluecap simulate --central -- bluecap serve battery
                """)
        _ = try run.line { $0.hasSuffix("subscribed to Battery Level") }
        try run.end(SIGTERM)
    }
}
