import ArgumentParser
import BlueCapKit
import Foundation

/// Carries out lines over one connection, one after the other: those that are typed, or those of a script.
final class Shell: Sendable {
    enum Source: Sendable {
        case terminal
        case lines(InputLines)
        case script(name: String, [String])
    }

    private struct State {
        var status: Int32 = 0
        /// What was begun in the background, by the handles of the characteristics.
        var live: [Set<UInt32>: Task<Void, Never>] = [:]
        /// The present line.
        var task: Task<Void, any Error>?
        /// Whether Ctrl-C was pressed since the line was entered.
        var isInterrupted = false
        /// A pairing may replace the link.
        var isPairing = false
    }

    /// That of each line's command.
    private let session: RemoteSession
    private let remote: Remote
    private let source: Source
    private let isJSON: Bool
    private let keepsGoing: Bool
    private let refusal: Locked<ToolFailure?>
    private let state = Locked(State())

    /// - Parameter refusal: Where the reason of a rejected pairing is kept.
    init(
        _ session: RemoteSession, _ remote: Remote, _ source: Source, isJSON: Bool, keepsGoing: Bool,
        refusal: Locked<ToolFailure?>
    ) {
        var session = session
        session.remote = remote
        (self.session, self.remote, self.source) = (session, remote, source)
        (self.isJSON, self.keepsGoing, self.refusal) = (isJSON, keepsGoing, refusal)
    }

    private var console: Console { remote.console }

    /// That of the first command of a script that has failed.
    var status: Int32 { state.withLock { $0.status } }

    /// Returns when the last command is done.
    func run() async throws {
        await console.stage("Discovering the services of \(remote.peripheral.name) …")
        _ = try await remote.discover()
        await console.endStages()
        var typed: TypedLine?
        if case .terminal = source {
            typed = TypedLine(remote.name ?? remote.peripheral.address) { [state] isBusy in
                state.withLock { $0.isInterrupted = false }
                let interrupt: @Sendable () -> Void = {
                    state.withLock {
                        $0.isInterrupted = true
                        $0.task?.cancel()
                    }
                }
                CommandRun.interruption.withLock { $0 = isBusy ? interrupt : nil }
            }
            Output.remark("Connected. Tab completes, `help` lists the commands, Ctrl-D ends.")
        }
        Output.typed.withLock { $0 = typed }
        let result = try await EventLoop<ConnectionEvent>.run { loop in
            loop.observe(remote.events) { $0.connectionEvent }
            loop.perform { [self] in for await event in loop { connection(event) } }
            return await Result { try await runLines(typed) }
        }
        Output.typed.withLock { $0 = nil }
        typed?.erase()
        CommandRun.interruption.withLock { $0 = nil }
        TypedLine.close()
        try? await stop(nil)
        try result.get()
    }

    private func runLines(_ typed: TypedLine?) async throws {
        var number = 0
        while let line = await nextLine(number, typed) {
            number += 1
            refusal.withLock { $0 = nil }
            do {
                guard let statement = try ShellStatement(line, for: session.argument, isJSON: isJSON) else { continue }
                if case .quit = statement { break }
                try await perform(statement, number)
            } catch is CancellationError where typed != nil && !Task.isCancelled {
                typed?.arm()
                Output.remark("Interrupted.")
            } catch {
                try Task.checkCancellation()
                // The reader of the output has closed it.
                if error is CancellationError { throw error }
                report(error, number)
                guard typed != nil || keepsGoing else { break }
            }
        }
        try Task.checkCancellation()
    }

    private func nextLine(_ number: Int, _ typed: TypedLine?) async -> String? {
        switch source {
        case .terminal:
            await typed?.next { [directory = remote.directory] words in
                ShellStatement.candidates(after: words, in: directory.withLock { $0?.tree })
            }
        case .lines(let lines): await lines.next()
        case .script(_, let lines): number < lines.count ? lines[number] : nil
        }
    }

