import Foundation
import TestPrograms
import XCTest

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

    /// Waits until the process has ended and all it wrote has been read.
    func finish(file: StaticString = #filePath, line: UInt = #line) throws -> Result {
        guard output.waitForEnd(), errors.waitForEnd() else {
            kill(process.processIdentifier, SIGKILL)
            XCTFail("It did not end: \(output.text) \(errors.text)", file: file, line: line)
            throw CancellationError()
        }
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus, wasKilled: process.terminationReason == .uncaughtSignal,
            output: output.text, lines: output.lines, errors: errors.lines)
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

        /// `errors` without the notice that something takes long: a busy machine can make it appear.
        var problems: [String] {
            errors.filter { $0 != "bluecap: bluetoothd has not registered everything yet …" }
        }
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
