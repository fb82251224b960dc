import ArgumentParser
import BlueCapKit
import Foundation

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

    @OptionGroup var json: JSONOption

    @OptionGroup var pairing: PairingOptions

    func run() async throws {
        try await remote.run(pairing.plan()) { [self] remote in
            await remote.console.stage("Reading …")
            let (entry, target, profile) = try await remote.find(characteristic, usableFor: .read)
            let data = try await target.read(from: 0, timeout: remote.timeout).value
            let value = AttributeValue(data, profile: profile)
            if !json.isOn, form.text(of: value) == nil { throw form.misfit(value, of: entry.label) }
            try await remote.console.write(entry.line(of: value, json.format(), form))
        }
    }
}

struct WriteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "write",
        abstract: "Write a characteristic's value.",
        discussion: """
            It connects, writes, and prints nothing on success: when the peripheral has confirmed the write or, with \
            --without-response, when BlueZ has accepted it; then nothing confirms that it arrives. Without that flag, a \
            characteristic that has no write with response is written without response.

            The value is hexadecimal digits (01a0, 0x01A0, "01 a0"); with --as text it is written as UTF-8, and with \
            --as profile the characteristic's profile encodes it: a text such as On, or fields such as x=1,y=2. With --json \
            it prints an object with the members of `bluecap read`.

            \(AttributeArgument.discussion)

            Examples:
              bluecap write "Pulse Strap 7F" 2A39 01 --simulated
              bluecap write Tag "Link Loss/Alert Level" "High Alert" --as profile
              bluecap write "BlueCap UART" "UART RX" hello --as text

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @Argument(help: ArgumentHelp("By UUID, name or handle.", valueName: "characteristic"))
    var characteristic: AttributeArgument

    @Argument(help: "The value to write.")
    var value: String

    @Option(name: .customLong("as"), help: "How the value is read.")
    var form = ValueForm.hex

    @Flag(help: "Do not ask the peripheral to confirm it.")
    var withoutResponse = false

    @OptionGroup var json: JSONOption

    @OptionGroup var pairing: PairingOptions

    func validate() throws {
        // A value that no characteristic can have is refused without a radio.
        guard form != .profile || value == "-" else { return }
        do { _ = try form.data(of: value, profile: nil) } catch { throw ValidationError("\(error)") }
    }

    func run() async throws {
        try await remote.run(pairing.plan()) { [self] remote in
            await remote.console.stage("Writing …")
            let wanted: CBCharacteristicProperties =
                withoutResponse ? .writeWithoutResponse : [.write, .writeWithoutResponse]
            let (entry, target, profile) = try await remote.find(characteristic, usableFor: wanted)
            let data = try form.data(of: value, profile: profile)
            let canConfirm = entry.properties.contains(.write)
            let type: CBCharacteristicWriteType =
                withoutResponse || (!canConfirm && entry.properties.contains(.writeWithoutResponse))
                ? .withoutResponse : .withResponse
            let write: Future<Characteristic> = target.write(data: data, timeout: remote.timeout, type: type)
            _ = try await write.value
            guard json.isOn else { return }
            try await remote.console.write(entry.line(of: AttributeValue(data, profile: profile), .json, form))
        }
    }
}
