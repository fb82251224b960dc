import ArgumentParser
import Dispatch
import Foundation

/// How a command ends: the one place that turns a signal, or a reader that leaves, into an exit status.
enum CommandRun {
    /// Runs the work of a command in a task. The first signal, or a reader that closes the output, cancels it; a second
    /// signal ends the process at once.
    ///
    /// | the work | ends with status |
    /// |---|---|
    /// | returns, also after it was cancelled | 0 |
    /// | throws `CancellationError` after a signal | 128 and the signal's number |
    /// | throws `CancellationError` because the reader has closed the output | 0 |
    /// | throws ``ToolFailure`` | the failure's |
    ///
    /// - Parameter restore: Called before a second signal ends the process.
    /// - Throws: `ExitCode`, ``ToolFailure``.
    static func run(
        restoring restore: @escaping @Sendable () -> Void = {}, _ work: @escaping @Sendable () async throws -> Void
    ) async throws {
        ignoreBrokenPipes()
        // A signal's number; `nil` for a reader that has left.
        let (ends, feed) = AsyncStream.makeStream(of: Int32?.self)
        Signals.watch(Signals.endings) { signal, count in
            if count > 1 {
                restore()
                Output.remark("A second signal has ended the command before it was finished.")
                _exit(128 + signal)
            }
            feed.yield(signal)
        }
        Output.standard.whenReaderLeaves { feed.yield(nil) }
        let task = Task {
            defer { feed.finish() }
            try await work()
        }
        var signal: Int32?
        for await end in ends {
            signal = end
            task.cancel()
            break
        }
        do {
            try await task.value
        } catch is CancellationError {
            if let signal { throw ExitCode(128 + signal) }
        }
    }

    /// Makes a write to a closed pipe fail instead of ending the process, so that the command can clean up.
    static func ignoreBrokenPipes() {
        // Evaluated before the disposition changes.
        _ = Signals.ignoredAtStart
        signal(SIGPIPE, SIG_IGN)
    }
}

/// Turns signals into calls on a queue.
enum Signals {
    private static let queue = DispatchQueue(label: "bluecap.signals")

    /// The signals that end a command: Ctrl-C, `kill`, a closed terminal.
    static let endings = [SIGINT, SIGTERM, SIGHUP]

    /// The signals that were ignored when the process started: `nohup` does so, and a shell for a command in the background.
    static let ignoredAtStart: Set<Int32> = {
        var ignored: Set<Int32> = []
        for number in endings + [SIGQUIT, SIGPIPE] {
            var action = sigaction()
            sigaction(number, nil, &action)
            let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            if handler == unsafeBitCast(SIG_IGN, to: Int.self) { ignored.insert(number) }
        }
        return ignored
    }()

    /// Calls `handler` with each of the signals, and with how many have arrived, until the process ends.
    ///
    /// Returns when all of them are watched: a source is registered on another thread, and a signal that arrives earlier is
    /// lost. A hang-up that was ignored stays ignored, for `nohup`. An interrupt is watched also if it was ignored: shells
    /// ignore it for every command in the background, and scripts end a command with `kill -INT`.
    static func watch(_ signals: [Int32], _ handler: @escaping @Sendable (_ signal: Int32, _ count: Int) -> Void) {
        let tally = Tally()
        for number in signals where number != SIGHUP || !ignoredAtStart.contains(SIGHUP) {
            // The default action would end the process before the source is asked.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler {
                tally.count += 1
                handler(number, tally.count)
            }
            tally.sources.append(source)
            let isRegistered = DispatchSemaphore(value: 0)
            source.setRegistrationHandler { isRegistered.signal() }
            source.activate()
            isRegistered.wait()
        }
    }

    /// Unchecked because each property is used in one place only.
    private final class Tally: @unchecked Sendable {
        /// Used on the signal queue only.
        var count = 0
        /// Used only while the watch is set up; kept because a source ends with its last reference.
        var sources: [any DispatchSourceSignal] = []
    }
}
