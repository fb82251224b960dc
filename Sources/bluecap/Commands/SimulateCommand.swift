import ArgumentParser
import BlueZSimulator
import Foundation
import Logging

struct SimulateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Run a simulated BlueZ on a bus of its own.",
        discussion: """
            With a command, the command runs with DBUS_SYSTEM_BUS_ADDRESS set to that bus, so that a BLE program in any \
            language finds the simulated peripherals; its status is passed on (128 and the signal's number if a signal \
            ended it, 127 if it was not found). Without a command, the address is printed and the bus stays until Ctrl-C.

            Faults can be injected while it runs: `bluecap simulate fault restart-daemon`, run by the command or by what it \
            starts, kills the simulated bluetoothd and starts it again; `bluecap simulate fault --help` lists all. They are sent \
            over a socket, whose path is in \(ControlSocket.variable). With --control it is at that path, also without a \
            command. Only this user can connect to it, and it is removed together with the simulator.

            The command has a state directory of its own: \(SimulatedState.variable) is a new folder, which is removed at \
            the end. So nothing about simulated devices is kept among the user's files.

            Examples:
              bluecap simulate -- bluetoothctl list
              bluecap simulate -- python3 my_bleak_scanner.py
              bluecap simulate --central -- python3 my_gatt_server.py
              bluecap simulate --peripherals crowd:1000
              bluecap simulate --bluez 5.72 -- bash        # as on Ubuntu 24.04
              bluecap simulate -- pytest tests             # its tests cause faults
              bluecap simulate --control /tmp/control      # and in another terminal:
              bluecap simulate fault --control /tmp/control power-off
              bluecap simulate --adapters 2 -- bash        # and in that shell:
              bluecap serve uart --adapter hci1 > /dev/null &
              bluecap explore "BlueCap UART" --adapter hci0
            """,
        subcommands: [FaultCommand.self])

    @OptionGroup var simulation: SimulationOptions

    @Option(
        help: ArgumentHelp(
            "The number of adapters, hci0 and so on; each receives what the others send.",
            valueName: "number"), transform: Arguments.whole(1...16, "adapters"))
    var adapters = 1

    @Flag(help: "Add a virtual central that connects, reads, subscribes and writes.")
    var central = false

    @OptionGroup var place: ControlOption

    @OptionGroup var common: CommonOptions

    @OptionGroup var rest: SimulatedProgram

    private var command: [String] { rest.command }

    func run() async throws {
        CommandRun.ignoreBrokenPipes()
        let simulator = try simulation.makeSimulator(adapters: adapters)
        defer { simulator.end() }
        let socket =
            place.control != nil || !command.isEmpty ? try ControlSocket(of: simulator, at: place.control) : nil
        defer { socket?.end() }
        let state = try SimulatedState()
        defer { state.remove() }
        if central { Visitor.visitAdapters(of: simulator) }
        if command.isEmpty {
            try await stay(simulator, socket, state)
        } else {
            let status = try await runCommand(on: simulator.address, socket, state)
            if status != 0 { throw ExitCode(status) }
        }
    }

    private static let busVariable = "DBUS_SYSTEM_BUS_ADDRESS"

    /// Prints the address, alone on its line for scripts, and waits for a signal.
    private func stay(_ simulator: Simulator, _ socket: ControlSocket?, _ state: SimulatedState) async throws {
        let (signals, feed) = AsyncStream.makeStream(of: Int32.self)
        Signals.watchRequests(to: Signals.endings) { signal, count in
            if count > 1 {
                socket?.end()
                state.remove()
                _exit(128 + signal)
            }
            feed.yield(signal)
        }
        do { try Output.standard.write(simulator.address + "\n") } catch is CancellationError {}
        if Output.standard.isTerminal, Output.error.isTerminal {
            try? Output.error.write(
                """
                A simulated BlueZ \(simulation.bluez ?? .default) is on that bus until Ctrl-C. In another terminal:
                  export \(Self.busVariable)='\(simulator.address)' \(SimulatedState.variable)='\(state.path)'\(
                    socket.map { "\n  export \(ControlSocket.variable)='\($0.path)'" } ?? "")

                """)
        }
        for await signal in signals {
            // Without it, the shell's prompt would follow the echoed "^C".
            if signal == SIGINT, Output.error.isTerminal { try? Output.error.write("\n") }
            common.makeLogger().info("ending", metadata: ["signal": "\(signal)"])
            return
        }
    }

    private func runCommand(
        on address: String, _ socket: ControlSocket?, _ state: SimulatedState
    ) async throws -> Int32 {
        let logger = common.makeLogger()
        // Before the command starts: a signal in between must not end the tool without the command.
        let (signals, feed) = AsyncStream.makeStream(of: Int32.self)
        Signals.watchRequests(to: Signals.endings + [SIGQUIT]) { signal, _ in feed.yield(signal) }
        var environment = [Self.busVariable: address, SimulatedState.variable: state.path]
        environment[ControlSocket.variable] = socket?.path
        let child = try ChildProcess(command, environment: environment)
        // Its arguments may be secret, such as a passkey.
        logger.info("running", metadata: ["program": "\(command[0])", "pid": "\(child.identifier)"])
        let forwarding = Task { for await signal in signals { child.forward(signal) } }
        let status = await child.status()
        forwarding.cancel()
        logger.info("command has ended", metadata: ["status": "\(status)"])
        return status
    }
}

