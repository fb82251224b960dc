import ArgumentParser
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

    static func main() async {
        Output.holdClosedDescriptors()
        await main(nil)
    }

    static let versionText = "bluecap 0.1.0"
}

/// What every command understands.
struct CommonOptions: ParsableArguments {
    @Flag(name: [.short, .long], help: "Log what happens to standard error; given twice, every sighting too.")
    var verbose: Int

    func makeLogger() -> Logger {
        var logger = Logger(label: "bluecap") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = verbose == 0 ? .warning : verbose == 1 ? .debug : .trace
        return logger
    }
}
