import BlueCapKit
import Foundation

/// Carries out commands over one connection, one after the other: those that are typed, or those of a script.
final class Shell: Sendable {
    enum Source: Sendable {
        case terminal
        case lines(InputLines)
        case script(name: String, [String])
    }

    private enum FollowEvent: Sendable {
        case value(Data?, Date)
        case failed(any Error)
        case timeIsOver
    }

    private struct State {
        var status: Int32 = 0
        /// The present attributes; `nil` after the link was lost.
        var directory: AttributeDirectory?
        /// The subscriptions that do not end with their command, by handles.
        var live: [UInt32: Task<Void, Never>] = [:]
        /// The present command.
        var task: Task<Void, any Error>?
        /// Whether Ctrl-C was pressed since the line was entered.
        var isInterrupted = false
        /// A pairing may replace the link.
        var isPairing = false
    }

    let remote: Remote
    let format: Format
    private let source: Source
    private let keepsGoing: Bool
    private let refusal: Locked<ToolFailure?>
    private let state = Locked(State())

    /// - Parameter refusal: Where the reason of a rejected pairing is kept.
    init(remote: Remote, source: Source, keepsGoing: Bool, format: Format, refusal: Locked<ToolFailure?>) {
        (self.remote, self.source, self.keepsGoing) = (remote, source, keepsGoing)
        (self.format, self.refusal) = (format, refusal)
    }

    var console: Console { remote.console }

    /// That of the first command of a script that has failed.
    var status: Int32 { state.withLock { $0.status } }

    func write(_ text: String, _ json: JSON) async throws {
        try await console.write(format == .json ? json.text : text)
    }

