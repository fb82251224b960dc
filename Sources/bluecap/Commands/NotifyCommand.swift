import ArgumentParser
import BlueCapKit
import Foundation

struct NotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Print what a characteristic notifies or indicates.",
        discussion: """
            It connects, subscribes and prints each value on a line with the time at which it arrived, until --count \
            values have arrived, --duration is over or Ctrl-C. The duration begins with the subscription. A lost link is restored together with the subscription; \
            standard error says so, since values may be missing there.

            With --json each line is an object: {"event":"value","time":…,"value":…,"fields":…} with the value in \
            hexadecimal digits and by its profile, {"event":"gap","time":…} if values may be missing, and at the end \
            {"event":"finished","values":12,"seconds":3.002}.

            \(AttributeArgument.discussion)

            Examples:
              bluecap notify "Pulse Strap 7F" "Heart Rate Measurement" --simulated --count 5
              bluecap notify C0:5A:17:00:18:0D 2A37 --duration 60 --json | jq -r .value

            \(RemoteOptions.statuses) After the subscription, Ctrl-C is a success.
            """)

    @OptionGroup var remote: RemoteOptions

    @Argument(help: ArgumentHelp("By UUID, name or handle.", valueName: "characteristic"))
    var characteristic: AttributeArgument

    @OptionGroup var count: CountOption

    @OptionGroup var duration: DurationOption

    @Option(name: .customLong("as"), help: "How the values are printed.")
    var form = ValueForm.auto

    @OptionGroup var json: JSONOption

    @OptionGroup var pairing: PairingOptions

    func run() async throws {
        try await remote.withSession(pairing.plan(), isPersistent: true) { [self] session in
            try await Monitor(count: count.values, duration: duration.seconds, format: json.format(), form: form)
                .run([(session, [characteristic])])
        }
    }
}