    private func perform(_ statement: ShellStatement, _ number: Int) async throws {
        let task = Task { try await run(statement, number) }
        let isInterrupted = state.withLock { state in
            state.task = task
            return state.isInterrupted
        }
        if isInterrupted { task.cancel() }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        state.withLock { $0.task = nil }
        if task.isCancelled { throw CancellationError() }
        try result.get()
    }

    private func run(_ statement: ShellStatement, _ number: Int) async throws {
        switch statement {
        case .command(var command):
            if command is PairCommand { state.withLock { $0.isPairing = true } }
            defer {
                if command is PairCommand { pairingEnded() }
            }
            try await RemoteSession.$shared.withValue(session) { try await command.run() }
        case .background(let command): try await begin(command, number)
        case .stop(let argument): try await stop(argument)
        case .sleep(let seconds): try await Task.sleep(for: .seconds(seconds))
        case .text(let event, let text):
            let json: JSON = ["event": JSON(event), "text": JSON(text)]
            try await console.write(isJSON ? json.text : DisplayText.lines(text))
        case .quit: break
        }
    }

    private func report(_ error: any Error, _ number: Int) {
        let failure = refusal.withLock { $0 } ?? remote.failure(of: error)
        switch source {
        case .terminal: return Output.remark(failure.description)
        case .lines: Output.remark("line \(number): \(failure)")
        case .script(let name, _): Output.remark("\(name):\(number): \(failure)")
        }
        state.withLock { if $0.status == 0 { $0.status = failure.status } }
    }

    // MARK: The link

    private func connection(_ event: ConnectionEvent) {
        guard !state.withLock({ $0.isPairing }) else { return }
        switch event {
        case .connect where remote.directory.withLock({ $0 == nil }): Output.remark(Wording.linkIsBack)
        case .disconnect:
            remote.directory.withLock { $0 = nil }
            Output.remark(Wording.linkIsLost)
            remote.peripheral.reconnect()
        case .timeout: remote.peripheral.reconnect()
        case .connect, .forceDisconnect, .giveUp: break
        }
    }

    private func pairingEnded() {
        remote.directory.withLock { $0 = nil }
        state.withLock { $0.isPairing = false }
        if remote.peripheral.state != .connected { remote.peripheral.reconnect() }
    }

    // MARK: The background

    /// Returns when the command has subscribed.
    private func begin(_ command: NotifyCommand, _ number: Int) async throws {
        var handles: Set<UInt32> = []
        for argument in command.characteristics { handles.insert(try await handle(of: argument)) }
        await end(handles)
        let (outcomes, feed) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
        let isReady = Locked(false)
        var session = session
        session.whenReady = {
            isReady.withLock { $0 = true }
            feed.yield(.success(()))
        }
        let task = Task { [self, session] in
            let result = await Result { try await RemoteSession.$shared.withValue(session) { try await command.run() } }
            feed.yield(result)
            guard case .failure(let error) = result, !(error is CancellationError), isReady.withLock({ $0 })
            else { return }
            report(error, number)
        }
        state.withLock { $0.live[handles] = task }
        do {
            try await outcomes.first { _ in true }?.get()
            try Task.checkCancellation()
        } catch {
            await end(handles)
            throw error
        }
    }

    private func handle(of argument: AttributeArgument) async throws -> UInt32 {
        try await remote.find(argument, usableFor: [.notify, .indicate]).entry.handle
    }

    /// Ends the notifications of a characteristic in the background, or all of them.
    private func stop(_ argument: AttributeArgument?) async throws {
        let wanted = if let argument { try await handle(of: argument) } else { UInt32?.none }
        let found = state.withLock { $0.live.keys.filter { handles in wanted.map(handles.contains) ?? true } }
        if let argument, found.isEmpty {
            throw ToolFailure("\(argument.text) has no notifications in the background: `notify … &` begins them.")
        }
        for handles in found { await end(handles) }
    }

    private func end(_ handles: Set<UInt32>) async {
        for overlapping in state.withLock({ $0.live.keys.filter { !$0.isDisjoint(with: handles) } }) {
            let task = state.withLock { $0.live.removeValue(forKey: overlapping) }
            task?.cancel()
            await task?.value
        }
    }
}
