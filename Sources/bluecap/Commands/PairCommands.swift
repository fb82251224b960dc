import ArgumentParser
import BlueCapKit
import Foundation

struct PairCommand: AsyncParsableCommand {
    /// What this side can do in a pairing.
    enum Capability: String, CaseIterable, ExpressibleByArgument, Sendable {
        case none, display
        case yesNo = "yes-no"
        case keyboard, full

        var value: InputOutputCapability {
            switch self {
            case .none: .noInputNoOutput
            case .display: .displayOnly
            case .yesNo: .displayYesNo
            case .keyboard: .keyboardOnly
            case .full: .keyboardDisplay
            }
        }

        fileprivate var canEnter: Bool { self == .keyboard || self == .full }
    }

    static let configuration = CommandConfiguration(
        commandName: "pair",
        abstract: "Pair with a peripheral, and store the keys.",
        discussion: """
            It connects, pairs, and prints the bond as `bluecap bonds` does. Later links are encrypted with its keys, \
            also those of other programs. If there is a bond already, it checks that a link is encrypted with its keys, and \
            prints it; if the peripheral no longer has them, it fails and says what to do.

            What both sides can do decides how they pair: with a passkey that one side shows and the other enters, with a \
            number that both show, or with neither, which does not protect against a device in the middle. --capability \
            restricts what this side offers: none; display, to show a passkey; yes-no, to compare numbers; keyboard, to \
            enter a passkey; full, all of them.

            Questions and passkeys appear on the terminal, also if standard output and standard error are redirected, and in \
            no output or log. An answer has to come within 25 s. Without a terminal, --passkey and --yes answer; what they \
            do not answer is rejected. A passkey in an argument is visible to every program of the machine; with \
            --passkey - it is one line of standard input. BlueZ chooses the passkey that this side shows.

            Examples:
              bluecap pair "Front Door"
              bluecap pair "Front Door" --passkey - < passkey
              bluecap pair C0:5A:17:00:18:0D --capability none --json

            \(RemoteOptions.statuses)
            """)

    @OptionGroup var remote: RemoteOptions

    @Option(
        help: ArgumentHelp(
            "What this side offers. (default: full; keyboard with --passkey)",
            valueName: "capability"))
    var capability: Capability?

    @OptionGroup var answers: PairingAnswers

    @Flag(help: "Mark the device as trusted in BlueZ after the pairing.")
    var trust = false

    @OptionGroup var json: JSONOption

    func validate() throws {
        if let capability, answers.passkey != nil, !capability.canEnter {
            throw ValidationError(
                "--passkey is entered on this side: use --capability keyboard or full, or omit one of them.")
        }
    }

    private var plan: PairingPlan {
        let capability = capability ?? (answers.passkey == nil ? .full : .keyboard)
        return answers.plan(capability == .none ? .justWorks : .ask(capability.value))
    }

    func run() async throws {
        try await remote.run(plan) { [self] remote in
            await remote.console.stage("Pairing with \(remote.peripheral.name) …")
            try await remote.pair()
            // It returns when BlueZ has confirmed the mark, so that it is printed.
            if trust { _ = try await remote.peripheral.setTrusted(true).value }
            let device = BondedDevice(remote.peripheral)
            try await remote.console.write(json.isOn ? device.json.text : device.line)
        }
    }
}

struct UnpairCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpair",
        abstract: "Remove a bond, or all bonds.",
        discussion: """
            It ends the link to the device, and removes the bond and the device from BlueZ, for all programs. The device \
            does not have to be near. It keeps its own keys, and may refuse to pair again until they are removed there too.

            --all removes every bond of the adapter, also those that other programs made. It asks on the terminal first, \
            unless --yes is given.

            With --json it prints an object for each bond that it has removed, as `bluecap bonds` does.

            Examples:
              bluecap unpair "Front Door"
              bluecap unpair --all --yes

            \(BondsCommand.statuses)
            """)

    @Argument(help: ArgumentHelp("Its address, its name, or the beginning of its name.", valueName: "peripheral"))
    var peripheral: PeripheralArgument?

    @Flag(help: "Remove all bonds.")
    var all = false

    @Flag(help: "Remove all bonds without being asked.")
    var yes = false

    @OptionGroup var json: JSONOption

    @OptionGroup var radio: RadioOptions

    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard (peripheral != nil) != all else {
            throw ValidationError("Name one peripheral, or remove all bonds with --all.")
        }
        if yes, !all { throw ValidationError("--yes answers the question of --all: omit it.") }
    }

    func run() async throws {
        try await radio.run(common) { [self] radio in
            let (names, console) = (KnownNames.file(for: radio), radio.console)
            try await radio.withCentral { manager in
                for bond in try await chosen(manager.bonds(), names?.read() ?? KnownNames(), console) {
                    let device = BondedDevice(bond)
                    await console.stage("Removing the bond with \(device.label) …")
                    try await manager.forget(bond)
                    names?.change { $0.remove(bond.address) }
                    if json.isOn { try await console.write(device.json.text) }
                    await console.remark("Removed the bond with \(device.label). It keeps its own keys.")
                }
            }
        }
    }

    private func chosen(_ bonds: [Bond], _ names: KnownNames, _ console: Console) async throws -> [Bond] {
        guard let peripheral else {
            if !yes, !bonds.isEmpty { try await confirm(bonds.count, console) }
            return bonds
        }
        let candidates = bonds.map { bond in
            PeripheralSearch.Candidate(
                address: bond.address, names: (bond.name.map { [$0] } ?? []) + names[bond.address])
        }
        let address = try PeripheralSearch.choice(of: peripheral, amongBonds: candidates)
        return bonds.filter { $0.address == address }
    }

    private func confirm(_ count: Int, _ console: Console) async throws {
        guard let prompt = PasskeyPrompt() else {
            throw ToolFailure(
                "There \(count == 1 ? "is" : "are") \(Wording.count(count, "bond")) to remove, and no terminal to ask on:",
                "add --yes.")
        }
        let question = "Remove \(count == 1 ? "the bond" : "all \(count) bonds") of the adapter?"
        guard await console.ask({ await prompt.agrees(to: question) }) == true else {
            try Task.checkCancellation()
            throw ToolFailure("No bond was removed.")
        }
    }
}

struct BondsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bonds",
        abstract: "List the devices that the adapter has bonds with.",
        discussion: """
            It prints a line for each device with which BlueZ shares stored keys, whichever program paired them: its \
            address, the address's type, its name, and whether it is trusted and connected. It uses no radio.

            With --json each line is an object with the members identifier, address, addressType, name, bonded, trusted \
            and connected. What is not known is null.

            Examples:
              bluecap bonds
              bluecap bonds --json | jq -r .address

            \(statuses)
            """)

    @OptionGroup var json: JSONOption

    @OptionGroup var radio: RadioOptions

    @OptionGroup var common: CommonOptions

    func run() async throws {
        try await radio.run(common) { [self] radio in
            try await radio.withCentral { manager in
                let devices = manager.bonds().map { BondedDevice($0) }
                for device in devices { try await radio.console.write(json.isOn ? device.json.text : device.line) }
                if devices.isEmpty, !json.isOn {
                    await radio.console.remark("The adapter has no bonds: `bluecap pair` makes one.")
                }
            }
        }
    }

    /// The end of the help of a command that needs no link.
    static let statuses = """
        Status: 0 on success; 1 on failure, with one line that says why; 3 without a usable Bluetooth adapter; 64 for wrong \
        arguments; 128 and the signal's number if a signal ended it.
        """
}
