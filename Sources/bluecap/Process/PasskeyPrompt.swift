import BlueCapKit
import Foundation

/// Questions about a pairing on the process's terminal.
///
/// They are written to the terminal itself, and so is a passkey to display: neither the output nor the log of the command
/// contains them, nor what the user types.
struct PasskeyPrompt: Sendable {
    private let terminal: Output
    private let lines: InputLines

    /// Returns `nil` without a terminal, and in the background.
    init?() {
        guard let descriptor = Terminal.openInForeground() else { return nil }
        // A table that is drawn has hidden the cursor and what is typed.
        try? LiveScreen.close()
        // What was typed before the question is no answer to it.
        tcflush(descriptor, TCIFLUSH)
        terminal = Output(descriptor: descriptor)
        lines = InputLines(descriptor, ownsDescriptor: true)
    }

    func show(_ text: String) { write(text + "\n") }

    /// Asks a question. Returns `nil` if there is no answer.
    func agrees(to question: String) async -> Bool? {
        await answer(to: "\(question) [y/N] ").map { ["y", "yes"].contains($0.lowercased()) }
    }

    /// Asks for a passkey, and again if the answer is none. Returns `nil` after an empty line, and if there is no answer.
    func passkey(_ question: String) async -> Passkey? {
        var prompt = question
        while let text = await answer(to: prompt + " "), !text.isEmpty {
            if let passkey = Passkey(digits: text) { return passkey }
            prompt = "A passkey has one to six digits. \(question)"
        }
        return nil
    }

    private func answer(to prompt: String) async -> String? {
        write(prompt)
        guard let line = await lines.next() else {
            // What follows begins on a line of its own.
            write("\n")
            return nil
        }
        return line.trimmingCharacters(in: .whitespaces)
    }

    /// A terminal that was closed gives no answer either.
    private func write(_ text: String) { try? terminal.write(text) }
}
