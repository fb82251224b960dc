import ArgumentParser
import BlueCapKit
import Foundation

/// A file descriptor that text is written to without a buffer, so that a reader receives each line at once. For pipes and
/// sockets, ``CommandRun/ignoreBrokenPipes()`` must have been called.
struct Output: Sendable {
    static let standard = Output(descriptor: STDOUT_FILENO)
    static let error = Output(descriptor: STDERR_FILENO)

    /// The line that is typed in the last row of the terminal, above which everything is written.
    static let typed = Locked<TypedLine?>(nil)

    let descriptor: Int32

    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// - Throws: `CancellationError` if the reader has closed its end, which is no failure; ``ToolFailure`` if the text
    ///   cannot be written, for example to a full disk.
    func write(_ text: String) throws {
        guard let line = Self.typed.withLock({ $0 }) else { return try put(text) }
        try line.above { try put(text) }
    }

    /// As ``write(_:)``, without regard to a line that is typed.
    func put(_ text: String) throws {
        var text = text
        try text.withUTF8 { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Foundation.write(descriptor, UnsafeBufferPointer(rebasing: rest).baseAddress, rest.count)
                let code = errno
                if count >= 0 {
                    rest = rest.dropFirst(count)
                } else if code == EAGAIN {
                    // Another program may have made the descriptor non-blocking: a shell shares it with other programs.
                    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&entry, 1, -1)
                } else if code == EPIPE || (code == EIO && isTerminal) {
                    // EIO is the error of a terminal that was closed.
                    throw CancellationError()
                } else if code != EINTR {
                    throw ToolFailure("Cannot write the output: \(String(cString: strerror(code))).")
                }
            }
        }
    }

    /// Writes a line for people to standard error, with the tool's name. A failure is ignored.
    static func remark(_ text: String) { try? error.write("bluecap: \(DisplayText.safe(text))\n") }

    /// Calls `body` once when the reader of the pipe has closed it, or the terminal was closed. Without it, a command that
    /// prints nothing for a while would notice only at its next line.
    func whenReaderCloses(_ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread {
            var entry = pollfd(fd: descriptor, events: 0, revents: 0)
            // No events are requested, so only an error or a hang-up ends the wait.
            while poll(&entry, 1, -1) < 0 {
                guard errno == EINTR else { return }
            }
            if entry.revents & Int16(POLLNVAL) == 0 { body() }
        }
    }

    /// Occupies standard descriptors that were closed when the process started (`>&-` in a shell), so that no socket of the
    /// tool receives such a number, and the output with it. Writing to them fails.
    static func holdClosedDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number is this one. It is opened in the opposite direction, so that its use is an error.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// More than any command has open at once, in addition to the standard streams.
    private static let neededDescriptors = 16

    /// Checks that the process may open as many files as a command needs. The library reports a lack of them, but
    /// libdispatch, which the tool's timers use, ends the process.
    static func checkOpenFiles() throws(ToolFailure) {
        let probes = (0..<neededDescriptors).map { _ in dup(STDERR_FILENO) }
        let code = errno
        for probe in probes where probe >= 0 { close(probe) }
        let free = probes.count { $0 >= 0 }
        // Without standard error there is nothing to duplicate, and no place for a message.
        guard free < neededDescriptors, code == EMFILE || code == ENFILE else { return }
        throw ToolFailure(
            "bluecap needs \(neededDescriptors) open files in addition to its standard streams, and can have \(free):",
            "raise the limit (see `ulimit -n`).")
    }
}

/// Why the tool cannot do what it was asked: one line for standard error, and the exit status.
struct ToolFailure: Error, Equatable, CustomStringConvertible {
    /// The exit status of a command that needs a peripheral, if there is no usable adapter.
    static let noAdapter: Int32 = 3
    /// The exit status of a command that could not pair, or that needs a pairing which it was not allowed to make.
    static let notPaired: Int32 = 4

    /// What is wrong and what to do, in whole sentences.
    let description: String
    var status: Int32

    /// Joins sentences in one line, and makes them safe to print: they may quote text from outside.
    init(_ sentences: String..., status: Int32 = 1) {
        description = sentences.flatMap { $0.split(whereSeparator: \.isNewline) }
            .map { DisplayText.safe(String($0)) }.joined(separator: " ")
        self.status = status
    }

    /// The failure of a call that has set `errno`: `file(path, "read")`.
    static func file(_ name: String, _ verb: String) -> ToolFailure {
        ToolFailure("Cannot \(verb) \(name): \(String(cString: strerror(errno))).")
    }

    static func text(of error: any Error) -> String { (error as? any LocalizedError)?.errorDescription ?? "\(error)" }

    /// Prints the failure, and returns the exit status.
    func reported() -> ExitCode {
        Output.remark(description)
        return ExitCode(status)
    }
}
