import CDBus
import Foundation
import Futures

/// A bus daemon of our own: `dbus-daemon` with its own configuration, for simulators and tests.
///
/// It allows everything, and ends with this object, or with this process, however that ends: a guard process watches a
/// pipe that the kernel closes with us.
package final class PrivateBus: Sendable {
    /// Why a private bus could not be started, in a sentence for the user.
    package struct StartError: Error, CustomStringConvertible {
        package let description: String
    }

    private struct Guard {
        let process: pid_t
        let lifeline: Int32
    }

    /// Where to connect to.
    package let address: String
    /// Where its files are; only this user may enter.
    package let directory: String
    /// The name of a file in that directory which a user of the bus may make, and which goes with the bus.
    package static let controlName = "control"
    private let running: Locked<Guard?>

    /// Starts the daemon and waits until it listens, some milliseconds.
    package init() throws(StartError) {
        guard let program = PrivateBus.findDaemon() else {
            throw StartError(description: "dbus-daemon is not installed (Debian: apt-get install dbus-daemon).")
        }
        let directory = try PrivateBus.makeDirectory()
        self.directory = directory
        let files = ["bus.conf", "bus", Self.controlName]
        let configuration = directory + "/bus.conf"
        do {
            try PrivateBus.configuration(socket: directory + "/bus")
                .write(toFile: configuration, atomically: false, encoding: .utf8)
        } catch {
            PrivateBus.remove(directory, files)
            throw StartError(description: "\(configuration) could not be written: \(error.localizedDescription)")
        }
        let arguments = [program, "--nofork", "--nopidfile", "--print-address=1", "--config-file=" + configuration]
        var lifeline: Int32 = -1
        var output: Int32 = -1
        let process = withCStrings(arguments) { arguments in
            withCStrings(files) { [count = files.count + 1] files in
                files.withMemoryRebound(to: UnsafePointer<CChar>?.self, capacity: count) { files in
                    cdbus_spawn_guarded(program, arguments, directory, files, &lifeline, &output)
                }
            }
        }
        guard process > 0 else {
            PrivateBus.remove(directory, files)
            throw StartError(description: "dbus-daemon could not be started: \(String(cString: strerror(-process))).")
        }
        running = Locked(Guard(process: process, lifeline: lifeline))
        // Warnings may come first, such as that it may not raise its limit of open files.
        var warning = "it gave no reason"
        var line = readLine(from: output)
        while !line.isEmpty, !line.hasPrefix("unix:") {
            warning = line
            line = readLine(from: output)
        }
        address = line
        close(output)
        guard !address.isEmpty else {
            stop()
            throw StartError(description: "dbus-daemon ended before it listened: \(warning).")
        }
    }

    deinit {
        stop()
    }

    /// Ends the daemon and waits until it has gone, with its files. A second call does nothing.
    package func stop() {
        let running = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let running else { return }
        close(running.lifeline)
        cdbus_wait_guard(running.process)
    }

    private static func findDaemon() -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let directories = path.split(separator: ":").map(String.init) + ["/usr/bin", "/usr/local/bin", "/bin"]
        return directories.map { $0 + "/dbus-daemon" }.first(where: FileManager.default.isExecutableFile)
    }

    /// What the guard does later; here for a bus that has none. It needs no descriptor.
    private static func remove(_ directory: String, _ files: [String]) {
        for file in files { unlink("\(directory)/\(file)") }
        rmdir(directory)
    }

    private static func makeDirectory() throws(StartError) -> String {
        // A socket's path has room for about a hundred bytes, so a deep temporary directory will not do.
        let temporary = NSTemporaryDirectory()
        let base = temporary.utf8.count < 60 ? temporary : "/tmp"
        var template = Array((base.hasSuffix("/") ? base : base + "/").utf8CString.dropLast())
        template += "private-bus-XXXXXX".utf8CString
        guard let made = template.withUnsafeMutableBufferPointer({ $0.baseAddress.flatMap(mkdtemp) }) else {
            throw StartError(description: "No directory could be made in \(base): \(String(cString: strerror(errno))).")
        }
        return String(cString: made)
    }

    /// Everybody may do everything; the limits are the session bus's, which are out of the way.
    private static func configuration(socket: String) -> String {
        """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig>
          <type>session</type>
          <listen>unix:path=\(socket)</listen>
          <auth>EXTERNAL</auth>
          <policy context="default">
            <allow send_destination="*" eavesdrop="true"/>
            <allow eavesdrop="true"/>
            <allow own="*"/>
            <allow user="*"/>
          </policy>
          <limit name="max_incoming_bytes">1000000000</limit>
          <limit name="max_outgoing_bytes">1000000000</limit>
          <limit name="max_message_size">134217728</limit>
          <limit name="max_message_unix_fds">1024</limit>
          <limit name="max_completed_connections">10000</limit>
          <limit name="max_connections_per_user">10000</limit>
          <limit name="max_names_per_connection">10000</limit>
          <limit name="max_match_rules_per_connection">50000</limit>
          <limit name="max_replies_per_connection">50000</limit>
        </busconfig>
        """
    }
}

/// The first line; empty where the other side has closed without writing one.
private func readLine(from descriptor: Int32) -> String {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while true {
        let count = read(descriptor, &byte, 1)
        if count == 1, byte != UInt8(ascii: "\n") {
            line.append(byte)
        } else if count >= 0 || errno != EINTR {
            return String(decoding: line, as: UTF8.self)
        }
    }
}

/// The texts as C has them: an array of pointers, with a null at its end.
private func withCStrings<R>(_ texts: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> R) -> R
{
    var pointers = texts.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { buffer in
        guard let base = buffer.baseAddress else {
            preconditionFailure("An array with a null at its end is not empty.")
        }
        return body(base)
    }
}
