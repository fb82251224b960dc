import ArgumentParser
import BlueCapKit
import BlueZSimulator
import Dispatch
import Foundation
import Logging

/// The options of every command.
struct CommonOptions: ParsableArguments {
    @Flag(
        name: [.short, .long],
        help: ArgumentHelp(
            "Log to standard error; given twice, every report, read and write too. BLUECAP_LOG sets another level."))
    var verbose: Int

    /// The environment variable with the level of the log.
    private static let variable = "BLUECAP_LOG"

    private static var chosenLevel: String? {
        ProcessInfo.processInfo.environment[variable].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The lower of the levels that the option and the environment ask for; `nil` if nothing is logged.
    private var level: Logger.Level? {
        let levels = [
            verbose == 0 ? nil : verbose == 1 ? .debug : .trace,
            Self.chosenLevel.flatMap { Logger.Level(rawValue: $0) },
        ]
        return levels.compactMap { $0 }.min()
    }

    var isLogging: Bool { level != nil }

    func validate() throws {
        guard let chosen = Self.chosenLevel, Logger.Level(rawValue: chosen) == nil else { return }
        let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
        throw ValidationError("\(Self.variable) is \"\(chosen)\": it takes \(names).")
    }

    /// The logger of the tool and of the library; neither logs anything at its level unless that was asked for.
    func makeLogger() -> Logger {
        var logger = Logger(label: "bluecap") { SafeLog(base: StreamLogHandler.standardError(label: $0)) }
        logger.logLevel = level ?? .critical
        return logger
    }
}

/// One type for the commands that have these options, so that each has the same meaning and help text in all of them.
struct JSONOption: ParsableArguments {
    @Flag(name: .customLong("json"), help: "Print JSON, one object a line.")
    var isOn = false

    func format() -> Format { isOn ? .json : .lines }

    /// The format of a command that draws in place. Log lines would disturb the frames.
    func format(drawingUnless common: CommonOptions) -> Format {
        let isDisturbed = common.isLogging && Output.error.isTerminal
        return !isOn && Terminal.present.canRedraw && !isDisturbed ? .table : format()
    }
}

/// How, and where, the commands print whose lines have several forms.
struct LineOptions<Fields: LineFields>: ParsableArguments {
    @OptionGroup var json: JSONOption

    @Flag(help: "Print comma-separated values, after a line that names the columns.")
    var csv = false

    @Option(
        name: .customLong("format"),
        help: ArgumentHelp("Print a text with fields in it, such as '{clock} {name}'.", valueName: "text"))
    var text: String?

    @Option(help: ArgumentHelp("Append the lines to a file.", valueName: "file"), completion: .file())
    var output: String?

    @Option(help: ArgumentHelp("Its greatest size, such as 10MB.", valueName: "size"), transform: Arguments.size)
    var rotate: Int?

    /// `nil` for the usual lines.
    var format: Format? { json.isOn ? .json : csv ? .csv : text.map { .text($0.replacing("\\t", with: "\t")) } }

    func validate() throws {
        guard [json.isOn, csv, text != nil].count(where: { $0 }) <= 1 else {
            throw ValidationError("--json, --csv and --format exclude each other: choose one.")
        }
        guard rotate == nil || output != nil else { throw ValidationError("--rotate needs --output.") }
        let names = (text ?? "").matches(of: /\{([^{}]*)\}/).map { String($0.1) }
        guard let name = names.first(where: { !Fields.fields.contains($0) && !$0.hasPrefix("field:") }) else { return }
        throw ValidationError("There is no {\(name)}: --format takes \(Fields.placeholders).")
    }

    func open() throws -> LineOutput {
        var lines = LineOutput(path: output, limit: rotate, header: csv ? Fields.header : nil)
        try lines.open()
        return lines
    }
}

/// How the commands print that print values.
struct ValueOptions: ParsableArguments {
    @Option(name: .customLong("as"), help: "How values are printed; u16 has the least significant byte first.")
    var form = ValueForm.auto

