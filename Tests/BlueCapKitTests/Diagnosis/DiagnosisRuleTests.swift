import BlueCapBlueZ
import BlueCapDBus
import XCTest

@testable import BlueCapKit

/// From facts to findings.
final class DiagnosisRuleTests: XCTestCase {
    private func facts(_ change: (inout DiagnosisFacts) -> Void = { _ in }) -> DiagnosisFacts {
        var facts = DiagnosisFacts()
        facts.adapters = [DiagnosisFacts.Adapter(name: "hci0", address: "00:AA:01:00:00:00", isPowered: true)]
        facts.capabilities.version = .init(5, 66)
        facts.machine = DiagnosisFacts.Machine()
        facts.machine?.socket = DiagnosisFacts.Socket(path: "/run/dbus/system_bus_socket")
        facts.machine?.kernel = "6.1.0"
        facts.machine?.controllers = ["hci0"]
        change(&facts)
        return facts
    }

    private func problem(
        _ change: (inout DiagnosisFacts) -> Void, file: StaticString = #filePath, line: UInt = #line
    ) throws -> BlueCapDiagnosis.Finding {
        let problems = facts(change).findings.filter { $0.severity == .problem }
        XCTAssertEqual(problems.count, 1, "\(problems)", file: file, line: line)
        return try XCTUnwrap(problems.first, file: file, line: line)
    }

    func testAHealthyMachineHasNoProblemAndNoWarning() {
        let findings = facts().findings
        XCTAssertEqual(findings.map(\.severity).max(), .note)
        XCTAssertEqual(
            findings.filter { $0.severity == .ok }.map(\.subject),
            ["process", "bus", "bluetoothd", "version", "adapter hci0", "kernel"])
        XCTAssertTrue(findings.filter { $0.severity == .ok }.allSatisfy { $0.advice == nil })
    }

    func testEachProblemSaysWhatToDo() throws {
        let error = DBusError(name: "org.freedesktop.DBus.Error.FileNotFound", message: "No such file")
        typealias Change = (inout DiagnosisFacts) -> Void
        let noBus: Change = { $0.availability = .noBus(error) }
        let noSocket: Change = { $0.machine?.socket?.exists = false }
        let noAdapter: Change = { $0.adapters = [] }
        let noController: Change = { $0.machine?.controllers = [] }
        let cases: [(subject: String, advice: String, changes: [Change])] = [
            ("bus", "systemctl status dbus", [{ $0.availability = .connecting }]),
            ("bus", "systemctl status dbus", [noBus]),
            ("bus", "systemctl start dbus", [noBus, noSocket]),
            ("bus", "-v /run/dbus:/run/dbus:ro", [noBus, noSocket, { $0.machine?.container = "docker" }]),
            (
                "bus", "may not write to /run/dbus/system_bus_socket",
                [noBus, { $0.machine?.socket?.isWritable = false }]
            ),
            ("bus", "Check the address", [noBus, { $0.machine = nil }]),
            ("bus", "usermod -aG bluetooth", [{ $0.availability = .refused(error) }]),
            ("bluetoothd", "systemctl start bluetooth", [{ $0.availability = .noDaemon }]),
            ("bluetoothd", "systemctl restart bluetooth", [{ $0.availability = .loading }]),
            ("bluetoothd", "journalctl -u bluetooth", [{ $0.availability = .notLoaded(error) }]),
            ("adapter hci0", "bluetoothctl power on", [{ $0.adapters[0].isPowered = false }]),
            (
                "adapter hci0", "rfkill unblock",
                [{ $0.adapters[0].isPowered = false }, { $0.adapters[0].isBlocked = true }]
            ),
            ("adapter hci7", "Choose among hci0", [{ $0.wanted = "hci7" }]),
            ("adapter", "The kernel has hci0", [noAdapter]),
            ("adapter", "Plug one in", [noAdapter, noController]),
            (
                "adapter", "config.txt",
                [noAdapter, noController, { $0.machine?.model = "Raspberry Pi 4 Model B Rev 1.4" }]
            ),
            ("adapter", "The host has none", [noAdapter, noController, { $0.machine?.container = "podman" }]),
        ]
        for (subject, advice, changes) in cases {
            let found = try problem {
                for change in changes { change(&$0) }
                if $0.availability != .ready { $0.adapters = [] }
            }
            XCTAssertEqual(found.subject, subject)
            XCTAssertTrue(found.advice?.contains(advice) == true, "\(found)")
        }
    }

