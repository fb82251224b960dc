import ArgumentParser
import BlueZSimulator
import Foundation

/// Which radio a command uses: the machine's, or one in a simulated room.
struct RadioOptions: ParsableArguments {
    @Flag(help: "Use a simulated room: needs no radio and no rights.")
    var simulated = false

    @Option(help: SimulatedRoom.help, transform: SimulatedRoom.room)
    var peripherals: Room?

    @Option(help: SimulatedRoom.versionHelp, transform: SimulatedRoom.version)
    var bluez: BlueZVersion?

    @Option(help: ArgumentHelp("The adapter: hci0, or its address.", valueName: "adapter"))
    var adapter: String?

    func validate() throws {
        if peripherals != nil, !simulated {
            throw ValidationError("--peripherals describes a simulated room: add --simulated.")
        }
        if bluez != nil, !simulated {
            throw ValidationError("--bluez chooses what is simulated: add --simulated.")
        }
        if adapter?.isEmpty == true { throw ValidationError("--adapter takes hci0 or an address; it was empty.") }
    }

    /// The room, where one was asked for. Whoever asks for it ends it.
    func room() throws -> SimulatedRoom? { simulated ? try SimulatedRoom(peripherals, bluez: bluez) : nil }

    /// Does the work in a task that the first signal cancels, and that a second does not wait for.
    ///
    /// - Parameters:
    ///   - isVisited: whether a virtual central comes by in a simulated room.
    ///   - work: is given the address of the simulated bus, `nil` for the system's.
    /// - Throws: `ExitCode`, after the failure was told on standard error.
    func run(
        isVisited: Bool = false, _ work: @escaping @Sendable (_ busAddress: String?) async throws -> Void
    ) async throws {
        Output.ignoreBrokenPipes()
        do {
            let room = try room()
            defer { room?.end() }
            if isVisited { room?.sendVisitor() }
            let task = Task { try await work(room?.address) }
            let (signals, feed) = AsyncStream.makeStream(of: Int32.self)
            SignalWatcher.watch(SignalWatcher.endings) { signal, count in
                // Asked a second time, and BlueZ has not yet answered.
                if count > 1 { _exit(128 + signal) }
                feed.yield(signal)
                feed.finish()
                task.cancel()
            }
            Output.standard.whenReaderLeaves { task.cancel() }
            do {
                try await task.value
            } catch is CancellationError {
                feed.finish()
                // Without a signal it was the reader who left, and that is no failure.
                for await signal in signals { throw ExitCode(128 + signal) }
            }
        } catch let failure as ToolFailure {
            throw failure.reported()
        }
    }
}
