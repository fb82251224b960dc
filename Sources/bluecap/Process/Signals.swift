import ArgumentParser
import BlueCapKit
import Dispatch
import Foundation

/// How a command ends: the one place that turns a signal, or a reader that leaves, into an exit status.
enum CommandRun {
    /// Runs the work of a command in a task. The first signal, or a reader that closes the output, cancels it; a second
    /// request to end, as ``EndRequests`` counts them, ends the process at once.
    ///
    /// | the work | ends with status |
    /// |---|---|
    /// | returns, also after it was cancelled | 0 |
    /// | throws `CancellationError` after a signal | 128 and the signal's number |
    /// | throws `CancellationError` because the reader has closed the output | 0 |
    /// | throws ``ToolFailure`` | the failure's |
    ///
    /// The terminal is left as it was.
    ///
    /// - Throws: `ExitCode`, ``ToolFailure``.
    static func run(_ work: @escaping @Sendable () async throws -> Void) async throws {
        ignoreBrokenPipes()
        defer { closeScreens() }
        // A signal's number; `nil` for a reader that has left.
        let (ends, feed) = AsyncStream.makeStream(of: Int32?.self)
        Signals.watchRequests(to: Signals.endings, unless: interrupts) { signal, count in
            if count > 1 {
                closeScreens()
                Output.remark("A second signal has ended the command before it was finished.")
                _exit(128 + signal)
            }
            feed.yield(signal)
        }
        // It keeps its meaning, an end at once with a core file, but the terminal must be left as it was.
        Signals.watch([SIGQUIT]) { signal in
            closeScreens()
            Foundation.signal(signal, SIG_DFL)
            kill(getpid(), signal)
        }
        Output.standard.whenReaderCloses { feed.yield(nil) }
        let task = Task {
            defer { feed.finish() }
            try await work()
        }
        let signal = await ends.first { _ in true } ?? nil
        // Has no effect on work that has ended.
        task.cancel()
        do {
            try await task.value
        } catch is CancellationError {
            if let signal { throw ExitCode(128 + signal) }
        }
    }

    /// What the next Ctrl-C does instead of ending the command; `nil` if it ends it.
    static let interruption = Locked<(@Sendable () -> Void)?>(nil)

    @Sendable private static func interrupts(_ signal: Int32) -> Bool {
        let interrupt = signal == SIGINT ? interruption.withLock { $0.take() } : nil
        interrupt?()
        return interrupt != nil
    }

    private static func closeScreens() {
        try? LiveScreen.close()
        FullScreen.close()
        TypedLine.close()
    }

    /// Makes a write to a closed pipe fail instead of ending the process, so that the command can clean up.
    static func ignoreBrokenPipes() {
        // Evaluated before the disposition changes.
        _ = Signals.ignoredAtStart
        signal(SIGPIPE, SIG_IGN)
    }
}

/// Counts the requests to end a command, as a value.
///
/// One request can arrive as several signals: `timeout` of GNU coreutils sends its signal to the command and then to the
/// command's process group, a terminal that closes sends SIGHUP from the kernel and from the shell, and systemd can send SIGHUP
/// after SIGTERM. So all signals that arrive soon after one that is counted are the same request.
struct EndRequests: Sendable {
    /// For how many seconds signals are the same request.
    static let repetition = 0.3

    private(set) var count = 0
    private var newest: Double?

    /// Records a signal; times are seconds of any one clock. Returns whether it is a new request.
    mutating func receive(at now: Double) -> Bool {
        if let newest, now < newest + Self.repetition { return false }
        newest = now
        count += 1
        return true
    }
}

/// Turns signals into calls on a queue.
enum Signals {
    private static let queue = DispatchQueue(label: "bluecap.signals")

    /// The signals that end a command: Ctrl-C, `kill`, a closed terminal.
    static let endings = [SIGINT, SIGTERM, SIGHUP]

    /// The signals that were ignored when the process started: `nohup` does so, and a shell for a command in the background.
    static let ignoredAtStart = (endings + [SIGQUIT, SIGPIPE]).filter { number in
        var action = sigaction()
        sigaction(number, nil, &action)
        let handler = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        return handler == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Calls `handler` with the signal of each request, and with the number of requests so far, until the process ends.
    ///
    /// A signal that ``EndRequests`` takes for a repetition is not a request, nor is one for which `isOther` returns true.
    /// Otherwise as ``watch(_:_:)``.
    static func watchRequests(
        to signals: [Int32], unless isOther: @escaping @Sendable (Int32) -> Bool = { _ in false },
        _ handler: @escaping @Sendable (_ signal: Int32, _ count: Int) -> Void
    ) {
        let clock = Stopwatch()
        let requests = Locked(EndRequests())
        watch(signals) { signal in
            guard !isOther(signal) else { return }
            let count = requests.withLock { $0.receive(at: clock.seconds) ? $0.count : nil }
            if let count { handler(signal, count) }
        }
    }

    /// Calls `handler` with each of the signals, until the process ends.
    ///
    /// Returns when all of them are watched: a source is registered on another thread, and a signal that arrives earlier is
    /// lost. A hang-up that was ignored stays ignored, for `nohup`, and so does a SIGQUIT, which a terminal sends to the commands
    /// of a script in the background too. An interrupt is watched also if it was ignored: shells
    /// ignore it for every command in the background, and scripts end a command with `kill -INT`.
    static func watch(_ signals: [Int32], _ handler: @escaping @Sendable (_ signal: Int32) -> Void) {
        for number in signals where ![SIGHUP, SIGQUIT].contains(number) || !ignoredAtStart.contains(number) {
            // The default action would end the process before the source is asked.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { handler(number) }
            // A source ends with its last reference.
            sources.withLock { $0.append(source) }
            let isRegistered = DispatchSemaphore(value: 0)
            source.setRegistrationHandler { isRegistered.signal() }
            source.activate()
            isRegistered.wait()
        }
    }

    private static let sources = Locked<[any DispatchSourceSignal]>([])
}
