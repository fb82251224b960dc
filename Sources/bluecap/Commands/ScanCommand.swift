import ArgumentParser
import BlueCapKit
import Foundation

/// `bluecap scan`.
struct ScanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scan",
        abstract: "Show who is advertising.",
        discussion: """
            On a terminal it shows a table that follows what is heard, strongest first. Elsewhere, and with \
            --duplicates, it prints lines: when a peripheral is discovered, when it tells more of itself (a name, a \
            service), and when it has fallen silent; with --duplicates one for every sighting. Ctrl-C ends the scan, \
            prints the summary and leaves nothing running in BlueZ.

            With --json each line is an object. Its "event" is "discovered", once for each peripheral, later "updated" \
            or "expired", with the members identifier, address, addressType, name, rssi, txPower, services, \
            manufacturerData (hexadecimal, by company identifier), serviceData (by service), connectable, beacons (what \
            sort of beacon it is: kind and its numbers); what is not known is null. The last line is {"event":"finished","peripherals":8,"seconds":3.002}.

            Examples:
              bluecap scan
              bluecap scan --simulated --duration 10
              bluecap scan --simulated --peripherals crowd:100
              bluecap scan --service "Heart Rate" --rssi -70
              bluecap scan --json --duration 5 | jq -r .name

            Status: 0 when the scan ended as asked, also by Ctrl-C; 1 without a usable Bluetooth adapter; 64 for bad \
            arguments.
            """)

    @OptionGroup var radio: RadioOptions

    @Option(
        name: .customLong("service"),
        help: ArgumentHelp(
            "Only who advertises this service, by UUID or by name; may be given several times.", valueName: "uuid"))
    var services: [ServiceArgument] = []

    // Unconditional: a strength begins with a dash, and is no option.
    @Option(
        parsing: .unconditional, help: ArgumentHelp("Only who is at least this strong, such as -70.", valueName: "dbm"),
        transform: NumberArgument.strength)
    var rssi: Int?

    @Option(help: ArgumentHelp("Only who has a name, or an address, that begins so.", valueName: "prefix"))
    var name: String?

    @Option(
        help: ArgumentHelp("End after so many seconds.", valueName: "seconds"),
        transform: NumberArgument.seconds)
    var duration: Double?

    @Flag(help: "Print every sighting, not only news.")
    var duplicates = false

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    @OptionGroup var common: CommonOptions

    func validate() throws {
        if name?.isEmpty == true { throw ValidationError("--name takes the beginning of a name; it was empty.") }
    }

    func run() async throws {
        Output.ignoreBrokenPipes()
        do {
            try await scan()
        } catch let failure as ToolFailure {
            throw failure.reported()
        }
    }

    private func scan() async throws {
        let room = try radio.room()
        defer { room?.end() }
        let session = ScanSession(request(on: room?.address), logger: common.makeLogger())
        let terminal = Terminal.present
        let isLive = terminal.canRedraw && !json && !duplicates && !logsToTerminal
        watchSignals(session, isLive: isLive)
        Output.standard.whenReaderLeaves { session.post(.event(.readerLeft)) }
        if isLive {
            try await session.run(on: LiveDisplay(output: .standard, terminal: terminal))
        } else if json {
            try await session.run(
                on: LineDisplay(reporter: JSONLines(includesDuplicates: duplicates), output: .standard))
        } else {
            try await session.run(
                on: LineDisplay(reporter: PlainLines(includesDuplicates: duplicates), output: .standard))
        }
    }

    /// Log lines would tear the table.
    private var logsToTerminal: Bool { common.verbose > 0 && Output.error.isTerminal }

    private func request(on busAddress: String?) -> ScanRequest {
        ScanRequest(
            busAddress: busAddress, adapter: radio.adapter, services: services.map(\.uuid), weakestRSSI: rssi,
            namePrefix: name, duration: duration)
    }

    private func watchSignals(_ session: ScanSession, isLive: Bool) {
        SignalWatcher.watch(SignalWatcher.endings) { signal, count in
            if count == 1 { return session.post(.event(.interrupted)) }
            // Asked a second time, and BlueZ has not yet answered: BlueZ ends our discovery itself when we are gone.
            if isLive { Output.standard.write(LiveScreen.end) }
            _exit(128 + signal)
        }
        if isLive {
            SignalWatcher.watch([SIGWINCH]) { _, _ in session.post(.terminalChanged) }
            SignalWatcher.watch([SIGTSTP]) { _, _ in
                // Ctrl-Z: the shell needs its cursor; and what it writes meanwhile must not be drawn over.
                Output.standard.write(LiveScreen.end)
                kill(getpid(), SIGSTOP)
                session.post(.resumed)
            }
        }
    }
}
