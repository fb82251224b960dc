import TestSupport
import XCTest

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

    /// Starts a program that runs beside the test; its output is discarded.
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

    // MARK: Orders

    /// Gives an order to the lab's server, or to the peripheral or the central that it runs, and returns what that prints;
    /// `Tests/RadioLab/bin` has commands for the same orders, and explains them.
    ///
    /// - Parameter words: the order and its arguments; no word has a tab or a line break.
    @discardableResult
    static func order(
        _ program: RadioProgram, _ words: [String], timeLimit: TimeInterval = CommandRun.timeLimit
    ) throws -> String {
        try enter()
        let order = ([program.rawValue] + words).joined(separator: " ")
        let answer = try exchange(words.joined(separator: "\t") + "\n", with: program, timeLimit: timeLimit)
        guard let answer else { throw RadioLabError.noAnswer(order, seconds: timeLimit) }
        var lines = answer.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        guard let last = lines.popLast(), last == "ok" else {
            throw RadioLabError.failed(order, answer.trimmingCharacters(in: .newlines))
        }
        return lines.joined(separator: "\n")
    }

    @discardableResult
    static func order(_ program: RadioProgram, _ words: String...) throws -> String { try order(program, words) }

    /// Sends a text and returns all that comes back; nil when that takes longer than the limit.
    private static func exchange(_ text: String, with program: RadioProgram, timeLimit: TimeInterval) throws -> String?
    {
        let file = "/run/radio-lab/\(program.rawValue)/port"
        guard let contents = try? String(contentsOfFile: file, encoding: .utf8),
            let port = UInt16(contents.trimmingCharacters(in: .newlines))
        else { throw RadioLabError.notRunning(program) }
        let connection = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(connection) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(connection, $0, length) == 0 }
        }
        guard isConnected else { throw RadioLabError.notRunning(program) }
        let bytes = Array(text.utf8)
        guard send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw RadioLabError.notRunning(program)
        }
        // It closes the connection when it has answered all of what came.
        shutdown(connection, Int32(SHUT_WR))
        let (answer, isWhole) = CommandRun.read(connection, until: Date(timeIntervalSinceNow: timeLimit))
        return isWhole ? String(decoding: answer, as: UTF8.self) : nil
    }

    /// The state every test begins with: silence, nothing remembered, all adapters on.
    static func reset() throws { try order(.server, "reset") }

    /// The value of a property of an adapter, as text; that of a list has a line for each element.
    static func property(
        _ name: String, of adapter: String = "hci0", interface: String = "org.bluez.Adapter1"
    ) throws -> String {
        try order(.server, "property", adapter, name, interface)
    }

    /// Whether an adapter offers LE Secure Connections; if not, it pairs in the legacy way. No reset changes it.
    static func setSecureConnections(_ isOn: Bool, on adapter: String) throws {
        try order(.server, "manage", adapter, "002d", isOn ? "01" : "00")
    }

    // MARK: The version of BlueZ

    private static var bluez: String { ProcessInfo.processInfo.environment["RADIO_BLUEZ"] ?? "" }

    /// Skips a test on a version with which it does not pass; the reason is in the table of the run.
    static func except(bluez version: String, because reason: String) throws {
        try enter()
        if bluez == version { throw XCTSkip("not on BlueZ \(version): \(reason)") }
    }

    /// Returns whether the lab's BlueZ is older than a version, such as `5.76`.
    static func isOlder(than version: String) throws -> Bool {
        try enter()
        // Components are numbers: 5.9 is older than 5.66.
        return bluez.compare(version, options: .numeric) == .orderedAscending
    }
}

/// What takes orders in the lab (`Tests/RadioLab/orders.py`).
enum RadioProgram: String {
    /// Adapters, advertisements, `bluetoothd`, and the others.
    case server
    case peripheral
    case central
    case bluetoothctl
}

enum RadioLabError: Error, CustomStringConvertible {
    case outside
    case notRunning(RadioProgram)
    case failed(_ order: String, _ answer: String)
    case noAnswer(_ order: String, seconds: TimeInterval)

    var description: String {
        switch self {
        case .outside: "The radio tests run inside the radio lab only: make radio-test."
        case .notRunning(let program): "The lab's \(program.rawValue) is not running."
        case .failed(let order, let answer): "`\(order)`: \(answer.isEmpty ? "no answer" : answer)"
        case .noAnswer(let order, let seconds): "`\(order)` was not answered within \(seconds) s."
        }
    }
}
