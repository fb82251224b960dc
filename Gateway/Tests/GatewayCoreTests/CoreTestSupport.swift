import Foundation
import GatewayCore
import XCTest

/// The folder `Gateway`.
let gatewayFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

/// Compares a page with what the code makes of it; `WRITE=1` writes it.
func assertPage(_ name: String, is text: String, file: StaticString = #filePath, line: UInt = #line) throws {
    let url = gatewayFolder.appending(path: "Documentation/\(name)")
    if ProcessInfo.processInfo.environment["WRITE"] == "1" { try Data(text.utf8).write(to: url) }
    let found = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
    XCTAssertEqual(found, text, "\(name) is not up to date: run this test with WRITE=1", file: file, line: line)
}

/// A Python of a test.
enum Python {
    /// Runs a script with lines on its standard input; returns what it printed and its status.
    ///
    /// The process ends after the limit, and with the test's process.
    static func run(
        _ python: URL, script: String, arguments: [String] = [], lines: [String], limit: Int = 50
    ) throws -> (output: String, status: Int32) {
        let folder = FileManager.default.temporaryDirectory.appending(path: "bluecap-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (input, output) = (folder.appending(path: "input"), folder.appending(path: "output"))
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: input)
        try Data().write(to: output)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/setpriv")
        var variables = ProcessInfo.processInfo.environment
        variables["PATH"] = (variables["PATH"] ?? "/usr/bin") + ":/usr/sbin"
        process.environment = variables
        process.arguments =
            ["--pdeathsig", "KILL", "timeout", "-k", "1", "\(limit)", python.path()]
            + [gatewayFolder.appending(path: "Tests/scripts/\(script)").path()] + arguments
        process.standardInput = try FileHandle(forReadingFrom: input)
        let handle = try FileHandle(forWritingTo: output)
        (process.standardOutput, process.standardError) = (handle, handle)
        try process.run()
        process.waitUntilExit()
        return (try String(contentsOf: output, encoding: .utf8), process.terminationStatus)
    }

    /// Returns a Python that has a module: the first of the given one, that of a virtual environment in the build folder, and
    /// the system's. If none has it, the environment is made with the packages of a file.
    static func having(_ module: String, environment name: String, packages: String, makes: Bool = true) throws -> URL {
        let environment = gatewayFolder.appending(path: ".build/\(name)")
        let own = environment.appending(path: "bin/python3")
        let path = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        let system = path.map { URL(filePath: String($0)).appending(path: "python3") }
        for python in [own] + system where FileManager.default.isExecutableFile(atPath: python.path()) {
            if try status(python, "-c", "import \(module)") == 0 { return python }
        }
        guard makes else { throw XCTSkip("No Python has the module \(module).") }
        let list = gatewayFolder.appending(path: "Tests/scripts/\(packages)").path()
        guard try status(URL(filePath: "/usr/bin/env"), "python3", "-m", "venv", "--clear", environment.path()) == 0,
            try status(own, "-m", "pip", "install", "--quiet", "--requirement", list) == 0
        else { throw XCTSkip("A Python with \(module) could not be made; install python3-venv, or \(list) with pip.") }
        return own
    }

    private static func status(_ program: URL, _ arguments: String...) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/setpriv")
        process.arguments = ["--pdeathsig", "KILL", "timeout", "300", program.path()] + arguments
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}

/// Devices with the addresses 02:00:00:00:00:00 and following ones.
func devices(_ count: Int) -> [DeviceName] {
    (0..<count).compactMap { DeviceName(String(0x0200_0000_0000 + $0, radix: 16).leftPadded) }
}

extension String {
    /// Twelve digits, with zeros before them.
    fileprivate var leftPadded: String { String(repeating: "0", count: max(12 - count, 0)) + self }
}
