import ArgumentParser
import Foundation

/// `bluecap`: Bluetooth LE from the command line.
@main
struct BlueCapTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bluecap",
        abstract: "Bluetooth LE from the command line, over BlueZ or without any radio.",
        discussion: """
            Examples:
              bluecap                                # everything, on the whole screen
              bluecap --simulated                    # the same without a radio
              bluecap scan                           # the peripherals that advertise
              bluecap scan --service 180D --json     # heart rate monitors, as JSON
              bluecap explore "Pulse Strap 7F"       # its services and their values
              bluecap read C0:5A:17:00:18:0D 2A19    # one value
              bluecap notify "Pulse Strap 7F" 2A37   # the values that it sends
              bluecap monitor "Pulse Strap 7F" 2A37  # a live plot of them
              bluecap shell "Pulse Strap 7F"         # many commands over one connection
              bluecap pair "Front Door"              # pair, and store the keys
              bluecap serve heart-rate               # be a peripheral
              bluecap beacon --url https://a.b/      # be a beacon
              bluecap simulate -- bluetoothctl       # any BLE program in simulation
              bluecap adapters --power on            # switch the adapter on
              bluecap doctor                         # why Bluetooth does not work here

            Environment:
              BLUECAP_ADAPTER          the adapter, if --adapter is not given
              BLUECAP_LOG              the level of the log, such as debug
              BLUECAP_SIMULATOR        the socket of the simulator, for simulate fault
              DBUS_SYSTEM_BUS_ADDRESS  the bus on which BlueZ is
              NO_COLOR                 disables colours, if it is not empty
              XDG_STATE_HOME           the parent of the folder bluecap, with notes on bonds
            """,
        version: BlueCapTool.versionText,
        subcommands: [
            ScanCommand.self, ExploreCommand.self, ReadCommand.self, WriteCommand.self, NotifyCommand.self,
            MonitorCommand.self, ShellCommand.self, RunCommand.self,
            PairCommand.self, UnpairCommand.self, BondsCommand.self, ServeCommand.self, AdvertiseCommand.self,
            AdaptersCommand.self, ConnectCommand.self, DisconnectCommand.self, InfoCommand.self, TrustCommand.self,
            BeaconCommand.self, SimulateCommand.self, DoctorCommand.self,
        ])

    /// As the argument parser's own `main`, with two differences: its messages quote arguments, which must not disturb a
    /// terminal; and output that cannot be written is a failure, also that of a help text.
    static func main() async {
        Output.holdClosedDescriptors()
        do {
            try Output.checkOpenFiles()
            let arguments = arguments
            try checkCommands(arguments)
            var command = try await asyncParseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let failure as ToolFailure {
            Foundation.exit(failure.reported().rawValue)
        } catch {
            Foundation.exit(report(error).rawValue)
        }
    }

    /// The arguments of the process. On a terminal, options without a command are those of the full-screen program.
    private static var arguments: [String] {
        let arguments = withNegativeNumber(Array(CommandLine.arguments.dropFirst()))
        let isCommand = arguments.first.map { !$0.hasPrefix("-") } ?? false
        let isQuestion =
            arguments.contains { ["-h", "--help", "--version", "--experimental-dump-help"].contains($0) }
            || arguments.first?.hasPrefix("--generate-completion-script") == true
        return isCommand || isQuestion || !ExploreCommand.hasScreen ? arguments : ["explore"] + arguments
    }

    /// Makes a negative number a value to write. No option begins with a digit.
    static func withNegativeNumber(_ arguments: [String]) -> [String] {
        let isNegative = { (argument: String) in argument.starts(with: /-\.?\d/) }
        guard arguments.first == "write", !arguments.contains("--"),
            let place = arguments.lastIndex(where: isNegative)
        else { return arguments }
        return arguments[..<place] + arguments[(place + 1)...] + ["--", arguments[place]]
    }

    /// Refuses a command that does not exist: the argument parser prints the help of the one above it.
    private static func checkCommands(_ arguments: [String]) throws {
        var known: [any ParsableCommand.Type] = configuration.subcommands
        let words = arguments.first == "help" ? arguments.dropFirst() : arguments.prefix(1)
        for word in words.filter({ !$0.hasPrefix("-") }) {
            let names = known.map { $0.configuration.commandName ?? "" }
            guard let index = names.firstIndex(of: word) else {
                throw ValidationError(
                    "There is no command \"\(word)\".\(Suggestion.text(for: word, among: names))")
            }
            known = known[index].configuration.subcommands
        }
    }

    /// Moves the options of simulation to the end of a help text: the argument parser prints options with a title first.
    static func withSimulationLast(_ help: String) -> String {
        var lines = help.split(separator: "\n", omittingEmptySubsequences: false)
        guard let start = lines.firstIndex(of: "\(SimulationOptions.title.uppercased()):"),
            let end = lines[start...].firstIndex(of: "OPTIONS:")
        else { return help }
        lines += lines[start..<end]
        lines.removeSubrange(start..<end)
        return lines.joined(separator: "\n")
    }

    /// Prints the argument parser's message for an error, and returns the exit status.
    private static func report(_ error: any Error) -> ExitCode {
        let status = exitCode(for: error)
        let message = withSimulationLast(fullMessage(for: error))
        guard !message.isEmpty else { return status }
        let text = DisplayText.lines(message) + "\n"
        CommandRun.ignoreBrokenPipes()
        do {
            try (status == .success ? Output.standard : .error).write(text)
        } catch let failure as ToolFailure where status == .success {
            return failure.reported()
        } catch {}
        return status
    }

    static let versionText = "bluecap 0.2.0"
}