    /// Returns when the last command is done.
    func run() async throws {
        await console.stage("Discovering the services of \(remote.peripheral.name) …")
        _ = try await attributes()
        await console.clear()
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
            await console.remark("Connected. Tab completes, `help` lists the commands, Ctrl-D ends.")
        }
        await console.setTyped(typed)
        let result = try await EventLoop<ConnectionEvent>.run { loop in
            loop.observe(remote.events) { $0.connectionEvent }
            loop.perform { [self] in for await event in loop { await connection(event) } }
            return await Result { try await runLines(typed) }
        }
        typed?.erase()
        await console.setTyped(nil)
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
                guard let statement = try ShellLanguage.statement(line) else { continue }
                if statement is QuitStatement { break }
                try await perform(statement)
            } catch is CancellationError where typed != nil && !Task.isCancelled {
                typed?.arm()
                await console.remark("Interrupted.")
            } catch {
                try Task.checkCancellation()
                // The reader of the output has closed it.
                if error is CancellationError { throw error }
                await report(error, number)
                guard typed != nil || keepsGoing else { break }
            }
        }
        try Task.checkCancellation()
    }

    private func nextLine(_ number: Int, _ typed: TypedLine?) async -> String? {
        switch source {
        case .terminal:
            await typed?.next { [self] words in
                ShellLanguage.candidates(after: words, in: state.withLock { $0.directory?.tree })
            }
        case .lines(let lines): await lines.next()
        case .script(_, let lines): number < lines.count ? lines[number] : nil
        }
    }

    private func perform(_ statement: any ShellStatement) async throws {
        let task = Task { try await statement.run(in: self) }
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
        await console.clear()
        if task.isCancelled { throw CancellationError() }
        try result.get()
    }

    private func report(_ error: any Error, _ number: Int) async {
        if case CharacteristicError.invalidated = error { state.withLock { $0.directory = nil } }
        let failure = refusal.withLock { $0 } ?? remote.failure(of: error)
        switch source {
        case .terminal: return await console.remark(failure.description)
        case .lines: await console.remark("line \(number): \(failure)")
        case .script(let name, _): await console.remark("\(name):\(number): \(failure)")
        }
        state.withLock { if $0.status == 0 { $0.status = failure.status } }
    }

    // MARK: The link

    private func connection(_ event: ConnectionEvent) async {
        guard !state.withLock({ $0.isPairing }) else { return }
        switch event {
        case .connect where state.withLock({ $0.directory == nil }): await console.remark(Wording.linkIsBack)
        case .disconnect:
            state.withLock { $0.directory = nil }
            await console.remark(Wording.linkIsLost)
            remote.peripheral.reconnect()
        case .timeout: remote.peripheral.reconnect()
        case .connect, .forceDisconnect, .giveUp: break
        }
    }

    func attributes() async throws -> AttributeDirectory {
        if let known = state.withLock({ $0.directory }) { return known }
        let directory = try await remote.discover()
        state.withLock { $0.directory = directory }
        return directory
    }

    func pair() async throws {
        state.withLock { $0.isPairing = true }
        defer {
            state.withLock { ($0.isPairing, $0.directory) = (false, nil) }
            if remote.peripheral.state != .connected { remote.peripheral.reconnect() }
        }
        try await remote.pair()
    }

    // MARK: Notifications

    /// Prints what a characteristic sends until so many values have arrived or the time is over. Without both it returns with
    /// the subscription, which ``stop(_:)`` ends.
    func follow(_ argument: AttributeArgument, _ form: ValueForm, count: Int?, seconds: Double?) async throws {
        let found = try await remote.find(argument, in: attributes(), usableFor: [.notify, .indicate])
        await end(found.entry.handle)
        guard count == nil, seconds == nil else {
            return try await follow(found.entry, found.target, found.profile, form, count: count, seconds: seconds) {}
        }
        let handle = found.entry.handle
        let (outcomes, feed) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
        let task = Task { [self] in
            let isSubscribed = Locked(false)
            let result = await Result {
                try await follow(found.entry, found.target, found.profile, form) {
                    isSubscribed.withLock { $0 = true }
                    feed.yield(.success(()))
                }
            }
            feed.yield(result)
            guard case .failure(let error) = result, !(error is CancellationError), isSubscribed.withLock({ $0 })
            else { return }
            await console.remark("\(found.entry.label): \(RemoteFailure.text(for: error))")
        }
        state.withLock { $0.live[handle] = task }
        do {
            try await outcomes.first { _ in true }?.get()
            try Task.checkCancellation()
        } catch {
            await end(handle)
            throw error
        }
    }

    private func follow(
        _ entry: AttributeTree.Characteristic, _ target: Characteristic, _ profile: CharacteristicProfile?,
        _ form: ValueForm, count: Int? = nil, seconds: Double? = nil, whenSubscribed: () -> Void
    ) async throws {
        let result = try await EventLoop<FollowEvent>.run { loop in
            try await remote.subscribe(to: target, in: loop, failure: FollowEvent.failed) { .value($0, Date()) }
            whenSubscribed()
            if let seconds { loop.send(.timeIsOver, after: seconds) }
            return await Result {
                var count = count
                for await event in loop {
                    switch event {
                    case .value(let data, let date):
                        try await show(data.map { .init($0, profile: profile) }, of: entry, form, date)
                    case .failed(let error): throw error
                    case .timeIsOver: return
                    }
                    if case .value(.some, _) = event { count = count.map { $0 - 1 } }
                    if count == 0 { return }
                }
            }
        }
        await cleanUp(within: remote.timeout) { [remote] in
            let stop: Future<Characteristic> = target.stopNotifying(timeout: remote.timeout)
            _ = try? await stop.value
        }
        try result.get()
    }

    private func show(
        _ value: AttributeValue?, of entry: AttributeTree.Characteristic, _ form: ValueForm, _ date: Date
    ) async throws {
        let label = DisplayText.safe(entry.label)
        guard let value else {
            await console.remark("\(label): \(ValueEvent.gap(date).remark(.lines) ?? "")")
            guard format == .json else { return }
            let head = [("event", JSON("gap")), ("time", JSON(Wording.timestamp(date)))]
            return try await console.write(JSON(head + entry.identity).text)
        }
        guard format == .json else {
            return try await console.write("\(Wording.clock(date, in: .local))  \(label)  \(form.line(of: value))")
        }
        let event = ValueEvent.value(value, of: entry, date)
        try await console.write(event.line(.json, ValueStyle(form: form)) ?? "")
    }

    /// Ends the subscription to a characteristic, or all of them.
    func stop(_ argument: AttributeArgument?) async throws {
        guard let argument else {
            for handle in state.withLock({ $0.live.keys }) { await end(handle) }
            return
        }
        let entry = try await remote.find(argument, in: attributes(), usableFor: [.notify, .indicate]).entry
        guard state.withLock({ $0.live[entry.handle] }) != nil else {
            throw ToolFailure("There is no subscription to \(entry.label): `notify` makes one.")
        }
        await end(entry.handle)
    }

    private func end(_ handle: UInt32) async {
        let task = state.withLock { $0.live.removeValue(forKey: handle) }
        task?.cancel()
        await task?.value
    }
}
