import ArgumentParser
import BlueZSimulator
import TestBasics
import XCTest

@testable import bluecap

/// A run of the built `bluecap`, or of a shell that runs it, as a process of its own.
///
/// Every wait is for an event, with a limit far beyond what it should take.
final class ToolRun {
    static let limit: TimeInterval = 60

    /// The executable, which the build puts beside the tests.
    static var executable: URL {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appendingPathComponent("bluecap")
    }

    /// The state directory of a run that is given no other: the user's own one is never written to.
    private let state = FileManager.default.temporaryDirectory.appendingPathComponent("state-\(UUID().uuidString)")
    private let process = TestProgram.process()
    private let input = Pipe()
    private let output = Collector()
    private let errors = Collector()

    /// Starts `bluecap` with these arguments.
    convenience init(_ arguments: String..., environment: [String: String] = [:]) throws {
        try self.init(Self.executable, arguments, environment)
    }

    /// Starts `bluecap` with these arguments.
    convenience init(_ arguments: [String], environment: [String: String] = [:]) throws {
        try self.init(Self.executable, arguments, environment)
    }

    /// Starts `bash` with a script in which `$BLUECAP` is the executable.
    convenience init(script: String) throws {
        try self.init(
            URL(fileURLWithPath: "/bin/bash"), ["-c", script], ["BLUECAP": Self.executable.path])
    }

    /// Starts `bluecap` on a terminal of its own.
    convenience init(onTerminal arguments: String, _ variables: String = "", setUp: String = "") throws {
        try self.init(
            script: """
                unset LC_ALL LC_CTYPE NO_COLOR
                export TERM=xterm LANG=C.UTF-8 \(variables)
                exec script -qec "\(setUp) exec $BLUECAP \(arguments)" /dev/null
                """)
    }

