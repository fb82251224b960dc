import Foundation

/// A command that runs in the foreground of the tool's terminal, in the tool's process group, as if the shell had started it.
///
/// Foundation's `Process` would put it into a group of its own, which the terminal stops as soon as it reads.
struct ChildProcess: Sendable {
    let identifier: pid_t

    /// Starts the command, found in `PATH`, with the present environment and these changes to it.
    ///
    /// - Throws: ``ToolFailure`` with the shells' status: 127 for a command that does not exist, 126 for one that cannot be run.
    init(_ command: [String], environment changes: [String: String]) throws {
        guard let name = command.first else { preconditionFailure("A command has at least its name: pass one.") }
        var environment = ProcessInfo.processInfo.environment
        environment.merge(changes) { $1 }

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The command starts with the dispositions that the tool was started with.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in Signals.endings + [SIGQUIT, SIGPIPE]
        where !Signals.ignoredAtStart.contains(signal) {
            sigaddset(&signals, signal)
        }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var identifier = pid_t()
        let code = Self.withCStrings(command) { arguments in
            Self.withCStrings(environment.map { "\($0)=\($1)" }) { variables in
                posix_spawnp(&identifier, name, nil, &attributes, arguments, variables)
            }
        }
        guard code == 0 else {
            throw ToolFailure(
                "Cannot run \(name): \(String(cString: strerror(code))).", status: code == ENOENT ? 127 : 126)
        }
        self.identifier = identifier
    }

    /// Waits for the command's end on a thread of its own; returns its status, or 128 and the signal that ended it.
    func status() async -> Int32 {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var status: Int32 = 0
                while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
                continuation.resume(returning: Self.shellStatus(status))
            }
        }
    }

    /// Forwards a signal, unless the terminal has sent it to the command already: Ctrl-C reaches the whole group in the
    /// foreground, and many programs end at once after a second one.
    func forward(_ signal: Int32) {
        if signal == SIGINT || signal == SIGQUIT, Terminal.isInForeground { return }
        kill(identifier, signal)
    }

    /// Returns a wait status as shells report it (`wait(2)`: the low seven bits are the signal, the next byte the status).
    static func shellStatus(_ status: Int32) -> Int32 {
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    private static func withCStrings<R>(
        _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
    ) -> R {
        var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers)
    }
}