/// The rest of the arguments of `simulate`, without which completions are generated: those of swift-argument-parser 1.8 give it the
/// words of the subcommand in bash and fish, and zsh prints an error if a command has both.
struct SimulatedProgram: ParsableArguments, CustomReflectable {
    @Argument(parsing: .postTerminator, help: "The command to run, after \"--\".")
    var command: [String] = []

    /// The argument parser finds arguments by it.
    var customMirror: Mirror {
        Mirror(self, children: CompletionShell.requesting == nil ? ["_command": _command] : [:])
    }
}

struct FaultCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fault",
        abstract: "Inject a fault into a running simulator.",
        discussion: """
            The simulator is the one in whose command this runs (`bluecap simulate -- COMMAND` sets \
            \(ControlSocket.variable)), or the one that --control selects. It returns when clients can see the fault on the bus.

            Faults:
            \(Fault.list)

            An ADAPTER is hci0 unless it is given. An ADDRESS is that of a virtual peripheral. A METHOD is one of BlueZ's, \
            such as Connect, or any; an ERROR is a D-Bus error name, org.bluez.Error.Failed unless it is given. \
            restart-daemon waits so many seconds in between; a late reply or response is delayed by so many seconds.

            Any program can do the same without this command: connect to the socket at $\(ControlSocket.variable), send the \
            words on a line, and read a line: ok, or error and a sentence.

            Examples:
              bluecap simulate -- sh -c 'my_program & bluecap simulate fault kill-daemon'
              bluecap simulate --control /tmp/control &
              bluecap simulate fault --control /tmp/control lose-link C0:5A:17:00:18:0D
              bluecap simulate fault refuse-call Connect org.bluez.Error.Failed busy

            Status: 0 on success; 1 on failure, with one line that says why; 64 for wrong arguments.
            """)

    @OptionGroup var place: ControlOption

    @OptionGroup var common: CommonOptions

    @Argument(
        help: ArgumentHelp("The fault, with its parameters.", valueName: "fault"),
        completion: .custom { words, index, _ in Fault.names(missingIn: words.prefix(index)) })
    var words: [String] = []

    /// Seconds to wait for a reply: a restart may wait for an hour, and the simulator for some seconds.
    private static let patience = 3660

    private var path: String? {
        if let control = place.control { return control }
        let variable = ProcessInfo.processInfo.environment[ControlSocket.variable]
        return variable?.isEmpty == false ? variable : nil
    }

    func validate() throws {
        do { _ = try Fault(words) } catch { throw ValidationError("\(error)") }
        if path == nil {
            throw ValidationError(
                "There is no simulator: run this in the command of `bluecap simulate -- COMMAND`, or give --control."
            )
        }
    }

    func run() throws {
        let path = path ?? ""
        var address = try UnixAddress(path)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        guard address.withPointer({ connect(descriptor, $0, $1) }) == 0 else {
            throw ToolFailure("Cannot reach the simulator at \(path): \(String(cString: strerror(errno))).")
        }
        var limit = timeval(tv_sec: Self.patience, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var reader = LineReader(descriptor: descriptor, longest: 65_536)
        CommandRun.ignoreBrokenPipes()
        try? Output(descriptor: descriptor).write(words.joined(separator: " ") + "\n")
        guard let reply = reader.next() else {
            throw ToolFailure("The simulator at \(path) ended before it replied.")
        }
        common.makeLogger().debug("reply", metadata: ["fault": "\(words)", "reply": "\(reply)"])
        guard reply != "ok" else { return }
        throw ToolFailure(reply.hasPrefix("error ") ? String(reply.dropFirst("error ".count)) : reply)
    }
}

/// The path of a simulator's control socket. One type for `simulate` and for `simulate fault`, so that both have the same
/// option.
struct ControlOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("The socket over which faults reach the simulator.", valueName: "path"),
        completion: .file())
    var control: String?
}
