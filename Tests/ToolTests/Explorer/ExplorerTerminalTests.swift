import Foundation
import TestBasics
import XCTest

/// A real terminal for the full-screen program: a window of a tmux server of its own.
private final class TerminalWindow {
    private static let limit: TimeInterval = 60
    private let socket = FileManager.default.temporaryDirectory.appendingPathComponent(
        "t\(UUID().uuidString.prefix(8))")
    private let server: Process

    /// - Parameter command: For a shell, in which `$BLUECAP` is the tool. Afterwards the shell prints the status.
    init(_ command: String, width: Int = 100, height: Int = 30, _ variables: String = "") throws {
        let script =
            "export LANG=C.UTF-8 BLUECAP=\(ToolRun.executable.path) \(variables); \(command); echo status=$?; exec cat"
        // A server that starts itself would keep what Foundation waits for.
        server = Self.tmux(["-u", "-f", "/dev/null", "-S", socket.path, "-D"])
        try server.run()
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        while try run("new-session", "-d", "-x", "\(width)", "-y", "\(height)", "bash", "-c", script) != 0 {
            guard deadline.timeIntervalSinceNow > 0 else { throw CancellationError() }
        }
    }

    deinit {
        server.terminate()
        server.waitUntilExit()
        try? FileManager.default.removeItem(at: socket)
    }

    private static func tmux(_ arguments: [String]) -> Process {
        let process = TestProgram.process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["tmux"] + arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        return process
    }

