import ArgumentParser
import BlueCapKit
import Foundation

struct BeaconCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "beacon",
        abstract: "Be a beacon: iBeacon, AltBeacon or Eddystone.",
        discussion: """
            Which one follows from the options: --uuid, --major and --minor make an iBeacon; --uuid and --number an \
            AltBeacon; --namespace and --instance Eddystone's UID, --url its URL, --telemetry its TLM. Telemetry is sent together \
            with another beacon or alone; its time is that of the command. A beacon accepts no connections.

            It is sent until --duration is over or Ctrl-C. --json prints the same lines as `bluecap advertise`.

            Examples:
              bluecap beacon --uuid B9407F30-F5F8-466E-AFF9-25556B57FE6D --minor 7
              bluecap beacon --uuid B9407F30-F5F8-466E-AFF9-25556B57FE6D --number 9
              bluecap beacon --url https://example.com/ --telemetry --battery 2950
              bluecap beacon --namespace 00112233445566778899 --instance 000000000001

            \(ServingOptions.statuses)
            """)

    @Option(
        help: ArgumentHelp("Of an iBeacon or AltBeacon: its owner's UUID.", valueName: "uuid"),
        transform: BeaconCommand.uuid)
    var uuid: UUID?

    @Option(
        help: ArgumentHelp("Of an iBeacon: its group, from 0 to 65535; 0 unless it is given.", valueName: "number"),
        transform: BeaconCommand.sixteenBits)
    var major: UInt16?

    @Option(
        help: ArgumentHelp("Of an iBeacon: its number in the group; 0 unless it is given.", valueName: "number"),
        transform: BeaconCommand.sixteenBits)
    var minor: UInt16?

    @Option(
        help: ArgumentHelp("Of an AltBeacon: its number, from 0 to 4294967295.", valueName: "number"),
        transform: Arguments.whole(0...UInt32.max))
    var number: UInt32?

    @Option(
        help: ArgumentHelp("Of Eddystone's UID: ten bytes of its owner's.", valueName: "bytes"),
        transform: Arguments.bytes)
    var namespace: Data?

    @Option(
        help: ArgumentHelp("Of Eddystone's UID: six bytes of its own.", valueName: "bytes"),
        transform: Arguments.bytes)
    var instance: Data?

    @Option(help: ArgumentHelp("Eddystone's URL: a short link.", valueName: "link"))
    var url: String?

    @Flag(help: "Eddystone's TLM: the state of the beacon.")
    var telemetry = false

    @Option(
        help: ArgumentHelp("The battery's voltage, for --telemetry.", valueName: "millivolts"),
        transform: Arguments.whole(0...UInt16.max, "millivolts"))
    var battery: UInt16?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The temperature in °C, for --telemetry.", valueName: "degrees"),
        transform: Arguments.number(-127.99...127.99, "°C"))
    var temperature: Double?

    @Option(
        name: .customLong("measured-power"), parsing: .unconditional,
        help: ArgumentHelp("The strength at a distance of one metre; -59 unless it is given.", valueName: "dbm"),
        transform: Arguments.whole(-127...20, "dBm"))
    var measuredPower: Int8?

    @OptionGroup var options: ServingOptions

    func validate() throws {
        let plans = try plans()
        guard !plans.isEmpty else {
            throw ValidationError("Say which beacon: --uuid, --namespace and --instance, --url, or --telemetry.")
        }
        for plan in plans { try ServingOptions.check(plan.data) }
    }

    func run() async throws { try await options.run(advertising: try plans()) }

    private static let sixteenBits = Arguments.whole(0...UInt16.max)

    @Sendable static func uuid(_ text: String) throws -> UUID {
        guard let uuid = UUID(uuidString: text) else {
            throw ValidationError("It is not a UUID; one looks like B9407F30-F5F8-466E-AFF9-25556B57FE6D.")
        }
        return uuid
    }

    /// Returns the advertisements of the options.
    ///
    /// - Throws: `ValidationError` if the options exclude each other.
    func plans() throws -> [AdvertisingPlan] {
        var plans = [try identity()].compactMap { $0 }.map { AdvertisingPlan(data: $0) }
        if telemetry {
            plans.append(.telemetry(batteryMillivolts: battery, temperature: temperature))
        } else if battery != nil || temperature != nil {
            throw ValidationError("--battery and --temperature are telemetry: add --telemetry.")
        }
        return plans
    }

    private func identity() throws -> AdvertisingData? {
        if [uuid != nil, namespace != nil || instance != nil, url != nil].filter({ $0 }).count > 1 {
            throw ValidationError("A beacon is one of --uuid, --namespace and --instance, --url: give one of them.")
        }
        guard uuid != nil || (major == nil && minor == nil && number == nil) else {
            throw ValidationError("--major, --minor and --number need an owner: add --uuid.")
        }
        let power = measuredPower ?? -59
        // Eddystone has the strength at no distance, 41 dB more (Eddystone Protocol Specification, "Tx Power").
        let powerAtZeroMetres = Int8(clamping: Int(power) + 41)
        if let uuid {
            if let number {
                guard major == nil, minor == nil else {
                    throw ValidationError("--number makes an AltBeacon, --major and --minor an iBeacon: give one kind.")
                }
                return AdvertisingData(AltBeacon(organization: uuid, number: number, measuredPower: power))
            }
            return AdvertisingData(
                IBeacon(uuid: uuid, major: major ?? 0, minor: minor ?? 0, measuredPower: power))
        }
        if let url {
            guard let frame = Eddystone.URL(url, powerAtZeroMetres: powerAtZeroMetres) else {
                throw ValidationError(
                    "\"\(url)\" is not a link for a beacon: use http:// or https://, and after that at most 17 bytes of "
                        + "ASCII without spaces; .com/ and the like take one.")
            }
            return AdvertisingData(frame)
        }
        guard namespace != nil || instance != nil else { return nil }
        guard let namespace, let instance,
            let frame = Eddystone.UID(
                namespace: namespace, instance: instance, powerAtZeroMetres: powerAtZeroMetres)
        else {
            throw ValidationError("Eddystone's UID takes both: --namespace of ten bytes, and --instance of six.")
        }
        return AdvertisingData(frame)
    }
}
