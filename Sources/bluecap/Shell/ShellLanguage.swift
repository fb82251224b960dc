import ArgumentParser
import BlueCapKit
import Foundation

/// A command of `bluecap shell`, with the arguments of its line.
protocol ShellStatement: ParsableCommand, Sendable {
    /// What a characteristic needs that the command takes; `nil` if it takes none.
    static var wanted: CBCharacteristicProperties? { get }
    /// Its options, which are written without hyphens.
    static var options: [String] { get }

    func run(in shell: Shell) async throws
}

extension ShellStatement {
    static var wanted: CBCharacteristicProperties? { nil }
    static var options: [String] { [] }
}

/// How the lines of a shell are read.
struct ShellLanguage: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "",
        subcommands: [
            TreeStatement.self, ReadStatement.self, WriteStatement.self, NotifyStatement.self, StopStatement.self,
            PairStatement.self, InfoStatement.self, SleepStatement.self, EchoStatement.self, QuitStatement.self,
        ])

    private static let statements = configuration.subcommands.compactMap { $0 as? any ShellStatement.Type }

    static let help = """
          tree, services                         the services, characteristics and descriptors
          read CHARACTERISTIC… [as FORM]         read values
          write CHARACTERISTIC VALUE [as FORM] [without-response]
          notify CHARACTERISTIC [count N] [for SECONDS] [as FORM]
          stop [CHARACTERISTIC]                  end notifications
          pair                                   pair with the peripheral
          info                                   its address, name and bond
          sleep SECONDS
          echo TEXT…
          help
          quit
        """

    private static func statement(named name: String) -> (any ShellStatement.Type)? {
        statements.first { $0.configuration.commandName == name || $0.configuration.aliases.contains(name) }
    }

    /// Reads a line; `nil` if it has no words.
    ///
    /// - Throws: ``ToolFailure`` with the status of wrong arguments.
    static func statement(_ line: String) throws(ToolFailure) -> (any ShellStatement)? {
        let line = ShellWords(line)
        guard !line.isOpen else { throw ToolFailure("A quotation mark is not closed.", status: 64) }
        guard let name = line.words.first?.text else { return nil }
        if name == "help" { return HelpStatement() }
        guard let statement = statement(named: name) else {
            throw ToolFailure("\"\(name)\" is not a command: `help` lists them.", status: 64)
        }
        let words = line.words.map { word in
            !word.isQuoted && statement.options.contains(word.text) ? "--\(word.text)" : word.text
        }
        do {
            // The only other ones are those of --help.
            return try parseAsRoot(words) as? any ShellStatement ?? HelpStatement()
        } catch {
            throw ToolFailure(message(for: error).replacing("--", with: ""), status: 64)
        }
    }

    /// Returns the lines of a file.
    ///
    /// - Throws: ``ToolFailure`` if it cannot be read, and for the first line that is wrong.
    static func script(_ file: String) throws -> [String] {
        guard let data = FileManager.default.contents(atPath: file), let text = String(bytes: data, encoding: .utf8)
        else { throw ToolFailure("\(file) cannot be read, or is not text in UTF-8.") }
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        for (index, line) in lines.enumerated() {
            do throws(ToolFailure) { _ = try statement(line) } catch {
                throw ToolFailure("\(file):\(index + 1): \(error)", status: error.status)
            }
        }
        return lines
    }

    /// Returns what can follow the words of a line.
    static func candidates(after words: [String], in tree: AttributeTree?) -> [String] {
        guard let name = words.first else { return statements.map { $0.configuration.commandName ?? "" } + ["help"] }
        guard let statement = statement(named: name), let wanted = statement.wanted,
            !["count", "for"].contains(words.last)
        else { return [] }
        if words.last == "as" { return ValueForm.allValueStrings }
        let names = words.count == 1 || name == "read" ? tree?.names(usableFor: wanted) ?? [] : []
        return names + (words.count > (name == "write" ? 2 : 1) ? statement.options : [])
    }
}

extension AttributeTree {
    /// Returns the names by which characteristics with one of the properties can be given, in the order of their handles.
    func names(usableFor wanted: CBCharacteristicProperties) -> [String] {
        let all = services.flatMap { service in service.characteristics.map { (service.label, $0) } }
        return all.filter { !$0.1.properties.isDisjoint(with: wanted) }.map { service, entry in
            let namesakes = all.filter { $0.1.label == entry.label }
            guard namesakes.count > 1 else { return entry.label }
            let isAlone = namesakes.count { $0.0 == service } == 1
            return isAlone ? "\(service)/\(entry.label)" : AttributeArgument.text(of: entry.handle)
        }
    }
}

