import ArgumentParser
import BlueCapKit
import Foundation

/// `bluecap read`.
struct ReadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Read a characteristic's value.",
        discussion: """
            It connects, reads and prints the value on one line: by profile if one decodes it, in quotes if it reads as \
            text, else in hexadecimal digits; --as selects one of them. With --json it is an object with the members \
            uuid, name, handle, value (hexadecimal) and fields (the value by its profile, or null).

            \(AttributeArgument.discussion)

            Examples:
              bluecap read "Pulse Strap 7F" "Battery Level" --simulated
              bluecap read C0:5A:17:00:18:0D 2A19 --as hex

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @Argument(help: ArgumentHelp("By UUID, name or handle.", valueName: "characteristic"))
    var characteristic: AttributeArgument

    @Option(name: .customLong("as"), help: "How the value is printed.")
    var form = ValueForm.auto

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        try await remote.run { [self] remote in
            await remote.console.stage("Reading …")
            let timeout = self.remote.timeout
            let directory = try await AttributeDirectory(of: remote.peripheral, timeout: timeout)
            let (entry, target) = try directory.find(characteristic, usableFor: .read)
            let read: Characteristic = try await target.read(timeout: timeout).value
            let value = AttributeValue(read.dataValue ?? Data(), profile: read.profile)
            if !json, form.text(of: value) == nil { throw form.misfit(value, of: entry.label) }
            try await remote.console.write(entry.line(of: value, json ? .json : .lines, form))
        }
    }
}