    /// Runs a command of tmux, and returns its status.
    @discardableResult
    private func run(_ arguments: String...) throws -> Int32 {
        let process = Self.tmux(["-N", "-S", socket.path] + arguments)
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Returns what a command of tmux prints.
    fileprivate func output(_ arguments: String...) throws -> String {
        let process = Self.tmux(["-u", "-N", "-S", socket.path] + arguments)
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        defer { process.waitUntilExit() }
        return String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    }

    /// Presses keys, by the names that tmux has for them; other texts are typed.
    func press(_ keys: String...) throws { for key in keys { try run("send-keys", key) } }

    func resize(_ width: Int, _ height: Int) throws {
        try run("resize-window", "-x", "\(width)", "-y", "\(height)")
    }

    var lines: [String] {
        get throws {
            try output("capture-pane", "-p").split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// Lets programs set tmux's buffer, as they set the clipboard of a terminal.
    func acceptClipboard() throws { try run("set-option", "-s", "set-clipboard", "on") }

    /// Waits until a program has copied a text.
    func waitForCopy(of text: String, file: StaticString = #filePath, line: UInt = #line) throws {
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        var copied = ""
        while copied != text, deadline.timeIntervalSinceNow > 0 { copied = try output("show-buffer") }
        XCTAssertEqual(copied, text, file: file, line: line)
    }

    /// A property of the window, by the name that tmux has for it.
    func property(_ name: String) throws -> String {
        try output("display-message", "-p", "#{\(name)}").trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Waits until the screen contains a text. Returns its lines.
    @discardableResult
    func wait(
        for text: String? = nil, file: StaticString = #filePath, line: UInt = #line,
        where condition: ([String]) -> Bool = { _ in true }
    ) throws -> [String] {
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        var lines: [String] = []
        repeat {
            lines = try self.lines
            if text.map({ text in lines.contains { $0.contains(text) } }) ?? true, condition(lines) { return lines }
            // tmux has no event for a change of the screen, so that it is asked again.
            usleep(20_000)
        } while deadline.timeIntervalSinceNow > 0
        XCTFail("no \"\(text ?? "change")\" in:\n\(lines.joined(separator: "\n"))", file: file, line: line)
        throw CancellationError()
    }

    /// Waits for the end of the command, and checks that it has left the terminal as it was.
    func expectEnd(status: Int32, file: StaticString = #filePath, line: UInt = #line) throws {
        try wait(for: "status=\(status)", file: file, line: line)
        for (name, value) in [
            ("alternate_on", "0"), ("cursor_flag", "1"), ("keypad_flag", "0"), ("mouse_any_flag", "0"),
        ] {
            XCTAssertEqual(try property(name), value, name, file: file, line: line)
        }
    }
}

final class ExplorerTerminalTests: XCTestCase, StartsPrograms {
    private func explore(_ options: String = "", width: Int = 100, height: Int = 30, _ variables: String = "") throws
        -> TerminalWindow
    {
        try TerminalWindow("$BLUECAP --simulated \(options)", width: width, height: height, variables)
    }

    func testConnectsReadsNotifiesWritesAndQuits() throws {
        let window = try explore()
        try window.wait(for: "Pulse Strap 7F")
        try window.press("/", "pulse", "Enter", "Enter")
        try window.wait(for: "Body Sensor Location")
        try window.wait(for: "Chest")
        // The measurement is the first characteristic that sends.
        let line = try window.lines.first { $0.contains("Heart Rate Measurement") } ?? ""
        XCTAssertFalse(line.contains("●"), line)
        try selectLine("Heart Rate Measurement", in: window)
        try window.press("n")
        try window.wait(for: "● Heart Rate Measurement") {
            $0.contains { $0.contains("Heart Rate Measurement") && $0.contains("bpm") }
        }
        try selectLine("Heart Rate Control Point", in: window)
        try window.press("w")
        try window.wait(for: "Write Heart Rate Control Point as ")
        try window.press("zz", "Enter")
        try window.wait(for: "\"zz\" is not")
        try window.press("BSpace", "BSpace", "1", "Enter")
        try window.wait(for: "Write")
        try window.press("Escape", "Escape")
        try window.wait(for: "⇄ Pulse Strap 7F")
        try window.press("Escape", "q")
        try window.expectEnd(status: 0)
    }

    /// Presses the key for down until the line with this text is selected: the line below the tree describes it.
    private func selectLine(_ text: String, in window: TerminalWindow) throws {
        try window.press("g")
        for _ in 0..<40 {
            let lines = try window.lines
            if lines.suffix(4).contains(where: { $0.hasPrefix(text + "  ") }) { return }
            let before = lines.suffix(4)
            try window.press("j")
            try window.wait { $0.suffix(4) != before }
        }
        XCTFail("\(text) was not selected")
    }

    func testPairsWithAQuestionOnTheScreen() throws {
        let room = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Examples/Rooms/lock.json").standardizedFileURL.path
        let window = try explore("--peripherals \(room)")
        try window.wait(for: "Front Door")
        try window.press("Enter")
        // BlueZ reports nothing of a protected value.
        try window.wait(for: "(no response)")
        try window.press("p")
        try window.wait(for: "y: yes")
        try window.press("n")
        try window.wait(for: "reject")
        try window.press("p")
        try window.wait(for: "y: yes")
        try window.press("y")
        try window.wait(for: "bonded") { !$0[0].contains("…") }
        try window.press("R")
        try window.wait(for: "read notify  01")
        try window.press("q", "q")
        try window.expectEnd(status: 0)
    }

    func testALostLinkAndADeadDaemonAreReportedAndRestored() throws {
        let socket = FileManager.default.temporaryDirectory.appendingPathComponent("simulator-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: socket) }
        let window = try TerminalWindow(
            "$BLUECAP simulate -- bash -c 'echo -n $BLUECAP_SIMULATOR > \(socket.path); exec $BLUECAP'")
        func cause(_ fault: String...) throws {
            let simulator = try String(contentsOf: socket, encoding: .utf8)
            let run = try ToolRun(["simulate", "fault"] + fault, environment: ["BLUECAP_SIMULATOR": simulator])
            try run.finish(status: 0)
        }
        let hasValue: ([String]) -> Bool = {
            $0.contains { $0.contains("● Heart Rate Measurement") && $0.contains("bpm") }
        }
        try window.wait(for: "Pulse Strap 7F")
        try window.press("/", "pulse", "Enter", "Enter")
        try window.wait(for: "Chest")
        try selectLine("Heart Rate Measurement", in: window)
        try window.press("n")
        try window.wait(for: "connected", where: hasValue)

        try cause("lose-link", "C0:5A:17:00:18:0D")
        try window.wait(for: "The link to Pulse Strap 7F is back.")
        try window.wait(for: "MTU", where: hasValue)

        try cause("kill-daemon")
        try window.wait(for: "bluetoothd is not running")
        try cause("start-daemon")
        try window.wait(for: "  connected  ", where: hasValue)
        try window.press("q", "Escape", "q")
        try window.expectEnd(status: 0)
    }

    func testCopiesToTheClipboardOfTheTerminal() throws {
        let window = try explore()
        try window.acceptClipboard()
        try window.wait(for: "Pulse Strap 7F")
        try window.press("/", "pulse", "Enter", "y")
        try window.waitForCopy(of: "C0:5A:17:00:18:0D")
        try window.press("Escape", "q")
        try window.expectEnd(status: 0)
    }

    func testEveryEndLeavesTheTerminalAsItWas() throws {
        for (signal, status) in [("INT", 0), ("TERM", 0), ("HUP", 0), ("QUIT", 131)] as [(String, Int32)] {
            let window = try TerminalWindow("ulimit -c 0; $BLUECAP --simulated")
            try window.wait(for: "Pulse Strap 7F")
            try signalChild(of: try window.property("pane_pid"), signal)
            try window.expectEnd(status: status)
        }
    }

    private func signalChild(of shell: String, _ signal: String) throws {
        let process = TestProgram.process()
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        process.arguments = ["-c", "kill -\(signal) $(cat /proc/\(shell)/task/\(shell)/children)"]
        try process.run()
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 0)
    }

    func testItCanBeStoppedAndContinued() throws {
        let window = try TerminalWindow("bash --norc -im", "PS1=PROMPT")
        try window.wait(for: "PROMPT")
        try window.press("$BLUECAP --simulated", "Enter")
        try window.wait(for: "Pulse Strap 7F")
        try window.press("C-z")
        try window.wait(for: "Stopped")
        XCTAssertEqual(try window.property("alternate_on"), "0")
        try window.press("fg", "Enter")
        try window.wait(for: "Pulse Strap 7F") { $0.contains { $0.contains("NAME") } }
        try window.press("q")
        try window.wait(for: "PROMPT")
        XCTAssertEqual(try window.property("cursor_flag"), "1")
    }

    func testItFollowsTheSizeOfTheTerminal() throws {
        let window = try explore(width: 200, height: 60)
        try window.wait(for: "MAKER")
        for (width, height) in [(40, 10), (80, 24), (132, 43), (200, 60)] {
            try window.resize(width, height)
            let lines = try window.wait(for: "NAME") { lines in
                lines.count >= height && lines[height - 1].contains("peripherals")
            }
            XCTAssertTrue(lines.contains { $0.contains("Pulse Strap") }, "\(width) \(height)")
        }
        try window.press("q")
        try window.expectEnd(status: 0)
    }

    func testATypeOfTerminalThatIsUnknownIsAnError() throws {
        let window = try explore("", "TERM=nothing")
        try window.wait(for: "which is unknown or cannot move the cursor")
        try window.wait(for: "status=1")
    }

    func testWithoutATerminalItPrintsItsHelp() throws {
        let run = try ToolRun()
        let result = try run.finish(status: 0)
        XCTAssertTrue(result.output.contains("USAGE: bluecap"), result.output)
        let other = try ToolRun("explore").finish(status: 64)
        XCTAssertTrue(other.errors.joined().contains("Without a terminal, name the peripheral"), "\(other)")
    }

    func testColoursAreLeftOutIfTheUserDisablesThem() throws {
        let window = try explore("", "NO_COLOR=1")
        try window.wait(for: "Pulse Strap 7F")
        XCTAssertFalse(try window.colours().contains { (30...37).contains($0) })
        let coloured = try explore()
        try coloured.wait(for: "Pulse Strap 7F")
        XCTAssertTrue(try coloured.colours().contains { (30...37).contains($0) })
    }
}

extension TerminalWindow {
    /// The numbers of all styles on the screen (ECMA-48, 8.3.117).
    fileprivate func colours() throws -> Set<Int> {
        let text = try styledText()
        return Set(text.matches(of: /\u{1B}\[([\d;]*)m/).flatMap { $0.1.split(separator: ";").compactMap { Int($0) } })
    }

    private func styledText() throws -> String { try output("capture-pane", "-p", "-e") }
}
