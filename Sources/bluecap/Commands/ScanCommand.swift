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

            Filters can be given several times: one of the same kind has to fit, and all kinds. They compare what a \
            peripheral has advertised so far. --not takes named, name=…, address=…, service=…, manufacturer=… or \
            manufacturer-data=…. A name between slashes is a regular expression: /^Strap [0-9]+$/, or /(?i)strap/ for \
            upper and lower case.

            With --first or --count the scan ends when so many peripherals were discovered, with status 0; if --duration \
            is over before that, with status 1.

            With --json each line is an object. Its "event" is "discovered", once for each peripheral, later "updated" \
            or "expired", with the members time, identifier, address, addressType, name, rssi, txPower, services, \
            manufacturerData (hexadecimal, by company identifier), serviceData (by service), connectable, beacons (kind \
            and numbers of each), readings (what a sensor measures: format, sequenceNumber, encrypted, and values with \
            name, value and unit); what is not known is null. The last line is \
            {"event":"finished","time":…,"peripherals":8,"seconds":3.002}.

            --statistics adds at the end, also after Ctrl-C, the number of sightings, their rate per second, and for each \
            peripheral its sightings and the mean interval between them in seconds: on standard error, or with --json as \
            one more line with the "event" "statistics" and the members time, seconds, sightings, perSecond, \
            restarts (of the scan), and peripherals (address, name, sightings, interval). BlueZ reports a changed advertisement or signal, not each packet.

            With --csv and --format each event is a row, or a text with fields: time (as in JSON), clock (the time of day), \
            event, address, name, rssi and txPower (in dBm), services, makers, details (of beacons and sensors), and \
            field:NAME (a value of a sensor, such as {field:temperature}); what is not known is empty. --output appends \
            the lines to a file; with --rotate, a file that would be greater becomes FILE.1, and the one before FILE.2.

            Examples:
              bluecap scan
              bluecap scan --simulated --duration 10
              bluecap scan --simulated --peripherals crowd:100
              bluecap scan --service "Heart Rate" --rssi -70
              bluecap scan --json --duration 5 | jq -r .name
              bluecap scan --manufacturer Apple --manufacturer-data 0215 --not named
              bluecap scan --name '/^Strap/' --first --duration 30 && echo "It is here."
              bluecap scan --format '{clock} {name} {rssi}' --duplicates
              bluecap scan --csv --output seen.csv --rotate 10MB
              bluecap scan --key 54:48:E6:8F:80:A5=231d39c1d7cc1ab1aee224cd096db932

            Status: 0 when the scan ended as requested, also by Ctrl-C; 1 on failure, with one line that says why, or if \
            fewer peripherals were discovered than --first or --count require; 3 without a usable Bluetooth adapter; 64 for \
            wrong arguments; 128 and the signal's number if a signal ended a scan with --first or --count.
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

    @Option(
        help: ArgumentHelp("Only names, or addresses, that begin so, or names that match /…/.", valueName: "prefix"),
        transform: ScanFilter.Criterion.name)
    var name: [ScanFilter.Criterion] = []

    @Flag(help: "Only peripherals with a name.")
    var named = false

    @Option(
        help: ArgumentHelp("Only peripherals with an address that begins so.", valueName: "address"),
        transform: ScanFilter.Criterion.beginning(ofAddress:))
    var address: [ScanFilter.Criterion] = []

    @Option(
        help: ArgumentHelp("Only peripherals with data of a company, by its number or name.", valueName: "company"),
        transform: { .company(try Arguments.companies($0)) })
    var manufacturer: [ScanFilter.Criterion] = []

    @Option(
        help: ArgumentHelp("Only peripherals with manufacturer data that begins so.", valueName: "hex"),
        transform: { .data(try Arguments.bytes($0)) })
    var manufacturerData: [ScanFilter.Criterion] = []

    @Option(
        help: ArgumentHelp("Only peripherals that such a filter does not admit.", valueName: "filter[=value]"),
        transform: ScanFilter.Criterion.any)
    var not: [ScanFilter.Criterion] = []

    @Option(
        help: ArgumentHelp("End when so many peripherals were discovered.", valueName: "number"),
        transform: Arguments.whole(1...1_000_000_000, "peripherals"))
    var count: Int?

    @Flag(help: "End when a peripheral was discovered: --count 1.")
    var first = false

    @OptionGroup var duration: DurationOption

    @Flag(help: "Print every sighting, not only what is new.")
    var duplicates = false

    @Flag(help: "Print at the end how often each peripheral was received.")
    var statistics = false

    @OptionGroup var formats: FormatOptions

    @OptionGroup var lines: LineOptions<Sighting>

    @OptionGroup var common: CommonOptions

    func validate() throws {
        if first, count != nil { throw ValidationError("--first is --count 1: omit one of them.") }
    }

    func run() async throws { try await formats.withFormats(scan) }

    private func scan() async throws {
        let filter = ScanFilter(
            wanted: [name, address, manufacturer, manufacturerData, named ? [.named] : []], unwanted: not)
        let isDrawn = !duplicates && lines.output == nil
        let format = lines.format ?? (isDrawn ? lines.json.format(drawingUnless: common) : .lines)
        let output = try lines.open()
        try await radio.run(common) { [self] radio in
            try await Scan(
                radio: radio, services: services, weakestRSSI: rssi, filter: filter, count: first ? 1 : count,
                duration: duration.seconds, includesDuplicates: duplicates, showsStatistics: statistics, format: format,
                output: output
            ).run()
        }
    }
}

extension ScanFilter.Criterion {
    /// The beginning of a name or an address, or a regular expression between slashes.
    @Sendable static func name(_ text: String) throws -> Self {
        guard !text.isEmpty else { throw ValidationError("It takes the beginning of a name; it was empty.") }
        guard text.count > 2, text.hasPrefix("/"), text.hasSuffix("/") else { return .prefix(text) }
        do {
            return .expression(Locked(try Regex(String(text.dropFirst().dropLast()))))
        } catch {
            throw ValidationError("It is not a regular expression: \(error).")
        }
    }

    @Sendable static func beginning(ofAddress text: String) throws -> Self {
        let address = text.uppercased().replacing("-", with: ":")
        guard address.wholeMatch(of: /[0-9A-F]{2}(:[0-9A-F]{2}){0,5}:?/) != nil else {
            throw ValidationError("It takes an address, such as C0:5A:17:00:18:0D, or the beginning of one.")
        }
        return .address(address)
    }

    /// A criterion after the name of its option: `named`, `name=Strap`.
    @Sendable static func any(_ text: String) throws -> Self {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        return switch (parts[0], parts.last ?? "") {
        case ("named", "named"): .named
        case ("name", let value) where parts.count > 1: try name(value)
        case ("address", let value): try beginning(ofAddress: value)
        case ("service", let value): .service(try Arguments.service(value))
        case ("manufacturer", let value): .company(try Arguments.companies(value))
        case ("manufacturer-data", let value): .data(try Arguments.bytes(value))
        default:
            throw ValidationError(
                "It takes named, or name, address, service, manufacturer or manufacturer-data with a value: name=Strap."
            )
        }
    }
}