    @OptionGroup var lines: LineOptions<ValueStyle>

    var style: ValueStyle { ValueStyle(form: form, template: lines.format) }
}

/// The options of the commands that show what is advertised.
struct FormatOptions: ParsableArguments {
    @Option(
        name: .customLong("key"),
        help: ArgumentHelp(
            "Decrypt what a BTHome sensor advertises; may be given several times.", valueName: "address=key"),
        transform: Arguments.key)
    var keys: [(address: BluetoothAddress, key: Data)] = []

    @Option(
        help: ArgumentHelp(
            "Use the decoders, keys and names of a JSON file. (default: ~/.config/bluecap/decoders.json)",
            valueName: "file"), completion: .file(extensions: ["json"]), transform: { try Formats(path: $0) })
    var decoders: Formats?

    func withFormats(_ work: @Sendable () async throws -> Void) async throws {
        var formats = try decoders ?? Formats.usual()
        try formats.add(keys)
        try await Formats.$current.withValue(formats, operation: work)
    }
}

struct DurationOption: ParsableArguments {
    @Option(
        name: .customLong("duration"), help: ArgumentHelp("End after so many seconds.", valueName: "seconds"),
        transform: Arguments.seconds)
    var seconds: Double?
}

struct CountOption: ParsableArguments {
    @Option(
        name: .customLong("count"), help: ArgumentHelp("End after so many values.", valueName: "number"),
        transform: Arguments.whole(1...1_000_000_000, "values"))
    var values: Int?
}

struct SimulationOptions: ParsableArguments {
    static let title = "Simulation"

    @Option(
        help: ArgumentHelp("The virtual peripherals: room, empty, crowd:N or a JSON file.", valueName: "file|name"),
        completion: Arguments.nameOrFile(["room", "empty"]), transform: { try Room.named($0) })
    var peripherals: Room?

    @Option(
        help: ArgumentHelp(
            "The version of BlueZ that is simulated: 5.55 to 5.87, or head. (default: \(BlueZVersion.default))",
            valueName: "version"), completion: .list((55...87).map { "5.\($0)" } + ["head"]),
        transform: SimulationOptions.version)
    var bluez: BlueZVersion?

    /// Starts a simulator on a bus of its own.
    func makeSimulator(adapters: Int = 1) throws -> Simulator {
        // A million peripherals take seconds.
        let notice = DispatchWorkItem { Output.remark("Preparing the virtual peripherals …") }
        if Output.error.isTerminal { DispatchQueue.global().asyncAfter(deadline: .now() + 0.6, execute: notice) }
        defer { notice.cancel() }
        do {
            return try Simulator.onPrivateBus(
                room: peripherals ?? .furnished, adapters: (0..<adapters).map { VirtualAdapter(index: $0) },
                bluez: bluez ?? .default)
        } catch {
            throw ToolFailure(error.description)
        }
    }

    @Sendable private static func version(_ text: String) throws -> BlueZVersion {
        guard let version = BlueZVersion(text) else {
            throw ValidationError("It is not a version of BlueZ, such as 5.72.")
        }
        let known = BlueZVersion.known
        guard version >= known.lowerBound else {
            throw ValidationError("The simulator knows BlueZ \(known.lowerBound) and newer.")
        }
        guard version <= known.upperBound else {
            throw ValidationError("The simulator knows BlueZ up to 5.87, and its development version as \"head\".")
        }
        return version
    }
}

struct SimulatedOption: ParsableArguments {
    @Flag(
        name: .customLong("simulated"),
        help: "Use a simulated BlueZ with virtual peripherals: needs no radio and no rights.")
    var isOn = false
}

/// Which adapter a command uses: the machine's, or a simulated one.
struct RadioOptions: ParsableArguments {
    @OptionGroup(title: SimulationOptions.title) var choice: SimulatedOption

