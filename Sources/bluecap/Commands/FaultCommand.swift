import ArgumentParser
import Foundation

/// `bluecap simulate fault`.
struct FaultCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fault",
        abstract: "Inject a fault into a running simulator.",
        discussion: """
            The simulator is the one in whose command this runs (`bluecap simulate -- COMMAND` sets \
            \(ControlSocket.variable)), or the one that --control selects. It returns when clients can see the fault on the bus.

            Faults:
            \(Fault.list)

            An ADAPTER is hci0 unless it is given. An ADDRESS is that of a virtual peripheral. A METHOD is one of BlueZ's, \
            such as Connect, or any; an ERROR is a D-Bus error name, org.bluez.Error.Failed unless it is given. \
            restart-daemon waits so many seconds in between; a late reply or response is delayed by so many seconds.

            Any program can do the same without this command: connect to the socket at $\(ControlSocket.variable), send the \
            words on a line, and read a line: ok, or error and a sentence.

            Examples:
              bluecap simulate -- sh -c 'my_program & sleep 5; bluecap simulate fault restart-daemon; wait'
              bluecap simulate --control /tmp/room &
              bluecap simulate fault --control /tmp/room lose-link C0:5A:17:00:18:0D
              bluecap simulate fault refuse-call Connect org.bluez.Error.Failed le-connection-abort-by-local

            Status: 0 on success; 1 on failure, with one line that says why; 64 for wrong arguments.
            """)

    @OptionGroup var place: ControlOption

    @Argument(help: ArgumentHelp("The fault, with its parameters.", valueName: "fault"))
    var words: [String] = []

    /// Seconds to wait for a reply: a restart may wait for an hour, and the simulator for some seconds.
    private static let patience = 3660

    private var path: String? {
        if let control = place.control { return control }
        let variable = ProcessInfo.processInfo.environment[ControlSocket.variable]
        return variable?.isEmpty == false ? variable : nil
    }

    func validate() throws {
        do { _ = try Fault(words) } catch { throw ValidationError("\(error)") }
        if path == nil {
            throw ValidationError(
                "There is no simulator: run this in the command of `bluecap simulate -- COMMAND`, or give --control."
            )
        }
    }

    func run() throws {
        do {
            try send(to: path ?? "")
        } catch let failure as ToolFailure {
            throw failure.reported()
        }
    }

    private func send(to path: String) throws {
        var address = try UnixAddress(path)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        guard address.withPointer({ connect(descriptor, $0, $1) }) == 0 else {
            throw ToolFailure("Cannot reach the simulator at \(path): \(String(cString: strerror(errno))).")
        }
        var limit = timeval(tv_sec: Self.patience, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var reader = LineReader(descriptor: descriptor, longest: 65_536)
        guard ControlSocket.send(words.joined(separator: " ") + "\n", over: descriptor), let reply = reader.next()
        else {
            throw ToolFailure("The simulator at \(path) ended before it replied.")
        }
        guard reply != "ok" else { return }
        throw ToolFailure(reply.hasPrefix("error ") ? String(reply.dropFirst("error ".count)) : reply)
    }
}

/// The path of a simulator's control socket. One type for `simulate` and for `simulate fault`, so that both have the same
/// option.
struct ControlOption: ParsableArguments {
    @Option(help: ArgumentHelp("The socket over which faults reach the simulator.", valueName: "path"))
    var control: String?
}
