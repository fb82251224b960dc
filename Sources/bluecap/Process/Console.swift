import BlueCapKit
import Foundation
import Logging

/// Where a command prints: lines on standard output, remarks on standard error, and, if that is a terminal, a line that says
/// what the command waits for.
actor Console {
    /// Seconds that a step may take before the console shows it.
    private static let patience = 0.6

    private var showsStages: Bool
    /// The number of the present step, so that the text of a step that is over never appears.
    private var number = 0
    private var isShown = false
    /// How many questions to the user are open on the terminal.
    private var questions = 0

    init(showsStages: Bool) { self.showsStages = showsStages }

    /// Shows no more steps: they would disturb a line that is typed.
    func endStages() {
        clear()
        showsStages = false
    }

    /// Shows what the command waits for from now on.
    func stage(_ text: String) {
        guard showsStages, questions == 0 else { return }
        number += 1
        guard !isShown else { return draw(text) }
        let number = number
        Task {
            try? await Task.sleep(for: .seconds(Self.patience))
            if number == self.number { draw(text) }
        }
    }

    /// Removes the line that says what the command waits for.
    func clear() {
        number += 1
        guard isShown else { return }
        isShown = false
        try? Output.error.write("\r\u{1B}[K")
    }

    /// Asks the user something on the terminal, where nothing is drawn until there is an answer.
    func ask<Answer: Sendable, Failure: Error>(
        _ question: @Sendable () async throws(Failure) -> Answer
    ) async throws(Failure) -> Answer {
        clear()
        questions += 1
        let typed = Output.typed.withLock { $0 }
        typed?.setSuspended(true)
        defer {
            questions -= 1
            typed?.setSuspended(questions > 0)
        }
        return try await question()
    }

    func remark(_ text: String) {
        clear()
        Output.remark(text)
    }

    /// - Throws: As ``Output/write(_:)``.
    func write(_ line: String) throws {
        clear()
        try Output.standard.write(line + "\n")
    }

    /// Does a command's work, and removes the line that says what it waits for.
    ///
    /// - Throws: ``ToolFailure``, or `CancellationError` if the task was cancelled: whatever error a cancelled task throws, the
    ///   cancellation is its cause.
    nonisolated func run(
        _ work: () async throws -> Void, failure: (any Error) -> ToolFailure
    ) async throws {
        do {
            try await work()
            await clear()
        } catch {
            await clear()
            if Task.isCancelled || error is CancellationError { throw CancellationError() }
            throw (error as? ToolFailure) ?? failure(error)
        }
    }

    private func draw(_ text: String) {
        isShown = true
        let width = Terminal.size(of: STDERR_FILENO).width - 1
        try? Output.error.write("\r\u{1B}[K\(DisplayText.cut(DisplayText.safe(text), to: width))")
    }
}

/// A logger whose lines are safe to print, since they quote names and messages from outside.
struct SafeLog: LogHandler {
    var base: StreamLogHandler

    var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }

    var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(DisplayText.safe(event.message.description))"
        event.metadata = event.metadata?.mapValues { .string(DisplayText.safe($0.description)) }
        base.log(event: event)
    }
}
