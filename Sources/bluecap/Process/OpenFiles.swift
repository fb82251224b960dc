import Foundation

/// Whether the process may open as many files as a command needs: the library reports a lack of them, but libdispatch, on
/// which the tool keeps its time, ends the process.
enum OpenFiles {
    /// More than any command has open at once, beside the standard streams.
    private static let needed = 16

    /// Why no command can run; `nil` where it can.
    static var shortage: ToolFailure? {
        let probes = (0..<needed).map { _ in dup(STDERR_FILENO) }
        let code = errno
        for probe in probes where probe >= 0 { close(probe) }
        let free = probes.count { $0 >= 0 }
        // Without standard error there is nothing to duplicate, and nowhere to say so.
        guard free < needed, code == EMFILE || code == ENFILE else { return nil }
        return ToolFailure(
            "bluecap needs \(needed) open files beside its standard streams, and can have \(free): "
                + "raise the limit (see `ulimit -n`).")
    }
}
