import Foundation
import TestBasics
import XCTest

/// Programs that are not ours, run against the simulator.
enum Foreign {
    struct Outcome {
        var status: Int32
        var output: String
    }

    /// Runs a program with the simulator as its system bus, and waits for its end; ends it after `limit` seconds.
    static func run(
        _ program: String, _ arguments: [String], bus address: String, limit: TimeInterval = 30,
        file: StaticString = #filePath, line: UInt = #line
    ) throws -> Outcome {
        let process = TestProgram.process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["DBUS_SYSTEM_BUS_ADDRESS": address]) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        // Some read commands from standard input until its end.
        process.standardInput = FileHandle.nullDevice
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try process.run()
        let watchdog = DispatchWorkItem { process.terminate() }
        DispatchQueue.global().asyncAfter(deadline: .now() + limit, execute: watchdog)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        ended.wait()
        watchdog.cancel()
        if process.terminationReason == .uncaughtSignal {
            XCTFail("\(program) did not end within \(limit) seconds: \(text)", file: file, line: line)
        }
        return Outcome(status: process.terminationStatus, output: text)
    }

    /// Returns the path of a program. A missing one fails the test: the simulator promises to serve foreign clients, so that a
    /// skipped test would hide a defect.
    static func program(_ name: String, package: String) throws -> String {
        let directories = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        let candidates = directories.map { "\($0)/\(name)" }
        guard let path = candidates.first(where: FileManager.default.isExecutableFile) else {
            throw Missing(description: "\(name) is not installed (Debian: apt-get install \(package)).")
        }
        return path
    }

    /// The Python that has bleak: `BLUECAP_PYTHON`, else the one that `make python` puts into `.build/python`.
    static func python() throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let path =
            ProcessInfo.processInfo.environment["BLUECAP_PYTHON"]
            ?? root.appendingPathComponent(".build/python/bin/python3").path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw Missing(description: "There is no Python with bleak at \(path): run `make python`.")
        }
        return path
    }

    struct Missing: Error, CustomStringConvertible {
        let description: String
    }
}
