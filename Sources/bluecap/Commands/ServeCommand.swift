import ArgumentParser
import BlueCapKit
import Foundation

/// `bluecap serve`.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Be a peripheral: serve services, and print what centrals do.",
        discussion: """
            It registers the services of the profiles, advertises them, and prints a line when a central connects, reads, \
            writes, subscribes, unsubscribes or disconnects, with the central's address if BlueZ reports it, until \
            --duration is over or Ctrl-C. After bluetoothd or the adapter was away, everything is registered again.

            Profiles:
            \(PeripheralModel.builtin.map { "  \($0.name): \($0.summary)" }.joined(separator: "\n"))
              a JSON file, such as Examples/Peripherals/greeter.json

            A file has a name and services, which are written as those of the simulator (Documentation/Simulator.md): \
            characteristics with flags, value or text, descriptors, notifications that cycle or count, echo.

            With --json each line is an object. Its "event" is "serving" first, then "connected", "disconnected", \
            "subscribed", "unsubscribed", "read", "write" and, with --updates, "update"; with the members time, central \
            (or null), service, characteristic, name, value (hexadecimal), fields (the value by its profile); of a write \
            error, if it was refused. The last one is "finished" and counts connections, subscriptions, reads, writes, \
            updates and seconds.

            Examples:
              bluecap serve heart-rate
              bluecap serve battery uart --name Desk --json
              bluecap serve sensortag --simulated --duration 20
              bluecap simulate --adapters 2 -- bash     and in that shell:
                bluecap serve battery --adapter hci1 --json > what-happened &
                bluecap explore "BlueCap Battery" --adapter hci0

            \(ServingOptions.statuses)
            """)

    @Argument(
        help: ArgumentHelp(
            PeripheralModel.builtin.map(\.name).joined(separator: ", ") + ", or a JSON file; several at once.",
            valueName: "profile"),
        transform: { try PeripheralModel.named($0) })
    var profiles: [PeripheralModel]

    @Option(help: ArgumentHelp("The name that it advertises.", valueName: "name"))
    var name: String?

    @Flag(inversion: .prefixedNo, help: "Advertise the services.")
    var advertise = true

    @Flag(help: "Print the values that are sent, too.")
    var updates = false

    @OptionGroup var options: ServingOptions

    func validate() throws {
        if name?.isEmpty == true { throw ValidationError("--name takes a name; it was empty.") }
        if name != nil, !advertise { throw ValidationError("--name is advertised: omit --no-advertise.") }
        if let advertisement { try ServingOptions.check(advertisement.data) }
    }

    private var peripheral: PeripheralModel { PeripheralModel.joined(profiles) }

    private var advertisement: (data: AdvertisingData, left: [CBUUID])? {
        guard advertise else { return nil }
        let peripheral = peripheral
        return AdvertisingPlan.announcing(
            peripheral.services.filter(\.isPrimary).map(\.uuid), name: name ?? peripheral.name ?? "BlueCap",
            appearance: peripheral.appearance)
    }

    func run() async throws {
        let advertisement = advertisement
        if let left = advertisement?.left, !left.isEmpty, !options.json {
            let names = peripheral.services.filter { left.contains($0.uuid) }.map(\.label).joined(separator: ", ")
            Output.remark("The advertisement has space for some of the services only; not in it: \(names).")
        }
        try await options.run(
            services: peripheral.services, advertising: advertisement.map { [AdvertisingPlan($0.data)] } ?? [],
            showsUpdates: updates)
    }
}
