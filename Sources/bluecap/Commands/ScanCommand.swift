import ArgumentParser
import BlueCapKit
import Foundation

struct ScanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scan",
        abstract: "Show the peripherals that advertise.",
        discussion: """
            On a terminal it shows a table that is updated continuously, with the strongest first. Elsewhere, and with \
            --duplicates, it prints a line when a peripheral is discovered, when it advertises something new (a name, a \
            service), and when it has been silent for long; with --duplicates, for every sighting. Ctrl-C ends the scan, \
            prints the summary and leaves nothing running in BlueZ.

            With --json each line is an object. Its "event" is "discovered", once for each peripheral, later "updated" \
            or "expired", with the members identifier, address, addressType, name, rssi, txPower, services, \
            manufacturerData (hexadecimal, by company identifier), serviceData (by service), connectable, beacons (kind \
            and numbers of each); what is not known is null. The last line is \
            {"event":"finished","peripherals":8,"seconds":3.002}.

            --statistics adds at the end, also after Ctrl-C, the number of sightings, their rate per second, and for each \
            peripheral its sightings and the mean interval between them in seconds: on standard error, or with --json as \
            one more line with the "event" "statistics" and the members seconds, sightings, perSecond, \
            restarts (of the scan), and peripherals (address, name, sightings, interval). BlueZ reports a changed advertisement or signal, not each packet.

            Examples:
              bluecap scan
              bluecap scan --simulated --duration 10
              bluecap scan --simulated --peripherals crowd:100
              bluecap scan --service "Heart Rate" --rssi -70
              bluecap scan --json --duration 5 | jq -r .name

            Status: 0 when the scan ended as requested, also by Ctrl-C; 1 on failure, with one line that says why; \
            3 without a usable Bluetooth adapter; 64 for wrong arguments.
            """)

    @OptionGroup var radio: RadioOptions

    @Option(
        name: .customLong("service"),
        help: ArgumentHelp(
            "Only peripherals with this service, by UUID or by name; may be given several times.", valueName: "uuid"),
        completion: Arguments.serviceNames, transform: Arguments.service)
    var services: [CBUUID] = []

    // Unconditional: a strength begins with a dash, and is no option.
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Only peripherals at least this strong, such as -70.", valueName: "dbm"),
        transform: Arguments.strength)
    var rssi: Int?

    @Option(help: ArgumentHelp("Only peripherals with a name, or an address, that begins so.", valueName: "prefix"))
    var name: String?

    @OptionGroup var duration: DurationOption

    @Flag(help: "Print every sighting, not only what is new.")
    var duplicates = false

    @Flag(help: "Print at the end how often each peripheral was received.")
    var statistics = false

    @OptionGroup var json: JSONOption

    @OptionGroup var common: CommonOptions

    func validate() throws {
        if name?.isEmpty == true { throw ValidationError("--name takes the beginning of a name; it was empty.") }
    }

    func run() async throws {
        let format = duplicates ? json.format() : json.format(drawingUnless: common)
        try await radio.run(common) { [self] radio in
            try await Scan(
                radio: radio, services: services, weakestRSSI: rssi, namePrefix: name, duration: duration.seconds,
                includesDuplicates: duplicates, showsStatistics: statistics, format: format
            ).run()
        }
    }
}
