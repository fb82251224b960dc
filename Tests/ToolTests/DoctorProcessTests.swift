import BlueZSimulator
import TestBasics
import XCTest

/// `bluecap doctor` as a process.
final class DoctorProcessTests: XCTestCase, StartsPrograms {
    private func subjects(_ result: ToolRun.Result, _ severity: String) throws -> [String] {
        try result.lines.compactMap { line in
            let finding = try XCTUnwrap(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            XCTAssertEqual(Set(finding.keys), ["severity", "subject", "found", "advice"])
            return finding["severity"] as? String == severity ? finding["subject"] as? String : nil
        }
    }

    func testASimulatedBlueZIsHealthy() throws {
        let text = try ToolRun("doctor", "--simulated", "--bluez", "5.66").finish(status: 0)
        XCTAssertTrue(text.lines.contains("ok       bluetoothd: It runs and replies."), text.output)
        XCTAssertEqual(text.errors, [])
        let json = try ToolRun("doctor", "--simulated", "--json").finish(status: 0)
        XCTAssertEqual(try subjects(json, "ok"), ["bus", "bluetoothd", "version", "adapter hci0"])
    }

    func testTheSystemBusIsExaminedWithTheMachine() throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        defer { simulator.end() }
        let environment = ["DBUS_SYSTEM_BUS_ADDRESS": simulator.address]
        let healthy = try ToolRun("doctor", "--json", environment: environment).finish()
        XCTAssertEqual(healthy.status, 0, healthy.output)
        XCTAssertTrue(try subjects(healthy, "ok").contains("kernel"))
        simulator.simulatePowerOff()
        let off = try ToolRun("doctor", "--json", environment: environment).finish(status: 3)
        XCTAssertEqual(try subjects(off, "problem"), ["adapter hci0"])
        let missing = try ToolRun("doctor", "--json", "--adapter", "hci5", environment: environment).finish(status: 3)
        XCTAssertEqual(try subjects(missing, "problem"), ["adapter hci5"])
    }

    func testWithoutABusItSaysWhatToDo() throws {
        let environment = ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nowhere/bus"]
        let result = try ToolRun("doctor", environment: environment).finish(status: 3)
        XCTAssertTrue(result.output.contains("problem  bus: There is no connection to the bus"), result.output)
        XCTAssertTrue(result.output.contains("/nowhere/bus does not exist"), result.output)
        let wrong = try ToolRun("doctor", environment: ["DBUS_SYSTEM_BUS_ADDRESS": "nonsense"]).finish(status: 3)
        XCTAssertTrue(wrong.output.contains("The address is nonsense"), wrong.output)
    }

    /// A bus that admits its owner only.
    func testADiagnosisByAnotherUserNamesTheRefusalOfTheBus() throws {
        let asNobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        let check = try ToolRun(script: "\(asNobody) \"$BLUECAP\" --version").finish()
        try XCTSkipUnless(check.status == 0, "another user cannot run the tool here: \(check.errors)")
        let simulator = try Simulator.onPrivateBus(room: .empty)
        defer { simulator.end() }
        let result = try ToolRun(
            script: "export DBUS_SYSTEM_BUS_ADDRESS='\(simulator.address)'; \(asNobody) \"$BLUECAP\" doctor --json"
        ).finish(status: 3)
        XCTAssertEqual(try subjects(result, "problem"), ["bus"], result.output)
    }

    func testAWrongArgumentIsRefused() throws {
        XCTAssertEqual(try ToolRun("doctor", "hci0").finish().status, 64)
    }
}

/// `BLUECAP_LOG`.
final class LogProcessTests: XCTestCase, StartsPrograms {
    func testTheEnvironmentSetsTheLevel() throws {
        let arguments = ["scan", "--simulated", "--duration", "1"]
        let silent = try ToolRun(arguments).finish()
        XCTAssertEqual(silent.errors, [])
        let logged = try ToolRun(arguments, environment: ["BLUECAP_LOG": "info"]).finish(status: 0)
        XCTAssertTrue(logged.errors.contains { $0.contains("info") && $0.contains("scan started") }, "\(logged.errors)")
        XCTAssertFalse(logged.errors.contains { $0.contains("debug") || $0.contains("trace") }, "\(logged.errors)")
        // The number of lines is not compared: what is received in a second varies.
        XCTAssertFalse(silent.lines.isEmpty)
        XCTAssertFalse(logged.lines.isEmpty)
        XCTAssertFalse(logged.output.contains("scan started"), logged.output)
    }

    func testAWrongLevelIsRefusedWithTheLevels() throws {
        let result = try ToolRun("scan", "--simulated", environment: ["BLUECAP_LOG": "loud"]).finish(status: 64)
        XCTAssertTrue(
            result.errors.joined().contains(#"BLUECAP_LOG is "loud": it takes trace, debug, info"#), "\(result.errors)")
    }
}
