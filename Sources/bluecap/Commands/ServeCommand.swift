import ArgumentParser
import BlueCapKit
import Foundation

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
            (or null), service, characteristic, name, value (hexadecimal), fields (the value by its profile), quantities \
            (its numbers); of a write error, if it was refused. The last one is "finished" and counts connections, \
            subscriptions, reads, writes, updates and seconds.

            With --secure, centrals have to pair before they read, write or subscribe; without it, only for what a file \
            protects with "security". --pair ask, which is the default then, asks on the terminal; --passkey and --yes \
            answer without one, and --pair just-works accepts pairings without a passkey. --pair never accepts none: only \
            centrals with a bond can use the services. If another program's pairing agent is the machine's default, such \
            as a desktop's, BlueZ asks that one. Lines and events are "pairing-requested" (needs: display, compare, enter \
            or authorize), "paired" (bonded) and "pairing-failed" (error). A passkey is in none of them.

            Examples:
              bluecap serve heart-rate
              bluecap serve battery --secure
              bluecap serve battery --secure --pair just-works --pairable 60
              bluecap serve battery uart --name Desk --json
              bluecap serve sensortag --simulated --duration 20
              bluecap simulate --adapters 2 -- bash  # and in that shell:
              bluecap serve battery --adapter hci1 --json > what-happened &
              bluecap explore "BlueCap Battery" --adapter hci0

            \(ServingOptions.statuses)
            """)

    @Argument(
        help: ArgumentHelp(
            PeripheralModel.builtin.map(\.name).joined(separator: ", ") + ", or a JSON file; several at once.",
            valueName: "profile"),
        completion: Arguments.nameOrFile(PeripheralModel.builtin.map(\.name)),
        transform: { try PeripheralModel.named($0) })
    var profiles: [PeripheralModel]

    @Option(help: ArgumentHelp("The name that it advertises.", valueName: "name"))
    var name: String?

    @Flag(inversion: .prefixedNo, help: "Advertise the services.")
    var advertise = true

    @Flag(help: "Print the values that are sent, too.")
    var updates = false

    @Flag(help: "Require an encrypted link for every characteristic, so that a central has to pair.")
    var secure = false

    @OptionGroup var pairing: PairingOptions

    @Option(
        help: ArgumentHelp("Accept new pairings only for so many seconds.", valueName: "seconds"),
        transform: Arguments.seconds)
    var pairable: Double?

    @OptionGroup var options: ServingOptions

    private var plan: PairingPlan { pairing.plan(orElse: peripheral.isProtected ? .ask : .never) }

    func validate() throws {
        if pairable != nil, plan.policy == .reject {
            throw ValidationError("--pairable limits the time for pairings: add --pair ask or --pair just-works.")
        }
        if name?.isEmpty == true { throw ValidationError("--name takes a name; it was empty.") }
        if name != nil, !advertise { throw ValidationError("--name is advertised: omit --no-advertise.") }
        if let advertisement { try ServingOptions.check(advertisement.data) }
    }

    private var peripheral: PeripheralModel {
        let peripheral = PeripheralModel.joined(profiles)
        return secure ? peripheral.secured : peripheral
    }

    private var advertisement: (data: AdvertisingData, left: [CBUUID])? {
        guard advertise else { return nil }
        let peripheral = peripheral
        return AdvertisingPlan.announcing(
            peripheral.services.filter(\.isPrimary).map(\.uuid), name: name ?? peripheral.name ?? "BlueCap",
            appearance: peripheral.appearance)
    }

    func run() async throws {
        let advertisement = advertisement
        if let left = advertisement?.left, !left.isEmpty, !options.json.isOn {
            let names = peripheral.services.filter { left.contains($0.uuid) }.map(\.label).joined(separator: ", ")
            Output.remark("The advertisement has space for some of the services only; not in it: \(names).")
        }
        let omissions = peripheral.omissions
        if !omissions.isEmpty { Output.remark("Not served: \(omissions.joined(separator: "; ")).") }
        try await options.run(
            services: peripheral.services, advertising: advertisement.map { [AdvertisingPlan(data: $0.data)] } ?? [],
            showsUpdates: updates, pairing: plan, pairableTime: pairable)
    }
}
