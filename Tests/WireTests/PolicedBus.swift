import TestBasics
import XCTest

/// A `dbus-daemon` with a policy of the test. It can be killed and started again at the same address.
final class PolicedBus {
    static let allowingAll = """
        <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/>
        """

    let address: String
    private let directory: URL
    private var daemon: Process?

    /// - Parameter services: what the bus starts when it is asked for the name: shell commands by bus names.
    init(policy: String = PolicedBus.allowingAll, services: [String: String] = [:]) throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "bus-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        address = "unix:path=\(directory.path)/bus"
        try """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig>
          <type>session</type>
          <listen>\(address)</listen>
          <auth>EXTERNAL</auth>
          <servicedir>\(directory.path)</servicedir>
          <policy context="default">\(policy)</policy>
        </busconfig>
        """.write(to: configuration, atomically: false, encoding: .utf8)
        for (name, command) in services {
            try "[D-BUS Service]\nName=\(name)\nExec=/bin/sh -c '\(command)'\n"
                .write(to: directory.appendingPathComponent(name + ".service"), atomically: false, encoding: .utf8)
        }
        try start()
    }

    deinit {
        die()
        try? FileManager.default.removeItem(at: directory)
    }

    private var configuration: URL { directory.appendingPathComponent("bus.conf") }

    /// Starts the daemon, and waits until it listens.
    func start() throws {
        let output = Pipe()
        let daemon = TestProgram.process()
        daemon.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        daemon.arguments = [
            "dbus-daemon", "--nofork", "--nopidfile", "--print-address=1", "--config-file=\(configuration.path)",
        ]
        daemon.standardOutput = output
        daemon.standardError = FileHandle.nullDevice
        try daemon.run()
        self.daemon = daemon
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        XCTAssertTrue(line.hasPrefix("unix:"), line)
    }

    /// Kills the daemon.
    func die() {
        guard let daemon else { return }
        kill(daemon.processIdentifier, SIGKILL)
        daemon.waitUntilExit()
        self.daemon = nil
    }
}