    private init(_ executable: URL, _ arguments: [String], _ changes: [String: String]) throws {
        process.executableURL = executable
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["XDG_STATE_HOME": state.path]) { $1 }
            .merging(changes) { $1 }
        process.standardInput = input
        process.standardOutput = output.pipe
        process.standardError = errors.pipe
        try process.run()
        output.begin()
        errors.begin()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        try? FileManager.default.removeItem(at: state)
    }

    /// Writes to standard input: of `script`, what is typed on its terminal.
    func type(_ text: String) { try? input.fileHandleForWriting.write(contentsOf: Data(text.utf8)) }

    /// Ends standard input.
    func closeInput() { try? input.fileHandleForWriting.close() }

    /// Waits until standard output contains a text so many times. The text need not be a whole line.
    func waitForText(_ text: String, times: Int = 1, file: StaticString = #filePath, line: UInt = #line) throws {
        _ = try XCTUnwrap(
            output.waitForText { $0.ranges(of: text).count >= times ? true : nil },
            "no \"\(text)\": \(output.text)", file: file, line: line)
    }

    /// Sends a signal, unless the process has ended: another one may have its number by then.
    func signal(_ number: Int32) {
        if process.isRunning { kill(process.processIdentifier, number) }
    }

    /// Waits until standard output has a line that satisfies the condition, and returns it.
    func line(where condition: (String) -> Bool = { _ in true }, file: StaticString = #filePath, line: UInt = #line)
        throws -> String
    {
        try XCTUnwrap(
            output.wait { $0.first(where: condition) }, "no such line: \(output.text)", file: file, line: line)
    }

    /// How many lines standard output has so far.
    var lineCount: Int { output.lines.count }

    /// Waits until standard output has so many lines.
    func waitForLines(_ count: Int, file: StaticString = #filePath, line: UInt = #line) throws {
        _ = try XCTUnwrap(output.wait { $0.count >= count ? true : nil }, output.text, file: file, line: line)
    }

    /// Waits until standard error has a line that satisfies the condition.
    func errorLine(where condition: (String) -> Bool, file: StaticString = #filePath, line: UInt = #line) throws {
        _ = try XCTUnwrap(
            errors.wait { $0.first(where: condition) }, "no such line: \(errors.text)", file: file, line: line)
    }

    /// Sends a signal again and again until the process ends: signals in quick succession are one request.
    func signalUntilItEnds(_ number: Int32) {
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        repeat {
            signal(number)
        } while !output.waitForEnd(until: min(deadline, Date(timeIntervalSinceNow: 0.1)))
            && deadline.timeIntervalSinceNow > 0
    }

    /// Sends a signal, and waits for the end. The test fails if it ends with another status.
    @discardableResult
    func end(
        _ number: Int32 = SIGINT, status: Int32 = 0, note: String = "", file: StaticString = #filePath,
        line: UInt = #line
    ) throws -> Result {
        signal(number)
        return try finish(status: status, note: note, file: file, line: line)
    }

    /// Waits until the process has ended and all it wrote has been read. The test fails if it ends with another status.
    @discardableResult
    func finish(
        status: Int32? = nil, note: String = "", file: StaticString = #filePath, line: UInt = #line
    ) throws -> Result {
        guard output.waitForEnd(), errors.waitForEnd() else {
            kill(process.processIdentifier, SIGKILL)
            XCTFail("It did not end: \(output.text) \(errors.text)", file: file, line: line)
            throw CancellationError()
        }
        process.waitUntilExit()
        let result = Result(
            status: process.terminationStatus, wasKilled: process.terminationReason == .uncaughtSignal,
            output: output.text, lines: output.lines, errors: errors.lines)
        if let status { XCTAssertEqual(result.status, status, "\(note) \(result)", file: file, line: line) }
        return result
    }

    /// Starts `bash` once for each script, and returns what they did. They run at the same time, since most of their time is
    /// spent waiting.
    static func finish(
        scripts: [String], file: StaticString = #filePath, line: UInt = #line
    ) throws -> [Result] {
        let runs = try scripts.map { try ToolRun(script: $0) }
        return try runs.map { try $0.finish(file: file, line: line) }
    }

    /// Starts `bluecap` once for each list of arguments, as ``finish(scripts:file:line:)`` does.
    static func finish(
        commands: [[String]], file: StaticString = #filePath, line: UInt = #line
    ) throws -> [Result] {
        let runs = try commands.map { try ToolRun($0) }
        return try runs.map { try $0.finish(file: file, line: line) }
    }

    struct Result {
        var status: Int32
        var wasKilled: Bool
        /// All of standard output.
        var output: String
        /// Its complete lines.
        var lines: [String]
        var errors: [String]

        /// The objects of the lines, which are JSON.
        func objects(file: StaticString = #filePath, line: UInt = #line) throws -> [[String: Any]] {
            try lines.map { text in
                try XCTUnwrap(
                    JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], text, file: file, line: line)
            }
        }

        /// `errors` without the notice that something takes long: a busy machine can make it appear.
        var problems: [String] {
            errors.filter { $0 != "bluecap: bluetoothd has not registered everything yet …" }
        }
    }
}

/// Virtual devices on a bus of their own, for processes that use them.
class ToolBench {
    let simulator: Simulator

    init(_ simulator: Simulator) { self.simulator = simulator }

    convenience init(room: Room = .empty) throws { self.init(try .onPrivateBus(room: room)) }

    deinit { simulator.end() }

    /// The variable that names the bus.
    var bus: String { "DBUS_SYSTEM_BUS_ADDRESS='\(simulator.address)'" }

    func start(_ arguments: String...) throws -> ToolRun { try start(arguments) }

    func start(_ arguments: [String]) throws -> ToolRun {
        try ToolRun(arguments, environment: ["DBUS_SYSTEM_BUS_ADDRESS": simulator.address])
    }

    /// Starts `bash` with a script whose programs use the bus.
    func start(script: String) throws -> ToolRun { try ToolRun(script: "export \(bus)\n" + script) }