    func testAnAdapterThatIsNotUsedIsNoProblem() {
        let other = DiagnosisFacts.Adapter(name: "hci1", address: "00:AA:01:01:00:01")
        let findings = facts { $0.adapters.append(other) }.findings
        XCTAssertEqual(findings.filter { $0.subject == "adapter hci1" }.map(\.severity), [.warning])
        let wanted = facts {
            $0.adapters.append(other)
            $0.wanted = "00:aa:01:01:00:01"
        }.findings
        XCTAssertEqual(wanted.filter { $0.subject == "adapter hci1" }.map(\.severity), [.problem])
        let tenth = DiagnosisFacts.Adapter(name: "hci10", address: "00:AA:01:0A:00:0A")
        XCTAssertEqual(
            facts { $0.adapters.insert(tenth, at: 0) }.findings.filter { $0.subject == "adapter hci10" }.map(
                \.severity),
            [.warning], "hci0 is used, the lowest number")
    }

    func testOtherProgramsAreNoted() {
        let findings = facts {
            $0.adapters[0].isDiscovering = true
            $0.adapters[0].socketCount = 2
        }.findings.filter { $0.subject == "adapter hci0" && $0.severity == .note }
        XCTAssertEqual(findings.count, 2)
        XCTAssertTrue(findings[0].found.contains("scans"))
        XCTAssertTrue(findings[1].found.contains("2 characteristics"))
    }

    func testABlockedRadioIsAWarning() {
        let software = DiagnosisFacts.Switch(name: "hci0", isBlockedBySoftware: true, isBlockedByHardware: false)
        let hardware = DiagnosisFacts.Switch(name: "tpacpi", isBlockedBySoftware: false, isBlockedByHardware: true)
        let findings = facts { $0.machine?.switches = [software, hardware] }.findings.filter { $0.subject == "rfkill" }
        XCTAssertEqual(findings.map(\.severity), [.warning, .warning])
        XCTAssertTrue(findings[0].advice?.contains("rfkill unblock") == true)
        XCTAssertTrue(findings[1].advice?.contains("switch") == true)
    }

    // MARK: Versions

    private func notes(of version: BluetoothCapabilities.Version?) -> [String] {
        facts { $0.capabilities.version = version }.findings.filter { $0.subject == "version" && $0.severity == .note }
            .map(\.found)
    }

    func testEachVersionHasItsFaults() {
        XCTAssertTrue(notes(of: .init(5, 87)).contains { $0.contains("ends itself") })
        XCTAssertFalse(notes(of: .init(5, 86)).contains { $0.contains("ends itself") })
        XCTAssertTrue(notes(of: .init(5, 75)).contains { $0.contains("all subscribed centrals") })
        XCTAssertFalse(notes(of: .init(5, 76)).contains { $0.contains("all subscribed centrals") })
        XCTAssertFalse(notes(of: .init(5, 66)).contains { $0.contains("without a reply") })
        XCTAssertTrue(notes(of: .init(5, 67)).contains { $0.contains("without a reply") })
        XCTAssertEqual(notes(of: nil).count, 1)
        XCTAssertEqual(
            facts { $0.capabilities.version = .init(5, 54) }.findings.first { $0.subject == "version" }?.severity,
            .warning)
    }

    func testEachFaultStandsInTheTableOfVersions() throws {
        let page = try String(
            contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../../Documentation/BlueZNotes.md"), encoding: .utf8
        ).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for fault in DiagnosisFacts.KnownFault.all {
            XCTAssertTrue(page.contains(fault.source), fault.source)
        }
    }

    // MARK: The report

    func testTheReportIsTextAndJSON() throws {
        let diagnosis = BlueCapDiagnosis(findings: facts().findings, capabilities: facts().capabilities)
        let decoded = try JSONDecoder().decode(BlueCapDiagnosis.self, from: try JSONEncoder().encode(diagnosis))
        XCTAssertEqual(decoded, diagnosis)
        XCTAssertFalse(diagnosis.hasProblem)
        XCTAssertTrue("\(diagnosis)".contains("ok       bluetoothd: It runs and replies."), "\(diagnosis)")
    }
}
