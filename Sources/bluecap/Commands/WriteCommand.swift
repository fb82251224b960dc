import ArgumentParser
import BlueCapKit
import Foundation

/// `bluecap write`.
struct WriteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "write",
        abstract: "Write a characteristic's value.",
        discussion: """
            It connects, writes and says nothing when that is done: when the peripheral has confirmed it or, with \
            --without-response, when BlueZ has taken it over; whether it arrives nobody then knows. Without that flag a \
            characteristic that gives no confirmations is written without one.

            The value is hexadecimal digits (01a0, 0x01A0, "01 a0"); with --as text it is written as it stands, and with \
            --as profile the characteristic's profile reads it: a text such as On, or parts such as x=1,y=2.

            \(AttributeArgument.discussion)

            Examples:
              bluecap write "Pulse Strap 7F" 2A39 01 --simulated
              bluecap write C0:5A:17:00:18:0D "Link Loss/Alert Level" "High Alert" --as profile
              bluecap write 24:71:89:00:11:22 6E400002-B5A3-F393-E0A9-E50E24DCCA9E hello --as text --without-response

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

    func validate() throws {
        // What no characteristic would take needs no radio to be refused.
        guard form == .hex || form == .auto else { return }
        do { _ = try form.data(of: value, profile: nil) } catch { throw ValidationError("\(error)") }
    }

    func run() async throws {
        try await remote.run { [self] session, link in
            await session.progress.stage("Writing …")
            let reader = TreeReader(peripheral: link.peripheral, timeout: remote.timeout)
            let directory = try await reader.directory()
            let wanted: CBCharacteristicProperties =
                withoutResponse ? .writeWithoutResponse : [.write, .writeWithoutResponse]
            let entry = try characteristic.find(in: directory.tree, usableFor: wanted)
            guard let target = directory.characteristics[entry.handle] else { throw CharacteristicError.invalidated }
            let data = try form.data(of: value, profile: target.profile)
            let canConfirm = entry.properties.contains(.write)
            let type: CBCharacteristicWriteType =
                withoutResponse || (!canConfirm && entry.properties.contains(.writeWithoutResponse))
                ? .withoutResponse : .withResponse
            let write: Future<Characteristic> = target.write(data: data, timeout: remote.timeout, type: type)
            _ = try await write.value
        }
    }
}
