public import Foundation
import TestBasics

/// A program that is run to its end, within a time limit.
public enum CommandRun {
    /// Seconds that a command may take unless the caller says otherwise: far beyond what any should.
    public static let timeLimit: TimeInterval = 120

    /// Runs a program, found in `PATH`, and returns its standard output without the last line break.
    ///
    /// - Throws: ``CommandError``, if it ends with a status other than 0 or does not end within the time limit.
    public static func output(
        of program: String, _ arguments: [String], timeLimit: TimeInterval = timeLimit
    ) throws -> String {
        let outcome = try outcome(of: program, arguments, timeLimit: timeLimit)
        guard outcome.status == 0 else {
            throw CommandError.failed(([program] + arguments).joined(separator: " "), status: outcome.status)
        }
        return outcome.output
    }

    /// Runs a program, found in `PATH`, and returns its status, and its standard output without the last line break.
    ///
    /// - Parameters:
    ///   - environment: added to the environment of this process.
    ///   - includesErrors: whether the output has what is written to standard error, too.
    ///   - timeLimit: seconds after which the program's process group is killed, with all that it has started there.
    /// - Throws: ``CommandError``, if it does not end within the time limit.
    public static func outcome(
        of program: String, _ arguments: [String], environment: [String: String] = [:], includesErrors: Bool = false,
        timeLimit: TimeInterval = timeLimit
    ) throws -> (status: Int32, output: String) {
        let deadline = Date(timeIntervalSinceNow: timeLimit)
        let process = TestProgram.process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        if includesErrors { process.standardError = output }
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try process.run()
        // Reads to the end of the output first: a process that blocks on a full pipe does not end.
        let (data, isWhole) = read(output.fileHandleForReading.fileDescriptor, until: deadline)
        let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines)
        guard isWhole, ended.wait(timeout: .now() + max(0, deadline.timeIntervalSinceNow)) == .success else {
            // Foundation gives each process a group of its own.
            kill(-process.processIdentifier, SIGKILL)
            let command = ([program] + arguments).joined(separator: " ")
            throw CommandError.timedOut(command, seconds: timeLimit, output: text)
        }
        return (process.terminationStatus, text)
    }

    /// What comes until the end, or until the deadline; and whether it was the end.
    public static func read(_ descriptor: Int32, until deadline: Date) -> (data: [UInt8], isWhole: Bool) {
        var data: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let rest = deadline.timeIntervalSinceNow
            guard rest > 0 else { return (data, false) }
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&entry, 1, Int32((min(rest, 3600) * 1000).rounded(.up)))
            if ready < 0, errno != EINTR { return (data, false) }
            guard ready > 0 else { continue }
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            if count > 0 {
                data += buffer[..<count]
            } else if count == 0 {
                return (data, true)
            } else if errno != EINTR {
                return (data, false)
            }
        }
    }
}

/// Why a command was no success.
public enum CommandError: Error, Equatable, CustomStringConvertible {
    case failed(String, status: Int32)
    case timedOut(String, seconds: TimeInterval, output: String)

    public var description: String {
        switch self {
        case .failed(let command, let status):
            "`\(command)` ended with status \(status); its standard error says why."
        case .timedOut(let command, let seconds, let output):
            "`\(command)` did not end within \(seconds) s and was killed; it had printed: "
                + (output.isEmpty ? "nothing" : output)
        }
    }
}
