import Foundation
import TestSupport

/// Programs that are not ours, run against the simulator.
enum Foreign {
    struct Outcome {
        var status: Int32
        var output: String
    }

    /// Runs a program with the simulator as its system bus, and waits for its end.
    static func run(
        _ program: String, _ arguments: [String], bus address: String, limit: TimeInterval = 30
    ) throws -> Outcome {
        let (status, output) = try CommandRun.outcome(
            of: program, arguments, environment: ["DBUS_SYSTEM_BUS_ADDRESS": address], includesErrors: true,
            timeLimit: limit)
        return Outcome(status: status, output: output)
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
