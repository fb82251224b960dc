import Foundation

/// The radio lab from within: its commands (`Tests/RadioLab/bin`), run and waited for.
enum RadioLab {
    /// Fails outside the lab, with a sentence that says how to get in.
    static func enter() throws {
        guard ProcessInfo.processInfo.environment["RADIO_LAB"] == "1" else { throw RadioLabError.outside }
    }

    /// Runs a program and answers its standard output, without the last line break; fails unless its status is 0.
    @discardableResult
    static func run(_ program: String, _ arguments: String...) throws -> String {
        try run(program, arguments: arguments)
    }

    @discardableResult
    static func run(_ program: String, arguments: [String]) throws -> String {
        let process = try process(program, arguments)
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        // To the end of the output first: a process whose pipe is full would never end.
        let text = String(bytes: output.fileHandleForReading.readDataToEndOfFile(), encoding: .utf8) ?? ""
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw RadioLabError.commandFailed(
                ([program] + arguments).joined(separator: " "), status: process.terminationStatus)
        }
        return text.trimmingCharacters(in: .newlines)
    }

    /// Starts a program that runs beside the test, with nobody to read what it prints.
    static func start(_ program: String, _ arguments: String...) throws -> Process {
        let process = try process(program, arguments)
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        return process
    }

    private static func process(_ program: String, _ arguments: [String]) throws -> Process {
        try enter()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardInput = FileHandle.nullDevice
        return process
    }

    /// The state every test begins with: silence, nothing remembered, all adapters on.
    static func reset() throws { try run("radio-reset") }

    /// The value of a property of `org.bluez.Adapter1`, as text.
    static func property(_ name: String, of adapter: String = "hci0") throws -> String {
        try run("radio-property", adapter, name)
    }
}

enum RadioLabError: Error, CustomStringConvertible {
    case outside
    case commandFailed(String, status: Int32)

    var description: String {
        switch self {
        case .outside: "The radio tests run inside the radio lab only: make radio-test."
        case .commandFailed(let command, let status): "`\(command)` ended with status \(status); it said why above."
        }
    }
}
