import ArgumentParser
import BlueCapKit
import Foundation

struct ShellCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shell",
        abstract: "Carry out many commands over one connection.",
        discussion: """
            It connects, and carries out the commands that are typed. Tab completes commands and characteristics, the arrows \
            bring back earlier lines, which are kept in the state directory unless they begin with a space. What a \
            characteristic sends is printed above the line that is typed. A lost link is restored. Ctrl-C interrupts the \
            present command, and so ends the notifications that it prints; a second one, Ctrl-D or quit ends.

            Without a terminal it reads the commands from standard input, and has no prompt. The first error ends it, unless \
            --keep-going is given, and names the number of its line.

            \(ShellOptions.language)

            Examples:
              bluecap shell "Pulse Strap 7F" --simulated
              echo 'read 2A19 2A38' | bluecap shell "Pulse Strap 7F" --simulated

            \(ShellOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @OptionGroup var options: ShellOptions

    func validate() throws { if !ExploreCommand.hasScreen { try options.checkStandardInput() } }

    func run() async throws {
        let source: Shell.Source = ExploreCommand.hasScreen ? .terminal : .lines(ShellOptions.standardInput)
        try await options.run(source, remote)
    }
}

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Carry out the commands of a file over one connection.",
        discussion: """
            It connects, and carries out the lines of the file, or of standard input if the file is "-", one after the \
            other. The first error ends it, unless --keep-going is given, and names its line. A file is checked before the \
            connection is made. At the end of the file it disconnects; a last notify needs --count or --duration.

            \(ShellOptions.language)

            Examples:
              printf 'read 2A19\\nnotify 2A37 --count 3\\n' > strap.txt
              bluecap run strap.txt "Pulse Strap 7F" --simulated
              echo 'write 2A39 01' | bluecap run - "Pulse Strap 7F" --simulated

            \(ShellOptions.statuses)
            """)

    @Argument(
        help: ArgumentHelp("The file with the commands; \"-\" reads standard input.", valueName: "file"),
        completion: .file())
    var file: String

    @OptionGroup var remote: RemoteOptions

    @OptionGroup var options: ShellOptions

    func validate() throws { if file == "-" { try options.checkStandardInput() } }

    func run() async throws {
        try await options.run(
            file == "-"
                ? .lines(ShellOptions.standardInput)
                : .script(name: file, ShellStatement.script(file, for: remote.peripheral)),
            remote)
    }
}

struct ShellOptions: ParsableArguments {
    @Flag(help: "Continue after an error.")
    var keepGoing = false

    @OptionGroup var json: JSONOption

    @OptionGroup var pairing: PairingOptions

    static let standardInput = InputLines(STDIN_FILENO, longest: 65_536, takesRest: true)

    /// For the help of both commands.
    static let language = """
        Commands:
        \(ShellStatement.help)

        The commands are those of `bluecap` with their arguments and options, but without the peripheral: `help read`. \
        Words with spaces are enclosed in quotation marks, and # begins a comment. An & at its end lets notify print the \
        values during the next commands, until stop. With --json all commands print JSON, unless they have --csv or --format.
        """

    /// The end of the help of both commands.
    static let statuses = """
        Status: that of the first command that failed, 64 for a line that is no command; on a terminal 0. Otherwise: \
        \(RemoteOptions.statuses)
        """

    func checkStandardInput() throws {
        guard case .lines? = pairing.answers.passkey else { return }
        throw ValidationError("Standard input has the commands: write the passkey as --passkey DIGITS.")
    }

    /// - Throws: `ExitCode` after the errors that were printed.
    func run(_ source: Shell.Source, _ remote: RemoteOptions) async throws {
        let status = Locked<Int32>(0)
        try await remote.withSession(pairing.plan(), isPersistent: true) { [self] session in
            var session = session
            let refusal = Locked<ToolFailure?>(nil)
            session.refusal = refusal
            try await session.run { [session] remote in
                let shell = Shell(
                    session, remote, source, isJSON: json.isOn, keepsGoing: keepGoing, refusal: refusal)
                defer { status.withLock { $0 = shell.status } }
                try await shell.run()
            }
        }
        let first = status.withLock { $0 }
        if first != 0 { throw ExitCode(first) }
    }
}
