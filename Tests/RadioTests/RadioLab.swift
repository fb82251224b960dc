import Foundation
import TestSupport

/// The radio lab from within: its commands (`Tests/RadioLab/bin`), run and waited for.
enum RadioLab {
    /// Fails outside the lab, with a sentence that says how to get in.
    static func enter() throws {
        guard ProcessInfo.processInfo.environment["RADIO_LAB"] == "1" else { throw RadioLabError.outside }
    }

    /// Runs a program and returns its standard output, without the last line break; fails unless its status is 0, and after
    /// `CommandRun.timeLimit` seconds.
    @discardableResult
    static func run(_ program: String, _ arguments: String...) throws -> String {
        try run(program, arguments: arguments)
    }

    /// - Parameter timeLimit: seconds after which the program and all of its process group are killed, and the call fails
    ///   with the command and what it has printed.
    @discardableResult
    static func run(
        _ program: String, arguments: [String], timeLimit: TimeInterval = CommandRun.timeLimit
    ) throws -> String {
        try enter()
        return try CommandRun.output(of: program, arguments, timeLimit: timeLimit)
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

    var description: String {
        switch self {
        case .outside: "The radio tests run inside the radio lab only: make radio-test."
        }
    }
}
