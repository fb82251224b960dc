import Foundation
import GatewayCore
import GatewayTestSupport
import XCTest

/// What is installed beside the program.
final class PackagingTests: XCTestCase {
    private let gateway = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private let program = builtProgram("bluecap-gateway")

    private func finish(_ process: ServerProcess) async throws -> String {
        let status = try await process.status(limit: .seconds(60))
        XCTAssertEqual(status, 0, process.text)
        return process.text
    }

    func testTheManualPagesHaveTheHelpAndEachKey() async throws {
        let directory = try TemporaryDirectory()
        let script = gateway.appending(path: "Scripts/man-pages").path()
        let output = try await finish(
            ServerProcess(script, [program, directory.url.path], log: directory.url.appending(path: "log")))
        XCTAssertEqual(output, "")
        let help = try String(contentsOfFile: directory.path("man1/bluecap-gateway.1"), encoding: .utf8)
        for section in ["SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"] {
            XCTAssertTrue(help.contains("\n.SH \(section)\n"), section)
        }
        let page = try String(contentsOfFile: directory.path("man5/bluecap-gateway.5"), encoding: .utf8)
        for key in GatewayConfiguration.keys {
            let name = try XCTUnwrap(key.path.split(separator: ".").last)
            XCTAssertTrue(page.contains("\n.TP\n\\fB\(name)\\fR ("), key.path)
        }
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/man") else { return }
        for name in ["man1/bluecap-gateway.1", "man5/bluecap-gateway.5"] {
            let warnings = try await finish(
                ServerProcess(
                    "sh", ["-c", "man --warnings --local-file \"$1\" 2>&1 >/dev/null", "sh", directory.path(name)],
                    log: directory.url.appending(path: "man-log")))
            XCTAssertEqual(warnings, "", name)
        }
    }

    func testItIsInstalledAndRemovedAsAWhole() async throws {
        let directory = try TemporaryDirectory()
        let script = gateway.appending(path: "../Scripts/install").standardizedFileURL.path()
        let log = directory.url.appending(path: "log")
        let root = directory.path("root")
        _ = try await finish(
            ServerProcess(script, [program], environment: ["DESTDIR": root, "PREFIX": "/usr"], log: log))
        let files = try XCTUnwrap(FileManager.default.subpaths(atPath: root))
        for path in [
            "bin/bluecap-gateway", "lib/systemd/system/bluecap-gateway.service", "lib/sysusers.d/bluecap-gateway.conf",
            "share/man/man1/bluecap-gateway.1.gz",
            "share/man/man5/bluecap-gateway.5.gz", "share/bash-completion/completions/bluecap-gateway",
            "share/doc/bluecap-gateway/gateway.yaml", "share/doc/bluecap-gateway/copyright",
        ] {
            XCTAssertTrue(files.contains("usr/\(path)"), path)
        }
        let unit = try String(contentsOfFile: root + "/usr/lib/systemd/system/bluecap-gateway.service", encoding: .utf8)
        XCTAssertTrue(
            unit.contains("\nExecStart=/usr/bin/bluecap-gateway --config /etc/bluecap-gateway/gateway.yaml\n"))
        _ = try await finish(
            ServerProcess(
                script, ["--uninstall", "bluecap-gateway"], environment: ["DESTDIR": root, "PREFIX": "/usr"], log: log))
        XCTAssertEqual(FileManager.default.subpaths(atPath: root)?.filter { $0 != "usr" }, [])
    }

    /// The exposure of the unit as systemd rates it: 0 is best, 10 worst.
    func testTheUnitIsHardened() async throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze") else {
            throw XCTSkip("systemd-analyze is not installed")
        }
        let text = try String(contentsOf: gateway.appending(path: "Packaging/bluecap-gateway.service"), encoding: .utf8)
        // A call that is not permitted ended the process: Swift's runtime calls setpriority, which @resources has.
        XCTAssertTrue(text.contains("\nSystemCallFilter=setpriority\nSystemCallErrorNumber=EPERM\n"), text)
        let users = try String(
            contentsOf: gateway.appending(path: "Packaging/bluecap-gateway.sysusers"), encoding: .utf8)
        XCTAssertTrue(text.contains("\nUser=bluecap-gateway\nSupplementaryGroups=bluetooth\n"), text)
        XCTAssertTrue(users.contains("\ng bluetooth -\nu bluecap-gateway "), users)
        let directory = try TemporaryDirectory()
        let unit = gateway.appending(path: "Packaging/bluecap-gateway.service").path()
        let output = try await finish(
            ServerProcess(
                "systemd-analyze", ["security", "--offline=true", "--no-pager", "--threshold=25", unit],
                log: directory.url.appending(path: "log")))
        let level = try XCTUnwrap(output.split(separator: "\n").last { $0.contains("Overall exposure level") }, output)
        print(level)
    }
}
