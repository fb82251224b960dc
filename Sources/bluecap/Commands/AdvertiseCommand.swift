import ArgumentParser
import BlueCapKit
import Foundation

struct AdvertiseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "advertise",
        abstract: "Advertise a name, services and data.",
        discussion: """
            An advertisement has 31 bytes, and another 29 for the name; one that does not fit is refused at once. It is \
            sent until --duration is over or Ctrl-C, and again after bluetoothd or the adapter was away. Use several \
            commands for several advertisements: an adapter sends three to sixteen.

            BlueZ before 5.77 chooses interval and power itself, unless it runs with --experimental; then standard error \
            says so.

            Connections are printed. With --json each line is an object, as in `bluecap serve`; the first has the member \
            advertisements, with their content, their bytes, and the beacons that they contain.

            Examples:
              bluecap advertise --name Desk --service Battery --service 181A
              bluecap advertise --name Tag --manufacturer 0xFFFF=0102 --appearance Tag
              bluecap advertise --service-data 181A=5908 --broadcast --interval 100-200

            \(ServingOptions.statuses)
            """)

    @Option(help: ArgumentHelp("The name that it advertises.", valueName: "name"))
    var name: String?

    @Option(
        name: .customLong("service"),
        help: ArgumentHelp("A service, by UUID or by name; may be given several times.", valueName: "uuid"),
        completion: Arguments.serviceNames, transform: Arguments.service)
    var services: [CBUUID] = []

    @Option(
        name: .customLong("solicit"),
        help: ArgumentHelp("A service that it needs from a central; may be given several times.", valueName: "uuid"),
        completion: Arguments.serviceNames, transform: Arguments.service)
    var solicited: [CBUUID] = []

    @Option(
        name: .customLong("manufacturer"),
        help: ArgumentHelp(
            "A company's data, such as 0xFFFF=0102; may be given several times.", valueName: "company=bytes"),
        transform: Arguments.manufacturer)
    var manufacturers: [(company: UInt16, data: Data)] = []

    @Option(
        name: .customLong("service-data"),
        help: ArgumentHelp("A service's data, such as 181A=5908; may be given several times.", valueName: "uuid=bytes"),
        transform: Arguments.serviceData)
    var serviceData: [(service: CBUUID, data: Data)] = []

    @Option(
        help: ArgumentHelp("Its appearance: a number, such as 0x00C0, or Watch.", valueName: "appearance"),
        transform: Arguments.appearance)
    var appearance: UInt16?

    @Option(
        help: ArgumentHelp("The time between two packets, such as 100 or 100-200.", valueName: "milliseconds"),
        transform: Arguments.interval)
    var interval: ClosedRange<TimeInterval>?

    // Unconditional: a power may begin with a dash.
    @Option(
        name: .customLong("tx-power"), parsing: .unconditional,
        help: ArgumentHelp("The power of the sender, from -127 to 20; it is advertised too.", valueName: "dbm"),
        transform: Arguments.strength)
    var txPower: Int?

    @Flag(name: .customLong("include-tx-power"), help: "Advertise the power of the sender, which the adapter chooses.")
    var includesTxPower = false

    @Flag(help: "Accept no connections.")
    var broadcast = false

    @Flag(inversion: .prefixedNo, help: "Advertise that it is discoverable; takes three bytes.")
    var discoverable = true

    @OptionGroup var options: ServingOptions

    /// The advertisement of the options.
    var data: AdvertisingData {
        var data = AdvertisingData(localName: name, serviceUUIDs: services)
        data.kind = broadcast ? .broadcast : .connectable
        data.solicitedServiceUUIDs = solicited
        data.manufacturerData = Dictionary(manufacturers.map { ($0.company, $0.data) }) { $1 }
        data.serviceData = Dictionary(serviceData.map { ($0.service, $0.data) }) { $1 }
        data.appearance = appearance
        data.interval = interval.map { .seconds($0.lowerBound) ... .seconds($0.upperBound) }
        data.txPower = txPower
        data.includesTxPower = includesTxPower || txPower != nil
        data.isDiscoverable = discoverable && !broadcast
        return data
    }

    func validate() throws {
        let isEmpty =
            name == nil && services.isEmpty && solicited.isEmpty && manufacturers.isEmpty && serviceData.isEmpty
            && appearance == nil
        if isEmpty {
            throw ValidationError("Say what to advertise: --name, --service, --manufacturer, --service-data, …")
        }
        for (twice, option) in [
            (Self.repeated(manufacturers.map { "\($0.company)" }), "--manufacturer"),
            (Self.repeated(serviceData.map(\.service.uuidString)), "--service-data"),
        ] {
            if let twice { throw ValidationError("\(option) is given twice for \(twice): give it once.") }
        }
        try ServingOptions.check(data)
    }

    private static func repeated(_ names: [String]) -> String? {
        var seen: Set<String> = []
        return names.first { !seen.insert($0).inserted }
    }

    func run() async throws { try await options.run(advertising: [AdvertisingPlan(data: data)]) }
}
