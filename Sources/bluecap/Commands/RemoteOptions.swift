import ArgumentParser

/// What every command understands that deals with one peripheral.
struct RemoteOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("Its address, its name, or the beginning of its name.", valueName: "peripheral"))
    var peripheral: PeripheralArgument

    @OptionGroup var radio: RadioOptions

    @Option(
        help: ArgumentHelp(
            "Give up after so many seconds: of looking and connecting together, and of waiting for each answer.",
            valueName: "seconds"), transform: NumberArgument.number(0.001...1e6, "seconds"))
    var timeout = 30.0

    @OptionGroup var common: CommonOptions

    /// What the help of each of them says at its end.
    static let statuses = """
        Status: 0 when it was done; 1 when it was not, with one line that says why; 3 without a usable Bluetooth adapter; \
        64 for bad arguments; 128 and the signal's number where a signal ended it. It ends the link that it opened, unless it is killed by SIGKILL.
        """

    /// Runs the work with the peripheral, in a task that the first signal cancels and a second does not wait for.
    ///
    /// - Parameter isPersistent: a lost link is to be brought back.
    func run(
        isPersistent: Bool = false,
        _ work: @escaping @Sendable (RemoteSession, RemoteSession.Remote) async throws -> Void
    ) async throws {
        try await radio.run { [self] busAddress in
            let session = session(on: busAddress, isPersistent: isPersistent)
            try await session.run { try await work(session, $0) }
        }
    }

    private func session(on busAddress: String?, isPersistent: Bool) -> RemoteSession {
        // Log lines and the line of progress would tear one another.
        let showsProgress = Output.error.isTerminal && common.verbose == 0
        return RemoteSession(
            request: RemoteRequest(
                busAddress: busAddress, adapter: radio.adapter, peripheral: peripheral, timeout: timeout,
                isPersistent: isPersistent),
            progress: Progress(on: .error, isEnabled: showsProgress), logger: common.makeLogger())
    }
}
