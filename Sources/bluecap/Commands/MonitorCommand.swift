import ArgumentParser
import BlueCapKit
import Foundation

struct MonitorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "Plot a peripheral's signal strength or values over time.",
        discussion: """
            Without a characteristic it does not connect, and plots the strength and the decoded numbers of what the \
            peripheral advertises. With \
            characteristics it connects, subscribes to them, reads those that send no values at each --interval, and plots \
            each number that they contain: the fields of the profile that begin with a number, or else values of one, two, \
            four or eight bytes as unsigned numbers, the least significant byte first. BlueZ does not report the strength \
            of a link; while another program scans, the strength of advertisements is plotted too. With --and it does the \
            same with other peripherals; each number is named with its peripheral.

            On a terminal it draws a plot for each number, with its present, least, greatest and mean value, until --count \
            values have arrived, --duration is over or Ctrl-C. A value that comes seldom is a step. A lost link is restored; \
            the plot has a gap there. Elsewhere it prints a line for each number. The duration begins with the subscription.

            With --json each line is an object: {"event":"sample","time":…,"series":"Heart Rate","number":72,"unit":"bpm"}, \
            with "peripheral" if there are several, and with transmitted numbers, such as xRaw, beside what they mean; \
            {"event":"gap","time":…} if the link was lost, or the peripheral is no longer in range, and at the end \
            {"event":"finished","values":12,"seconds":3.002}.

            \(AttributeArgument.discussion)

            Examples:
              bluecap monitor "Pulse Strap 7F" --simulated
              bluecap monitor "Pulse Strap 7F" 2A37 2A19 --simulated --interval 10
              bluecap monitor "Pulse Strap 7F" 2A37 --and Garden=Temperature --simulated
              bluecap monitor C0:5A:17:00:18:0D 2A37 --duration 60 --json | jq .number

            \(RemoteOptions.statuses) After the subscription, Ctrl-C is a success.
            """)

    @OptionGroup var remote: RemoteOptions

    @Argument(help: ArgumentHelp("By UUID, name or handle; several at once.", valueName: "characteristic"))
    var characteristics: [AttributeArgument] = []

    @Option(
        name: .customLong("and"),
        help: ArgumentHelp(
            "Another peripheral, with the same characteristics or, after \"=\", with its own; several times.",
            valueName: "peripheral[=characteristic,…]"), transform: MonitorCommand.other)
    var others: [(PeripheralArgument, [AttributeArgument])] = []

    @Option(
        help: ArgumentHelp(
            "The time between two readings of a value that is not sent. (default: 1)", valueName: "seconds"),
        transform: Arguments.number(0.1...1e6, "seconds"))
    var interval = 1.0

    @Option(
        help: ArgumentHelp("How much time a plot shows. (default: 60)", valueName: "seconds"),
        transform: Arguments.number(1...1e6, "seconds"))
    var window = 60.0

    @OptionGroup var count: CountOption

    @OptionGroup var duration: DurationOption

    @OptionGroup var json: JSONOption

    @OptionGroup var formats: FormatOptions

    @OptionGroup var pairing: PairingOptions

    @Sendable private static func other(_ text: String) throws -> (PeripheralArgument, [AttributeArgument]) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let names = parts.dropFirst().flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        let characteristics = names.compactMap { AttributeArgument(argument: String($0)) }
        guard let peripheral = PeripheralArgument(argument: parts[0]), characteristics.count == names.count else {
            throw ValidationError("It takes a peripheral, alone or with characteristics, such as Garden=2A6E,2A6F.")
        }
        return (peripheral, characteristics)
    }

    func run() async throws { try await formats.withFormats(monitor) }

    private func monitor() async throws {
        let format = json.format(drawingUnless: remote.common)
        try await remote.withSession(pairing.plan(), isPersistent: true) { [self] session in
            let others: [Monitor.Target] = others.map { peripheral, own in
                var session = session
                session.argument = peripheral
                return (session, own.isEmpty ? characteristics : own)
            }
            try await Monitor(
                interval: interval, window: window, count: count.values, duration: duration.seconds, format: format
            ).run([(session, characteristics)] + others)
        }
    }
}
