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
              bluecap                               everything, on the whole screen
              bluecap --simulated                   the same without a radio
              bluecap scan                          the peripherals that advertise
              bluecap scan --service 180D --json    heart rate monitors, as JSON
              bluecap explore "Pulse Strap 7F"      its services and their values
              bluecap read C0:5A:17:00:18:0D 2A19   one value
              bluecap notify "Pulse Strap 7F" 2A37  the values that it sends
              bluecap monitor "Pulse Strap 7F" 2A37 a live plot of them
              bluecap shell "Pulse Strap 7F"        many commands over one connection
              bluecap pair "Front Door"             pair, and store the keys
              bluecap serve heart-rate              be a peripheral
              bluecap beacon --url https://a.b/     be a beacon
              bluecap simulate -- bluetoothctl      any BLE program in simulation
              bluecap doctor                        why Bluetooth does not work here
            """,
        version: BlueCapTool.versionText,
        subcommands: [
            ScanCommand.self, ExploreCommand.self, ReadCommand.self, WriteCommand.self, NotifyCommand.self,
            MonitorCommand.self, ShellCommand.self, RunCommand.self,
            PairCommand.self, UnpairCommand.self, BondsCommand.self, ServeCommand.self, AdvertiseCommand.self,
            BeaconCommand.self, SimulateCommand.self, DoctorCommand.self,
        ])

    /// As the argument parser's own `main`, with two differences: its messages quote arguments, which must not disturb a
    /// terminal; and output that cannot be written is a failure, also that of a help text.
    static func main() async {
        Output.holdClosedDescriptors()
        do {
            try Output.checkOpenFiles()
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
        var arguments = Array(CommandLine.arguments.dropFirst())
        // A negative number is a value to write. No option begins with a digit.
        let isNegative = { (argument: String) in argument.starts(with: /-\.?\d/) }
        if arguments.first == "write", !arguments.contains("--"), let place = arguments.lastIndex(where: isNegative) {
            arguments += ["--", arguments.remove(at: place)]
        }
        let isCommand = arguments.first.map { !$0.hasPrefix("-") } ?? false
        let isQuestion =
            arguments.contains { ["-h", "--help", "--version", "--experimental-dump-help"].contains($0) }
            || arguments.first?.hasPrefix("--generate-completion-script") == true
        return isCommand || isQuestion || !ExploreCommand.hasScreen ? arguments : ["explore"] + arguments
    }

    /// Prints the argument parser's message for an error, and returns the exit status.
    private static func report(_ error: any Error) -> ExitCode {
        let status = exitCode(for: error)
        let message = fullMessage(for: error)
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
