import ArgumentParser
import BlueCapKit
import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

/// `bluecap adapters`, `connect`, `disconnect`, `info` and `trust` as processes.
final class DeviceCommandProcessTests: XCTestCase, StartsPrograms {
    private let strap = "C0:5A:17:00:18:0D"

    func testAdaptersAreListedAndChanged() throws {
        let bench = try ToolBench()
        let adapter = try XCTUnwrap(bench.simulator.adapters.first)
        let address = "\(adapter.address)"
        XCTAssertEqual(
            try bench.start("adapters").finish(status: 0).lines,
            ["hci0  \(address)  \(adapter.alias)  on  central, peripheral"])
        XCTAssertEqual(
            try bench.start("adapters", "--alias", "Desk", "--discoverable", "on").finish(status: 0).lines,
            ["hci0  \(address)  Desk  on, discoverable  central, peripheral"])
        XCTAssertEqual(bench.simulator.adapters.first?.alias, "Desk")
        let object = try XCTUnwrap(bench.start("adapters", "--json").finish(status: 0).objects().first)
        XCTAssertEqual(object["Adapter"] as? String, "hci0")
        XCTAssertEqual(object["Discoverable"] as? Bool, true)
        try bench.start("adapters", "--discoverable", "off").finish(status: 0)
        // An adapter that is off can be switched on.
        let off = try bench.start("adapters", "--power", "off").finish(status: 0)
        XCTAssertEqual(off.lines, ["hci0  \(address)  Desk  off  central, peripheral"])
        XCTAssertEqual(bench.simulator.adapters.first?.isPowered, false)
        let refused = try bench.start("adapters", "--discoverable", "on").finish(status: 1)
        XCTAssertTrue(
            refused.errors.first?.hasPrefix("bluecap: BlueZ has not set Discoverable: ") == true, "\(refused)")
        try bench.start("adapters", "--power", "on").finish(status: 0)
        XCTAssertEqual(bench.simulator.adapters.first?.isPowered, true)
        bench.simulator.simulateAdapterRemoval()
        try bench.start("adapters").finish(status: 3)
    }

    func testOneOfSeveralAdaptersIsNamedByAnOptionOrByTheEnvironment() throws {
        let bench = ToolBench(
            try .onPrivateBus(room: .empty, adapters: [VirtualAdapter(index: 0), VirtualAdapter(index: 1)]))
        XCTAssertEqual(try bench.start("adapters").finish(status: 0).lines.count, 2)
        XCTAssertEqual(
            try bench.start("adapters", "--power", "off").finish(status: 1).errors,
            ["bluecap: Name one of the adapters with --adapter: hci0, hci1."])
        try bench.start("adapters", "--adapter", "hci1", "--alias", "One").finish(status: 0)
        XCTAssertEqual(bench.simulator.adapters.last?.alias, "One")
        func names(_ variable: String, _ options: String = "") throws -> [String] {
            try bench.start(script: "BLUECAP_ADAPTER='\(variable)' \"$BLUECAP\" adapters \(options)").finish().lines
                .map { String($0.prefix(4)) }
        }
        XCTAssertEqual(try names("hci1"), ["hci1"])
        XCTAssertEqual(try names("hci1", "--adapter hci0"), ["hci0"])
        XCTAssertEqual(try names(""), ["hci0", "hci1"])
        XCTAssertEqual(try names("hci1", "--simulated"), ["hci0"])
        let wrong = try ToolRun("adapters", environment: ["BLUECAP_ADAPTER": "the first"]).finish(status: 64)
        XCTAssertTrue(wrong.errors.first?.contains("BLUECAP_ADAPTER takes the name of an adapter") == true, "\(wrong)")
    }

    func testALinkStaysAfterConnectAndEndsWithDisconnect() throws {
        let bench = try ToolBench(room: .furnished)
        func isConnected() throws -> Any? {
            try bench.start("info", strap, "--json").finish(status: 0).objects().first?["Connected"]
        }
        let connected = try bench.start("connect", "Pulse Strap 7F").finish(status: 0)
        XCTAssertEqual(connected.lines, ["\(strap)  random  Pulse Strap 7F  not bonded, connected"])
        XCTAssertEqual(try isConnected() as? Bool, true)
        let ended = try bench.start("disconnect", "pulse", "--json").finish(status: 0)
        XCTAssertEqual(try ended.objects().first?["connected"] as? Bool, false)
        XCTAssertEqual(try isConnected() as? Bool, false)
        // Without a link there is nothing to end.
        try bench.start("disconnect", strap).finish(status: 0)
    }

