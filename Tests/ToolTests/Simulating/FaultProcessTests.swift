import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

/// `bluecap simulate fault`, inside the command of a simulation and outside.
final class FaultProcessTests: XCTestCase, StartsPrograms {
    func testTheCommandFindsTheSocketAndAFaultIsDoneWhenItReturns() throws {
        let result = try ToolRun(
            script: #"""
                exec "$BLUECAP" simulate -- sh -ec '
                    stat -c %a "$BLUECAP_SIMULATOR"
                    "$BLUECAP" simulate fault kill-daemon
                    "$BLUECAP" scan --duration 0.2 2>&1 | head -c 30; echo
                    "$BLUECAP" simulate fault start-daemon
                    bluetoothctl show | grep -o "Powered: yes"
                    "$BLUECAP" simulate fault power-off
                    bluetoothctl show | grep -o "Powered: no"
                    "$BLUECAP" simulate fault remove-adapter
                    bluetoothctl list
                    "$BLUECAP" simulate fault add-adapter
                    bluetoothctl list | wc -l
                    echo "$BLUECAP_SIMULATOR"'
                """#
        ).finish(status: 0)
        XCTAssertEqual(result.lines.first, "600")
        XCTAssertTrue(result.lines.dropFirst().first?.hasPrefix("bluecap: ") == true, "\(result.lines)")
        XCTAssertEqual(Array(result.lines.dropFirst(2).dropLast()), ["Powered: yes", "Powered: no", "1"])
        let path = try XCTUnwrap(result.lines.last)
        XCTAssertTrue(path.hasPrefix("/"), path)
        XCTAssertFalse(FileManager.default.fileExists(atPath: path), "it goes with the simulator")
    }

    func testTheCommandHasAStateDirectoryThatEndsWithTheSimulator() throws {
        let users = temporaryPath()
        let script = #"stat -c %a "$XDG_STATE_HOME"; touch "$XDG_STATE_HOME/kept"; echo "$XDG_STATE_HOME""#
        for ending in ["", "; kill -TERM $PPID; exec sleep 60", "; exit 3"] {
            let result = try ToolRun(
                ["simulate", "--", "bash", "-c", script + ending], environment: ["XDG_STATE_HOME": users]
            ).finish()
            XCTAssertEqual(result.lines.first, "700", "\(result.lines) \(result.errors)")
            let path = try XCTUnwrap(result.lines.last)
            XCTAssertNotEqual(path, users)
            XCTAssertTrue(path.hasPrefix("/"), path)
            XCTAssertFalse(FileManager.default.fileExists(atPath: path), "\(ending): it goes with the simulator")
            XCTAssertFalse(FileManager.default.fileExists(atPath: users))
        }
    }

    func testTheArgumentsOfTheCommandAreNotLogged() throws {
        let result = try ToolRun("simulate", "-vv", "--", "true", "--passkey", "264811").finish(status: 0)
        XCTAssertTrue(
            result.errors.contains { $0.contains("running") && $0.contains("program=true") }, "\(result.errors)")
        XCTAssertFalse(result.errors.contains { $0.contains("264811") || $0.contains("--passkey") }, "\(result.errors)")
    }

    func testAScanOutlivesADaemonThatIsRestartedFromOutside() throws {
        let path = temporaryPath()
        let simulator = try ToolRun("simulate", "--control", path)
        let address = try simulator.line()
        let scan = try ToolRun("scan", "--duplicates", environment: ["DBUS_SYSTEM_BUS_ADDRESS": address])
        _ = try scan.line { $0.contains("  updated  ") }

        let fault = try ToolRun("simulate", "fault", "--control", path, "restart-daemon", "0.2").finish(status: 0)
        XCTAssertEqual(fault.output, "")
        try scan.errorLine { $0.hasSuffix("Bluetooth is back.") && !$0.contains("continues") }
        try scan.end()

        try simulator.end(SIGTERM)
        XCTAssertFalse(FileManager.default.fileExists(atPath: path))
    }

    func testFaultsOfPeripheralsAndOfCallsReachTheProgram() throws {
        let script = #"""
            strap=C0:5A:17:00:18:0D
            fault() { "$BLUECAP" simulate fault "$@"; }
            read_level() { "$BLUECAP" read "$strap" 2A19 --timeout "${1:-30}" 2>&1 || echo "status $?"; }
            fault out-of-range $strap
            read_level 1 | tail -n 1
            fault in-range $strap
            read_level
            fault silence $strap
            read_level 1 | tail -n 1
            fault end-silence $strap
            fault refuse-call ReadValue org.bluez.Error.NotPermitted "Not today"
            read_level | grep -o "Not today"
            read_level
            """#
        let result = try ToolRun(
            "simulate", "--", "bash", "-c", script, environment: ["BLUECAP": ToolRun.executable.path]
        ).finish(status: 0)
        let level = try XCTUnwrap(result.lines.last)
        XCTAssertTrue(level.hasSuffix("%"), level)
        XCTAssertEqual(result.lines, ["status 1", level, "status 1", "Not today", level], "\(result.errors)")
    }

    func testAnUnknownFaultIsRefusedWithTheListAndTheUsage() throws {
        let result = try ToolRun("simulate", "fault", "--control", "/tmp/x", "explode").finish(status: 64)
        let text = result.errors.joined(separator: " ")
        XCTAssertTrue(text.contains("There is no fault \"explode\"; there are: restart-daemon, kill-daemon"), text)
        let help = try ToolRun("simulate", "fault", "--help").finish(status: 0)
        for form in Fault.forms {
            XCTAssertTrue(help.lines.contains { $0.hasPrefix("  \(form.usage)") }, form.usage)
        }
    }

    func testWhatIsNotThereIsNamedAndIsAFailure() throws {
        try ToolRun("simulate", "fault", "power-off").finish(status: 64)
        let nowhere = try ToolRun("simulate", "fault", "--control", "/no/such/socket", "power-off").finish(status: 1)
        XCTAssertEqual(
            nowhere.errors, ["bluecap: Cannot reach the simulator at /no/such/socket: No such file or directory."])

        let path = temporaryPath()
        let simulator = try ToolRun("simulate", "--control", path, "--peripherals", "crowd:1")
        _ = try simulator.line()
        for (words, sentence) in [
            (["power-off", "hci1"], "There is no adapter hci1; there are: hci0."),
            (["lose-link", "C0:00:00:00:00:99"], "There is no link to C0:00:00:00:00:99: connect to it first."),
            (["silence", "00:00:00:00:00:99"], "There is no peripheral 00:00:00:00:00:99; there are: "),
            (
                ["forget-device", "00:00:00:00:00:99"],
                "bluetoothd has no object of a device 00:00:00:00:00:99: scan for it first."
            ),
            (["add-adapter"], "There is an adapter hci0 already: add one of another number."),
        ] {
            let result = try ToolRun(["simulate", "fault", "--control", path] + words).finish(
                status: 1, note: "\(words)")
            XCTAssertTrue(result.errors.first?.hasPrefix("bluecap: \(sentence)") == true, "\(result.errors)")
        }
        // A path in use, and a file of another program.
        let second = try ToolRun("simulate", "--control", path).finish(status: 1)
        XCTAssertEqual(
            second.errors, ["bluecap: Cannot open the control socket: another program uses \(path); use another path."])
        try simulator.end()
        let file = temporaryPath()
        try Data().write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        XCTAssertEqual(try ToolRun("simulate", "--control", file, "--", "true").finish().status, 1)
        XCTAssertTrue(FileManager.default.fileExists(atPath: file))
        XCTAssertEqual(
            try ToolRun("simulate", "--control", "/tmp/" + String(repeating: "n", count: 120), "--", "true").finish()
                .errors
                .count, 1)
    }

    func testASocketThatAKilledSimulatorLeftIsReplaced() throws {
        let path = temporaryPath()
        // Nothing removes the state directory of a simulator that is killed.
        let folder = temporaryPath()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let killed = try ToolRun("simulate", "--control", path, environment: ["TMPDIR": folder])
        _ = try killed.line()
        killed.signal(SIGKILL)
        _ = try killed.finish()
        XCTAssertTrue(FileManager.default.fileExists(atPath: path))
        try ToolRun(
            "simulate", "--control", path, "--", ToolRun.executable.path, "simulate", "fault", "power-off"
        ).finish(status: 0)
        XCTAssertFalse(FileManager.default.fileExists(atPath: path))
    }

    func testAProgramNamedFaultIsReachedBehindTheDashes() throws {
        let folder = temporaryPath()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let program = folder + "/fault"
        try Data("#!/bin/sh\necho \"program $1\"; exit 5\n".utf8).write(to: URL(fileURLWithPath: program))
        XCTAssertEqual(chmod(program, 0o700), 0)
        let path = folder + ":" + (ProcessInfo.processInfo.environment["PATH"] ?? "")
        let result = try ToolRun("simulate", "--", "fault", "power-off", environment: ["PATH": path]).finish(status: 5)
        XCTAssertEqual(result.lines, ["program power-off"])
    }

    /// The socket without our command: a line, and a line back.
    func testAPythonProgramRestartsTheDaemonAndSeesItsNewOwner() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let python = root.appendingPathComponent(".build/python/bin/python3").path
        guard FileManager.default.isExecutableFile(atPath: python) else {
            return XCTFail("\(python) is missing: make test installs it.")
        }
        let program = #"""
            import asyncio, os, socket
            from bleak import BleakScanner
            from dbus_fast import BusType, Message
            from dbus_fast.aio import MessageBus

            control = socket.socket(socket.AF_UNIX)
            control.connect(os.environ["BLUECAP_SIMULATOR"])
            lines = control.makefile("rw")

            def fault(words):
                lines.write(words + "\n")
                lines.flush()
                return lines.readline().strip()

            async def owner(bus):
                reply = await bus.call(Message(
                    destination="org.freedesktop.DBus", path="/org/freedesktop/DBus",
                    interface="org.freedesktop.DBus", member="GetNameOwner", signature="s", body=["org.bluez"]))
                return reply.body[0]

            async def main():
                bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
                before = await owner(bus)
                print(fault("restart-daemon 0.1"), before != await owner(bus))
                print(fault("explode").split(";")[0])
                names = {device.name for device in await BleakScanner.discover(timeout=2)}
                print("Pulse Strap 7F" in names)
                print(fault("kill-daemon"), await owner(bus))

            asyncio.run(main())
            """#
        let result = try ToolRun("simulate", "--", python, "-c", program).finish(status: 0)
        XCTAssertEqual(result.lines.count, 4, "\(result.lines) \(result.errors)")
        XCTAssertEqual(
            Array(result.lines.prefix(3)), ["ok True", #"error There is no fault "explode""#, "True"],
            "\(result.errors)")
        XCTAssertTrue(
            result.lines.last?.hasPrefix("ok Could not get owner of name 'org.bluez'") == true, "\(result.lines)")
    }

    private func temporaryPath() -> String { NSTemporaryDirectory() + "bluecap-test-\(UUID().uuidString)" }
}
