import ArgumentParser
import BlueCapKit
import Foundation

struct AdaptersCommand: AsyncParsableCommand {
    enum Switch: String, CaseIterable, ExpressibleByArgument, Sendable { case on, off }

    static let configuration = CommandConfiguration(
        commandName: "adapters",
        abstract: "List the adapters, or change one.",
        discussion: """
            It prints a line for each adapter, or for that of --adapter: its name, address and alias, whether it is on and \
            discoverable, and whether it can be a central and a peripheral. --power, --alias and --discoverable change one \
            adapter for all programs. The alias "" restores the usual one. With --json each line is an object with all \
            properties of BlueZ's adapter.

            Examples:
              bluecap adapters
              bluecap adapters --adapter hci0 --power on
              bluecap adapters --alias "Front Desk" --discoverable on

            \(BondsCommand.statuses)
            """)

    @Option(help: "Switch the adapter on or off.")
    var power: Switch?

    @Option(help: ArgumentHelp("The name of the adapter for other devices.", valueName: "text"))
    var alias: String?

    @Option(help: "Whether other devices can discover the adapter.")
    var discoverable: Switch?

    @OptionGroup var json: JSONOption

    @OptionGroup var radio: RadioOptions

    @OptionGroup var common: CommonOptions

    func run() async throws {
        try await radio.run(common) { [self] radio in
            try await radio.withCentral(needsPower: false) { manager in
                if power != nil || alias != nil || discoverable != nil, radio.adapter == nil {
                    let names = try await manager.adapters().map(\.name)
                    guard names.count <= 1 else {
                        throw ToolFailure("Name one of the adapters with --adapter: \(names.joined(separator: ", ")).")
                    }
                }
                if let power { try await set("Powered", .flag(power == .on), manager) }
                if let alias { try await set("Alias", .text(alias), manager) }
                if let discoverable { try await set("Discoverable", .flag(discoverable == .on), manager) }
                for adapter in try await manager.adapters() {
                    let values = Dictionary(adapter.properties.map { ($0.name, $0.value.text) }) { first, _ in first }
                    let wanted = radio.adapter?.lowercased() ?? adapter.name
                    guard [adapter.name, values["Address"]?.lowercased()].contains(wanted) else { continue }
                    let isDiscoverable = values["Discoverable"] == "yes"
                    let state = (values["Powered"] == "yes" ? "on" : "off") + (isDiscoverable ? ", discoverable" : "")
                    let line: [String?] = [
                        adapter.name, values["Address"], values["Alias"], state, values["Roles"],
                    ]
                    let properties = BlueZValue.entries([("Adapter", .text(adapter.name))] + adapter.properties)
                    try await radio.console.write(
                        json.isOn ? properties.json.text : line.compactMap { $0 }.joined(separator: "  "))
                }
            }
        }
    }

    private func set(_ name: String, _ value: BlueZValue, _ manager: CentralManager) async throws {
        do { try await manager.setAdapterProperty(name, to: value) } catch {
            throw ToolFailure("BlueZ has not set \(name): \(error).", "`bluecap doctor` examines the adapter.")
        }
    }
}

struct ConnectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "connect",
        abstract: "Connect to a peripheral, and leave the link.",
        discussion: """
            It prints the peripheral as `bluecap bonds` does. Unlike other commands it leaves the link, which stays until \
            `bluecap disconnect`, the peripheral or bluetoothd ends it.

            Examples:
              bluecap connect "Pulse Strap 7F"

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @OptionGroup var json: JSONOption

    func run() async throws {
        try await remote.withSession(PairingPlan(), keepsLink: true) { [json] session in
            try await session.run { try await $0.console.write(BondedDevice($0.peripheral).line(json)) }
        }
    }
}

struct DisconnectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disconnect",
        abstract: "End the link to a peripheral.",
        discussion: """
            It ends the link also if another program has made it, and prints the peripheral as `bluecap bonds` does.

            Examples:
              bluecap disconnect "Pulse Strap 7F"

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @OptionGroup var json: JSONOption

    func run() async throws {
        try await remote.withKnown { [json] manager, peripheral, console in
            await console.stage("Disconnecting …")
            try await manager.endLink(of: peripheral)
            try await console.write(BondedDevice(peripheral).line(json))
        }
    }
}

struct InfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Print all that BlueZ knows of a peripheral.",
        discussion: """
            It prints a line for each property of BlueZ's device, without a connection; with --json it is one object. It \
            scans only for a peripheral that BlueZ does not know.

            Examples:
              bluecap info "Pulse Strap 7F" --simulated
              bluecap info C0:5A:17:00:18:0D --json | jq .ManufacturerData

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @OptionGroup var json: JSONOption

    func run() async throws {
        try await remote.withKnown { [json] manager, peripheral, console in
            let properties = try await manager.properties(of: peripheral)
            let lines = properties.map { "\($0.name): \($0.value.text)" }
            try await console.write(
                json.isOn ? BlueZValue.entries(properties).json.text : lines.joined(separator: "\n"))
        }
    }
}

struct TrustCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust",
        abstract: "Mark a peripheral as trusted in BlueZ.",
        discussion: """
            BlueZ asks no agent about a trusted device, and connects it when it asks for that. The mark stays as long as BlueZ \
            knows the device. It prints the peripheral as `bluecap bonds` does.

            Examples:
              bluecap trust "Front Door"
              bluecap trust "Front Door" --remove

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @Flag(help: "Remove the mark.")
    var remove = false

    @OptionGroup var json: JSONOption

    func run() async throws {
        try await remote.withKnown { [remove, json] _, peripheral, console in
            _ = try await peripheral.setTrusted(!remove).value
            try await console.write(BondedDevice(peripheral).line(json))
        }
    }
}

extension RemoteOptions {
    /// Does the work with the peripheral without a connection. It need not be in range if BlueZ knows it.
    fileprivate func withKnown(
        _ work: @escaping @Sendable (CentralManager, Peripheral, Console) async throws -> Void
    ) async throws {
        try await withSession(PairingPlan()) { session in
            try await session.find(amongKnown: true) { try await work($0, $1, session.console) }
        }
    }
}

extension BondedDevice {
    fileprivate func line(_ option: JSONOption) -> String { option.isOn ? json.text : line }
}

extension BlueZValue {
    /// The value for people; a service has its name.
    var text: String {
        switch self {
        case .flag(let flag): flag ? "yes" : "no"
        case .text(let text):
            DisplayText.safe(text.count == 36 ? CBUUID(validating: text).map(Wording.service) ?? text : text)
        case .list(let values): values.map(\.text).joined(separator: ", ")
        case .number, .bytes, .entries: json.text
        }
    }

    var json: JSON {
        switch self {
        case .flag(let flag): JSON(flag)
        case .number(let number): JSON(number)
        case .text(let text): JSON(text)
        case .bytes(let bytes): JSON(bytes)
        case .list(let values): JSON(values.map(\.json))
        case .entries(let entries): JSON(entries.map { ($0.name, $0.value.json) })
        }
    }
}
