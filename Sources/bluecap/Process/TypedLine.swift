import BlueCapKit
import Foundation

/// The last row of the terminal, where a line is typed while other lines are printed above it.
final class TypedLine: Sendable {
    private struct State {
        var line: ShellLine
        var keys: [Key] = []
        /// Whether a line is typed, and drawn.
        var isOpen = false
        /// Whether the next Ctrl-C ends the input.
        var isArmed = false
        /// Whether the terminal is used for questions.
        var isSuspended = false
    }

    /// How the terminal was before its keys were read one by one; `nil` if they are not.
    private static let usual = Locked<termios?>(nil)

    private let prompt: String
    private let state: Locked<State>
    private let isResumed = DispatchSemaphore(value: 0)
    private let turn = NSLock()
    private let willBe: @Sendable (_ isBusy: Bool) -> Void

    /// - Parameters:
    ///   - name: What the prompt consists of.
    ///   - willBe: Called before Ctrl-C is a signal, and when it is a key again.
    init(_ name: String, willBe: @escaping @Sendable (_ isBusy: Bool) -> Void) {
        self.willBe = willBe
        prompt = DisplayText.cut(DisplayText.name(name), to: 24) + "> "
        state = Locked(State(line: ShellLine(history: ShellHistory.file.read().lines)))
    }

    // MARK: The terminal

    /// Reads keys one by one, without their echo. While a line is typed, keys have no signals.
    private static func takeKeys(whileTyping isTyping: Bool) {
        usual.withLock { usual in
            var settings = termios()
            if usual == nil {
                guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return }
                usual = settings
            }
            settings = usual ?? settings
            settings.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN | (isTyping ? ISIG : 0))
            tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
        }
    }

    /// Leaves the terminal as it was. A second call does nothing.
    static func close() {
        usual.withLock { usual in
            guard var settings = usual.take() else { return }
            tcsetattr(STDIN_FILENO, TCSADRAIN, &settings)
        }
    }

    /// Writes something above the line, one writer after another. Only they wait for a terminal that takes nothing.
    func above(_ write: () throws -> Void) rethrows {
        turn.lock()
        defer { turn.unlock() }
        erase()
        defer { draw() }
        try write()
    }

    /// Removes what was typed from the screen, until ``draw()``.
    func erase() { write("") }

    private func draw() {
        let width = DisplayText.width(prompt)
        let window = state.withLock { $0.line.editor.window(Terminal.size().width - width - 1) }
        write("\(prompt)\(window.text)\r\u{1B}[\(width + window.cursor)C")
    }

    private func write(_ text: String) {
        if state.withLock({ $0.isOpen && !$0.isSuspended }) { try? Output.standard.put("\r\u{1B}[K" + text) }
    }

    /// Leaves the terminal to questions.
    func setSuspended(_ isSuspended: Bool) {
        if isSuspended {
            erase()
            Self.close()
        } else {
            setOpen(state.withLock { $0.isOpen })
        }
        state.withLock { $0.isSuspended = isSuspended }
        isResumed.signal()
    }

    private func setOpen(_ isOpen: Bool) {
        Self.takeKeys(whileTyping: isOpen)
        state.withLock { $0.isOpen = isOpen }
    }

    // MARK: Typing

    /// Makes the next Ctrl-C end the input, unless something is typed before.
    func arm() { state.withLock { $0.isArmed = true } }

    /// Waits for the next line. Returns `nil` at the end of the input, and if the task is cancelled.
    ///
    /// - Parameter candidates: Returns the words that can follow words.
    func next(_ candidates: @escaping @Sendable ([String]) -> [String]) async -> String? {
        await onThread { [self] in read(candidates) }
    }

    private func read(_ candidates: ([String]) -> [String]) -> String? {
        var decoder = KeyDecoder()
        while true {
            while state.withLock({ $0.isSuspended }) { isResumed.wait() }
            setOpen(true)
            willBe(false)
            while let key = state.withLock({ $0.keys.isEmpty ? nil : $0.keys.removeFirst() }) {
                switch key {
                case .enter:
                    let line = state.withLock { $0.line.take() }
                    willBe(true)
                    Self.takeKeys(whileTyping: false)
                    write(prompt + DisplayText.safe(line) + "\n")
                    setOpen(false)
                    ShellHistory.file.change { $0.add(line) }
                    return line
                case .endOfInput where state.withLock({ $0.line.editor.text.isEmpty }), .interrupt where interrupts():
                    erase()
                    setOpen(false)
                    return nil
                case .tab:
                    let found = state.withLock { $0.line.complete(candidates) }
                    if !found.isEmpty { write(found.map(DisplayText.safe).joined(separator: "\n") + "\n") }
                case .redraw: write("\u{1B}[H\u{1B}[2J")
                case .stop:
                    erase()
                    Self.close()
                    raise(SIGSTOP)
                    setOpen(true)
                default: state.withLock { $0.line.press(key == .endOfInput ? .delete : key) }
                }
                if key != .interrupt { state.withLock { $0.isArmed = false } }
            }
            draw()
            var entry = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            while poll(&entry, 1, -1) < 0, errno == EINTR {}
            if state.withLock({ $0.isSuspended }) { continue }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = Foundation.read(STDIN_FILENO, &buffer, buffer.count)
            guard count > 0 else { return nil }
            let keys = decoder.keys(buffer[..<count])
            state.withLock { $0.keys += keys }
        }
    }

    /// Returns whether Ctrl-C ends the input. Otherwise it removes what was typed.
    private func interrupts() -> Bool {
        let (isArmed, isEmpty) = state.withLock { state in
            defer {
                state.line.clear()
                state.isArmed = true
            }
            return (state.isArmed, state.line.editor.text.isEmpty)
        }
        if !isArmed, isEmpty { write("Ctrl-C again, or Ctrl-D, ends.\n") }
        return isArmed
    }
}

