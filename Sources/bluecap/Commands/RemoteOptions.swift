import ArgumentParser
import BlueZSimulator
import Foundation

/// What every command understands that deals with one peripheral.
struct RemoteOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("Its address, its name, or the beginning of its name.", valueName: "peripheral"))
    var peripheral: PeripheralArgument

    @Flag(help: "Look for it in a simulated room: needs no radio and no rights.")
    var simulated = false

    @Option(help: SimulatedRoom.help, transform: SimulatedRoom.room)
    var peripherals: Room?

    @Option(help: ArgumentHelp("The adapter: hci0, or its address.", valueName: "adapter"))
    var adapter: String?

    @Option(
        help: ArgumentHelp(
            "Give up after so many seconds: of looking and connecting together, and of waiting for each answer.",
            valueName: "seconds"))
    var timeout = 30.0

    @OptionGroup var common: CommonOptions

    func validate() throws {
        if !(timeout > 0 && timeout <= 1e6) {
            throw ValidationError("--timeout takes a number of seconds above 0; it was \(timeout).")
        }
        if peripherals != nil, !simulated {
            throw ValidationError("--peripherals describes a simulated room: add --simulated.")
        }
        if adapter?.isEmpty == true { throw ValidationError("--adapter takes hci0 or an address; it was empty.") }
    }

    /// What the help of each of them says at its end.
    static let statuses = """
        Status: 0 when it was done; 1 when it was not, with one line that says why; 3 without a usable Bluetooth adapter; \
        64 for bad arguments; 128 and the signal's number where a signal ended it. No link that it opened is left behind.
        """

    /// Runs the work with the peripheral, in a task that the first signal cancels and a second does not wait for.
    ///
    /// - Parameter isPersistent: a lost link is to be brought back.
    func run(
        isPersistent: Bool = false,
        _ work: @escaping @Sendable (RemoteSession, RemoteSession.Remote) async throws -> Void
    ) async throws {
        Output.ignoreBrokenPipes()
        do {
            let room = simulated ? try SimulatedRoom(peripherals) : nil
            defer { room?.end() }
            let session = session(on: room?.address, isPersistent: isPersistent)
            let task = Task { try await session.run { try await work(session, $0) } }
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

    private func session(on busAddress: String?, isPersistent: Bool) -> RemoteSession {
        // Log lines and the line of progress would tear one another.
        let showsProgress = Output.error.isTerminal && common.verbose == 0
        return RemoteSession(
            request: RemoteRequest(
                busAddress: busAddress, adapter: adapter, peripheral: peripheral, timeout: timeout,
                isPersistent: isPersistent),
            progress: Progress(on: .error, isEnabled: showsProgress), logger: common.makeLogger())
    }
}
