import ArgumentParser
import BlueCapKit

/// `bluecap explore`.
struct ExploreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explore",
        abstract: "Show what a peripheral offers.",
        discussion: """
            It connects, and prints the peripheral's services, characteristics and descriptors as a tree, each with its \
            name, its UUID and its handle; of a characteristic what can be done with it; and the values of all that can \
            be read: by profile where one understands the value, in quotes where it reads as text, else in hexadecimal \
            digits.

            With --json it is one object on one line, with the members identifier, address, addressType, name, rssi, \
            mtu and services; of a service uuid, name, handle, primary, includes (handles) and characteristics; of a \
            characteristic uuid, name, handle, properties, value (hexadecimal), fields (the value by its profile), error \
            and descriptors; of a descriptor uuid, name, handle, value, fields and error. What is not known is null.

            Examples:
              bluecap explore "Pulse Strap 7F" --simulated
              bluecap explore C0:5A:17:00:18:0D --json | jq '.services[].name'

            \(RemoteOptions.statuses)
            """)

    @Flag(inversion: .prefixedNo, help: "Read the values.")
    var values = true

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var remote: RemoteOptions

    func run() async throws {
        try await remote.run { [self] session, link in
            await session.progress.stage("Discovering the services of \(DisplayText.name(link.peripheral.name)) …")
            let reader = TreeReader(peripheral: link.peripheral, timeout: remote.timeout)
            let directory = try await reader.directory()
            var tree = directory.tree
            if values {
                await session.progress.stage("Reading the values of \(DisplayText.name(link.peripheral.name)) …")
                tree = try await reader.readValues(into: directory)
            }
            await session.progress.end()
            try write(tree)
        }
    }

    private func write(_ tree: AttributeTree) throws {
        let terminal = Terminal.present
        let lines =
            json
            ? [TreeJSON.line(tree)]
            : TreeText(glyphs: terminal.glyphs, isColoured: terminal.isColoured).lines(tree).map(\.text)
        let outcome = Output.standard.write(lines.map { $0 + "\n" }.joined())
        if let failure = outcome.failure { throw failure }
    }
}