/// Makes keys of the bytes that a terminal sends: characters in UTF-8, control characters, and the sequences of xterm, which
/// the terminals after it send, too.
struct KeyDecoder: Sendable {
    /// The beginning of a key.
    private var rest: [UInt8] = []

    private static let controls: [UInt8: Key] = [
        0x01: .home, 0x02: .left, 0x03: .interrupt, 0x04: .endOfInput, 0x05: .end, 0x06: .right, 0x08: .backspace,
        0x09: .tab, 0x0A: .enter, 0x0B: .deleteRest, 0x0C: .redraw, 0x0D: .enter, 0x0E: .down, 0x10: .up, 0x15: .clear,
        0x17: .deleteWord, 0x1A: .stop, 0x7F: .backspace,
    ]
    private static let sequences: [String: Key] = [
        "A": .up, "B": .down, "C": .right, "D": .left, "H": .home, "F": .end, "1~": .home, "3~": .delete, "4~": .end,
        "7~": .home, "8~": .end,
    ]

    mutating func keys(_ bytes: some Sequence<UInt8>) -> [Key] {
        rest += bytes
        var keys: [Key] = []
        while let (key, count) = first {
            rest.removeFirst(count)
            if let key { keys.append(key) }
        }
        return keys
    }

    /// The first key and the number of its bytes; `nil` if it is not complete. Bytes without a use have no key.
    private var first: (key: Key?, count: Int)? {
        guard let byte = rest.first else { return nil }
        if byte == 0x1B {
            guard rest.count > 1 else { return nil }
            guard rest[1] == UInt8(ascii: "[") || rest[1] == UInt8(ascii: "O") else { return (nil, 2) }
            guard let end = rest[2...].firstIndex(where: { (0x40...0x7E).contains($0) }) else { return nil }
            return (Self.sequences[String(decoding: rest[2...end], as: UTF8.self)], end + 1)
        }
        if byte < 0x20 || byte == 0x7F { return (Self.controls[byte], 1) }
        let count = byte < 0xC0 || byte > 0xF7 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4
        guard rest.count >= count else { return nil }
        let scalar = String(validating: rest[..<count], as: UTF8.self)?.unicodeScalars.first
        guard let scalar, !DisplayText.isUnsafe(scalar) else { return (nil, 1) }
        return (.character(Character(scalar)), count)
    }
}
