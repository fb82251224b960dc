import ArgumentParser
import BlueCapKit
import Dispatch
import Foundation

/// `bluecap notify`.
struct NotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Print what a characteristic notifies or indicates.",
        discussion: """
            It connects, subscribes and prints each value on a line with the time at which it came, until --count values \
            have come, --duration is over or Ctrl-C. A link that is lost meanwhile is brought back, and the subscription \
            with it; standard error says so, since values may be missing there.

            With --json each line is an object: {"event":"value","time":…,"value":…,"fields":…} with the value in \
            hexadecimal digits and by its profile, {"event":"gap","time":…} where values may be missing, and at the end \
            {"event":"finished","values":12,"seconds":3.002}.

            \(AttributeArgument.discussion)

            Examples:
              bluecap notify "Pulse Strap 7F" "Heart Rate Measurement" --simulated --count 5
              bluecap notify C0:5A:17:00:18:0D 2A37 --duration 60 --json | jq -r .value

            \(RemoteOptions.statuses) Ctrl-C is a good end once values are being waited for.
            """)

    @OptionGroup var remote: RemoteOptions

    @Argument(help: ArgumentHelp("By UUID, name or handle.", valueName: "characteristic"))
    var characteristic: AttributeArgument

    @Option(
        help: ArgumentHelp("End after so many values.", valueName: "number"),
        transform: NumberArgument.whole(1...1_000_000_000, "values"))
    var count: Int?

    @Option(
        help: ArgumentHelp("End so many seconds after the subscription.", valueName: "seconds"),
        transform: NumberArgument.seconds)
    var duration: Double?

    @Option(name: .customLong("as"), help: "How the values are printed.")
    var form = ValueForm.auto

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    func run() async throws {
        try await remote.run(isPersistent: true) { [self] session, link in
            await session.progress.stage("Subscribing …")
            let reader = TreeReader(peripheral: link.peripheral, timeout: remote.timeout)
            let directory = try await reader.directory()
            let entry = try characteristic.find(in: directory.tree, usableFor: [.notify, .indicate])
            guard let target = directory.characteristics[entry.handle] else { throw CharacteristicError.invalidated }
            let reporter = ValueReporter(json ? .json : .plain(form), of: entry)
            let values: FutureStream<(characteristic: Characteristic, data: Data?)> =
                target.receiveNotificationUpdates()
            let subscription: Future<Characteristic> = target.startNotifying(timeout: remote.timeout)
            _ = try await subscription.value
            await session.progress.end()
            let subscriber = Subscriber(
                reporter: reporter, profile: target.profile, count: count, duration: duration, link: link)
            try await subscriber.run(values)
        }
    }
}
