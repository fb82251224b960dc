import ArgumentParser
import BlueCapKit
import BlueZSimulator
import Dispatch
import Foundation
import Logging

/// The options of every command.
struct CommonOptions: ParsableArguments {
    @Flag(name: [.short, .long], help: "Log to standard error; given twice, every sighting too.")
    var verbose: Int

    func makeLogger() -> Logger {
        var logger = Logger(label: "bluecap") { SafeLog(base: StreamLogHandler.standardError(label: $0)) }
        logger.logLevel = verbose == 0 ? .warning : verbose == 1 ? .debug : .trace
        return logger
    }

    /// Log lines would disturb the line of the present step.
    func makeConsole() -> Console { Console(showsStages: Output.error.isTerminal && verbose == 0) }
}

/// What is simulated.
struct SimulationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The virtual peripherals: room, empty, crowd:N or a JSON file.", valueName: "file|name"),
        transform: { try Room.named($0) })
    var peripherals: Room?

    @Option(
        help: ArgumentHelp(
            "The version of BlueZ that is simulated: 5.55 to 5.87, or head. (default: \(BlueZVersion.default))",
            valueName: "version"), transform: SimulationOptions.version)
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

/// Which adapter a command uses: the machine's, or a simulated one.
struct RadioOptions: ParsableArguments {
    @Flag(help: "Use a simulated BlueZ with virtual peripherals: needs no radio and no rights.")
    var simulated = false

    @OptionGroup var simulation: SimulationOptions

    @Option(help: ArgumentHelp("The adapter: hci0, or its address.", valueName: "adapter"))
    var adapter: String?

    func validate() throws {
        if simulation.peripherals != nil, !simulated {
            throw ValidationError("--peripherals chooses what is simulated: add --simulated.")
        }
        if simulation.bluez != nil, !simulated {
            throw ValidationError("--bluez chooses what is simulated: add --simulated.")
        }
        if adapter?.isEmpty == true { throw ValidationError("--adapter takes hci0 or an address; it was empty.") }
    }

    /// Runs a command's work as ``CommandRun`` does, with the adapter, on the system bus or a simulated one.
    ///
    /// - Parameters:
    ///   - isVisited: Whether a virtual central connects to what is served in simulation.
    ///   - restore: Called before a second signal ends the process.
    func run(
        _ common: CommonOptions, isVisited: Bool = false, restoring restore: @escaping @Sendable () -> Void = {},
        _ work: @escaping @Sendable (Radio) async throws -> Void
    ) async throws {
        try await CommandRun.run(restoring: restore) { [self] in
            let simulator = simulated ? try simulation.makeSimulator() : nil
            defer { simulator?.end() }
            if isVisited, let simulator { Visitor.visitAdapters(of: simulator) }
            try await work(Radio(busAddress: simulator?.address, adapter: adapter, logger: common.makeLogger()))
        }
    }
}

/// The options of every command that uses one peripheral.
struct RemoteOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("Its address, its name, or the beginning of its name.", valueName: "peripheral"))
    var peripheral: PeripheralArgument

    @OptionGroup var radio: RadioOptions

    @Option(
        help: ArgumentHelp(
            "Give up after so many seconds: of searching and connecting together, and of waiting for each response.",
            valueName: "seconds"), transform: Arguments.number(0.001...1e6, "seconds"))
    var timeout = 30.0

    @OptionGroup var common: CommonOptions

    /// The end of the help of each of them.
    static let statuses = """
        Status: 0 on success; 1 on failure, with one line that says why; 3 without a usable Bluetooth adapter; 64 for wrong \
        arguments; 128 and the signal's number if a signal ended it. It ends the link that it opened, unless SIGKILL ends it.
        """

    /// Connects to the peripheral, does the work, and disconnects.
    ///
    /// - Parameter isPersistent: Whether a lost link is restored.
    func run(isPersistent: Bool = false, _ work: @escaping @Sendable (Remote) async throws -> Void) async throws {
        try await radio.run(common) { [self] radio in
            let session = RemoteSession(
                radio: radio, argument: peripheral, timeout: timeout, isPersistent: isPersistent,
                console: common.makeConsole())
            try await session.run(work)
        }
    }
}

/// The options of every command that is a peripheral.
struct ServingOptions: ParsableArguments {
    @OptionGroup var radio: RadioOptions

    @Option(
        help: ArgumentHelp("End after so many seconds.", valueName: "seconds"),
        transform: Arguments.seconds)
    var duration: Double?

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    @OptionGroup var common: CommonOptions

    /// The end of the help of each of them.
    static let statuses = """
        Status: 0 when it ended as requested, also by Ctrl-C; 1 if bluetoothd refused, or did not answer within 10 s or \
        --duration, with one line that says why; 3 without a usable Bluetooth adapter; 64 for wrong arguments, including an \
        advertisement that does not fit; 128 and the signal's number if a signal ended it before it was registered. It \
        removes everything that it registered.
        """

    /// Serves and advertises until the time is over or the first signal arrives.
    func run(
        services: [PeripheralModel.Service] = [], advertising advertisements: [AdvertisingPlan],
        showsUpdates: Bool = false
    ) async throws {
        try await radio.run(common, isVisited: true) { [self] radio in
            let serving = Serving(
                radio: radio, services: services, advertisements: advertisements, duration: duration,
                showsUpdates: showsUpdates, format: json ? .json : .lines, console: common.makeConsole())
            try await serving.run()
        }
    }

    /// Refuses an advertisement that BlueZ would refuse.
    static func check(_ advertisement: AdvertisingData) throws {
        do {
            try advertisement.check()
        } catch let error as PeripheralManagerError {
            throw ValidationError(ServingFailure.text(for: error))
        }
    }
}
