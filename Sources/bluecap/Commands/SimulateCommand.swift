import ArgumentParser
import BlueZSimulator
import Foundation
import Logging

/// `bluecap simulate`.
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

            Examples:
              bluecap simulate -- bluetoothctl list
              bluecap simulate -- python3 my_bleak_scanner.py
              bluecap simulate --central -- python3 my_gatt_server.py
              bluecap simulate --peripherals crowd:1000
              bluecap simulate --bluez 5.72 -- bash     as on Ubuntu 24.04
              bluecap simulate -- pytest tests          in which `bluecap simulate fault lose-link …` is run
              bluecap simulate --control /tmp/room      and in another terminal:
                bluecap simulate fault --control /tmp/room power-off
              bluecap simulate --adapters 2 -- bash     and in that shell:
                bluecap serve uart --adapter hci1 > /dev/null &
                bluecap explore "BlueCap UART" --adapter hci0
            """,
        subcommands: [FaultCommand.self])

    @Option(help: SimulatedRoom.help, transform: SimulatedRoom.room)
    var peripherals: Room?

    @Option(
        help: ArgumentHelp(
            "The number of adapters, hci0 and so on; each receives what the others send.",
            valueName: "number"), transform: NumberArgument.whole(1...16, "adapters"))
    var adapters = 1

    @Option(help: SimulatedRoom.versionHelp, transform: SimulatedRoom.version)
    var bluez: BlueZVersion?

    @Flag(help: "Add a virtual central that connects, reads, subscribes and writes.")
    var central = false

    @OptionGroup var place: ControlOption

    @OptionGroup var common: CommonOptions

    @Argument(parsing: .postTerminator, help: "The command to run, after \"--\".")
    var command: [String] = []

    func run() async throws {
        CommandRun.ignoreBrokenPipes()
        do {
            let room = try SimulatedRoom(peripherals, adapters: adapters, bluez: bluez)
            defer { room.end() }
            let socket = place.control != nil || !command.isEmpty ? try room.openControl(at: place.control) : nil
            defer { socket?.end() }
            if central { room.sendVisitor() }
            if command.isEmpty {
                try await stay(room, socket)
            } else {
                let status = try await runCommand(in: room, socket)
                if status != 0 { throw ExitCode(status) }
            }
        } catch let failure as ToolFailure {
            throw failure.reported()
        }
    }

    private static let busVariable = "DBUS_SYSTEM_BUS_ADDRESS"

    /// Prints the address, alone on its line for scripts, and waits for a signal.
    private func stay(_ room: SimulatedRoom, _ socket: ControlSocket?) async throws {
        let (signals, feed) = AsyncStream.makeStream(of: Int32.self)
        Signals.watch(Signals.endings) { signal, count in
            if count > 1 {
                socket?.end()
                _exit(128 + signal)
            }
            feed.yield(signal)
        }
        do { try Output.standard.write(room.address + "\n") } catch is CancellationError {}
        if Output.standard.isTerminal, Output.error.isTerminal {
            try? Output.error.write(
                """
                A simulated BlueZ \(bluez ?? .default) is on that bus until Ctrl-C. In another terminal:
                  export \(Self.busVariable)='\(room.address)'\(
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

    private func runCommand(in room: SimulatedRoom, _ socket: ControlSocket?) async throws -> Int32 {
        let logger = common.makeLogger()
        // Before the command starts: a signal in between must not end the tool without the command.
        let (signals, feed) = AsyncStream.makeStream(of: Int32.self)
        Signals.watch(Signals.endings + [SIGQUIT]) { signal, _ in feed.yield(signal) }
        let child: ChildProcess
        do {
            var environment = [Self.busVariable: room.address]
            environment[ControlSocket.variable] = socket?.path
            child = try ChildProcess(command, environment: environment)
        } catch let failure as ChildProcess.Failure {
            Output.remark(failure.description)
            return failure.status
        }
        logger.info("running", metadata: ["command": "\(command)", "pid": "\(child.identifier)"])
        let forwarding = Task { for await signal in signals { child.forward(signal) } }
        let status = await child.status()
        forwarding.cancel()
        logger.info("command has ended", metadata: ["status": "\(status)"])
        return status
    }
}