    @OptionGroup(title: SimulationOptions.title) var simulation: SimulationOptions

    @Option(
        help: ArgumentHelp(
            "The adapter: hci0, or its address. (default: \(variable), or the library's choice)", valueName: "adapter"),
        completion: .custom { _, _, _ in Arguments.adapters(in: "/sys/class/bluetooth") })
    var adapter: String?

    /// The environment variable with the adapter. A simulator of one command has only hci0.
    private static let variable = "BLUECAP_ADAPTER"

    private var chosenAdapter: String? {
        let usual = choice.isOn ? nil : ProcessInfo.processInfo.environment[Self.variable]
        return adapter ?? (usual?.isEmpty == true ? nil : usual)
    }

    func validate() throws {
        let option = simulation.peripherals != nil ? "--peripherals" : simulation.bluez != nil ? "--bluez" : nil
        if let option, !choice.isOn { throw ValidationError("\(option) chooses what is simulated: add --simulated.") }
        do {
            try CentralManager.Configuration(adapter: chosenAdapter).check()
        } catch {
            throw ValidationError("\(adapter == nil ? Self.variable : "--adapter") \(error.reason).")
        }
    }

    /// Runs a command's work as ``CommandRun`` does, with the adapter, on the system bus or a simulated one.
    ///
    /// - Parameter isVisited: Whether a virtual central connects to what is served in simulation.
    func run(
        _ common: CommonOptions, isVisited: Bool = false, _ work: @escaping @Sendable (Radio) async throws -> Void
    ) async throws {
        try await CommandRun.run { [self] in
            let simulator = choice.isOn ? try simulation.makeSimulator() : nil
            defer { simulator?.end() }
            if isVisited, let simulator { Visitor.visitAdapters(of: simulator) }
            // Log lines would disturb the line of the present step.
            let console = Console(showsStages: Output.error.isTerminal && !common.isLogging)
            try await work(
                Radio(
                    busAddress: simulator?.address, adapter: chosenAdapter, logger: common.makeLogger(),
                    console: console))
        }
    }
}

/// How long every command waits that connects to peripherals.
struct TimeoutOption: ParsableArguments {
    @Option(
        name: .customLong("timeout"),
        help: ArgumentHelp(
            "Give up after so many seconds: of searching and connecting together, and of waiting for each response. (default: "
                + "30)",
            valueName: "seconds"), transform: Arguments.number(0.001...1e6, "seconds"))
    var seconds = 30.0
}

/// The options of every command that uses one peripheral.
///
/// A debug build of the argument parser checks the options of a group four times as often as those of the group around it.
struct RemoteOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("Its address, its name, or the beginning of its name.", valueName: "peripheral"))
    var peripheral: PeripheralArgument

    @OptionGroup var radio: RadioOptions

    @OptionGroup var timeout: TimeoutOption

    @OptionGroup var common: CommonOptions

    /// The end of the help of each of them.
    static let statuses = """
        Status: 0 on success; 1 on failure, with one line that says why; 3 without a usable Bluetooth adapter; 4 if a pairing \
        failed, or is needed and BlueZ says so; 64 for wrong arguments; 128 and the signal's number if a signal ended it. \
        It ends the link that it opened, unless SIGKILL ends it.
        """

    /// Connects to the peripheral, does the work, and disconnects.
    func run(_ pairing: PairingPlan, _ work: @escaping @Sendable (Remote) async throws -> Void) async throws {
        try await withSession(pairing) { try await $0.run(work) }
    }

    /// Does the work with a session that is not begun, or with that of the shell.
    ///
    /// - Parameter isPersistent: Whether a lost link is restored.
    func withSession(
        _ pairing: PairingPlan, isPersistent: Bool = false, keepsLink: Bool = false,
        _ work: @escaping @Sendable (RemoteSession) async throws -> Void
    ) async throws {
        if let session = RemoteSession.shared { return try await work(session) }
        try await radio.run(common) { [self] radio in
            var radio = radio
            radio.keepsLinks = keepsLink
            try await work(
                RemoteSession(
                    radio: radio, argument: peripheral, timeout: timeout.seconds, isPersistent: isPersistent,
                    pairing: pairing))
        }
    }
}

