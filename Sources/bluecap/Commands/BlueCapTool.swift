import ArgumentParser
import Foundation
import Logging

/// `bluecap`: Bluetooth LE from the command line.
@main
struct BlueCapTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bluecap",
        abstract: "Bluetooth LE from the command line, over BlueZ or without any radio.",
        discussion: """
            Examples:
              bluecap scan                          who is advertising here
              bluecap scan --simulated              the same in a simulated room
              bluecap scan --service 180D --json    heart rate monitors, as JSON
              bluecap explore "Pulse Strap 7F"      its services and their values
              bluecap read C0:5A:17:00:18:0D 2A19   one value
              bluecap notify "Pulse Strap 7F" 2A37  the values that it sends
              bluecap serve heart-rate              be a peripheral
              bluecap beacon --url https://a.b/     be a beacon
              bluecap simulate -- bluetoothctl      any BLE program in that room
            """,
        version: BlueCapTool.versionText,
        subcommands: [
            ScanCommand.self, ExploreCommand.self, ReadCommand.self, WriteCommand.self, NotifyCommand.self,
            ServeCommand.self, AdvertiseCommand.self, BeaconCommand.self, SimulateCommand.self,
        ])

    /// As the argument parser's own, but for its messages: they quote arguments, which must not disturb a terminal; and
    /// output that cannot be written is a failure, also that of a help text.
    static func main() async {
        Output.holdClosedDescriptors()
        if let shortage = OpenFiles.shortage { exit(withError: shortage.reported()) }
        do {
            var command = try await asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            Foundation.exit(report(error).rawValue)
        }
    }

    /// Prints what an error has to say to people, and gives the status to leave with.
    private static func report(_ error: any Error) -> ExitCode {
        let status = exitCode(for: error)
        let message = fullMessage(for: error)
        guard !message.isEmpty else { return status }
        let text = message.split(separator: "\n", omittingEmptySubsequences: false)
            .map { DisplayText.safe(String($0)) + "\n" }.joined()
        Output.ignoreBrokenPipes()
        guard status == .success else {
            Output.error.write(text)
            return status
        }
        return Output.standard.write(text).failure?.reported() ?? status
    }

    static let versionText = "bluecap 0.1.0"
}

/// What every command understands.
struct CommonOptions: ParsableArguments {
    @Flag(name: [.short, .long], help: "Log what happens to standard error; given twice, every sighting too.")
    var verbose: Int

    func makeLogger() -> Logger {
        var logger = Logger(label: "bluecap") { SafeLog(base: StreamLogHandler.standardError(label: $0)) }
        logger.logLevel = verbose == 0 ? .warning : verbose == 1 ? .debug : .trace
        return logger
    }
}

/// A log of which each part is safe to print, since it quotes names and messages from outside.
private struct SafeLog: LogHandler {
    var base: StreamLogHandler

    var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }

    var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(DisplayText.safe(event.message.description))"
        event.metadata = event.metadata?.mapValues { .string(DisplayText.safe($0.description)) }
        base.log(event: event)
    }
}
