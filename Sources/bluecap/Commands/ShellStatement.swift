import ArgumentParser
import BlueCapKit
import Foundation

/// A line of `bluecap shell`.
enum ShellStatement: Sendable {
    /// A command of the tool, for the shell's peripheral.
    case command(any ToolCommand)
    /// `notify … &`, which the next lines do not wait for.
    case background(NotifyCommand)
    case stop(AttributeArgument?)
    /// In seconds.
    case sleep(Double)
    /// Prints a text; in JSON it is that of an event.
    case text(event: String, String)
    case quit

    typealias ToolCommand = AsyncParsableCommand & Sendable

    /// The commands of the tool, each with what a characteristic needs that it takes; `nil` if it takes none.
    private static let commands:
        KeyValuePairs<String, (type: any ToolCommand.Type, wanted: CBCharacteristicProperties?)> =
            [
                "tree": (ExploreCommand.self, nil), "read": (ReadCommand.self, .read),
                "write": (WriteCommand.self, [.write, .writeWithoutResponse]),
                "notify": (NotifyCommand.self, [.notify, .indicate]), "pair": (PairCommand.self, nil),
                "info": (InfoCommand.self, nil), "trust": (TrustCommand.self, nil),
            ]
    private static let others = ["stop", "sleep", "echo", "help", "quit"]

    static let help = """
          tree                         the services, characteristics and descriptors
          read, write, notify          values; notify … & prints them during the next commands
          stop [CHARACTERISTIC]        end notifications in the background
          pair, info, trust            pair with the peripheral; its properties; trust it
          sleep SECONDS
          echo TEXT…
          help [COMMAND]
          quit
        """

    /// Options that belong to the whole shell.
    private static let foreign: Set<String> = [
        "--adapter", "--simulated", "--peripherals", "--bluez", "--timeout", "--verbose", "-v", "--pair", "--pairing",
        "--passkey", "--yes", "--capability",
    ]

    /// Reads a line; returns `nil` if it has no words.
    ///
    /// - Throws: ``ToolFailure`` with the status of wrong arguments.
    init?(_ line: String, for peripheral: PeripheralArgument, isJSON: Bool) throws(ToolFailure) {
        let line = ShellWords(line)
        guard !line.isOpen else { throw ToolFailure("A quotation mark is not closed.", status: 64) }
        let isInBackground = line.words.last == .init(text: "&", start: line.words.last?.start ?? 0)
        let words = line.words.dropLast(isInBackground ? 1 : 0).map(\.text)
        guard let name = words.first else { return nil }
        self = try Self.statement(name, Array(words.dropFirst()), peripheral, isJSON)
        guard isInBackground else { return }
        guard case .command(let command as NotifyCommand) = self else {
            throw ToolFailure("Only notify can run in the background: omit the &.", status: 64)
        }
        self = .background(command)
    }

    private static func statement(
        _ name: String, _ words: [String], _ peripheral: PeripheralArgument, _ isJSON: Bool
    ) throws(ToolFailure) -> Self {
        let word = words.first
        let own: Self? =
            switch name {
            case "echo": .text(event: name, words.joined(separator: " "))
            case _ where words.count > 1: nil
            case "stop" where word == nil: .stop(nil)
            case "stop": word.flatMap { AttributeArgument(argument: $0) }.map { .stop($0) }
            case "sleep": word.flatMap { try? Arguments.seconds($0) }.map { .sleep($0) }
            case "help":
                word == nil ? .text(event: name, help) : try statement(word ?? "", ["--help"], peripheral, isJSON)
            case "quit" where word == nil: .quit
            default: nil
            }
        if let own { return own }
        guard !others.contains(name) else {
            throw ToolFailure(
                "\(name) does not take \"\(words.joined(separator: " "))\": `help` says what.", status: 64)
        }
        guard let known = commands.first(where: { $0.key == name })?.value.type else {
            let names = commands.map(\.key) + others
            throw ToolFailure(
                "\"\(name)\" is not a command: `help` lists them.\(Suggestion.text(for: name, among: names))",
                status: 64)
        }
        let options = words.map { String($0.prefix { $0 != "=" }) }
        if let option = options.first(where: foreign.contains) {
            throw ToolFailure("\(option) is an option of the whole shell: `bluecap shell --help` has it.", status: 64)
        }
        guard !words.contains("-") || name != "write" else {
            throw ToolFailure("A shell does not read a value from standard input: write the value.", status: 64)
        }
        var arguments = [peripheral.text] + words
        if name == "tree" { arguments.append("--no-values") }
        if isJSON, Set(options).isDisjoint(with: ["--json", "--csv", "--format"]) {
            arguments.append("--json")
        }
        return try parse(known, BlueCapTool.withNegativeNumber([name] + arguments))
    }

    private static func parse<Command: ToolCommand>(
        _ type: Command.Type, _ words: [String]
    ) throws(ToolFailure) -> Self {
        do {
            return .command(try type.parse(Array(words.dropFirst())))
        } catch  where type.exitCode(for: error) == .success {
            return .text(event: "help", type.fullMessage(for: error))
        } catch {
            throw ToolFailure(type.message(for: error), status: 64)
        }
    }

    /// Returns the lines of a file.
    ///
    /// - Throws: ``ToolFailure`` if it cannot be read, and for the first line that is wrong.
    static func script(_ file: String, for peripheral: PeripheralArgument) throws -> [String] {
        guard let data = FileManager.default.contents(atPath: file), let text = String(bytes: data, encoding: .utf8)
        else { throw ToolFailure("\(file) cannot be read, or is not text in UTF-8.") }
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        for (index, line) in lines.enumerated() {
            do throws(ToolFailure) { _ = try Self(line, for: peripheral, isJSON: false) } catch {
                throw ToolFailure("\(file):\(index + 1): \(error)", status: error.status)
            }
        }
        return lines
    }

    /// Returns what can follow the words of a line.
    static func candidates(after words: [String], in tree: AttributeTree?) -> [String] {
        guard let name = words.first else { return commands.map(\.key) + others }
        if name == "stop" { return tree?.names(usableFor: [.notify, .indicate]) ?? [] }
        if name == "help" { return commands.map(\.key) }
        guard let (type, wanted) = commands.first(where: { $0.key == name })?.value else { return [] }
        if words.last == "--as" { return ValueForm.allValueStrings }
        let names = wanted.flatMap { wanted in
            words.count == 1 || name != "write" ? tree?.names(usableFor: wanted) : nil
        }
        let options = type.helpMessage().matches(of: /\n +(?:-\w, )?(--[a-z-]+)/).map { String($0.1) }
        return (names ?? []) + options.filter { !foreign.contains($0) && !words.contains($0) }
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
