import ArgumentParser
import BlueCapKit
import Foundation

struct ReadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Read the values of characteristics and descriptors.",
        discussion: """
            It connects, reads and prints each value on one line, with its name if there are several: by profile if one \
            decodes it, in quotes if it reads as text, else in hexadecimal digits; --as selects a form. With --json it is \
            an object with the members uuid, name, handle, value (hexadecimal), fields (the value by its profile, or null), \
            quantities (its numbers: {"Battery Level":{"value":87,"unit":"%"}}, or null) and, with --as, as (in this form). \
            With --csv each field is a row, with its number and unit; the fields of --format are \
            \(ValueStyle.placeholders). --output appends the lines to a file. The first of \
            several that cannot be read ends it; with --json it is an object with a null value and the member error.

            \(AttributeArgument.discussion) A descriptor is given by its handle, or after its characteristic: 2A37/2902.

            Examples:
              bluecap read "Pulse Strap 7F" "Battery Level" --simulated
              bluecap read "Pulse Strap 7F" 2A19 2A38 2A37/2902 --simulated --json
              bluecap read C0:5A:17:00:18:0D 2A19 --as u8

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @Argument(help: ArgumentHelp("By UUID, name or handle; several at once.", valueName: "characteristic"))
    var attributes: [AttributeArgument]

    @OptionGroup var values: ValueOptions

    @OptionGroup var pairing: PairingOptions

    func run() async throws {
        let lines = try values.lines.open()
        try await remote.run(pairing.plan()) { [self] remote in
            var lines = lines
            await remote.console.stage("Reading …")
            try await remote.read(attributes, values.style) {
                await remote.console.clear()
                try lines.write($0)
            }
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

            The value is hexadecimal digits (01a0, 0x01A0, "01 a0"); with --as text it is written as UTF-8, with --as u16 \
            as a number (300, 0x12c) or several ("1 2 3"), and with --as profile the characteristic's profile encodes it: a \
            text such as On, or fields such as x=1,y=2. Without --as, @FILE stands for the bytes of a file, and - for those \
            of standard input; "" is the empty value. With --json it prints an object with the members of `bluecap read`.

            \(AttributeArgument.discussion)

            Examples:
              bluecap write "Pulse Strap 7F" 2A39 01 --simulated
              printf '\\001' | bluecap write "Pulse Strap 7F" 2A39 - --simulated
              bluecap write Tag "Link Loss/Alert Level" "High Alert" --as profile
              bluecap write "BlueCap UART" "UART RX" hello --as text

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @Argument(help: ArgumentHelp("By UUID, name or handle.", valueName: "characteristic"))
    var characteristic: AttributeArgument

    @Argument(help: "The value to write, @ and the name of a file, or - for standard input.")
    var value: String

    @Option(name: .customLong("as"), help: "How the value is read. (default: hex)")
    var form: ValueForm?

    @Flag(help: "Do not ask the peripheral to confirm it.")
    var withoutResponse = false

    @OptionGroup var json: JSONOption

    @OptionGroup var pairing: PairingOptions

    func validate() throws {
        // A value that no characteristic can have is refused without a radio.
        guard !isFile, form != .profile || value == "-" else { return }
        do { _ = try (form ?? .hex).data(of: value, profile: nil) } catch { throw ValidationError("\(error)") }
    }

    /// Whether the value is in a file, or in standard input.
    private var isFile: Bool { form == nil && (value == "-" || value.hasPrefix("@")) }

    /// - Parameter path: That of a file; `nil` for standard input.
    private static func bytes(ofFile path: String?) throws -> Data {
        let name = path.map { "\"\($0)\"" } ?? "standard input"
        // A value has at most 512 bytes (Core Specification 5.4, volume 3, part F, 3.2.9).
        var buffer = [UInt8](repeating: 0, count: 513)
        let file = if let path { fopen(path, "re") } else { fdopen(STDIN_FILENO, "r") }
        let count = file.map { fread(&buffer, 1, buffer.count, $0) } ?? 0
        guard let file, ferror(file) == 0 else { throw ToolFailure.file(name, "read") }
        fclose(file)
        // What should have written it may have failed.
        guard count > 0 else { throw ToolFailure("There are no bytes in \(name): write \"\" for an empty value.") }
        guard count < buffer.count else { throw ToolFailure("More than 512 bytes are in \(name): write it in parts.") }
        return Data(buffer[..<count])
    }

    func run() async throws {
        let bytes = isFile ? try Self.bytes(ofFile: value == "-" ? nil : String(value.dropFirst())) : nil
        try await remote.run(pairing.plan()) { [self] remote in
            await remote.console.stage("Writing …")
            let (entry, written) = try await remote.write(to: characteristic, withoutResponse: withoutResponse) {
                try bytes ?? (form ?? .hex).data(of: value, profile: $0)
            }
            guard json.isOn else { return }
            try await remote.console.write(JSON(entry.identity + (form ?? .auto).members(of: written)).text)
        }
    }
}
