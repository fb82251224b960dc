import ArgumentParser
import BlueCapKit
import Foundation

struct ExploreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explore",
        abstract: "Explore peripherals on the whole screen, or print what one offers.",
        discussion: """
            Without a peripheral it fills the terminal, as `bluecap` without a command does: with a table of what \
            advertises, and of the one that is selected what its advertisement contains. Enter connects, and shows the \
            services with their values; ? shows all keys. It leaves the terminal as it was, and ends the links that it made.

            With a peripheral it connects, and prints the peripheral's services, characteristics and descriptors as a tree, each with its \
            name, its UUID and its handle; a characteristic with its properties; and all values that can be read: by \
            profile if one decodes the value, in quotes if it reads as text, else in hexadecimal digits. A value that may \
            need a pairing has the reason in its place: then the status is 1, or 4 if BlueZ says so, and standard error names \
            the way to pair. If the read of such a value ends or blocks the link, the others are read over a new one.

            With --json it is one object on one line, with the members identifier, address, addressType, name, rssi, \
            mtu, paired, bonded and services; of a service uuid, name, handle, primary, includes (handles) and \
            characteristics; of a characteristic uuid, name, handle, properties, value (hexadecimal), fields (the value by \
            its profile), quantities (its numbers), error and descriptors; of a descriptor uuid, name, handle, value, \
            fields, quantities and error. What is not known is null.

            Examples:
              bluecap explore --simulated
              bluecap explore "Pulse Strap 7F" --simulated
              bluecap explore C0:5A:17:00:18:0D --json | jq '.services[].name'

            \(RemoteOptions.statuses)
            """)

    @Argument(help: ArgumentHelp("Its address, its name, or the beginning of its name.", valueName: "peripheral"))
    var peripheral: PeripheralArgument?

    @Flag(inversion: .prefixedNo, help: "Read the values of the peripheral.")
    var values = true

    @OptionGroup var formats: FormatOptions

    @OptionGroup var json: JSONOption

    @OptionGroup var radio: RadioOptions

    @OptionGroup var timeout: TimeoutOption

    @OptionGroup var common: CommonOptions

    @OptionGroup var pairing: PairingOptions

    /// Whether the full-screen program can run: it needs a keyboard and a screen.
    static var hasScreen: Bool { Terminal.present.canRedraw && isatty(STDIN_FILENO) == 1 }

    func validate() throws {
        guard peripheral == nil else { return }
        guard !json.isOn, values, pairing.mode == nil, !pairing.answers.isGiven else {
            throw ValidationError("--json, --no-values and the options of pairing need a peripheral: name one.")
        }
        guard Self.hasScreen else {
            throw ValidationError(
                "Without a terminal, name the peripheral to print: `bluecap scan` lists those in range.")
        }
    }

    func run() async throws { try await formats.withFormats(explore) }

    private func explore() async throws {
        if let session = RemoteSession.shared { return try await session.run { try await show($0) } }
        try await radio.run(common) { [self] radio in
            let timeout = timeout.seconds
            guard let peripheral else { return try await Explorer(radio: radio, timeout: timeout).run() }
            try await RemoteSession(radio: radio, argument: peripheral, timeout: timeout, pairing: pairing.plan()).run {
                try await show($0)
            }
        }
    }

    private func show(_ remote: Remote) async throws {
        let name = remote.peripheral.name
        await remote.console.stage("Discovering the services of \(name) …")
        var directory = try await remote.discover()
        directory.tree.name = remote.name ?? directory.tree.name
        var failure: (any Error)?
        if values {
            await remote.console.stage("Reading the values of \(name) …")
            failure = try await directory.readValues(over: remote)
            // A value may have needed a pairing.
            directory.tree.isPaired = remote.peripheral.isPaired
            directory.tree.isBonded = remote.peripheral.isBonded
        }
        let text = TreeText(page: Terminal.present.widePage)
        let lines = json.isOn ? [directory.tree.json.text] : text.lines(directory.tree).map(\.text)
        try await remote.console.write(lines.joined(separator: "\n"))
        if let failure { throw failure }
    }
}
