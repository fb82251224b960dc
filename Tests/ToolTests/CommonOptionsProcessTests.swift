import TestBasics
import XCTest

/// Options of the same name have the same meaning in every command, and so the same help text, default and form.
final class CommonOptionsProcessTests: XCTestCase, StartsPrograms {
    /// The commands' help as `--experimental-dump-help` prints it.
    private struct Help: Decodable {
        struct Name: Decodable, Equatable {
            var kind: String
            var name: String
        }

        struct Argument: Decodable, Equatable {
            var kind: String
            var names: [Name]?
            var valueName: String?
            var abstract: String?
            var defaultValue: String?
            var isOptional: Bool
            var isRepeating: Bool
            var parsingStrategy: String

            func isNamed(_ name: String) -> Bool { names?.contains { $0.kind == "long" && $0.name == name } == true }
        }

        struct Command: Decodable {
            var commandName: String
            var abstract: String?
            var discussion: String?
            var arguments: [Argument]?
            var subcommands: [Command]?

            /// This command and all below it that do something.
            func all(after words: [String] = []) -> [(name: String, command: Command)] {
                let words = words + [commandName]
                let below = (subcommands ?? []).filter { $0.commandName != "help" }
                return [(words.dropFirst().joined(separator: " "), self)] + below.flatMap { $0.all(after: words) }
            }
        }

        var command: Command
    }

    private func commands() throws -> [String: Help.Command] {
        let result = try ToolRun("--experimental-dump-help").finish()
        let help = try JSONDecoder().decode(Help.self, from: Data(result.output.utf8))
        let commands = help.command.all().filter { !$0.name.isEmpty }
        return Dictionary(uniqueKeysWithValues: commands)
    }

    /// The commands that do not have an option.
    private static let exceptions: [String: Set<String>] = [
        "verbose": [],
        // They are the simulator: it has several adapters, and prints its address or nothing.
        "adapter": ["simulate", "simulate fault"],
        "simulated": ["simulate", "simulate fault"],
        "json": ["simulate", "simulate fault"],
        // Those that connect to no peripheral.
        "timeout": [
            "doctor", "adapters", "scan", "unpair", "bonds", "serve", "advertise", "beacon", "simulate",
            "simulate fault",
        ],
    ]

    func testTheCommonOptionsAreTheSameInEveryCommand() throws {
        let commands = try commands()
        XCTAssertGreaterThan(commands.count, 12)
        for (option, without) in Self.exceptions {
            var first: Help.Argument?
            for (name, command) in commands {
                let argument = command.arguments?.first { $0.isNamed(option) }
                XCTAssertEqual(argument == nil, without.contains(name), "--\(option) of bluecap \(name)")
                guard let argument else { continue }
                XCTAssertEqual(argument, first ?? argument, "--\(option) of bluecap \(name)")
                first = argument
            }
        }
    }

    /// An option that several commands have, such as --duration, but means something else in two of them.
    private static let different: [String: Set<String>] = [
        // What is advertised, or what is looked for.
        "name": ["scan", "advertise", "serve"], "service": ["scan", "advertise"],
        // What is advertised, with its data, or what is looked for; and how many of what.
        "manufacturer": ["scan", "advertise"], "count": ["scan"],
        // The time between two packets, or between two values that are read.
        "interval": ["advertise", "monitor"],
        // An answer to a pairing, or to a question about all bonds.
        "yes": ["unpair"],
        // That of an advertisement, or of an adapter.
        "discoverable": ["advertise", "adapters"],
        // How a value is read, or printed, or how several are printed.
        "as": ["read", "write", "notify"],
    ]

    func testOptionsOfOneNameAreOneOption() throws {
        var first: [String: (name: String, argument: Help.Argument)] = [:]
        for (name, command) in try commands().sorted(by: { $0.key < $1.key }) {
            for argument in command.arguments ?? [] {
                for option in argument.names ?? [] where option.kind == "long" {
                    guard Self.different[option.name]?.contains(name) != true else { continue }
                    let known = first[option.name] ?? (name, argument)
                    XCTAssertEqual(argument, known.argument, "--\(option.name) of \(name) and \(known.name)")
                    first[option.name] = known
                }
            }
        }
    }

    func testEveryCommandSaysWhatItDoesAndEveryArgumentToo() throws {
        for (name, command) in try commands() {
            XCTAssertTrue(command.abstract?.hasSuffix(".") == true, name)
            XCTAssertTrue(command.discussion?.contains("Examples:") == true, name)
            for argument in command.arguments ?? [] {
                XCTAssertFalse((argument.abstract ?? "").isEmpty, "\(name): \(argument.valueName ?? "")")
            }
        }
    }

    func testEveryCommandIsInTheCompletionsAndHasAManualPage() throws {
        let names = try commands().keys
        for shell in ["bash", "zsh", "fish"] {
            let script = try ToolRun("--generate-completion-script", shell).finish().output
            for name in names {
                let word = try XCTUnwrap(name.split(separator: " ").last)
                XCTAssertTrue(script.contains(word), "\(shell): \(name)")
            }
        }
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let folder = NSTemporaryDirectory() + "bluecap-pages-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try ToolRun(script: #"'\#(root.path)/Scripts/man-pages' "$BLUECAP" '\#(folder)'"#).finish(
            status: 0)
        for name in names {
            let page = "\(folder)/bluecap-\(name.replacing(" ", with: "-")).1"
            XCTAssertTrue(try String(contentsOfFile: page, encoding: .utf8).contains(".SH EXAMPLES"), page)
        }
    }
}