    func testAPeripheralOutOfRangeIsNotConnected() throws {
        let bench = try ToolBench(room: .furnished)
        bench.simulator.simulateOutOfRange(of: VirtualAddress(strap)!)
        let result = try bench.start("connect", strap, "--timeout", "1").finish(status: 1)
        XCTAssertTrue(result.errors.first?.contains("No peripheral") == true, "\(result)")
    }

    func testInfoAndTrustNeedNoDeviceInRangeIfBlueZKnowsIt() throws {
        let bench = try ToolBench(room: .furnished)
        XCTAssertEqual(
            try bench.start("trust", strap).finish(status: 0).lines,
            ["\(strap)  random  Pulse Strap 7F  not bonded, trusted"])
        let lines = try bench.start("info", "Pulse", "--timeout", "5").finish(status: 0).lines
        for line in ["Address: \(strap)", "Name: Pulse Strap 7F", "Trusted: yes", "UUIDs: Heart Rate, Battery"] {
            XCTAssertTrue(lines.contains(line), "\(line): \(lines)")
        }
        // BlueZ keeps a device without a bond for 30 s.
        bench.simulator.simulateOutOfRange(of: VirtualAddress(strap)!)
        let removed = try bench.start("trust", strap, "--remove", "--json").finish(status: 0)
        XCTAssertEqual(try removed.objects().first?["trusted"] as? Bool, false)
        let data = try bench.start("info", strap, "--json").finish(status: 0).objects().first?["ManufacturerData"]
        XCTAssertEqual((data as? [String: String])?.keys.first, "0x006B")
        try bench.start("info", "Nothing", "--timeout", "1").finish(status: 1)
    }
}

/// What a misspelt word may mean.
final class SuggestionTests: XCTestCase {
    func testTheNearestNameIsSuggested() {
        let names = ["scan", "serve", "explore", "Battery Level", "Heart Rate Measurement"]
        for (word, name) in [
            ("scna", "scan"), ("sca", "scan"), ("explor", "explore"), ("exlpore", "explore"),
            ("batery level", "Battery Level"), ("Batery", "Battery Level"), ("heart", "Heart Rate Measurement"),
        ] {
            XCTAssertEqual(Suggestion.text(for: word, among: names), " Did you mean \"\(name)\"?", word)
        }
    }

    func testAStrangeWordHasNoSuggestion() {
        for word in ["", "x", "foo", "measurement", "2A37"] {
            XCTAssertEqual(Suggestion.text(for: word, among: ["scan", "Heart Rate Measurement"]), "", word)
        }
        XCTAssertEqual(Suggestion.text(for: "scan", among: []), "")
    }

