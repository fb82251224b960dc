import BlueZSimulator
import Foundation

/// The socket over which a simulator receives faults from other processes of this user.
///
/// A client sends a fault on a line, such as `restart-daemon 2`, and receives a line when it is done: `ok`, or `error` and a
/// sentence. A connection may send any number of lines, one after another.
final class ControlSocket: Sendable {
    /// The environment variable with the socket's path.
    static let variable = "BLUECAP_SIMULATOR"

    /// The greatest length of a line, in bytes.
    private static let longestLine = 4096

    /// The absolute path: programs may run in other directories.
    let path: String
    private let descriptor: Int32
    /// Identifies the file, so that no other file is removed.
    private let identity: (device: dev_t, inode: ino_t)

    /// Opens the socket of a simulator, and serves it on threads of its own. Only this user can connect.
    ///
    /// - Parameter path: `nil` for the directory of the private bus.
    /// - Throws: ``ToolFailure`` if the path is too long, is in use, or cannot be bound.
    init(of simulator: Simulator, at path: String?) throws {
        guard let place = path ?? simulator.controlPath else {
            throw ToolFailure("The simulator has no directory for a control socket: give a path with --control.")
        }
        let path = URL(fileURLWithPath: place).path
        self.path = path
        var address = try UnixAddress(path)
        try Self.removeLeftover(at: path, &address)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failure(path, errno) }
        // Before it has a file: the file gets these permissions, so that other users can connect at no moment.
        fchmod(descriptor, S_IRUSR | S_IWUSR)
        guard address.withPointer({ bind(descriptor, $0, $1) }) == 0, listen(descriptor, 16) == 0 else {
            let code = errno
            close(descriptor)
            throw Self.failure(path, code)
        }
        var status = stat()
        lstat(path, &status)
        identity = (status.st_dev, status.st_ino)
        self.descriptor = descriptor
        let injector = FaultInjector(simulator)
        Thread.detachNewThread { Self.serve(descriptor, injector) }
    }

    /// Accepts no more connections, and removes the file. A second call does nothing.
    func end() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        var status = stat()
        guard lstat(path, &status) == 0, status.st_dev == identity.device, status.st_ino == identity.inode else {
            return
        }
        unlink(path)
    }

    /// Removes a socket without a listener, which a killed simulator has left. Anything else is not removed.
    private static func removeLeftover(at path: String, _ address: inout UnixAddress) throws {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw ToolFailure("Cannot open the control socket: there is a file \(path) already; use another path.")
        }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(probe) }
        guard address.withPointer({ connect(probe, $0, $1) }) != 0, errno == ECONNREFUSED else {
            throw ToolFailure("Cannot open the control socket: another program uses \(path); use another path.")
        }
        unlink(path)
    }

    private static func failure(_ path: String, _ code: Int32) -> ToolFailure {
        ToolFailure("Cannot open the control socket \(path): \(String(cString: strerror(code))).")
    }

    // MARK: Connections

    private static func serve(_ listener: Int32, _ injector: FaultInjector) {
        while true {
            let connection = accept(listener, nil, nil)
            if connection >= 0 {
                // A command that starts now must not inherit the descriptor, and keep the connection open.
                _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
                Thread.detachNewThread {
                    converse(over: connection, injector)
                    close(connection)
                }
            } else if errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS {
                Thread.sleep(forTimeInterval: 0.1)
            } else if errno != EINTR && errno != ECONNABORTED {
                close(listener)
                return
            }
        }
    }

    private static func converse(over connection: Int32, _ injector: FaultInjector) {
        // The file's permissions exclude other users, but the owner of its directory may have replaced it.
        guard peer(of: connection) == geteuid() || peer(of: connection) == 0 else { return }
        var lines = LineReader(descriptor: connection, longest: longestLine)
        while let line = lines.next() {
            let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
            let reply: String
            do {
                try injector.perform(Fault(words))
                reply = "ok"
            } catch {
                reply = "error \(error)"
            }
            guard (try? Output(descriptor: connection).write(reply + "\n")) != nil else { return }
        }
    }

    private static func peer(of connection: Int32) -> uid_t? {
        // `struct ucred` of unix(7): process, user and group, which Glibc's module leaves out.
        var credentials: [UInt32] = [0, 0, 0]
        var size = socklen_t(MemoryLayout<UInt32>.stride * credentials.count)
        guard getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else { return nil }
        return credentials[1]
    }
}

/// The address of a socket with a file.
struct UnixAddress {
    private var storage = sockaddr_un()

    /// - Throws: ``ToolFailure`` if the path is empty or too long.
    init(_ path: String) throws {
        storage.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let capacity = MemoryLayout.size(ofValue: storage.sun_path) - 1
        guard !bytes.isEmpty, bytes.count <= capacity, !bytes.contains(0) else {
            throw ToolFailure(
                "A control socket's path has 1 to \(capacity) bytes; \(path) has \(bytes.count): use another path.")
        }
        withUnsafeMutableBytes(of: &storage.sun_path) { $0.copyBytes(from: bytes) }
    }

    mutating func withPointer<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
