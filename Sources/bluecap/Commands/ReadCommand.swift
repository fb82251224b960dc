import ArgumentParser
import BlueCapKit
import Foundation

/// `bluecap read`.
struct ReadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Read a characteristic's value.",
        discussion: """
            It connects, reads and prints the value on one line: by profile where one understands it, in quotes where it \
            reads as text, else in hexadecimal digits; or as --as says. With --json it is an object with the members \
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
        try await remote.run { [self] session, link in
            await session.progress.stage("Reading …")
            let reader = TreeReader(peripheral: link.peripheral, timeout: remote.timeout)
            let directory = try await reader.directory()
            let entry = try characteristic.find(in: directory.tree, usableFor: .read)
            guard let target = directory.characteristics[entry.handle] else { throw CharacteristicError.invalidated }
            let read: Characteristic = try await target.read(timeout: remote.timeout).value
            let value = AttributeValue(read.dataValue ?? Data(), profile: read.profile)
            let reporter = ValueReporter(json ? .json : .plain(form), of: entry)
            if !json, form.text(of: value) == nil { throw form.misfit(of: entry, ValueForm.hexadecimal(value.data)) }
            await session.progress.end()
            if let failure = Output.standard.write(reporter.line(for: value) + "\n").failure { throw failure }
        }
    }
}
