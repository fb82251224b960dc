import Foundation

/// A descriptor that text is written to at once, without a buffer between: a reader sees each line when it is there.
struct Output: Sendable {
    static let standard = Output(descriptor: STDOUT_FILENO)
    static let error = Output(descriptor: STDERR_FILENO)

    let descriptor: Int32

    /// Whether this is a terminal.
    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// What became of a text.
    enum Outcome: Equatable, Sendable {
        case written
        /// Nobody reads any more. That is for the reader to decide, and no failure.
        case readerLeft
        /// It could not be written, as on a full disk: the output is not complete.
        case failed(Int32)

        /// What is wrong, in words; `nil` where nothing is.
        var failure: ToolFailure? {
            guard case .failed(let code) = self else { return nil }
            return ToolFailure("Cannot write the output: \(String(cString: strerror(code))).")
        }
    }

    /// Writes all of the text.
    @discardableResult
    func write(_ text: String) -> Outcome {
        var text = text
        return text.withUTF8 { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Foundation.write(descriptor, UnsafeBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count >= 0 {
                    rest = rest.dropFirst(count)
                } else if errno == EAGAIN {
                    waitUntilWritable()
                } else if errno != EINTR {
                    return outcome(of: errno)
                }
            }
            return .written
        }
    }

    /// A terminal that was closed answers EIO.
    private func outcome(of code: Int32) -> Outcome {
        code == EPIPE || (code == EIO && isatty(descriptor) == 1) ? .readerLeft : .failed(code)
    }

    /// Somebody may have made the descriptor non-blocking: shells share it with other programs.
    private func waitUntilWritable() {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&entry, 1, -1)
    }

    /// Calls `body`, once, when the reader of a pipe or the terminal has gone: without it a quiet scan would notice
    /// only at its next line.
    func whenReaderLeaves(_ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread {
            var entry = pollfd(fd: descriptor, events: 0, revents: 0)
            // With no events asked for, only an error or a hang-up ends the wait.
            while poll(&entry, 1, -1) < 0 {
                guard errno == EINTR else { return }
            }
            if entry.revents & Int16(POLLNVAL) == 0 { body() }
        }
    }

    /// Takes the places of standard descriptors that were closed when the process started (`>&-` in a shell), so that no
    /// socket of ours gets one of their numbers and our output with it. Writing there fails.
    static func holdClosedDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest number that is free is this one. The opposite direction, so that its use is an error.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Lets a write to a closed pipe fail instead of ending the process, so that the scan is ended first.
    static func ignoreBrokenPipes() {
        // Asked for before it changes.
        _ = SignalWatcher.ignoredAtStart
        signal(SIGPIPE, SIG_IGN)
    }
}