// MARK: Commands

private struct TreeStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "tree", aliases: ["services"])

    func run(in shell: Shell) async throws {
        var tree = try await shell.attributes().tree
        tree.name = shell.remote.name ?? tree.name
        let lines = TreeText(page: Terminal.present.page).lines(tree).map(\.text)
        try await shell.write(lines.joined(separator: "\n"), tree.json)
    }
}

private struct ReadStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "read")
    static let wanted: CBCharacteristicProperties? = .read
    static let options = ["as"]

    @Argument var characteristics: [AttributeArgument]

    @Option(name: .customLong("as")) var form = ValueForm.auto

    func run(in shell: Shell) async throws {
        let style = ValueStyle(form: form, template: shell.format == .json ? .json : nil)
        try await shell.remote.read(characteristics, in: shell.attributes(), style) {
            try await shell.console.write($0)
        }
    }
}

private struct WriteStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "write")
    static let wanted: CBCharacteristicProperties? = [.write, .writeWithoutResponse]
    static let options = ["as", "without-response"]

    @Argument var characteristic: AttributeArgument

    @Argument var value: String

    @Option(name: .customLong("as")) var form: ValueForm?

    @Flag var withoutResponse = false

    func run(in shell: Shell) async throws {
        let (entry, written) = try await shell.remote.write(
            to: characteristic, in: shell.attributes(), withoutResponse: withoutResponse
        ) { try (form ?? .hex).data(of: value, profile: $0) }
        guard shell.format == .json else { return }
        try await shell.console.write(JSON(entry.identity + (form ?? .auto).members(of: written)).text)
    }
}

private struct NotifyStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "notify")
    static let wanted: CBCharacteristicProperties? = [.notify, .indicate]
    static let options = ["count", "for", "as"]

    @Argument var characteristic: AttributeArgument

    @Option var count: Int?

    @Option(name: .customLong("for"), transform: SleepStatement.seconds) var seconds: Double?

    @Option(name: .customLong("as")) var form = ValueForm.auto

    func validate() throws { if count ?? 1 < 1 { throw ValidationError("count takes a number from 1.") } }

    func run(in shell: Shell) async throws {
        try await shell.follow(characteristic, form, count: count, seconds: seconds)
    }
}

private struct StopStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "stop")
    static let wanted: CBCharacteristicProperties? = [.notify, .indicate]

    @Argument var characteristic: AttributeArgument?

    func run(in shell: Shell) async throws { try await shell.stop(characteristic) }
}

private struct PairStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "pair")

    func run(in shell: Shell) async throws {
        try await shell.pair()
        try await InfoStatement().run(in: shell)
    }
}

private struct InfoStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "info")

    func run(in shell: Shell) async throws {
        let device = BondedDevice(shell.remote.peripheral)
        try await shell.write(device.line, device.json)
    }
}

private struct SleepStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "sleep")

    @Argument(transform: seconds) var seconds: Double

    @Sendable static func seconds(_ text: String) throws -> Double {
        guard let seconds = Double(decimal: text), (0.001...1e9).contains(seconds) else {
            throw ValidationError("It takes a number of seconds from 0.001.")
        }
        return seconds
    }

    func run(in shell: Shell) async throws { try await Task.sleep(for: .seconds(seconds)) }
}

private struct EchoStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "echo")

    @Argument(parsing: .captureForPassthrough) var words: [String] = []

    func run(in shell: Shell) async throws {
        let text = words.joined(separator: " ")
        try await shell.write(DisplayText.safe(text), ["event": JSON("echo"), "text": JSON(text)])
    }
}

private struct HelpStatement: ShellStatement {
    func run(in shell: Shell) async throws {
        try await shell.write(ShellLanguage.help, ["event": JSON("help"), "text": JSON(ShellLanguage.help)])
    }
}

struct QuitStatement: ShellStatement {
    static let configuration = CommandConfiguration(commandName: "quit")

    func run(in shell: Shell) async throws {}
}