    func testAServiceMayBeWrittenWithHyphens() throws {
        for name in ["heart-rate", "Heart Rate", "HEART RATE", "180D"] {
            XCTAssertEqual(try Arguments.service(name).uuidString, "180D", name)
        }
        expectRefusal(of: ["scan", "--service", "Hart Rate"], #"Did you mean "heart-rate"?"#)
    }
}

/// The help texts.
final class HelpProcessTests: XCTestCase, StartsPrograms {
    func testAnUnknownCommandIsRefusedWithTheNearestOne() throws {
        for (arguments, text) in [
            (["scna"], #"There is no command "scna". Did you mean "scan"?"#),
            (["help", "scna"], #"There is no command "scna". Did you mean "scan"?"#),
            (["help", "simulate", "fautl"], #"There is no command "fautl". Did you mean "fault"?"#),
            (["help", "scan", "fault"], #"There is no command "fault"."#),
        ] {
            let result = try ToolRun(arguments).finish(status: 64)
            XCTAssertEqual(result.errors.first, "Error: \(text)", "\(result)")
            XCTAssertEqual(result.lines, [])
        }
        for arguments in [["help"], ["help", "scan"], ["help", "simulate", "fault"], ["help", "scan", "--help"]] {
            try ToolRun(arguments).finish(status: 0)
        }
    }

    func testOptionsOfSimulationAreLast() throws {
        let lines = try ToolRun("help", "read").finish(status: 0).lines
        let headings = lines.filter { $0.wholeMatch(of: /[A-Z]+:/) != nil }
        XCTAssertEqual(headings, ["ARGUMENTS:", "OPTIONS:", "SIMULATION:"])
        let place = try XCTUnwrap(lines.firstIndex(of: "OPTIONS:"))
        XCTAssertEqual(lines[place - 1], "")
        XCTAssertTrue(lines.last { !$0.isEmpty }?.contains("head") == true, "\(lines.suffix(3))")
    }

    private struct Command: Decodable {
        var commandName: String
        var discussion: String?
        var subcommands: [Command]?

        var all: [Command] { [self] + (subcommands ?? []).flatMap(\.all) }
    }

    private struct Dump: Decodable { var command: Command }

    private func examples() throws -> [String] {
        let dump = try ToolRun("--experimental-dump-help").finish(status: 0).output
        let commands = try JSONDecoder().decode(Dump.self, from: Data(dump.utf8)).command.all
        let examples = commands.flatMap { command -> [String] in
            let lines = (command.discussion ?? "").split(separator: "\n", omittingEmptySubsequences: false)
            return lines.drop { $0 != "Examples:" }.dropFirst().prefix { !$0.isEmpty }.map { String($0) }
        }
        XCTAssertGreaterThan(examples.count, 50)
        return examples
    }

    /// The argument parser breaks lines after the width of the terminal; most have at least 80 columns.
    func testNoExampleIsBroken() throws {
        for example in try examples() {
            XCTAssertTrue(example.hasPrefix("  "), example)
            XCTAssertLessThanOrEqual(example.count, 80, example)
        }
    }

    /// Bash splits each example, and the arguments of `bluecap` are parsed.
    func testEveryExampleCanBePasted() throws {
        let examples = try examples()
        let folder = NSTemporaryDirectory() + "examples-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let script = """
            cd '\(folder)'; touch passkey
            bluecap() {
                local argument line=$'\\x1e'$#$'\\x1f'
                for argument; do line+="$argument"$'\\x1f'; done
                printf '%s' "$line" >&3
            }
            jq() { cat; }
            sudo() { shift 2; "$@"; }
            \(examples.map { "eval \(quoted($0.trimmingCharacters(in: .whitespaces)))" }.joined(separator: "\n"))
            wait
            """
        let output = try ToolRun(script: "exec 3>&1 >/dev/null\n" + script).finish(status: 0)
        XCTAssertEqual(output.errors, [])
        let commands = output.output.split(separator: "\u{1E}").map { command in
            command.split(separator: "\u{1F}", omittingEmptySubsequences: false).dropFirst().dropLast().map {
                String($0)
            }
        }
        XCTAssertEqual(commands.count, examples.count { $0.contains("bluecap") })
        for words in commands {
            // On a terminal these are the options of the full-screen program.
            let command = words.first?.hasPrefix("-") == false ? words : ["explore"] + words
            do { _ = try BlueCapTool.parseAsRoot(command) } catch {
                let text = BlueCapTool.fullMessage(for: error)
                // What depends on the place of the test.
                let isElsewhere = ["Without a terminal", "There is no simulator", "a JSON file"].contains(
                    where: text.contains)
                XCTAssertTrue(isElsewhere, "\(command): \(text)")
            }
        }
    }

    private func quoted(_ text: String) -> String { "'" + text.replacing("'", with: #"'\''"#) + "'" }

    func testTheManualPageHasTheEnvironmentAndSimulationLast() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let folder = NSTemporaryDirectory() + "pages-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try ToolRun(script: #"'\#(root.path)/Scripts/man-pages' "$BLUECAP" '\#(folder)'"#).finish(status: 0)
        let page = try String(contentsOfFile: "\(folder)/bluecap.1", encoding: .utf8)
        let environment = try XCTUnwrap(page.components(separatedBy: ".SH ENVIRONMENT\n").last)
        XCTAssertTrue(environment.contains("BLUECAP_ADAPTER"), page)
        let read = try String(contentsOfFile: "\(folder)/bluecap-read.1", encoding: .utf8)
        let options = read.components(separatedBy: #"\fB\-\-adapter\fR"#).last
        XCTAssertTrue(options?.contains(#"\fB\-\-bluez\fR"#) == true, read)
    }

    func testDoctorHasColoursOnATerminalOnly() throws {
        let run = try ToolRun(onTerminal: "doctor --simulated")
        try run.waitForText("\u{1B}[1;32mok\u{1B}[0m       bluetoothd: It runs and replies.")
        try run.finish(status: 0)
        let plain = try ToolRun(onTerminal: "doctor --simulated", "NO_COLOR=1").finish(status: 0)
        XCTAssertFalse(plain.output.contains("\u{1B}[1;32m"), plain.output)
    }
}

/// The completions, in the shells that are installed.
final class CompletionProcessTests: XCTestCase, StartsPrograms {
    /// What is typed before the Tab key, and the arguments that the command has then.
    private static let words = [
        ("serve hea", "serve heart-rate"),
        ("serve Peripherals/gr", "serve Peripherals/greeter.json"),
        ("scan --service batt", "scan --service battery"),
        ("scan --simulated --bluez he", "scan --simulated --bluez head"),
        ("scan --simulated --peripherals emp", "scan --simulated --peripherals empty"),
        ("adapters --power of", "adapters --power off"),
        ("disc", "disconnect"),
        ("simulate fau", "simulate fault"),
        ("simulate fault ki", "simulate fault kill-daemon"),
        ("simulate fault kill-daemon --con", "simulate fault kill-daemon --control"),
        ("simulate --adapters 2 --bluez he", "simulate --adapters 2 --bluez head"),
    ]

    /// Types into an interactive shell, in which `bluecap` prints its arguments. What is typed before its first prompt could be lost.
    private func complete(
        in shell: String, _ options: String, _ setUp: [String]
    ) throws {
        let folder = NSTemporaryDirectory() + "shell-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let run = try ToolRun(
            script: """
                command -v \(shell) > /dev/null || exit 77
                mkdir -p '\(folder)/bin' '\(folder)/Peripherals' && cd '\(folder)' || exit 1
                touch Peripherals/greeter.json
                printf '#!/bin/sh\\ncase $1 in --*) exec "%s" "$@" ;; esac\\necho "got: $*."\\n' "$BLUECAP" > bin/bluecap
                chmod +x bin/*
                "$BLUECAP" --generate-completion-script \(shell) > bin/_bluecap
                export PATH="$PWD/bin:$PATH" HOME="$PWD" TERM=xterm LANG=C.UTF-8
                unset LC_ALL
                printf '%s\\n' \(setUp.map(quoted).joined(separator: " ")) > .zshrc
                exec env ZDOTDIR="$PWD" script -qec '\(shell) \(options)' /dev/null
                """)
        do { try run.waitForText("ready> ") } catch {
            run.closeInput()
            let result = try run.finish()
            try XCTSkipIf(result.status == 77, "\(shell) is not installed")
            throw error
        }
        for (typed, arguments) in Self.words {
            run.type("bluecap \(typed)\t")
            run.type("\n")
            try run.waitForText("got: \(arguments)")
        }
        run.type("exit\n")
        let result = try run.finish()
        for problem in ["_arguments:", "doubled rest", "command not found", "bad substitution"] {
            XCTAssertFalse(result.output.contains(problem), "\(shell): \(result.output)")
        }
    }

    private func quoted(_ text: String) -> String { "'" + text.replacing("'", with: #"'\''"#) + "'" }

    func testTheAdaptersOfTheKernelAreOffered() throws {
        let folder = NSTemporaryDirectory() + "adapters-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for name in ["hci1", "hci0", "hci0:64"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        XCTAssertEqual(Arguments.adapters(in: folder), ["hci0", "hci1"])
        XCTAssertEqual(Arguments.adapters(in: folder + "/none"), [])
    }

    func testBashCompletesValues() throws {
        try complete(in: "bash", "--noprofile --rcfile .zshrc", [". bin/_bluecap", "PS1='ready> '"])
    }

    func testZshCompletesValues() throws {
        try complete(
            in: "zsh", "-d",
            ["fpath=($PWD/bin $fpath)", "autoload -Uz compinit", "compinit -u -d $PWD/dump", "PROMPT='ready> '"])
    }

    func testFishCompletesValues() throws {
        try complete(
            in: "fish", "--no-config --init-command \"source .zshrc\"",
            ["source bin/_bluecap", "function fish_prompt; echo 'ready> '; end"])
    }
}
