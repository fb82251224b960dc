import TestSupport
import XCTest

/// The tool beside real `bluetoothd`.
final class RadioToolTests: XCTestCase {
    /// The tool is built beside the tests.
    private var tool: String {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("bluecap")
            .path
    }

    override func tearDownWithError() throws { try RadioLab.reset() }

    func testAScanPrintsWhatIsAdvertisedAndLeavesNoDiscoveryBehind() throws {
        let stage = try RadioStage()
        try stage.advertise(.strap)

        let output = try RadioLab.run(tool, "scan", "--adapter", "hci0", "--duration", "5", "--json")
        let lines = try output.split(separator: "\n").map { line in
            try XCTUnwrap(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        let strap = try XCTUnwrap(lines.first { $0["name"] as? String == "Strap" }, output)
        XCTAssertEqual(strap["event"] as? String, "discovered")
        XCTAssertEqual(strap["address"] as? String, try RadioLab.property("Address", of: "hci1"))
        XCTAssertEqual(strap["manufacturerData"] as? [String: String], ["65535": "010203"])
        XCTAssertNil(strap["rssi"] as? Int)
        XCTAssertEqual(lines.last?["event"] as? String, "finished")
        XCTAssertFalse(try stage.isDiscovering())
    }

    func testAnInterruptedScanEndsCleanly() throws {
        let stage = try RadioStage()
        try stage.advertise(.strap)

        // The shell interrupts the scan as soon as it has printed its first line.
        let script = """
            coproc scan { exec "$0" scan --adapter hci0 --json; }
            read -r first <&"${scan[0]}"
            exec {rest}<&"${scan[0]}"
            kill -INT "$scan_PID"
            wait "$scan_PID"
            status=$?
            cat <&"$rest"
            exit $status
            """
        let output = try RadioLab.run("bash", "-c", script, tool)
        XCTAssertTrue(output.contains(#""event":"finished""#), output)
        XCTAssertFalse(try stage.isDiscovering())
    }

    func testAScanWithoutADaemonSaysWhatToDo() throws {
        try RadioLab.enter()
        try RadioLab.order(.server, "bluetoothd", "kill")
        let output = try RadioLab.run("bash", "-c", #"! "$0" scan --duration 2 2>&1 1>/dev/null"#, tool)
        XCTAssertTrue(output.contains("--simulated"), output)
    }
}
