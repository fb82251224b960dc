import ArgumentParser
import BlueCapKit
import Foundation

struct NotifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Print what characteristics notify or indicate.",
        discussion: """
            It connects, subscribes and prints each value on a line with the time at which it arrived, and with its name \
            if there are several characteristics, until --count values have arrived, --duration is over or Ctrl-C. The \
            duration begins with the subscription. A lost link is restored together with the subscription; standard error \
            says so, since values may be missing there.

            With --json each line is an object: {"event":"value","time":…} with the members of `bluecap read`, \
            {"event":"gap","time":…} if values may be missing, and at the end \
            {"event":"finished","values":12,"seconds":3.002}. With --csv each field is a row, with its number and unit. \
            The fields of --format are \(ValueStyle.placeholders). --output appends the lines to a file; with --rotate, a file \
            that would be greater becomes FILE.1, and the one before FILE.2.

            \(AttributeArgument.discussion)

            Examples:
              bluecap notify "Pulse Strap 7F" 2A37 2A19 --simulated --count 5
              bluecap notify "Pulse Strap 7F" 2A37 --simulated --format '{clock} {value}'
              bluecap notify C0:5A:17:00:18:0D 2A37 --csv --output rate.csv --rotate 10MB

            \(RemoteOptions.statuses) After the subscription, Ctrl-C is a success.
            """)

    @OptionGroup var remote: RemoteOptions

    @Argument(help: ArgumentHelp("By UUID, name or handle; several at once.", valueName: "characteristic"))
    var characteristics: [AttributeArgument]

    @OptionGroup var count: CountOption

    @OptionGroup var duration: DurationOption

    @OptionGroup var values: ValueOptions

    @OptionGroup var pairing: PairingOptions

    func run() async throws {
        let lines = try values.lines.open()
        var style = values.style
        style.isNamed = RemoteSession.shared != nil
        try await remote.withSession(pairing.plan(), isPersistent: true) { [self, style] session in
            try await Monitor(
                count: count.values, duration: duration.seconds, format: values.lines.json.format(), style: style,
                output: lines
            ).run([(session, characteristics)])
        }
    }
}
