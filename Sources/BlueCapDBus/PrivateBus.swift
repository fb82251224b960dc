import CBlueCapDBus
import Foundation
import BlueCapFutures

/// A private bus daemon for simulators and tests: `dbus-daemon` with a configuration that allows everything.
///
/// It ends with this object, or with this process, even if the process crashes: a guard process watches a pipe that the
/// kernel closes with this process.
package final class PrivateBus: Sendable {
    /// The reason why a private bus could not be started, in a sentence for the user.
    package struct StartError: Error, CustomStringConvertible {
        package let description: String
    }

    private struct Guard {
        let process: pid_t
        let lifeline: Int32
    }

    /// The address to connect to.
    package let address: String
    /// The directory of its files, which only this user can access.
    package let directory: String
    /// The name of a file in that directory that a user of the bus may create; it is deleted with the bus.
    package static let controlName = "control"
    private let running: Locked<Guard?>

    /// Starts the daemon and waits until it listens, which takes some milliseconds.
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
            withCStrings(files) { cdbus_spawn_guarded(program, arguments, directory, $0, &lifeline, &output) }
        }
        guard process > 0 else {
            PrivateBus.remove(directory, files)
            throw StartError(description: "dbus-daemon could not be started: \(String(cString: strerror(-process))).")
        }
        running = Locked(Guard(process: process, lifeline: lifeline))
        // Warnings may precede the address, such as that the daemon may not raise its limit of open files.
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

    /// Ends the daemon and waits until its process has ended and its files are deleted. A second call does nothing.
    package func stop() {
        guard let running = running.withLock({ $0.take() }) else { return }
        close(running.lifeline)
        cdbus_wait_guard(running.process)
    }

    private static func findDaemon() -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let directories = path.split(separator: ":").map(String.init) + ["/usr/bin", "/usr/local/bin", "/bin"]
        return directories.map { $0 + "/dbus-daemon" }.first(where: FileManager.default.isExecutableFile)
    }

    /// Deletes the files, as the guard does, for a bus that has no guard. Needs no descriptor.
    private static func remove(_ directory: String, _ files: [String]) {
        for file in files { unlink("\(directory)/\(file)") }
        rmdir(directory)
    }

    private static func makeDirectory() throws(StartError) -> String {
        // The path of a socket is limited to about a hundred bytes, so the path of a deep temporary directory is too long.
        let temporary = NSTemporaryDirectory()
        let base = temporary.utf8.count < 60 ? temporary : "/tmp"
        var template = Array((base.hasSuffix("/") ? base : base + "/").utf8CString.dropLast())
        template += "private-bus-XXXXXX".utf8CString
        // mkdtemp returns the address of the template, which is valid in the closure only.
        let made = template.withUnsafeMutableBufferPointer {
            $0.baseAddress.flatMap(mkdtemp).map { String(cString: $0) }
        }
        guard let made else {
            throw StartError(description: "No directory could be made in \(base): \(String(cString: strerror(errno))).")
        }
        return made
    }

    /// Every user may do everything; the limits are the high ones of the session bus.
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

/// Reads the first line; empty if the other side has closed the pipe without writing one.
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

/// Calls `body` with the texts in C's form: an array of pointers, with a null pointer at its end.
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