    /// Runs `bluecap` with a program that reads its output, and fails if one of them does.
    func run(_ arguments: String, into reader: String) throws -> ToolRun.Result {
        try start(script: "set -o pipefail; \"$BLUECAP\" \(arguments) | \(reader)").finish()
    }

    var isDiscovering: Bool { simulator.adapters.contains(where: \.isDiscovering) }

    /// The state of a manager of this process changes without a turn of the simulator, so that the condition is also evaluated
    /// in between.
    func wait(_ what: String, file: StaticString = #filePath, line: UInt = #line, until condition: () -> Bool) {
        let deadline = Date(timeIntervalSinceNow: ToolRun.limit)
        while !simulator.wait(until: condition, limit: 0.05) {
            guard deadline.timeIntervalSinceNow > 0 else { return XCTFail(what, file: file, line: line) }
        }
    }
}

/// Checks that each of these commands shows the usage and has the status of wrong arguments.
func expectUsage(
    _ mistakes: [[String]], of command: String = "", file: StaticString = #filePath, line: UInt = #line
) throws {
    for (mistake, result) in zip(mistakes, try ToolRun.finish(commands: mistakes)) {
        XCTAssertEqual(result.status, 64, "\(mistake)", file: file, line: line)
        XCTAssertEqual(result.lines, [], "\(mistake)", file: file, line: line)
        XCTAssertTrue(
            result.errors.contains { $0.hasPrefix("Usage: bluecap\(command)") }, "\(mistake) \(result.errors)",
            file: file,
            line: line)
    }
}

/// Checks that the arguments are refused with a text that contains this part.
func expectRefusal(of arguments: [String], _ part: String, file: StaticString = #filePath, line: UInt = #line) {
    XCTAssertThrowsError(try BlueCapTool.parseAsRoot(arguments), "\(arguments)", file: file, line: line) { error in
        XCTAssertEqual(BlueCapTool.exitCode(for: error).rawValue, 64, "\(arguments)", file: file, line: line)
        let text = BlueCapTool.fullMessage(for: error)
        XCTAssertTrue(text.contains(part), "\(arguments): \(text)", file: file, line: line)
    }
}

/// Reads a pipe to its end on a thread of its own, and waits for lines.
private final class Collector: @unchecked Sendable {
    let pipe = Pipe()
    private let condition = NSCondition()
    /// Under `condition`.
    private var data = Data()
    /// Under `condition`.
    private var hasEnded = false

    func begin() {
        let handle = pipe.fileHandleForReading
        Thread.detachNewThread { [self] in
            while true {
                let piece = handle.availableData
                condition.withLock {
                    data += piece
                    hasEnded = piece.isEmpty
                    condition.broadcast()
                }
                if piece.isEmpty { return }
            }
        }
    }

    var text: String { condition.withLock { String(decoding: data, as: UTF8.self) } }

    var lines: [String] { condition.withLock { completeLines } }

    /// Separated by bytes: as a character, a terminal's CR LF is one, which is not LF.
    private var completeLines: [String] {
        data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
    }

    func wait<Value>(for find: ([String]) -> Value?) -> Value? { waitUntil { find(completeLines) } }

    func waitForText<Value>(_ find: (String) -> Value?) -> Value? {
        waitUntil { find(String(decoding: data, as: UTF8.self)) }
    }

    private func waitUntil<Value>(_ find: () -> Value?) -> Value? {
        let deadline = Date(timeIntervalSinceNow: ToolRun.limit)
        return condition.withLock {
            while true {
                if let value = find() { return value }
                guard !hasEnded, condition.wait(until: deadline) else { return nil }
            }
        }
    }

    func waitForEnd(until deadline: Date = Date(timeIntervalSinceNow: ToolRun.limit)) -> Bool {
        condition.withLock {
            while !hasEnded {
                guard condition.wait(until: deadline) else { return false }
            }
            return true
        }
    }
}