/// The replies of a command to the requests of a pairing.
struct PairingAnswers: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Enter this passkey, which the other device shows; \"-\" reads it from standard input.",
            valueName: "digits|-"), transform: Arguments.passkey)
    var passkey: PairingPlan.Source?

    @Flag(help: "Agree to pair, and to a number that both sides show, without being asked.")
    var yes = false

    var isGiven: Bool { passkey != nil || yes }

    func plan(_ policy: PairingPolicy) -> PairingPlan {
        var policy = policy
        // A peripheral may begin the pairing as soon as it is connected.
        policy.acceptsIncoming = true
        return PairingPlan(policy: policy, passkey: passkey, agrees: yes)
    }
}

/// The options of every command that pairs if a value needs it.
struct PairingOptions: ParsableArguments {
    enum Mode: String, CaseIterable, ExpressibleByArgument, Sendable {
        case never
        case justWorks = "just-works"
        case ask
    }

    @Option(
        name: [.customLong("pair"), .customLong("pairing")],
        help: ArgumentHelp(
            "Pair if a value needs it: never, without a passkey, or with questions on the terminal. (default: never; ask "
                + "with --passkey or --yes)", valueName: "mode"))
    var mode: Mode?

    @OptionGroup var answers: PairingAnswers

    func validate() throws {
        if let mode, mode != .ask, answers.isGiven {
            throw ValidationError("--passkey and --yes answer what --pair ask asks: omit them, or write --pair ask.")
        }
    }

    /// Returns the plan of the options.
    ///
    /// - Parameter usual: The mode if no option is given.
    func plan(orElse usual: Mode = .never) -> PairingPlan {
        switch mode ?? (answers.isGiven ? .ask : usual) {
        case .never: PairingPlan()
        case .justWorks: answers.plan(.justWorks)
        // A passkey that is given is to be entered here, so that this side offers nothing else.
        case .ask: answers.plan(answers.passkey == nil ? .ask : .ask(.keyboardOnly))
        }
    }
}

/// The options of every command that is a peripheral.
struct ServingOptions: ParsableArguments {
    @OptionGroup var radio: RadioOptions

    @OptionGroup var duration: DurationOption

    @OptionGroup var json: JSONOption

    @OptionGroup var common: CommonOptions

    /// The end of the help of each of them.
    static let statuses = """
        Status: 0 when it ended as requested, also by Ctrl-C; 1 if bluetoothd refused, or did not answer within 10 s or \
        --duration, with one line that says why; 3 without a usable Bluetooth adapter; 64 for wrong arguments, including an \
        advertisement that does not fit; 128 and the signal's number if a signal ended it before it was registered. It \
        removes everything that it registered.
        """

    /// Serves and advertises until the time is over or the first signal arrives.
    ///
    /// - Parameter pairableTime: For how many seconds centrals may pair; `nil` for no limit.
    func run(
        services: [PeripheralModel.Service] = [], advertising advertisements: [AdvertisingPlan],
        showsUpdates: Bool = false, pairing: PairingPlan = PairingPlan(), pairableTime: Double? = nil
    ) async throws {
        try await radio.run(common, isVisited: true) { [self] radio in
            let serving = Serving(
                radio: radio, services: services, advertisements: advertisements, duration: duration.seconds,
                showsUpdates: showsUpdates, pairing: pairing, pairableTime: pairableTime, format: json.format())
            try await serving.run()
        }
    }

    /// Refuses an advertisement that BlueZ would refuse.
    static func check(_ advertisement: AdvertisingData) throws {
        do {
            try advertisement.check()
        } catch {
            throw ValidationError(ServingFailure.text(for: error))
        }
    }
}
